"""Two scores of each sample: where they agree, where they flip, and how two label outputs are read side by side."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.protocol import Sample, Score

OUTPUTS: Final = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", ".parquet")
"""How the outputs of `adjudge label` end."""

_SCORE_FIELDS: Final = tuple(item.name for item in dataclasses.fields(Score))
_ROW_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorePair:
    """Two scores of one sample, what A gave and what B gave; without the sample where only scores are at hand."""

    id: str
    first: Score
    second: Score
    sample: Sample | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        sample = self.sample.to_dict() if self.sample is not None else None
        return {"id": self.id, "a": self.first.to_dict(), "b": self.second.to_dict(), "sample": sample}


@dataclass(slots=True)
class ScorerComparison:
    """What two scorers agree and disagree on.

    Attributes:
        tolerance: largest difference of two values that is not a flip.
        keep: flips kept, in the order of the input; None keeps all.
        pairs: samples both gave a score for.
        verdicts: pairs by what A said, what B said, and whether that is a flip.
        unusable: rows that hold no sample both can score, with the reason.
    """

    tolerance: float
    keep: int | None
    pairs: int = 0
    flips: list[ScorePair] = field(default_factory=list)
    verdicts: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    unusable: list[tuple[str, str]] = field(default_factory=list)

    def add(self, pair: ScorePair) -> None:
        """Count one pair."""
        flipped = differ(pair.first.value, pair.second.value, self.tolerance, pair.first.status != pair.second.status)
        self.pairs += 1
        self.verdicts[verdict(pair.first), verdict(pair.second), flipped] += 1
        if flipped and (self.keep is None or len(self.flips) < self.keep):
            self.flips.append(pair)

    @property
    def flipped(self) -> int:
        """The number of flips, those not kept included."""
        return sum(count for (_, _, flipped), count in self.verdicts.items() if flipped)

    def ordered(self) -> list[tuple[tuple[str, str, bool], int]]:
        """Return the counts, flips first, then the largest first."""
        return sorted(self.verdicts.items(), key=lambda entry: (not entry[0][2], -entry[1], entry[0]))


def differ(first: float | None, second: float | None, tolerance: float, other_status: bool) -> bool:
    """Return whether two scores of a sample differ: values by more than the tolerance, others by their status."""
    if first is None or second is None:
        return other_status
    return abs(first - second) > tolerance


def verdict(score: Score) -> str:
    """Return a score as its value or status, and its reason."""
    value = score.status if score.value is None else f"{score.value:.6g}"
    return f"{value} {score.reason}".strip()


def written_pairs(a: str, b: str) -> Iterator[ScorePair]:
    """Yield the pairs in two outputs of `adjudge label`."""
    for index, (one, other) in enumerate(itertools.zip_longest(_written(a), _written(b))):
        if one is None or other is None:
            raise ValueError(
                f"{a if one is None else b} ends after {index} scores, and the other goes on; label the same rows twice"
            )
        if one[0] != other[0]:
            raise ValueError(
                f"score {index} is of sample {one[0]!r} in {a} and of {other[0]!r} in {b}; compare outputs of one input"
            )
        if None not in (one[1], other[1]) and one[1] != other[1]:
            raise ValueError(
                f"score {index}, of sample {one[0]!r}, is of another prompt or response in {a} than in {b}; compare "
                "outputs of one input, in which the same columns were read"
            )
        yield ScorePair(id=one[0], first=one[2], second=other[2])


def _written(path: str) -> Iterator[tuple[str, str | None, Score]]:
    """Yield the name and the hash of each sample, None where a scorer could not take it, and its score."""
    for row in open_source(path, limit=_ROW_BYTES).rows(Cursor()):
        if row.data is None:
            raise ValueError(f"row {row.index} of {path} cannot be read: {row.error}")
        data = {name: row.data[name] for name in _SCORE_FIELDS if name in row.data}
        for name in ("evidence", "parts"):  # text in Parquet, whose columns have one shape
            if isinstance(data.get(name), str):
                data[name] = json.loads(data[name])
        try:
            score = Score.from_dict(data)
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"row {row.index} of {path} is not a score that `adjudge label` wrote: {error}") from error
        name = "/".join(str(row.data[name]) for name in ("id", "column") if name in row.data)
        yield name, row.data.get("sample_hash"), score
