"""`adjudge eval agreement`: how far raters of the same items agree, with each other and with gold.

Not covered: who is right where there is no gold; raters who share an error agree.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections import Counter
from typing import TYPE_CHECKING

from adjudge.data_pipelines.jobs.report import JobProgress
from adjudge.evals.agreement.against_gold import MAJORITY, gold_measures, majority
from adjudge.evals.agreement.config import AgreementConfig
from adjudge.evals.agreement.pairs import KENDALL_ROWS, pair_agreement
from adjudge.evals.agreement.panel import Panel, read_panel
from adjudge.evals.agreement.panel_sums import class_agreement, number_agreement
from adjudge.evals.results.figures import Figure, Grid
from adjudge.evals.results.measure import Measure
from adjudge.evals.results.reading import ReadCase, ReadResponse
from adjudge.evals.results.result import Counts, Result
from adjudge.evals.statistics.bootstrap import share_interval
from adjudge.evals.statistics.confusion import confusion_grid
from adjudge.evals.statistics.multiple import NOTE
from adjudge.evals.verdicts.table import texts_of
from adjudge.intervals import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PARADOX = (
    "where one label is common, kappa and alpha are low for raters who agree nearly always; AC1 takes another view of "
    "chance and is high there, so read both beside the raw agreement"
)


def run_agreement(config: AgreementConfig, *, progress: JobProgress | None = None) -> Result:
    """Measure how far raters agree.

    Args:
        config: the options.
        progress: who is told what was guessed about the columns.

    Raises:
        ValueError: a file or column is missing, or there are no two raters of one item.
    """
    begun = time.monotonic()
    panel = read_panel(config)
    if progress is not None:
        for guess in panel.table.guesses:
            progress.note(guess)
    pairs = {
        (one, other): pair_agreement(
            panel.values[:, panel.raters.index(one)],
            panel.values[:, panel.raters.index(other)],
            panel.groups,
            config.draws,
            scale=panel.scale,
            labels=len(panel.labels),
        )
        for one, other in itertools.combinations(panel.raters, 2)
    }
    right, compared = ([], []) if panel.gold is None else gold_measures(panel, panel.gold, config.draws)
    notes = [f"the scale is {panel.scale}", *panel.notes]
    notes += [_PARADOX] if panel.labels else []
    notes += [NOTE] if len(compared) > 1 else []
    if not panel.labels and len(panel.ids) > KENDALL_ROWS:
        notes.append(f"Kendall's tau has no bounds for more than {KENDALL_ROWS} items")
    who = panel.who.items()
    return Result(
        kind="agreement",
        asked=False,
        title=f"Agreement of {len(panel.raters)} raters on {len(panel.ids)} items",
        scorer={
            "name": ", ".join(panel.raters),
            "fingerprint": "",
            "raters": {name: dict(facts) for name, facts in who},
        },
        source=panel.table.facts | ({"files": list(config.file)} if config.file else {}),
        measures=(*_whole(panel, config), *right, *_by_pair(pairs), *_given(panel, config)),
        counts=_counts(panel),
        comparisons=tuple(compared),
        figures=_figures(panel, pairs),
        worst=_worst(panel, config),
        notes=tuple(notes),
        options=dataclasses.asdict(config),
        seconds=time.monotonic() - begun,
    )


def _whole(panel: Panel, config: AgreementConfig) -> list[Measure]:
    if not panel.labels:
        found = number_agreement(panel.values, panel.groups, config.draws)
        difference = Measure(name="mean difference", interval=found.pop("difference"), better="low")
        return [*(Measure(name=name, interval=one) for name, one in found.items()), difference]
    found = class_agreement(panel.codes, len(panel.labels), panel.groups, config.draws, scale=panel.scale)
    chance = found.pop("by chance").value
    raw = Measure(name="agreement", interval=found.pop("raw"), baselines={"by chance": chance})
    order = sorted(found, key=lambda name: "ordinal" not in name)
    return [*(Measure(name=name, interval=found[name]) for name in order), raw]


def _by_pair(pairs: dict[tuple[str, str], dict[str, Interval]]) -> list[Measure]:
    return [
        Measure(name=name, part=f"{one} / {other}", interval=interval, better="low" if name == "difference" else "high")
        for (one, other), found in pairs.items()
        for name, interval in found.items()
    ]


def _given(panel: Panel, config: AgreementConfig) -> list[Measure]:
    return [
        Measure(
            name="verdicts given",
            part=name,
            interval=share_interval([one.value is not None for one in panel.said[name]], panel.groups, config.draws),
        )
        for name in panel.raters
    ]


def _counts(panel: Panel) -> Counts:
    verdicts = [one for name in panel.raters for one in panel.said[name]]
    statuses = Counter(one.status for one in verdicts)
    return Counts(
        cases=len(panel.ids),
        samples=len(verdicts),
        scored=statuses["scored"],
        abstained=statuses["abstained"],
        failed=statuses["failed"],
        unreadable=len(panel.table.unreadable),
        reasons=Counter(one.reason or one.status for one in verdicts if one.value is None),
    )


def _figures(panel: Panel, pairs: dict[tuple[str, str], dict[str, Interval]]) -> tuple[Figure, ...]:
    names = {"nominal": ("kappa", "agreement"), "ordinal": ("quadratic kappa", "Spearman"), "interval": ("Spearman",)}
    grids: list[Figure] = []
    for name in names[panel.scale]:
        known = {pair: found[name].value for pair, found in pairs.items()}
        rows = tuple(
            tuple(1.0 if one == other else known.get((one, other), known.get((other, one))) for other in panel.raters)
            for one in panel.raters
        )
        title = f"{name[0].upper()}{name[1:]} of each two"
        grids.append(Grid(title=title, rows=panel.raters, columns=panel.raters, values=rows, better="high"))
    if panel.gold is not None and panel.labels:
        import numpy as np

        known_gold = np.isfinite(panel.gold)
        gold = [panel.labels[int(code)] for code in panel.gold[known_gold]]
        voted = [None if np.isnan(code) else panel.labels[int(code)] for code in majority(panel.values[known_gold])]
        grids.append(confusion_grid(gold, voted, panel.labels, title=f"Gold and {MAJORITY}"))
    return tuple(grids)


def _worst(panel: Panel, config: AgreementConfig) -> tuple[ReadCase, ...]:
    """The items on which raters are furthest apart."""
    weights = _apart(panel)
    chosen = [at for at in range(len(weights)) if weights[at] > 0]
    chosen = sorted(chosen, key=lambda at: (-weights[at], at))[: config.worst]
    places = dict(zip(panel.table.ids, panel.table.places, strict=True))
    texts = texts_of(config, [places[panel.ids[at]] for at in chosen if panel.ids[at] in places])
    cases = []
    for at in chosen:
        prompt, response = texts.get(places.get(panel.ids[at], -1), ("", ""))
        said = "; ".join(f"{name}: {panel.said[name][at].shown}" for name in panel.raters)
        gold = None if panel.gold is None else float(panel.gold[at])
        told = "" if gold is None or gold != gold else panel.labels[int(gold)] if panel.labels else f"{gold:g}"
        cases.append(
            ReadCase(
                id=panel.ids[at],
                part="",
                verdict="disagree",
                weight=float(weights[at]),
                prompt=prompt,
                responses=(ReadResponse(text=response, said=said, value=None),),
                gold=told,
            )
        )
    return tuple(cases)


def _apart(panel: Panel) -> NDArray[np.float64]:
    """Return how far the raters of each item are apart: the span of numbers, or the share of pairs that differ."""
    import numpy as np

    known = np.isfinite(panel.values)
    if panel.scale != "nominal":
        high = np.where(known, panel.values, -np.inf).max(axis=1)
        low = np.where(known, panel.values, np.inf).min(axis=1)
        return np.where(known.sum(axis=1) > 1, high - low, 0.0)
    counts = np.stack([(panel.codes == at).sum(axis=1) for at in range(len(panel.labels))], axis=1)
    given = counts.sum(axis=1)
    pairs = given * (given - 1)
    equal = np.divide((counts * (counts - 1)).sum(axis=1), pairs, out=np.ones(len(counts)), where=pairs > 0)
    apart: NDArray[np.float64] = 1.0 - equal
    return apart
