"""The citation scorer: an answer is worth its outcome and the evidence that leads to it.

Three questions to a model: is the final answer right; which thing does the answer name for each placeholder; and do the
pages it cites support the statements, placeholders filled in.  A statement counts when it is supported and supported
statements link it with the answer.  Pages are what tools returned (`adjudge.judges.items.citation_pages`); a cited
address that no tool ever showed is no page.

Beyond the published protocol (CaRR): a name must stand in the answer itself, pages that support nothing lower the
reward, and an answer that cites more pages than are read gets nothing for them.  Each is an option, and
the preset `carr` has the published ones.

Not covered: whether a page tells the truth.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from adjudge.engines.interface import Fault
from adjudge.judges.items.citation_pages import Page, pages_of
from adjudge.judges.items.citation_rules import (
    TRAINING_RATIO,
    Findings,
    Normalize,
    Statement,
    cited,
    entities_of,
    explanation,
    group_rewards,
    mixed,
    read_statements,
    unsupported,
)
from adjudge.judges.items.item import one_line
from adjudge.options import Count, Range, Share
from adjudge.prompts.asking import Answer, cost_of
from adjudge.prompts.reading import LabelReader, json_object, keyed_lines
from adjudge.prompts.scorer import Case, ModelScorer, shortened
from adjudge.prompts.template import Rendered, Template, Value, load_template
from adjudge.protocol import Cost, Sample, Score, content_text
from adjudge.responses.phrases import found_in
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.entries import reject_unknown, shown

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


@dataclass(frozen=True, slots=True, kw_only=True)
class NameReader:
    """Reads a JSON object with the prompt's key and a name or null for each placeholder.

    "null" and "unknown" as texts are null, too.  The key is there so that an object in the response, repeated, is none.
    """

    entities: tuple[str, ...]

    def __call__(self, text: str, nonce: str = "", /) -> dict[str, str | None] | None:
        """Return placeholder to name, or None if there is no such object."""
        kinds: dict[str, type | tuple[type, ...]] = dict.fromkeys(self.entities, (str, type(None)))
        found = json_object(text, {**kinds, "key": str})
        if found is None or found["key"].casefold() != nonce.casefold():
            return None
        names: dict[str, str | None] = {}
        for entity in self.entities:
            name = found[entity]
            if name is not None and len(name) > _LONGEST_NAME:
                return None
            names[entity] = None if name is None or name.strip().casefold() in _NO_NAME else one_line(name)
        return names


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportReader:
    """Reads yes or no for each name from lines that hold the prompt's key."""

    names: tuple[str, ...]

    def __call__(self, text: str, nonce: str = "", /) -> dict[str, bool] | None:
        """Return name to yes, or None unless every name has exactly one verdict."""
        found = keyed_lines(text, nonce, self.names, ("yes", "no"))
        return None if found is None else {name: label == "yes" for name, label in found.items()}


def entity_values(claim: Claim) -> dict[str, Value]:
    """Return what fills the prompt that asks for names."""
    return {
        "question": claim.sample.prompt,
        "statements": _numbered([statement.text for statement in claim.statements]),
        "response": claim.response,
        "entities": ", ".join(entities_of(claim.statements)),
    }


def support_names(claim: Claim, *, pages: bool) -> tuple[str, ...]:
    """Return what verdicts are asked on: the filled statements by number and, with `pages`, the pages as p1, p2, ..."""
    statements = [str(number) for number in range(1, len(claim.filled) + 1)]
    return (*statements, *(f"p{number}" for number in range(1, len(claim.pages) + 1) if pages))


def support_values(claim: Claim, *, pages: bool, characters: int) -> dict[str, Value]:
    """Return what fills the prompt that asks for support.

    Args:
        claim: statements and pages.
        pages: whether a verdict on each page is asked for.
        characters: how much of one page is shown.
    """
    verdicts = [f"{number}: statement {number} is supported" for number in range(1, len(claim.filled) + 1)]
    if pages:
        verdicts += [
            f"p{number}: page {number} says something that supports at least one statement"
            for number in range(1, len(claim.pages) + 1)
        ]
    shown = [_shown(number, url, page, characters) for number, (url, page) in enumerate(claim.pages, start=1)]
    return {
        "pages": "\n".join(shown),
        "statements": _numbered([text for _, text in claim.filled]),
        "verdicts": "\n".join(verdicts),
    }


def _shown(number: int, url: str, page: Page, characters: int) -> str:
    """A page with all its lines indented, so that no line of it looks like the head of another page."""
    body = "\n".join(page.texts)
    if len(body) > characters:
        body = f"{body[:characters]}\n(cut off here)"
    lines = "\n".join(f"  {line}" for line in body.splitlines())
    title = f" {one_line(page.title)}" if page.title else ""
    return f"page {number}: {one_line(url)}{title}\n{lines}"


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}. {one_line(text)}" for number, text in enumerate(texts, start=1))


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
    version: ClassVar[str] = "1"
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
        """Reject options out of range."""
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
        if self.groupwise and not sample.group:
            raise BadReferenceError(
                "the sample has no group; set Sample.group, the same for all responses to one prompt"
            )
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
        groups: defaultdict[str, list[int]] = defaultdict(list)
        for place, (sample, score) in enumerate(zip(samples, scores, strict=True)):
            if {"outcome", "rubric"} <= set(score.parts):
                groups[sample.group].append(place)
        for members in groups.values():
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
        outcomes, found = await asyncio.gather(self._outcomes(claims), self._findings(claims))
        return [self._score(*both) for both in zip(outcomes, found, strict=True)]

    def _score(self, outcome: Answer[str] | Fault | None, found: tuple[Findings | Fault, Cost]) -> Score:
        findings, cost = found
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
            "outcome": Score.scored(right, "" if right else "wrong", text=shortened(outcome.text)),
            "rubric": rubric,
        }
        return Score(value=value, reason="" if right else "wrong", parts=parts, cost=cost)

    async def _outcomes(self, claims: Sequence[Claim]) -> list[Answer[str] | Fault] | list[None]:
        if self.ratio == 1:
            return [None] * len(claims)
        template = self.templates()[0]
        read = LabelReader(form=template.form, labels=template.labels)

        def prompt(claim: Claim) -> Rendered:
            values = {
                "question": claim.sample.prompt,
                "correct_answer": claim.sample.reference["answer"],
                "response": claim.response,
            }
            return self.render(template, values)

        return await self.asked(claims, prompt, read)

    async def _findings(self, claims: Sequence[Claim]) -> list[tuple[Findings | Fault, Cost]]:
        """Ask which things are named, look up the pages, and ask what these support."""
        named = await self._named(claims)
        found: dict[int, tuple[Findings | Fault, Cost]] = {}
        ready: dict[int, Claim] = {}
        values: dict[int, Mapping[str, str | None]] = {}
        for place, (claim, answer) in enumerate(zip(claims, named, strict=True)):
            cost = cost_of([answer])
            if isinstance(answer, Fault):
                found[place] = answer, cost
                continue
            values[place] = self._grounded(answer.value, claim.response)
            made = self._with_pages(claim, values[place])
            excess = self.excess == "zero" and len(made.cited) > self.max_pages
            if excess or not (made.filled and made.pages):
                pages = tuple(url for url, _ in made.pages)
                found[place] = (
                    unsupported(claim.statements, values[place], cited=made.cited, pages=pages, excess=excess),
                    cost,
                )
            else:
                ready[place] = made
        for (place, claim), said in zip(ready.items(), await self._support(list(ready.values())), strict=True):
            cost = cost_of([named[place]]) + cost_of([said])
            result = said if isinstance(said, Fault) else self._read(claim, values[place], said.value)
            found[place] = result, cost
        return [found[place] for place in range(len(claims))]

    def _grounded(self, values: Mapping[str, str | None], response: str) -> dict[str, str | None]:
        kept = {}
        for entity, value in values.items():
            known = value is not None and (not self.grounded or found_in(value, response))
            kept[entity] = value if known else None
        return kept

    def _with_pages(self, claim: Claim, values: Mapping[str, str | None]) -> Claim:
        """Return the claim with its filled statements, its citations, and the pages behind them."""
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
        """Return what the verdicts on statements and pages say."""
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
        template = self.templates()[-2]

        def prompt(claim: Claim) -> Rendered:
            return self.render(template, entity_values(claim))

        reads = [NameReader(entities=entities_of(claim.statements)) for claim in claims]
        return await self.asked(claims, prompt, reads)

    async def _support(self, claims: Sequence[Claim]) -> list[Answer[dict[str, bool]] | Fault]:
        template = self.templates()[-1]
        pages = self.idle == "scale"

        def prompt(claim: Claim) -> Rendered:
            # made of what the response cites: the base asks with a short response what made a prompt too long
            urls = cited(claim.response)
            shown = replace(claim, pages=tuple(page for page in claim.pages if page[0] in urls))
            share = min(self.page_characters, self.all_characters // max(1, len(shown.pages)))
            return self.render(template, support_values(shown, pages=pages, characters=share))

        reads = [SupportReader(names=support_names(claim, pages=pages)) for claim in claims]
        return await self.asked(claims, prompt, reads)
