"""A judge that sees several responses at once and ranks them.

Each response stands once in every round.  A group of up to `window` responses is shown whole, in an order that moves on
by one place each round, so that after as many rounds as responses each has stood in each place once.  A larger group is
shuffled and cut into prompts anew each round, so that company changes.  A ranking says who beat whom among those shown,
and a response's value is its mean share of those comparisons: one call replaces up to 28 pairwise ones.

Rankings are read strictly: every answer named once, or there is no verdict.  Not covered: ties inside a ranking (the
model must order everything), and sliding windows.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar

from adjudge.engines.interface import Fault
from adjudge.options import Count, Range
from adjudge.prompts.asking import Answer, Fillable, ask, cost_of
from adjudge.prompts.reading import Blank, answers
from adjudge.prompts.scorer import Case, ModelScorer, forced_of, mean_and_error
from adjudge.prompts.template import Rendered
from adjudge.protocol import Sample, Score
from adjudge.runtime.contract import grouped


@dataclass(frozen=True, kw_only=True)
class Field:
    """The different texts of a group.

    Attributes:
        texts: each text once, in seeding order: a keyed digest of the text and of all others, so that no text can be
            written to be seeded first.
        player: for each entry given to `of`, the place of its text.
        key: digest of the whole field, for seeds.
    """

    texts: tuple[str, ...]
    player: tuple[int, ...]
    key: str

    @classmethod
    def of(cls, texts: Sequence[str], *, seed: int = 0) -> Field:
        """Return the field of a group's texts, in any order."""
        distinct = sorted(set(texts))
        whole = hashlib.sha256(f"{seed}".encode())
        for text in distinct:
            whole.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
        key = whole.hexdigest()
        ranked = tuple(sorted(distinct, key=lambda text: _keyed(key, text)))
        place = {text: index for index, text in enumerate(ranked)}
        return cls(texts=ranked, player=tuple(place[text] for text in texts), key=key)


def _keyed(key: str, text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=key.encode()[:64], digest_size=16).digest()


_MOST = 8  # answers that the template has places for
_PLACES = re.compile(r"[0-9]{1,2}(?:\s?>\s?[0-9]{1,2})+", re.ASCII)


def read_ranking(form: str, count: int, text: str, nonce: str = "", /) -> tuple[int, ...] | None:
    """Read `3 > 1 > 2`: the numbers 1 to `count`, each once, best first.

    Returns:
        The numbers from 0, best first, or None when the last place that has the form is not a ranking of all of them.
    """
    places = answers(text, form, nonce)
    if not places or _PLACES.fullmatch(places[-1][0]) is None:
        return None
    order = tuple(int(number) - 1 for number in places[-1][0].split(">"))
    return order if sorted(order) == list(range(count)) else None


def _reader(form: str, count: int) -> Fillable[tuple[int, ...]]:
    numbers = tuple(str(number) for number in range(1, count + 1))
    return Fillable(
        partial(read_ranking, form, count),
        lambda nonce: Blank.of(form, nonce, [numbers] * count, between=" > ", distinct=True),
    )


@dataclass(frozen=True, kw_only=True)
class ListwiseJudge(ModelScorer):
    """Ranks the responses of a group; a response's value is its mean share of comparisons won, in [0, 1].

    Equal responses are shown once and share a value.  A response that is not shown (empty, or too long) scores 0, and
    the only one left scores 1 without being asked about.  `Score.uncertainty` is the standard error over the rounds.

    Attributes:
        criteria: what better means, in your words.
        window: most responses in one prompt, 2 to 8.
        rounds: how often each response is shown, at least 1.  There are only 2 different rounds for two responses, and
            2 n for n of them that fit into one prompt; more are not asked.
        max_characters: a response of more characters scores 0 (`too_complex`) and is not shown; short by default, as
            `window` of them stand in one prompt.
    """

    name: ClassVar[str] = "listwise_judge"
    version: ClassVar[str] = "2"
    groupwise: ClassVar[bool] = True
    text_template: ClassVar[str] = "judges/listwise"

    criteria: str = "how correct, helpful and complete the answer is"
    window: Annotated[int, Range(ge=2, le=_MOST)] = 5
    rounds: Count = 4
    max_characters: int = 12_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.undecided != "failed":
            raise ValueError(
                f"{self.name} option undecided={self.undecided!r}; a ranking that cannot be read is nobody's own "
                'fault, so it must be "failed"'
            )

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order; whole groups must be given."""
        scores = await super().score(samples)
        for group in grouped({place: sample.group for place, sample in enumerate(samples)}).values():
            shown = [place for place in group if "shown" in scores[place].evidence]
            others = [scores[place].value for place in group if place not in shown]
            if len(shown) == 1 and others and all(value == 0 for value in others):
                lone = scores[shown[0]]
                scores[shown[0]] = replace(
                    lone, value=1.0, status="scored", reason="", evidence={"shown": 0, "unopposed": True}
                )
        return scores

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Rank the responses of each group."""
        scores: dict[int, Score] = {}
        work: list[_Ranking] = []
        for members in grouped({place: case.sample.group for place, case in enumerate(cases)}).values():
            fault = _unfit(cases, members)
            if fault is not None:
                scores.update(dict.fromkeys(members, fault))
                continue
            field = Field.of([cases[place].response for place in members], seed=self.seed)
            work.append(_Ranking(self, cases[members[0]].sample, members, field))
        sheets = [sheet for ranking in work for sheet in ranking.sheets]
        while sheets:
            await self._ask(sheets)
            sheets = [sheet for sheet in sheets if sheet.without_longest()]
        for ranking in work:
            scores.update(ranking.scores())
        return [scores[place] for place in range(len(cases))]

    async def _ask(self, sheets: Sequence[_Sheet]) -> None:
        form = self.templates()[0].form
        reads = [_reader(form, len(sheet.players)) for sheet in sheets]
        prompts = [sheet.ranking.prompt(sheet.players) for sheet in sheets]
        given = await ask(self.resolved(), prompts, self.sampling(), reads, retry=self.retry())
        for sheet, answer in zip(sheets, given, strict=True):
            sheet.answer = answer


@dataclass(kw_only=True)
class _Sheet:
    """One prompt: who is shown in which place, who had to be left out, and the answer to it."""

    ranking: _Ranking
    players: list[int]
    behind: list[int]
    answer: Answer[tuple[int, ...]] | Fault | None = None

    def without_longest(self) -> bool:
        """Leave out the longest response of a prompt that is too long for the model, while two others are left.

        It is then last on this sheet: a long answer must not keep a whole group from being ranked.
        """
        if not (isinstance(self.answer, Fault) and getattr(self.answer, "too_long", False) and len(self.players) > 2):
            return False
        longest = max(self.players, key=lambda player: len(self.ranking.field.texts[player]))
        self.players = [player for player in self.players if player != longest]
        self.behind.insert(0, longest)
        return True


class _Ranking:
    def __init__(self, judge: ListwiseJudge, sample: Sample, members: Sequence[int], field: Field) -> None:
        self.judge = judge
        self.sample = sample
        self.members = members
        self.field = field
        n = len(field.texts)
        different = judge.rounds if n > judge.window else 2 * n if n > 2 else n
        self.sheets = [
            _Sheet(ranking=self, players=players, behind=[])
            for turn in range(min(judge.rounds, different))
            for players in self._company(turn)
            if len(players) > 1
        ]

    def _company(self, turn: int) -> list[list[int]]:
        """The players of a round by prompt: a turned order of all, or a shuffled one in pieces of about equal size."""
        n = len(self.field.texts)
        order = list(range(n))  # the seeding is random already
        if n <= self.judge.window:
            order = order[turn % n :] + order[: turn % n]
            return [order if turn < n else order[::-1]]
        random.Random(f"{self.field.key}:{turn}").shuffle(order)
        pieces = math.ceil(n / self.judge.window)
        return [order[piece::pieces] for piece in range(pieces)]

    def prompt(self, players: Sequence[int]) -> Rendered:
        """Return the prompt that shows these players in this order."""
        values: dict[str, Any] = {"question": self.sample.prompt, "criteria": self.judge.criteria}
        values["example"] = " > ".join(["BEST", *["NEXT"] * (len(players) - 2), "WORST"])
        for number, player in enumerate(players, 1):
            values[f"response_{number}"] = self.field.texts[player]
        return self.judge.render(self.judge.templates()[0], values)

    def scores(self) -> dict[int, Score]:
        shares: list[list[float]] = [[] for _ in self.field.texts]
        faults: list[Fault] = []
        for sheet in self.sheets:
            if isinstance(sheet.answer, Answer):
                ranked = [sheet.players[place] for place in sheet.answer.value] + sheet.behind
                for rank, player in enumerate(ranked):
                    shares[player].append((len(ranked) - 1 - rank) / (len(ranked) - 1))
            elif sheet.answer is not None:
                faults.append(sheet.answer)
        forced = forced_of(sheet.answer for sheet in self.sheets if isinstance(sheet.answer, Answer))
        cost = cost_of([sheet.answer for sheet in self.sheets if sheet.answer is not None])
        scores = {}
        for index, (place, player) in enumerate(zip(self.members, self.field.player, strict=True)):
            score = self._score(shares[player], faults, forced)
            scores[place] = replace(score, cost=cost) if index == 0 else score  # the calls of a group are paid once
        return scores

    def _score(self, shares: Sequence[float], faults: Sequence[Fault], forced: Mapping[str, Any]) -> Score:
        if len(self.field.texts) == 1:
            if len(self.members) == 1:
                return Score.failed("group_too_small", shown=0, error="one response of the group is left to be ranked")
            return Score.scored(0.5, shown=0)
        if not shares:
            return Score.failed(faults[0].reason, fault=faults[0].detail)
        mean, error = mean_and_error(shares)
        evidence = {"shown": len(shares), "shares": list(shares), **forced}
        return Score(value=mean, uncertainty=error, evidence=evidence)


def _unfit(cases: Sequence[Case], members: Sequence[int]) -> Score | None:
    pairs = itertools.pairwise(cases[place].sample.prompt for place in members)
    if any(one != other for one, other in pairs):
        return Score.failed("bad_sample", error="the members of the group answer different prompts")
    return None
