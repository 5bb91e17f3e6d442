"""Baselines to print beside every result: rules without training, and preference models fitted on the other prompts.

Each contest is decided by a model that saw nothing of its prompts: the groups are dealt to folds, and a fold's contests
are scored by the model fitted on all other folds.  So every row of a small corpus is held out once.

Not covered: models of others; put their `Share` (`contests.share`) beside these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adjudge.reward_models.baselines.contests import (
    RULES,
    Answer,
    Contest,
    Floats,
    Share,
    contests_of_pairs,
    contests_of_ratings,
    share,
    wins,
)
from adjudge.reward_models.baselines.features import ChatFeatures, FeatureOptions
from adjudge.reward_models.baselines.fitting import Example, fit_weights
from adjudge.reward_models.baselines.preference_weights import PreferenceWeights
from adjudge.training.examples import Pair, Rating, opening

LONGER = "longer wins"
_MODELS: Mapping[str, FeatureOptions] = {"preference model": FeatureOptions()}


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRow:
    """What one baseline is worth.

    Attributes:
        name: of the rule or the model.
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
    told = [c for c in contests if only is None or {c.better.group, c.worse.group} <= only]
    if not told:
        raise ValueError("there is no contest to report: no pair with a preference, or no right and wrong ratings")
    outcomes = {name: wins(told, rule) for name, rule in RULES.items()}
    for name, features in models.items():
        outcomes[name] = held_out_wins(told, pairs, ratings, features, folds=folds, seed=seed)
    return [_row(name, told, won, outcomes[LONGER], seed) for name, won in outcomes.items()]


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
        weights = fit_weights(known, chats)

        def reward(answer: Answer, weights: PreferenceWeights = weights) -> float:
            return weights.reward_of(chats[chats.number(answer.prompt, answer.response)])

        won[places] = wins([contests[place] for place in places], reward)
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
