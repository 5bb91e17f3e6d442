"""The tables of the page about the comparison, and its file of rows on which verifiers differ.

Not covered: what the page says around the tables, which people write.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.comparison.rows import LabelledRow, LabelledSet
from benchmarks.comparison.worker import Outcome
from benchmarks.verifier_peers import Peer

BEGIN, END = "<!-- made by python -m benchmarks.comparison: begin -->", "<!-- end -->"
MOST_BYTES = 290_000
"""Of the file of differences."""
_LONGEST = 160  # characters of a text in it

COLUMNS = ("verifier", "rows", "false accepts", "false rejects", "undecided", "crashes", "s / 1,000 rows")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What one verifier said of one set.

    Attributes:
        title: its name and version.
        outcomes: by the name of the row; a row that it cannot be asked about has none.
        missing: why it judged nothing.
    """

    title: str
    outcomes: Mapping[str, Outcome]
    missing: str = ""

    def count(self, rows: Sequence[LabelledRow], verdict: str, label: bool | None = None) -> int:
        """Return how many rows, of a label where one is given, have a verdict."""
        said = [(self.outcomes.get(row.sample.id), row.label) for row in rows]
        return sum(one is not None and one.verdict == verdict and label in (None, true) for one, true in said)

    @property
    def seconds(self) -> float | None:
        """Seconds for 1,000 rows, without the first one, for which a verifier imports what it needs."""
        took = [outcome.seconds for outcome in [*self.outcomes.values()][1:]]
        return 1000 * sum(took) / len(took) if took else None


@dataclass(frozen=True, kw_only=True)
class Result:
    """A set, the rows that were drawn from it, and what the verifiers said.

    Attributes:
        total: rows of the whole set.
        judged: by the name of the verifier.
    """

    of: LabelledSet
    rows: Sequence[LabelledRow]
    total: int
    judged: Mapping[str, Judged]


def cells(judged: Judged, rows: Sequence[LabelledRow]) -> Iterator[str]:
    """Yield what a verifier's line shows in each column."""
    yield judged.title
    if judged.missing:
        yield from (f"not run: {judged.missing}", *[""] * (len(COLUMNS) - 2))
        return
    yield f"{len(judged.outcomes):,}"
    yield str(judged.count(rows, "accepts", False))
    yield str(judged.count(rows, "rejects", True))
    yield str(judged.count(rows, "undecided"))
    crashed, hangs = judged.count(rows, "crashed"), judged.count(rows, "hangs")
    yield f"{crashed + hangs} ({hangs} hang)" if hangs else str(crashed)
    yield (
        "" if judged.seconds is None else f"{judged.seconds:,.1f}" if judged.seconds < 100 else f"{judged.seconds:,.0f}"
    )


def table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [columns, ["---"] * len(columns), *lines])


def tables(results: Sequence[Result], peers: Mapping[str, Mapping[str, Peer]], not_run: Mapping[str, str]) -> str:
    """Return the tables: one for each set, the forms that verifiers are given, and those that were not run."""
    parts = []
    for result in results:
        right = sum(row.label for row in result.rows)
        told = f"{len(result.rows):,} of {result.total:,} rows, {right:,} of them right. Labels: {result.of.labels}."
        told_of = [judged for judged in result.judged.values() if judged.outcomes or judged.missing]
        lines = [[*cells(judged, result.rows)] for judged in told_of]
        parts += [f"### {result.of.name}", told, table(COLUMNS, lines)]
    asked = {
        (peer.name, peer.form): [peer.name, peer.form]
        for task in dict.fromkeys(result.of.task for result in results)
        for peer in peers[task].values()
    }
    parts += ["### In which form each is asked", table(("verifier", "form"), [*asked.values()])]
    parts += ["### Not run", table(("verifier", "why"), [*map(list, not_run.items())])]
    return "\n\n".join(parts)


def differences(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the rows on which verifiers differ from each other or from the label, adjudge's own mistakes first."""
    found: list[tuple[bool, dict[str, Any]]] = []
    for result in results:
        for row in result.rows:
            name, right = row.sample.id, "accepts" if row.label else "rejects"
            said = {
                who: judged.outcomes[name].verdict for who, judged in result.judged.items() if name in judged.outcomes
            }
            if set(said.values()) <= {right}:
                continue
            shown = {key: text[:_LONGEST] + "..." * (len(text) > _LONGEST) for key, text in row.shown.items()}
            verdicts = {
                verdict: [who for who in said if said[who] == verdict] for verdict in dict.fromkeys(said.values())
            }
            line = {"set": result.of.name, "row": name, "label": "right" if row.label else "wrong", **shown, **verdicts}
            found.append((said.get("adjudge", right) == right, line))
    return [line for _, line in sorted(found, key=lambda one: one[0])]


def write(page: Path, results: Sequence[Result], text: str, about: str) -> None:
    """Write the tables between their marks in the page, and the differences beside it.

    Args:
        page: a Markdown file with both marks; the differences go into the folder of its name.
        results: of all sets.
        text: the tables.
        about: when and how they were made.

    Raises:
        ValueError: the page lacks the marks.
    """
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no lines {BEGIN!r} and {END!r} between which the tables could stand: add them")
    lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in differences(results)]
    kept, size = [], 0
    for line in lines:
        size += len(line.encode())
        if size > MOST_BYTES:
            break
        kept.append(line)
    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    (folder / "differences.jsonl").write_text("".join(kept), encoding="utf-8")
    about += f" Rows that differ: {len(lines):,}, of which the file has {len(kept):,}."
    page.write_text(f"{before}{BEGIN}\n\n{about}\n\n{text}\n\n{END}{after}", encoding="utf-8")
