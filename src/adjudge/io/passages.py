"""Texts in a file that are searched, ranked by BM25.

Not covered: word forms and meanings; a word is found where it stands as it is, in capitals or not; passages of long
texts: the beginning of a text is shown, so cut long ones before.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from adjudge.fingerprints import signed
from adjudge.options import Count, Options

_WORD = re.compile(r"\w+")
_SATURATION = 1.2  # how soon more of the same word stops counting (k1)
_LENGTH = 0.75  # how much long texts are held back, from 0 to 1 (b)


class Bm25:
    """An index of texts, in memory.

    Args:
        texts: what is searched.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(words(text)) for text in texts]
        sizes = [sum(count.values()) for count in counts]
        mean = max(1.0, sum(sizes) / max(1, len(sizes)))
        self._found: dict[str, list[tuple[int, float]]] = {}
        for place, (count, size) in enumerate(zip(counts, sizes, strict=True)):
            held = _SATURATION * (1 - _LENGTH + _LENGTH * size / mean)
            for word, times in count.items():
                self._found.setdefault(word, []).append((place, times / (times + held)))
        self._size = len(texts)

    def best(self, query: str, count: int) -> list[int]:
        """Return the places of at most `count` texts that share words with the query, best first."""
        scores: dict[int, float] = {}
        for word in words(query):
            held_by = self._found.get(word, [])
            weight = math.log(1 + (self._size - len(held_by) + 0.5) / (len(held_by) + 0.5))
            for place, share in held_by:
                scores[place] = scores.get(place, 0.0) + weight * share
        return sorted(scores, key=lambda place: (-scores[place], place))[:count]


def words(text: str) -> list[str]:
    """Return a text's words, without regard to capitals."""
    return _WORD.findall(text.casefold())


_MAX_WORDS = 64
"""Words of a query that are looked at."""


@dataclass(frozen=True, kw_only=True)
class Passages(Options, what="search option"):
    """Finds texts by their words.

    Attributes:
        documents: path of a JSON-lines file; each line is an object with "text", and may have "title".
        count: most texts of an answer.
        max_text: characters of each that are shown.
        numbered: begin each with `Doc 1(Title: "...")`, as Search-R1 does: so rewards of search agents tell the
            texts of an answer apart, and see which of them came before.
    """

    documents: str
    count: Count = 3
    max_text: Count = 500
    numbered: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._index  # noqa: B018 a bad file is told before any work

    @cached_property
    def digest(self) -> str:
        """What its answers depend on, wherever the file lies."""
        held = hashlib.sha256()
        for one in self._texts:
            held.update(json.dumps(one).encode())
        return signed("passages", self.count, self.max_text, self.numbered, held.hexdigest())

    def found(self, query: str) -> str:
        """Return the best matches, or that there are none; "" for a query without words."""
        asked = words(query)[:_MAX_WORDS]
        if not asked:
            return ""
        places = self._index.best(" ".join(asked), self.count)
        return "\n".join(self._shown(place, number) for number, place in enumerate(places, 1)) or "(nothing was found)"

    @cached_property
    def _texts(self) -> list[tuple[str, str]]:
        try:
            with open(self.documents, encoding="utf-8") as file:
                texts = [_document(line, f"{self.documents}:{at}") for at, line in enumerate(file, 1) if line.strip()]
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"the search tool's documents {self.documents!r} cannot be read: {error}") from error
        if not texts:
            raise ValueError(f"the search tool's documents {self.documents!r} hold nothing; give a text in each line")
        return texts

    @cached_property
    def _index(self) -> Bm25:
        return Bm25([f"{title}\n{text}" for title, text in self._texts])

    def _shown(self, place: int, number: int) -> str:
        title, text = self._texts[place]
        shown = text if len(text) <= self.max_text else f"{text[: self.max_text]}... ({len(text)} characters)"
        if self.numbered:
            return f'Doc {number}(Title: "{title.replace(chr(34), chr(39))}") {shown}'
        return f"[{title}] {shown}" if title else shown


def _document(line: str, where: str) -> tuple[str, str]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} is not JSON: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        raise ValueError(f'{where} has no text; write an object such as {{"text": "...", "title": "..."}}')
    title = record.get("title")
    return "" if title is None else " ".join(str(title).split())[:200], record["text"]
