"""The nugget scorer: which of the facts that an answer should hold does it support?

    strict_vital = supported vital nuggets / vital nuggets      vital = (supported + partial / 2) / the same
    strict_all   = supported nuggets / nuggets                  all   = likewise

A score over no nuggets is 0 there, and so here; the scorer refuses such references before any work.  A system's score
is the mean over its answers.

Source: Pradeep et al., AutoNuggetizer (2411.09607); castorini/nuggetizer, core/metrics.py @ d00dc3e.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

from adjudge.judges.items.item import SUPPORT, Item, Verdicts, ask_items
from adjudge.options import Count
from adjudge.prompts.scorer import Case, ModelScorer, mean_and_error, shortened
from adjudge.protocol import Sample, Score
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import entries_of, entry_of, shown, text_of
from adjudge.verifiers.verdict.support_labels import LABELS, Label

Metric: TypeAlias = Literal["strict_vital", "vital", "strict_all", "all"]
METRICS: tuple[Metric, ...] = get_args(Metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class NuggetScores:
    """The four scores of one answer, each in [0, 1]."""

    strict_vital: float
    vital: float
    strict_all: float
    all: float


def nugget_scores(importance: Sequence[Importance], labels: Sequence[Label]) -> NuggetScores:
    """Return the four scores of one answer.

    Args:
        importance: "vital" or "okay", for each nugget.
        labels: how far the answer supports each.

    Raises:
        ValueError: the lists differ in length, or a label is not in the list.
    """
    if len(importance) != len(labels):
        raise ValueError(f"{len(labels)} labels for {len(importance)} nuggets; give one for each")
    for label in labels:
        if label not in LABELS:
            raise ValueError(f"the label {label!r} is none; it must be one of {', '.join(LABELS)}")
    worth = [SUPPORT[label] for label in labels]
    vital = [value for level, value in zip(importance, worth, strict=True) if level == "vital"]
    return NuggetScores(
        strict_vital=_mean([float(value == 1.0) for value in vital]),
        vital=_mean(vital),
        strict_all=_mean([float(value == 1.0) for value in worth]),
        all=_mean(worth),
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


Importance: TypeAlias = Literal["vital", "okay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nugget:
    """One fact.

    Attributes:
        text: the fact; untrusted like all data.
        importance: "vital" if an answer without it is a bad one, else "okay".
    """

    text: str
    importance: Importance = "vital"


def read_nuggets(reference: Any) -> tuple[Nugget, ...]:
    """Return the nuggets of `{"nuggets": [...]}` or of a plain list; an entry is a text or `{"text", "importance"}`.

    Raises:
        BadReferenceError: an entry cannot be read.
    """
    nuggets = []
    for at, entry in enumerate(entries_of(reference, "nuggets", inside="nuggets"), start=1):
        where, give = f"nugget {at}", 'it must be a text or {"text": .., "importance": ..}'
        made = entry_of(entry, ("text", "importance"), where=where, give=give)
        importance: Any = made.get("importance", "vital")
        if importance not in get_args(Importance):
            raise BadReferenceError(f"{where} has the importance {shown(importance)}; it must be vital or okay")
        nuggets.append(Nugget(text=text_of(made, ("text",), where=where), importance=importance))
    return tuple(nuggets)


@dataclass(frozen=True, kw_only=True)
class NuggetScorer(ModelScorer):
    """The share of given facts that a response supports, as nuggetizer counts it.

    The reference is `{"nuggets": [{"text": .., "importance": "vital" or "okay"}, ..]}` or a list of texts.

    Attributes:
        metric: "strict_vital", "vital", "strict_all" or "all"; strict ones give nothing for partial support.
        per_call: most nuggets of one call.
        samples: how many times each nugget is judged; more than 1 needs a temperature, and gives a standard error.
    """

    name: ClassVar[str] = "nuggets"
    version: ClassVar[str] = "2"
    needs_reference: ClassVar[bool] = True
    text_template: ClassVar[str] = "judges/items/nuggets_assign"
    often: ClassVar[str] = "samples"

    metric: Metric = "strict_vital"
    per_call: Count = 10
    samples: Count = 1

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` if there are no nuggets, or none that the metric counts."""
        nuggets = read_nuggets(sample.reference)
        if self.metric.endswith("vital") and not any(nugget.importance == "vital" for nugget in nuggets):
            raise BadReferenceError(
                f'no nugget is vital, so every answer would get 0; use metric="all", not {self.metric!r}'
            )

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        nuggets = [read_nuggets(case.sample.reference) for case in cases]
        items = [[Item(text=nugget.text, kind="support") for nugget in listed] for listed in nuggets]
        said = await ask_items(self, self.templates()[0], cases, items, per_call=self.per_call)
        return [self._score(listed, verdicts) for listed, verdicts in zip(nuggets, said, strict=True)]

    def _score(self, nuggets: Sequence[Nugget], said: Verdicts) -> Score:
        if said.fault is not None:
            return replace(self.unanswered(said.fault), cost=said.cost)
        levels: list[Importance] = [nugget.importance for nugget in nuggets]
        runs = [nugget_scores(levels, [cast(Label, given[at]) for given in said.labels]) for at in range(self.samples)]
        value, error = mean_and_error([float(getattr(run, self.metric)) for run in runs])
        labels = [given[0] if self.samples == 1 else list(given) for given in said.labels]
        evidence = {"labels": labels, "texts": [shortened(text) for text in dict.fromkeys(said.texts)], **said.forced}
        if self.samples == 1:
            evidence["scores"] = asdict(runs[0])
        parts = {f"nugget_{at}": _part(given) for at, given in enumerate(said.labels, start=1)}
        return Score(value=value, parts=parts, evidence=evidence, uncertainty=error, cost=said.cost)


def _part(labels: Sequence[str]) -> Score:
    """The score of one nugget: 1, 0.5 or 0, or the mean of that over several labels."""
    value, error = mean_and_error([SUPPORT[label] for label in labels])
    evidence = {"label": labels[0] if len(labels) == 1 else list(labels)}
    return Score(value=value, reason="" if value == 1.0 else "wrong", evidence=evidence, uncertainty=error)
