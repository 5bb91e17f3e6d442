"""The Coq verifier: does the response prove the theorem?

The response is compiled alone; a second file of ours then loads it and defines a constant of the pinned statement's
type by the response's theorem, and asks Coq what that rests on.  See `adjudge.verifiers.proofs.coq_source` for why a
response cannot change what the statement means.  Steps are the sentences up to the first error, the segments at which
RMaxTS of DeepSeek-Prover-V1.5 cuts.

Not covered: plug-ins, several files, and projects with libraries beyond those that Coq finds by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

from adjudge import wire
from adjudge.attacks import AttackCase
from adjudge.bad_reference import BadReferenceError
from adjudge.protocol import Limits, Sample, Score, StepScore, Verifier, response_text
from adjudge.verifiers.code.extraction import extract
from adjudge.verifiers.execution.program import RunLimits
from adjudge.verifiers.execution.runner import Isolation, Runner, sandbox
from adjudge.verifiers.execution.sandbox import SandboxUnavailableError
from adjudge.verifiers.proofs.attacks import attack_cases
from adjudge.verifiers.proofs.coq_rules import forbidden
from adjudge.verifiers.proofs.coq_run import (
    GoalLimitError,
    accepted,
    compile_file,
    compiled,
    error_place,
    recheck,
    unknown_axioms,
)
from adjudge.verifiers.proofs.coq_source import Answer, Theorem, answer_of, read_theorem
from adjudge.verifiers.proofs.reference import refuse_mistakes
from adjudge.verifiers.proofs.toolbox import ENDINGS, MOST_CHARACTERS, check_limits, require, run_limits, shown
from adjudge.verifiers.text.graded import Reasoning, Truncated, graded_text

_LABELS = frozenset({"coq", "v", "rocq", "gallina"})
_CACHED = 64


@dataclass(frozen=True, kw_only=True)
class CoqVerifier(Verifier):
    """1 when Coq accepts the response's proof of the pinned theorem, else 0.

    The reference is `{"header": imports and definitions, "statement": "Theorem t : ... ."}`, or the statement alone;
    optional `axioms` (full names of axioms that a proof may use). Axioms of the header may be used, too.

    Attributes:
        block: which of several code blocks is the proof: "last", "first", "longest", or "only", with which several
            different ones are no answer.
        axioms: full names of axioms that any proof may use.
        recheck: also have `coqchk`, a second kernel, check the response's module; takes about twice the time.
        reasoning: "strip" looks only at what follows the end-of-thinking tag; "keep" at all of it.
        truncated: a response with `finish_reason="length"` is worth 0 ("zero") or is graded ("grade").
        seconds: seconds for each run of Coq.
        memory_mb: MiB for each.
        isolation: "bubblewrap", or "none" for responses that you trust.
    """

    name: ClassVar[str] = "coq"
    version: ClassVar[str] = "1"

    block: Literal["last", "first", "longest", "only"] = "last"
    axioms: tuple[str, ...] = ()
    recheck: bool = False
    reasoning: Reasoning = "strip"
    truncated: Truncated = "zero"
    seconds: float = 20.0
    memory_mb: int = 2048
    isolation: Isolation = "bubblewrap"

    def __post_init__(self) -> None:
        """Reject option values that mean nothing, and hosts without Coq."""
        choices: dict[str, tuple[str, ...]] = {
            "block": ("last", "first", "longest", "only"),
            "reasoning": ("strip", "keep"),
            "truncated": ("zero", "grade"),
            "isolation": ("bubblewrap", "none"),
        }
        for option, allowed in choices.items():
            if getattr(self, option) not in allowed:
                raise ValueError(f"coq: {option} is {getattr(self, option)!r}; it must be one of {', '.join(allowed)}")
        object.__setattr__(self, "axioms", tuple(self.axioms))
        try:
            read_theorem({"statement": "Theorem t : True.", "axioms": self.axioms})
        except BadReferenceError as error:
            raise ValueError(f"coq: axioms is {self.axioms!r:.80}; list full names: Lib.Module.name") from error
        check_limits("coq", self.seconds, self.memory_mb)
        for tool in ("coqc", "coqchk") if self.recheck else ("coqc",):
            require(tool)

    @property
    def limits(self) -> Limits:  # type: ignore[override]  # of the class elsewhere; here the options decide
        """What one call may use: three runs for the reference, and up to three for the response."""
        return Limits(seconds=6 * self.seconds + 10, memory_mb=1024, processes=64)

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the reference is missing or not of the form this verifier takes."""
        super().validate(sample)
        refuse_mistakes("coq", sample, read_theorem)

    def attacks(self, folder: Path) -> Iterator[AttackCase]:
        """Yield the attack suite."""
        del folder  # the cases need no files
        yield from attack_cases("coq")

    def verify(self, sample: Sample) -> Score:
        """Return the verdict on one response.

        The evidence has "stage" ("extract", "rules", "compile", "statement", "axioms", "recheck" or "proved"), and
        "error", "axioms" or "forbidden" where there is something to say; "accepted" is how many sentences Coq took.
        """
        try:
            key = wire.dumps(sample.reference)
            made = _made(replace(self, block="last", recheck=False, reasoning="strip", truncated="zero"), key)
        except GoalLimitError as error:
            return Score.failed("gold_timeout", error=str(error))
        except (BadReferenceError, TypeError) as error:
            return Score.failed("gold_unparsable", error=str(error))
        except SandboxUnavailableError as error:
            return Score.failed(error.reason, error=str(error))
        if isinstance(made, BadReferenceError):
            return Score.failed("gold_unparsable", error=str(made))
        return self._graded(sample, made)

    def _graded(self, sample: Sample, made: dict[str, bytes]) -> Score:
        text, fault = graded_text(sample, self.reasoning, self.truncated)
        found = extract(text, _LABELS, self.block) if not fault else None
        if found is None or found.fault:
            return Score.scored(0.0, found.fault if found else fault, stage="extract")
        if len(found.source) > MOST_CHARACTERS:
            return Score.scored(0.0, "too_complex", stage="extract", error=f"more than {MOST_CHARACTERS} characters")
        theorem = read_theorem(sample.reference, self.axioms)
        answer = answer_of(theorem, found.source)
        word, reason = forbidden(answer.own, f"{theorem.header}\n{theorem.statement}")
        if word:
            return Score.scored(0.0, reason, stage="rules", forbidden=word)
        start = len(response_text(sample)) - len(text)
        start += text.find(found.source) if self.block == "first" else text.rfind(found.source)
        try:
            return self._proved(theorem, made, answer, start)
        except SandboxUnavailableError as error:
            return Score.failed(error.reason, error=str(error))

    def _proved(self, theorem: Theorem, made: dict[str, bytes], answer: Answer, start: int) -> Score:
        runner, limits = sandbox(self.isolation), self._limits
        given = {name: data for name, data in made.items() if name != "Goal.vo"}
        done = compile_file(runner, "Answer", answer.source, given, limits)
        if done.ending != "exited":
            return Score.scored(0.0, ENDINGS[done.ending], stage="compile")
        error = done.stderr.decode("utf-8", "replace")
        if done.code != 0 or not done.outputs.get("Answer.vo"):
            place = error_place(error)
            steps = _steps(answer, accepted(answer, place), start) if place else ()
            score = Score.scored(0.0, "candidate_error", stage="compile", error=shown(error), accepted=_taken(steps))
            return replace(score, steps=steps)
        steps = _steps(answer, len(answer.body) + 1, start)
        made = {**made, "Answer.vo": done.outputs["Answer.vo"]}
        score = self._checked(runner, theorem, made)
        return replace(score, steps=steps, evidence={**score.evidence, "accepted": _taken(steps)})

    def _checked(self, runner: Runner, theorem: Theorem, made: dict[str, bytes]) -> Score:
        done = compile_file(runner, "Check", theorem.check, made, self._limits)
        if done.ending != "exited":
            return Score.scored(0.0, ENDINGS[done.ending], stage="statement")
        if done.code != 0 or not done.outputs.get("Check.vo"):
            return Score.scored(0.0, "wrong", stage="statement", error=shown(done.stderr))
        if unknown := unknown_axioms(done.stdout.decode("utf-8", "replace"), theorem):
            return Score.scored(0.0, "wrong", stage="axioms", axioms=unknown[:20])
        if self.recheck:
            again = recheck(runner, made, self._limits)
            if again.ending != "exited":
                return Score.scored(0.0, ENDINGS[again.ending], stage="recheck")
            if again.code != 0:
                return Score.scored(0.0, "wrong", stage="recheck", error=shown(again.stderr or again.stdout))
        return Score.scored(1.0, stage="proved")

    @property
    def _limits(self) -> RunLimits:
        return run_limits(self.seconds, self.memory_mb)


def _steps(answer: Answer, error: int, start: int) -> tuple[StepScore, ...]:
    """Return the sentences that Coq took, and the one at which it stopped; nothing is known of those behind."""
    steps = []
    for one in answer.sentences:
        fine = one.end <= error
        steps.append(
            StepScore(
                value=float(fine),
                label="accepted" if fine else "error",
                start=start + one.start,
                end=start + one.end,
            )
        )
        if not fine:
            break
    return tuple(steps)


def _taken(steps: tuple[StepScore, ...]) -> int:
    return sum(step.label == "accepted" for step in steps)


@lru_cache(maxsize=_CACHED)
def _made(verifier: CoqVerifier, key: str) -> dict[str, bytes] | BadReferenceError:
    """Return a reference's compiled files, or why there are none; kept, because a batch repeats a reference."""
    try:
        theorem = read_theorem(wire.loads(key), verifier.axioms)
        return compiled(sandbox(verifier.isolation), theorem, verifier._limits)
    except GoalLimitError:
        raise  # and nothing is kept: on a quieter machine it may pass
    except BadReferenceError as error:
        return error
