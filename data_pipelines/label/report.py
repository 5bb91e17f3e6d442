"""What a label job says about itself: live, and at the end."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

from adjudge.data_pipelines.label.bench import Written
from adjudge.io.jobs.report import Watcher
from adjudge.protocol import NO_COST, STATUSES, Cost


@dataclass(slots=True)
class Tally:
    """Running counts over everything written so far; exact across interruptions, because the journal keeps them.

    Attributes:
        rows: input rows.
        total: sum of the values, added in input order.
        counts: scores by scorer, status and reason.
        errors: the first error of each entry of `counts` that has one: what the server said, say.
        parts: where scores are written by name, the counts of each name; `counts` then has the names as scorers.
        not_asked: samples about which the scorer was not asked; of a part alone.
    """

    rows: int = 0
    total: float = 0.0
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    errors: dict[tuple[str, str, str], str] = field(default_factory=dict)
    cost: Cost = NO_COST
    parts: dict[str, Tally] = field(default_factory=dict)
    not_asked: int = 0

    def add(self, score: Written) -> None:
        """Count one score."""
        self._count(score.scorer, score)

    def add_named(self, name: str, score: Written | None) -> None:
        """Count one score under a name; None is a scorer that was not asked."""
        part = self.parts.setdefault(name, Tally())
        if score is None:
            part.not_asked += 1
        else:
            part.add(score)
            self._count(name, score)

    def _count(self, scorer: str, score: Written) -> None:
        self.counts[scorer, score.status, score.reason] += 1
        if score.value is not None:
            self.total += score.value
        if score.error:
            self.errors.setdefault((scorer, score.status, score.reason), score.error)
        if score.cost is not NO_COST:
            self.cost = self.cost + score.cost

    def count(self, status: str = "", reason: str = "") -> int:
        """Return the number of scores with this status and this reason; "" stands for any."""
        return sum(
            count for (_, each, why), count in self.counts.items() if status in ("", each) and reason in ("", why)
        )

    @property
    def mean(self) -> float | None:
        """The mean of the values; None if nothing was scored, or if several scorers did, on scales of their own."""
        scored = self.count("scored")
        return self.total / scored if scored and not self.parts else None

    def statuses(self) -> dict[str, Any]:
        """Return what each report holds: how many scores have which status, and the mean."""
        return {status: self.count(status) for status in STATUSES} | {"mean": self.mean}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data from which `from_dict` makes an equal tally."""
        data: dict[str, Any] = {"rows": self.rows, "total": self.total}
        data["counts"] = [[*key, n, self.errors.get(key, "")] for key, n in self.counts.items()]
        data["cost"] = self.cost.to_dict()
        if self.parts:
            data["parts"] = {name: part.to_dict() for name, part in self.parts.items()}
        if self.not_asked:
            data["not_asked"] = self.not_asked
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the tally that `to_dict` wrote."""
        return cls(
            rows=data["rows"],
            total=data["total"],
            counts=Counter({tuple(key): n for *key, n, _ in data["counts"]}),
            errors={tuple(key): error for *key, _, error in data["counts"] if error},
            cost=Cost.from_dict(data["cost"]),
            parts={name: Tally.from_dict(part) for name, part in data.get("parts", {}).items()},
            not_asked=data.get("not_asked", 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """How far a running job is.

    Attributes:
        rows: input rows done, those of earlier runs included.
        scored: samples with a number; others are abstained or failed.
        mean: of the values; None where nothing is scored, or several scorers have scales of their own.
        rows_per_second: over this run.
        fraction: share of the input done, 0 to 1, or None if its size is unknown.
        eta_seconds: seconds left at this rate, or None.
    """

    rows: int
    scored: int
    abstained: int
    failed: int
    mean: float | None
    rows_per_second: float
    fraction: float | None
    eta_seconds: float | None


Progress: TypeAlias = Watcher[Snapshot]
"""Who watches a label job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerReport:
    """What one of several scorers did."""

    scorer: str
    fingerprint: str
    scored: int
    abstained: int
    failed: int
    not_asked: int
    mean: float | None
    out_of_scope: int = 0
    cost: Cost = NO_COST


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelReport:
    """What a finished job did.

    Attributes:
        output: what was written.
        scorer: name of the scorer; of several, their names in the output.
        fingerprint: fingerprint of the scorer; of several, all.
        rows: input rows, those of earlier runs included.
        samples: scores written: scored, abstained or failed.
        mean: mean of the values, or None if nothing was scored, or by several scorers.
        counts: scores by (scorer, status, reason); of several scorers, by their names in the output.
        seconds: wall time, that of earlier runs included.
        resumed_rows: rows done by earlier runs.
        rows_per_second: over this run; 0 if it had nothing left to do.
        notes: how the columns were understood.
        by_scorer: where scores are written by name, what each scorer did; else empty.
        errors: the first error of each entry of `counts` that has one.
        out_of_scope: those of `abstained` that are of a kind the scorer does not judge: no number, and no failure.
        cost: seconds and tokens, summed over the scores.
        references: what the references in the first rows are, such as "text" or "a list".
        whole_rows: after `limit`, the rows of the whole input, counted or estimated from its bytes; else None.
        whole_counted: whether they were counted.
        whole_cost: what they would cost, in proportion.
        whole_seconds: the wall time they would take, at the rate after the first batch.
        whole_bound: whether that is an upper bound, because start-up could not be told from the rate.
        groupwise: whether a scorer compares groups, so that failed samples cannot be judged again alone.
    """

    output: str
    scorer: str
    fingerprint: str
    rows: int
    samples: int
    scored: int
    abstained: int
    failed: int
    mean: float | None
    counts: Mapping[tuple[str, str, str], int]
    seconds: float
    resumed_rows: int
    rows_per_second: float
    notes: tuple[str, ...] = ()
    by_scorer: Mapping[str, ScorerReport] = field(default_factory=dict)
    errors: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    out_of_scope: int = 0
    cost: Cost = NO_COST
    references: tuple[str, ...] = ()
    whole_rows: int | None = None
    whole_counted: bool = False
    whole_cost: Cost = NO_COST
    whole_seconds: float = 0.0
    whole_bound: bool = False
    groupwise: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data; the counts become a list of objects, largest first."""
        rows = sorted(self.counts.items(), key=lambda entry: (-entry[1], entry[0]))
        names = (
            "output", "scorer", "fingerprint", "rows", "samples", "scored", "abstained", "out_of_scope", "failed",
            "mean", "counts", "cost", "seconds", "resumed_rows", "rows_per_second", "notes",
        )  # fmt: skip
        data: dict[str, Any] = {name: getattr(self, name) for name in names}
        data |= {
            "counts": [
                {**dict(zip(("scorer", "status", "reason"), key, strict=True)), "count": count}
                | ({"error": self.errors[key]} if key in self.errors else {})
                for key, count in rows
            ],
            "cost": self.cost.to_dict(),
            "seconds": round(self.seconds, 3),
            "rows_per_second": round(self.rows_per_second, 1),
            "notes": list(self.notes),
        }
        if self.whole_rows is not None:
            data["whole_input"] = {
                "rows": self.whole_rows,
                "counted": self.whole_counted,
                "seconds": round(self.whole_seconds, 1),
                "at_most": self.whole_bound,
                "cost": self.whole_cost.to_dict(),
            }
        if self.by_scorer:
            data["by_scorer"] = {name: dataclasses.asdict(report) for name, report in self.by_scorer.items()}
        return data
