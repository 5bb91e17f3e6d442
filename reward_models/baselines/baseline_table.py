"""Baselines to print beside every result: rules without training, and preference models fitted on the other prompts.

A contest is won by the better of two answers if it gets the higher score; a tie counts half.  Each contest is decided
by a model that saw nothing of its prompts: the groups are dealt to folds, and a fold's contests are scored by the model
fitted on all other folds.  So every row of a small corpus is held out once.  Intervals come from a bootstrap over
groups (prompts), since the contests of one prompt are not independent: an interval over pairs would be too narrow.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adjudge.protocol import Message
from adjudge.reward_models.baselines.features import FeatureOptions
from adjudge.reward_models.baselines.preference_model import ChatFeatures, fit_weights
from adjudge.statistics.intervals import RESAMPLES, middle, resampled
from adjudge.training.examples import Example, Pair, Rating, opening

Floats = npt.NDArray[np.float64]
_PARTNERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response with its prompt, and its prompt's group: nothing is learnt from a group that is held out."""

    prompt: str | Sequence[Message]
    response: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Two answers of which the first is better.

    Attributes:
        worse: to the same prompt as the better one, if the data have such.
        source: the cell of the corpus it belongs to.
    """

    better: Answer
    worse: Answer
    source: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The share of contests won, in [0, 1], with its 95 % interval, and of how many contests and prompts it is."""

    value: float
    low: float
    high: float
    contests: int
    groups: int

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def contests_of_pairs(pairs: Sequence[Pair]) -> list[Contest]:
    """Return the contests that preference pairs are; ties, and soft labels at 1/2, are none."""
    contests = []
    for pair in pairs:
        chance = 0.5 if pair.tie else 1.0 if pair.probability is None else pair.probability
        group = pair.group or opening(pair.prompt)
        sides = [Answer(prompt=pair.prompt, response=text, group=group) for text in (pair.chosen, pair.rejected)]
        better, worse = sides if chance > 0.5 else sides[::-1]
        if chance != 0.5 and pair.weight:
            contests.append(Contest(better=better, worse=worse, source=pair.source, weight=pair.weight))
    return contests


def contests_of_ratings(ratings: Sequence[Rating], *, seed: int = 0) -> list[Contest]:
    """Return contests between right and wrong answers to *different* prompts of one source.

    For corpora with one answer for each prompt.  Each answer of the rarer kind meets eight of the other, drawn at
    random.  A score that knows only how hard a prompt looks wins some of them: rules without training show how many.
    """
    chooser = random.Random(seed)
    contests = []
    for source in sorted({rating.source for rating in ratings}):
        sides: tuple[list[Answer], list[Answer]] = ([], [])
        for rating in ratings:
            if rating.source == source and rating.values[0] is not None and rating.values[0] != 0.5:
                group = rating.group or opening(rating.prompt)
                answer = Answer(prompt=rating.prompt, response=rating.response, group=group)
                sides[rating.values[0] > 0.5].append(answer)
        rare = int(len(sides[1]) < len(sides[0]))
        for answer in sides[rare]:
            for partner in chooser.sample(sides[1 - rare], min(_PARTNERS, len(sides[1 - rare]))):
                better, worse = (answer, partner) if rare else (partner, answer)
                contests.append(Contest(better=better, worse=worse, source=source))
    return contests


RULES: Mapping[str, Callable[[Answer], float]] = {
    "longer wins": lambda answer: float(len(answer.response)),
    "shorter wins": lambda answer: -float(len(answer.response)),
    "more steps win": lambda answer: float(steps_in(answer.response)),
    "fewer steps win": lambda answer: -float(steps_in(answer.response)),
}
"""Scores that need no training; "chance" is 1/2 by definition."""


def steps_in(text: str) -> int:
    """Return how many steps a text seems to have: paragraphs if there are several, else lines that are not blank."""
    paragraphs = sum(1 for part in text.split("\n\n") if part.strip())
    return paragraphs if paragraphs > 1 else sum(1 for line in text.split("\n") if line.strip())


def wins(contests: Sequence[Contest], score: Callable[[Answer], float]) -> Floats:
    """Return 1, 0.5 or 0 for each contest: won, tied, lost."""
    margins = np.array([score(contest.better) - score(contest.worse) for contest in contests], dtype=np.float64)
    won: Floats = np.where(margins == 0, 0.5, margins > 0)
    return won


def share(
    contests: Sequence[Contest],
    won: Floats,
    *,
    against: Floats | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Share:
    """Return the share of contests won, with its 95 % percentile interval over resampled groups.

    `won` is what `wins` returned; with that of another score as `against`, the share is the difference, in [-1, 1].
    With one seed two scores meet the same resamples.
    """
    names = {name: at for at, name in enumerate(sorted({a.group for c in contests for a in (c.better, c.worse)}))}
    one = np.array([names[contest.better.group] for contest in contests])
    other = np.array([names[contest.worse.group] for contest in contests])
    weights = np.array([contest.weight for contest in contests])
    values = weights * (won if against is None else won - against)
    drawn = []
    for times in resampled(len(names), seed=seed, rounds=resamples):
        count = np.where(one == other, times[one], times[one] * times[other])
        if total := float(count @ weights):
            drawn.append(float(count @ values) / total)
    low, high = middle(drawn)
    return Share(
        value=float(values.sum() / weights.sum()),
        low=low,
        high=high,
        contests=len(contests),
        groups=len(names),
    )


LONGER = "longer wins"
_MODELS: Mapping[str, FeatureOptions] = {"preference model": FeatureOptions()}


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRow:
    """What a rule or a model is worth.

    Attributes:
        won: the share of contests it wins.
        above: that share less that of "longer wins", on the same resamples.
        cells: the shares by `Contest.source`, where there are several.
    """

    name: str
    won: Share
    above: Share
    cells: Mapping[str, Share]


def baseline_table(
    pairs: Sequence[Pair],
    ratings: Sequence[Rating] = (),
    *,
    models: Mapping[str, FeatureOptions] = _MODELS,
    folds: int = 5,
    seed: int = 0,
    only: frozenset[str] | None = None,
) -> list[BaselineRow]:
    """Return the rules without training and the fitted models on one corpus, all on the same contests.

    Args:
        pairs: what is decided; where there are none, right and wrong ratings of different prompts meet.
        ratings: more to learn from, values in [0, 1].
        models: what models look at, by name.
        folds: how many parts the prompts are dealt to, at least 2.
        seed: of folds, drawn contests and intervals.
        only: groups whose contests are reported; None for all.  The others are still learnt from.

    Raises:
        ValueError: there are no contests, or too few groups for the folds.
    """
    contests = contests_of_pairs(pairs) if pairs else contests_of_ratings(ratings, seed=seed)
    reported = [c for c in contests if only is None or {c.better.group, c.worse.group} <= only]
    if not reported:
        raise ValueError("there is no contest to report: no pair with a preference, or no right and wrong ratings")
    outcomes = {name: wins(reported, rule) for name, rule in RULES.items()}
    for name, features in models.items():
        outcomes[name] = held_out_wins(reported, pairs, ratings, features, folds=folds, seed=seed)
    return [_row(name, reported, won, outcomes[LONGER], seed) for name, won in outcomes.items()]


def held_out_wins(
    contests: Sequence[Contest],
    pairs: Sequence[Pair],
    ratings: Sequence[Rating],
    features: FeatureOptions,
    *,
    folds: int = 5,
    seed: int = 0,
) -> Floats:
    """Return 1, 0.5 or 0 for each contest, each answer scored by the model fitted without its fold's prompts.

    A contest between prompts of two folds is scored by a model fitted without either.

    Raises:
        ValueError: `folds` is below 2, or a model has too little to learn from.
    """
    if folds < 2:
        raise ValueError(f"folds is {folds!r}; it must be at least 2")
    examples: list[Example] = [*pairs, *ratings]
    chats = ChatFeatures(features)
    homes = [fold_of(example.group or opening(example.prompt), folds, seed) for example in examples]
    needed: dict[frozenset[int], list[int]] = {}
    for place, contest in enumerate(contests):
        key = frozenset(fold_of(answer.group, folds, seed) for answer in (contest.better, contest.worse))
        needed.setdefault(key, []).append(place)
    won = np.zeros(len(contests))
    for out, places in sorted(needed.items(), key=lambda one: sorted(one[0])):
        known = [example for example, home in zip(examples, homes, strict=True) if home not in out]
        model = fit_weights(known, chats)
        mine = [contests[place] for place in places]
        better, worse = (
            np.array(chats.rewards(model, [chats.number(side.prompt, side.response) for side in sides]))
            for sides in ([contest.better for contest in mine], [contest.worse for contest in mine])
        )
        won[places] = np.where(better == worse, 0.5, better > worse)
    return won


def fold_of(group: str, folds: int, seed: int) -> int:
    """Return the fold of a group: a hash of its name, so that it does not depend on what else there is."""
    digest = hashlib.sha256(f"{seed}\n{group}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % folds


def _row(name: str, contests: Sequence[Contest], won: Floats, longer: Floats, seed: int) -> BaselineRow:
    cells = {}
    sources = sorted({contest.source for contest in contests})
    for source in sources if len(sources) > 1 else ():
        places = [place for place, contest in enumerate(contests) if contest.source == source]
        cells[source] = share([contests[place] for place in places], won[places], seed=seed)
    return BaselineRow(
        name=name,
        won=share(contests, won, seed=seed),
        above=share(contests, won, against=longer, seed=seed),
        cells=cells,
    )
