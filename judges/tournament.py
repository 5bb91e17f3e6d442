"""The responses of a group play a tournament under a pairwise judge, and each gets its standing as a value.

The pairwise judge is any scorer that takes the other response as the reference and returns how likely the response is
the better one, in [0, 1].  Where the samples have a text for a reference of their own, the judge's reference is
`{"response": the other response, "answer": that text}`, as `pairwise_judge` reads it.

N responses need N (N - 1) / 2 games in a round robin, about N log2(N) / 2 in Swiss rounds and N - 1 in a knock-out.

    points           mean share of the games played
    bradley_terry    expected share against every other response, from strengths fitted to the games
    place            knock-out: rounds survived, as a share of those the winner needs

Players are numbered 0 to n-1, and the numbers are the seeding: where nothing else decides, the lower one comes first.
A game that could not be judged (`None`) is not a game: nobody wins it, and it is listed in `Played.unjudged`.

    round robin   n (n - 1) / 2 games; every pair once
    Swiss         at most rounds * floor(n / 2) games; each round pairs players of about equal points that have not met
    knock-out     n - 1 games; says who is best, and little about the rest

Not covered: games across groups, and a fixed opponent (give the pairwise judge a reference instead).
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, TypeAlias

from adjudge.judges.listwise import Field
from adjudge.options import Count, Range
from adjudge.prompts.scorer import guard
from adjudge.protocol import Sample, Score, Scorer, Verifier, response_text, split_reasoning
from adjudge.reasons import of_parts
from adjudge.runtime.contract import grouped, is_groupwise, require_group
from adjudge.runtime.loop import together
from adjudge.scoring.compose.composite import Composite
from adjudge.statistics.arrays import numpy_module
from adjudge.statistics.ratings import Match, fit_strengths, parts_of, points_of

Pair: TypeAlias = tuple[int, int]

Play: TypeAlias = Callable[[Sequence[Pair]], Awaitable[Sequence[float | None]]]
"""Judges the games of one round, which do not depend on each other: one share of the first player for each."""


@dataclass(frozen=True, kw_only=True)
class Played:
    """What a tournament saw.

    Attributes:
        games: (first, second, share of the first), in the order of play.
        unjudged: the games without an outcome.
        survived: knock-out only: for each player, how many rounds it was still in; else empty.
    """

    games: tuple[tuple[int, int, float], ...]
    unjudged: tuple[Pair, ...] = ()
    survived: tuple[int, ...] = ()


async def round_robin(players: int, play: Play) -> Played:
    """Play every pair once, in one round."""
    _check_players(players)
    log = _Log(play)
    await log.round([(i, j) for i in range(players) for j in range(i + 1, players)])
    return log.played()


async def swiss(players: int, play: Play, *, rounds: int | None = None) -> Played:
    """Pair players of about equal points, round by round, nobody twice with the same.

    Args:
        players: how many, at least 2.
        play: judges one round.
        rounds: at least 1; None takes ceil(log2(players)) + 1.  Rounds end early when everybody has met everybody.
    """
    _check_players(players)
    if rounds is not None and rounds < 1:
        raise ValueError(f"rounds={rounds!r}; a Swiss tournament has at least 1")
    log = _Log(play)
    met: set[Pair] = set()
    byes = [0] * players
    for _ in range(swiss_rounds(players) if rounds is None else rounds):
        points = log.points(players)
        order = sorted(range(players), key=lambda player: (-points[player] - byes[player], player))
        pairs, idle = _pair_up(order, met, byes)
        if not pairs:
            break
        for player in idle:
            byes[player] += 1  # worth a win for the pairing alone; it is not a game
        met.update((min(pair), max(pair)) for pair in pairs)
        await log.round(pairs)
    return log.played()


def swiss_rounds(players: int) -> int:
    """Return the rounds that separate the best from the rest with one to spare: ceil(log2(players)) + 1."""
    return math.ceil(math.log2(players)) + 1


async def knock_out(players: int, play: Play) -> Played:
    """Let winners go on until one is left; the best seeds get the byes and meet the weakest seeds.

    The better of a tie is whoever won more before, then the better seed.  Where a game could not be judged, neither
    goes on: a player that breaks the judge must not pass, and whom it met is not known to have won.
    """
    _check_players(players)
    log = _Log(play)
    survived = [0] * players
    alive = list(range(players))
    byes = 2 ** math.ceil(math.log2(players)) - players
    while len(alive) > 1:
        resting, playing = alive[:byes], alive[byes:]
        if len(playing) % 2:  # somebody dropped out with an unjudged game
            resting, playing = [*resting, playing[0]], playing[1:]
        byes = 0
        half = len(playing) // 2
        pairs = list(zip(playing[:half], reversed(playing[half:]), strict=True))
        points = log.points(players)
        shares = await log.round(pairs)
        winners = set(resting)
        for (first, second), share in zip(pairs, shares, strict=True):
            if share is not None:
                level = points[first] >= points[second]
                winners.add(first if share > 0.5 or (share == 0.5 and level) else second)
        alive = [player for player in alive if player in winners]
        for player in alive:
            survived[player] += 1
    return log.played(tuple(survived))


class _Log:
    def __init__(self, play: Play) -> None:
        self._play = play
        self._games: list[tuple[int, int, float]] = []
        self._unjudged: list[Pair] = []

    async def round(self, pairs: Sequence[Pair]) -> Sequence[float | None]:
        shares = await self._play(pairs) if pairs else []
        if len(shares) != len(pairs):
            raise ValueError(f"a round of {len(pairs)} games got {len(shares)} outcomes; give one for each")
        for (first, second), share in zip(pairs, shares, strict=True):
            if share is None:
                self._unjudged.append((first, second))
            elif 0 <= share <= 1:
                self._games.append((first, second, float(share)))
            else:
                raise ValueError(f"the game {first} against {second} gave {share!r}; need a share in [0, 1], or None")
        return shares

    def points(self, players: int) -> list[float]:
        points = [0.0] * players
        for first, second, share in self._games:
            points[first] += share
            points[second] += 1 - share
        return points

    def played(self, survived: tuple[int, ...] = ()) -> Played:
        return Played(games=tuple(self._games), unjudged=tuple(self._unjudged), survived=survived)


def _pair_up(order: Sequence[int], met: set[Pair], byes: Sequence[int]) -> tuple[list[Pair], list[int]]:
    """Pair neighbours of an order that have not met; whoever finds nobody sits out, first those that have not yet."""
    left = list(order)
    if len(left) % 2:
        left.remove(min(reversed(left), key=lambda player: byes[player]))
    pairs = []
    while left:
        player = left.pop(0)
        partner = next((other for other in left if (min(player, other), max(player, other)) not in met), None)
        if partner is not None:
            left.remove(partner)
            pairs.append((player, partner))
    return pairs, sorted(set(order) - {player for pair in pairs for player in pair})


def _check_players(players: int) -> None:
    if players < 2:
        raise ValueError(f"a tournament of {players!r} players; it needs at least 2")


Format = Literal["round_robin", "swiss", "knock_out"]
Ranking = Literal["points", "bradley_terry", "place"]


@dataclass(frozen=True, kw_only=True)
class Tournament(Composite):
    """Ranks the responses of a group by games between two; values are in [0, 1], and higher is better.

    Equal responses are one player and share a value.  A response with nothing to judge scores 0 and does not play: the
    judge could see to that only where the response is the first of the two.  The only one that is left scores 1.

    A game without an outcome is not a game: whoever has one in fewer than half of its games fails with "part_failed",
    or with the reason of a game whose engine is gone.
    `Score.parts` holds the games a response was asked about as the first of the two.

    Attributes:
        judge: the pairwise judge.
        format: who plays whom.
        ranking: how games become values; "place" is for the knock-out, which has no other.
        rounds: Swiss only: how many; None takes ceil(log2(players)) + 1.
        ridge: Bradley-Terry only: the penalty, > 0.
        reasoning: "strip" lets play what follows the last end-of-thinking tag, and a response that ends inside its
            reasoning scores 0; "keep" the whole text.
        min_words: a response of fewer words scores 0 (`no_answer`); 1 where one word can be an answer.
        max_characters: a response of more characters scores 0 (`too_complex`).
        seed: changes who meets whom.
        name: short name, used in provenance and reports.
    """

    spec_form: ClassVar[str] = "`{judge: SPEC, format: ..., ...}`"
    example: ClassVar[str] = "{tournament: {judge: SCORER, format: swiss}}"
    needs_reference: ClassVar[bool] = False  # of the samples; what the judge compares with is the other response

    judge: Scorer | Verifier
    format: Format = "swiss"
    ranking: Ranking = "points"
    rounds: Count | None = None
    ridge: Annotated[float, Range(gt=0)] = 0.1
    reasoning: Literal["strip", "keep"] = "strip"
    min_words: Count = 2
    max_characters: Count = 50_000
    seed: int = 0
    name: str = "tournament"

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(is_groupwise(part.scorer) for part in self.members()):
            raise ValueError(
                f"the judge of {self.name!r} compares groups by itself, and a tournament hands it two responses; use "
                "it without a tournament, or give a pairwise judge"
            )
        if (low := min(getattr(part.scorer, "lowest", 0.0) for part in self.members())) < 0:
            raise ValueError(
                f"the judge of {self.name!r} gives values from {low:g} on, and a tournament reads how likely the first "
                "response is the better one, from 0 to 1; give the judge `output: unit`"
            )
        if self.format == "knock_out" and self.ranking == "points":
            object.__setattr__(self, "ranking", "place")
        fitting = ("place",) if self.format == "knock_out" else ("points", "bradley_terry")
        if self.ranking not in fitting:
            raise ValueError(f"Tournament option ranking={self.ranking!r}; a {self.format} has {' or '.join(fitting)}")
        if self.rounds is not None and self.format != "swiss":
            raise ValueError(f"Tournament option rounds={self.rounds!r}; only a Swiss tournament has rounds")
        if self.ranking == "bradley_terry":
            numpy_module()  # asked for here, so that a missing package is not found after the judge was paid

    @property
    def groupwise(self) -> bool:
        """A tournament needs whole groups."""
        return True

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if the sample has no group; the judge sees the games, not the samples."""
        require_group(self.name, sample)

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Let the members of each group play; groups play at the same time, so that a judge gets full batches."""
        scores: dict[int, Score] = {}
        playing: list[list[int]] = []
        for name, places in grouped({place: sample.group for place, sample in enumerate(samples)}).items():
            if not name:
                scores.update(dict.fromkeys(places, Score.failed("bad_sample", error="the sample has no group")))
            elif any(samples[place].prompt != samples[places[0]].prompt for place in places):
                error = "the members of the group answer different prompts"
                scores.update(dict.fromkeys(places, Score.failed("bad_sample", error=error)))
            elif len(places) == 1:
                scores[places[0]] = Score.failed("group_too_small", error="the group has one member; two are needed")
            else:
                playing.append(places)
        results = await together([self._group([samples[place] for place in places]) for places in playing])
        for places, standings in zip(playing, results, strict=True):
            scores.update(zip(places, standings, strict=True))
        return [scores[place] for place in range(len(samples))]

    async def _group(self, samples: Sequence[Sample]) -> list[Score]:
        texts, faults = zip(*(self._shown(sample) for sample in samples), strict=True)
        playing = [text for text, fault in zip(texts, faults, strict=True) if not fault]
        field = Field.of(playing, seed=self.seed)
        place = {text: index for index, text in enumerate(field.texts)}
        values: Mapping[int, Score] = {}
        if len(place) == 1:
            alone = 1.0 if len(playing) < len(texts) else 0.5
            values = {0: Score(value=alone, evidence={"unopposed": True})}
        elif place:
            by_text = dict(zip(texts, samples, strict=True))
            values = await _Event(self, [by_text[text] for text in field.texts], field.texts).run()
        scores = []
        paid: set[str] = set()
        for text, fault in zip(texts, faults, strict=True):
            if fault:
                scores.append(Score.scored(0.0, fault))
                continue
            score = values[place[text]]
            scores.append(score if text not in paid else replace(score, parts={}))  # the games of a text are paid once
            paid.add(text)
        return scores

    def _shown(self, sample: Sample) -> tuple[str, str]:
        """What a player shows, and why it does not play, or ""."""
        try:
            text = response_text(sample)
        except ValueError:
            return "", "no_answer"
        if self.reasoning == "strip":
            _, text, unfinished = split_reasoning(text)
            if unfinished:
                return "", "unfinished_reasoning"
        return text.strip(), guard(text, min_words=self.min_words, max_characters=self.max_characters)


class _Event:
    def __init__(self, options: Tournament, players: Sequence[Sample], texts: Sequence[str]) -> None:
        self.options = options
        self.players = players
        self.texts = texts
        (self.judge,) = options.members()
        self.parts: list[dict[str, Score]] = [{} for _ in players]

    async def run(self) -> dict[int, Score]:
        n = len(self.players)
        play: Play = self._play
        match self.options.format:
            case "round_robin":
                played = await round_robin(n, play)
            case "swiss":
                played = await swiss(n, play, rounds=self.options.rounds)
            case "knock_out":
                played = await knock_out(n, play)
        values = self._values(played)
        return {player: self._score(player, values.get(player), played) for player in range(n)}

    async def _play(self, pairs: Sequence[Pair]) -> Sequence[float | None]:
        games = []
        for first, second in pairs:
            other, answer = self.texts[second], self.players[first].reference
            reference = {"response": other, "answer": answer} if isinstance(answer, str) else other
            player = self.players[first]
            games.append(replace(player, response=self.texts[first], reference=reference, id="", group="", extra={}))
        scores = await self.judge.score(games, inside=self.options.name)
        for (first, second), score in zip(pairs, scores, strict=True):
            self.parts[first][f"game {len(self.parts[first]) + 1} against player {second}"] = score
            if score.value is not None and not 0 <= score.value <= 1:
                raise ValueError(
                    f"the judge of {self.options.name!r} gave {score.value!r}; a pairwise judge returns how likely the "
                    "response is better than its reference, from 0 to 1"
                )
        return [score.value for score in scores]

    def _values(self, played: Played) -> dict[int, float]:
        if self.options.ranking == "place":
            needed = math.ceil(math.log2(len(self.players)))
            return {player: rounds / needed for player, rounds in enumerate(played.survived)}
        matches = [Match(first=str(i), second=str(j), share=share) for i, j, share in played.games]
        if self.options.ranking == "points":
            return {int(name): share for name, share in points_of(matches).items()}
        values: dict[int, float] = {}
        parts = parts_of(matches)
        if len(parts) == 1:  # games without an outcome may leave a field in pieces; there is no ranking across them
            values = {int(k): v for k, v in fit_strengths(matches, ridge=self.options.ridge).win_rates().items()}
        return values

    def _score(self, player: int, value: float | None, played: Played) -> Score:
        unjudged = sum(player in pair for pair in played.unjudged)
        games = sum(player in (i, j) for i, j, _ in played.games)
        evidence = {"games": games, "unjudged": unjudged}
        parts = self.parts[player]
        lost = unjudged > 0 if self.options.ranking == "place" else unjudged > games
        if value is None or lost:
            reason = of_parts(game.reason for games in self.parts for game in games.values())
            return Score(value=None, status="failed", reason=reason, parts=parts, evidence=evidence)
        return Score(value=value, parts=parts, evidence=evidence)
