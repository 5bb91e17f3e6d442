"""Trying probes on a scorer: the responses as they are, then each probe's variants of all rows.

Variants of some rows are in memory at a time, beside the rows themselves: a probe makes up to 20 of each row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from adjudge.evals.benchmarks.case import is_cut
from adjudge.evals.probes.probe import KEPT, Broken, Probe, ProbeRow, Rule, Tally, Variant
from adjudge.protocol import NO_COST, Cost, Sample, Score, Scorer
from adjudge.runtime.contract import is_groupwise, score_checked
from adjudge.runtime.loop import run_blocking

Tell = Callable[[str, int, int], None]

CHUNK: Final = 256  # samples in one call of the scorer


@dataclass(frozen=True, slots=True)
class Asked:
    """One response to score, and the other one of the pair, for scorers that compare."""

    row: ProbeRow
    variant: Variant
    opponent: str

    @property
    def key(self) -> tuple[Any, ...]:
        """What is equal for what gets the same score."""
        one = self.variant
        given = (one.prompt if isinstance(one.prompt, str) else repr(one.prompt), repr(one.reference))
        return (id(self.row), one.response, self.opponent, one.finish_reason, one.turned, *given)


def plain(row: ProbeRow, response: str, opponent: str) -> Asked:
    """Return what is asked about a response as it is."""
    return Asked(row, Variant(how="as it is", response=response), opponent)


def _ask(scorer: Scorer, samples: Sequence[Sample]) -> list[Score]:
    return run_blocking(score_checked(scorer, samples))


class Asker:
    """Asks one scorer.

    Args:
        compare: whether its reference is the other response.
        tell: called with what is asked, samples done, and samples in all.
        size: most samples in one call; at least 2, which a pair needs.

    Attributes:
        pairs: whether every response is scored beside or against another one.
        cut_off: how many end at a limit, or were seen in part.
    """

    def __init__(
        self,
        scorer: Scorer,
        *,
        compare: bool = False,
        tell: Tell | None = None,
        call: Callable[[Scorer, Sequence[Sample]], list[Score]] = _ask,
        size: int = CHUNK,
    ) -> None:
        self.scorer = scorer
        self.compares = compare
        self._grouped = is_groupwise(scorer) and not compare
        self._tell = tell
        self._call = call
        self._size = size // 2 if self._grouped else size
        self.pairs = compare or self._grouped
        self.samples = self.abstained = self.failed = self.cut_off = 0
        self.reasons: dict[str, int] = {}
        self.cost: Cost = NO_COST

    def sample(self, asked: Asked, group: str = "") -> Sample:
        """Return the sample of a response."""
        row, one = asked.row, asked.variant
        reference = row.reference if one.reference is KEPT else one.reference
        return Sample(
            prompt=row.prompt if one.prompt is None else one.prompt,
            response=one.response,
            reference=asked.opponent if self.compares else reference,
            id=row.id,
            group=group,
            finish_reason=one.finish_reason,
            extra=row.extra,
        )

    def ask(self, what: str, asked: Sequence[Asked], *, before: float = 0.0, share: float = 1.0) -> list[Score]:
        """Return one score for each response, in order; responses that are asked about twice are scored once.

        Whoever is told hears what they are of; `before` is the share of it that was asked earlier, `share` their own.
        """
        places: dict[tuple[Any, ...], int] = {}
        owners: list[int] = []
        single: list[Asked] = []
        for one in asked:
            owners.append(places.setdefault(one.key, len(single)))
            if owners[-1] == len(single):
                single.append(one)
        scores: list[Score] = []
        for start in range(0, len(single), self._size):
            scores += self._scored(single[start : start + self._size])
            if self._tell is not None:
                whole = len(single) / share
                self._tell(what, round(before * whole) + len(scores), round(whole))
        return [scores[place] for place in owners]

    def _scored(self, asked: Sequence[Asked]) -> list[Score]:
        if not self._grouped:
            return self._counted([self.sample(one) for one in asked])
        samples: list[Sample] = []
        for number, one in enumerate(asked):
            mine = self.sample(one, group=f"pair {number}")
            other = replace(mine, response=one.opponent, id=f"{mine.id} (opponent)", finish_reason=None)
            samples += (other, mine) if one.variant.turned else (mine, other)
        scores = self._counted(samples)
        return [scores[2 * number + one.variant.turned] for number, one in enumerate(asked)]

    def _counted(self, samples: Sequence[Sample]) -> list[Score]:
        scores = self._call(self.scorer, samples)
        self.samples += len(scores)
        for sample, score in zip(samples, scores, strict=True):
            self.cost += score.cost
            self.cut_off += sample.finish_reason == "length" or is_cut(score.reason, score.evidence)
            if score.value is None:
                self.reasons[score.reason] = self.reasons.get(score.reason, 0) + 1
                self.abstained += score.status == "abstained"
                self.failed += score.status == "failed"
        return scores


_NOISE: Final = 1e-9  # of floating point; scores that differ by less are the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The scores that a rule is about; None where there is no such response, or it has no score.

    Attributes:
        base: of the response that the changed one was made of.
        partner: of the bad response changed in the same way.
        steps: how many steps the changed response was scored in, `base_steps` of its base; 0 for scorers without steps.
    """

    changed: float
    base: float
    good: float
    bad: float | None = None
    partner: float | None = None
    steps: int = 0
    base_steps: int = 0


def applies(rule: Rule, values: Values) -> bool:
    """Return whether there is something to hold: an order must be there before it can be kept."""
    if rule == "below_good" or (rule == "order" and values.partner is not None):
        return values.bad is not None and values.good > values.bad + _NOISE
    return rule != "mirrored" or (0 <= values.good <= 1 and 0 <= values.changed <= 1)


def excess(rule: Rule, values: Values, epsilon: float) -> float:
    """Return by how much a rule is broken, in units of the score; 0 where it holds, and above 0 where it does not."""
    change = values.changed - values.base
    if rule == "same" or (rule == "order" and values.partner is None):
        return _above(abs(change) - epsilon)
    if rule == "not_higher":
        return _above(change - epsilon)
    if rule == "lower":
        return _reached(change + epsilon)
    if rule == "worthless":
        over_bad = 0.0 if values.bad is None else _above(values.changed - values.bad - epsilon)
        return max(_reached(values.changed - values.good + epsilon), over_bad)
    if rule == "order":
        return _reached((values.partner or 0.0) - values.changed)
    if rule == "below_good":
        return _reached(values.changed - values.good)
    if rule == "mirrored":
        return _above(abs(values.changed + values.good - 1) - epsilon)
    return max(_above(abs(change) - epsilon), float(abs(values.steps - values.base_steps)))


def _above(by: float) -> float:
    """Broken where it is above 0."""
    return by if by > _NOISE else 0.0


def _reached(by: float) -> float:
    """Broken where it is 0 or more, so by a little at least."""
    return max(by, _NOISE) if by > -_NOISE else 0.0


SHARE: Final = 0.1
_ROWS: Final = 1_000  # whose variants are in memory at a time
FIRST: Final = "as they are"
"""What is asked first: the responses that nothing was changed in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A row with the scores of its responses as they are; the good one has a number."""

    row: ProbeRow
    good: Score
    bad: Score | None

    @property
    def values(self) -> tuple[float, float | None]:
        """The two numbers."""
        return float(self.good.value or 0.0), None if self.bad is None else self.bad.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """What counts as no change.

    Attributes:
        epsilon: changes up to this count as none.
        spread: mean distance between the scores of good and bad responses; None where no row has both.
        least: the lowest score of a good response.
    """

    epsilon: float
    spread: float | None
    least: float


def yardstick(bases: Sequence[Base], *, epsilon: float | None = None, share: float = SHARE) -> Yardstick:
    """Return what counts as no change for a scorer: `epsilon`, or a share of the spread of at least one row.

    Where no row has a good and a bad response with scores, it is a share of the standard deviation of the good ones.
    """
    goods = [base.values[0] for base in bases]
    gaps = [abs(good - bad) for good, bad in (base.values for base in bases) if bad is not None]
    spread = sum(gaps) / len(gaps) if gaps else None
    mean = sum(goods) / len(goods)
    deviation = math.sqrt(sum((good - mean) ** 2 for good in goods) / len(goods))
    own = share * (deviation if spread is None else spread)
    return Yardstick(epsilon=own if epsilon is None else epsilon, spread=spread, least=min(goods))


def scored_bases(asker: Asker, rows: Sequence[ProbeRow]) -> list[Base]:
    """Return the rows with the scores of their responses, those left out whose good response has no score.

    For scorers that compare, rows without a bad response are left out too: there is nothing to compare with.
    """
    usable = [row for row in rows if row.bad is not None or not asker.pairs]
    goods = asker.ask(FIRST, [plain(row, row.good, row.bad or "") for row in usable])
    both = [row for row in usable if row.bad is not None]
    bads = iter(asker.ask(FIRST, [plain(row, row.bad or "", row.good) for row in both]))
    bases = [
        Base(row=row, good=good, bad=None if row.bad is None else next(bads))
        for row, good in zip(usable, goods, strict=True)
    ]
    return [base for base in bases if base.good.value is not None]


@dataclass(kw_only=True)
class Trials:
    """Tries probes on the rows of one scorer.

    Attributes:
        per_row: most variants of a probe for each row, drawn; 0 tries all.
        keep: how many broken cases of a probe are kept.
        below_good: worthless variants below every good response, and all of them.
    """

    asker: Asker
    bases: Sequence[Base]
    scale: Yardstick
    seed: int = 0
    per_row: int = 0
    keep: int = 10
    below_good: list[int] = field(default_factory=lambda: [0, 0])

    def try_probe(self, probe: Probe) -> Tally:
        """Score the variants of all rows, and count which keep the rule."""
        tally = Tally(probe=probe, keep=self.keep)
        if probe.pairs and not self.asker.pairs:
            return tally
        for start in range(0, len(self.bases), _ROWS):
            self._try_rows(tally, self.bases[start : start + _ROWS], start / len(self.bases))
        return tally

    def _try_rows(self, tally: Tally, bases: Sequence[Base], before: float) -> None:
        probe, share = tally.probe, len(bases) / len(self.bases)
        trials = [(base, variant) for base in bases for variant in self._variants(probe, base)]
        against_good = [one.of == "bad" or probe.rule == "worthless" for _, one in trials]
        asked = [
            Asked(base.row, one, base.row.good if against else one.partner or base.row.bad or "")
            for (base, one), against in zip(trials, against_good, strict=True)
        ]
        scores = self.asker.ask(probe.name, asked, before=before, share=share)
        asked = [
            Asked(base.row, replace(one, response=one.partner), one.response)
            for base, one in trials
            if one.partner is not None
        ]
        partners = iter(self.asker.ask(probe.name, asked, before=before, share=share))
        for (base, variant), score in zip(trials, scores, strict=True):
            partner = next(partners) if variant.partner is not None else None
            self._count(tally, base, variant, score, partner)

    def _variants(self, probe: Probe, base: Base) -> list[Variant]:
        rng = Random(f"{self.seed} {probe.name} {base.row.id}")
        variants = probe.variants(base.row, rng)
        if base.bad is None or base.bad.value is None:  # nothing to compare a changed bad response with
            variants = [one for one in variants if one.of == "good"]
        if self.per_row and len(variants) > self.per_row:
            return rng.sample(variants, self.per_row)
        return variants

    def _count(self, tally: Tally, base: Base, variant: Variant, score: Score, partner: Score | None) -> None:
        rule = tally.probe.rule
        origin = base.good if variant.of == "good" or base.bad is None else base.bad
        if rule == "worthless" and score.value is not None:
            self.below_good[0] += score.value < self.scale.least
            self.below_good[1] += 1
        if score.value is None or (partner is not None and partner.value is None):
            case = Broken(row=base.row, variant=variant, score=score, base=origin, excess=0.0)
            refused = rule == "aligned" and score.value is None
            tally.count(variant, None if refused else case, judged=False)
            return
        good, bad = base.values
        values = Values(
            changed=score.value,
            base=float(origin.value or 0.0),
            good=good,
            bad=bad,
            partner=None if partner is None else partner.value,
            steps=len(score.steps),
            base_steps=len(origin.steps),
        )
        if not applies(rule, values):
            tally.unordered += 1
            return
        by = excess(rule, values, self.scale.epsilon)
        unit = self.scale.spread or 1.0
        case = Broken(row=base.row, variant=variant, score=score, base=origin, excess=by / unit)
        tally.count(variant, case if by > 0 else None)
