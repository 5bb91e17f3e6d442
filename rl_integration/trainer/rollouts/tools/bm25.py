"""Which texts a few words speak of: BM25 (Robertson and Zaragoza, 2009), with Lucene's inverse document frequency.

Not covered: word forms and meanings; a word is found where it stands as it is, in capitals or not.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"\w+")


class Bm25:
    """An index of texts, in memory.

    Args:
        texts: what is searched.
        saturation: how soon more of the same word stops counting (k1).
        length: how much long texts are held back, from 0 to 1 (b).
    """

    def __init__(self, texts: Sequence[str], *, saturation: float = 1.2, length: float = 0.75) -> None:
        counts = [Counter(words(text)) for text in texts]
        sizes = [sum(count.values()) for count in counts]
        mean = max(1.0, sum(sizes) / max(1, len(sizes)))
        self._found: dict[str, list[tuple[int, float]]] = {}
        for place, (count, size) in enumerate(zip(counts, sizes, strict=True)):
            held = saturation * (1 - length + length * size / mean)
            for word, times in count.items():
                self._found.setdefault(word, []).append((place, times / (times + held)))
        self._size = len(texts)

    def best(self, query: str, count: int) -> list[int]:
        """Return the places of the texts that fit best, the best first; of equals, the one that comes first.

        Args:
            query: words; one that is there twice counts twice.
            count: most places; fewer where fewer texts have any of the words.
        """
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
