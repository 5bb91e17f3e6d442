"""A language model that judges atomic thoughts: one call for each trajectory, a number for each atom.

Not covered: the outcome, and when atoms count (`adjudge.verifiers.agents.search.atoms`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

from adjudge.engines.interface import Fault
from adjudge.prompts.asking import Answer
from adjudge.prompts.reading import keyed_lines
from adjudge.prompts.scorer import Case, ModelScorer, shortened
from adjudge.prompts.template import Rendered, Template, load_template
from adjudge.protocol import Sample, Score, StepScore
from adjudge.responses.trajectories.form import TrajectoryForm, plain_form
from adjudge.responses.trajectories.reading import check_trajectory, read_trajectory
from adjudge.verifiers.agents.search.atoms_reading import Atom, atoms_of

_BEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Thoughts(Case):
    """A trajectory's atoms, as the model is shown them."""

    atoms: tuple[Atom, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomNumbers:
    """Reads a whole number from 0 to 10 for each atom from 1 to `count`, or nothing."""

    count: int

    def __call__(self, text: str, nonce: str = "", /) -> tuple[int, ...] | None:
        """Return the numbers in order, or None."""
        names = [str(at) for at in range(1, self.count + 1)]
        found = keyed_lines(text, nonce, names, [str(number) for number in range(_BEST + 1)])
        return None if found is None else tuple(int(found[name]) for name in names)


@dataclass(frozen=True, kw_only=True)
class AtomJudge(ModelScorer):
    """The mean worth of a trajectory's atomic thoughts in [0, 1], by a language model; `Score.steps` has each one's.

    Atoms without a word and atoms said before are worth 0 and are not shown.

    Attributes:
        reasoning: not read; the atoms stand in the reasoning.
        longest: not read; `AtomicThoughtScorer` has looked at the length, and at the number of atoms.
        form: names of tags, as `TrajectoryForm` has them.
    """

    name: ClassVar[str] = "atom_judge"
    version: ClassVar[str] = "1"

    reasoning: Literal["strip", "keep"] = "keep"
    form: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        object.__setattr__(self, "form", plain_form(self.form, self.name))

    @cached_property
    def shape(self) -> TrajectoryForm:
        """The form as a record."""
        return TrajectoryForm.of(self.form)

    def templates(self) -> tuple[Template, ...]:
        """Return the one prompt there is."""
        return (load_template("verifiers/agents/search/atoms"),)

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` if the trajectory is malformed."""
        check_trajectory(sample, self.shape)

    def case(self, sample: Sample) -> Case | Score:
        """Return what is shown to the model, or the score of a sample that is not shown to it."""
        try:
            self.validate(sample)
        except ValueError as error:
            return Score.failed("bad_sample", error=str(error))
        atoms = atoms_of(read_trajectory(sample, self.shape), self.shape)
        if not any(not atom.fault for atom in atoms):
            return Score(value=0.0, reason="no_answer", steps=steps_of(atoms, [0.0] * len(atoms)))
        return Thoughts(sample=sample, response="atoms", atoms=tuple(atoms))

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        thoughts = [case for case in cases if isinstance(case, Thoughts)]
        alike: defaultdict[int, list[int]] = defaultdict(list)
        for place, one in enumerate(thoughts):
            alike[sum(not atom.fault for atom in one.atoms)].append(place)
        scores: dict[int, Score] = {}
        for count, places in alike.items():
            answers = await self.asked([thoughts[place] for place in places], self._prompt, AtomNumbers(count=count))
            for place, answer in zip(places, answers, strict=True):
                scores[place] = self._scored(thoughts[place], answer)
        return [scores[place] for place in range(len(thoughts))]

    def _prompt(self, thoughts: Thoughts) -> Rendered:
        # the base asks with "-" for the response what made a prompt too long
        atoms = [atom for atom in thoughts.atoms if not atom.fault] if thoughts.response != "-" else []
        values = {
            "question": thoughts.sample.prompt,
            "atoms": "\n".join(_listed(number, atom) for number, atom in enumerate(atoms, start=1)),
            "verdicts": "\n".join(f"{number}: 0 to {_BEST}" for number in range(1, len(atoms) + 1)),
        }
        return self.render(self.templates()[0], values)

    def _scored(self, thoughts: Thoughts, answer: Answer[tuple[int, ...]] | Fault) -> Score:
        if isinstance(answer, Fault):
            return self.unanswered(answer)
        said = iter(answer.value)
        worth = [0.0 if atom.fault else next(said) / _BEST for atom in thoughts.atoms]
        return Score(
            value=sum(worth) / len(worth),
            steps=steps_of(thoughts.atoms, worth),
            evidence={"text": shortened(answer.text)},
            cost=answer.cost,
        )


def steps_of(atoms: Sequence[Atom], worth: Sequence[float]) -> tuple[StepScore, ...]:
    """Return the verdicts on atoms, labelled by their fault or their name."""
    return tuple(
        StepScore(value=value, label=atom.fault or atom.tag, start=atom.start, end=atom.end)
        for atom, value in zip(atoms, worth, strict=True)
    )


def _listed(number: int, atom: Atom) -> str:
    """An atom with its number at the start of a line and all else indented, so that no atom can make another."""
    first, *rest = atom.text.splitlines() or [""]
    return "\n".join([f"{number}: [{atom.tag}] {first}", *(f"    {line}" for line in rest)])
