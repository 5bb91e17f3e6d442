"""The citation scorer: an answer is worth its outcome and the evidence that leads to it.

Three questions to a model: is the final answer right; which thing does the answer name for each placeholder; and do the
pages it cites support the statements, placeholders filled in.  A statement counts when it is supported and supported
statements link it with the answer.  Pages are what tools returned (`adjudge.judges.items.citation_rules`); a cited
address that no tool ever showed is not a page.

Beyond the published protocol (CaRR): a name must stand in the answer itself, pages that support nothing lower the
reward, and an answer that cites more pages than are read gets nothing for them.  Each is an option, and
the preset `carr` has the published ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, Literal, TypeVar

from adjudge.engines.interface import Fault
from adjudge.judges.items.citation_rules import (
    TRAINING_RATIO,
    Findings,
    Normalize,
    Page,
    Statement,
    cited,
    entities_of,
    explanation,
    group_rewards,
    mixed,
    pages_of,
    read_statements,
)
from adjudge.judges.items.item import numbered, one_line
from adjudge.options import Count, Range, Share
from adjudge.prompts.asking import Answer, Fillable, Reader, cost_of
from adjudge.prompts.reading import Blank, LabelReader, json_object, keyed_lines
from adjudge.prompts.scorer import Case, ModelScorer, forced_of, shortened
from adjudge.prompts.template import Template, Value, load_template
from adjudge.protocol import Cost, Sample, Score, content_text
from adjudge.responses.phrases import found_in
from adjudge.runtime.contract import grouped
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import reject_unknown, shown

T = TypeVar("T")

_LONGEST_NAME = 500  # characters of what may stand for a placeholder
_NO_NAME = frozenset({"", "null", "none", "unknown", "n/a", "not specified", "not mentioned", "not given"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Case):
    """An answer with what its citations lead to.

    Attributes:
        statements: the statements with their placeholders.
        filled: the places of those whose placeholders are all named, and their texts.
        cited: the addresses it cites.
        pages: the cited pages that tools returned, by address.
    """

    statements: tuple[Statement, ...]
    filled: tuple[tuple[int, str], ...] = ()
    cited: tuple[str, ...] = ()
    pages: tuple[tuple[str, Page], ...] = ()


def read_names(entities: Sequence[str], text: str, nonce: str = "", /) -> dict[str, str | None] | None:
    """Return placeholder to name from a JSON object with the prompt's key and a name or null for each, or None.

    "null" and "unknown" as texts are null, too.  The key is there so that an object in the response, repeated, is none.
    """
    kinds: dict[str, type | tuple[type, ...]] = dict.fromkeys(entities, (str, type(None)))
    given = json_object(text, {**kinds, "key": str})
    if given is None or given["key"].casefold() != nonce.casefold():
        return None
    if any(len(given[entity] or "") > _LONGEST_NAME for entity in entities):
        return None
    names = {entity: given[entity] or "" for entity in entities}
    return {key: None if name.strip().casefold() in _NO_NAME else one_line(name) for key, name in names.items()}


def _names_blank(entities: Sequence[str], nonce: str) -> Blank:
    starts = [f'{", " if at else "{"}"{entity}": "' for at, entity in enumerate(entities)]
    places = tuple((f'"{start}' if at else start, ()) for at, start in enumerate(starts))
    return Blank(places=places, end=f'", "key": "{nonce}"}}')


def read_support(names: Sequence[str], text: str, nonce: str = "", /) -> dict[str, bool] | None:
    """Return name to yes from lines that hold the prompt's key, or None unless every name has exactly one verdict."""
    labels = keyed_lines(text, nonce, names, ("yes", "no"))
    return None if labels is None else {name: label == "yes" for name, label in labels.items()}


def _shown(number: int, url: str, page: Page, characters: int) -> str:
    """A page with all its lines indented, so that no line of it looks like the head of another page."""
    body = "\n".join(page.texts)
    if len(body) > characters:
        body = f"{body[:characters]}\n(cut off here)"
    lines = "\n".join(f"  {line}" for line in body.splitlines())
    title = f" {one_line(page.title)}" if page.title else ""
    return f"page {number}: {one_line(url)}{title}\n{lines}"


@dataclass(frozen=True, kw_only=True)
class CitationScorer(ModelScorer):
    """Outcome and citation-aware rubric of an answer with sources (CaRR, C-GRPO).

    The reference is `{"rubric": ["<E1> lost to <E2> in <E0>", ..], "answer": ".."}`; E0 stands for the answer.

    Attributes:
        ratio: weight of the rubric, in [0, 1]; at 1 no answer is needed.
        only_right: whether an answer whose outcome is 0 gets 0, as in C-GRPO.
        normalize: "group_max" divides the rubric reward by the largest of the samples that share `Sample.group`, as
            in the paper, and needs `only_right`; "none" does not, as in the released scripts.
        max_pages: most cited pages that are read.
        excess: what citing more costs: "zero", the whole rubric reward; "ignore", nothing, the first ones count.
        idle: what pages cost that support no statement: "scale", their share; "ignore", nothing.
        page_characters: most characters of one page that are shown; the rest is cut off.
        all_characters: most characters of all pages, in equal shares: who cites more pages shows less of each.
        grounded: whether the name of a thing must stand in the answer, or the model may put it in its own words.
        truncated: what a response with `finish_reason="length"` gets: "zero", or "grade" as if it were complete.
    """

    name: ClassVar[str] = "citations"
    version: ClassVar[str] = "3"
    needs_reference: ClassVar[bool] = True

    ratio: Share = TRAINING_RATIO
    only_right: bool = True
    normalize: Normalize = "none"
    max_pages: Count = 20
    excess: Literal["zero", "ignore"] = "zero"
    idle: Literal["scale", "ignore"] = "scale"
    page_characters: Annotated[int, Range(ge=100)] = 20_000
    all_characters: Annotated[int, Range(ge=100)] = 100_000
    grounded: bool = True
    truncated: Literal["zero", "grade"] = "zero"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.only_right and self.ratio == 1:
            raise ValueError(f"{self.name}: with ratio=1 the outcome is not asked for; set only_right=False")
        if self.groupwise and not self.only_right:
            raise ValueError(f'{self.name}: normalize="group_max" is C-GRPO\'s, which needs only_right=True')

    @property
    def groupwise(self) -> bool:
        """Whether a score depends on the other samples of its group."""
        return self.normalize == "group_max"

    def templates(self) -> tuple[Template, ...]:
        """Return the prompts of the three questions."""
        names = ("outcome", "entities", "support") if self.ratio < 1 else ("entities", "support")
        return tuple(load_template(f"judges/items/citations_{name}") for name in names)

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` if statements or answer are missing or malformed."""
        reference = sample.reference
        read_statements(reference)
        if isinstance(reference, Mapping):
            reject_unknown(reference, ("rubric", "answer"), where="the citations reference")
        answer = reference.get("answer") if isinstance(reference, Mapping) else None
        if self.ratio < 1 and not (isinstance(answer, str) and answer.strip()):
            raise BadReferenceError(f"the citations reference has the answer {shown(answer)}; give a text, or ratio=1")
        pages_of(sample)

    def case(self, sample: Sample) -> Case | Score:
        """Return what is judged of a trajectory: the turn it ends with, if that is the assistant's."""
        response = sample.response
        if not isinstance(response, str):
            last = response[-1] if response else {}
            response = content_text(last.get("content")) if last.get("role") == "assistant" else ""
        ready = super().case(replace(sample, response=response))
        if isinstance(ready, Score):
            return ready
        if sample.finish_reason == "length" and self.truncated == "zero":
            return Score.scored(0.0, "truncated")
        return replace(ready, sample=sample)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order."""
        scores = await super().score(samples)
        if not self.groupwise:
            return scores
        judged = [at for at, score in enumerate(scores) if {"outcome", "rubric"} <= set(score.parts)]
        for members in grouped({at: samples[at].group for at in judged}).values():
            pairs = [
                (scores[at].parts["outcome"].value or 0.0, scores[at].parts["rubric"].value or 0.0) for at in members
            ]
            outcomes, rubrics = zip(*pairs, strict=True)
            values = group_rewards(outcomes, rubrics, ratio=self.ratio, normalize=self.normalize)
            for at, value in zip(members, values, strict=True):
                scores[at] = replace(scores[at], value=value)
        return scores

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        claims = [
            Claim(
                sample=case.sample,
                response=explanation(case.response),
                statements=read_statements(case.sample.reference),
            )
            for case in cases
        ]
        outcomes, findings = await asyncio.gather(self._outcomes(claims), self._findings(claims))
        return [self._score(*both) for both in zip(outcomes, findings, strict=True)]

    def _score(self, outcome: Answer[str] | Fault | None, evidence: tuple[Findings | Fault, Cost]) -> Score:
        findings, cost = evidence
        if isinstance(outcome, Answer | Fault):
            cost += cost_of([outcome])
        for fault in (outcome, findings):
            if isinstance(fault, Fault):
                return replace(self.unanswered(fault), cost=cost)
        assert isinstance(findings, Findings)
        rubric = Score.scored(findings.reward, "bad_format" if findings.excess else "", **findings.evidence())
        if outcome is None:
            return Score(value=findings.reward, parts={"rubric": rubric}, cost=cost)
        assert isinstance(outcome, Answer)
        right = float(outcome.value == "yes")
        value = 0.0 if self.only_right and not right else mixed(right, findings.reward, ratio=self.ratio)
        parts = {
            "outcome": Score.scored(
                right, "" if right else "wrong", text=shortened(outcome.text), **forced_of([outcome])
            ),
            "rubric": rubric,
        }
        return Score(value=value, reason="" if right else "wrong", parts=parts, cost=cost)

    async def _outcomes(self, claims: Sequence[Claim]) -> list[Answer[str] | Fault] | list[None]:
        if self.ratio == 1:
            return [None] * len(claims)
        template = self.templates()[0]

        def values(claim: Claim) -> dict[str, Value]:
            answer = claim.sample.reference["answer"]
            return {"question": claim.sample.prompt, "correct_answer": answer, "response": claim.response}

        return await self._ask(template, claims, values, LabelReader(form=template.form, labels=template.labels))

    async def _ask(
        self,
        template: Template,
        claims: Sequence[Claim],
        values: Callable[[Claim], dict[str, Value]],
        read: Reader[T] | Sequence[Reader[T]],
    ) -> list[Answer[T] | Fault]:
        return await self.asked(claims, lambda claim: self.render(template, values(claim)), read)

    async def _findings(self, claims: Sequence[Claim]) -> list[tuple[Findings | Fault, Cost]]:
        """Ask which things are named, look up the pages, and ask what these support."""
        named = await self._named(claims)
        results: dict[int, tuple[Findings | Fault, Cost]] = {}
        ready: dict[int, Claim] = {}
        values: dict[int, Mapping[str, str | None]] = {}
        for place, (claim, answer) in enumerate(zip(claims, named, strict=True)):
            cost = cost_of([answer])
            if isinstance(answer, Fault):
                results[place] = answer, cost
                continue
            values[place] = self._grounded(answer.value, claim.response)
            made = self._with_pages(claim, values[place])
            excess = self.excess == "zero" and len(made.cited) > self.max_pages
            if excess or not (made.filled and made.pages):
                pages = tuple(url for url, _ in made.pages)
                none = Findings(
                    statements=claim.statements,
                    values=values[place],
                    supported=(False,) * len(claim.statements),
                    cited=made.cited,
                    pages=pages,
                    excess=excess,
                )
                results[place] = none, cost
            else:
                ready[place] = made
        for (place, claim), said in zip(ready.items(), await self._support(list(ready.values())), strict=True):
            cost = cost_of([named[place]]) + cost_of([said])
            result = said if isinstance(said, Fault) else self._read(claim, values[place], said.value)
            results[place] = result, cost
        return [results[place] for place in range(len(claims))]

    def _grounded(self, values: Mapping[str, str | None], response: str) -> dict[str, str | None]:
        kept = {}
        for entity, value in values.items():
            known = value is not None and (not self.grounded or found_in(value, response))
            kept[entity] = value if known else None
        return kept

    def _with_pages(self, claim: Claim, values: Mapping[str, str | None]) -> Claim:
        texts = [(at, statement.filled(values)) for at, statement in enumerate(claim.statements)]
        urls = cited(claim.response)
        known = pages_of(claim.sample)
        pages = [(url, known[url]) for url in urls if url in known and known[url].texts]
        return replace(
            claim,
            filled=tuple((at, text) for at, text in texts if text is not None),
            cited=tuple(urls),
            pages=tuple(pages[: self.max_pages]),
        )

    def _read(self, claim: Claim, values: Mapping[str, str | None], verdicts: Mapping[str, bool]) -> Findings:
        supported = [False] * len(claim.statements)
        for number, (at, _) in enumerate(claim.filled, start=1):
            supported[at] = verdicts[str(number)]
        urls = [url for url, _ in claim.pages]
        used = {url for number, url in enumerate(urls, start=1) if verdicts.get(f"p{number}", True)}
        return Findings(
            statements=claim.statements,
            values=values,
            supported=tuple(supported),
            cited=claim.cited,
            pages=tuple(urls),
            idle=tuple(url for url in claim.cited if url not in used) if self.idle == "scale" else (),
        )

    async def _named(self, claims: Sequence[Claim]) -> list[Answer[dict[str, str | None]] | Fault]:
        def values(claim: Claim) -> dict[str, Value]:
            return {
                "question": claim.sample.prompt,
                "statements": numbered([statement.text for statement in claim.statements]),
                "response": claim.response,
                "entities": ", ".join(entities_of(claim.statements)),
            }

        listed = [entities_of(claim.statements) for claim in claims]
        reads = [Fillable(partial(read_names, names), partial(_names_blank, names)) for names in listed]
        return await self._ask(self.templates()[-2], claims, values, reads)

    async def _support(self, claims: Sequence[Claim]) -> list[Answer[dict[str, bool]] | Fault]:
        """Ask which of the filled statements, by number, are supported, and which pages (p1, p2, ...) support one."""
        with_pages = self.idle == "scale"

        def values(claim: Claim) -> dict[str, Value]:
            # made of what the response cites: the base asks with a short response what made a prompt too long
            urls = cited(claim.response)
            pages = [page for page in claim.pages if page[0] in urls]
            characters = min(self.page_characters, self.all_characters // max(1, len(pages)))
            verdicts = [f"{at}: statement {at} is supported" for at in range(1, len(claim.filled) + 1)]
            says = "says something that supports at least one statement"
            verdicts += [f"p{at}: page {at} {says}" for at in range(1, len(pages) + 1) if with_pages]
            return {
                "pages": "\n".join(_shown(at, url, page, characters) for at, (url, page) in enumerate(pages, start=1)),
                "statements": numbered([text for _, text in claim.filled]),
                "verdicts": "\n".join(verdicts),
            }

        reads = []
        for claim in claims:
            names = [str(at) for at in range(1, len(claim.filled) + 1)]
            names += [f"p{at}" for at in range(1, len(claim.pages) + 1) if with_pages]
            blank = partial(Blank.of_lines, choices=dict.fromkeys(names, ("yes", "no")))
            reads.append(Fillable(partial(read_support, names), blank))
        return await self._ask(self.templates()[-1], claims, values, reads)
