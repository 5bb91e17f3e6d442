"""The card of a dataset that a job made, beside it: what it holds, how it was made, and of what.

Its head is what the Hugging Face hub reads.  The card of the input, if it has one, is read for its licence and its own
sources, so that a chain of jobs stays visible.

Not covered: whether a licence allows what was made; a licence that nobody named is called unknown.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from adjudge.io.cards.card import (
    card_cell,
    card_of,
    card_rows,
    card_text,
    label_scores,
    origin_of,
    package_version,
    put,
    scorer_of,
    shared_license,
    sources_table,
    table,
)
from adjudge.io.errors import JobError
from adjudge.io.jobs.config import JobConfig
from adjudge.io.jobs.maker import Maker
from adjudge.io.jobs.report import JobReport
from adjudge.io.row import Cursor

_LABELLED_ROWS: Final = 1_000
_NO_OPTIONS: Final = {"restart", "overwrite", "in_flight", "output"}  # they change nothing in the output


@runtime_checkable
class HasCardFacts(Protocol):
    """A maker that has more to say on its card: models, scorers, second files."""

    @property
    def card_facts(self) -> Mapping[str, Any]:
        """Plain JSON data, nested or not; the same in every run of the job."""
        ...


def write_job_card(report: JobReport, config: JobConfig, maker: Maker) -> None:
    """Write `OUTPUT.card.md`, or `README.md` into a datasets folder.

    Raises:
        OSError: it cannot be written.
    """
    origins = [origin_of(config.input, license=config.license, revision=config.revision)] if config.input else []
    labels = label_sources(config)
    output = Path(config.output)
    lines = [f"# {card_cell(output.name)}", "", f"{about(config)} Made by `adjudge data` ({card_cell(report.maker)})."]
    lines += table("Rows", ("", "rows"), _counts(report))
    lines += sources_table(origins)
    if labels:
        lines += table("Label sources", ("scorer", "fingerprint", "scores"), [(*key, n) for key, n in labels.items()])
        lines += ["", f"Counted over the first {_LABELLED_ROWS} rows of the input."]
    lines += table("Maker", ("", ""), list(_facts(report, maker)))
    lines += table("Options", ("option", "value"), options(config))
    if report.notes:
        lines += ["", "## Notes", "", *(f"- {card_cell(note)}" for note in report.notes)]
    text = card_text(
        lines,
        license=shared_license(origins, config.license),
        rows=report.made,
        tags=[maker.name.split(" ", 1)[0]],
        maker=report.maker,
        fingerprint=report.fingerprint,
        origins=origins,
    )
    put(card_of(output), text)


def about(config: Any) -> str:
    """Return the first sentence of a configuration's docstring."""
    return " ".join((type(config).__doc__ or "").strip().split("\n\n")[0].split())


def options(config: Any) -> list[tuple[str, Any]]:
    """Return the options that were given, without those that change nothing in the output."""
    given = []
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        if item.name not in _NO_OPTIONS and value != item.default:
            given.append((item.name, [_shown(each) for each in value] if isinstance(value, tuple) else _shown(value)))
    return given


def _shown(value: Any) -> Any:
    """Return a value without the path of this machine."""
    return Path(value).name if isinstance(value, str) and value.startswith("/") and Path(value).exists() else value


def _counts(report: JobReport) -> list[tuple[str, Any]]:
    dropped = sorted(report.dropped.items(), key=lambda entry: (-entry[1], entry[0]))
    return [("read", report.rows), ("written", report.made), *((f"left out: {why}", n) for why, n in dropped)]


def _facts(report: JobReport, maker: Maker) -> Iterator[tuple[str, Any]]:
    yield "name", report.maker
    yield "fingerprint", report.fingerprint
    yield "adjudge", package_version()
    if isinstance(maker, HasCardFacts):
        yield from card_rows(maker.card_facts)
    for name, number in report.counts.items():
        yield f"counted: {name}", int(number) if number == int(number) else number
    if report.cost.prompt_tokens or report.cost.completion_tokens:
        yield "prompt tokens", report.cost.prompt_tokens
        yield "completion tokens", report.cost.completion_tokens


def label_sources(config: JobConfig) -> Counter[tuple[str, str]]:
    """Return how often each scorer, with its fingerprint, is named in the first rows of an input that holds labels.

    A dataset of the hub is not asked a second time.
    """
    sources: Counter[tuple[str, str]] = Counter()
    if not config.input or not Path(config.input).exists():
        return sources
    try:
        for row in itertools.islice(config.open().rows(Cursor()), _LABELLED_ROWS):
            sources.update(scorer_of(score) for score in label_scores(row.data or {}))
    except (ValueError, JobError):  # the job has read it; what it is now is no matter of a card
        return Counter()
    return Counter(dict(sorted(sources.items())))
