"""The Coq verifier: does the response prove the theorem?

The response is compiled alone; a second file of ours then loads it and defines a constant of the pinned statement's
type by the response's theorem, and asks Coq what that rests on.  See `adjudge.verifiers.proofs.coq_source` for why a
response cannot change what the statement means.  Steps are the sentences up to the first error, the segments at which
RMaxTS of DeepSeek-Prover-V1.5 cuts.

Not covered: plug-ins, several files, and projects with libraries beyond those that Coq finds by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal

from adjudge import wire
from adjudge.protocol import Limits, Sample, Score, StepScore, response_text
from adjudge.sandbox.program import ENDINGS, Program, RunLimits, RunResult
from adjudge.sandbox.sandbox import Sandbox, sandbox
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.verifier_base import TextVerifier
from adjudge.verifiers.code.sandboxed import IsolatedVerifier
from adjudge.verifiers.proofs.coq_source import Answer, Theorem, answer_of, forbidden, read_theorem
from adjudge.verifiers.proofs.toolbox import Memory, Seconds, key_of, proof_in, require, run_limits, shown

_FLAGS: Final = ("-q", "-w", "none", "-noglob", "-native-compiler", "no", "-Q", ".", "Adjudge")
# Coq finds its plug-ins by findlib, which wants some configuration and does with an empty one.
_ENVIRONMENT: Final = {"OCAMLFIND_CONF": "/dev/null"}
_CLOSED: Final = "Closed under the global context"
_ERROR: Final = re.compile(r'^File "\./Answer\.v", line (\d+), characters (\d+)-\d+:\n(?=Error)', re.MULTILINE)
_AXIOM: Final = re.compile(r"([^\W\d][\w'.]*)(?:\s*:.*)?")


@dataclass(frozen=True, slots=True)
class Place:
    """Where Coq found an error: line from 1, and bytes from 0."""

    line: int
    byte: int


def compiled(runner: Sandbox, theorem: Theorem, limits: RunLimits) -> dict[str, bytes]:
    """Return the compiled header and goal, by file name.

    Raises:
        BadReferenceError: one does not compile, or no proof could pass: the statement rests on what is not permitted.
    """
    made: dict[str, bytes] = {}
    for name, source, part in (
        (theorem.given, theorem.header, "header"),
        ("Goal", theorem.goal, "statement"),
        ("Ground", theorem.ground, "list of axioms"),
    ):
        done = compile_file(runner, name, source, made, limits)
        if done.ending not in ("exited", "signalled"):  # an anomaly of Coq looks like a signal: its status is 129
            raise BadReferenceError(f"compiling the reference's {part} ended by {done.ending}", limit=True)
        if done.code != 0 or not done.outputs.get(f"{name}.vo"):
            raise BadReferenceError(f"the reference's {part} does not compile: {shown(done.stderr)}")
        made[f"{name}.vo"] = done.outputs[f"{name}.vo"]
    if unknown := unknown_axioms(done.stdout.decode("utf-8", "replace"), theorem):
        raise BadReferenceError(
            f"the statement itself rests on {', '.join(unknown)[:500]}, which no proof may use; add the full names "
            "(Coq's Locate tells them) to axioms"
        )
    del made["Ground.vo"]
    return made


def compile_file(runner: Sandbox, name: str, source: str, beside: Mapping[str, bytes], limits: RunLimits) -> RunResult:
    """Compile one file beside compiled ones; its own comes back as `name.vo`."""
    files = {**beside, f"{name}.v": source.encode("utf-8", "replace")}
    program = Program(
        command=("coqc", *_FLAGS, f"{name}.v"), files=files, environment=_ENVIRONMENT, outputs=(f"{name}.vo",)
    )
    return runner.run(program, limits)


def recheck(runner: Sandbox, made: Mapping[str, bytes], limits: RunLimits) -> RunResult:
    """Have Coq's independent checker look at the answer's module; libraries are believed."""
    command = ("coqchk", "-silent", "-Q", ".", "Adjudge", "-norec", "Adjudge.Answer")
    return runner.run(Program(command=command, files=dict(made), environment=_ENVIRONMENT), limits)


def error_place(stderr: str) -> Place | None:
    """Return where the first error of a compilation stands (what a tactic says comes after it), where Coq knows."""
    match = _ERROR.search(stderr)
    return Place(int(match[1]), int(match[2])) if match else None


def accepted(answer: Answer, place: Place) -> int:
    """Return the character of the response at which an error stands; its length, where that is behind it."""
    line = place.line - answer.lines - 1
    if line < 0:
        return 0
    lines = answer.body.split("\n")
    if line >= len(lines):
        return len(answer.body)
    before = sum(len(one) + 1 for one in lines[:line])
    return before + len(lines[line].encode("utf-8", "replace")[: place.byte].decode("utf-8", "ignore"))


def unknown_axioms(printed: str, theorem: Theorem) -> list[str]:
    """Return what a proof rests on beside what it may, from the output of Check.v.

    The output holds the assumptions of the proof, then those of each permitted axiom: Coq prints an axiom's name in the
    shortest way that is its own, so equal names are one axiom.
    """
    blocks: list[list[str]] = []
    for line in printed.splitlines():
        if line in (_CLOSED, "Axioms:"):
            blocks.append([])
        elif not blocks:
            return [line.strip()]
        elif line.strip() and not line[0].isspace():
            blocks[-1].append(line)
    if len(blocks) != 1 + len(theorem.axioms):
        return ["the list of assumptions cannot be read"]
    allowed = {match[1] for block in blocks[1:] for line in block if (match := _AXIOM.fullmatch(line))}
    own = (f"{theorem.given}.", f"Adjudge.{theorem.given}.")
    unknown = []
    for line in blocks[0]:
        name = _AXIOM.fullmatch(line)
        if name is None or not (name[1] in allowed or name[1].startswith(own)):
            unknown.append(name[1] if name else line)
    return unknown


_LABELS = frozenset({"coq", "v", "rocq", "gallina"})
_CACHED = 64


@dataclass(frozen=True, kw_only=True)
class CoqVerifier(IsolatedVerifier, TextVerifier[tuple[Theorem, dict[str, bytes]], tuple[Answer, int]]):
    """1 when Coq accepts the response's proof of the pinned theorem, else 0.

    The reference is `{"header": imports and definitions, "statement": "Theorem t : ... ."}`, or the statement alone;
    optional `axioms` (full names of axioms that a proof may use). Axioms of the header may be used, too.

    Attributes:
        block: which of several code blocks is the proof: "last", "first", "longest", or "only", with which several
            different ones are not an answer.
        axioms: full names of axioms that any proof may use.
        recheck: also have `coqchk`, a second kernel, check the response's module; takes about twice the time.
        seconds: seconds for each run of Coq.
        memory_mb: MiB for each.
    """

    name: ClassVar[str] = "coq"
    version: ClassVar[str] = "2"

    block: Literal["last", "first", "longest", "only"] = "last"
    axioms: tuple[str, ...] = ()
    recheck: bool = False
    seconds: Seconds = 20.0
    memory_mb: Memory = 2048

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            read_theorem({"statement": "Theorem t : True.", "axioms": self.axioms})
        except BadReferenceError as error:
            raise ValueError(f"coq option axioms={self.axioms!r:.80}; list full names: Lib.Module.name") from error
        for tool in ("coqc", "coqchk") if self.recheck else ("coqc",):
            require(tool)

    @property
    def limits(self) -> Limits:  # type: ignore[override]  # of the class elsewhere; here the options decide
        """What one call may use: three runs for the reference, and up to three for the response."""
        return Limits(seconds=6 * self.seconds + 10, memory_mb=1024, processes=64)

    def check_reference(self, sample: Sample) -> None:
        """Read a sample's reference; nothing is compiled."""
        read_theorem(sample.reference)

    def read_reference(self, reference: Any) -> tuple[Theorem, dict[str, bytes]]:
        """Return the theorem, and its compiled files."""
        made = _made(replace(self, block="last", recheck=False, reasoning="strip", truncated="zero"), key_of(reference))
        if isinstance(made, BadReferenceError):
            raise made
        return read_theorem(reference, self.axioms), made

    def nothing(self, reason: str, sample: Sample, gold: tuple[Theorem, dict[str, bytes]]) -> Score:
        """Return the score of a response without a text to grade."""
        return Score.scored(0.0, reason, stage="extract")

    def find_in(self, text: str, sample: Sample, gold: tuple[Theorem, dict[str, bytes]]) -> tuple[Answer, int] | Score:
        """Return the proof, and where it stands in the response."""
        source = proof_in(text, _LABELS, self.block)
        if isinstance(source, Score):
            return source
        theorem, _ = gold
        answer = answer_of(theorem, source)
        word, reason = forbidden(answer.own, f"{theorem.header}\n{theorem.statement}")
        if word:
            return Score.scored(0.0, reason, stage="rules", forbidden=word)
        start = response_text(sample).rindex(text)
        return answer, start + (text.find(source) if self.block == "first" else text.rfind(source))

    def judge(self, ready: tuple[Answer, int], gold: tuple[Theorem, dict[str, bytes]]) -> Score:
        """Return the verdict on one proof.

        The evidence has "stage" ("extract", "rules", "compile", "statement", "axioms", "recheck" or "proved"), and
        "error", "axioms" or "forbidden" where there is something to say; "accepted" is how many sentences Coq took.
        """
        (answer, start), (theorem, made) = ready, gold
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

    def _checked(self, runner: Sandbox, theorem: Theorem, made: dict[str, bytes]) -> Score:
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
    except BadReferenceError as error:
        if error.limit:
            raise  # and nothing is kept: on a quieter machine it may pass
        return error
