"""Pairs and lists: who wins a pair, how often a scorer is right, and the rates that every such benchmark has.

A scorer of single responses gives each its own number, and the higher one wins.  A scorer whose reference is the other
response gives each response's share against the other one, and so sees the pair twice, in both orders; a win counts 1,
a loss -1, a tie 0, and the sign of the sum decides (JudgeBench, arXiv 2410.12784).

The gold of a pair is `{"better": 0}` or `{"better": 1}` for the place of the better response, and `{"better": None}`
for a tie; that of a list is `{"right": [places of the right responses]}`.  A tie of the scorer is wrong where the gold
has a winner, and so is a missing verdict, which agrees with nothing, another missing one included; both are counted
beside.  A list with a response that has no score has no verdict: its rates are 0.

    credit           share of right responses among those with the highest score: what picking one of them earns
    alone            1 where every response with the highest score is right
    reciprocal rank  1 / rank of the best right response among the wrong ones; equal scores share the mean of their
                     ranks; `best` gives them the best one, as RewardMATH (arXiv 2410.01729) does

Sources: LLMBar (arXiv 2310.07641), JudgeBench, RewardMATH.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from adjudge.evals.benchmarks.benchmark import Benchmark
from adjudge.evals.benchmarks.case import Outcome
from adjudge.evals.reports.result import Measure
from adjudge.statistics.bootstrap import mean_by_part
from adjudge.statistics.intervals import Draws, Interval

EVEN: Final = 0.5
"""Share of a response that is as good as the other one."""


def sides(outcome: Outcome) -> tuple[int | None, int | None]:
    """Return who won where the first response was shown first, and where it was shown second.

    1 is the pair's first response in both, -1 its second, 0 neither, None no verdict.  Scores of single responses know
    no order, so they say the same in both.
    """
    if len(outcome.values) != 2:
        raise ValueError(f"the case {outcome.id!r} has {len(outcome.values)} samples; a pair has two")
    first, second = outcome.values
    if outcome.compared:
        return _sign(first, EVEN), _sign(EVEN, second)
    both = _sign(first, second)
    return both, both


def verdict(outcome: Outcome) -> int | None:
    """Return 1 if a pair's first response wins, -1 if its second does, 0 if neither, None without a verdict.

    Of scores, one that is missing leaves no verdict.  Of shares in two orders, one that is missing counts nothing and
    the other decides, as in JudgeBench; orders that contradict each other are a tie.
    """
    said = [side for side in sides(outcome) if side is not None]
    return _sign(sum(said), 0) if said else None


def _sign(one: float | None, other: float | None) -> int | None:
    return None if one is None or other is None else (one > other) - (one < other)


def wins(outcome: Outcome) -> float:
    """Return 1 where the scorer prefers the better response, 0.5 where it says tie, 0 otherwise, 0 without a verdict.

    Where the gold is a tie: 1 where the scorer says so too, else 0.
    """
    return _won(verdict(outcome), outcome.gold["better"])


def pair_credit(outcome: Outcome) -> float | None:
    """Return 1 for a pair that is right and 0 for a tie or a wrong one; None without a verdict or a winner."""
    said, better = verdict(outcome), outcome.gold["better"]
    return None if said is None or better is None else float(_won(said, better) == 1)


def pair_measures(outcomes: Sequence[Outcome], draws: Draws, *, parts: bool = True) -> list[Measure]:
    """Return the rates of pairs that are not part of a published number, but that its readers need."""
    clusters = [outcome.cluster for outcome in outcomes]
    said = [verdict(outcome) for outcome in outcomes]
    won = [_won(one, outcome.gold["better"]) for one, outcome in zip(said, outcomes, strict=True)]
    decided = [at for at, outcome in enumerate(outcomes) if outcome.gold["better"] is not None]
    measures = []
    if decided:
        names = [outcomes[at].part for at in decided] if parts else []
        measures += _accuracies([won[at] for at in decided], names, [clusters[at] for at in decided], draws)
    if len(decided) < len(outcomes):
        measures.append(Measure.mean("agreement, ties included", [one == 1 for one in won], clusters, draws))
    measures.append(Measure.mean("ties", [one == 0 for one in said], clusters, draws, better="none"))
    measures.append(Measure.mean("no verdict", [one is None for one in said], clusters, draws, better="low"))
    return [*measures, *_order_measures([outcomes[at] for at in decided if outcomes[at].compared])]


def pair_words(outcome: Outcome) -> tuple[str, Sequence[str]]:
    """Return which response of a pair is better, and a word for each."""
    better = outcome.gold["better"]
    if better is None:
        return "a tie: neither response is better", ()
    return (
        f"the {('first', 'second')[better]} response is better",
        ["chosen" if place == better else "rejected" for place in range(2)],
    )


class ChoiceBenchmark(Benchmark):
    """A benchmark whose cases are pairs, with `{"better": ..}` as gold, and lists, with `{"right": [..]}`."""

    alone: ClassVar[bool] = False
    """Whether a list earns 1 where its right responses alone are on top, and else nothing."""

    def credit(self, outcome: Outcome) -> float | None:
        """Return 1 for a right pair, 0 for a tie or a wrong one; of a list, what picking the highest score earns."""
        if "better" in outcome.gold:
            return pair_credit(outcome)
        if not outcome.judged:
            return None
        rates = ranked(outcome.values, outcome.gold["right"])
        return rates.alone if self.alone else rates.credit

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return which response is better, or which are right."""
        if "better" in outcome.gold:
            return pair_words(outcome)
        return list_words(len(outcome.values), outcome.gold["right"])


def list_words(count: int, right: Sequence[int]) -> tuple[str, Sequence[str]]:
    """Return which responses of a list are right, counted from 1, and a word for each."""
    places = set(right)
    notes = ["right" if place in places else "wrong" for place in range(count)]
    if not places:
        return f"none of the {count} responses is right", notes
    shown = ", ".join(str(place + 1) for place in sorted(places))
    return f"of {count} responses, right {'is' if len(places) == 1 else 'are'} number {shown}", notes


def _won(said: int | None, better: int | None) -> float:
    if said is None:
        return 0.0
    if better is None:
        return float(said == 0)
    return 0.5 if said == 0 else float(said == (1 if better == 0 else -1))


def _accuracies(won: Sequence[float], parts: Sequence[str], clusters: Sequence[str], draws: Draws) -> list[Measure]:
    strict = [float(one == 1) for one in won]
    return [
        Measure.mean("accuracy", strict, clusters, draws),
        Measure.mean("accuracy, ties as half", won, clusters, draws),
        *_accuracy_by_part(strict, parts, clusters, draws),
    ]


def _accuracy_by_part(
    right: Sequence[float], parts: Sequence[str], clusters: Sequence[str], draws: Draws
) -> list[Measure]:
    if len(set(parts)) < 2:
        return []
    by_part = mean_by_part(right, parts, clusters, draws)
    return [Measure(name="accuracy", part=part, interval=rate) for part, rate in by_part.items()]


def _order_measures(compared: Sequence[Outcome]) -> list[Measure]:
    """The rates of pairs that were seen in both orders; without bounds, which `adjudge eval llm_bar` has."""
    if not compared:
        return []
    rows = [(*sides(outcome), 1 if outcome.gold["better"] == 0 else -1) for outcome in compared]
    hits = {
        "accuracy, as the file orders them": [one == gold for one, _, gold in rows],
        "accuracy, swapped": [other == gold for _, other, gold in rows],
        "right in both orders": [one == other == gold for one, other, gold in rows],
        "same winner in both orders": [one is not None and one == other for one, other, _ in rows],
    }
    return [
        Measure(name=name, interval=Interval(value=sum(hit) / len(rows), n=len(rows))) for name, hit in hits.items()
    ]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The rates of one list, in [0, 1]; see the table above."""

    credit: float = 0.0
    alone: float = 0.0
    tied: float = 0.0
    reciprocal_rank: float = 0.0
    best_reciprocal_rank: float = 0.0


def ranked(values: Sequence[float | None], right: Sequence[int]) -> Ranked:
    """Return the rates of a list."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Ranked()
    places = set(right)
    highest, own = max(known), max(known[at] for at in places)
    best = [at for at, value in enumerate(known) if value == highest]
    credit = sum(at in places for at in best) / len(best)
    wrong = [value for at, value in enumerate(known) if at not in places]
    above, equal = sum(value > own for value in wrong), sum(value == own for value in wrong)
    return Ranked(
        credit=credit,
        alone=float(credit == 1),
        tied=float(0 < credit < 1),
        reciprocal_rank=1 / (1 + above + equal / 2),
        best_reciprocal_rank=1 / (1 + above),
    )


def list_measures(outcomes: Sequence[Outcome], draws: Draws) -> list[Measure]:
    """Return the rates of lists, the share that picking the highest score earns first."""
    rates = [ranked(outcome.values, outcome.gold["right"]) for outcome in outcomes]
    clusters = [outcome.cluster for outcome in outcomes]
    columns = {
        "accuracy": [rate.credit for rate in rates],
        "right alone on top": [rate.alone for rate in rates],
        "reciprocal rank": [rate.reciprocal_rank for rate in rates],
    }
    missing = [not one.judged for one in outcomes]
    return [
        *(Measure.mean(name, column, clusters, draws) for name, column in columns.items()),
        Measure.mean("right and wrong tied on top", [rate.tied for rate in rates], clusters, draws, better="none"),
        Measure.mean("no verdict", missing, clusters, draws, better="low"),
        *_accuracy_by_part(columns["accuracy"], [outcome.part for outcome in outcomes], clusters, draws),
    ]
