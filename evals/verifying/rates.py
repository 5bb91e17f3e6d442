"""The rates of verdicts on labelled responses, with bounds.

    accuracy               labelled responses that are called what their label says
    false accepts          of those not labelled right, the share called right
    false rejects          of those labelled right, the share called something else; no verdict is neither
    precision, recall, F1  of "right"
    MCC                    Matthews' correlation of labels and verdicts
    AUROC                  how likely a right response has a higher value than another one; where values are graded
    accuracy where judged  of the responses with a verdict
    called right           of all responses, labelled or not
    labelled right         of the labelled ones: what the label's author would say in the place of "called right"

Not covered: costs of mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from adjudge.evals.results.measure import Measure
from adjudge.evals.statistics.draws import Draws
from adjudge.evals.verifying.truth import INVALID, RIGHT
from adjudge.intervals import Interval
from adjudge.protocol import Status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Judged(NamedTuple):
    """A labelled response and a verdict on it.

    Attributes:
        gold: the label; None where nobody labelled it.
        said: the verdict; None where there is none.
        value: the number behind the verdict.
        status: of the score: "scored", "abstained", "failed".
        part: subset it counts in.
        cluster: of responses that depend on each other.
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
_MOST_ROWS: Final = 20_000  # of an AUROC with bounds; each resample sorts nothing, but walks all rows


def rate_measures(judged: Sequence[Judged], classes: Sequence[str], draws: Draws) -> list[Measure]:
    """Return the rates of all responses, and some of each part.

    Args:
        judged: at least one.
        classes: that labels and verdicts have.
        draws: how bounds are drawn.
    """
    known = [one for one in judged if one.gold is not None]
    measures = [*_of_labels(known, classes, draws), *_beside(judged, known, draws)] if known else _plain(judged, draws)
    for part in dict.fromkeys(one.part for one in judged if one.part):
        own = [one for one in judged if one.part == part]
        measures += _of_part(part, own, draws)
    return measures


def _of_labels(known: Sequence[Judged], classes: Sequence[str], draws: Draws) -> list[Measure]:
    from adjudge.evals.statistics.confusion import confusion_intervals

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
    from adjudge.evals.statistics.bootstrap import share_interval

    return share_interval([float(hit(one)) for one in rows], [one.cluster for one in rows], draws)


def _area(known: Sequence[Judged], draws: Draws) -> Interval | None:
    """Return the AUROC of the labelled rows with a value; None where values are not graded or labels are all alike."""
    from adjudge.evals.statistics.bootstrap import weighted_bootstrap
    from adjudge.evals.statistics.draws import NO_DRAWS
    from adjudge.evals.statistics.ranks import auroc_of

    rows = [one for one in known if one.value is not None]
    labels = [float(one.gold == RIGHT) for one in rows]
    values = [one.value for one in rows if one.value is not None]
    if len(set(values)) < 3 or len(set(labels)) < 2:
        return None
    area = auroc_of(values, labels)

    def statistic(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        import numpy as np

        return np.array([area(weights)])

    drawn = draws if len(rows) <= _MOST_ROWS else NO_DRAWS
    (found,) = weighted_bootstrap([one.cluster for one in rows], statistic, drawn)
    return found


def _agrees(one: Judged) -> bool:
    return one.said == one.gold


def _accepted(one: Judged) -> bool:
    return one.said == RIGHT


def _rejected(one: Judged) -> bool:
    return one.said is not None and one.said != RIGHT
