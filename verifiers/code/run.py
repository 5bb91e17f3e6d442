"""Does the program in a response run to its end?  And what did it print?

Nothing is compared: the evidence says how the program ended and what it printed, for callers that judge for themselves,
such as the server's `/run_code`.  It runs in the sandbox of the code verifier, with the same limits.

Not covered: files beside the program, and several runs of one program; `code` compiles once for all its tests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from adjudge.options import Range
from adjudge.protocol import Limits, Sample, Score
from adjudge.sandbox.program import Program, RunLimits, RunResult
from adjudge.sandbox.sandbox import sandbox
from adjudge.sandbox.warm_python import flavour_of, shared
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.verifier_base import Reasoning, TextVerifier
from adjudge.verifiers.code.extraction import Block, program_in
from adjudge.verifiers.code.languages import LANGUAGES, labels_of, language_of, missing
from adjudge.verifiers.code.program_run import ENDINGS, build, roomier
from adjudge.verifiers.code.sandboxed import SandboxedVerifier, tried_twice

_FIELDS = frozenset({"language", "stdin", "seconds", "compile_seconds", "memory_mb", "measured"})
_SECONDS = Range(ge=1e-3, le=3600)
_SPARE_SECONDS = 30.0  # starting sandboxes, killing, a second try


@dataclass(frozen=True, kw_only=True)
class RunVerifier(SandboxedVerifier, TextVerifier["_Request", str]):
    """Run the program in a response; 1 if it exits with status 0.

    The reference is nothing, or a mapping with any of "language", "stdin", "seconds", "compile_seconds", "memory_mb",
    and "measured": whether the evidence tells the seconds that the program took, which no two runs share.  A reference
    may ask for less time and memory than the options give, never for more.

    Attributes:
        block: which of several code blocks is the program, as for `code`.
        reasoning: "keep" looks at all of a response; "strip" only at what follows the end-of-thinking tag.
        seconds: seconds for the run.
        compile_seconds: for the compiler.
        memory_mb: MiB for the program.
        processes: processes and threads at one time.
        output_mb: MiB that a program may print, to each of its two outputs.
    """

    name: ClassVar[str] = "run"
    version: ClassVar[str] = "3"
    needs_reference: ClassVar[bool] = False

    block: Block = "last"
    reasoning: Reasoning = "keep"
    seconds: Annotated[float, _SECONDS] = 30.0
    compile_seconds: Annotated[float, _SECONDS] = 60.0
    memory_mb: Annotated[int, Range(ge=32)] = 1024
    processes: Annotated[int, Range(ge=1)] = 64
    output_mb: Annotated[int, Range(ge=1)] = 1

    @property
    def limits(self) -> Limits:  # type: ignore[override]
        """What one call may use."""
        seconds = 2 * self.seconds + self.compile_seconds + _SPARE_SECONDS
        return Limits(seconds=seconds, memory_mb=2048, processes=4096)

    def read_reference(self, reference: Any) -> _Request:
        """Return what a reference asks for."""
        try:
            return _Request.read(reference, self)
        except ValueError as error:
            raise BadReferenceError(str(error)) from error

    def nothing(self, reason: str, sample: Sample, gold: _Request) -> Score:
        """Return the score of a response without a text to run."""
        return Score.scored(0.0, reason, run=None)

    def find_in(self, text: str, sample: Sample, gold: _Request) -> str | Score:
        """Return the program."""
        return program_in(text, labels_of(gold.language), self.block, run=None)

    def judge(self, source: str, request: _Request) -> Score:
        """Return 1 for a program that exits with status 0, else 0.

        The evidence has "run", and "compile" where there is a compiler: how it ended ("exited", "signalled", "timeout",
        "memory", "output" or "disk"), its code or signal, "stdout" and "stderr"; None for what was not run.
        """
        return self._python(source, request) if request.language == "python" else self._built(source, request)

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return the zero of a program that took the worker with it."""
        return Score.scored(0.0, reason, run=None)

    def _python(self, source: str, request: _Request) -> Score:
        def run() -> Score:
            done, unparsable = shared(self.isolation).script(source, request.stdin, request.run, flavour_of(source))
            return _score({"run": _shown(done, request.measured, unparsable)})

        def broken(error: str) -> Score:
            return Score.scored(0.0, "candidate_crash", run=None, error=error)

        return tried_twice(self.isolation, run, broken)

    def _built(self, source: str, request: _Request) -> Score:
        if lack := missing(request.language):
            return Score.failed("engine_unavailable", error=lack)
        box = sandbox(self.isolation)
        built = build(box, source, request.language, request.compiling)
        parts = {} if built.done is None else {"compile": _shown(built.done, request.measured)}
        if not built.complete:
            return _score(parts)
        language = LANGUAGES[request.language]
        program = Program(command=language.run, files=built.files, stdin=request.stdin, environment=built.environment)
        done = box.run(program, roomier(request.run, language))
        return _score({**parts, "run": _shown(done, request.measured)})


@dataclass(frozen=True, kw_only=True)
class _Request:
    """What a reference asks for."""

    language: str
    stdin: bytes
    run: RunLimits
    compiling: RunLimits
    measured: bool

    @classmethod
    def read(cls, reference: Any, most: RunVerifier) -> _Request:
        given = {} if reference is None else reference
        if not isinstance(given, Mapping):
            raise ValueError(f"the run reference is a {type(given).__name__}; it must be a mapping, or nothing")
        given = {str(key): value for key, value in given.items() if value is not None}
        if unknown := sorted(given.keys() - _FIELDS):
            raise ValueError(f"the run reference has {unknown[0]!r}; known are {', '.join(sorted(_FIELDS))}")
        stdin = given.get("stdin", "")
        if not isinstance(stdin, str):
            raise ValueError(f"the run reference's stdin is a {type(stdin).__name__}; it must be text")
        measured = given.get("measured", False)
        if not isinstance(measured, bool):
            raise ValueError(f"the run reference's measured is {measured!r}; it must be true or false")
        run = RunLimits(
            seconds=_at_most(given, "seconds", most.seconds),
            memory_mb=int(_at_most(given, "memory_mb", most.memory_mb)),
            processes=most.processes,
            output_bytes=most.output_mb << 20,
        )
        compiling = RunLimits(
            seconds=_at_most(given, "compile_seconds", most.compile_seconds),
            memory_mb=2048,
            processes=256,
            output_bytes=1 << 20,
            disk_mb=512,
        )
        name = given.get("language", "python")
        language = language_of(name) if isinstance(name, str) else ""
        if not language:
            raise ValueError(f"the run reference's language is {name!r}; known are python, {', '.join(LANGUAGES)}")
        return cls(
            language=language,
            stdin=stdin.encode("utf-8", "surrogatepass"),
            run=run,
            compiling=compiling,
            measured=measured,
        )


def _at_most(given: Mapping[str, Any], field: str, most: float) -> float:
    value = given.get(field)
    if value is None:
        return most
    if type(value) not in (int, float) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"the run reference's {field} is {value!r}; it must be a number above 0")
    if value > most:
        raise ValueError(f"the run reference asks for {field}={value!r}, and the scorer's option allows {most:g}")
    return float(value)


def _score(parts: dict[str, dict[str, Any]]) -> Score:
    last = parts["run"] if "run" in parts else parts["compile"]
    if "run" in parts and last["ending"] == "exited" and last["code"] == 0:
        return Score(value=1.0, evidence=parts)
    return Score(value=0.0, reason=ENDINGS.get(last["ending"], "candidate_error"), evidence=parts)


def _shown(done: RunResult, measured: bool, unparsable: str = "") -> dict[str, Any]:
    errors = done.stderr.decode("utf-8", "replace")
    shown = {
        "ending": done.ending,
        "code": done.code,
        "stdout": done.stdout.decode("utf-8", "replace"),
        "stderr": "\n".join(filter(None, (errors, unparsable))),
    }
    return {**shown, "seconds": round(done.seconds, 4)} if measured else shown
