"""What the rows of two files say: prompts in both, what gives the better response away, and what contradicts itself.

The test prompts are held in memory, of the training prompts 8 bytes each; numbers of rows take 8 bytes, and texts are
not kept.

Not covered: prompts that say the same in other words, and style beyond length (`adjudge.reward_models.baselines`).
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from adjudge.data_pipelines.hygiene.minhash import Bands, MinHash, jaccard, tokens
from adjudge.data_pipelines.pairs.answers import digest_of, opening_of, squeezed
from adjudge.data_pipelines.pairs.config import LeaksConfig
from adjudge.io.columns import Column
from adjudge.io.preferences import PROMPTS, PreferenceColumns, is_preference, read_preference
from adjudge.io.values import MISSING, Text, exchange, number_of, plain, prompt_of, text_or_chat
from adjudge.protocol import content_text
from adjudge.statistics.intervals import UNKNOWN, Interval, wilson


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTexts:
    """A pair, or a rated answer, which is good or bad alone.

    Attributes:
        prompt: its text; of a chat, the first turn that a user wrote.
        first: whether the better one came first; None where nothing says.
    """

    prompt: str
    chosen: str | None
    rejected: str | None
    first: bool | None = None


def judged_texts(row: Mapping[str, Any], config: LeaksConfig) -> Iterator[JudgedTexts]:
    """Yield what a row says: a pair, each pair of a list, or a rated answer.

    Raises:
        ValueError: it is neither; the text says why, with `*` for what it quotes of the row.
    """
    names = PreferenceColumns(prompt=config.prompt_column, chosen=config.chosen_column, rejected=config.rejected_column)
    try:
        if is_preference(row, names):
            yield from _pairs(row, names, config.first_column)
            return
        prompt, answer = _rated_text(row, config)
    except ValueError as error:
        raise ValueError(_QUOTED.sub("*", str(error))) from None
    label = number_of(_cell(row, config.label_column))
    if label is None:
        raise ValueError("neither a pair nor a rated answer")
    yield JudgedTexts(prompt=prompt, chosen=answer if label > 0.5 else None, rejected=None if label > 0.5 else answer)


_QUOTED: Final = re.compile(r"'[^']*'")
_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}


def _pairs(row: Mapping[str, Any], names: PreferenceColumns, first_column: str) -> Iterator[JudgedTexts]:
    preference = read_preference(row, names)
    texts = [_text(response) for response in preference.responses]
    flag = _cell(row, first_column) if first_column else None
    first = flag if isinstance(flag, bool) else _FLAGS.get(str(flag).lower())
    for better, worse in itertools.permutations(range(len(texts)), 2):
        if preference.ranks[better] < preference.ranks[worse]:
            if preference.layout == "labelled" and not first_column:
                first = better < worse
            yield JudgedTexts(
                prompt=opening_of(preference.prompt), chosen=texts[better], rejected=texts[worse], first=first
            )


def _rated_text(row: Mapping[str, Any], config: LeaksConfig) -> tuple[str, str]:
    usual = (config.prompt_column,) if config.prompt_column else PROMPTS
    prompt = next((value for name in usual if (value := _cell(row, name)) is not None), MISSING)
    asked, said = exchange(prompt_of(prompt), text_or_chat(plain(_cell(row, config.response_column)), "response"))
    return opening_of(asked), _text(said)


def _cell(row: Mapping[str, Any], name: str) -> Any:
    value = Column(name).of(row)
    return None if value is MISSING else value


def _text(response: Text) -> str:
    """The text of a response; of several turns, what the last one says."""
    return response if isinstance(response, str) else content_text(response[-1].get("content"))


_BATCH: Final = 512
_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """How many prompts of the test set were trained on, but for case, punctuation and white space, or nearly.

    Attributes:
        examples: some of them, with the first that they met and how similar it is.
    """

    prompts: int
    exact: int
    near: int
    examples: list[tuple[str, str, float]]


class PromptOverlap:
    """The prompts of a test set, ready to meet those of a training set."""

    def __init__(self, test: Iterable[str], *, threshold: float, ngram: int) -> None:
        self._hash = MinHash(ngram=ngram)
        self._bands = Bands.of(threshold, self._hash.permutations)
        self._threshold = threshold
        self._texts: dict[int, str] = {}
        for text in test:
            self._texts.setdefault(prompt_key(text), text)
        self._met: defaultdict[int, list[int]] = defaultdict(list)
        for batch in _batches(iter(self._texts.items())):
            keys = self._bands.keys(self._hash.signatures([text for _, text in batch]))
            for (name, _), row in zip(batch, keys.tolist(), strict=True):
                for key in row:
                    self._met[key].append(name)

    def meet(self, train: Iterable[str]) -> Overlap:
        """Return which prompts the training set holds too."""
        exact: dict[int, str] = {}
        near: dict[int, tuple[str, float]] = {}
        for batch in _batches(self._new(train, exact)):
            keys = self._bands.keys(self._hash.signatures([text for _, text in batch]))
            for (_, text), row in zip(batch, keys.tolist(), strict=True):
                # Prompts of one template all meet; those that were found need not be compared again.
                candidates = {name for key in row for name in self._met.get(key, ())} - near.keys() - exact.keys()
                shingles = self._hash.shingles(text) if candidates else frozenset()
                for name in sorted(candidates):
                    likeness = jaccard(shingles, self._hash.shingles(self._texts[name]))
                    if likeness >= self._threshold:
                        near[name] = (text, likeness)
        shown = [(self._texts[name], text, 1.0) for name, text in exact.items()]
        shown += [(self._texts[name], *met) for name, met in near.items() if name not in exact]
        near_only = len(near.keys() - exact.keys())
        return Overlap(prompts=len(self._texts), exact=len(exact), near=near_only, examples=shown[:_EXAMPLES])

    def _new(self, train: Iterable[str], exact: dict[int, str]) -> Iterator[tuple[int, str]]:
        """Yield each training prompt once, without those that are test prompts, which are noted."""
        seen: set[int] = set()
        for text in train:
            key = prompt_key(text)
            if key in seen:
                continue
            seen.add(key)
            if key in self._texts:
                exact[key] = text
            else:
                yield key, text


def prompt_key(text: str) -> int:
    """Return 64 bits that are equal for prompts which differ in case, punctuation and white space alone."""
    words = " ".join(tokens(text, symbols=False))
    return int.from_bytes(hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _batches(items: Iterator[tuple[int, str]]) -> Iterator[Sequence[tuple[int, str]]]:
    while batch := list(islice(items, _BATCH)):
        yield batch


class Balance:
    """Collects what the rows of one file say; whoever wants a number asks for it at the end."""

    def __init__(self) -> None:
        self.rows = 0
        self._prompts = array("Q")
        self._longer = array("d")
        self._placed = array("Q")
        self._first = array("d")
        self.forward = array("Q")
        self.backward = array("Q")
        self._good = array("d")
        self._bad = array("d")

    def add(self, texts: JudgedTexts) -> None:
        """Take one row."""
        self.rows += 1
        if texts.chosen is not None and texts.rejected is not None:
            prompt, asked = prompt_key(texts.prompt), squeezed(texts.prompt)
            more = len(texts.chosen) - len(texts.rejected)
            self._prompts.append(prompt)
            self._longer.append(0.5 if more == 0 else float(more > 0))
            chosen, rejected = squeezed(texts.chosen), squeezed(texts.rejected)
            # Not the prompt's key, for which "2 + 2" is "2 - 2": there the other answer is not a contradiction.
            self.forward.append(int.from_bytes(digest_of(asked, chosen, rejected)))
            self.backward.append(int.from_bytes(digest_of(asked, rejected, chosen)))
            if texts.first is not None:
                self._placed.append(prompt)
                self._first.append(float(texts.first))
        elif texts.chosen is not None:
            self._good.append(float(len(texts.chosen)))
        elif texts.rejected is not None:
            self._bad.append(float(len(texts.rejected)))

    @property
    def pairs(self) -> int:
        """How many rows are pairs."""
        return len(self._longer)

    @property
    def placed(self) -> int:
        """Of how many pairs it is known which response came first."""
        return len(self._first)

    def first(self) -> Interval:
        """Return the share of pairs whose better response came first."""
        return clustered_share(self._first, self._placed)

    def longer(self) -> Interval:
        """Return how well "longer wins" tells the better response: the area under the ROC curve.

        Of pairs it is the share that longer ones win, ties half; of rated answers that of all good against all bad.
        """
        return clustered_share(self._longer, self._prompts) if self.pairs else auc(self._good, self._bad)

    def good(self) -> Interval:
        """Return the share of rated answers that are good."""
        return wilson(len(self._good), len(self._good) + len(self._bad))

    def max_of_one_prompt(self) -> float:
        """Return the largest share of the pairs that one prompt has."""
        if not self.pairs:
            return 0.0
        return float(np.unique(_numbers(self._prompts), return_counts=True)[1].max()) / self.pairs


def contradictions(*files: Balance) -> tuple[int, int]:
    """Return how many pairs of all files stand there the other way round too, and how many repeat another one."""
    forward = np.concatenate([_numbers(one.forward) for one in files])
    backward = np.concatenate([_numbers(one.backward) for one in files])
    return int(np.isin(forward, backward).sum()), len(forward) - len(np.unique(forward))


def common_pairs(one: Balance, other: Balance) -> int:
    """Return how many different pairs two files share."""
    return len(np.intersect1d(_numbers(one.forward), _numbers(other.forward)))


def clustered_share(values: array[float], clusters: array[int]) -> Interval:
    """Return a mean of numbers in [0, 1] with Wilson's interval for as many rows as the clusters are worth.

    Rows of one cluster depend on each other, so the variance is that of cluster sums, and the interval that of as many
    independent rows as would have this variance (Korn and Graubard 1998); where all rows are equal, of the clusters.
    """
    if not values:
        return UNKNOWN
    numbers = np.frombuffer(values, dtype=np.float64)
    _, owners = np.unique(_numbers(clusters), return_inverse=True)
    mean = float(numbers.mean())
    sums = np.bincount(owners, numbers - mean)
    count, total = len(sums), len(numbers)
    variance = float((sums**2).sum()) * count / max(1, count - 1) / total**2
    worth = mean * (1 - mean) / variance if variance > 0 else count
    rows = max(1, min(total, math.floor(worth)))
    share = wilson(mean * rows, rows)
    return Interval(value=mean, low=share.low, high=share.high, n=total)


def auc(good: array[float], bad: array[float]) -> Interval:
    """Return the chance that a good number is larger than a bad one, ties half (Hanley and McNeil 1982)."""
    m, n = len(good), len(bad)
    if not m or not n:
        return UNKNOWN
    together = np.concatenate([np.frombuffer(good), np.frombuffer(bad)])
    _, places, counts = np.unique(together, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    area = (float(ranks[:m].sum()) - m * (m + 1) / 2) / (m * n)
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    variance = (area * (1 - area) + (m - 1) * (q1 - area**2) + (n - 1) * (q2 - area**2)) / (m * n)
    half = 1.959964 * math.sqrt(max(0.0, variance))
    return Interval(value=area, low=max(0.0, area - half), high=min(1.0, area + half), n=m + n)


def _numbers(values: array[Any]) -> npt.NDArray[np.uint64]:
    return np.frombuffer(values, dtype=np.uint64) if values else np.zeros(0, dtype=np.uint64)
