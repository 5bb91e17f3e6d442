"""Benchmarks whose case is one response with a label: what they share.

The number of such a benchmark is accuracy, the share of responses that the scorer calls what the label says.  Without a
verdict a response is called nothing, so it is never right; how many there are, and the accuracy of the others, stand
beside.  Not covered: what a row holds, which each benchmark says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from adjudge.evals.benchmarks.benchmark import Benchmark
from adjudge.evals.benchmarks.case import Case, Stored
from adjudge.evals.benchmarks.fields import cluster_of
from adjudge.evals.benchmarks.outcome import Outcome
from adjudge.evals.results.figures import Figure
from adjudge.evals.results.measure import Measure
from adjudge.evals.statistics.draws import Draws
from adjudge.evals.verifying.rates import Judged, rate_measures
from adjudge.evals.verifying.truth import INVALID, RIGHT, WRONG, Truth, called, value_of
from adjudge.io.values import Text
from adjudge.protocol import Sample


@dataclass(frozen=True, kw_only=True)
class Labelled(Benchmark):
    """A benchmark of responses that are labelled right or wrong."""

    published: ClassVar[tuple[str, ...]] = ()
    """Names of the measures that the authors define so."""

    threshold: float = 0.5
    """The smallest value that means right."""

    def __post_init__(self) -> None:
        """Reject thresholds that no value can be compared with."""
        if not -1e300 < self.threshold < 1e300:
            raise ValueError(f"threshold is {self.threshold!r}; give a number that values can be compared with")

    @property
    def classes(self) -> tuple[str, ...]:
        """What a response may be labelled and called."""
        return RIGHT, WRONG

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return accuracy, the rates of each kind of mistake, and accuracy and mistakes of each part."""
        judged = [self.judged(outcome) for outcome in outcomes]
        return [
            replace(measure, published=measure.name in self.published)
            for measure in rate_measures(judged, self.classes, draws)
        ]

    def credit(self, outcome: Outcome) -> float | None:
        """Return 1 for the verdict that the label says, else 0; None without a verdict or without a label."""
        judged = self.judged(outcome)
        return None if judged.said is None or judged.gold is None else float(judged.said == judged.gold)

    def baselines(self, outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[Outcome]]:
        """Return what is said without reading: all right, all wrong, the longer half right, a coin for each."""
        return unread(outcomes, self.threshold)

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return the label, and what the scorer called the response."""
        judged = self.judged(outcome)
        return f"labelled {judged.gold or 'nothing'}", (f"called {judged.said or 'nothing'}",)

    def figures(self, outcomes: Sequence[Outcome], measures: Sequence[Measure]) -> Sequence[Figure]:
        """Return the table of labels and verdicts."""
        from adjudge.evals.statistics.confusion import confusion_grid

        known = [one for outcome in outcomes if (one := self.judged(outcome)).gold is not None]
        if not known:
            return ()
        return (confusion_grid([str(one.gold) for one in known], [one.said for one in known], self.classes),)

    def judged(self, outcome: Outcome) -> Judged:
        """Return a response with its label and its verdict."""
        return Judged(
            gold=outcome.gold["label"],
            said=called(outcome, self.threshold, invalid=INVALID in self.classes),
            value=outcome.values[0],
            status=outcome.statuses[0],
            part=outcome.part,
            cluster=outcome.cluster,
        )


def labelled_case(
    *,
    id: str,
    prompt: Text,
    response: Text,
    label: str | None,
    reference: Any = None,
    part: str = "",
    cluster: str = "",
    stored: Stored | None = None,
    extra: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    texts: bool = True,
) -> Case:
    """Return the case of one response.

    Args:
        id: names it.
        prompt: what was asked; it names the cluster where none is given.
        response: what is judged.
        label: one of the benchmark's classes; None where nobody labelled it.
        reference: what a scorer compares with.
        part: subset it counts in.
        cluster: cases that share it depend on each other.
        stored: a verdict that stands in the file.
        extra: what a scorer may want beside.
        facts: what the benchmark keeps beside the label.
        texts: whether the row holds the response.
    """
    return Case(
        id=id,
        samples=(Sample(prompt=prompt, response=response, reference=reference, extra=dict(extra or {})),),
        gold={"label": label, **(facts or {})},
        cluster=cluster or cluster_of(prompt),
        part=part,
        stored=() if stored is None else (stored,),
        texts=texts,
    )


def stored_verdict(cell: Any, truth: Truth, threshold: float) -> Stored:
    """Return a stored verdict in the words of labels; words that are none, as judges write them, are no verdict."""
    try:
        said = None if cell is None else truth.of(cell)
    except ValueError:
        said = None
    value, reason = value_of(said, threshold)
    return Stored(value=value, reason=reason or ("no_verdict" if value is None else ""))


def unread(outcomes: Sequence[Outcome], threshold: float) -> Mapping[str, Sequence[Outcome]]:
    """Return the outcomes of scorers that do not read: all right, all wrong, longer ones right, a coin.

    "longer" calls a response right that has more characters than the median one; it is left out where no row holds a
    text.
    """
    import statistics

    from adjudge.evals.benchmarks.trivial import random_share

    def same(said: str) -> list[Outcome]:
        value, _ = value_of(said, threshold)
        return [outcome.with_values([value] * len(outcome.values)) for outcome in outcomes]

    made = {"always_right": same(RIGHT), "always_wrong": same(WRONG)}
    sizes = [size for outcome in outcomes for size in outcome.sizes]
    if any(sizes):
        median = statistics.median(sizes)
        made["longer"] = [
            outcome.with_values([threshold + (1.0 if size > median else -1.0) for size in outcome.sizes])
            for outcome in outcomes
        ]
    made["random"] = [
        outcome.with_values(
            [threshold + random_share(f"{outcome.id}/{place}") - 0.5 for place in range(len(outcome.values))]
        )
        for outcome in outcomes
    ]
    return made
