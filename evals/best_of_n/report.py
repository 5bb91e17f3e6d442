"""Means over prompts with bounds, as measures and as lines, and prompts to read with the texts of their responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adjudge.evals.best_of_n.candidates import Candidate, Candidates, Group
from adjudge.evals.best_of_n.config import CandidatesConfig
from adjudge.evals.best_of_n.loading import samples_again
from adjudge.evals.reports.result import ReadCase, ReadResponse, as_text, cut
from adjudge.pages.figures import Curves, Series
from adjudge.protocol import Sample
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.bootstrap import cluster_bootstrap
from adjudge.statistics.intervals import Draws, Interval, wilson
from adjudge.statistics.subsets import chances


@dataclass(frozen=True, slots=True)
class Shares:
    """What k of a prompt's responses get, for several k: (prompts, ks) by name; 0 where a prompt has fewer.

    Attributes:
        known: 1 where a prompt has as many responses.
        errors: standard errors of what was drawn.
    """

    ks: tuple[int, ...]
    known: Floats
    rates: dict[str, Floats]
    errors: dict[str, Floats]

    @classmethod
    def of(cls, groups: Sequence[Group], ks: Sequence[int], names: Sequence[str], drawn: Sequence[str]) -> Shares:
        """Return zeros for rates of these names, and for the errors of those that are drawn."""
        shape = (len(groups), len(ks))
        known = np.array([[float(k <= len(group)) for k in ks] for group in groups])
        rates, errors = ({name: np.zeros(shape) for name in some} for some in (names, drawn))
        return cls(tuple(ks), known, rates, errors)

    def means(self, names: Sequence[str], draws: Draws) -> dict[str, list[Interval]]:
        """Return, for each k, the mean over the prompts, so named, that have as many responses.

        Where all are 0, or all 1, resamples show no spread, and the bounds are Wilson's.
        """
        count = len(self.ks)
        columns = np.concatenate([self.known, *self.rates.values()], axis=1)

        def combine(sums: Floats) -> Floats:
            return np.asarray(sums[:, count:] / np.tile(sums[:, :count], len(self.rates)), dtype=float)

        here = [int(number) for number in self.known.sum(axis=0)]
        means = cluster_bootstrap(names, columns, combine, draws, counts=here * len(self.rates))
        if draws.rounds:
            means = [
                wilson(round(one.value * one.n), one.n, level=draws.level) if one.value in (0, 1) and one.n > 1 else one
                for one in means
            ]
        return {name: means[at * count : (at + 1) * count] for at, name in enumerate(self.rates)}

    def short(self) -> list[str]:
        """Return a sentence on the prompts that say nothing of some k, if there are any."""
        left = {k: len(self.known) - int(n) for k, n in zip(self.ks, self.known.sum(axis=0), strict=True)}
        listed = ", ".join(f"k={k}: {count}" for k, count in left.items() if count)
        return [f"prompts with fewer than k responses, which are left out there: {listed}"] if listed else []


def share_curves(title: str, ks: Sequence[int], means: Mapping[str, Sequence[Interval]]) -> Curves:
    """Return shares of prompts over numbers of responses."""
    lines = tuple(Series.of(name, ks, intervals) for name, intervals in means.items())
    return Curves(title=title, x_axis="k", y_axis="share of prompts", series=lines, log_x=True)


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


def unjudged(candidates: Candidates) -> list[str]:
    """Return a sentence on responses that have no gold, if there are any."""
    count = sum(one.value("gold") is None for one in candidates.all())
    return [f"{count} responses could not be judged; they count as not right"] if count else []


def read_groups(config: CandidatesConfig, chosen: Sequence[tuple[Group, float, str]], who: str) -> tuple[ReadCase, ...]:
    """Return prompts to read, given with weights and verdicts; their responses are ranked by what `who` says.

    Their texts are read once more from the input; where it has none, ids stand for them.
    """
    shown = [_ranked(group, who)[:_MAX_RESPONSES] for group, _, _ in chosen]
    texts = samples_again(config, {(one.row, one.place) for members in shown for one in members})
    return tuple(
        _read_case(group.name, members, [texts.get((one.row, one.place)) for one in members], weight, verdict, who)
        for (group, weight, verdict), members in zip(chosen, shown, strict=True)
    )


def _ranked(group: Group, who: str) -> list[Candidate]:
    """The responses, the highest number first; those without one are last, and the best in truth is second."""
    members = sorted(group.members, key=lambda one: (one.value(who) is None, -(one.value(who) or 0.0)))
    best = max(members, key=lambda one: one.value("gold") or 0.0)
    return list({id(one): one for one in (members[0], best, *members)}.values())


def _read_case(
    name: str, members: Sequence[Candidate], samples: Sequence[Sample | None], weight: float, verdict: str, who: str
) -> ReadCase:
    first = next((sample for sample in samples if sample is not None), None)
    reference = None if first is None else first.reference
    return ReadCase(
        id=name,
        part="",
        verdict=verdict,
        weight=weight,
        prompt="" if first is None else cut(as_text(first.prompt)),
        responses=tuple(
            ReadResponse(
                text=cut(as_text(sample.response)) if sample is not None else f"(no text; id {one.id})",
                said=", ".join(f"{name} {_said(one, name)}" for name in one.said),
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
