"""Means over prompts with bounds, as measures and as lines, and prompts to read with the texts of their responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adjudge.evals.best_of_n.candidates import Candidate, Group
from adjudge.evals.best_of_n.config import CandidatesConfig
from adjudge.evals.best_of_n.loading import rows_again
from adjudge.evals.reports.figures import Curves, Series
from adjudge.evals.reports.result import ReadCase, ReadResponse, as_text, cut
from adjudge.protocol import Sample
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.bootstrap import cluster_bootstrap
from adjudge.statistics.intervals import Draws, Interval, wilson
from adjudge.statistics.subsets import chances


def prompt_means(
    known: Floats, rates: Mapping[str, Floats], names: Sequence[str], draws: Draws
) -> dict[str, list[Interval]]:
    """Return the mean of each column of shares over the prompts that are known there.

    Where all are 0, or all 1, resamples show no spread, and the bounds are Wilson's.

    Args:
        known: (prompts, columns) 1 or 0.
        rates: by name, (prompts, columns) in [0, 1]; 0 where a prompt is not known.
        names: of the prompts.
        draws: how bounds are drawn, over prompts.
    """
    count = known.shape[1]
    columns = np.concatenate([known, *rates.values()], axis=1)

    def combine(sums: Floats) -> Floats:
        return np.asarray(sums[:, count:] / np.tile(sums[:, :count], len(rates)), dtype=float)

    here = [int(number) for number in known.sum(axis=0)]
    found = cluster_bootstrap(names, columns, combine, draws, counts=here * len(rates))
    if draws.rounds:
        found = [
            wilson(round(one.value * one.n), one.n, level=draws.level) if one.value in (0, 1) and one.n > 1 else one
            for one in found
        ]
    return {name: found[at * count : (at + 1) * count] for at, name in enumerate(rates)}


def share_curves(title: str, ks: Sequence[int], means: Mapping[str, Sequence[Interval]]) -> Curves:
    """Return shares of prompts over numbers of responses."""
    lines = tuple(Series.of(name, ks, intervals) for name, intervals in means.items())
    return Curves(title=title, x_axis="k", y_axis="share of prompts", series=lines, log_x=True)


def short_prompts(ks: Sequence[int], known: Floats) -> list[str]:
    """Return a sentence on the prompts that say nothing of some k, if there are any."""
    left = {k: len(known) - int(number) for k, number in zip(ks, known.sum(axis=0), strict=True)}
    told = ", ".join(f"k={k}: {count}" for k, count in left.items() if count)
    return [f"prompts with fewer than k responses, which are left out there: {told}"] if told else []


_MAX_RESPONSES = 8
_ROUNDING = 1e-12  # of the largest gold: what chances that sum to 1 lose by being added up


def worst_choices(config: CandidatesConfig, groups: Sequence[Group]) -> tuple[ReadCase, ...]:
    """Return the prompts whose chosen response has least of the gold that the best one has."""
    lost = []
    for at, group in enumerate(groups):
        gold = group.values("gold")
        loss = float(gold.max() - chances(group.values("proxy"), [len(group)])[0] @ gold)
        if loss > _ROUNDING * float(abs(gold).max()):
            lost.append((-loss, at))
    chosen = [(groups[at], -loss, "a worse one chosen") for loss, at in sorted(lost)[: config.worst]]
    return read_groups(config, chosen, "proxy")


def read_groups(config: CandidatesConfig, chosen: Sequence[tuple[Group, float, str]], who: str) -> tuple[ReadCase, ...]:
    """Return prompts to read, given with weights and verdicts; their responses are ranked by what `who` says."""
    shown = [ranked(group, who)[:_MAX_RESPONSES] for group, _, _ in chosen]
    texts = texts_of(config, [one for members in shown for one in members])
    return tuple(
        read_case(group.name, members, texts, weight=weight, verdict=verdict, who=who)
        for (group, weight, verdict), members in zip(chosen, shown, strict=True)
    )


def ranked(group: Group, who: str) -> list[Candidate]:
    """Return the responses, the highest number first; those without one are last, and the best in truth is second."""

    def key(one: Candidate) -> tuple[bool, float]:
        value = one.value(who)
        return value is None, -(value or 0.0)

    found = sorted(group.members, key=key)
    best = max(found, key=lambda one: one.value("gold") or 0.0)
    rest = [one for one in found[1:] if one is not best]
    return found if best is found[0] else [found[0], best, *rest]


def texts_of(config: CandidatesConfig, wanted: Sequence[Candidate]) -> dict[str, Sample]:
    """Return the samples of some responses, by "row/place", from the input."""
    places = {(one.row, one.place) for one in wanted}
    found = {}
    for row, items in rows_again(config, {row for row, _ in places}):
        for place, item in enumerate(items):
            if (row, place) in places and item.sample is not None:
                found[f"{row}/{place}"] = item.sample
    return found


def read_case(
    name: str, members: Sequence[Candidate], texts: dict[str, Sample], *, weight: float, verdict: str, who: str
) -> ReadCase:
    """Return a prompt with responses to read, and the value that `who` gave; without texts, ids stand for them."""
    samples = [texts.get(f"{one.row}/{one.place}") for one in members]
    prompt = next((as_text(sample.prompt) for sample in samples if sample is not None), "")
    reference = next((sample.reference for sample in samples if sample is not None), None)
    return ReadCase(
        id=name,
        part="",
        verdict=verdict,
        weight=weight,
        prompt=cut(prompt),
        responses=tuple(
            ReadResponse(
                text=cut(as_text(sample.response)) if sample is not None else f"(no text; id {one.id})",
                said=", ".join(f"{who} {_said(one, who)}" for who in one.said),
                value=one.value(who),
                note=f"answer {one.answer}" if one.answer else "",
            )
            for one, sample in zip(members, samples, strict=True)
        ),
        gold="" if reference is None else cut(str(reference)),
    )


def _said(one: Candidate, who: str) -> str:
    said = one.said[who]
    return f"{said.value:.4g}" if said.value is not None else f"{said.status} ({said.reason})"
