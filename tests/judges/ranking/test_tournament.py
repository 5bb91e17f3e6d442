from __future__ import annotations

import asyncio
import itertools
import math
import random
from collections.abc import Awaitable, Callable, Sequence

import pytest

from adjudge.judges.tournament import Pair, Play, Played, knock_out, round_robin, swiss, swiss_rounds
from adjudge.runtime.loop import together
from adjudge.statistics.ratings import Match, fit_strengths


class Judge:
    """Knows the order of players, counts the games, and knows nothing about the games it is told not to."""

    def __init__(self, strength: Sequence[float], *, dumb: frozenset[frozenset[int]] = frozenset()) -> None:
        self.strength = strength
        self.dumb = dumb
        self.asked: list[Pair] = []

    async def compare(self, i: int, j: int) -> float | None:
        self.asked.append((i, j))
        if frozenset((i, j)) in self.dumb:
            return None
        return 0.5 + 0.5 * ((self.strength[i] > self.strength[j]) - (self.strength[i] < self.strength[j]))


def points(played: Played, players: int) -> list[float]:
    won = [0.0] * players
    for i, j, share in played.games:
        won[i] += share
        won[j] += 1 - share
    return won


def one_by_one(compare: Callable[[int, int], Awaitable[float | None]]) -> Play:
    async def play(pairs: Sequence[Pair]) -> Sequence[float | None]:
        return await together([compare(first, second) for first, second in pairs])

    return play


def shuffled(players: int, seed: int) -> list[float]:
    strength = [float(i) for i in range(players)]
    random.Random(seed).shuffle(strength)
    return strength


@pytest.mark.parametrize("players", [2, 3, 8, 13])
def test_round_robin_plays_every_pair_once(players: int) -> None:
    judge = Judge(shuffled(players, 1))
    played = asyncio.run(round_robin(players, one_by_one(judge.compare)))
    assert sorted(map(sorted, judge.asked)) == [list(pair) for pair in itertools.combinations(range(players), 2)]
    assert points(played, players) == judge.strength


@pytest.mark.parametrize("players", [2, 3, 7, 8, 16, 31])
def test_swiss_rounds_find_the_best_with_fewer_games(players: int) -> None:
    for seed in range(5):
        judge = Judge(shuffled(players, seed))
        played = asyncio.run(swiss(players, one_by_one(judge.compare)))
        assert len({frozenset(pair) for pair in judge.asked}) == len(judge.asked), "a pair met twice"
        assert len(judge.asked) <= min(swiss_rounds(players) * (players // 2), math.comb(players, 2))
        won = points(played, players)
        best = judge.strength.index(players - 1)
        assert won[best] == max(won)


def test_swiss_rounds_and_strengths_order_the_field() -> None:
    """16 players in 8 rounds: half of the 120 games, and every pair more than 3 places apart is in the right order."""
    judge = Judge(shuffled(16, 3))
    played = asyncio.run(swiss(16, one_by_one(judge.compare), rounds=8))
    assert len(played.games) <= 64
    matches = [Match(first=str(i), second=str(j), share=share) for i, j, share in played.games]
    fitted = fit_strengths(matches, ridge=0.1).values
    wrong = [
        (i, j)
        for i, j in itertools.permutations(range(16), 2)
        if judge.strength[i] - judge.strength[j] > 3 and fitted[str(i)] <= fitted[str(j)]
    ]
    assert wrong == []


def test_everybody_sits_out_at_most_once_before_somebody_does_twice() -> None:
    judge = Judge(shuffled(5, 2))
    asyncio.run(swiss(5, one_by_one(judge.compare), rounds=4))
    games = [sum(player in pair for pair in judge.asked) for player in range(5)]
    assert max(games) - min(games) <= 1


@pytest.mark.parametrize("players", [2, 3, 5, 8, 11, 16])
def test_a_knock_out_takes_one_game_for_each_loser(players: int) -> None:
    judge = Judge(shuffled(players, 4))
    played = asyncio.run(knock_out(players, one_by_one(judge.compare)))
    assert len(played.games) == players - 1
    best = judge.strength.index(players - 1)
    assert played.survived[best] == math.ceil(math.log2(players)) == max(played.survived)
    assert played.survived.count(played.survived[best]) == 1


def test_a_tie_goes_to_the_better_seed() -> None:
    played = asyncio.run(knock_out(4, one_by_one(Judge([1, 1, 1, 1]).compare)))
    assert played.survived == (2, 1, 0, 0)


def test_nobody_passes_by_leaving_the_judge_speechless() -> None:
    """Player 3 breaks every judge: it wins nothing, and what it met is not known to have won either."""
    dumb = frozenset(frozenset((3, other)) for other in range(3))
    played = asyncio.run(knock_out(4, one_by_one(Judge([3, 2, 1, 0], dumb=dumb).compare)))
    assert played.unjudged == ((0, 3),)
    assert played.survived == (0, 1, 0, 0)  # of two rounds: the last survivor has met nobody there
    robin = asyncio.run(round_robin(4, one_by_one(Judge([3, 2, 1, 0], dumb=dumb).compare)))
    assert len(robin.games) == 3
    assert len(robin.unjudged) == 3


async def too_few(pairs: Sequence[Pair]) -> Sequence[float | None]:
    return []


async def too_much(pairs: Sequence[Pair]) -> Sequence[float | None]:
    return [2.0] * len(pairs)


def test_a_game_that_breaks_ends_the_round() -> None:
    """The other games of the round are cancelled, not left running."""
    ended: list[str] = []

    async def compare(i: int, j: int) -> float:
        if (i, j) == (1, 2):
            raise RuntimeError("the judge broke")
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            ended.append(f"{i} {j}")
            raise
        return 1.0

    with pytest.raises(RuntimeError, match="the judge broke"):
        asyncio.run(round_robin(3, one_by_one(compare)))
    assert sorted(ended) == ["0 1", "0 2"]


def test_bad_outcomes_and_fields_are_refused() -> None:
    with pytest.raises(ValueError, match="got 0 outcomes"):
        asyncio.run(round_robin(3, too_few))
    with pytest.raises(ValueError, match=r"gave 2\.0"):
        asyncio.run(swiss(3, too_much))
    with pytest.raises(ValueError, match="rounds=0"):
        asyncio.run(swiss(3, too_much, rounds=0))
    for play in (round_robin, swiss, knock_out):
        with pytest.raises(ValueError, match="at least 2"):
            asyncio.run(play(1, too_much))
