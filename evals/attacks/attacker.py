"""An attacker, the questions that it may ask about a row, and what became of it.

An attacker asks `Queries.ask` about what it writes, in batches, and reads the values.  It sees the prompt and a list of
words, and never a threshold, a reference, a good response, or why a value is what it is, unless it opens the white box.
It need not end: `Over` ends it.  Every question is counted; a response that was asked about before is answered from
memory and costs nothing.  Questions of one batch are sent together, so all are spent where one wins; the win counts
from its own place among them.

One that is paid because it says the right answer is answered as the bad response is, so that the search goes on.
"""

from __future__ import annotations

import asyncio
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, TypeAlias

from adjudge.evals.attacks.guard import Gold, Luck, luck
from adjudge.evals.attacks.target import Standing, Target, Wrap
from adjudge.protocol import Sample, Scorer
from adjudge.runtime.contract import BrokenScorer


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A response and its score, and how many questions had been asked when it was, itself among them; from 1."""

    wrap: Wrap
    value: float
    query: int


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One attacker on one row, and the first responses of each kind, so far.

    Attributes:
        queries: questions asked; equal ones count once.  `unscored` of them got no number.
        won: a worthless response that won.
        guessed: one that was paid because it says the right answer (`guard`); `hedged`, because it does beside others.
        best: the highest score without the right answer.
    """

    attacker: str
    standing: Standing
    queries: int = 0
    unscored: int = 0
    won: Hit | None = None
    guessed: Hit | None = None
    hedged: Hit | None = None
    best: Hit | None = None

    @property
    def judged(self) -> bool:
        """Whether any question got a number; without one, nothing is known about the row."""
        return self.queries > self.unscored

    @property
    def gain(self) -> float | None:
        """How far the best worthless response is above the bad one; None without both numbers."""
        if self.best is None or self.standing.base is None:
            return None
        return self.best.value - self.standing.base


_STUCK = 1_000  # batches in a row without anything new, after which a search is over


class Over(Exception):
    """The search ends: it has won, its budget is spent, or it has nothing new to ask."""


@dataclass(eq=False)
class Queries:
    """What one attacker asks about one row, within a budget of questions.

    With `verdicts` the answer is only whether a response wins, as 1 and 0.  Without `gold`, luck is told from success
    by what stands in a response alone.  `asked` takes the number of questions of each batch.
    """

    attacker: str
    target: Target
    standing: Standing
    _: KW_ONLY
    budget: int
    verdicts: bool
    gold: Gold = field(default_factory=Gold)
    asked: Callable[[int], None] | None = None

    def __post_init__(self) -> None:
        self.allowed = self.budget
        self.attempt = Attempt(attacker=self.attacker, standing=self.standing)
        self._row = self.standing.row
        self._known: dict[str, float] = {}
        self._idle = 0

    @property
    def used(self) -> int:
        """Questions asked so far."""
        return self.attempt.queries

    @property
    def name(self) -> str:
        """Which row is attacked."""
        return self._row.id

    @property
    def question(self) -> str:
        """Its prompt as text."""
        return self._row.question()

    @property
    def words(self) -> tuple[str, ...]:
        """Tokens that may be written."""
        return self._row.words

    @property
    def over(self) -> bool:
        """Whether no further question will be answered."""
        return self.attempt.won is not None or self.used >= self.allowed

    def white_box(self, wrap: Wrap) -> tuple[Scorer, Sample]:
        """Return the scorer and what it is asked about an attack, reference included, for who looks inside a model."""
        return self.target.scorer, self._row.sample(wrap.around(self._row.base))

    async def ask(self, wraps: Sequence[Wrap]) -> list[float]:
        """Return the values of attacks, in order; minus infinity where the target gave no number.

        Raises:
            Over: one of them won, the budget does not reach for all of them (those that it reaches for are asked), or
                the last 1,000 batches held nothing new.
        """
        if self.over:
            raise Over
        new: dict[str, Wrap] = {}
        for wrap in wraps:
            response = wrap.around(self._row.base)
            if response not in self._known:
                new.setdefault(response, wrap)
        self._idle = 0 if new else self._idle + 1
        affordable = list(new.items())[: self.allowed - self.used]
        scores = await self.target.ask([(self._row, response) for response, _ in affordable])
        values = [score.value for score in scores]
        wins = [wrap for (_, wrap), value in zip(affordable, values, strict=True) if self.standing.won_by(value)]
        lucks = dict(zip(wins, await self.gold.lucks([(self._row, wrap) for wrap in wins]), strict=True))
        for (response, wrap), value in zip(affordable, values, strict=True):
            self._note(response, wrap, value, lucks.get(wrap))
        if self.asked is not None and affordable:
            self.asked(len(affordable))
        if self.attempt.won is not None or len(affordable) < len(new) or self._idle >= _STUCK:
            raise Over
        return [self._known[wrap.around(self._row.base)] for wrap in wraps]

    def _note(self, response: str, wrap: Wrap, value: float | None, said: Luck | None) -> None:
        """Note an answer; `said` is None unless it wins."""
        made = self.attempt
        made.queries += 1
        seen = self.standing.base if said else value
        self._known[response] = float(said == "") if self.verdicts else -math.inf if seen is None else seen
        if value is None:
            made.unscored += 1
            return
        hit, wins = Hit(wrap=wrap, value=value, query=made.queries), said is not None
        rises = made.best is None or value > made.best.value
        if rises and said is None:
            said = luck(response, self._row.base if wrap.keep else "", self._row.reference)
        if rises and not said:
            made.best = hit
        kind = said or "won"
        if wins and getattr(made, kind) is None:
            setattr(made, kind, hit)

    def close(self) -> None:
        """End the search, and forget what was asked; a thousand responses of each of 100,000 rows are 30 GB."""
        self.allowed = self.used
        self._known.clear()


Tell: TypeAlias = Callable[[str, int, float], None]
"""Is called with what is running, how many rows it is done with, and which share of its questions."""

_AT_ONCE = 8  # rows that are attacked at the same time


class Attacker(ABC):
    """A search for one row after the other."""

    name: ClassVar[str]

    @abstractmethod
    async def search(self, queries: Queries, rng: random.Random) -> None:
        """Ask until `queries.ask` raises `Over`, or until there is nothing left to try."""


class JointAttacker(ABC):
    """A search for something that works on all rows at once; each row has its own budget."""

    name: ClassVar[str]

    @abstractmethod
    async def search(self, queries: Sequence[Queries], rng: random.Random) -> None:
        """Ask until all queries are over, or until there is nothing left to try; `Over` of one row ends that row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far attackers may go: questions about a row, which all its starts share evenly, and what they see."""

    budget: int
    restarts: int = 0
    verdicts: bool = False
    seed: int = 0


async def attack(
    attacker: Attacker | JointAttacker,
    target: Target,
    standings: Sequence[Standing],
    limits: Limits,
    tell: Tell,
    gold: Gold | None = None,
) -> list[Attempt]:
    """Let an attacker loose on rows and return what became of each.

    Raises:
        BrokenScorer: the scorer raised.
        ValueError: the attacker raised.
    """
    rows = spent = 0

    def asked(questions: int) -> None:
        nonlocal spent
        spent += questions
        tell(attacker.name, rows, spent / (len(standings) * limits.budget))

    def ended(queries: Queries) -> None:
        nonlocal rows
        queries.close()
        rows += 1
        asked(queries.budget - queries.used)  # what a row leaves of its budget counts as done

    options: dict[str, Any] = {
        "budget": limits.budget,
        "verdicts": limits.verdicts,
        "gold": gold or Gold(),
        "asked": asked,
    }
    every = [Queries(attacker.name, target, standing, **options) for standing in standings]
    if isinstance(attacker, JointAttacker):
        await _repeated(lambda rng: attacker.search(every, rng), every, limits, attacker.name)
        for queries in every:
            ended(queries)
    else:
        turn = asyncio.Semaphore(_AT_ONCE)

        async def one(queries: Queries) -> None:
            async with turn:
                name = f"{attacker.name}/{queries.name}"
                await _repeated(lambda rng: attacker.search(queries, rng), [queries], limits, name)
            ended(queries)

        try:
            async with asyncio.TaskGroup() as group:
                for queries in every:
                    group.create_task(one(queries))
        except* (BrokenScorer, ValueError) as broken:
            first = broken.exceptions[0]
            raise first from first.__cause__
    return [queries.attempt for queries in every]


async def _repeated(
    search: Callable[[random.Random], Awaitable[None]], every: Sequence[Queries], limits: Limits, name: str
) -> None:
    """Begin a search again and again, each time with the next part of the budget."""
    starts = limits.restarts + 1
    for start in range(starts):
        for queries in every:
            queries.allowed = queries.budget * (start + 1) // starts
        if all(queries.over for queries in every):
            continue
        try:
            await search(random.Random(f"{limits.seed}/{name}/{start}"))
        except Over:
            continue
        except BrokenScorer:
            raise
        except Exception as error:  # the boundary: whatever an attacker raises is reported under its name
            raise ValueError(f"the attacker {name!r} raised {type(error).__name__}: {error}") from error
