"""What `adjudge check` says of the rows themselves: a few of them scored, and what length alone tells of pairs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from adjudge.cli.rows import Rows, references_by_kind, scorer_name
from adjudge.cli.trials import Check, Finding, growing, score_in_time
from adjudge.data_pipelines.label.bench import cause_of
from adjudge.evals.probes.planted import right_answers
from adjudge.io.preferences import Preference
from adjudge.protocol import Sample, Score, Scorer, turn_texts
from adjudge.runtime.contract import BrokenScorer, is_groupwise
from adjudge.score_view import brief
from adjudge.scoring.api import score_rows
from adjudge.scoring.compose.auto import auto_scorer

T = TypeVar("T")

_SHOWN: Final = 3  # rows
_CHUNK: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """Some rows, scored.

    Attributes:
        rows: the rows to show, each with its score, or None where nothing scores it.
        tried: how many responses were scored.
        mean: of their values; None where none has one.
        counts: how many of them got which value and reason, the most frequent first; where values are not grades, how
            many got which reason.
    """

    rows: Sequence[tuple[Sample, Score | None]]
    tried: int = 0
    mean: float | None = None
    counts: tuple[tuple[str, int], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "graded": [
                {"sample": sample.to_dict(), "score": score.to_dict() if score else None} for sample, score in self.rows
            ],
            "responses": {"tried": self.tried, "mean": self.mean, "counts": dict(self.counts)},
        }


def grade(rows: Rows, scorer: Scorer | None, *, seconds: float, budget: float | None) -> Graded:
    """Score responses of the rows, or, where they have none, the answers in their references.

    Args:
        rows: the rows.
        scorer: who scores; None leaves the rows unscored.
        seconds: longest time of a call.
        budget: seconds after which no further responses are scored; None scores all.

    Raises:
        BrokenScorer: what is behind the scorer, such as a model, is not there.
    """
    samples = rows.answered or [_with_gold(sample, scorer) for sample in rows.asked]
    if scorer is None:
        return Graded(rows=[(sample, None) for sample in samples[:_SHOWN]])
    if rows.kind == "preferences":
        samples = [sample for name, pair in rows.preferences[:_SHOWN] for sample in _sides(name, pair, scorer)]
    elif not rows.answered:
        samples = _one_of_each(samples, lambda sample: next(iter(references_by_kind([sample]))))
    scores: list[Score] = []
    for chunk in growing(samples, len(samples) if is_groupwise(scorer) else _CHUNK, budget):
        scores += score_in_time(scorer, chunk, seconds, score_rows)
    if scores and all(score.reason.startswith("engine_") for score in scores):
        why = f"{scores[0].reason}: {cause_of(scores[0])[0]}"
        raise BrokenScorer(f"the scorer {scorer.name!r} scored none of {len(scores)} rows: {why}")
    values = [score.value for score in scores if score.value is not None]
    grades = len(set(values)) <= _SHOWN
    said = [brief(score) if grades else score.reason or score.status for score in scores]
    pairs = list(zip(samples, scores, strict=False))
    if rows.answered:
        pairs = _one_of_each(pairs, lambda pair: (pair[1].provenance.scorer, brief(pair[1]) if grades else ""))
    silent = not rows.answered and rows.kind != "preferences"
    return Graded(
        rows=[(sample, None if silent and not sample.response else score) for sample, score in pairs],
        tried=len(scores) if rows.answered else 0,
        mean=sum(values) / len(values) if values else None,
        counts=tuple(Counter(said).most_common()),
    )


def pair_check(preferences: Sequence[tuple[str, Preference]]) -> Check:
    """Say how often the longer response is the better one; pairs of equal texts are not preferences, and fail."""
    pairs = longer = shorter = ties = 0
    same: list[Finding] = []
    for name, each in preferences:
        sizes = [sum(map(len, turn_texts(response))) for response in each.responses]
        for one, other in itertools.combinations(range(len(sizes)), 2):
            pairs += 1
            if each.ranks[one] == each.ranks[other]:
                ties += 1
                continue
            better, worse = (one, other) if each.ranks[one] < each.ranks[other] else (other, one)
            longer += sizes[better] > sizes[worse]
            shorter += sizes[better] < sizes[worse]
            if each.responses[one] == each.responses[other]:
                sample = Sample(prompt=each.prompt, response=each.responses[one], id=name)
                same.append(Finding(row=name, how="both", sample=sample, problem="both responses are the same text"))
    told = longer + shorter
    share = f"the longer response is the better one in {longer / told:.1%} of pairs" if told else "no pair differs"
    detail = f"{share}{f'; {ties} ties' if ties else ''}"
    return Check.of("pairs", pairs, same, detail, f"{len(same)} of equal texts; {detail}")


def _one_of_each(items: Sequence[T], kind: Callable[[T], object]) -> list[T]:
    """A few items: the first of each kind before others."""
    kinds: dict[object, int] = {}
    for place, item in enumerate(items):
        kinds.setdefault(kind(item), place)
    places = [*kinds.values(), *(place for place in range(len(items)) if place not in kinds.values())][:_SHOWN]
    return [items[place] for place in sorted(places)]


def _with_gold(sample: Sample, scorer: Scorer | None) -> Sample:
    """A row with the answer in its reference as the response, if there is one."""
    if sample.reference is None or scorer is None:
        return sample
    try:
        name = scorer_name(auto_scorer(sample.reference, sample.prompt)) if scorer.name == "auto" else scorer.name
    except ValueError:
        return sample
    answer = next((one.text for one in right_answers(name, sample.reference)), "")
    return replace(sample, response=answer)


def _sides(name: str, pair: Preference, scorer: Scorer) -> list[Sample]:
    """The best and the worst response of a row as samples; of a pair, each with the other where the scorer compares."""
    best, worst = pair.ranks.index(min(pair.ranks)), pair.ranks.index(max(pair.ranks))
    two = [pair.responses[best], pair.responses[worst if worst != best else 1]]
    against = getattr(scorer, "against", None) == "reference"
    return [
        Sample(prompt=pair.prompt, response=said, reference=other if against else None, id=name, group=name)
        for said, other in (two, two[::-1])
    ]
