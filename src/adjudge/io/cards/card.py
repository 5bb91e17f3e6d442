"""What the cards of models and datasets are written with: tables, sources, and who scored.

A card has no dates and no paths of this machine, so the same job writes the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from adjudge.io.cards.origin import KEY, UNKNOWN, Origin, size_category, written_head


def card_rows(record: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return a record's values with their names, nested ones with dots; those that say nothing are left out."""
    rows: list[tuple[str, Any]] = []
    for key, value in record.items():
        if isinstance(value, Mapping):
            rows += card_rows(value, f"{prefix}{key}.")
        elif value not in (None, "", [], ()):
            rows.append((f"{prefix}{key}", value))
    return rows


def card_cell(value: Any) -> str:
    """Return a value as one cell of a table: data may hold anything, and nothing of it may become markup."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    flat = " ".join(text.split())[:300]
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#" else char for char in flat if char.isprintable())


def put(path: Path, text: str) -> None:
    """Write a card in one step."""
    draft = path.with_name(f".{path.name}.part")
    draft.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    draft.replace(path)


def package_version() -> str:
    """Return the version of adjudge."""
    try:
        return version("adjudge")
    except PackageNotFoundError:
        return UNKNOWN


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return the lines of a section with a table; none without rows."""
    if not rows:
        return []
    lines = ["", f"## {title}", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return lines + [f"| {' | '.join(card_cell(value) for value in row)} |" for row in rows]


def sources_table(origins: Sequence[Origin]) -> list[str]:
    """Return the lines of a table of sources and the sources of those, each behind its own with one more arrow."""
    rows = [
        (f"{'↳ ' * depth}{each.name}", each.license, each.bytes or "", each.digest, _made_by(each))
        for origin in origins
        for depth, each in origin.all()
    ]
    return table("Sources", ("source", "licence", "bytes", "digest", "made by"), rows)


def card_text(
    lines: Sequence[str],
    *,
    license: str,
    rows: int,
    tags: Sequence[str],
    maker: str,
    fingerprint: str,
    origins: Sequence[Origin],
) -> str:
    """Return a dataset's card: lines behind a head that the hub reads, and that the next card has its origins of."""
    head = {
        "license": license,
        "size_categories": [size_category(rows)],
        "tags": ["adjudge", *tags],
        KEY: {
            "maker": maker,
            "fingerprint": fingerprint,
            "version": package_version(),
            "sources": [origin.to_dict() for origin in origins],
        },
    }
    return written_head(head) + "\n" + "\n".join(lines) + "\n"


def shared_license(origins: Sequence[Origin], given: str) -> str:
    """Return the licence that was given, or the one that all sources share, or "unknown"."""
    licenses = {each.license for each in origins}
    return given or (licenses.pop() if len(licenses) == 1 else UNKNOWN)


def _made_by(origin: Origin) -> str:
    return f"{origin.made_by} ({origin.fingerprint})" if origin.fingerprint else origin.made_by


def label_scores(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the scores that a row of a label job holds: one, or one for each scorer; none if it is no such row."""
    several = row.get("scores")
    scores = list(several.values()) if isinstance(several, Mapping) else [row]
    return [
        score
        for score in scores
        if isinstance(score, Mapping)
        and isinstance(score.get("status"), str)
        and isinstance(score.get("provenance"), Mapping)
        and isinstance(score["provenance"].get("scorer"), str)
    ]


def scorer_of(score: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name and the fingerprint of the scorer of a score of `label_scores`."""
    provenance = score["provenance"]
    return provenance["scorer"], str(provenance.get("fingerprint") or "")
