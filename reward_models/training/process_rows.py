"""From step data to the forward passes that a process model trains on: read, split, laid out, every loss counted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from adjudge.reward_models.process.rows import RowTokens
from adjudge.reward_models.process.step_format import StepFormat
from adjudge.reward_models.training.process_config import Normalize, StepChoice, TooLong, lay_out
from adjudge.reward_models.training.process_objective import label_weights
from adjudge.reward_models.training.rows import Batches, Span, Unit
from adjudge.reward_models.training.training import Split
from adjudge.training.data_files import ReadRows, digest_of, families, read_steps, split_off
from adjudge.training.step_data import Label, StepExample, consensus, opinions_of

StepUnit = Unit[StepExample]


@dataclass(frozen=True, kw_only=True)
class StepBatches(Batches[StepExample]):
    """Solutions with the labels of their steps; `normalize` as `process_objective.label_weights` has it.

    A pass has `places`, `labels` and `weights`, (rows, steps), with a label that is not a number where there is none,
    and place 0 where there is no step; `outcomes` and `outcome_weights`, (rows,); and `solution_weights`, (rows,).
    """

    normalize: Normalize = "solution"

    def step(self, units: Sequence[StepUnit], places: Sequence[int]) -> Callable[[list[int]], dict[str, Tensor]]:
        """Return what makes the tensors of a pass."""
        counts = [labelled(unit) for unit in units]
        weights = label_weights(counts, self.normalize)
        answered = sum(unit.example.outcome is not None for unit in units)
        solutions = sum(count > 0 for count in counts)

        def tensors(chosen: list[int]) -> dict[str, Tensor]:
            mine = [units[at] for at in chosen]
            outcomes = torch.tensor([_number(unit.example.outcome) for unit in mine])
            labels = _table([list(map(_number, unit.example.labels)) for unit in mine], math.nan)
            shares = torch.tensor([weights[at] for at in chosen]).unsqueeze(1)
            return {
                "places": step_places(mine),
                "labels": labels,
                "weights": torch.where(labels.isnan(), 0.0, shares),
                "outcomes": outcomes,
                "outcome_weights": torch.where(outcomes.isnan(), 0.0, 1 / max(answered, 1)),
                "solution_weights": torch.tensor([1 / solutions if counts[at] else 0.0 for at in chosen]),
            }

        return tensors


def step_places(units: Sequence[StepUnit]) -> Tensor:
    """Return where steps are read, (rows, steps), and 0 where there is no step."""
    return _table([list(unit.places) for unit in units], 0)


def _table(rows: Sequence[list[Any]], fill: float) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])


def labelled(unit: StepUnit) -> int:
    """Return how many steps have a label."""
    return sum(label is not None for label in unit.example.labels)


def _number(label: Label) -> float:
    return math.nan if label is None else label


def read_split(files: StepChoice, *, seed: int) -> Split[StepExample]:
    """Return the solutions that files hold, split by problem.

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
    kept, held = split_off(examples, aside, files.held_out, seed=seed)
    if aside is not None:
        facts["problems_also_held_out"] = len(examples) - len(kept)
    facts |= {"train": len(kept), "held_out": len(held)}
    facts |= {"train_digest": digest_of(kept), "held_out_digest": digest_of(held)}
    return Split(train=kept, held_out=held, facts=facts, digest=facts["train_digest"])


def _read(path: str, files: StepChoice) -> ReadRows[StepExample]:
    return read_steps(path, format=files.format, options=files.labels, limit=files.limit, split=files.split)


def _counts(read: Sequence[ReadRows[StepExample]]) -> dict[str, Any]:
    bad: Counter[str] = Counter()
    for data in read:
        bad.update(data.bad)
    return {
        "rows": sum(data.rows for data in read),
        "formats": sorted({data.format for data in read}),
        "bad_rows": dict(bad),
        "first_bad_rows": [text for data in read for text in data.first_bad][:5],
    }


def labelled_units(
    examples: Sequence[StepExample],
    tokens: RowTokens,
    format: StepFormat,
    *,
    max_length: int,
    too_long: TooLong,
    outcome: bool,
) -> tuple[list[StepUnit], Counter[str]]:
    """Return solutions that are ready to be read, and how many were left out or cut, by reason.

    A row that is too long is dropped or cut; one that is cut loses the answer's label, which is learnt with `outcome`.
    """
    units: list[StepUnit] = []
    dropped: Counter[str] = Counter()
    for example, cluster in zip(examples, families(examples), strict=True):
        try:
            row = lay_out(tokens, format, example.prompt, example.steps)
        except ValueError as error:
            dropped[str(error)] += 1
            continue
        unit = Unit(example=example, spans=(Span(tokens=row.ids).packed(),), cluster=cluster, places=tuple(row.places))
        if unit.length > max_length:
            dropped["too long, cut" if too_long == "cut" else "too long"] += 1
            if too_long == "drop":
                continue
            unit = _cut(unit, max_length)
        if unit.places and (labelled(unit) or (outcome and unit.example.outcome is not None)):
            units.append(unit)
        else:
            dropped["no label is left"] += 1
    return units, dropped


def _cut(unit: StepUnit, most: int) -> StepUnit:
    """The solution up to the last step that is read within the limit; without places where there is none."""
    kept = sum(place < most for place in unit.places)
    if not kept:
        return replace(unit, places=())
    example, (span,), places = unit.example, unit.spans, unit.places[:kept]
    return Unit(
        example=replace(example, steps=example.steps[:kept], labels=example.labels[:kept], outcome=None),
        spans=(replace(span, tokens=span.tokens[: places[-1] + 1]),),
        cluster=unit.cluster,
        places=places,
    )


def texts_of(examples: Sequence[StepExample]) -> list[str]:
    """Return all problems and steps, for a tokenizer to learn from."""
    return [text for example in examples for text in (example.prompt, *example.steps)]
