"""The default reward model that needs no download: n-grams and text statistics, fitted in seconds, without torch.

It learns the surface of a text: which words, signs and lengths go with the better response, and, in solutions, whether
the arithmetic holds.  It is a baseline, and a first filter where nothing else is at hand; what it cannot see, a policy
is free to get wrong.  docs/training.md says how far that carries on public data.

The fit is Bradley-Terry on pairs, logistic regression on ratings, or both at once.  A pair enters as the difference of
its two chats without an intercept: turning a pair around turns its sign and changes nothing.  A soft label p enters as
both outcomes, weighted p and 1 - p; a tie is p = 1/2.  A rating in [0, 1] enters as a chat with an intercept.

Not covered: the meaning of a text, images, and margins (a pair counts the same whatever its margin).
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, ClassVar, Final, Self, cast

import numpy as np

from adjudge import wire
from adjudge.engines.interface import Fault
from adjudge.options import Range
from adjudge.protocol import Cost, Message
from adjudge.reward_models.baselines.features import FeatureOptions, features_of, finished, sides_of, values_in
from adjudge.reward_models.baselines.linear import LinearModel, LinearScorer, Seen, Table
from adjudge.reward_models.scalar.chat import ChatForm, Reasoning
from adjudge.reward_models.scalar.reward_scorer import Rating as Rated
from adjudge.reward_models.scalar.reward_scorer import RewardScorer
from adjudge.training.data_files import digest_of
from adjudge.training.examples import Example, Pair, Ranking

FILES: Final = ("preference_model.json", "weights.npz")
_EVERYTHING = FeatureOptions()
_FARTHEST = 4.0  # standard deviations; what one row in a thousand has must not outweigh all else
_SPELT = 40  # characters of an n-gram that are shown


@dataclass(frozen=True, kw_only=True)
class PreferenceModel(LinearScorer, RewardScorer):
    """A linear model on n-grams and text statistics; the reward's unit is the logit of being preferred.

    The reference is used with `normalize: reference` alone: an answer whose reward is subtracted.

    Attributes:
        model: the folder that `save` or `adjudge train rm` made; or give `weights`.
        weights: a fitted model.
        explain: how many statistics and n-grams the evidence names, the ones that decided; 0 for none.
    """

    name: ClassVar[str] = "preference_model"
    version: ClassVar[str] = "3"
    files: ClassVar = FILES
    called: ClassVar[str] = "preference model"
    trained_by: ClassVar[str] = "adjudge train rm"

    model: str = ""
    weights: LinearModel | None = None
    explain: Annotated[int, Range(ge=0, le=100)] = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self.take_weights()

    @staticmethod
    def value_names(options: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
        """Return the names of the values that are computed for given options, by group."""
        values = values_in("", "")
        return {group: list(values[group]) for group in FeatureOptions(**options).groups}

    @classmethod
    def fit(
        cls,
        examples: Sequence[Example],
        *,
        features: FeatureOptions = _EVERYTHING,
        strength: float = 1.0,
        **options: Any,
    ) -> Self:
        """Return a model fitted to preference pairs, rankings, ratings in [0, 1], or a mixture of them.

        Args:
            examples: what is learnt from.
            features: what is looked at.
            strength: of the data against the penalty, above 0.
            options: of the scorer.

        Raises:
            ValueError: there is too little to learn from, or an option is out of range.
        """
        chats = ChatFeatures(features, options.get("reasoning") or "strip")
        return cls(weights=fit_weights(examples, chats, strength=strength), **options)

    @property
    def stored_reasoning(self) -> Reasoning | None:
        """Whether the model was fitted to reasoning as well."""
        return cast("Reasoning | None", self.fitted.trained.get("reasoning"))

    def reward(self, chat: Sequence[Message]) -> float:
        """Return the raw reward of a finished chat."""
        return self._rated(chat, explain=0).evidence["raw"]  # type: ignore[no-any-return]

    async def rate(self, chats: Sequence[tuple[Message, ...]]) -> list[Rated | Fault]:
        """Return the rating of each finished chat, in order; each is rated alone."""
        return await asyncio.to_thread(lambda: [self._rated(chat, self.explain) for chat in chats])

    def _rated(self, chat: Sequence[Message], explain: int) -> Rated:
        begun, numbers = time.perf_counter(), self.fitted.numbers
        evidence: dict[str, Any] = {"groups": {"empty": numbers["least"]}, "statistics": [], "ngrams": []}
        if sides_of(chat)[1]:
            seen = features_of(chat, FeatureOptions(**self.fitted.options))
            evidence = {"groups": self.fitted.parts(seen)}
            if explain:
                statistics, terms = self.fitted.largest(seen, explain)
                spelt = [[term[:_SPELT], part] for term, part in terms]
                evidence |= {"statistics": statistics, "ngrams": spelt}
        reward = raw = sum(evidence["groups"].values())
        if self.normalize in ("zscore", "mean"):
            reward -= numbers["mean"]
        if self.normalize == "zscore":
            reward /= numbers["std"]
        evidence = {"raw": raw, **(evidence if explain else {})}
        return Rated(reward=reward, evidence=evidence, cost=Cost(seconds=time.perf_counter() - begun))

    def special_tokens(self) -> tuple[str, ...]:
        """Return nothing: the model has no tokenizer."""
        return ()


class ChatFeatures:
    """The features of prompts with responses, each computed once, with or without the reasoning of responses."""

    def __init__(self, options: FeatureOptions, reasoning: Reasoning = "strip"):
        self.options = options
        self.form = ChatForm(reasoning=reasoning)
        self._numbers: dict[bytes, int] = {}
        self._known: list[tuple[Seen, bool]] = []

    def number(self, prompt: str | Sequence[Message], response: str) -> int:
        """Return the number of a prompt with a response; the same for the same texts."""
        key = hashlib.sha256(wire.dumps([prompt, response]).encode()).digest()
        if key not in self._numbers:
            self._numbers[key] = len(self._known)
            chat = finished(self.form, prompt, response)
            self._known.append((features_of(chat, self.options), bool(sides_of(chat)[1])))
        return self._numbers[key]

    def __getitem__(self, number: int) -> Seen:
        """Return what is seen of the chat of a number."""
        return self._known[number][0]

    def rewards(self, model: LinearModel, numbers: Sequence[int]) -> list[float]:
        """Return the raw rewards of chats; one that says nothing gets the smallest of the training data."""
        said = model.sums([self[number] for number in numbers])
        pairs = zip(numbers, said, strict=True)
        return [float(reward) if self._known[number][1] else model.numbers["least"] for number, reward in pairs]


def fit_weights(examples: Sequence[Example], chats: ChatFeatures, *, strength: float = 1.0) -> LinearModel:
    """Return the weights that explain the examples best.

    The mean reward of the training data is 0, or, where ratings were learnt from, a reward of 0 stands for an even
    chance of being right.

    Args:
        examples: pairs, rankings (all their pairs, which together weigh as much as one pair) and ratings of one value
            in [0, 1].
        chats: what is looked at.
        strength: of the data against the penalty, above 0; scikit-learn's C.

    Raises:
        ValueError: there is too little to learn from, a rating is not a number in [0, 1], or the extra is missing.
    """
    if not strength > 0:
        raise ValueError(f"strength is {strength!r}; it must be above 0")
    rows = [row for example in examples for row in _rows_of(example, chats) if row[3]]
    if len(rows) < 2:
        raise ValueError(f"a preference model cannot be fitted to {len(rows)} examples that count; give many more")
    places = sorted({number for row in rows for number in row[:2] if number >= 0})
    at = {number: place for place, number in enumerate(places)} | {-1: -1}
    table = Table([chats[number] for number in places], chats.options.bits, farthest=_FARTHEST)
    model, sums = table.fit(
        [at[row[0]] for row in rows],
        [at[row[1]] for row in rows],
        np.array([row[2] for row in rows]),
        np.array([row[3] for row in rows]),
        strength=strength,
        options=asdict(chats.options),
    )
    if chats.options.length == "removed":
        model, sums = table.without(model, sums, model.names["length"])
    rated = sum(row[1] < 0 for row in rows)
    shift = model.intercept if rated else -float(sums.mean())
    numbers = {
        "mean": float(sums.mean()) + shift,
        "std": float(sums.std()) or 1.0,
        "least": float(sums.min()) + shift,
    }
    trained = {
        "pairs": len(rows) - rated,
        "ratings": rated,
        "chats": len(places),
        "data": digest_of(examples),
        "strength": strength,
        "reasoning": chats.form.reasoning,
    }
    return replace(model, intercept=shift, numbers=numbers, trained=trained)


def _rows_of(example: Example, chats: ChatFeatures) -> Iterator[tuple[int, int, float, float]]:
    """The terms of the loss: a chat, the one it is compared with (-1: the intercept), the chance, and the weight."""
    if isinstance(example, Pair):
        chance = 0.5 if example.tie else 1.0 if example.probability is None else example.probability
        better, worse = (chats.number(example.prompt, text) for text in (example.chosen, example.rejected))
        yield better, worse, chance, example.weight
    elif isinstance(example, Ranking):
        ranked = sorted(zip(example.ranks, example.responses, strict=True), key=lambda one: one[0])
        pairs = [(one, other) for one, other in itertools.combinations(ranked, 2) if one[0] < other[0]]
        for sides in pairs:
            better, worse = (chats.number(example.prompt, text) for _, text in sides)
            yield better, worse, 1.0, example.weight / len(pairs)
    else:
        value = example.values[0]
        if len(example.values) != 1 or value is None or not 0 <= value <= 1:
            raise ValueError(
                f"a rating is {example.values!r}; a preference model learns from one number in [0, 1], the chance that "
                "the response is right"
            )
        yield chats.number(example.prompt, example.response), -1, value, example.weight
