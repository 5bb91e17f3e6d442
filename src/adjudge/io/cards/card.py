"""Cards of datasets and models: where rows come from, who scored them, and the tables that cards are written with.

The head of a card is YAML between two lines of dashes, as the Hugging Face hub reads it (its documentation of dataset
cards: `license`, `size_categories`, `tags`).  A card that somebody else wrote is data like any other: it is read
without aliases, up to a size, and never trusted to be whole.

A card has no dates and no paths of this machine, so the same job writes the same bytes.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import yaml

_LIMIT: Final = 1 << 20
_MARK: Final = "---"


class _NoAliases(yaml.SafeLoader):
    """Reads no aliases: a few nested ones stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


def written_head(head: Mapping[str, Any]) -> str:
    """Return the lines of a head."""
    body = yaml.safe_dump(dict(head), sort_keys=False, allow_unicode=True, width=1000)
    return f"{_MARK}\n{body}{_MARK}\n"


def read_head(path: Path) -> dict[str, Any]:
    """Return the head of a card; empty if there is none that can be read."""
    try:
        with path.open("rb") as file:
            text = file.read(_LIMIT).decode()
    except (OSError, UnicodeDecodeError):
        return {}
    begin, mark, rest = text.replace("\r\n", "\n").partition(f"{_MARK}\n")
    body, end, _ = rest.partition(f"\n{_MARK}")
    if begin.strip() or not mark or not end:
        return {}
    try:
        head = yaml.load(body, Loader=_NoAliases)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return {str(key): value for key, value in head.items()} if isinstance(head, dict) else {}


def size_category(rows: int) -> str:
    """Return the hub's name for a number of rows."""
    steps = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
    below = ("n<1K", *(f"{low}<n<{high}" for low, high in itertools.pairwise(steps)))
    return next((name for power, name in enumerate(below, 3) if rows < 10**power), "n>1T")


UNKNOWN: Final = "unknown"
KEY: Final = "adjudge"  # of the head, where a card keeps its origins for the next one
_DEEPEST: Final = 20
_HEAD_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """One dataset that rows come from.

    Attributes:
        name: file or folder without its path, or the name on the hub.
        digest: hash of its files' names, sizes and first MiB; of a dataset on the hub, the revision that was asked for.
        bytes: its size; None if it is not on this disk.
        license: as its card or the user says; "unknown" if nobody does.
        made_by: the maker that its card names; "" if it has no card.
        fingerprint: of that maker.
        sources: what it was made from, as its card says.
    """

    name: str
    digest: str = ""
    bytes: int | None = None
    license: str = UNKNOWN
    made_by: str = ""
    fingerprint: str = ""
    sources: tuple[Origin, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, without what says nothing."""
        record = {
            "name": self.name,
            "digest": self.digest,
            "bytes": self.bytes,
            "license": self.license,
            "made_by": self.made_by,
            "fingerprint": self.fingerprint,
            "sources": [source.to_dict() for source in self.sources],
        }
        return {key: value for key, value in record.items() if value not in (None, "", [])}

    @classmethod
    def from_dict(cls, data: Any, depth: int = 0) -> Origin | None:
        """Return the origin that a card holds; None for what is none."""
        if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
            return None
        texts = {key: data[key] for key in ("digest", "license", "made_by", "fingerprint") if _text(data.get(key))}
        size = data.get("bytes")
        return cls(
            name=data["name"],
            bytes=size if isinstance(size, int) and not isinstance(size, bool) else None,
            sources=_sources(data.get("sources"), depth + 1),
            **texts,
        )

    def all(self, depth: int = 0) -> Iterator[tuple[int, Origin]]:
        """Yield it and all its sources, each with how far away it is."""
        yield depth, self
        for source in self.sources:
            yield from source.all(depth + 1)


def card_of(path: Path) -> Path:
    """Return where the card of a file or a datasets folder is."""
    return path / "README.md" if path.is_dir() else path.with_name(f"{path.name}.card.md")


def origin_of(name: str, *, license: str = "", revision: str = "") -> Origin:
    """Return what is known about an input, without asking the network.

    Args:
        name: file, folder or name on the hub.
        license: what the user says; "" leaves it to the card.
        revision: of a dataset on the hub.
    """
    path = Path(name)
    if not path.exists():
        return Origin(name=name, digest=revision, license=license or UNKNOWN)
    head = read_head(card_of(path))
    told = head.get(KEY)
    told = told if isinstance(told, Mapping) else {}
    said = license or head.get("license")
    digest, size = _content(path)
    return Origin(
        name=path.resolve().name,
        digest=digest,
        bytes=size,
        license=said if isinstance(said, str) and said else UNKNOWN,
        made_by=_text(told.get("maker")),
        fingerprint=_text(told.get("fingerprint")),
        sources=_sources(told.get("sources"), 1),
    )


def _content(path: Path) -> tuple[str, int]:
    """Return a hash of names, sizes and first MiB of the files that hold data, and their bytes."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    digest, size = hashlib.sha256(), 0
    for file in files:
        if file == card_of(path):
            continue
        bytes_here = file.stat().st_size
        with file.open("rb") as stream:
            head = hashlib.sha256(stream.read(_HEAD_BYTES)).hexdigest()
        place = file.relative_to(path).as_posix() if path.is_dir() else ""
        digest.update(f"{place}\0{bytes_here}\0{head}\n".encode("utf-8", "surrogateescape"))
        size += bytes_here
    return digest.hexdigest()[:16], size


def _sources(data: Any, depth: int) -> tuple[Origin, ...]:
    if not isinstance(data, list) or depth > _DEEPEST:
        return ()
    return tuple(origin for item in data if (origin := Origin.from_dict(item, depth)) is not None)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


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
