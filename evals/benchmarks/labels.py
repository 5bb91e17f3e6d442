"""Benchmarks whose case is one response with a label, the rates they share, and any file of such responses.

    accuracy               labelled responses that are called what their label says
    false accepts          of those not labelled right, the share called right
    false rejects          of those labelled right, the share called something else; no verdict is neither
    precision, recall, F1  of "right"
    MCC                    Matthews' correlation of labels and verdicts
    AUROC                  how likely a right response has a higher value than another one; where values are graded
    accuracy where judged  of the responses with a verdict
    called right           of all responses, labelled or not
    labelled right         of the labelled ones: what the label's author would say in the place of "called right"

Without a verdict a response is called nothing, so it is never right.  Of any file:

    adjudge eval labels FILE --scorer math --label-column is_correct
    adjudge eval labels FILE --scorer stored --label-column human --score-column judge.value

The second line asks how well one column predicts another: a judge's opinion against what a program found.  A row whose
label is empty is not part of it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeAlias

from adjudge.evals.benchmarks import fields
from adjudge.evals.benchmarks.benchmark import AnyFile, Benchmark, RowPlace, random_share
from adjudge.evals.benchmarks.case import NOTHING_SAID, Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import Row, shown
from adjudge.evals.reports.result import Measure
from adjudge.io.columns import GUESSES
from adjudge.io.values import Text, reference_of
from adjudge.options import Range
from adjudge.pages.figures import Figure, confusion_grid
from adjudge.protocol import Status
from adjudge.statistics.arrays import np
from adjudge.statistics.bootstrap import weighted_bootstrap
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


def truth_of(label: Any, words: Mapping[str, str] = USUAL) -> str:
    """Return what a label means, by what the words mean that there are."""
    meaning = words.get(_as_word(label))
    if meaning is None:
        raise ValueError(
            f"the label {shown(label)} is none of {', '.join(words)}; say what labels mean with --right-label, "
            "--wrong-label and --invalid-label"
        )
    return meaning


def _as_word(label: Any) -> str:
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label).strip().casefold()


class LabelledVerdict(NamedTuple):
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


ACCURACY: Final = "accuracy"
CALLED: Final = "called right"
LABELLED: Final = "labelled right"
BY_LABELS: Final = " by labels"
_MAX_ROWS: Final = 20_000  # of an AUROC with bounds; each resample sorts nothing, but walks all rows


_Picks: TypeAlias = Callable[[LabelledVerdict], bool]

_SHARES: Final[Mapping[str, tuple[_Picks, _Picks, str]]] = {
    ACCURACY: (lambda one: one.gold is not None, lambda one: one.said == one.gold, "high"),
    "false accepts": (lambda one: one.gold not in (None, RIGHT), lambda one: one.said == RIGHT, "low"),
    "false rejects": (lambda one: one.gold == RIGHT, lambda one: one.said not in (None, RIGHT), "low"),
    "accuracy where judged": (lambda one: None not in (one.gold, one.said), lambda one: one.said == one.gold, "high"),
    CALLED: (lambda one: True, lambda one: one.said == RIGHT, "none"),
    "abstained": (lambda one: True, lambda one: one.status == "abstained", "low"),
    "failed": (lambda one: True, lambda one: one.status == "failed", "low"),
    LABELLED: (lambda one: one.gold is not None, lambda one: one.gold == RIGHT, "none"),
    "not labelled": (lambda one: True, lambda one: one.gold is None, "none"),
}
"""Shares of responses: of which responses, what is counted, and which end is good."""


def rate_measures(judged: Sequence[LabelledVerdict], classes: Sequence[str], draws: Draws) -> list[Measure]:
    """Return the rates of all responses, and some of each part."""
    known = [one for one in judged if one.gold is not None]
    plain = [CALLED, "abstained", "failed"]
    if known:
        rest = ["not labelled"] if len(known) < len(judged) else []
        names = ["accuracy where judged", *plain, LABELLED, *rest]
        measures = [*_of_labels(known, classes, draws), *_shares(names, judged, draws)]
    else:
        measures = _shares(plain, judged, draws)
    for part in dict.fromkeys(one.part for one in judged if one.part):
        own = [one for one in judged if one.part == part]
        labelled = any(one.gold is not None for one in own)
        names = [ACCURACY, "false accepts", "false rejects", CALLED, LABELLED] if labelled else [CALLED]
        measures += _shares(names, own, draws, part)
    return measures


def _shares(names: Sequence[str], judged: Sequence[LabelledVerdict], draws: Draws, part: str = "") -> list[Measure]:
    measures = []
    for name in names:
        counts, hits, better = _SHARES[name]
        rows = [one for one in judged if counts(one)]
        clusters = [one.cluster for one in rows]
        measures.append(Measure.mean(name, [hits(one) for one in rows], clusters, draws, part, better))
    return measures


def _of_labels(known: Sequence[LabelledVerdict], classes: Sequence[str], draws: Draws) -> list[Measure]:
    gold, said = [str(one.gold) for one in known], [one.said for one in known]
    rates = confusion_intervals(gold, said, [one.cluster for one in known], classes, draws, positive=RIGHT)
    names = [ACCURACY, "precision", "recall", "F1", "MCC", "balanced accuracy"]
    if INVALID in classes:
        names.insert(1, "macro-F1")
    measures = [Measure(name=name, interval=rates[name]) for name in names]
    measures[1:1] = _shares(["false accepts", "false rejects"], known, draws)
    area = _area(known, draws)
    return measures if area is None else [*measures, Measure(name="AUROC", interval=area)]


def _area(known: Sequence[LabelledVerdict], draws: Draws) -> Interval | None:
    """Return the AUROC of the labelled rows with a value; None where values are not graded or labels are all alike."""
    rows = [one for one in known if one.value is not None]
    labels = [float(one.gold == RIGHT) for one in rows]
    values = [one.value for one in rows if one.value is not None]
    if len(set(values)) < 3 or len(set(labels)) < 2:
        return None
    area = auroc_of(values, labels)
    drawn = draws if len(rows) <= _MAX_ROWS else NO_DRAWS
    clusters = [one.cluster for one in rows]
    return weighted_bootstrap(clusters, lambda weights: np.array([area(weights)]), drawn)[0]


@dataclass(frozen=True, kw_only=True)
class Labelled(Benchmark):
    """A benchmark of responses that are labelled right or wrong."""

    published: ClassVar[tuple[str, ...]] = ()
    """Names of the measures that the authors define so."""

    threshold: Annotated[float, Range(gt=-1e300, lt=1e300)] = 0.5
    """The smallest value that means right."""

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

    def called_right(self, outcomes: Sequence[Outcome]) -> dict[str, list[bool]]:
        """Return which responses the scorer calls right, and, where all have labels, which those do: `BY_LABELS`."""
        judged = [self.judged(outcome) for outcome in outcomes]
        kinds = {"": [one.said == RIGHT for one in judged]}
        if all(one.gold is not None for one in judged):
            kinds[BY_LABELS] = [one.gold == RIGHT for one in judged]
        return kinds

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

    def judged(self, outcome: Outcome) -> LabelledVerdict:
        """Return a response with its label and its verdict: a value below the threshold means wrong, or no answer."""
        value = outcome.values[0]
        said = None
        if value is not None:
            invalid = INVALID in self.classes and outcome.reasons[0] in NO_ANSWER
            said = RIGHT if value >= self.threshold else INVALID if invalid else WRONG
        return LabelledVerdict(
            gold=outcome.gold["label"],
            said=said,
            value=value,
            status=outcome.statuses[0],
            part=outcome.part,
            cluster=outcome.cluster,
        )


def labelled_case(
    *,
    id: str,
    prompt: Text,
    response: Text | None,
    label: str | None,
    reference: Any = None,
    part: str = "",
    cluster: str = "",
    stored: Stored | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Case:
    """Return the case of one response; None for one of which the row holds a score alone."""
    return fields.case_of(
        id=id,
        prompt=prompt,
        responses=1 if response is None else [response],
        gold={"label": label, **(facts or {})},
        part=part,
        cluster=cluster,
        stored=() if stored is None else (stored,),
        reference=reference,
    )


def stored_verdict(cell: Any, threshold: float, words: Mapping[str, str] = USUAL) -> Stored:
    """Return a stored verdict in the words of labels; words that are none, as judges write them, are not a verdict."""
    said = None if cell is None else words.get(_as_word(cell))
    if said is None:
        return NOTHING_SAID
    return Stored(value=threshold + (1.0 if said == RIGHT else -1.0), reason=INVALID if said == INVALID else "")


def unread(outcomes: Sequence[Outcome], threshold: float) -> Mapping[str, Sequence[Outcome]]:
    """Return the outcomes of scorers that do not read: all right, all wrong, longer ones right, a coin.

    "longer" calls a response right that has more characters than the median one; it is left out where no row holds a
    text.
    """
    median = statistics.median(outcome.sizes[0] for outcome in outcomes)
    above: dict[str, Callable[[Outcome], float]] = {
        "always_right": lambda _: 1.0,
        "always_wrong": lambda _: -1.0,
        "longer": lambda one: 1.0 if one.sizes[0] > median else -1.0,
        "random": lambda one: random_share(f"{one.id}/0") - 0.5,
    }
    if not any(outcome.sizes[0] for outcome in outcomes):
        del above["longer"]
    return {name: [one.with_values([threshold + by(one)]) for one in outcomes] for name, by in above.items()}


_LABELS: Final = ("label", "is_correct", "correct", "gold_label", "passed", "gold_correct")
_SCORES: Final = ("value", "score", "reward", "prediction")


@dataclass(frozen=True, kw_only=True)
class Labels(Labelled, AnyFile):
    """Any file of labelled responses."""

    name: ClassVar[str] = "labels"
    title: ClassVar[str] = "Labelled responses"
    source: ClassVar[str] = "rates as scikit-learn defines them"
    columns: ClassVar[str] = "prompt, response, reference, label (1 or 0, true or false, ...); other names by option"

    response_column: str = ""
    """Column of the response."""

    reference_column: str = ""
    """Column of what the scorer compares with."""

    label_column: str = ""
    """Column of the label; "" tries label, is_correct, correct, gold_label, passed
    and gold_correct."""

    right_label: tuple[str, ...] = ()
    """What the label says of a right response. Give it several times for several
    words; without the three, the usual words are known."""

    wrong_label: tuple[str, ...] = ()
    """What it says of a wrong one."""

    invalid_label: tuple[str, ...] = ()
    """What it says of a response that is not an answer."""

    three_classes: bool = False
    """Whether no answer is a class of its own; otherwise it counts as wrong."""

    score_column: str = ""
    """Column of stored scores; "" tries value, score, reward and prediction."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Two classes, or three where no answer is one."""
        return (RIGHT, WRONG, INVALID) if self.three_classes else (RIGHT, WRONG)

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the response of a row; nothing where its label is empty."""
        given = fields.labelled_by(row, self.label_column, _LABELS, "label")
        if given is None:
            return
        label = truth_of(fields.field(row, given), self._words)
        prompt_column = self.prompt_column or fields.first_of(row, GUESSES["prompt"])
        response_column = self.response_column or fields.first_of(row, GUESSES["response"])
        stored = self._stored(row)
        if response_column is None and stored is None:
            fields.named(row, "", GUESSES["response"], "response")
        prompt, response = fields.asked_and_said(row, prompt_column, response_column)
        name, part, cluster = fields.named_case(self, row, place, prompt)
        yield labelled_case(
            id=name,
            prompt=prompt,
            response=response if response_column else None,
            label=label if label in self.classes else WRONG,
            reference=self._reference(row, given),
            part=part,
            cluster=cluster or ("" if prompt_column else fields.case_id(place)),
            stored=stored,
        )

    @cached_property
    def _words(self) -> Mapping[str, str]:
        own = {RIGHT: self.right_label, WRONG: self.wrong_label, INVALID: self.invalid_label}
        return {_as_word(word): meaning for meaning, words in own.items() for word in words} or USUAL

    def _reference(self, row: Row, label_column: str) -> Any:
        name = self.reference_column or fields.first_of(
            row, [one for one in GUESSES["reference"] if one != label_column]
        )
        return reference_of(fields.field(row, name)) if name else None

    def _stored(self, row: Row) -> Stored | None:
        name = self.score_column or next((name for name in _SCORES if isinstance(row.get(name), int | float)), None)
        if name is None:
            return None
        value = fields.field(row, name) if fields.has(row, name) else None
        return fields.score(float(value) if isinstance(value, bool) else value, name)
