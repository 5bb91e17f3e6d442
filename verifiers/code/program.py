"""Generated checkers as a verifier: Python from the reference judges the response, in a sandbox of its own.

The checker gets two texts, the prompt and the response, and answers True, False or a number in [0, 1].  One that gives
no verdict on a response is asked about an empty response too: if it gives none there either, the checker is broken and
nothing is scored; else the response is what it cannot take, and that is a 0.

A checker runs in a sandbox, so it can break nothing.  But a checker that evaluates the answer lets the answer decide
the verdict.  So what runs text as code, looks attributes up by a computed name or imports anything beyond text
processing is refused before it runs.  It is a lint against honest mistakes of a generator; the sandbox is the wall.

Not covered: checkers in other languages, and checkers that need files or packages.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from adjudge.options import Range
from adjudge.protocol import Limits, Sample, Score, content_text
from adjudge.sandbox import codec, frames
from adjudge.sandbox.peer import PeerLostError, Raised
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.warm_python import shared
from adjudge.sandbox.zygote import ZygoteLostError
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import shown
from adjudge.scoring.verifier_base import Reasoning, ReferenceVerifier, graded_text
from adjudge.verifiers.code.names import parsed
from adjudge.verifiers.code.python_candidate import NotLoadedError, answer_of
from adjudge.verifiers.code.sandboxed import IsolatedVerifier

MODULES = frozenset(
    """__future__ bisect collections datetime decimal difflib enum fractions functools heapq html itertools json math
    operator re statistics string textwrap typing unicodedata""".split()
)
"""What a checker may import."""

_FORBIDDEN = frozenset(
    """eval exec compile __import__ open input getattr setattr delattr vars globals locals breakpoint __builtins__
    __loader__ __spec__ memoryview""".split()
)
_LONGEST_SOURCE = 50_000


def read_checker(source: Any, *, where: str) -> str:
    """Return the source of a checker that defines `check(prompt, response)`.

    Raises:
        BadReferenceError: it is not Python, has no such function, or uses what checkers may not.
    """
    if not isinstance(source, str) or len(source) > _LONGEST_SOURCE:
        raise BadReferenceError(f"{where} has the program {shown(source)}; give Python of at most {_LONGEST_SOURCE}")
    tree = parsed(source, f"{where} has a program that")
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "check"]
    if not functions:
        raise BadReferenceError(f"{where} has a program without a function `check(prompt, response)`")
    arguments = functions[-1].args
    required = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    if not arguments.vararg and (required > 2 or len(arguments.posonlyargs) + len(arguments.args) < 2):
        raise BadReferenceError(f"{where} has a `check` that does not take the two arguments (prompt, response)")
    for node in ast.walk(tree):
        if problem := _problem(node):
            raise BadReferenceError(f"{where} has a program that {problem}, which a checker may not")
    return source


def _problem(node: ast.AST) -> str:
    match node:
        case ast.Import(names=aliases):
            foreign = [alias.name for alias in aliases if alias.name.partition(".")[0] not in MODULES]
            return f"imports {foreign[0]}" if foreign else ""
        case ast.ImportFrom(module=module, level=level):
            return f"imports {module or '.'}" if level or (module or "").partition(".")[0] not in MODULES else ""
        case ast.Name(id=name) if name in _FORBIDDEN:
            return f"uses {name}"
        case ast.Attribute(attr=name) if name.startswith("__") and name.endswith("__"):
            return f"reads the attribute {name}"
        case _:
            return ""


_MAX_CHARACTERS = 1 << 20  # of a response; 1 MiB crosses to the sandbox in 10 ms


@dataclass(frozen=True, kw_only=True)
class ProgramVerifier(IsolatedVerifier, ReferenceVerifier[str, tuple[str, str]]):
    """What a generated checker says of the response: a truth value, or a number in [0, 1].

    The reference is Python source that defines `check(prompt, response)`, or `{"program": source}`.

    Attributes:
        reasoning: "strip" shows the checker only what follows the end-of-thinking tag; "keep" all of it.
        seconds: seconds of one call of the checker.
        memory_mb: MiB that it may use.
    """

    name: ClassVar[str] = "program"
    version: ClassVar[str] = "2"

    reasoning: Reasoning = "strip"
    seconds: Annotated[float, Range(gt=0, le=60)] = 5.0
    memory_mb: Annotated[int, Range(ge=32)] = 512

    @property
    def limits(self) -> Limits:  # type: ignore[override]
        """What one call may use: two runs of the checker, and room to start a sandbox."""
        return Limits(seconds=4 * self.seconds + 30.0, memory_mb=1024, processes=4096)

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when there is no checker, or one that may not run."""
        super().validate(sample)
        self.read_reference(sample.reference)

    def read_reference(self, reference: Any) -> str:
        """Return the checker's source."""
        source = reference.get("program") if isinstance(reference, Mapping) else reference
        return read_checker(source, where="the program reference")

    def find(self, sample: Sample, gold: str) -> tuple[str, str] | Score:
        """Return the two texts that the checker gets."""
        text, fault = graded_text(sample, self.reasoning, "grade")
        if fault:
            return Score.scored(0.0, fault)
        if len(text) > _MAX_CHARACTERS:
            return Score.scored(0.0, "too_complex", error=f"more than {_MAX_CHARACTERS} characters")
        return question_of(sample), text

    def judge(self, answer: tuple[str, str], source: str) -> Score:
        """Return what the checker says; see the module for the rest."""
        prompt, text = answer
        verdict = self._ask(source, prompt, text)
        if isinstance(verdict, float):
            return Score.scored(verdict, "" if verdict == 1.0 else "wrong")
        alone = self._ask(source, prompt, "")
        if not isinstance(alone, float):
            return Score.failed("gold_unparsable", error=f"the checker gives no verdict: {alone}")
        return Score.scored(0.0, "candidate_error", error=f"the checker cannot take this response: {verdict}")

    def _ask(self, source: str, prompt: str, text: str) -> float | str:
        """Return the checker's verdict, or why there is none."""
        limits = RunLimits(seconds=self.seconds, memory_mb=self.memory_mb, processes=8)
        try:
            answer = answer_of(shared(self.isolation), source, "check", (prompt, text), limits, (False, ()))
        except frames.FrameTimeoutError:
            return f"it took longer than {self.seconds:g} s"
        except (NotLoadedError, PeerLostError, frames.FrameError, codec.CodecError, ZygoteLostError) as error:
            return f"{type(error).__name__}: {error}"[:300]
        if isinstance(answer, Raised):
            return f"it raised {answer.names[0] if answer.names else 'an error'}: {answer.text}"[:300]
        if type(answer) in (bool, int, float) and math.isfinite(answer) and 0 <= answer <= 1:
            return float(answer)
        return f"it returned {shown(answer)}, which is neither a truth value nor a number in [0, 1]"


def question_of(sample: Sample) -> str:
    """Return the task's text: the prompt, or the last turn of the user."""
    if isinstance(sample.prompt, str):
        return sample.prompt
    turns = [turn for turn in sample.prompt if turn.get("role") == "user"]
    return content_text(turns[-1].get("content")) if turns else ""
