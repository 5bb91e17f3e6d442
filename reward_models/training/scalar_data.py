"""The examples of a scalar training: read, checked against the loss, split by prompt, and made into tensors.

Rows are padded on the right, within forward passes of rows of about one length; both sides of a pair, all responses of
a list and a paraphrase go through the model in one pass.

Not covered: packing several rows into one (the plan leaves too little padding for that to pay).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from adjudge.protocol import content_text
from adjudge.reward_models.training.rows import FinishedChats, micro_batches
from adjudge.reward_models.training.scalar_config import DataChoice, ScalarTraining
from adjudge.training.data_files import PreferenceData, families, read_preferences, split_off, without_ties
from adjudge.training.examples import Example, Pair, Ranking, Rating

_PARAPHRASES = (
    "regularizers.consistency needs paraphrases, and no pair has one; give a column paraphrase, or leave it out"
)


@dataclass(frozen=True, kw_only=True)
class SplitData:
    """What is trained on and what is held out.

    Attributes:
        train: examples to learn from.
        held: examples to measure on; they share no prompt with the others.
        clusters: the family of each held-out example.
        attributes: names of the ratings.
        counts: what was read, left out and split, for the report.
        digest: 16 hex digits of the data.
    """

    train: Sequence[Example]
    held: Sequence[Example]
    clusters: Sequence[str]
    attributes: tuple[str, ...]
    counts: Mapping[str, Any]
    digest: str


def split_data(config: ScalarTraining) -> SplitData:
    """Return the examples that a configuration names.

    Raises:
        ValueError: they cannot be read, do not fit the loss, or cannot be split.
    """
    choice = config.data
    data = _read(choice, choice.path)
    config.loss.check_data(data.examples, data.attributes, config.head)
    if "consistency" in config.regularizers and not any(isinstance(e, Pair) and e.paraphrase for e in data.examples):
        raise ValueError(_PARAPHRASES)
    other = _read(choice, choice.held_out_path) if choice.held_out_path else None
    if other is not None:
        config.loss.check_data(other.examples, other.attributes, config.head)
    aside = None if other is None else other.examples
    train, held = split_off(data.examples, aside, choice.held_out, seed=config.seed, key=lambda example: example)
    counts = {
        "rows": data.rows,
        "bad_rows": dict(data.bad),
        "first_bad_rows": list(data.first_bad[:3]),
        "prompt_is_held_out": 0 if other is None else len(data.examples) - len(train),
        "prompts_held_out": len(set(families(held))),
    }
    return SplitData(
        train=train,
        held=held,
        clusters=families(held),
        attributes=data.attributes,
        counts=counts,
        digest=data.digest if other is None else f"{data.digest}+{other.digest}",
    )


def texts_of(examples: Sequence[Example]) -> list[str]:
    """Return all prompts and responses, as texts, for a tokenizer to learn from."""
    found: list[str] = []
    for example in examples:
        prompt = example.prompt
        found += [prompt] if isinstance(prompt, str) else [content_text(turn.get("content")) for turn in prompt]
        found += responses_of(example)
    return found


def responses_of(example: Example) -> list[str]:
    """Return the responses of an example, without paraphrases."""
    if isinstance(example, Pair):
        return [example.chosen, example.rejected]
    return list(example.responses) if isinstance(example, Ranking) else [example.response]


def _read(choice: DataChoice, paths: Sequence[str]) -> PreferenceData:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """An example as rows of tokens.

    Attributes:
        example: what it was made of.
        rows: tokens of each response's chat; of a pair the better one first, of a list in its order.
        starts: the first token of each response.
        ranks: of the responses, 0 for the best; () for a rating.
        paraphrase: whether one more row says in other words what the first says.
    """

    example: Example
    rows: tuple[npt.NDArray[np.int32], ...]
    starts: tuple[int, ...]
    ranks: tuple[int, ...]
    paraphrase: bool = False

    @property
    def length(self) -> int:
        """Tokens of the longest row."""
        return max(map(len, self.rows))


def encode(
    examples: Sequence[Example], chats: FinishedChats, *, paraphrases: bool
) -> tuple[list[Encoded], Counter[str]]:
    """Return the examples that can be trained on, and how many cannot, by reason.

    Args:
        examples: pairs, lists or ratings.
        chats: what makes tokens of them.
        paraphrases: read paraphrases too.
    """
    found: list[Encoded] = []
    dropped: Counter[str] = Counter()
    for example in examples:
        responses, ranks, extra = _sides(example, paraphrases)
        rows = chats.rows(example.prompt, responses)
        if isinstance(rows, str):
            dropped[rows] += 1
        elif isinstance(example, Pair) and rows[0].tokens == rows[1].tokens:
            dropped["both responses are the same to the model"] += 1
        else:
            found.append(
                Encoded(
                    example=example,
                    rows=tuple(np.array(row.tokens, dtype=np.int32) for row in rows),
                    starts=tuple(row.start for row in rows),
                    ranks=ranks,
                    paraphrase=extra,
                )
            )
    return found, dropped


def _sides(example: Example, paraphrases: bool) -> tuple[list[str], tuple[int, ...], bool]:
    if isinstance(example, Pair):
        extra = paraphrases and bool(example.paraphrase)
        return [example.chosen, example.rejected, *([example.paraphrase] if extra else [])], (0, 1), extra
    if isinstance(example, Rating):
        return [example.response], (), False
    return list(example.responses), example.ranks, False


@dataclass(frozen=True, kw_only=True)
class Batches:
    """Makes the forward passes of steps.

    Attributes:
        units: the examples.
        budget: most tokens of a pass, with padding.
        lists: give lists with ranks, and not pairs (Plackett-Luce).
        text: give the tokens of the better responses as targets of a language model.
        members: heads of an ensemble that see resamples of the data; 1 for all of it.
        seed: of the resamples.
    """

    units: Sequence[Encoded]
    budget: int
    lists: bool = False
    text: bool = False
    members: int = 1
    seed: int = 0

    def __call__(self, places: Sequence[int]) -> list[dict[str, Any]]:
        """Return the forward passes of a step; the weights of all its examples together are 1 for each member."""
        units = [self.units[place] for place in places]
        weights = np.array([unit.example.weight for unit in units])[:, None] * self._draws(places)
        totals = weights.sum(axis=0, keepdims=True)
        weights = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0)
        first = np.cumsum([0, *(len(unit.rows) for unit in units)])
        lengths = [len(row) for unit in units for row in unit.rows]
        rows = [range(first[at], first[at + 1]) for at in range(len(units))]
        return [
            self._tensors([units[at] for at in members], weights[members])
            for members in micro_batches(lengths, rows, self.budget)
        ]

    def _draws(self, places: Sequence[int]) -> npt.NDArray[np.float64]:
        """How often each member of an ensemble sees each example."""
        if self.members == 1:
            return np.ones((len(places), 1))
        return np.array(
            [np.random.default_rng([self.seed, place]).poisson(1.0, self.members) for place in places], float
        )

    def _tensors(self, units: Sequence[Encoded], weights: npt.NDArray[np.float64]) -> dict[str, Any]:
        rows = [row for unit in units for row in unit.rows]
        width = max(map(len, rows))
        ids = np.zeros((len(rows), width), dtype=np.int64)
        mask = np.zeros((len(rows), width), dtype=np.int64)
        for at, row in enumerate(rows):
            ids[at, : len(row)] = row
            mask[at, : len(row)] = 1
        starts = [start for unit in units for start in unit.starts]
        lengths = np.array([len(row) - start for row, start in zip(rows, starts, strict=True)])
        first = np.cumsum([0, *(len(unit.rows) for unit in units)])[:-1]
        found = {"input_ids": ids, "attention_mask": mask, "lengths": lengths}
        if isinstance(units[0].example, Rating):
            values = [unit.example.values for unit in units if isinstance(unit.example, Rating)]
            found["targets"] = np.array([[math.nan if v is None else v for v in row] for row in values], np.float32)
            found["weights"] = weights.astype(np.float32)
        elif self.lists:
            found |= _lists(units, first, weights)
        else:
            found |= _pairs(units, first, weights)
        extra = [at for at, unit in enumerate(units) if unit.paraphrase]
        if extra:
            found["original"] = first[extra]
            found["paraphrase"] = first[extra] + 2
            found["paraphrase_weights"] = weights[extra].astype(np.float32)
        if self.text:
            best = [at + int(np.argmin(unit.ranks)) for at, unit in zip(first, units, strict=True)]
            found |= _targets(rows, starts, best)
            found["text_weights"] = weights.mean(axis=1).astype(np.float32)
        return {name: _tensor(value) for name, value in found.items()}


def _pairs(units: Sequence[Encoded], first: npt.NDArray[Any], weights: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Every two responses of different rank; the pairs of one list share its weight."""
    better, worse, owners, shares = [], [], [], []
    for at, unit in enumerate(units):
        ranks = unit.ranks
        two = [(i, j) for i in range(len(ranks)) for j in range(len(ranks)) if ranks[i] < ranks[j]]
        for i, j in two:
            better.append(first[at] + i)
            worse.append(first[at] + j)
            owners.append(at)
            shares.append(1 / len(two))
    pairs = [unit.example if isinstance(unit.example, Pair) else None for unit in units]
    return {
        "better": np.array(better, np.int64),
        "worse": np.array(worse, np.int64),
        "weights": (weights[owners] * np.array(shares)[:, None]).astype(np.float32),
        "margins": _known([pair.margin if pair else None for pair in pairs])[owners],
        "probabilities": _known([pair.probability if pair else None for pair in pairs])[owners],
        "tied": np.array([pair is not None and pair.tie for pair in pairs])[owners],
    }


def _lists(units: Sequence[Encoded], first: npt.NDArray[Any], weights: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    most = max(len(unit.ranks) for unit in units)
    ranks = np.full((len(units), most), -1, dtype=np.int64)
    members = np.zeros((len(units), most), dtype=np.int64)
    for at, unit in enumerate(units):
        ranks[at, : len(unit.ranks)] = unit.ranks
        members[at, : len(unit.ranks)] = first[at] + np.arange(len(unit.ranks))
    return {"ranks": ranks, "members": members, "weights": weights.astype(np.float32)}


def _targets(
    rows: Sequence[npt.NDArray[Any]], starts: Sequence[int], best: Sequence[int]
) -> dict[str, npt.NDArray[Any]]:
    """For each token of the best responses: its row, the place it is predicted at, itself, and its unit."""
    places = [(row, at) for row in best for at in range(max(starts[row], 1), len(rows[row]))]
    unit = {row: at for at, row in enumerate(best)}
    return {
        "text_rows": np.array([row for row, _ in places], np.int64),
        "text_places": np.array([at - 1 for _, at in places], np.int64),
        "text_targets": np.array([rows[row][at] for row, at in places], np.int64),
        "text_units": np.array([unit[row] for row, _ in places], np.int64),
    }


def _known(values: Sequence[float | None]) -> npt.NDArray[np.float32]:
    return np.array([math.nan if value is None else value for value in values], np.float32)


def _tensor(value: npt.NDArray[Any]) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(value))
