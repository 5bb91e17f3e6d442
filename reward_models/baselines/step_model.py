"""A process model that needs no download: n-grams and the bookkeeping of numbers, fitted in seconds, without torch.

It learns which steps of word problems tend to be wrong: those that take a number from nowhere, use nothing of what was
worked out, divide what is not to be divided.  It does not know what a step says, and a policy that writes true and idle
steps is liked by it: a baseline to print beside a process model, and no reward.  docs/baselines.md has the numbers.

Not covered: the meaning of a step, mathematics beyond the four operations, and images.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from adjudge.engines.interface import Fault
from adjudge.protocol import Cost, Provenance
from adjudge.reward_models.baselines.step_features import StepFeatureOptions, features_of_steps
from adjudge.reward_models.baselines.step_fitting import fit_steps
from adjudge.reward_models.baselines.step_weights import StepWeights, chance_of
from adjudge.reward_models.process.step_format import Reading
from adjudge.reward_models.process.step_scorer import Judged, Solution, StepScorer
from adjudge.training.step_data import StepExample

_EVERYTHING = StepFeatureOptions()


@dataclass(frozen=True, kw_only=True)
class StepModel(StepScorer):
    """How likely the steps of a word problem's solution are right, by a linear model; the least likely one counts.

    Set `split` to how the steps were cut that the model was fitted on.

    Attributes:
        model: the folder that `save` or `adjudge train prm` made; or give `weights`.
        weights: a fitted model.
        explain: whether the evidence has what each group of features adds to each step's log-odds (`part_operands`,
            ...).
    """

    name: ClassVar[str] = "step_model"
    version: ClassVar[str] = "1"

    model: str = ""
    weights: StepWeights | None = None
    explain: bool = True

    def __post_init__(self) -> None:
        """Reject options out of range, and a model that cannot be read."""
        super().__post_init__()
        if bool(self.model) == (self.weights is not None):
            raise ValueError(f"{self.name}: give the folder of a fitted model, or its weights; StepModel.fit makes one")
        if not isinstance(self.explain, bool):
            raise ValueError(f"{self.name}: explain is {self.explain!r}; give true or false")
        if self.weights is None:
            object.__setattr__(self, "weights", StepWeights.load(self.model))
        self.lowest  # noqa: B018 raises if the formula does not fit probabilities

    @classmethod
    def fit(
        cls,
        examples: Sequence[StepExample],
        *,
        features: StepFeatureOptions = _EVERYTHING,
        strength: float | None = None,
        **options: Any,
    ) -> Self:
        """Return a model fitted to solutions with labelled steps.

        Args:
            examples: what is learnt from.
            features: what is looked at.
            strength: of the data against the penalty, above 0; None to choose one on problems held out.
            options: of the scorer.

        Raises:
            ValueError: there is too little to learn from, or an option is out of range.
        """
        return cls(weights=fit_steps(examples, features=features, strength=strength), **options)

    @classmethod
    def load(cls, folder: str | Path, **options: Any) -> Self:
        """Return the model that `save` wrote, with options of the scorer."""
        return cls(model=str(folder), **options)

    def save(self, folder: str | Path) -> Path:
        """Write the model into a folder as JSON and NumPy arrays; return the folder."""
        return self.fitted.save(folder)

    @property
    def fitted(self) -> StepWeights:
        """The weights, given or read."""
        assert self.weights is not None  # __post_init__ saw to it
        return self.weights

    @property
    def bounded(self) -> bool:
        """The values of steps are probabilities."""
        return True

    def identity(self) -> list[Any]:
        """Return the digest of the weights, and whether parts are in the evidence."""
        return [self.fitted.digest, self.explain]

    def provenance(self) -> Provenance:
        """Return who gives the scores."""
        return Provenance(scorer=self.name, fingerprint=self.fingerprint, engine="ngrams", revision=self.fitted.digest)

    async def judge(self, solutions: Sequence[Solution]) -> list[Judged | Fault]:
        """Return the probabilities of each solution's steps, in order; each solution is judged alone."""
        return await asyncio.to_thread(lambda: [self._judged_one(solution) for solution in solutions])

    def _judged_one(self, solution: Solution) -> Judged:
        begun = time.perf_counter()
        texts = [step.text for step in solution.steps]
        seen = features_of_steps(solution.sample.prompt, texts, self.fitted.options)
        parts = [self.fitted.parts(features) for features in seen]
        reading = Reading(
            values=tuple(map(chance_of, parts)),
            facts={f"part_{name}": tuple(part[name] for part in parts) for name in parts[0]} if self.explain else {},
            cost=Cost(seconds=time.perf_counter() - begun),
        )
        return Judged(reading=reading)
