"""The responses to each prompt with all that was said of them, without their texts, and votes among them.

What somebody said of a response is a number, numbers of its steps, or why there is none.  It comes from a column of the
input, from a file that `adjudge label` wrote with one scorer, or from a scorer.

In a vote an answer gets the sum of its responses' weights; the highest wins, and equal ones share.  A drawn answer is
worth the mean of its drawn responses.  A response without an answer votes for nothing.

Answers are one where they are the same text, or equal for a scorer.  For a scorer, the commonest text that has no class
yet represents the next one, and every other such text is compared with it as the reference; equal ones join.  So each
member equals its representative, but two members need not equal each other: with a tolerance, 1.00 may join 0.99 and
0.98 may too.  With the commonest text first, the class is centred where most votes are.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.data_pipelines.label.bench import LocalBench
from adjudge.data_pipelines.pairs.rule import squeezed
from adjudge.evals.benchmarks.case import Given, of_score
from adjudge.evals.benchmarks.reading import given_in
from adjudge.evals.benchmarks.voices import asked
from adjudge.evals.reports.result import Counts
from adjudge.io.columns import MISSING
from adjudge.io.errors import JobError
from adjudge.io.jobs.engines import GONE
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.io.values import number_of
from adjudge.protocol import NO_COST, Cost, Sample, Score, Scorer
from adjudge.responses.aggregate import Aggregate, aggregate, needs_probabilities
from adjudge.runtime.loop import run_blocking
from adjudge.statistics.arrays import Floats, Ints, np

LARGEST_ROW = 64 << 20  # bytes of a line
LARGEST = 1e100
"""A larger number is none: its square would not be finite, and no reward means it."""

_NO_SCORE = (ValueError, TypeError, KeyError, AttributeError)  # what `given_in` raises
_FILES = (".jsonl", ".jsonl.gz", ".ndjson", ".parquet")


NOTHING = Given(None, "failed", "no score")
UNFIT = Given(None, "failed", "bad_sample")


def is_judged(said: Given) -> bool:
    """Return whether there is a number, or there are numbers of steps from which one can be made."""
    return said.value is not None or (said.status == "scored" and bool(said.steps))


def said_by_steps(said: Given, how: str) -> Given:
    """Return a verdict with the aggregate of its steps as its value; with its own value where `how` is "".

    Steps without a value, or outside what the formula takes, leave no number.
    """
    if said.status != "scored" or (not how and said.value is not None):
        return said
    if not how:
        return said._replace(status="failed", reason="steps without an aggregate")
    known = [value for value in said.steps if value is not None]
    if not known or len(known) < len(said.steps):
        return said._replace(value=None, status="failed", reason="unknown step" if said.steps else "no steps")
    named: Aggregate = how  # type: ignore[assignment]  # options are checked against the names
    if needs_probabilities(named) and not all(0 <= value <= 1 for value in known):
        return said._replace(value=None, status="failed", reason="no probability")
    value = aggregate(known, named)
    return said._replace(value=value if math.isfinite(value) else None)


async def asked_there(bench: LocalBench, samples: Sequence[Sample]) -> list[Score]:
    """Return a scorer's answers, as `asked` does."""
    scores = await asked(bench, samples)
    gone = next((one.reason for one in scores if one.status == "failed" and one.reason in GONE), None)
    if gone is not None:
        raise JobError(f"the model behind the scorer {bench.name!r} is gone ({gone})")
    return scores


def said_by(score: Score) -> Given:
    """Return what a scorer's score says."""
    return _said(of_score(score))


def _said(given: Given) -> Given:
    """What is kept of a verdict: numbers that are not too large, and nothing that no evaluation reads."""
    if given.value is not None and abs(given.value) > LARGEST:
        return NOTHING._replace(reason="too large")
    return Given(given.value, given.status, given.reason, tuple(map(_number, given.steps)), answer=given.answer)


def said_in(cell: Any) -> Given:
    """Return what a cell says: a number, a truth value, text that spells one, a score, or a list of values of steps.

    A list of one number is that number.
    """
    if isinstance(cell, Mapping):
        try:
            return _said(given_in(cell))
        except _NO_SCORE:
            return NOTHING
    if isinstance(cell, Sequence) and not isinstance(cell, str):
        steps = tuple(map(_number, cell))
        if not steps or None in steps:
            return NOTHING
        return Given(steps[0] if len(steps) == 1 else None, "scored", steps=steps)
    number = None if cell is MISSING else _number(cell)
    return NOTHING if number is None else Given(number, "scored")


def is_file_of_scores(spec: str) -> bool:
    """Return whether a spec names a file of scores, rather than a scorer."""
    return spec.endswith(_FILES)


def read_scores(path: str) -> dict[tuple[str, str], Given]:
    """Return the scores of a file that `adjudge label` wrote, by the sample's id and its response column."""
    scores: dict[tuple[str, str], Given] = {}
    for row in open_source(path, limit=LARGEST_ROW).rows(Cursor()):
        data = row.data
        if data is None or "id" not in data or "value" not in data:
            what = row.error or f"it has the fields {', '.join(list(data or ())[:8])}"
            raise ValueError(
                f"row {row.index} of {path} is not a score ({what}); give what adjudge label wrote with one scorer"
            )
        key = (str(data["id"]), str(data.get("column") or ""))
        if key in scores:
            raise ValueError(f"{path} has two scores with the id {key[0]!r}; ids must be unique, see --id-column")
        try:
            scores[key] = _said(given_in(data))
        except _NO_SCORE as error:
            raise ValueError(f"row {row.index} of {path} is not a score: {error}") from error
    return scores


def _number(cell: Any) -> float | None:
    number = number_of(cell)
    return None if number is None or abs(number) > LARGEST else number


@dataclass(slots=True, kw_only=True)
class Candidate:
    """One response.

    Attributes:
        place: among the responses of the row.
        size: characters; None where there is no text.
        said: by name of who said it: "gold", "proxy".
    """

    id: str
    row: int
    place: int
    size: int | None = None
    answer: str = ""
    said: dict[str, Given] = field(default_factory=dict)

    def value(self, who: str) -> float | None:
        """Return the number that somebody gave it."""
        return self.said.get(who, NOTHING).value


@dataclass(slots=True, kw_only=True)
class Group:
    """The responses to one prompt, at least one."""

    name: str
    members: list[Candidate]

    def __len__(self) -> int:
        return len(self.members)

    def values(self, who: str) -> Floats:
        """Return (N,) the numbers that somebody gave, NaN where there is none."""
        return np.array([np.nan if (value := one.value(who)) is None else value for one in self.members])

    def right(self, who: str, least: float) -> Floats:
        """Return (N,) 1 where a number is at least so large, else 0; a response without a number is not right."""
        return np.array([float((value := one.value(who)) is not None and value >= least) for one in self.members])

    def sizes(self) -> Floats | None:
        """Return (N,) characters of the responses; None where one has no text."""
        sizes = [one.size for one in self.members]
        return None if None in sizes else np.array(sizes, dtype=float)

    def keep(self, wanted: Callable[[Candidate], bool]) -> Group:
        """Return the group with the members that are wanted, maybe none."""
        return Group(name=self.name, members=[one for one in self.members if wanted(one)])


@dataclass(slots=True, kw_only=True)
class Candidates:
    """All responses of an input."""

    groups: list[Group]
    unreadable: int
    source: Mapping[str, Any]
    scorers: Mapping[str, Mapping[str, Any]]
    notes: list[str]
    cost: Cost = NO_COST

    def all(self) -> Iterator[Candidate]:
        """Yield every response."""
        for group in self.groups:
            yield from group.members

    def counts(self, who: Sequence[str]) -> Counts:
        """Return the counts; a response is scored where everybody named gave a number, else it counts by who did not.

        A reason is told with the name of who gave it.
        """
        samples = scored = abstained = 0
        reasons: dict[str, int] = {}
        for one in self.all():
            samples += 1
            said = {name: one.said.get(name, NOTHING) for name in who}
            lacking = [(name, each) for name, each in said.items() if not is_judged(each)]
            scored += not lacking
            abstained += bool(lacking) and all(each.status == "abstained" for _, each in lacking)
            for name, each in lacking:
                told = f"{name}: {each.reason or each.status}"
                reasons[told] = reasons.get(told, 0) + 1
        return Counts(
            cases=len(self.groups),
            samples=samples,
            scored=scored,
            abstained=abstained,
            failed=samples - scored - abstained,
            unreadable=self.unreadable,
            reasons=dict(sorted(reasons.items())),
        )


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
