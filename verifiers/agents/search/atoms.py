"""Atom-Searcher's reward: the worth of atomic thoughts first, the answer later.

    R = a * ATR + (1 - a) * outcome,   a = start * (1 - progress),   bad format: -1

ATR is the mean worth of the atoms inside thoughts, by a reward model or by a language model; the outcome is the token
F1 of the answer.  `progress` goes from 0 to 1 over the training, as an option or as a column of the samples, so that
the same sample always gets the same score.

Source: arXiv 2508.12800; the public repository has no code of the reward.  start = 0.5, the straight line and -1 are
from memory of the paper.  That a repeated or empty atom is worth 0 is ours: the mean could be raised by copies.

Not covered: training the reward model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from adjudge.bad_reference import BadReferenceError
from adjudge.engines.loading import engine_of
from adjudge.protocol import Sample, Score
from adjudge.responses.trajectories.answers import FinalAnswer, final_answer
from adjudge.responses.trajectories.reading import read_trajectory
from adjudge.verifiers.agents.search.atoms_judge import AtomJudge, steps_of
from adjudge.verifiers.agents.search.atoms_reading import Atom, atoms_of
from adjudge.verifiers.agents.search.nested import NestedScorer
from adjudge.verifiers.nested.number import check_number
from adjudge.verifiers.nested.part import asked, cost_of, without_number
from adjudge.verifiers.text.answer_span import Span
from adjudge.verifiers.text.token_f1 import TokenF1Verifier


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A well-formed trajectory."""

    sample: Sample
    answer: FinalAnswer
    atoms: tuple[Atom, ...]
    share: float


@dataclass(frozen=True, kw_only=True)
class AtomicThoughtScorer(NestedScorer):
    """The worth of atomic thoughts, mixed with the answer's by how far the training is (Atom-Searcher).

    The reference is the answer, or a list of accepted ones; an `outcome` scorer gets it as it is.

    Attributes:
        engine: a language model that judges the atoms of a trajectory in one call; or none, with `reward`.
        max_tokens: most tokens of its answer.
        reward: a scorer of single atoms: its sample has the question as the prompt and the atom as the response.
        low: what the reward gives the worst atom; its values are mapped to [0, 1] and cut off there.
        high: what it gives the best.
        outcome: a scorer of the whole response; None for the token F1 of the answer block.
        start: a at the beginning, in [0, 1].
        progress: how far the training is, in [0, 1]; None to read it from `column`.
        column: the column of `Sample.extra` with the progress.
        malformed: what a trajectory of bad form gets.
        most_atoms: of more atoms, the form is bad (`too_complex`).
        longest: most characters that the agent may write (`too_complex`).
    """

    name: ClassVar[str] = "atomic_thoughts"
    version: ClassVar[str] = "1"
    inner: ClassVar[tuple[str, ...]] = ("reward", "outcome")

    engine: Any = None
    max_tokens: int = 2048
    reward: Any = None
    low: float = 0.0
    high: float = 1.0
    outcome: Any = None
    start: float = 0.5
    progress: float | None = None
    column: str = "progress"
    malformed: float = -1.0
    most_atoms: int = 64
    longest: int = 200_000

    def __post_init__(self) -> None:
        """Reject options out of range, and both or none of engine and reward."""
        super().__post_init__()
        if (self.engine is None) == (self.reward is None):
            raise ValueError(f"{self.name}: give either an engine or a reward, which judges the atoms; not both")
        for option in ("low", "high", "malformed"):
            self.require_number(option, -1e6, 1e6)
        if not self.low < self.high:
            raise ValueError(f"{self.name}: low is {self.low} and high {self.high}; low comes first")
        self.require_number("start", 0.0, 1.0)
        if self.progress is not None:
            self.require_number("progress", 0.0, 1.0)
        self.require_count("most_atoms")
        self.require_count("longest")
        self.require_count("max_tokens")
        if self.engine is not None:
            engine_of(self.engine)  # a spec that is none is told now; nothing is loaded yet

    def asked(self) -> Any:
        """Return the judge of atoms, or None."""
        return self._judge

    @cached_property
    def _judge(self) -> AtomJudge | None:
        if self.engine is None:
            return None
        return AtomJudge(engine=self.engine, max_tokens=self.max_tokens, form=self.form)

    @cached_property
    def _answers(self) -> TokenF1Verifier:
        return TokenF1Verifier()

    def check_reference(self, sample: Sample) -> None:
        """Raise `BadReferenceError` if there is no answer, `ValueError` if the column with the progress is at fault."""
        if self.outcome is None:
            try:
                self._answers.read_reference(sample.reference)
            except ValueError as error:
                raise BadReferenceError(str(error)) from error
        self._share(sample)

    def _share(self, sample: Sample) -> float:
        """How much the atoms count for a sample."""
        progress = sample.extra.get(self.column) if self.progress is None else self.progress
        if progress is None:
            raise ValueError(
                f"nobody says how far the training is: set the option progress, or extra[{self.column!r}] from 0 to 1"
            )
        check_number(progress, 0.0, 1.0, f"extra[{self.column!r}]")
        return self.start * (1.0 - progress)

    async def judge(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order."""
        read = [self._read(sample) for sample in samples]
        ready = [one for one in read if isinstance(one, _Read)]
        outcomes = await self._outcomes(ready)
        thoughts = iter(await self._thoughts([one for one in ready if one.share]))
        made = iter(
            [
                self._mixed(one, outcome, next(thoughts) if one.share else None)
                for one, outcome in zip(ready, outcomes, strict=True)
            ]
        )
        return [next(made) if isinstance(one, _Read) else one for one in read]

    def _read(self, sample: Sample) -> _Read | Score:
        """The parts of a trajectory, or the score of one of bad form."""
        trajectory = read_trajectory(sample, self.shape)
        if sum(len(turn.text) for turn in trajectory.turns) > self.longest:
            return Score.scored(self.malformed, "too_complex")
        answer = final_answer(trajectory, self.shape)
        atoms = atoms_of(trajectory, self.shape)
        fault = answer.reason
        if sample.finish_reason == "length":
            fault = "truncated"
        elif trajectory.forged():
            fault = "tampering"
        elif len(atoms) > self.most_atoms:
            fault = "too_complex"
        elif not fault and not any(not atom.fault for atom in atoms):
            fault = "bad_format"
        if fault:
            return Score.scored(self.malformed, fault, atoms=len(atoms))
        return _Read(sample=sample, answer=answer, atoms=tuple(atoms), share=self._share(sample))

    async def _outcomes(self, ready: Sequence[_Read]) -> list[Score]:
        if self.outcome is not None:
            return await asked(self.outcome, [one.sample for one in ready], called=f"the outcome of {self.name!r}")
        return [
            self._answers.judge([Span("tag", (one.answer.text,))], self._answers.read_reference(one.sample.reference))
            for one in ready
        ]

    async def _thoughts(self, ready: Sequence[_Read]) -> list[Score]:
        """The worth of the atoms of each trajectory: the mean, and each one's in `steps`."""
        if self._judge is not None:
            return await self._judge.score([one.sample for one in ready])
        single = [
            Sample(
                prompt=one.sample.prompt, response=atom.text, reference=one.sample.reference, extra={"tag": atom.tag}
            )
            for one in ready
            for atom in one.atoms
            if not atom.fault
        ]
        found = iter(await asked(self.reward, single, called=f"the reward of {self.name!r}"))
        return [self._mean(one.atoms, [None if atom.fault else next(found) for atom in one.atoms]) for one in ready]

    def _mean(self, atoms: Sequence[Atom], found: Sequence[Score | None]) -> Score:
        """The mean worth of atoms; those that were not asked about are worth 0."""
        given = [score for score in found if score is not None]
        if missing := without_number({f"atom_{at}": score for at, score in enumerate(given, start=1)}):
            return missing
        worth = [0.0 if score is None else self._between(score.value or 0.0) for score in found]
        return Score(value=sum(worth) / len(worth), steps=steps_of(atoms, worth), cost=cost_of(given))

    def _between(self, value: float) -> float:
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def _mixed(self, read: _Read, outcome: Score, thoughts: Score | None) -> Score:
        parts = {"outcome": outcome} if thoughts is None else {"outcome": outcome, "atoms": replace(thoughts, steps=())}
        if missing := without_number(parts):
            return missing
        worth = 0.0 if thoughts is None else thoughts.value or 0.0
        return Score(
            value=read.share * worth + (1.0 - read.share) * (outcome.value or 0.0),
            reason=outcome.reason,
            steps=() if thoughts is None else thoughts.steps,
            parts=parts,
            evidence={"share": read.share, "atoms": len(read.atoms)},
            cost=cost_of(list(parts.values())),
        )
