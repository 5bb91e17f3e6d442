"""Cards for files that have none: the outputs of `adjudge label`, above all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from adjudge.io.cards.card import (
    UNKNOWN,
    card_cell,
    card_of,
    card_text,
    label_scores,
    origin_of,
    put,
    scorer_of,
    shared_license,
    sources_table,
    table,
)
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.io.values import number_of
from adjudge.options import Options, Range
from adjudge.statistics.intervals import Interval, wilson


@dataclass(frozen=True, kw_only=True)
class CardConfig(Options, what="--"):
    """Write a card beside each file of labels: who scored, how often with which outcome, and what came of it."""

    files: tuple[str, ...]
    """Outputs of `adjudge label`, or other datasets; folders written by datasets too."""

    license: str = ""
    """Licence of the data; without it, what the card says that is replaced, or else what all sources share."""

    source: tuple[str, ...] = ()
    """File, folder or dataset that the labels are of; give it several times for several."""

    pass_score: float = 0.5
    """A score of at least this is a pass."""

    max_row_mb: Annotated[int, Range(ge=1, le=1024, unit="MiB")] = 16
    """Largest row of a text file, in MiB; a larger one is counted as unreadable."""

    overwrite: bool = False
    """Replace cards that are there."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.files:
            raise ValueError("no file is named; give at least one")


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSummary:
    """What a file of labels holds.

    Attributes:
        file: the file.
        card: where its card is.
        rows: readable rows.
        unreadable: rows that could not be read.
        counts: scores by (scorer, fingerprint, status, reason).
        means: by scorer and fingerprint: the mean of the known values, None where none is known.
        passes: by scorer and fingerprint: the share of passes among the known values, with Wilson's interval.
    """

    file: str
    card: str
    rows: int
    unreadable: int
    counts: Mapping[tuple[str, str, str, str], int]
    means: Mapping[tuple[str, str], float | None]
    passes: Mapping[tuple[str, str], Interval]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "file": self.file,
            "card": self.card,
            "rows": self.rows,
            "unreadable": self.unreadable,
            "counts": [
                {"scorer": scorer, "fingerprint": fingerprint, "status": status, "reason": reason, "count": count}
                for (scorer, fingerprint, status, reason), count in self.counts.items()
            ],
            "scorers": [
                {
                    "scorer": scorer,
                    "fingerprint": fingerprint,
                    "mean": self.means[scorer, fingerprint],
                    "pass_rate": measure.to_dict(),
                }
                for (scorer, fingerprint), measure in self.passes.items()
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CardReport:
    """What was written."""

    cards: tuple[CardSummary, ...]

    @property
    def found(self) -> bool:
        """Whether rows could not be read."""
        return any(card.unreadable for card in self.cards)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {"cards": [card.to_dict() for card in self.cards]}

    def lines(self) -> list[str]:
        """Return one line for each file."""
        return [
            f"{card.file}: {card.rows} rows, {sum(card.counts.values())} scores"
            + (f", {card.unreadable} rows unreadable" if card.unreadable else "")
            + f"; the card is {card.card}"
            for card in self.cards
        ]


def run_card(config: CardConfig, *, progress: object = None) -> CardReport:
    """Write a card for each file.

    Raises:
        ValueError: a file cannot be read, or has a card already; no card was written then.
        JobError: a file is damaged.
    """
    places = [_place(name, overwrite=config.overwrite) for name in config.files]
    summaries = [_count(name, place, config) for name, place in zip(config.files, places, strict=True)]
    for name, place, summary in zip(config.files, places, summaries, strict=True):
        put(place, _card(name, summary, config))
    return CardReport(cards=tuple(summaries))


def _place(name: str, *, overwrite: bool) -> Path:
    path = Path(name)
    if not path.exists():
        raise ValueError(f"there is no file or folder {name}; a card is written beside data on this disk")
    place = card_of(path)
    if place.exists() and not overwrite:
        raise ValueError(f"{place} exists already; replace it with --overwrite")
    return place


def _count(name: str, place: Path, config: CardConfig) -> CardSummary:
    rows = unreadable = 0
    counts: Counter[tuple[str, str, str, str]] = Counter()
    sums: dict[tuple[str, str], list[float]] = {}  # of known values: sum, how many, passes
    for row in open_source(name, limit=config.max_row_mb << 20).rows(Cursor()):
        if row.data is None:
            unreadable += 1
            continue
        rows += 1
        for score in label_scores(row.data):
            scorer = scorer_of(score)
            counts[(*scorer, score["status"], str(score.get("reason") or ""))] += 1
            own = sums.setdefault(scorer, [0.0, 0.0, 0.0])
            value = number_of(score.get("value")) if score["status"] == "scored" else None
            if value is not None:
                own[0] += value
                own[1] += 1
                own[2] += value >= config.pass_score
    values = sorted(sums.items())
    return CardSummary(
        file=name,
        card=str(place),
        rows=rows,
        unreadable=unreadable,
        counts=dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))),
        means={scorer: total / known if known else None for scorer, (total, known, _) in values},
        passes={scorer: wilson(passes, int(known)) for scorer, (_, known, passes) in values},
    )


def _card(name: str, summary: CardSummary, config: CardConfig) -> str:
    origins = [origin_of(source) for source in config.source]
    scorers = sorted({key[0] for key in summary.counts})
    before = origin_of(name).license  # of a card that is replaced
    what = "Scores of" if scorers else "A dataset without scores of"
    about = f"{what} `adjudge label`. This card was written by `adjudge data card`."
    lines = [f"# {card_cell(Path(name).resolve().name)}", "", about]
    counts = [("readable", summary.rows), ("unreadable", summary.unreadable)]
    lines += table("Rows", ("", "rows"), [row for row in counts if row[1]] or counts[:1])
    lines += sources_table(origins)
    lines += table(
        "Scores",
        ("scorer", "fingerprint", "status", "reason", "scores"),
        [(*key, count) for key, count in summary.counts.items()],
    )
    lines += table(
        "Values",
        ("scorer", "fingerprint", "known", "mean", f"share of at least {config.pass_score:g}, 95 %"),
        [
            (*scorer, measure.n, "" if (mean := summary.means[scorer]) is None else f"{mean:.4f}", str(measure))
            for scorer, measure in summary.passes.items()
        ],
    )
    return card_text(
        lines,
        license=shared_license(origins, config.license or (before if before != UNKNOWN else "")),
        rows=summary.rows,
        tags=["labels"] if scorers else [],
        maker=f"label ({', '.join(scorers)})" if scorers else "",
        fingerprint="-".join(sorted({key[1] for key in summary.counts})),
        origins=origins,
    )
