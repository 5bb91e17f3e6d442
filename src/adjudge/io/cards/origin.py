"""Where rows come from: the file, its own card, and the cards of what that was made from.

The head of a card is YAML between two lines of dashes, as the Hugging Face hub reads it (its documentation of dataset
cards: `license`, `size_categories`, `tags`).  A card that somebody else wrote is data like any other: it is read
without aliases, up to a size, and never trusted to be whole.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
