"""Checks of a training set and a test set of pairs, or of rated answers; docs/data.md has the list.

Looked for are prompts in both, what gives the better response away, and what contradicts itself; repeated pairs and the
largest prompt are told, and not judged.  The test prompts are held in memory, of the training prompts 8 bytes each;
numbers of rows take 8 bytes, and texts are not kept.

Not covered: prompts that say the same in other words, and style beyond length (`adjudge.reward_models.baselines`).
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from adjudge.data_pipelines.hygiene.minhash import Bands, MinHash, jaccard, tokens
from adjudge.data_pipelines.pairs.config import LeaksConfig
from adjudge.data_pipelines.pairs.rule import digest_of, opening_of, squeezed
from adjudge.io.columns import Column
from adjudge.io.jobs.report import JobProgress, JobSnapshot
from adjudge.io.preferences import PROMPTS, PreferenceColumns, is_preference, read_preference
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.io.values import MISSING, Text, exchange, number_of, plain, prompt_of, text_or_chat
from adjudge.protocol import content_text
from adjudge.statistics.intervals import UNKNOWN, Interval, wilson
from adjudge.statistics.ranks import auroc


@dataclass(frozen=True, slots=True)
class Check:
    """One check: whether it found something, None where that is not judged, and what it says."""

    name: str
    found: bool | None
    says: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


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
        usual = (config.prompt_column,) if config.prompt_column else PROMPTS
        given = next((value for name in usual if (value := Column(name).cell(row)) is not None), MISSING)
        response = text_or_chat(plain(Column(config.response_column).cell(row)), "response")
        asked, said = exchange(prompt_of(given), response)
        prompt, text = opening_of(asked), _text(said)
    except ValueError as error:
        raise ValueError(_QUOTED.sub("*", str(error))) from None
    label = number_of(Column(config.label_column).cell(row))
    if label is None:
        raise ValueError("neither a pair nor a rated answer")
    yield JudgedTexts(prompt=prompt, chosen=text if label > 0.5 else None, rejected=None if label > 0.5 else text)


_QUOTED: Final = re.compile(r"'[^']*'")
_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}


def _pairs(row: Mapping[str, Any], names: PreferenceColumns, first_column: str) -> Iterator[JudgedTexts]:
    preference = read_preference(row, names)
    texts = [_text(response) for response in preference.responses]
    flag = Column(first_column).cell(row) if first_column else None
    first = flag if isinstance(flag, bool) else _FLAGS.get(str(flag).lower())
    for better, worse in itertools.permutations(range(len(texts)), 2):
        if preference.ranks[better] < preference.ranks[worse]:
            if preference.layout == "labelled" and not first_column:
                first = better < worse
            yield JudgedTexts(
                prompt=opening_of(preference.prompt), chosen=texts[better], rejected=texts[worse], first=first
            )


def _text(response: Text) -> str:
    """The text of a response; of several turns, what the last one says."""
    return response if isinstance(response, str) else content_text(response[-1].get("content"))


_BATCH: Final = 512
_EXAMPLES: Final = 3


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

    def meet(self, train: Iterable[str]) -> list[Check]:
        """Return how many prompts the training set holds too, but for case, punctuation and white space, or nearly.

        The examples have the first prompt that each of them met, and how similar it is.
        """
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
        examples = [
            {"test": one[:200], "train": other[:200], "similarity": round(likeness, 3)}
            for one, other, likeness in shown[:_EXAMPLES]
        ]
        prompts, alike = len(self._texts), len(near.keys() - exact.keys())
        numbers = {"exact": len(exact), "prompts": prompts, "examples": examples}
        says = f"{len(exact)} of {prompts} test prompts were trained on"
        near_says = f"{alike} of {prompts} test prompts have a near-duplicate that was trained on"
        return [
            Check("prompts", bool(exact), says, numbers),
            Check("near_prompts", alike > 0, near_says, {"near": alike, "prompts": prompts}),
        ]

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
    area = auroc(np.concatenate([np.frombuffer(good), np.frombuffer(bad)]), [1] * m + [0] * n) if m and n else None
    if area is None:
        return UNKNOWN
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    variance = (area * (1 - area) + (m - 1) * (q1 - area**2) + (n - 1) * (q2 - area**2)) / (m * n)
    half = 1.959964 * math.sqrt(max(0.0, variance))
    return Interval(value=area, low=max(0.0, area - half), high=min(1.0, area + half), n=m + n)


def _numbers(values: array[Any]) -> npt.NDArray[np.uint64]:
    return np.frombuffer(values, dtype=np.uint64) if values else np.zeros(0, dtype=np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakReport:
    """All checks of a training set and a test set."""

    train: str
    test: str
    checks: tuple[Check, ...]
    unusable: Mapping[str, Mapping[str, int]]

    @property
    def found(self) -> bool:
        """Whether any check found something."""
        return any(check.found for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "train": self.train,
            "test": self.test,
            "found": self.found,
            "checks": {check.name: {"found": check.found, **check.numbers} for check in self.checks},
            "unusable": {name: dict(reasons) for name, reasons in self.unusable.items()},
        }

    def lines(self) -> list[str]:
        """Return the report for people."""
        marks = {True: "FOUND", False: "ok", None: ""}
        lines = [f"{marks[check.found]:6}{check.says}" for check in self.checks]
        for name, reasons in self.unusable.items():
            if reasons:
                shown = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
                lines.append(f"{'':6}rows of {name} that could not be used: {shown}")
        return [*lines, "something was found" if self.found else "nothing was found"]


Rows: TypeAlias = Iterable[Mapping[str, Any] | None]
"""Rows; None for one that cannot be read."""

_EVERY = 10_000  # rows between two calls of the progress


def find_leaks(config: LeaksConfig, *, progress: JobProgress | None = None) -> LeakReport:
    """Check two files.

    Raises:
        ValueError: a file cannot be read, or holds neither pairs nor rated answers.
    """
    train = _rows_of(config.train, config.train_split, config, progress)
    return leaks_between(train, _rows_of(config.test, config.test_split, config, progress), config)


def leaks_between(train: Rows, test: Rows, config: LeaksConfig) -> LeakReport:
    """Check rows that are at hand.

    Args:
        train: what is trained on; read once.
        test: what is measured on; its prompts stay in memory.
        config: the columns and limits; `train` and `test` name the rows in the report.

    Raises:
        ValueError: one of the two holds neither pairs nor rated answers, or no pair says who came first in the column
            that was named for it.
    """
    measured, measured_bad = Balance(), Counter[str]()
    prompts = _prompts_of(test, config, measured, measured_bad)
    overlap = PromptOverlap(prompts, threshold=config.threshold, ngram=config.ngram)
    _require(measured, measured_bad, config.test)
    trained, trained_bad = Balance(), Counter[str]()
    checks = overlap.meet(_prompts_of(train, config, trained, trained_bad))
    _require(trained, trained_bad, config.train)
    if config.first_column and trained.pairs + measured.pairs and not trained.placed + measured.placed:
        raise ValueError(
            f"--first-column {config.first_column!r}: no pair of {config.train} or {config.test} says true or false "
            "there; name another column, or leave it out, and places are not checked"
        )
    checks += _contents(trained, measured)
    for name, file in (("train", trained), ("test", measured)):
        checks += _balances(name, file, config.balance)
    return LeakReport(
        train=config.train,
        test=config.test,
        checks=tuple(checks),
        unusable={"train": dict(trained_bad), "test": dict(measured_bad)},
    )


def _rows_of(name: str, split: str, config: LeaksConfig, progress: JobProgress | None) -> Rows:
    source = open_source(name, limit=config.max_row_mb << 20, split=split)

    def rows() -> Iterator[Mapping[str, Any] | None]:
        begun = time.monotonic()
        for row in source.rows(Cursor()):
            if progress is not None and row.index % _EVERY == 0:
                rate = row.index / max(time.monotonic() - begun, 1e-9)
                share = source.fraction(Cursor(row.index, row.part, row.place))
                progress.update(
                    JobSnapshot(
                        rows=row.index, made=0, dropped={}, rows_per_second=rate, fraction=share, eta_seconds=None
                    )
                )
            yield row.cells()

    return rows()


def _prompts_of(rows: Rows, config: LeaksConfig, balance: Balance, bad: Counter[str]) -> Iterator[str]:
    """Yield the prompts of what rows say, which the balance takes."""
    for row in rows:
        try:
            if row is None:
                raise ValueError("unreadable")
            said = list(judged_texts(row, config))
        except ValueError as why:
            bad[str(why)] += 1
            continue
        for texts in said:
            balance.add(texts)
            yield texts.prompt


def _require(balance: Balance, bad: Counter[str], name: str) -> None:
    if not balance.rows:
        shown = ", ".join(f"{reason}: {count}" for reason, count in sorted(bad.items())) or "it is empty"
        raise ValueError(
            f"{name} holds neither pairs (prompt, chosen, rejected) nor rated answers (prompt, response, label) "
            f"({shown}); name the columns"
        )


def _contents(train: Balance, test: Balance) -> Iterator[Check]:
    trained, measured = _numbers(train.forward), _numbers(test.forward)
    forward, pairs = np.concatenate([trained, measured]), train.pairs + test.pairs
    backward = np.concatenate([_numbers(train.backward), _numbers(test.backward)])
    common, reversed_pairs = len(np.intersect1d(trained, measured)), int(np.isin(forward, backward).sum())
    says = f"{common} pairs of the test set were trained on"
    yield Check("pairs", common > 0, says, {"common": common, "pairs": test.pairs})
    says = f"{reversed_pairs} of {pairs} pairs stand there the other way round too"
    yield Check("contradictions", reversed_pairs > 0, says, {"reversed": reversed_pairs, "pairs": pairs})
    repeated = len(forward) - len(np.unique(forward))
    yield Check("repeated", None, f"{repeated} pairs repeat another one", {"repeated": repeated})


def _balances(name: str, file: Balance, tolerance: float) -> Iterator[Check]:
    if file.pairs:
        first, most = file.first(), file.max_of_one_prompt()
        says = f"{name}: the better response came first in {first} of the pairs"
        yield _judged(f"position_{name}", first, tolerance, says if first.n else f"{name}: no column tells places")
        says = f"{name}: the prompt with most pairs has {most:.1%} of them"
        yield Check(f"largest_prompt_{name}", None, says, {"share": most})
    else:
        good = file.good()
        one_label = good.value in (0.0, 1.0)
        yield Check(f"labels_{name}", one_label, f"{name}: {good} of the answers are good", good.to_dict())
    longer = file.longer()
    says = f"{name}: the longer response is the better one in {longer} (AUC)"
    yield _judged(f"length_{name}", longer, tolerance, says)


def _judged(name: str, share: Interval, tolerance: float, says: str) -> Check:
    """Return a check of a share that should be near 1/2; one that is not known is not judged."""
    far = None
    if share.low is not None and share.high is not None:
        far = share.low > 0.5 + tolerance or share.high < 0.5 - tolerance
    return Check(name, far, says, share.to_dict())
