"""What raters' votes are worth, learnt from the votes alone: Dawid and Skene's model, fitted by EM.

Each rater has a confusion matrix `P(vote | truth)`, each class a share, and given the truth the raters err on their
own.  From these follows the probability of each class for any set of votes, gaps included.  A few known truths
(`gold`) may be given; they anchor which class is which.

Source: Dawid and Skene 1979, with pseudo-counts so that no probability is 0.  Not covered: raters who copy each
other (the model takes their agreement for evidence), and items of differing difficulty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from adjudge.scoring.compose.saved import Saved

Votes = Mapping[str, str]
"""Rater to label, for one item; raters without a vote are left out."""


@dataclass(frozen=True, kw_only=True)
class DawidSkene(Saved):
    """A fitted model: plain data, with a posterior.

    Attributes:
        classes: the labels.
        shares: the share of each class, in the order of `classes`; they sum to 1.
        confusion: rater to matrix: row = truth, column = vote, both in the order of `classes`; rows sum to 1.
    """

    called: ClassVar[str] = "a Dawid-Skene model"

    classes: tuple[str, ...]
    shares: tuple[float, ...]
    confusion: Mapping[str, tuple[tuple[float, ...], ...]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        object.__setattr__(self, "shares", tuple(self.shares))
        tables = {rater: tuple(tuple(row) for row in table) for rater, table in self.confusion.items()}
        object.__setattr__(self, "confusion", tables)
        size = len(self.classes)
        if size < 2 or len(set(self.classes)) < size:
            raise ValueError(f"DawidSkene.classes are {self.classes!r}; give two or more different labels")
        rows = [
            ("shares", self.shares),
            *((f"confusion of {rater!r}", row) for rater, t in tables.items() for row in t),
        ]
        for what, row in rows:
            if len(row) != size or not all(0 < p < 1 for p in row) or abs(math.fsum(row) - 1) > 1e-6:
                raise ValueError(f"the {what} hold {row!r}; need {size} probabilities above 0 that sum to 1")
        if any(len(table) != size for table in tables.values()) or not tables:
            raise ValueError(f"every rater needs {size} rows, one for each class, and there must be a rater")

    def posterior(self, votes: Votes) -> dict[str, float]:
        """Return the probability of each class for one item.

        Raises:
            ValueError: a rater or a label is unknown.  Without any vote the classes' shares are returned.
        """
        place = {label: index for index, label in enumerate(self.classes)}
        row = []
        for rater, label in votes.items():
            if rater not in self.confusion:
                raise ValueError(f"the rater {rater!r} was not learnt; known are {', '.join(self.confusion)}")
            if label not in place:
                raise ValueError(f"the rater {rater!r} voted {label!r}; the classes are {', '.join(self.classes)}")
            row.append((rater, place[label]))
        return dict(zip(self.classes, _normalised(_logs(self, row)), strict=True))

    def accuracy(self, rater: str) -> float:
        """Return how often a rater is expected to be right, over the classes' shares."""
        table = self.confusion[rater]
        return math.fsum(share * table[index][index] for index, share in enumerate(self.shares))


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What EM found.

    Attributes:
        model: the fitted model.
        posteriors: the probability of each class for each item, in order.
        log_likelihood: of the votes, in nats, after each step; it never falls by more than the pseudo-counts explain.
        converged: whether the posteriors stopped moving before the last step allowed.
    """

    model: DawidSkene
    posteriors: tuple[Mapping[str, float], ...]
    log_likelihood: tuple[float, ...]
    converged: bool


def fit_dawid_skene(
    items: Sequence[Votes],
    *,
    classes: Sequence[str] | None = None,
    gold: Sequence[str | None] | None = None,
    smoothing: float = 0.01,
    steps: int = 200,
    tolerance: float = 1e-6,
) -> Fit:
    """Learn the raters' confusion and the classes' shares from votes.

    EM starts from the share of votes for each class, so two classes that are swapped by most raters come out swapped:
    the model takes the majority of raters to be better than chance.  Where `gold` has every class, EM starts from what
    it says about the raters instead.

    Args:
        items: the votes on each item.
        classes: the labels; None takes those that were voted for, sorted.
        gold: for each item its true label, or None.
        smoothing: pseudo-count in every cell, > 0.
        steps: most EM steps, at least 1.
        tolerance: EM ends when no posterior moves by more.

    Raises:
        ValueError: there is nothing to learn from, or a label is not in the classes.
    """
    if not any(items):
        raise ValueError("there are no votes to learn from")
    if not (math.isfinite(smoothing) and smoothing > 0):
        raise ValueError(f"smoothing={smoothing!r}; it must be above 0, or a rater never seen to err could never err")
    if steps < 1:
        raise ValueError(f"steps={steps!r}; EM needs at least 1")
    known = gold if gold is not None else [None] * len(items)
    if len(known) != len(items):
        raise ValueError(f"{len(known)} gold labels for {len(items)} items; give one, or None, for each")
    voted = {label for votes in items for label in votes.values()} | {label for label in known if label is not None}
    names = tuple(sorted(voted)) if classes is None else tuple(classes)
    if voted - set(names) or len(names) < 2:
        raise ValueError(
            f"the labels are {sorted(voted)} and the classes {list(names)}; need two or more, and all of them"
        )
    place = {label: index for index, label in enumerate(names)}
    raters = sorted({rater for votes in items for rater in votes})
    rows = [[(rater, place[label]) for rater, label in votes.items()] for votes in items]
    truths = [None if label is None else place[label] for label in known]
    beliefs = [_start(row, len(names), truth) for row, truth in zip(rows, truths, strict=True)]
    if {truth for truth in truths if truth is not None} == set(range(len(names))):
        known_rows = [index for index, truth in enumerate(truths) if truth is not None]
        chosen = [rows[index] for index in known_rows], [beliefs[index] for index in known_rows]
        first = _maximise(*chosen, raters, names, smoothing)
        beliefs = [
            belief if truth is not None else _normalised(_logs(first, row))
            for row, truth, belief in zip(rows, truths, beliefs, strict=True)
        ]
    likelihoods: list[float] = []
    converged = False
    while not converged and len(likelihoods) < steps:
        model = _maximise(rows, beliefs, raters, names, smoothing)
        moved, likelihood = 0.0, 0.0
        for index, (row, fixed) in enumerate(zip(rows, truths, strict=True)):
            logs = _logs(model, row)
            if fixed is None:
                after = _normalised(logs)
                likelihood += _log_sum(logs)
                moved = max(moved, max(abs(a - b) for a, b in zip(after, beliefs[index], strict=True)))
                beliefs[index] = after
            else:
                likelihood += logs[fixed]
        likelihoods.append(likelihood)
        converged = moved <= tolerance
    return Fit(
        model=model,
        posteriors=tuple(dict(zip(names, belief, strict=True)) for belief in beliefs),
        log_likelihood=tuple(likelihoods),
        converged=converged,
    )


def _logs(model: DawidSkene, row: Sequence[tuple[str, int]]) -> list[float]:
    logs = [math.log(share) for share in model.shares]
    for rater, vote in row:
        for truth, table_row in enumerate(model.confusion[rater]):
            logs[truth] += math.log(table_row[vote])
    return logs


def _start(row: Sequence[tuple[str, int]], size: int, gold: int | None) -> list[float]:
    if gold is not None:
        return [float(index == gold) for index in range(size)]
    if not row:
        return [1 / size] * size
    return [sum(vote == index for _, vote in row) / len(row) for index in range(size)]


def _maximise(
    rows: Sequence[Sequence[tuple[str, int]]],
    beliefs: Sequence[Sequence[float]],
    raters: Sequence[str],
    names: tuple[str, ...],
    smoothing: float,
) -> DawidSkene:
    size = range(len(names))
    tables = {rater: [[smoothing] * len(names) for _ in size] for rater in raters}
    totals = [smoothing] * len(names)
    for row, belief in zip(rows, beliefs, strict=True):
        for truth in size:
            totals[truth] += belief[truth]
        for rater, vote in row:
            for truth in size:
                tables[rater][truth][vote] += belief[truth]
    return DawidSkene(
        classes=names,
        shares=_shares(totals),
        confusion={rater: tuple(_shares(line) for line in table) for rater, table in tables.items()},
    )


def _shares(counts: Sequence[float]) -> tuple[float, ...]:
    total = math.fsum(counts)
    return tuple(count / total for count in counts)


def _log_sum(logs: Sequence[float]) -> float:
    top = max(logs)
    return top + math.log(math.fsum(math.exp(value - top) for value in logs))


def _normalised(logs: Sequence[float]) -> list[float]:
    total = _log_sum(logs)
    return [math.exp(value - total) for value in logs]
