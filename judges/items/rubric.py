"""The rubric scorer: each item judged by a model or a program, and one number made of them by a published formula.

An item that could not be judged leaves the whole without a number: a rubric with a hole in it is another rubric.

Data names a check by a short name; what stands behind the name is the user's choice in the rubric's options, so no
reference can bring in a scorer of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias

from adjudge.judges.items.formulas import (
    Combine,
    check_combine,
    tally,
    worst_value,
)
from adjudge.judges.items.item import JUDGED, Item, Verdicts, ask_items, criteria_text, read_rubric
from adjudge.options import Count, options_of
from adjudge.prompts.asking import Answer
from adjudge.prompts.reading import NumberReader
from adjudge.prompts.scorer import Case, ModelScorer, mean_and_error, shortened
from adjudge.prompts.template import Rendered, Template, load_template
from adjudge.protocol import Sample, Score, Scorer, Verifier
from adjudge.runtime.contract import is_groupwise, score_each, validate_sample
from adjudge.runtime.verifying import VerifierScorer
from adjudge.sandbox.sandbox import Isolation
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.compose.composite import Loader
from adjudge.verifiers.code.program import ProgramVerifier

PROGRAM = "(program)"
"""The check behind items with a generated checker; no name of a user's, since those are words."""


@dataclass(frozen=True, init=False)
class Checks:
    """Scorers by name.

    Attributes:
        fingerprints: name and fingerprint of each, sorted; what the checks add to a rubric's own fingerprint.
    """

    fingerprints: tuple[tuple[str, str], ...]

    def __init__(self, scorers: Mapping[str, Scorer | Verifier] | None = None) -> None:
        """Wrap verifiers, and reject what is not a scorer or needs its group."""
        ready: dict[str, Scorer] = {}
        if not isinstance(scorers, Mapping | None):
            raise ValueError(f"rubric option checks={scorers!r}; it must be a mapping, {{NAME: SCORER, ...}}")
        for name, thing in (scorers or {}).items():
            scorer = VerifierScorer(thing) if isinstance(thing, Verifier) else thing
            if not isinstance(scorer, Scorer) or is_groupwise(scorer):
                raise ValueError(
                    f"the check {name!r} is {thing!r}; it must be a scorer that judges each sample by itself"
                )
            ready[name] = scorer
        object.__setattr__(self, "_scorers", ready)
        object.__setattr__(self, "fingerprints", tuple(sorted((name, s.fingerprint) for name, s in ready.items())))

    @property
    def scorers(self) -> Mapping[str, Scorer]:
        """The scorers by name."""
        scorers: Mapping[str, Scorer] = vars(self)["_scorers"]
        return scorers


async def run_checks(scorers: Mapping[str, Scorer], jobs: Sequence[tuple[str, Sample]]) -> list[Score]:
    """Return the score of each job, in order; a number outside [0, 1] is not a degree of being met, and a failure."""
    names, samples = [name for name, _ in jobs], [sample for _, sample in jobs]
    scores = await score_each(scorers, names, samples, called="the check {} of a rubric")
    return [
        score
        if score.value is None or 0 <= score.value <= 1
        else Score.failed("part_failed", error=f"the check says {score.value!r}; a rubric takes numbers in [0, 1]")
        for score in scores
    ]


def job_of(case: Case, item: Item) -> tuple[str, Sample] | None:
    """Return the check that an item asks for with the sample for it, or None if it asks for none.

    A named check gets the whole response, reasoning included, and does with it what its own options say; a generated
    checker gets what the judge sees.
    """
    if item.kind == "check":
        reference: Any = item.reference if item.reference is not None else case.sample.reference
        return item.check, replace(case.sample, reference=reference)
    if not item.program:
        return None
    return PROGRAM, replace(case.sample, response=case.response, reference=item.program)


Formula: TypeAlias = Literal[Combine, "implicit"]
IMPLICIT: Final = "implicit"


@dataclass(frozen=True, kw_only=True)
class RubricScorer(ModelScorer):
    """How far a response meets a list of criteria.

    The reference is `{"rubric": [{"text": .., "weight": .., "kind": ..}, ..]}` or a list of texts (docs/rubrics.md).

    Attributes:
        combine: the formula: "mean", "absolute", "points", "verif", "count", "all" (`adjudge.judges.items.formulas`),
            or "implicit", one rating from 1 to 10 of the whole rubric, divided by 10.
        per_call: most items of one call; 1 judges each by itself, which costs more and lets none colour another.
        samples: how many times each item is judged; more than 1 needs a temperature, and gives a standard error.
        unsure: whether a judge may be unsure: "never", "worst" (it counts as what is worst for the response), or
            "abstain" (the whole has no number).
        checks: the scorers that items of the kind "check" may name.
        isolation: of generated checkers: "bubblewrap", or "none" for those you trust.
    """

    name: ClassVar[str] = "rubric"
    version: ClassVar[str] = "2"
    needs_reference: ClassVar[bool] = True
    often: ClassVar[str] = "samples"

    combine: Formula = "mean"
    per_call: Count = 1
    samples: Count = 1
    unsure: Literal["never", "worst", "abstain"] = "worst"
    checks: Checks | Mapping[str, Any] = field(default_factory=Checks)
    isolation: Isolation = "bubblewrap"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.checks, Checks):
            object.__setattr__(self, "checks", Checks(self.checks))

    @classmethod
    def from_spec(cls, body: Any, loader: Loader) -> Self:
        """Read `{engine: .., combine: .., checks: {NAME: SPEC}, ..}`."""
        known = [item.name for item in fields(cls)]
        given = options_of(body, known, inside=cls.name, required=("engine",), example="{engine: openai:MODEL}")
        if isinstance(checks := given.get("checks"), Mapping):
            given["checks"] = {str(name): loader.scorer(spec) for name, spec in checks.items()}
        return cls(**given)

    def templates(self) -> tuple[Template, ...]:
        """Return the one prompt this formula needs."""
        return (load_template(f"judges/items/rubric_{'implicit' if self.combine == IMPLICIT else 'items'}"),)

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` if the rubric cannot be read, or does not go with the formula or the checks."""
        items = read_rubric(sample.reference)
        if self.combine == IMPLICIT:
            if any(item.kind not in JUDGED or item.program or item.gate for item in items):
                raise BadReferenceError('combine="implicit" rates all items at once; it takes no programs and no gates')
            return
        check_combine(items, self.combine)
        for item in items:
            if item.kind == "check" and item.check not in self._named:
                raise BadReferenceError(
                    f"the item {item.name!r} names the check {item.check!r}; the option `checks` has "
                    f"{', '.join(self._named) or 'none'}"
                )
            if (job := job_of(Case(sample=sample, response=""), item)) and job[0] != PROGRAM:
                validate_sample(self._scorers[job[0]], job[1])

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        if self.combine == IMPLICIT:
            return await self._rated(cases)
        rubrics = [read_rubric(case.sample.reference) for case in cases]
        judged = [[item for item in items if item.kind in JUDGED] for items in rubrics]
        jobs = [
            (place, item.name, job)
            for place, (case, items) in enumerate(zip(cases, rubrics, strict=True))
            for item in items
            if (job := job_of(case, item)) is not None
        ]
        verdicts, checked = await asyncio.gather(
            ask_items(
                self,
                self.templates()[0],
                cases,
                judged,
                per_call=self.per_call,
                unsure=self.unsure != "never",
            ),
            run_checks(self._scorers, [job for _, _, job in jobs]),
        )
        programs: list[dict[str, Score]] = [{} for _ in cases]
        for (place, name, _), score in zip(jobs, checked, strict=True):
            programs[place][name] = score
        return [
            self._score(items, said, by_program)
            for items, said, by_program in zip(rubrics, verdicts, programs, strict=True)
        ]

    def _score(self, items: Sequence[Item], said: Verdicts, programs: Mapping[str, Score]) -> Score:
        cost = sum((score.cost for score in programs.values()), said.cost)
        broken = next((name for name, score in programs.items() if score.value is None), None)
        if broken is not None:
            reason = programs[broken].reason if programs[broken].status == "failed" else "part_failed"
            return replace(Score.failed(reason, item=broken), parts=dict(programs), cost=cost)
        if said.fault is not None:
            return replace(self.unanswered(said.fault), cost=cost)
        judged = [item for item in items if item.kind in JUDGED]
        labels = {item.name: given for item, given in zip(judged, said.labels, strict=True)}
        texts = {item.name: text for item, text in zip(judged, said.texts, strict=True)}
        parts = {item.name: self._part(item, labels, texts, programs) for item in items}
        if self.unsure == "abstain" and any(part.value is None for part in parts.values()):
            return replace(Score.abstained("low_confidence"), parts=parts, cost=cost)
        assert self.combine != IMPLICIT
        runs = [
            tally(items, [self._value(item, labels, programs, at) for item in items], self.combine)
            for at in range(self.samples)
        ]
        value, error = mean_and_error([run[0] for run in runs])
        return Score(
            value=value,
            reason="gated" if all(shut for _, shut in runs) else "",
            parts=parts,
            uncertainty=error,
            evidence={"combine": self.combine, "weights": {item.name: item.weight for item in items}, **said.forced},
            cost=cost,
        )

    def _value(
        self, item: Item, labels: Mapping[str, tuple[str, ...]], programs: Mapping[str, Score], at: int
    ) -> float:
        program = programs[item.name].value if item.name in programs else None
        if item.name not in labels:
            assert program is not None
            return program
        said = item.value_of(labels[item.name][at])
        if said is None:
            return worst_value(item)
        return said if program is None else (said + program) / 2  # RLCF: an item with a program beside the judge

    def _part(
        self,
        item: Item,
        labels: Mapping[str, tuple[str, ...]],
        texts: Mapping[str, str],
        programs: Mapping[str, Score],
    ) -> Score:
        if item.name not in labels:
            return programs[item.name]
        given = labels[item.name]
        evidence: dict[str, Any] = {"verdict": given[0] if len(given) == 1 else list(given)}
        evidence["text"] = shortened(texts[item.name])
        if any(item.value_of(label) is None for label in given):
            return Score.abstained("low_confidence", **evidence)
        value, error = mean_and_error([self._value(item, labels, programs, at) for at in range(len(given))])
        return Score(value=value, reason="" if value == 1.0 else "wrong", evidence=evidence, uncertainty=error)

    async def _rated(self, cases: Sequence[Case]) -> list[Score]:
        template = self.templates()[0]
        low, high = template.scale or (1, 10)
        read = NumberReader(form=template.form, low=low, high=high)

        def prompt(case: Case) -> Rendered:
            criteria = criteria_text(read_rubric(case.sample.reference), weights=True)
            values = {"question": case.sample.prompt, "response": case.response, "criteria": criteria}
            return self.render(template, values)

        def score(case: Case, verdicts: Sequence[Answer[float]]) -> Score:
            value, error = mean_and_error([verdict.value / high for verdict in verdicts])
            first = verdicts[0]
            evidence = {"combine": IMPLICIT, "rating": int(first.value), "text": shortened(first.text)}
            return Score(value=value, uncertainty=error, evidence=evidence)

        return await self.decided(cases, prompt, read, score)

    @property
    def _named(self) -> Mapping[str, Scorer]:
        assert isinstance(self.checks, Checks)
        return self.checks.scorers

    @property
    def _scorers(self) -> dict[str, Scorer]:
        return {**self._named, PROGRAM: VerifierScorer(ProgramVerifier(reasoning="keep", isolation=self.isolation))}
