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
from adjudge.statistics.arrays import Floats, np

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
        logs = [math.log(share) for share in self.shares]
        for rater, label in votes.items():
            if rater not in self.confusion:
                raise ValueError(f"the rater {rater!r} was not learnt; known are {', '.join(self.confusion)}")
            if label not in place:
                raise ValueError(f"the rater {rater!r} voted {label!r}; the classes are {', '.join(self.classes)}")
            logs = [log + math.log(row[place[label]]) for log, row in zip(logs, self.confusion[rater], strict=True)]
        weights = [math.exp(log - max(logs)) for log in logs]
        return {name: weight / math.fsum(weights) for name, weight in zip(self.classes, weights, strict=True)}

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
    gold: Sequence[str | None] | None = None,
    smoothing: float = 0.01,
    steps: int = 200,
) -> Fit:
    """Learn the raters' confusion and the classes' shares from votes.

    EM starts from the share of votes for each class, so two classes that are swapped by most raters come out swapped:
    the model takes the majority of raters to be better than chance.  Where `gold` has every class, EM starts from what
    it says about the raters instead.

    Args:
        items: the votes on each item; the classes are the labels that are voted for, or true, sorted.
        gold: for each item its true label, or None.
        smoothing: pseudo-count in every cell, > 0.
        steps: most EM steps, at least 1; EM ends before when no posterior moves by more than 1e-6.

    Raises:
        ImportError: numpy is not installed.
        ValueError: there is nothing to learn from.
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
    classes = sorted({label for votes in items for label in votes.values()} | {one for one in known if one is not None})
    if len(classes) < 2:
        raise ValueError(f"all labels are {classes[0]!r}; need two or more")
    raters = {rater: at for at, rater in enumerate(sorted({rater for votes in items for rater in votes}))}
    cast = ((at, raters[who], classes.index(label)) for at, votes in enumerate(items) for who, label in votes.items())
    item, rater, vote = np.array(list(cast)).T
    truth = np.array([-1 if label is None else classes.index(label) for label in known])
    told = truth >= 0

    def counted(beliefs: Floats) -> tuple[Floats, Floats]:
        """The shares of the classes, and P(vote | truth) by rater, vote and truth."""
        tables = np.full((len(raters), len(classes), len(classes)), smoothing)
        np.add.at(tables, (rater, vote), beliefs[item])
        totals = smoothing + beliefs.sum(axis=0)
        return totals / totals.sum(), tables / tables.sum(axis=1, keepdims=True)

    def judged(shares: Floats, tables: Floats) -> tuple[Floats, float]:
        """The classes' probabilities of each item, and the log-likelihood of all votes."""
        logs = np.tile(np.log(shares), (len(items), 1))
        np.add.at(logs, item, np.log(tables)[rater, vote])
        total = np.logaddexp.reduce(logs, axis=1)
        likelihood = total[~told].sum() + logs[told, truth[told]].sum()
        return np.where(told[:, None], beliefs, np.exp(logs - total[:, None])), float(likelihood)

    beliefs = np.zeros((len(items), len(classes)))
    np.add.at(beliefs, (item, vote), 1.0)
    beliefs[told] = np.eye(len(classes))[truth[told]]
    beliefs[beliefs.sum(axis=1) == 0] = 1.0
    beliefs /= beliefs.sum(axis=1, keepdims=True)
    if len(np.unique(truth[told])) == len(classes):
        beliefs, _ = judged(*counted(np.where(told[:, None], beliefs, 0.0)))
    likelihoods: list[float] = []
    converged = False
    while not converged and len(likelihoods) < steps:
        shares, tables = counted(beliefs)
        before = beliefs
        beliefs, likelihood = judged(shares, tables)
        likelihoods.append(likelihood)
        converged = bool(np.abs(beliefs - before).max() <= 1e-6)
    confusion = {name: table.T.tolist() for name, table in zip(raters, tables, strict=True)}
    return Fit(
        model=DawidSkene(classes=tuple(classes), shares=shares.tolist(), confusion=confusion),
        posteriors=tuple(dict(zip(classes, row, strict=True)) for row in beliefs.tolist()),
        log_likelihood=tuple(likelihoods),
        converged=converged,
    )
