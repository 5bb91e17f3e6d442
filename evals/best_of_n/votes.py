"""Votes among k of N responses: which answers are one, and what the winner is worth over the ways to draw the k.

An answer gets the sum of its responses' weights; the highest wins, and equal ones share.  A drawn answer is worth the
mean of its drawn responses.  A response without an answer votes for nothing.

Answers are one where they are the same text, or equal for a scorer.  For a scorer, the commonest text that has no class
yet represents the next one, and every other such text is compared with it as the reference; equal ones join.  So each
member equals its representative, but two members need not equal each other: with a tolerance, 1.00 may join 0.99 and
0.98 may too.  With the commonest text first, the class is centred where most votes are.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from adjudge.data_pipelines.label.bench import LocalBench
from adjudge.data_pipelines.pairs.answers import squeezed
from adjudge.evals.benchmarks.voices import asked
from adjudge.protocol import NO_COST, Cost, Sample, Scorer
from adjudge.runtime.loop import run_blocking
from adjudge.statistics.arrays import Floats, Ints, np

_CELLS = 1 << 21  # numbers in memory at once
_ROUNDING = 1e-12  # of the sum of sizes: sums of the same weights in another order differ by less


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What votes are worth, for several ways to weigh them.

    Attributes:
        values: (rules,) expected worth of the winner.
        errors: (rules,) standard error of what was drawn; 0 where all ways were looked at.
    """

    values: Floats
    errors: Floats


def vote_worth(
    answers: Sequence[int],
    weights: Floats,
    truth: Floats,
    k: int,
    *,
    logs: Collection[int] = (),
    unanswered: Floats | None = None,
    most: int = 1_000,
    seed: Sequence[int] = (0,),
) -> Worth:
    """Return what the winner of a vote is worth.

    Args:
        answers: (N,) number of each response's answer, from 0; -1 for none.
        weights: (rules, N) finite, but for `logs`; negative ones count against an answer.
        truth: (N,) finite; what each response is worth.
        k: responses that vote, 1 <= k <= N.
        logs: rules whose weights are logarithms, minus infinity for 0; their scale is that of each draw, so that the
            largest of all N leaves the others their weight where it was not drawn.
        unanswered: (N,) what each is worth where none of the k has an answer, of which the mean is taken; 0 without it.
        most: ways to draw k that are looked at; where there are more, so many are drawn, the same for every rule.
        seed: of the draws.
    """
    total = len(answers)
    if not 1 <= k <= total:
        raise ValueError(f"a vote of {k!r} among {total} responses; k must be between 1 and their number")
    classes = np.asarray(answers, dtype=np.int64)
    width = int(classes.max(initial=-1)) + 2  # the last one is not an answer
    classes = np.where(classes < 0, width - 1, classes)
    exact = math.comb(total, k) <= most
    blocks = [
        [
            _worth(drawn, classes, width, _drawn_weights(drawn, rule, logs=at in logs), truth, unanswered)
            for at, rule in enumerate(weights)
        ]
        for drawn in _drawn(total, k, most, seed, exact=exact, width=max(width, total))
    ]
    worth = np.concatenate(blocks, axis=1)
    errors = np.zeros(len(weights)) if exact else worth.std(axis=1, ddof=1) / math.sqrt(worth.shape[1])
    return Worth(values=worth.mean(axis=1), errors=errors)


def numbered_answers(answers: Sequence[str]) -> list[int]:
    """Return the number of each answer, from 0 in the order in which they come; -1 for "", which is none."""
    places: dict[str, int] = {}
    return [places.setdefault(answer, len(places)) if answer else -1 for answer in answers]


def _drawn(total: int, k: int, most: int, seed: Sequence[int], *, exact: bool, width: int) -> Iterator[Ints]:
    block = max(1, _CELLS // max(width, k))
    if exact:
        every = itertools.combinations(range(total), k)
        while rows := list(itertools.islice(every, block)):
            yield np.array(rows, dtype=np.int64)
        return
    draw = np.random.default_rng(list(seed))
    for start in range(0, most, block):
        size = min(block, most - start)
        yield np.argpartition(draw.random((size, total)), k - 1, axis=1)[:, :k]


def _drawn_weights(drawn: Ints, weights: Floats, *, logs: bool) -> Floats:
    chosen = weights[drawn]
    if not logs:
        return chosen
    top = chosen.max(axis=1, keepdims=True)
    return np.asarray(np.exp(chosen - np.where(np.isfinite(top), top, 0.0)), dtype=float)


def _worth(drawn: Ints, classes: Ints, width: int, weights: Floats, truth: Floats, unanswered: Floats | None) -> Floats:
    """What the winner of each subset is worth, (b,), by the weights of its members, (b, k)."""
    count = len(drawn)
    cells = (classes[drawn] + width * np.arange(count)[:, None]).ravel()

    def summed(numbers: Floats) -> Floats:
        sums = np.bincount(cells, numbers.ravel(), minlength=count * width)
        return sums.astype(float).reshape(count, width)[:, :-1]

    members = summed(np.ones(drawn.shape))
    votes = np.where(members > 0, summed(weights), -np.inf)
    best = votes.max(axis=1, initial=-np.inf)
    room = _ROUNDING * np.abs(weights).sum(axis=1)
    with np.errstate(invalid="ignore"):  # minus infinity less itself, where nobody has an answer
        winners = (votes >= (best - room)[:, None]) & (members > 0)
    worth = summed(truth[drawn]) / np.where(members > 0, members, 1.0)
    answered = winners.any(axis=1)
    none = np.zeros(count) if unanswered is None else unanswered[drawn].mean(axis=1)
    shared = (worth * winners).sum(axis=1) / np.where(answered, winners.sum(axis=1), 1)
    return np.asarray(np.where(answered, shared, none), dtype=float)


TEXT = "text"
_BATCH = 1024


@dataclass(slots=True, kw_only=True)
class Classes:
    """The answers of all prompts.

    Attributes:
        numbers: for each prompt, the number of each response's answer, from 0; -1 for none.
        compared: pairs of answers that the scorer was asked about.
        undecided: of them, those without a number; these answers are not equal.
        unparsable: answers that do not equal themselves, and so vote for nothing.
    """

    numbers: list[list[int]]
    compared: int = 0
    undecided: int = 0
    unparsable: int = 0
    cost: Cost = NO_COST


@dataclass(slots=True)
class _Prompt:
    """The answers to one prompt, while they get classes; the commonest texts come first."""

    texts: list[str]
    left: list[str] = field(init=False)
    classes: dict[str, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.left = [text for text, _ in Counter(filter(None, self.texts)).most_common()]

    def settle(self, joined: Sequence[str]) -> bool:
        """Take the first text and those that equal it out, and return whether it equals itself, and so has a class."""
        first = self.left[0]
        if first not in joined:
            self.left = self.left[1:]
            return False
        number = len(set(self.classes.values()))
        self.classes |= dict.fromkeys(joined, number)
        self.left = [text for text in self.left if text not in self.classes]
        return True

    def numbers(self) -> list[int]:
        """Return the classes in the order in which the responses come, numbered anew from 0."""
        return numbered_answers([str(self.classes.get(text, "")) for text in self.texts])


def classes_by_text(answers: Sequence[Sequence[str]]) -> Classes:
    """Return the classes of answers that are the same text but for spaces; "" is not an answer."""
    return Classes(numbers=[numbered_answers([squeezed(text) for text in texts]) for texts in answers])


def classes_by_scorer(answers: Sequence[Sequence[str]], scorer: Scorer, *, equal_at: float = 1.0) -> Classes:
    """Return the classes of answers that a scorer holds for equal, one as the response and one as the reference.

    All prompts are compared at the same time, one representative of each in a round.
    """
    prompts = [_Prompt([squeezed(text) for text in texts]) for texts in answers]
    classes = Classes(numbers=[])
    bench = LocalBench(scorer)
    while waiting := [prompt for prompt in prompts if prompt.left]:
        pairs = [(prompt, text) for prompt in waiting for text in prompt.left]  # the first one with itself, too
        same = _equal(bench, [(text, prompt.left[0]) for prompt, text in pairs], equal_at, classes)
        joined: dict[int, list[str]] = {id(prompt): [] for prompt in waiting}
        for (prompt, text), equal in zip(pairs, same, strict=True):
            if equal:
                joined[id(prompt)].append(text)
        classes.unparsable += sum(not prompt.settle(joined[id(prompt)]) for prompt in waiting)
    classes.numbers = [prompt.numbers() for prompt in prompts]
    return classes


def _equal(bench: LocalBench, pairs: Sequence[tuple[str, str]], least: float, classes: Classes) -> list[bool]:
    equal = []
    for start in range(0, len(pairs), _BATCH):
        samples = [Sample(prompt="", response=text, reference=first) for text, first in pairs[start : start + _BATCH]]
        for score in run_blocking(asked(bench, samples)):
            classes.cost += score.cost
            classes.undecided += score.value is None
            equal.append(score.value is not None and score.value >= least)
    classes.compared += len(pairs)
    return equal
