"""From step data to the forward passes that a process model trains on: read, split, laid out, and every loss counted.

What the loss of a label weighs is settled here, over the whole step, so that the gradient is the same however many
forward passes a step is cut into.

Not covered: the losses (`process_objective`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from adjudge.reward_models.process.rows import RowTokens
from adjudge.reward_models.process.step_format import StepFormat
from adjudge.reward_models.training.process_config import Normalize, StepChoice, TooLong, lay_out
from adjudge.reward_models.training.process_objective import label_weights
from adjudge.reward_models.training.rows import micro_batches, padded
from adjudge.training.data_files import StepData, digest_of, families, read_steps, split_off
from adjudge.training.step_data import Label, StepExample, consensus, opinions_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRow:
    """A solution that is ready to be read.

    Attributes:
        tokens: token ids.
        places: where each step is read, ascending.
        labels: of the steps; None where unknown.
        outcome: of the answer; None where unknown.
        cluster: the problem's family.
    """

    tokens: tuple[int, ...]
    places: tuple[int, ...]
    labels: tuple[Label, ...]
    outcome: Label = None
    cluster: str = ""

    @property
    def labelled(self) -> int:
        """How many steps have a label."""
        return sum(label is not None for label in self.labels)


class StepBatches:
    """Makes the forward passes of a step.

    Args:
        rows: all solutions.
        pad: id of the padding token.
        budget: most tokens of a forward pass, padding included.
        normalize: see `process_objective.label_weights`.
    """

    def __init__(self, rows: Sequence[LabelledRow], *, pad: int, budget: int, normalize: Normalize):
        self._rows = rows
        self._pad = pad
        self._budget = budget
        self._normalize: Normalize = normalize

    def __call__(self, places: Sequence[int]) -> list[dict[str, Tensor]]:
        """Return the forward passes of a step that trains on these solutions.

        Each has `input_ids` and `attention_mask`, (rows, length); `places`, `labels` and `weights`, (rows, steps), with
        a label that is no number where there is none, and place 0 where there is no step; `outcomes` and
        `outcome_weights`, (rows,); and `solution_weights`, (rows,).  Weights sum to 1 over all passes.
        """
        rows = [self._rows[place] for place in places]
        weights = label_weights([row.labelled for row in rows], self._normalize)
        answered = sum(row.outcome is not None for row in rows)
        told = sum(row.labelled > 0 for row in rows)
        units = [[at] for at in range(len(rows))]
        found = []
        for chosen in micro_batches([len(row.tokens) for row in rows], units, self._budget):
            mine = [rows[at] for at in chosen]
            tensors = step_tensors(mine, pad=self._pad)
            counted = torch.tensor([weights[at] for at in chosen]).unsqueeze(1)
            found.append(
                {
                    **tensors,
                    "weights": torch.where(tensors["labels"].isnan(), 0.0, counted),
                    "outcomes": torch.tensor([_number(row.outcome) for row in mine]),
                    "outcome_weights": torch.tensor([1 / answered if row.outcome is not None else 0.0 for row in mine]),
                    "solution_weights": torch.tensor([1 / told if row.labelled else 0.0 for row in mine]),
                }
            )
        return found


def step_tensors(rows: Sequence[LabelledRow], *, pad: int) -> dict[str, Tensor]:
    """Return solutions as `input_ids`, `attention_mask`, `places` and `labels`; see `StepBatches`."""
    width = max(len(row.places) for row in rows)
    places = torch.zeros((len(rows), width), dtype=torch.long)
    labels = torch.full((len(rows), width), math.nan)
    for at, row in enumerate(rows):
        places[at, : len(row.places)] = torch.tensor(row.places)
        labels[at, : len(row.places)] = torch.tensor([_number(label) for label in row.labels])
    return {**padded([row.tokens for row in rows], pad), "places": places, "labels": labels}


def _number(label: Label) -> float:
    return math.nan if label is None else label


@dataclass(frozen=True, kw_only=True)
class StepSplit:
    """The solutions of a training.

    Attributes:
        train: solutions that are trained on.
        held_out: solutions that are measured on; none of their problems is trained on.
        facts: counts, reasons and digests, as plain JSON data.
    """

    train: tuple[StepExample, ...]
    held_out: tuple[StepExample, ...]
    facts: Mapping[str, Any]


def read_split(files: StepChoice, *, seed: int) -> StepSplit:
    """Return the solutions that files hold, split by problem.

    Args:
        files: which.
        seed: of the split.

    Raises:
        ValueError: a file cannot be read, or nothing is left to train on or to measure on.
    """
    read = [_read(path, files) for path in files.path]
    examples = [example for data in read for example in data.examples]
    facts: dict[str, Any] = _counts(read)
    if files.judged:
        opinions = opinions_of(
            (example for path in files.judged for example in _read(path, files).examples),
            threshold=files.labels.threshold,
        )
        agreed = consensus(examples, opinions, threshold=files.labels.threshold)
        examples = list(agreed.examples)
        facts["consensus"] = {name: getattr(agreed, name) for name in ("agreed", "disagreed", "unknown", "unjudged")}
        if not examples:
            raise ValueError(
                f"the two opinions agree on no solution ({facts['consensus']}); look whether data.judged holds the "
                "same problems and steps"
            )
    aside = None
    if files.held_out_path:
        measured = [_read(path, files) for path in files.held_out_path]
        aside = [example for data in measured for example in data.examples]
        facts["held_out_files"] = _counts(measured)
    kept, held = split_off(examples, aside, files.held_out, seed=seed, key=lambda example: example)
    if aside is not None:
        facts["problems_also_held_out"] = len(examples) - len(kept)
    facts |= {"train": len(kept), "held_out": len(held)}
    facts |= {"train_digest": digest_of(kept), "held_out_digest": digest_of(held)}
    return StepSplit(train=tuple(kept), held_out=tuple(held), facts=facts)


def _read(path: str, files: StepChoice) -> StepData:
    return read_steps(path, format=files.format, options=files.labels, limit=files.limit, split=files.split)


def _counts(read: Sequence[StepData]) -> dict[str, Any]:
    bad: Counter[str] = Counter()
    for data in read:
        bad.update(data.bad)
    return {
        "rows": sum(data.rows for data in read),
        "formats": sorted({data.format for data in read}),
        "bad_rows": dict(bad),
        "first_bad_rows": [text for data in read for text in data.first_bad][:5],
    }


def labelled_rows(
    examples: Sequence[StepExample],
    tokens: RowTokens,
    format: StepFormat,
    *,
    max_length: int,
    too_long: TooLong,
    outcome: bool,
) -> tuple[list[LabelledRow], Counter[str]]:
    """Return solutions as rows, and how many were left out or cut, by reason.

    Args:
        examples: the solutions.
        tokens: the model's tokenizer.
        format: where steps are read.
        max_length: most tokens of a row.
        too_long: what becomes of longer ones.
        outcome: whether the answer's label is learnt too; a row that is cut loses it.
    """
    rows: list[LabelledRow] = []
    dropped: Counter[str] = Counter()
    for example, cluster in zip(examples, families(examples), strict=True):
        try:
            laid = lay_out(tokens, format, example.prompt, example.steps)
        except ValueError as error:
            dropped[str(error)] += 1
            continue
        row = LabelledRow(
            tokens=laid.ids, places=laid.places, labels=example.labels, outcome=example.outcome, cluster=cluster
        )
        if len(row.tokens) > max_length:
            dropped["too long, cut" if too_long == "cut" else "too long"] += 1
            if too_long == "drop":
                continue
            row = _cut(row, max_length)
        if row.labelled or (outcome and row.outcome is not None):
            rows.append(row)
        else:
            dropped["no label is left"] += 1
    return rows, dropped


def _cut(row: LabelledRow, most: int) -> LabelledRow:
    """The row up to the last step that is read within the limit."""
    kept = sum(place < most for place in row.places)
    if not kept:
        return replace(row, tokens=(), places=(), labels=(), outcome=None)
    return replace(
        row,
        tokens=row.tokens[: row.places[kept - 1] + 1],
        places=row.places[:kept],
        labels=row.labels[:kept],
        outcome=None,
    )


def texts_of(examples: Sequence[StepExample]) -> list[str]:
    """Return all problems and steps, for a tokenizer to learn from."""
    return [text for example in examples for text in (example.prompt, *example.steps)]


def require_difference(labels: Iterable[Label], what: str) -> None:
    """Raise `ValueError` if all labels that are known are the same: nothing can be learnt from them."""
    found = {label for label in labels if label is not None}
    if len(found) == 1:
        raise ValueError(
            f"all {what} of the training data have the label {found.pop()}, which teaches nothing; look at data.format "
            "and data.labels, or give other data"
        )
