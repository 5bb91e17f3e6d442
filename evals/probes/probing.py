"""`run_probes`: what breaks a scorer, as measures, checks, a grid and cases to read.

Where a row has no good response, the answer that its reference holds is one.  Bounds of a probe are Wilson's over its
variants.  Variants of one row depend on each other, so true bounds are wider where a probe makes several of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from adjudge.evals.benchmarks.voices import compares
from adjudge.evals.probes.catalogue import ProbesConfig
from adjudge.evals.probes.changes import KINDS
from adjudge.evals.probes.planted import gold_texts
from adjudge.evals.probes.probe import DOMAINS, Broken, Probe, ProbeRow, Tally, Variant, domain_of, with_others
from adjudge.evals.probes.row_file import TRIED, FileRow, ReadRows, read_rows
from adjudge.evals.probes.trying import FIRST, Asker, Base, Trials, Yardstick, plain, scored_bases, yardstick
from adjudge.evals.reports.config import PartsProgress, timed
from adjudge.evals.reports.result import Check, Counts, Measure, ReadCase, ReadResponse, Result, cut
from adjudge.io.columns import GUESSES
from adjudge.io.jobs.report import JobProgress
from adjudge.io.values import reference_of
from adjudge.pages.figures import Grid
from adjudge.protocol import Score, Scorer
from adjudge.runtime.contract import validate_sample
from adjudge.scoring import registry
from adjudge.scoring.compose.auto import auto_scorer
from adjudge.statistics.intervals import Interval, wilson

OUTCOMES: Final = ("kept", "broken", "no score")
_SPELLED: Final = ("master_keys",)  # probes whose every variant is a measure of its own


def measures_of(
    tallies: Sequence[Tally],
    bases: Sequence[Base],
    below: Sequence[int],
    *,
    pairs: int,
    tolerated: float,
    level: float,
) -> Iterator[Measure]:
    """Yield the share of probes that pass, what the scorer thinks of the rows, and each probe's broken share.

    `bases` are rows whose good response has a score, `pairs` counts the rows with a good and a bad response, and
    `below` the worthless variants below every good response, and all of them.
    """
    tried = [tally for tally in tallies if tally.tried]
    passed = sum(bool(tally.passed(tolerated)) for tally in tried)
    yield Measure(name="probes passed", interval=Interval(value=passed / len(tried) if tried else None, n=len(tried)))
    for kind in ("worthless", "sensitivity", "invariance"):
        some = [tally for tally in tried if tally.probe.kind == kind]
        if some:
            share = sum(bool(tally.passed(tolerated)) for tally in some) / len(some)
            yield Measure(name="probes passed", part=kind, interval=Interval(value=share, n=len(some)))
    if pairs:
        above = sum(bad is not None and good > bad for good, bad in (base.values for base in bases))
        yield Measure(name="good above bad", interval=wilson(above, pairs, level=level))
    if below[1]:
        yield Measure(name="worthless below every good response", interval=wilson(below[0], below[1], level=level))
    for tally in tried:
        name = tally.probe.name
        yield Measure(name="broken", part=name, interval=tally.rate(level), better="low")
        if name in _SPELLED:
            for how, (count, wrong) in tally.by_how.items():
                yield Measure(
                    name="broken", part=f"{name} {how}", interval=wilson(wrong, count, level=level), better="low"
                )


def check_of(tally: Tally, *, tolerated: float, level: float) -> Check:
    """Return whether a probe passed, and the numbers."""
    probe = tally.probe
    passed = tally.passed(tolerated)
    if passed is None:
        return Check(name=probe.name, passed=None, detail=tally.why_not())
    rate = tally.rate(level)
    said = f"{probe.says}: {tally.broken} of {tally.tried} break the rule"
    if tally.unjudged:
        said += f", {tally.unjudged} have no score"
    said += f"; share {rate}"
    if not passed:
        worst = max(tally.by_how.items(), key=lambda one: (one[1][1] / one[1][0], one[1][1]))
        said += f". Most often: {worst[0]} ({worst[1][1]} of {worst[1][0]}). {probe.means[0].upper()}{probe.means[1:]}"
    return Check(name=probe.name, passed=passed, detail=said)


def grid_of(tallies: Sequence[Tally]) -> Grid | None:
    """Return the shares of outcomes of each probe that was tried; None if none was."""
    tried = [tally for tally in tallies if tally.tried]
    if not tried:
        return None
    values = tuple(
        tuple(count / tally.tried for count in (tally.held, tally.broken, tally.unjudged)) for tally in tried
    )
    return Grid(
        title="Probes: share of variants",
        rows=tuple(tally.probe.name for tally in tried),
        columns=OUTCOMES,
        values=values,
        row_axis="probe",
        column_axis="outcome",
    )


def worst_of(tallies: Sequence[Tally], scale: Yardstick, most: int) -> tuple[ReadCase, ...]:
    """Return cases to read, taken from the probes in turn, so that none hides another; the worst stand first."""
    kept = [list(tally.worst) for tally in tallies]
    dealt: list[tuple[Tally, Broken]] = []
    for place in range(max(map(len, kept), default=0)):
        dealt += [(tally, cases[place]) for tally, cases in zip(tallies, kept, strict=True) if place < len(cases)]
    shown = [_read(tally, case, scale) for tally, case in dealt[:most]]
    return tuple(sorted(shown, key=lambda case: -case.weight))


def _read(tally: Tally, case: Broken, scale: Yardstick) -> ReadCase:
    row, variant = case.row, case.variant
    asked = row if variant.prompt is None else replace(row, prompt=variant.prompt)
    original = row.good if variant.of == "good" else row.bad or ""
    note = f"changed: {variant.how}" + (f" (finish reason {variant.finish_reason})" if variant.finish_reason else "")
    return ReadCase(
        id=row.id,
        part=tally.probe.name,
        verdict="broken" if case.score.value is not None else case.score.status,
        weight=case.excess,
        prompt=cut(asked.asked),
        responses=(
            ReadResponse(text=cut(variant.response), said=_said(case.score), value=case.score.value, note=note),
            ReadResponse(
                text=cut(original), said=_said(case.base), value=case.base.value, note=f"{variant.of}, as it is"
            ),
        ),
        gold=f"rule {tally.probe.rule}, epsilon {scale.epsilon:.4g}",
    )


def _said(score: Score) -> str:
    if score.value is None:
        return f"{score.status} ({score.reason})"
    return f"{score.value:.4g}" + (f" ({score.reason})" if score.reason else "")


_TRIED: Final[Mapping[str, tuple[str, ...]]] = {
    **TRIED,
    "good": (*TRIED["good"], *GUESSES["response"]),
    "domain": ("domain",),
}


def read_probe_rows(config: ProbesConfig) -> ReadRows[ProbeRow]:
    """Read the rows."""
    read = read_rows(config, _TRIED, _probe_row)
    return dataclasses.replace(read, rows=tuple(with_others(read.rows)))


def _probe_row(row: FileRow) -> ProbeRow:
    if not row.columns.keys() & {"good", "reference"}:
        raise ValueError(
            f"no column looks like a good response (tried {', '.join(_TRIED['good'])}) or a reference; name one with "
            f"--good-column or --reference-column. The columns are: {', '.join(row.data) or 'none'}"
        )
    reference = reference_of(row.value("reference"))
    prompt, good = row.exchange("good")
    if good is None:
        good = next((text for text in gold_texts(reference) if text.strip()), "")
        if not good:
            raise ValueError("it has no good response, and its reference holds no answer as text")
    domain = row.value("domain")
    return ProbeRow(
        id=row.id,
        prompt=prompt,
        good=good,
        bad=row.exchange("bad")[1],
        reference=reference,
        domain=domain if domain in DOMAINS else domain_of(reference, good),
        equals={kind: row.data[kind] for kind in KINDS if isinstance(row.data.get(kind), str)},
        extra=row.extra,
    )


SCALE = Probe(
    name="scale",
    says="the same judge on another scale",
    source="practice",
    rule="order",
    make=lambda row, rng: (),
    means="the scale decides which response is better",
    needs="a bad response, and --other-scale",
)


@timed
def run_probes(config: ProbesConfig, *, progress: JobProgress | None = None, scorer: Scorer | None = None) -> Result:
    """Change responses on purpose, and see whether a scorer answers as it must.

    Returns:
        A check and a measure for each probe, the grid of outcomes, and the worst cases to read.

    Raises:
        ValueError: an option, the input or the scorer is no good, or no good response has a score.
        BrokenScorer: the scorer raised, or its answer breaks the protocol.
    """
    read = read_probe_rows(config)
    scorer = _scorer(config.scorer, read.rows) if scorer is None else scorer
    progressed = PartsProgress(progress, [FIRST, *(probe.name for probe in config.probes), SCALE.name])

    def tell(what: str, done: int, of: int) -> None:
        samples = sum(one.samples for one in (asker, other) if one is not None)
        progressed(what, done / max(of, 1), rows=samples, made=samples)

    asker = Asker(scorer, compare=_compared(config, scorer), tell=tell)
    other: Asker | None = None
    if config.other_scale:
        second = registry.load(config.other_scale)
        other = Asker(second, compare=_compared(config, second), tell=tell)
    rows, refused = _usable(asker, read.rows)
    bases = scored_bases(asker, rows)
    if not bases:
        raise ValueError(_no_bases(asker, rows))
    scale = yardstick(bases, epsilon=config.epsilon, share=config.epsilon_share)
    trials = Trials(asker=asker, bases=bases, scale=scale, seed=config.seed, per_row=config.per_row, keep=config.worst)
    tallies = [trials.try_probe(probe) for probe in config.probes]
    if other is not None:
        tallies.append(_scale_tally(other, bases, keep=config.worst))
    grid = grid_of(tallies)
    return Result(
        kind="probes",
        title=f"Probes of {scorer.name}",
        scorer={"name": scorer.name, "fingerprint": scorer.fingerprint, "spec": config.scorer},
        source=read.source,
        measures=tuple(
            measures_of(
                tallies,
                bases,
                trials.below_good,
                pairs=sum(row.bad is not None for row in rows),
                tolerated=config.tolerated,
                level=config.level,
            )
        ),
        counts=_counts(asker, bases, unreadable=read.unreadable + len(refused)),
        checks=tuple(check_of(tally, tolerated=config.tolerated, level=config.level) for tally in tallies),
        figures=() if grid is None else (grid,),
        worst=worst_of(tallies, scale, config.worst),
        notes=(*read.notes, *refused[:3], *_notes(config, read, rows, bases, scale)),
        options=config.told("scorer"),
        cost=asker.cost if other is None else asker.cost + other.cost,
    )


def _scorer(spec: str, rows: Sequence[ProbeRow]) -> Scorer:
    """The scorer that a spec names; of "auto", the one that all references call for, if it is one."""
    kinds = {spec}
    if spec == "auto":
        with contextlib.suppress(ValueError):  # a reference that nothing goes with: its row is refused later
            kinds = {auto_scorer(row.reference, row.prompt) for row in rows if row.reference is not None}
    return registry.load(kinds.pop() if len(kinds) == 1 else spec)


def _compared(config: ProbesConfig, scorer: Scorer) -> bool:
    return config.compare == "yes" or (config.compare == "auto" and compares(scorer))


def _usable(asker: Asker, rows: Sequence[ProbeRow]) -> tuple[list[ProbeRow], list[str]]:
    """Return the rows that the scorer can be asked about, and what it says of the others."""
    usable, refused = [], []
    for row in rows:
        try:
            if not asker.pairs or row.bad is not None:
                validate_sample(asker.scorer, asker.sample(plain(row, row.good, row.bad or ""), group="a pair"))
        except ValueError as error:
            refused.append(f"row {row.id}: {error}")
        else:
            usable.append(row)
    if not usable:
        raise ValueError(refused[0])
    return usable, refused


def _no_bases(asker: Asker, rows: Sequence[ProbeRow]) -> str:
    if not asker.samples:
        return (
            f"the scorer {asker.scorer.name!r} compares two responses, and none of {len(rows)} rows has a bad one; "
            "give a column of bad responses with --bad-column"
        )
    why = ", ".join(f"{count} x {reason}" for reason, count in asker.reasons.items())
    return f"the scorer {asker.scorer.name!r} has no score for any of {len(rows)} good responses: {why}"


def _scale_tally(other: Asker, bases: Sequence[Base], *, keep: int) -> Tally:
    """Count the pairs whose order another scorer turns round."""
    tally = Tally(probe=SCALE, keep=keep)
    ordered = [base for base in bases if base.bad is not None and base.values[0] != base.values[1]]
    again = {id(base.row): base for base in scored_bases(other, [base.row for base in ordered])}
    for base in ordered:
        second = again.get(id(base.row), replace(base, bad=None))
        (good, bad), (good_then, bad_then) = base.values, second.values
        if bad is None:
            continue
        judged = bad_then is not None
        turned = bad_then is None or (good > bad) != (good_then > bad_then)
        variant = Variant(how="on the other scale", response=base.row.good)
        case = Broken(row=base.row, variant=variant, score=second.good, base=base.good, excess=float(judged))
        tally.count(variant, case if turned else None, judged=judged)
    return tally


def _counts(asker: Asker, bases: Sequence[Base], *, unreadable: int) -> Counts:
    return Counts(
        cases=len(bases),
        samples=asker.samples,
        scored=asker.samples - asker.failed - asker.abstained,
        abstained=asker.abstained,
        failed=asker.failed,
        cut_off=asker.cut_off,
        tied=sum(good == bad for good, bad in (base.values for base in bases)),
        unreadable=unreadable,
        reasons=dict(asker.reasons),
    )


def _notes(
    config: ProbesConfig, read: ReadRows[ProbeRow], rows: Sequence[ProbeRow], bases: Sequence[Base], scale: Yardstick
) -> list[str]:
    notes = []
    if config.epsilon is not None:
        notes.append(f"changes up to {scale.epsilon:.4g} count as none, as asked")
    elif scale.spread is not None:
        notes.append(
            f"changes up to {scale.epsilon:.4g} count as none: {config.epsilon_share:g} of the mean distance "
            f"{scale.spread:.4g} between good and bad responses"
        )
    else:
        notes.append(
            f"changes up to {scale.epsilon:.4g} count as none: {config.epsilon_share:g} of the standard deviation of "
            "good responses, since no row has a bad one with a score"
        )
    if scale.spread == 0:
        notes.append("good and bad responses get the same scores, so probes of invariance say nothing here")
    planted = sum(row.planted for row in rows)
    if planted:
        notes.append(f"{planted} rows take the good response of another row as their bad one")
    if len(bases) < len(rows):
        notes.append(f"{len(rows) - len(bases)} of {len(rows)} rows were left out: no bad response, or no score")
    notes.append("bounds are Wilson's over variants; those of one row depend on each other, so true ones are wider")
    notes.append(f"a probe passes where at most {config.tolerated:.2%} of its variants break its rule")
    return notes
