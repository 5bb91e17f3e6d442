"""Texts as sets of n-grams, MinHash signatures of them, and the bands in which near-duplicates meet.

Two texts agree in each number of their signatures with a chance equal to the Jaccard similarity of their n-grams
(Broder 1997).  Signatures cut into bands of r numbers make two texts of similarity s candidates with a chance of
1 - (1 - s^r)^b (Indyk and Motwani 1998; Leskovec, Rajaraman and Ullman, chapter 3).  The same text has the same
signature on every machine: tokens are hashed with BLAKE2b, never with `hash`.

A text is normalised (NFKC, case folded, invisible characters removed, white space as one space) and cut into words,
single characters of scripts that are written without spaces (Han, Kana, Thai, Lao, Khmer, Myanmar, Tibetan), and
single symbols.  A text with fewer tokens than an n-gram is one n-gram.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from adjudge.options import Options, Range

TokenKind: TypeAlias = Literal["words", "characters"]

_INVISIBLE: Final = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_SPACELESS: Final = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
# Vowel signs and accents that no letter takes in are no \w, but without them words of Hindi or Hebrew fall to pieces.
_MARKS: Final = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
# A run of 64 characters without a space is no word but data, such as base64; its pieces are tokens.
_WORD: Final = re.compile(rf"(?:[^\W_]|[{_MARKS}]){{1,64}}")
_TOKEN: Final = re.compile(rf"(?:[^\W_]|[{_MARKS}]){{1,64}}|\S")
_ASCII_WORD: Final = re.compile(r"[a-z0-9]{1,64}")
_ASCII_TOKEN: Final = re.compile(r"[a-z0-9]{1,64}|\S")
_MARK_RUN: Final = re.compile(r"([^\w\s]{64,})")
_MARK_SLICE: Final = 64


def normalised(text: str) -> str:
    """Return a text without what does not change its meaning: case, width, ligatures, invisible characters, spaces."""
    if text.isascii():
        return " ".join(text.lower().split())
    text = _compose(_INVISIBLE.sub("", text)).casefold()
    # Folding can take a composition apart ("\u0130"), and composing can make a letter that folds.
    return " ".join(_compose(text).casefold().split())


def tokens(text: str, *, symbols: bool = True) -> list[str]:
    """Return the tokens of a text, normalised.

    Without `symbols`, punctuation and operators do not count, and "a, b" equals "a b"; a text that has nothing else
    keeps them in any case.
    """
    text = normalised(text)
    if text.isascii():
        cut = (_ASCII_TOKEN if symbols else _ASCII_WORD).findall(text)
    else:
        cut = (_TOKEN if symbols else _WORD).findall(_SPACELESS.sub(r" \g<0> ", text))
    return cut if cut or symbols or not text else tokens(text)


def grams(cut: Sequence[str], size: int) -> list[str]:
    """Return the runs of so many tokens as texts in order; all tokens as one if there are fewer.

    Two runs give the same text only if they are the same: no token holds a space, but single characters, which are
    joined without one.
    """
    if not cut:
        return []
    if isinstance(cut, str):
        return [cut[start : start + size] for start in range(max(1, len(cut) - size + 1))]
    if size == 1:
        return list(cut)
    return [" ".join(cut[start : start + size]) for start in range(max(1, len(cut) - size + 1))]


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the size of the common part over that of both together, 0 to 1; 1 for two empty sets."""
    common = len(one & other)
    together = len(one) + len(other) - common
    return common / together if together else 1.0


def _compose(text: str) -> str:
    """Return NFKC in linear time: the standard library sorts a run of combining marks in quadratic time."""
    if _MARK_RUN.search(text) is None:
        return unicodedata.normalize("NFKC", text)
    pieces = []
    for part in _MARK_RUN.split(text):
        step = _MARK_SLICE if _MARK_RUN.fullmatch(part) else max(1, len(part))
        pieces += [unicodedata.normalize("NFKC", part[start : start + step]) for start in range(0, len(part), step)]
    return "".join(pieces)


UNICODE: Final = unicodedata.unidata_version  # what normalising depends on

Signature: TypeAlias = npt.NDArray[np.uint32]
Keys: TypeAlias = npt.NDArray[np.uint64]

_BLOCK = 1 << 13  # shingles hashed at once: 128 permutations of them are 4 MiB, which stays near the processor
_STEP = np.uint64(0x9E3779B97F4A7C15)  # odd, so that its powers mix all places of an n-gram
_RECALL = 0.95


@dataclass(frozen=True)
class MinHash(Options, what="option"):
    """Signatures of texts.

    Attributes:
        ngram: tokens of a shingle, 1 to 64.
        permutations: numbers of a signature, 4 bytes each; an estimate's error is at most 0.5 / sqrt(permutations).
        seed: of the permutations.
        kind: "words", or "characters" for n-grams of characters, spaces included.
    """

    ngram: Annotated[int, Range(ge=1, le=64)] = 5
    permutations: Annotated[int, Range(ge=1, le=4096)] = 128
    seed: Annotated[int, Range(ge=0, lt=1 << 64)] = 0
    kind: TokenKind = "words"

    def shingles(self, text: str) -> frozenset[str]:
        """Return the set whose similarity with that of another text signatures estimate; empty without a token."""
        return frozenset(grams(self._tokens(text), self.ngram))

    def _tokens(self, text: str) -> Sequence[str]:
        return normalised(text) if self.kind == "characters" else tokens(text)

    def signature(self, text: str) -> Signature:
        """Return (permutations,) numbers; a text without a token has the signature of the empty set, all ones."""
        times, plus = self._permutations
        hashes = (gram_hashes(self._tokens(text), self.ngram) >> np.uint64(32)).astype(np.uint32)
        lowest = np.full(self.permutations, 0xFFFFFFFF, dtype=np.uint32)
        for start in range(0, len(hashes), _BLOCK):
            block = times[:, None] * hashes[start : start + _BLOCK] + plus[:, None]
            lowest = np.minimum(lowest, block.min(axis=1))
        return lowest

    def signatures(self, texts: Sequence[str]) -> Signature:
        """Return (texts, permutations) numbers."""
        return np.array([self.signature(text) for text in texts], dtype=np.uint32).reshape(-1, self.permutations)

    @cached_property
    def _permutations(self) -> tuple[Signature, Signature]:
        """X -> times * x + plus modulo 2**32, with an odd factor, is a permutation of the 32-bit numbers."""
        count = self.permutations
        drawn = _scrambled(np.arange(1, 2 * count + 1, dtype=np.uint64) * _STEP + np.uint64(self.seed))
        low = (drawn >> np.uint64(32)).astype(np.uint32)
        return low[:count] | np.uint32(1), low[count:]


def gram_hashes(cut: Sequence[str], size: int) -> Keys:
    """Return a 64-bit number for each run of so many tokens, in order; one for all tokens if there are fewer.

    Of a text, the tokens are its characters.
    """
    if not cut:
        return np.zeros(0, dtype=np.uint64)
    if isinstance(cut, str):
        points = np.frombuffer(cut.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        numbers = _scrambled(points.astype(np.uint64))
    else:
        numbers = np.fromiter(map(_token_hash, cut), dtype=np.uint64, count=len(cut))
    size = min(size, len(numbers))
    mixed = np.zeros(len(numbers) - size + 1, dtype=np.uint64)
    for place in range(size):
        mixed = mixed * _STEP + numbers[place : len(numbers) - size + 1 + place]
    return _scrambled(mixed)


def estimate(one: Signature, other: Signature) -> float:
    """Return the share of numbers in which two signatures agree: an unbiased estimate of the Jaccard similarity."""
    return float(np.mean(one == other))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """How signatures are cut."""

    count: int
    width: int

    @classmethod
    def of(cls, threshold: float, permutations: int = 128) -> Bands:
        """Return the widest bands in which a pair exactly at the threshold meets with a chance of 0.95 or more.

        Wide bands bring fewer strangers together.  At 128 permutations: 18 bands of 7 for 0.8, 25 of 5 for 0.7, 42 of 3
        for 0.5.

        Args:
            threshold: Jaccard similarity from which on two texts are near-duplicates, in (0, 1].
            permutations: numbers of a signature.

        Raises:
            ValueError: the threshold is out of its range, or no bands reach the recall.
        """
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold {threshold}; choose a similarity above 0 and at most 1")
        for width in range(permutations, 0, -1):
            bands = cls(count=permutations // width, width=width)
            if bands.chance(threshold) >= _RECALL:
                return bands
        raise ValueError(
            f"{permutations} permutations find fewer than {_RECALL:.0%} of the pairs of similarity {threshold}; "
            "take more permutations or a higher threshold"
        )

    def chance(self, similarity: float) -> float:
        """Return the chance that two texts of this similarity meet in a band."""
        return float(1 - (1 - similarity**self.width) ** self.count)

    def keys(self, signatures: Signature) -> Keys:
        """Return (texts, count) 64-bit keys; two texts meet where a key is the same."""
        texts, columns = len(signatures), self.count * self.width
        parts = signatures[:, :columns].reshape(texts, self.count, self.width).astype(np.uint64)
        mixed = np.zeros((texts, self.count), dtype=np.uint64)
        for place in range(self.width):
            mixed = _scrambled(mixed * _STEP + parts[:, :, place])
        return mixed


def _scrambled(numbers: Keys) -> Keys:
    """Return SplitMix64's output function (Steele, Lea and Flood 2014): every bit depends on every bit."""
    mixed = numbers + _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    scrambled: Keys = mixed ^ (mixed >> np.uint64(31))
    return scrambled


@lru_cache(maxsize=1 << 16)  # words repeat; about 12 MB when full
def _token_hash(token: str) -> int:
    return int.from_bytes(hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
