"""Pairs: a case of two responses, and the rates that every benchmark of pairs has beside its own number.

The gold of a pair is `{"better": 0}` or `{"better": 1}` for the place of the better response, and `{"better": None}`
for a tie.  A tie of the scorer is wrong where the gold has a winner, and so is a missing verdict; both are counted
beside.

Not covered: who wins a pair (`adjudge.evals.pairs.verdict`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adjudge.evals.benchmarks.case import Case, Stored
from adjudge.evals.benchmarks.fields import cluster_of
from adjudge.evals.benchmarks.outcome import Outcome
from adjudge.evals.benchmarks.trivial import trivial_choices
from adjudge.evals.pairs.pair_accuracy import pair_accuracy
from adjudge.evals.pairs.verdict import both_orders, verdict
from adjudge.evals.results.measure import Measure
from adjudge.evals.statistics.bootstrap import mean_by_part, mean_interval
from adjudge.evals.statistics.draws import Draws
from adjudge.intervals import Interval
from adjudge.io.values import Text
from adjudge.protocol import Sample


def pair_case(
    *,
    id: str,
    prompt: Text,
    responses: Sequence[Text],
    gold: Mapping[str, Any],
    part: str = "",
    cluster: str = "",
    stored: Sequence[Stored] = (),
    compared: bool = False,
    texts: bool = True,
) -> Case:
    """Return a case of candidates for one prompt, one or more; without a cluster, the prompt names it."""
    return Case(
        id=id,
        samples=tuple(
            Sample(prompt=prompt, response=response, id=f"{id}/{at}", group=id) for at, response in enumerate(responses)
        ),
        gold=gold,
        cluster=cluster or cluster_of(prompt),
        part=part,
        stored=stored,
        compared=compared,
        texts=texts,
    )


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
    """Return the rates of pairs that are not part of a published number, but that its readers need.

    Args:
        outcomes: of pairs.
        draws: how bounds are drawn.
        parts: whether the accuracy of each part is among them.
    """
    clusters = [outcome.cluster for outcome in outcomes]
    said = [verdict(outcome) for outcome in outcomes]
    won = [_won(one, outcome.gold["better"]) for one, outcome in zip(said, outcomes, strict=True)]
    decided = [at for at, outcome in enumerate(outcomes) if outcome.gold["better"] is not None]
    measures = []
    if decided:
        names = [outcomes[at].part for at in decided] if parts else []
        measures += _accuracies([won[at] for at in decided], names, [clusters[at] for at in decided], draws)
    if len(decided) < len(outcomes):
        right = mean_interval([float(one == 1) for one in won], clusters, draws)
        measures.append(Measure(name="agreement, ties included", interval=right))
    tied = mean_interval([float(one == 0) for one in said], clusters, draws)
    missing = mean_interval([float(one is None) for one in said], clusters, draws)
    measures.append(Measure(name="ties", interval=tied, better="none"))
    measures.append(Measure(name="no verdict", interval=missing, better="low"))
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


def list_words(count: int, right: Sequence[int]) -> tuple[str, Sequence[str]]:
    """Return which responses of a list are right, counted from 1, and a word for each.

    Args:
        count: responses in the list.
        right: places of the right ones, from 0.
    """
    places = set(right)
    notes = ["right" if place in places else "wrong" for place in range(count)]
    if not places:
        return f"none of the {count} responses is right", notes
    shown = ", ".join(str(place + 1) for place in sorted(places))
    return f"of {count} responses, right {'is' if len(places) == 1 else 'are'} number {shown}", notes


def fixed_order(outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[Outcome]]:
    """Return what trivial scorers say of candidates whose order in the file tells which one is right.

    Where the file holds no texts there is nothing to be longer.
    """
    made = trivial_choices(outcomes, places=False)
    return made if any(any(outcome.sizes) for outcome in outcomes) else without_sizes(made)


def without_sizes(made: Mapping[str, Sequence[Outcome]]) -> Mapping[str, Sequence[Outcome]]:
    """Return trivial scorers but those that look at lengths; each is still made when it is asked for."""
    return _Some(made, [name for name in made if name not in ("longer", "shorter")])


class _Some(Mapping[str, Sequence[Outcome]]):
    def __init__(self, made: Mapping[str, Sequence[Outcome]], names: Sequence[str]) -> None:
        self._made, self._names = made, names

    def __getitem__(self, name: str) -> Sequence[Outcome]:
        if name not in self._names:
            raise KeyError(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _won(said: int | None, better: int | None) -> float:
    if said is None:
        return 0.0
    if better is None:
        return float(said == 0)
    return 0.5 if said == 0 else float(said == (1 if better == 0 else -1))


def _accuracies(won: Sequence[float], parts: Sequence[str], clusters: Sequence[str], draws: Draws) -> list[Measure]:
    strict = [float(one == 1) for one in won]
    found = [
        Measure(name="accuracy", interval=mean_interval(strict, clusters, draws)),
        Measure(name="accuracy, ties as half", interval=mean_interval(won, clusters, draws)),
    ]
    if len(set(parts)) > 1:
        by_part = mean_by_part(strict, parts, clusters, draws)
        found += [Measure(name="accuracy", part=part, interval=rate) for part, rate in by_part.items()]
    return found


def _order_measures(compared: Sequence[Outcome]) -> list[Measure]:
    """The rates of pairs that were seen in both orders; without bounds, which `adjudge eval llm_bar` has."""
    if not compared:
        return []
    rates = pair_accuracy([both_orders(outcome, 1.0 - outcome.gold["better"]) for outcome in compared])
    shares = {
        "accuracy, as the file orders them": rates.straight,
        "accuracy, swapped": rates.swapped,
        "right in both orders": rates.both,
        "same winner in both orders": rates.agreement,
    }
    return [Measure(name=name, interval=Interval(value=value, n=rates.n)) for name, value in shares.items()]
