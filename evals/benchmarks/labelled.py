"""Benchmarks whose case is one response with a label: their labels, their rates, and what they share.

The rates of verdicts on labelled responses, with bounds.

    accuracy               labelled responses that are called what their label says
    false accepts          of those not labelled right, the share called right
    false rejects          of those labelled right, the share called something else; no verdict is neither
    precision, recall, F1  of "right"
    MCC                    Matthews' correlation of labels and verdicts
    AUROC                  how likely a right response has a higher value than another one; where values are graded
    accuracy where judged  of the responses with a verdict
    called right           of all responses, labelled or not
    labelled right         of the labelled ones: what the label's author would say in the place of "called right"

The number of such a benchmark is accuracy, the share of responses that the scorer calls what the label says.  Without a
verdict a response is called nothing, so it is never right; how many there are, and the accuracy of the others, stand
beside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from adjudge.evals.benchmarks.benchmark import Benchmark, random_share
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import cluster_of, shown
from adjudge.evals.reports.figures import Figure, confusion_grid
from adjudge.evals.reports.result import Measure
from adjudge.io.values import Text
from adjudge.protocol import Sample, Status
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.bootstrap import share_interval, weighted_bootstrap
from adjudge.statistics.confusion import confusion_intervals
from adjudge.statistics.intervals import NO_DRAWS, Draws, Interval
from adjudge.statistics.ranks import auroc_of

RIGHT: Final = "right"
WRONG: Final = "wrong"
INVALID: Final = "invalid"

USUAL: Final[Mapping[str, str]] = {
    **dict.fromkeys(("1", "true", "yes", "right", "correct", "pass", "passed"), RIGHT),
    **dict.fromkeys(("0", "false", "no", "wrong", "incorrect", "fail", "failed"), WRONG),
    "invalid": INVALID,
}
"""Words of labels, in lower case; numbers and truth are written as words first."""

NO_ANSWER: Final = frozenset({INVALID, "no_answer", "truncated", "unfinished_reasoning", "repetition", "bad_format"})
"""Reasons by which a scorer says that there is no answer to judge; each comes with a value that is not right."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What the words of a label column mean.

    Attributes:
        right: words for a right response; where any of the three is given, the usual words are not known.
        more: further words and what they mean, beside the usual ones.
    """

    right: Sequence[str] = ()
    wrong: Sequence[str] = ()
    invalid: Sequence[str] = ()
    more: Mapping[str, str] = field(default_factory=dict)

    def of(self, label: Any) -> str:
        """Return what a label means.

        Raises:
            ValueError: it is none of the words.
        """
        words = self._words()
        found = words.get(_as_word(label))
        if found is None:
            raise ValueError(
                f"the label {shown(label)} is none of {', '.join(words)}; say what labels mean with --right-label, "
                "--wrong-label and --invalid-label"
            )
        return found

    def _words(self) -> dict[str, str]:
        own = ((self.right, RIGHT), (self.wrong, WRONG), (self.invalid, INVALID))
        if any(words for words, _ in own):
            return {_as_word(word): meaning for words, meaning in own for word in words}
        return {**USUAL, **self.more}


def called(outcome: Outcome, threshold: float, *, invalid: bool = False, place: int = 0) -> str | None:
    """Return what a scorer calls a response; None where it gave no number.

    Args:
        outcome: of the case.
        threshold: the smallest value that means right.
        invalid: whether a value below it, whose reason is one of `NO_ANSWER`, means that there is no answer.
        place: of the sample.
    """
    value = outcome.values[place]
    if value is None:
        return None
    if value >= threshold:
        return RIGHT
    return INVALID if invalid and outcome.reasons[place] in NO_ANSWER else WRONG


def value_of(said: str | None, threshold: float) -> tuple[float | None, str]:
    """Return a value and a reason that `called` takes for this verdict, whatever the threshold is."""
    if said is None:
        return None, ""
    return (threshold + 1.0, "") if said == RIGHT else (threshold - 1.0, INVALID if said == INVALID else "")


def _as_word(label: Any) -> str:
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label).strip().casefold()


class Judged(NamedTuple):
    """A labelled response and a verdict on it.

    Attributes:
        gold: the label; None where nobody labelled it.
        said: the verdict; None where there is none.
    """

    gold: str | None
    said: str | None
    value: float | None
    status: Status
    part: str
    cluster: str


_Hit: TypeAlias = Callable[[Judged], bool]

ACCURACY: Final = "accuracy"
CALLED: Final = "called right"
LABELLED: Final = "labelled right"
_MAX_ROWS: Final = 20_000  # of an AUROC with bounds; each resample sorts nothing, but walks all rows


def rate_measures(judged: Sequence[Judged], classes: Sequence[str], draws: Draws) -> list[Measure]:
    """Return the rates of all responses, and some of each part."""
    known = [one for one in judged if one.gold is not None]
    measures = [*_of_labels(known, classes, draws), *_beside(judged, known, draws)] if known else _plain(judged, draws)
    for part in dict.fromkeys(one.part for one in judged if one.part):
        own = [one for one in judged if one.part == part]
        measures += _of_part(part, own, draws)
    return measures


def _of_labels(known: Sequence[Judged], classes: Sequence[str], draws: Draws) -> list[Measure]:
    gold, said = [str(one.gold) for one in known], [one.said for one in known]
    clusters = [one.cluster for one in known]
    found = confusion_intervals(gold, said, clusters, classes, draws, positive=RIGHT)
    names = [ACCURACY, "precision", "recall", "F1", "MCC", "balanced accuracy"]
    if INVALID in classes:
        names.insert(1, "macro-F1")
    measures = [Measure(name=name, interval=found[name]) for name in names]
    measures[1:1] = _mistakes(known, draws)
    area = _area(known, draws)
    return measures if area is None else [*measures, Measure(name="AUROC", interval=area)]


def _mistakes(known: Sequence[Judged], draws: Draws, part: str = "") -> list[Measure]:
    accepts = [one for one in known if one.gold != RIGHT]
    rejects = [one for one in known if one.gold == RIGHT]
    return [
        Measure(name="false accepts", part=part, interval=_share(accepts, draws, _accepted), better="low"),
        Measure(name="false rejects", part=part, interval=_share(rejects, draws, _rejected), better="low"),
    ]


def _beside(judged: Sequence[Judged], known: Sequence[Judged], draws: Draws) -> list[Measure]:
    with_verdict = [one for one in known if one.said is not None]
    return [
        Measure(name="accuracy where judged", interval=_share(with_verdict, draws, _agrees)),
        *_plain(judged, draws),
        Measure(name=LABELLED, interval=_share(known, draws, lambda one: one.gold == RIGHT), better="none"),
        *(
            [Measure(name="not labelled", interval=_share(judged, draws, lambda one: one.gold is None), better="none")]
            if len(known) < len(judged)
            else []
        ),
    ]


def _plain(judged: Sequence[Judged], draws: Draws) -> list[Measure]:
    return [
        Measure(name=CALLED, interval=_share(judged, draws, _accepted), better="none"),
        Measure(name="abstained", interval=_share(judged, draws, lambda one: one.status == "abstained"), better="low"),
        Measure(name="failed", interval=_share(judged, draws, lambda one: one.status == "failed"), better="low"),
    ]


def _of_part(part: str, own: Sequence[Judged], draws: Draws) -> list[Measure]:
    known = [one for one in own if one.gold is not None]
    measures = []
    if known:
        measures.append(Measure(name=ACCURACY, part=part, interval=_share(known, draws, _agrees)))
        measures += _mistakes(known, draws, part)
    measures.append(Measure(name=CALLED, part=part, interval=_share(own, draws, _accepted), better="none"))
    if known:
        right = _share(known, draws, lambda one: one.gold == RIGHT)
        measures.append(Measure(name=LABELLED, part=part, interval=right, better="none"))
    return measures


def _share(rows: Sequence[Judged], draws: Draws, hit: _Hit) -> Interval:
    return share_interval([float(hit(one)) for one in rows], [one.cluster for one in rows], draws)


def _area(known: Sequence[Judged], draws: Draws) -> Interval | None:
    """Return the AUROC of the labelled rows with a value; None where values are not graded or labels are all alike."""
    rows = [one for one in known if one.value is not None]
    labels = [float(one.gold == RIGHT) for one in rows]
    values = [one.value for one in rows if one.value is not None]
    if len(set(values)) < 3 or len(set(labels)) < 2:
        return None
    area = auroc_of(values, labels)

    def statistic(weights: Floats) -> Floats:
        return np.array([area(weights)])

    drawn = draws if len(rows) <= _MAX_ROWS else NO_DRAWS
    (found,) = weighted_bootstrap([one.cluster for one in rows], statistic, drawn)
    return found


def _agrees(one: Judged) -> bool:
    return one.said == one.gold


def _accepted(one: Judged) -> bool:
    return one.said == RIGHT


def _rejected(one: Judged) -> bool:
    return one.said is not None and one.said != RIGHT


@dataclass(frozen=True, kw_only=True)
class Labelled(Benchmark):
    """A benchmark of responses that are labelled right or wrong."""

    published: ClassVar[tuple[str, ...]] = ()
    """Names of the measures that the authors define so."""

    threshold: float = 0.5
    """The smallest value that means right."""

    def __post_init__(self) -> None:
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
    """Return the case of one response."""
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
