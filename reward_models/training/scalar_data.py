"""The examples of a scalar training: read, checked against the loss, split by prompt, and made into tensors.

Both sides of a pair, all responses of a list and a paraphrase go through the model in one pass.

Not covered: packing several rows into one (the plan leaves too little padding for that to pay).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from adjudge.protocol import turn_texts
from adjudge.reward_models.training.rows import Batches, FinishedChats, Span, Unit, units_of
from adjudge.reward_models.training.scalar_config import DataChoice, ScalarTraining
from adjudge.reward_models.training.training import Split
from adjudge.training.data_files import ReadRows, families, read_preferences, split_off, without_ties
from adjudge.training.examples import Example, Pair, Ranking, Rating

Array = npt.NDArray[Any]


def split_data(config: ScalarTraining) -> Split[Example]:
    """Return the examples that a configuration names.

    Raises:
        ValueError: they cannot be read, do not fit the loss, or cannot be split.
    """
    choice = config.data
    data = _read(choice, choice.path)
    config.loss.check_data(data.examples, data.attributes, config.head)
    if "consistency" in config.regularizers and not any(isinstance(e, Pair) and e.paraphrase for e in data.examples):
        raise ValueError(
            "regularizers.consistency needs paraphrases, and no pair has one; give a column paraphrase, or leave it out"
        )
    other = _read(choice, choice.held_out_path) if choice.held_out_path else None
    if other is not None:
        config.loss.check_data(other.examples, other.attributes, config.head)
    aside = None if other is None else other.examples
    train, held = split_off(data.examples, aside, choice.held_out, seed=config.seed)
    facts = {
        **data.counts,
        "prompt_is_held_out": 0 if other is None else len(data.examples) - len(train),
        "prompts_held_out": len(set(families(held))),
    }
    digest = data.digest if other is None else f"{data.digest}+{other.digest}"
    return Split(train=train, held_out=held, facts=facts, digest=digest, attributes=data.attributes)


def _read(choice: DataChoice, paths: Sequence[str]) -> ReadRows[Example]:
    data = read_preferences(
        paths,
        format=choice.format,
        columns=choice.columns,
        attributes=choice.attributes,
        split=choice.split,
        limit=choice.limit,
    )
    data = without_ties(data) if choice.ties == "drop" else data
    if not data.examples:
        raise ValueError(f"all examples of {', '.join(paths)} are ties, and data.ties is drop; use them or give others")
    return data


def texts_of(examples: Sequence[Example]) -> list[str]:
    """Return all prompts and responses, as texts, for a tokenizer to learn from."""
    texts: list[str] = []
    for example in examples:
        texts += turn_texts(example.prompt)
        texts += responses_of(example)
    return texts


def responses_of(example: Example) -> list[str]:
    """Return the responses of an example, without paraphrases."""
    if isinstance(example, Pair):
        return [example.chosen, example.rejected]
    return list(example.responses) if isinstance(example, Ranking) else [example.response]


def encode(
    examples: Sequence[Example], chats: FinishedChats, *, paraphrases: bool
) -> tuple[list[Unit[Example]], Counter[str]]:
    """Return the examples that can be trained on, with paraphrases if asked for, and how many cannot, by reason."""

    def spans_of(example: Example) -> Sequence[Span] | str:
        pair = isinstance(example, Pair)
        more = [example.paraphrase] if paraphrases and isinstance(example, Pair) and example.paraphrase else []
        rows = chats.rows(example.prompt, [*responses_of(example), *more])
        if pair and not isinstance(rows, str) and rows[0].tokens == rows[1].tokens:
            return "both responses are the same to the model"
        return rows

    return units_of(examples, spans_of)


def _ranks(example: Example) -> tuple[int, ...]:
    """The ranks of responses, 0 for the best; () for a rating."""
    if isinstance(example, Ranking):
        return example.ranks
    return (0, 1) if isinstance(example, Pair) else ()


@dataclass(frozen=True, kw_only=True)
class PreferenceBatches(Batches[Example]):
    """Preferences or ratings.

    Attributes:
        lists: give lists with ranks, and not pairs (Plackett-Luce).
        text: give the tokens of the better responses as targets of a language model.
        members: heads of an ensemble that see resamples of the data; 1 for all of it.
        seed: of the resamples.
    """

    lists: bool = False
    text: bool = False
    members: int = 1
    seed: int = 0

    def step(self, units: Sequence[Unit[Example]], places: Sequence[int]) -> Callable[[list[int]], dict[str, Any]]:
        """Return what makes the tensors of a pass; the weights of a step are 1 for each member."""
        weights = np.array([unit.example.weight for unit in units])[:, None] * self._draws(places)
        totals = weights.sum(axis=0, keepdims=True)
        shares = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0)
        return lambda chosen: self._tensors([units[at] for at in chosen], shares[chosen])

    def _draws(self, places: Sequence[int]) -> npt.NDArray[np.float64]:
        """How often each member of an ensemble sees each example."""
        if self.members == 1:
            return np.ones((len(places), 1))
        return np.array(
            [np.random.default_rng([self.seed, place]).poisson(1.0, self.members) for place in places], float
        )

    def _tensors(self, units: Sequence[Unit[Example]], weights: npt.NDArray[np.float64]) -> dict[str, Any]:
        import torch

        spans = [span for unit in units for span in unit.spans]
        first = np.cumsum([0, *(len(unit.spans) for unit in units)])[:-1]
        arrays: dict[str, Array] = {"lengths": np.array([span.size for span in spans])}
        if isinstance(units[0].example, Rating):
            values = [unit.example.values for unit in units if isinstance(unit.example, Rating)]
            arrays["targets"] = np.array(values, np.float32)
            arrays["weights"] = weights.astype(np.float32)
        else:
            arrays |= (_lists if self.lists else _pairs)(units, first, weights)
        extra = [at for at, unit in enumerate(units) if isinstance(unit.example, Pair) and len(unit.spans) > 2]
        if extra:
            arrays["original"] = first[extra]
            arrays["paraphrase"] = first[extra] + 2
            arrays["paraphrase_weights"] = weights[extra].astype(np.float32)
        if self.text:
            best = [at + int(np.argmin(_ranks(unit.example))) for at, unit in zip(first, units, strict=True)]
            arrays |= _targets(spans, best)
            arrays["text_weights"] = weights.mean(axis=1).astype(np.float32)
        return {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in arrays.items()}


def _pairs(units: Sequence[Unit[Example]], first: Array, weights: Array) -> dict[str, Array]:
    """Every two responses of different rank; the pairs of one list share its weight."""
    rows = []
    for at, unit in enumerate(units):
        ranks = _ranks(unit.example)
        two = [(i, j) for i in range(len(ranks)) for j in range(len(ranks)) if ranks[i] < ranks[j]]
        rows += [(first[at] + i, first[at] + j, at, 1 / len(two)) for i, j in two]
    better, worse, owners, shares = (np.array(column) for column in zip(*rows, strict=True))
    pairs = [unit.example if isinstance(unit.example, Pair) else None for unit in units]
    return {
        "better": better,
        "worse": worse,
        "weights": (weights[owners] * shares[:, None]).astype(np.float32),
        "margins": _known([pair.margin if pair else None for pair in pairs])[owners],
        "probabilities": _known([pair.probability if pair else None for pair in pairs])[owners],
        "tied": np.array([pair is not None and pair.tie for pair in pairs])[owners],
    }


def _lists(units: Sequence[Unit[Example]], first: Array, weights: Array) -> dict[str, Array]:
    most = max(len(_ranks(unit.example)) for unit in units)
    ranks = np.full((len(units), most), -1, dtype=np.int64)
    members = np.zeros((len(units), most), dtype=np.int64)
    for at, unit in enumerate(units):
        own = _ranks(unit.example)
        ranks[at, : len(own)] = own
        members[at, : len(own)] = first[at] + np.arange(len(own))
    return {"ranks": ranks, "members": members, "weights": weights.astype(np.float32)}


def _targets(spans: Sequence[Span], best: Sequence[int]) -> dict[str, Array]:
    """For each token of the best responses: its row, the place it is predicted at, itself, and its unit."""
    rows = [
        (row, at - 1, spans[row].tokens[at], unit)
        for unit, row in enumerate(best)
        for at in range(max(spans[row].start, 1), len(spans[row].tokens))
    ]
    names = ("text_rows", "text_places", "text_targets", "text_units")
    return dict(zip(names, np.array(rows, np.int64).reshape(-1, 4).T, strict=True))


def _known(values: Sequence[float | None]) -> npt.NDArray[np.float32]:
    return np.array([math.nan if value is None else value for value in values], np.float32)
