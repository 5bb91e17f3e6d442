"""Atom-Searcher's reward: the worth of atomic thoughts first, the answer later.

    R = a * ATR + (1 - a) * outcome,   a = start * (1 - progress),   bad format: -1

Atomic thoughts stand inside thoughts in tags that say what they are for, `<plan>..</plan>`, `<risk_analysis>..`.  The
names are the agent's own; they never nest, and one that is never closed is none.

ATR is the mean worth of the atoms, by a reward model or by a language model, which is asked once for a trajectory; the
outcome is the token F1 of the answer.  `progress` goes from 0 to 1 over the training, as an option or as a column of
the samples, so that the same sample always gets the same score.

Source: arXiv 2508.12800; the public repository has no code of the reward.  start = 0.5, the straight line and -1 are
from memory of the paper.  That a repeated or empty atom is worth 0 is ours: the mean could be raised by copies.

Not covered: training the reward model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

from adjudge.options import Count, Range, Share
from adjudge.prompts.asking import Answer
from adjudge.prompts.scorer import Case, shortened
from adjudge.prompts.template import Rendered
from adjudge.protocol import NO_COST, Cost, Sample, Score
from adjudge.responses.phrases import plain
from adjudge.responses.trajectories.searches import FinalAnswer, final_answer
from adjudge.responses.trajectories.trajectory import Trajectory, TrajectoryForm, steps_at
from adjudge.scoring.nested import asked, asked_each, cost_of, without_number
from adjudge.verifiers.agents.scoring import (
    KeyedLabels,
    TrajectoryModelScorer,
    TrajectoryNestedScorer,
    Value,
    check_number,
)
from adjudge.verifiers.agents.search.signals import read_answers

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9_-]{0,40})>")
_LETTERS = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """One atomic thought, and its place with the tags.

    `fault` is "empty" without a word, and "repeated" where the same letters stood in an atom before, whatever their
    case and what stands between them.
    """

    tag: str
    text: str
    start: int
    end: int
    fault: str = ""


def atoms_of(trajectory: Trajectory, form: TrajectoryForm) -> list[Atom]:
    """Return the atoms of all thoughts, in order; linear in the length of the thoughts."""
    atoms: list[Atom] = []
    seen: set[str] = set()
    for thought in trajectory.blocks(form.think):
        text = trajectory.text[thought.start : thought.end]
        if not (text.startswith(f"<{form.think}>") or text.endswith(f"</{form.think}>")):
            continue  # in the marks of another model, which are no atom
        for tag, opened, inside, close, end in _places(text, frozenset(form.tags)):
            letters = "".join(_LETTERS.findall(plain(text[inside:close])))
            fault = "repeated" if letters in seen else "" if letters else "empty"
            if letters:
                seen.add(letters)
            start, stop = thought.start + opened, thought.start + end
            atoms.append(Atom(tag=tag, text=text[inside:close].strip(), start=start, end=stop, fault=fault))
    return atoms


def _places(text: str, reserved: frozenset[str]) -> list[tuple[str, int, int, int, int]]:
    marks = [mark for mark in _TAG.finditer(text) if mark[2] not in reserved]
    last = {mark[2]: mark.start() for mark in marks if mark[1]}
    places: list[tuple[str, int, int, int, int]] = []
    tag, opened, inside = "", 0, 0
    for mark in marks:
        if tag:
            if mark[1] and mark[2] == tag:
                places.append((tag, opened, inside, mark.start(), mark.end()))
                tag = ""
        elif not mark[1] and last.get(mark[2], -1) >= mark.end():
            tag, opened, inside = mark[2], mark.start(), mark.end()
    return places


_BEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Thoughts(Case):
    """A trajectory's atoms."""

    atoms: tuple[Atom, ...]

    @property
    def fine(self) -> list[Atom]:
        """Those without a fault."""
        return [atom for atom in self.atoms if not atom.fault]


@dataclass(frozen=True, kw_only=True)
class AtomJudge(TrajectoryModelScorer):
    """The mean worth of a trajectory's atomic thoughts in [0, 1], by a language model; `Score.steps` has each one's.

    Atoms without a word and atoms said before are worth 0 and are not shown.

    Attributes:
        reasoning, max_characters: not read; the atoms stand in the reasoning, and `AtomicThoughtScorer` has looked at
            the length.
    """

    name: ClassVar[str] = "atom_judge"
    version: ClassVar[str] = "3"
    text_template: ClassVar[str] = "verifiers/agents/search/atoms"

    reasoning: Literal["strip", "keep"] = "keep"

    def read(self, sample: Sample, trajectory: Trajectory) -> Case | Score:
        """Return the atoms, of which `AtomicThoughtScorer` has found one at least that can be shown."""
        return Thoughts(sample=sample, response="atoms", atoms=tuple(atoms_of(trajectory, self.shape)))

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        thoughts = [case for case in cases if isinstance(case, Thoughts)]
        numbers = tuple(map(str, range(_BEST + 1)))
        read = [KeyedLabels(tuple(str(at + 1) for at in range(len(one.fine))), numbers) for one in thoughts]
        return await self.decided(thoughts, self._prompt, read, _judged)

    def _prompt(self, thoughts: Thoughts) -> Rendered:
        # the base asks with "-" for the response what made a prompt too long
        atoms = thoughts.fine if thoughts.response != "-" else []
        values = {
            "question": thoughts.sample.prompt,
            "atoms": "\n".join(_listed(number, atom) for number, atom in enumerate(atoms, start=1)),
            "verdicts": "\n".join(f"{number}: 0 to {_BEST}" for number in range(1, len(atoms) + 1)),
        }
        return self.render(self.templates()[0], values)


def _judged(thoughts: Thoughts, answers: list[Answer[tuple[str, ...]]]) -> Score:
    said = iter(answers[0].value)
    worth = [0.0 if atom.fault else int(next(said)) / _BEST for atom in thoughts.atoms]
    return replace(_mean(thoughts.atoms, worth), evidence={"text": shortened(answers[0].text)})


def _mean(atoms: Sequence[Atom], worth: Sequence[float], cost: Cost = NO_COST) -> Score:
    """The mean worth of atoms, and in the steps each one's, labelled by its fault or its name."""
    steps = steps_at(atoms, worth, (atom.fault or atom.tag for atom in atoms))
    return Score(value=sum(worth) / len(worth), steps=steps, cost=cost)


def _listed(number: int, atom: Atom) -> str:
    """An atom with its number at the start of a line and all else indented, so that no atom can make another."""
    first, *rest = atom.text.splitlines() or [""]
    return "\n".join([f"{number}: [{atom.tag}] {first}", *(f"    {line}" for line in rest)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    sample: Sample
    answer: FinalAnswer
    atoms: tuple[Atom, ...]
    share: float


@dataclass(frozen=True, kw_only=True)
class AtomicThoughtScorer(TrajectoryNestedScorer):
    """The worth of atomic thoughts, mixed with the answer's by how far the training is (Atom-Searcher).

    The reference is the answer, or a list of accepted ones; an `outcome` scorer gets it as it is.

    Attributes:
        engine: a language model that judges the atoms of a trajectory in one call; or none, with `reward`.
        max_tokens: most tokens of its answer.
        retry_temperature, forced_mass, examples: as other scorers that ask a model take them.
        reward: a scorer of single atoms: its sample has the question as the prompt and the atom as the response.
        low, high: what the reward gives the worst and the best atom; mapped to [0, 1], and cut off there.
        outcome: a scorer of the whole response; None for the token F1 of the answer block.
        start: a at the beginning, in [0, 1].
        progress: how far the training is, in [0, 1]; None to read it from the `column` of `Sample.extra`.
        column: see there.
        malformed: what a trajectory of bad form gets.
        max_atoms, max_characters: with more, the form is bad (`too_complex`).
    """

    name: ClassVar[str] = "atomic_thoughts"
    version: ClassVar[str] = "3"
    inner: ClassVar[tuple[str, ...]] = ("reward", "outcome")

    engine: Any = None
    max_tokens: Count = 2048
    retry_temperature: float | None = None
    forced_mass: Share | None = 0.5
    examples: Sequence[Mapping[str, Any]] = ()
    reward: Any = None
    low: Value = 0.0
    high: Value = 1.0
    outcome: Any = None
    start: Share = 0.5
    progress: Share | None = None
    column: str = "progress"
    malformed: Value = -1.0
    max_atoms: Count = 64
    max_characters: Count = 200_000

    def __post_init__(self) -> None:
        if (self.engine is None) == (self.reward is None):
            raise ValueError(f"{self.name}: give either an engine or a reward, which judges the atoms; not both")
        super().__post_init__()
        if not self.low < self.high:
            raise ValueError(f"{self.name} option low={self.low} and high={self.high}; low comes first")

    def asked(self) -> Any:
        """Return the judge of atoms, or None."""
        return self._judge

    @cached_property
    def _judge(self) -> AtomJudge | None:
        if self.engine is None:
            return None
        return AtomJudge(
            engine=self.engine,
            max_tokens=self.max_tokens,
            retry_temperature=self.retry_temperature,
            forced_mass=self.forced_mass,
            examples=self.examples,
            form=self.form,
        )

    def gold(self, sample: Sample) -> Any:
        """Return the accepted answers, and how much the atoms count; `ValueError` if nobody says the progress."""
        answers = None if self.outcome is not None else read_answers(sample.reference)
        progress = sample.extra.get(self.column) if self.progress is None else self.progress
        if progress is None:
            raise ValueError(
                f"nobody says how far the training is: set the option progress, or extra[{self.column!r}] from 0 to 1"
            )
        check_number(progress, Range(ge=0, le=1), f"extra[{self.column!r}]")
        return answers, self.start * (1.0 - progress)

    def read(self, sample: Sample, trajectory: Trajectory) -> _Read | Score:
        """Return the parts of a trajectory, or the score of one of bad form."""
        if trajectory.written > self.max_characters:
            return Score.scored(self.malformed, "too_complex")
        answer = final_answer(trajectory, self.shape)
        atoms = atoms_of(trajectory, self.shape)
        fault = answer.reason
        if sample.finish_reason == "length":
            fault = "truncated"
        elif trajectory.forged():
            fault = "tampering"
        elif len(atoms) > self.max_atoms:
            fault = "too_complex"
        elif not fault and not any(not atom.fault for atom in atoms):
            fault = "bad_format"
        if fault:
            return Score.scored(self.malformed, fault, atoms=len(atoms))
        return _Read(sample=sample, answer=answer, atoms=tuple(atoms), share=self.gold(sample)[1])

    async def judge(self, read: Sequence[_Read]) -> list[Score]:
        """Return one score per trajectory, in order."""
        outcomes = await self._outcomes(read)
        thoughts = iter(await self._thoughts([one for one in read if one.share]))
        return [
            self._mixed(one, outcome, next(thoughts) if one.share else None)
            for one, outcome in zip(read, outcomes, strict=True)
        ]

    async def _outcomes(self, ready: Sequence[_Read]) -> list[Score]:
        if self.outcome is not None:
            return await asked(self.outcome, [one.sample for one in ready], called=f"the outcome of {self.name!r}")
        values = [self.gold(one.sample)[0].answer_f1(one.answer.text) for one in ready]
        return [Score.scored(value, "" if value else "wrong") for value in values]

    async def _thoughts(self, ready: Sequence[_Read]) -> list[Score]:
        if self._judge is not None:
            return await self._judge.score([one.sample for one in ready])
        single = [
            [
                Sample(
                    prompt=one.sample.prompt,
                    response=atom.text,
                    reference=one.sample.reference,
                    extra={"tag": atom.tag},
                )
                for atom in one.atoms
                if not atom.fault
            ]
            for one in ready
        ]
        said = await asked_each(self.reward, single, called=f"the reward of {self.name!r}")
        return [self._worth(one.atoms, given) for one, given in zip(ready, said, strict=True)]

    def _worth(self, atoms: Sequence[Atom], given: Sequence[Score]) -> Score:
        if missing := without_number({f"atom_{at}": score for at, score in enumerate(given, start=1)}):
            return missing
        said, span = iter(given), self.high - self.low
        worth = [
            0.0 if atom.fault else min(max(((next(said).value or 0.0) - self.low) / span, 0.0), 1.0) for atom in atoms
        ]
        return _mean(atoms, worth, cost_of(given))

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
