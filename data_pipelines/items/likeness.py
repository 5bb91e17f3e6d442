"""How alike two texts are, from 0 to 1, which texts say the same, and where a quotation stands in a text.

"words" is the cosine of counts of words and of pairs of neighbouring words: "Ada beat Bob" and "Bob beat Ada" are 0.6
alike.  "letters" is the cosine of counts of two to four letters within words, which also sees inflected forms and
scripts without blanks.  Both are about wording: "is brief" and "does not ramble" have little in common.  A model of
embeddings knows better; RLBFF used Qwen3-Embedding-8B.  What two texts get does not depend on any other text.

A model's vector is the mean of the last hidden states of a text's tokens, or the state of its last token where the
folder says so (`1_Pooling/config.json` with `pooling_mode_lasttoken`, as Qwen3-Embedding has).  Texts are embedded one
at a time, so that neighbours change nothing.

Texts are tied when they are alike enough and have the same numbers, names and denials: wording alone would merge "won
in 1990" with "won in 1991".  A group is what ties connect; its middle, the text most like the others, stands for it.

A quotation is right in a text by `1 - edits / length`: edits are the fewest insertions, deletions and changes of
characters that make the quotation of some part of the text (Myers 1999, bit-parallel: 0.2 s for 300 characters in
50,000).  RapidFuzz's `partial_ratio`, which RLBFF asks to be above 60, counts a change as two edits and divides by both
lengths, so a loose quotation has more there.

Not covered: names in scripts without capital letters, denials in other languages than English and Chinese, quotations
with an ellipsis in the middle, instructions that models want before a text, the pooling file of a hub name.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import math
import re
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from adjudge.engines.model_digest import folder_digest, is_folder
from adjudge.extras import need

Matrix: TypeAlias = list[list[float]]

_WORD = re.compile(r"\w+")


class CountLikeness:
    """Cosines of counts; the fingerprint changes whenever two texts could be found more or less alike."""

    def __init__(self, of: str) -> None:
        self._counts = {"words": word_counts, "letters": letter_counts}[of]
        self.fingerprint = f"{of}:1"

    async def matrix(self, texts: Sequence[str]) -> Matrix:
        """Return the likeness of each text with each, symmetric, 1 on the diagonal; 0 where there is no word."""
        counts = [self._counts(text) for text in texts]
        lengths = [sum(n * n for n in one.values()) for one in counts]
        cosines = [[1.0] * len(texts) for _ in texts]
        for a, one in enumerate(counts):
            for b in range(a):
                if texts[a] != texts[b]:
                    cosines[a][b] = cosines[b][a] = _cosine(one, counts[b], lengths[a] * lengths[b])
        return cosines


def word_counts(text: str) -> Counter[str]:
    """Return how often each word and each pair of neighbouring words is in a text, in small letters."""
    words = _WORD.findall(text.casefold())
    return Counter(words) + Counter(f"{one} {two}" for one, two in itertools.pairwise(words))


def letter_counts(text: str) -> Counter[str]:
    """Return how often each run of two to four letters is in the words of a text, with a blank around each word."""
    return Counter(
        word[at : at + n]
        for word in (f" {bare} " for bare in _WORD.findall(text.casefold()))
        for n in (2, 3, 4)
        for at in range(len(word) - n + 1)
    )


def _cosine(one: Counter[str], two: Counter[str], lengths: int) -> float:
    if not lengths:
        return 0.0
    few, many = (one, two) if len(one) <= len(two) else (two, one)
    return sum(n * many[key] for key, n in few.items() if key in many) / math.sqrt(lengths)


_LONGEST = 512  # tokens; a principle or a fact is a sentence


class VectorLikeness:
    """Cosines of a model's vectors, no less than 0; the model is loaded when first used."""

    def __init__(self, model: str) -> None:
        self._name = model
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """The digest of a folder, or the name on the hub; and what is taken of the hidden states."""
        what = folder_digest(Path(self._name).expanduser()) if is_folder(self._name) else self._name
        return f"vectors:1:{what}:{'last' if _takes_last(self._name) else 'mean'}"

    async def matrix(self, texts: Sequence[str]) -> Matrix:
        """Return the cosines; raise `ValueError` without the model or Transformers."""
        vectors = await asyncio.to_thread(self._vectors, list(texts))
        return [
            [
                1.0 if texts[a] == texts[b] else max(0.0, math.fsum(x * y for x, y in zip(one, two, strict=True)))
                for b, two in enumerate(vectors)
            ]
            for a, one in enumerate(vectors)
        ]

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector of length 1 for each text."""
        with self._lock:
            vectors = {text: self._vector(text) for text in dict.fromkeys(texts)}
        return [vectors[text] for text in texts]

    def _vector(self, text: str) -> list[float]:
        import torch

        tokenizer, network = self._loaded
        row = tokenizer(text, return_tensors="pt", truncation=True, max_length=_LONGEST)
        with torch.inference_mode():
            states = network(input_ids=row["input_ids"], attention_mask=row["attention_mask"]).last_hidden_state[0]
        pooled = (states[-1] if _takes_last(self._name) else states.mean(dim=0)).double()
        vector: list[float] = (pooled / pooled.norm().clamp_min(1e-12)).tolist()
        return vector

    @functools.cached_property
    def _loaded(self) -> tuple[Any, Any]:
        transformers = need("transformers", "embedding texts with a model", "models")
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(self._name)
            return tokenizer, transformers.AutoModel.from_pretrained(self._name).eval()
        except (OSError, ValueError) as error:
            raise ValueError(f"the model of embeddings {self._name!r} cannot be loaded: {error}") from error


Likeness: TypeAlias = CountLikeness | VectorLikeness


def likeness_of(spec: str) -> Likeness:
    """Return what compares texts: "words", "letters", or "transformers:MODEL", a folder or name of an embedding model.

    Raises:
        ValueError: it is none of these.
    """
    if spec in ("words", "letters"):
        return CountLikeness(spec)
    kind, _, model = spec.partition(":")
    if kind == "transformers" and model.strip():
        return VectorLikeness(model.strip())
    raise ValueError(
        f"--likeness is {spec!r}; it must be words, letters, or transformers:MODEL with a model of embeddings"
    )


def _takes_last(model: str) -> bool:
    pooling = Path(model).expanduser() / "1_Pooling" / "config.json"
    if not pooling.is_file():
        return False
    return bool(json.loads(pooling.read_text(encoding="utf-8")).get("pooling_mode_lasttoken"))


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_DENIAL = re.compile(r"\b(?:not|no|never|without|neither|nor|cannot|lacks?|fails?)\b|n['’]t\b|[不没無无]")
_OPENING = frozenset(
    """a an the this that these those it its he she they his her their in on at by of for from with to as after before
    when while if and or but there who which what is are was were does do did has have each every all no not""".split()
)

Particulars = tuple[tuple[str, ...], tuple[str, ...], bool]


def particulars(text: str) -> Particulars:
    """Return the numbers of a text, its names (words with a capital), and whether it denies something."""
    names = {word.casefold() for word in _WORD.findall(text) if any(map(str.isupper, word))} - _OPENING
    return tuple(sorted(set(_NUMBER.findall(text)))), tuple(sorted(names)), denies(text)


def denies(text: str) -> bool:
    """Return whether a text denies something."""
    return _DENIAL.search(text.casefold()) is not None


def groups(texts: Sequence[str], alike: Matrix, least: float, *, names: bool = True) -> list[list[int]]:
    """Return the places of texts that say the same, the middle of each group first, groups in order of appearance.

    Two are tied when they are as much alike as `least` and deny alike, and with `names`, have the same numbers and
    names.
    """
    keys = [particulars(text) if names else ((), (), denies(text)) for text in texts]
    left = list(range(len(texts)))
    alike_groups = []
    while left:
        waiting, members = [left.pop(0)], []
        while waiting:
            one = waiting.pop()
            members.append(one)
            tied = {two for two in left if keys[two] == keys[one] and alike[one][two] >= least}
            left = [two for two in left if two not in tied]
            waiting += sorted(tied)
        alike_groups.append(_middle_first(sorted(members), texts, alike))
    return alike_groups


def _middle_first(members: list[int], texts: Sequence[str], alike: Matrix) -> list[int]:
    """Put the member that is most like the others first; of equals the shortest, then the first by alphabet."""
    distinct = {texts[one]: one for one in reversed(members)}

    def rank(one: int) -> tuple[float, int, str]:
        return -math.fsum(alike[one][two] for two in distinct.values()), len(texts[one]), texts[one]

    middle = min(distinct.values(), key=rank)
    return [middle, *(one for one in members if one != middle)]


SHORTEST = 4
"""Characters that are not blanks: fewer stand in nearly every text, and so prove nothing."""

_MARKS = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "\u00a0": " "})


class QuotedPlace(NamedTuple):
    """The best place of a quotation: the share of it that is right there, and the characters from `start` to `end`."""

    share: float
    start: int
    end: int


def best_place(quote: str, text: str) -> QuotedPlace | None:
    """Return the first of the places that hold most of a quotation; None if it is too short to prove anything."""
    pattern, _ = _plain(quote)
    if len(pattern.replace(" ", "")) < SHORTEST:
        return None
    plain, offsets = _plain(text)
    at = plain.find(pattern)
    if at >= 0:
        return QuotedPlace(1.0, offsets[at], offsets[at + len(pattern) - 1] + 1)
    edits, end = _search(pattern, plain)
    if edits >= len(pattern):
        return QuotedPlace(0.0, 0, 0)
    window = plain[max(0, end - 2 * len(pattern)) : end]
    _, length = _search(pattern[::-1], window[::-1])
    return QuotedPlace(1 - edits / len(pattern), offsets[end - length], offsets[end - 1] + 1)


def _plain(text: str) -> tuple[str, list[int]]:
    """A text in small letters with plain marks and single blanks, and where each of its characters stood."""
    chars: list[str] = []
    offsets: list[int] = []
    for run in re.finditer(r"\s+|\S+", text):
        if run[0].isspace():
            chars.append(" ")
            offsets.append(run.start())
            continue
        for at, char in enumerate(run[0].translate(_MARKS), start=run.start()):
            small = char.lower()
            chars.append(small if len(small) == 1 else char)
            offsets.append(at)
    start = 1 if chars[:1] == [" "] else 0
    end = len(chars) - 1 if len(chars) > start and chars[-1] == " " else len(chars)
    return "".join(chars[start:end]), offsets[start:end]


def _search(pattern: str, text: str) -> tuple[int, int]:
    """Return the fewest edits between the pattern and a part of the text, and where the first such part ends."""
    full, high = (1 << len(pattern)) - 1, 1 << (len(pattern) - 1)
    where: dict[str, int] = {}
    for at, char in enumerate(pattern):
        where[char] = where.get(char, 0) | 1 << at
    up, down, edits = full, 0, len(pattern)
    best, end = edits, 0
    for at, char in enumerate(text, start=1):
        equal = where.get(char, 0)
        vertical = equal | down
        equal = (((equal & up) + up) ^ up) | equal
        rise = down | (~(equal | up) & full)
        fall = up & equal
        edits += (rise & high != 0) - (fall & high != 0)
        rise, fall = rise << 1, fall << 1
        up = (fall | ~(vertical | rise)) & full
        down = rise & vertical & full
        if edits < best:
            best, end = edits, at
    return best, end
