"""Checks of a training set and a test set of pairs, or of rated answers; docs/data.md has the list.

Repeated pairs and the largest prompt are told, and not judged.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from adjudge.data_pipelines.pairs.balance import (
    Balance,
    Overlap,
    PromptOverlap,
    common_pairs,
    contradictions,
    judged_texts,
)
from adjudge.data_pipelines.pairs.config import LeaksConfig
from adjudge.io.jobs.report import JobProgress, JobSnapshot
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.statistics.intervals import Interval


@dataclass(frozen=True, slots=True)
class Check:
    """One check: whether it found something, None where that is not judged, and what it says."""

    name: str
    found: bool | None
    says: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakReport:
    """All checks of a training set and a test set."""

    train: str
    test: str
    checks: tuple[Check, ...]
    unusable: Mapping[str, Mapping[str, int]]

    @property
    def found(self) -> bool:
        """Whether any check found something."""
        return any(check.found for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "train": self.train,
            "test": self.test,
            "found": self.found,
            "checks": {check.name: {"found": check.found, **check.numbers} for check in self.checks},
            "unusable": {name: dict(reasons) for name, reasons in self.unusable.items()},
        }

    def lines(self) -> list[str]:
        """Return the report for people."""
        marks = {True: "FOUND", False: "ok", None: ""}
        lines = [f"{marks[check.found]:6}{check.says}" for check in self.checks]
        for name, reasons in self.unusable.items():
            if reasons:
                shown = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
                lines.append(f"{'':6}rows of {name} that could not be used: {shown}")
        return [*lines, "something was found" if self.found else "nothing was found"]


Rows: TypeAlias = Iterable[Mapping[str, Any] | None]
"""Rows; None for one that cannot be read."""

_EVERY = 10_000  # rows between two calls of the progress


def find_leaks(config: LeaksConfig, *, progress: JobProgress | None = None) -> LeakReport:
    """Check two files.

    Raises:
        ValueError: a file cannot be read, or holds neither pairs nor rated answers.
    """
    train = _rows_of(config.train, config.train_split, config, progress)
    return leaks_between(train, _rows_of(config.test, config.test_split, config, progress), config)


def leaks_between(train: Rows, test: Rows, config: LeaksConfig) -> LeakReport:
    """Check rows that are at hand.

    Args:
        train: what is trained on; read once.
        test: what is measured on; its prompts stay in memory.
        config: the columns and limits; `train` and `test` name the rows in the report.

    Raises:
        ValueError: one of the two holds neither pairs nor rated answers, or no pair says who came first in the column
            that was named for it.
    """
    measured, measured_bad = Balance(), Counter[str]()
    prompts = _prompts_of(test, config, measured, measured_bad)
    overlap = PromptOverlap(prompts, threshold=config.threshold, ngram=config.ngram)
    _require(measured, measured_bad, config.test)
    trained, trained_bad = Balance(), Counter[str]()
    met = overlap.meet(_prompts_of(train, config, trained, trained_bad))
    _require(trained, trained_bad, config.train)
    if config.first_column and trained.pairs + measured.pairs and not trained.placed + measured.placed:
        raise ValueError(
            f"--first-column {config.first_column!r}: no pair of {config.train} or {config.test} says true or false "
            "there; name another column, or leave it out, and places are not checked"
        )
    checks = [*_prompts(met), *_contents(trained, measured)]
    for name, file in (("train", trained), ("test", measured)):
        checks += _balances(name, file, config.balance)
    return LeakReport(
        train=config.train,
        test=config.test,
        checks=tuple(checks),
        unusable={"train": dict(trained_bad), "test": dict(measured_bad)},
    )


def _rows_of(name: str, split: str, config: LeaksConfig, progress: JobProgress | None) -> Rows:
    source = open_source(name, limit=config.max_row_mb << 20, split=split)

    def rows() -> Iterator[Mapping[str, Any] | None]:
        begun = time.monotonic()
        for row in source.rows(Cursor()):
            if progress is not None and row.index % _EVERY == 0:
                rate = row.index / max(time.monotonic() - begun, 1e-9)
                share = source.fraction(Cursor(row.index, row.part, row.place))
                progress.update(
                    JobSnapshot(
                        rows=row.index, made=0, dropped={}, rows_per_second=rate, fraction=share, eta_seconds=None
                    )
                )
            yield row.cells()

    return rows()


def _prompts_of(rows: Rows, config: LeaksConfig, balance: Balance, bad: Counter[str]) -> Iterator[str]:
    """Yield the prompts of what rows say, which the balance takes."""
    for row in rows:
        try:
            if row is None:
                raise ValueError("unreadable")
            said = list(judged_texts(row, config))
        except ValueError as why:
            bad[str(why)] += 1
            continue
        for texts in said:
            balance.add(texts)
            yield texts.prompt


def _require(balance: Balance, bad: Counter[str], name: str) -> None:
    if not balance.rows:
        shown = ", ".join(f"{reason}: {count}" for reason, count in sorted(bad.items())) or "it is empty"
        raise ValueError(
            f"{name} holds neither pairs (prompt, chosen, rejected) nor rated answers (prompt, response, label) "
            f"({shown}); name the columns"
        )


def _prompts(met: Overlap) -> Iterator[Check]:
    examples = [{"test": one[:200], "train": other[:200], "similarity": round(s, 3)} for one, other, s in met.examples]
    numbers = {"exact": met.exact, "prompts": met.prompts, "examples": examples}
    yield Check("prompts", met.exact > 0, f"{met.exact} of {met.prompts} test prompts were trained on", numbers)
    says = f"{met.near} of {met.prompts} test prompts have a near-duplicate that was trained on"
    yield Check("near_prompts", met.near > 0, says, {"near": met.near, "prompts": met.prompts})


def _contents(train: Balance, test: Balance) -> Iterator[Check]:
    common, pairs = common_pairs(train, test), train.pairs + test.pairs
    reversed_pairs, repeated = contradictions(train, test)
    says = f"{common} pairs of the test set were trained on"
    yield Check("pairs", common > 0, says, {"common": common, "pairs": test.pairs})
    says = f"{reversed_pairs} of {pairs} pairs stand there the other way round too"
    yield Check("contradictions", reversed_pairs > 0, says, {"reversed": reversed_pairs, "pairs": pairs})
    yield Check("repeated", None, f"{repeated} pairs repeat another one", {"repeated": repeated})


def _balances(name: str, file: Balance, tolerance: float) -> Iterator[Check]:
    if file.pairs:
        first, most = file.first(), file.max_of_one_prompt()
        says = f"{name}: the better response came first in {first} of the pairs"
        yield _judged(f"position_{name}", first, tolerance, says if first.n else f"{name}: no column tells places")
        says = f"{name}: the prompt with most pairs has {most:.1%} of them"
        yield Check(f"largest_prompt_{name}", None, says, {"share": most})
    else:
        good = file.good()
        one_label = good.value in (0.0, 1.0)
        yield Check(f"labels_{name}", one_label, f"{name}: {good} of the answers are good", good.to_dict())
    longer = file.longer()
    says = f"{name}: the longer response is the better one in {longer} (AUC)"
    yield _judged(f"length_{name}", longer, tolerance, says)


def _judged(name: str, share: Interval, tolerance: float, says: str) -> Check:
    """Return a check of a share that should be near 1/2; one that is not known is not judged."""
    far = None
    if share.low is not None and share.high is not None:
        far = share.low > 0.5 + tolerance or share.high < 0.5 - tolerance
    return Check(name, far, says, share.to_dict())
