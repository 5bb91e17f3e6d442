"""O2-Searcher's reward for open questions, whose answer is a list of findings.

    value = scale * (format + factual + 0.5 * diversity) / 2.5      the scale of the released code is 0.5

A finding is one line of the answer behind a bullet, `- ..`, `* ..` or `1. ..`.  `factual` is the F1 of findings beside
reference findings, matched one-to-one, so that padding and copies lower it.  `diversity` is 1 less the mean similarity
of pairs: of the findings that were matched, or of the queries that a tool answered, as in the released code.  Format
and diversity count only where something is right (`gated`).

Source: arXiv 2505.16582 and Acade-Mate/O2-Searcher @ 0e77e9a: weights 1, 1, 0.5, scale 0.5, threshold 0.75 on sentence
embeddings; docs/agents.md says what was not taken over.  Its form and its diversity of queries are `released`:

    form      = (0.5 * share of lines that are findings + 0.3 * min(findings / 10, 1) + 0.5 * unlikeness) / 1.3
                - 3 * share of repeated findings, kept in [0, 1]
    diversity = mean over queries of (1 - mean likeness to the others) * w(queries) * (tokens / 8, from 0.1 to 1)

unlikeness is 1 - (0.5 * largest + 0.6 * share above 0.6 + 0.2 * mean of the pairs' TF-IDF cosines) ** 1.5, and w is 0.5
for up to 5 queries, 0.05 more for each up to 15, and 0.02 less for each beyond.  Fewer than two queries have 0, and n
that are all alike 0.5 * 0.2 ** (n - 1).

Not covered: closed questions, which `token_f1` judges, and lists inside lists.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

from adjudge.options import Count, Range
from adjudge.protocol import Sample, Score
from adjudge.responses.trajectories.searches import final_answer, searches_of
from adjudge.responses.trajectories.trajectory import Trajectory, steps_at
from adjudge.scoring.nested import asked_each, cost_of, without_number
from adjudge.verifiers.agents.scoring import TrajectoryNestedScorer, Value, Weight
from adjudge.verifiers.agents.search.signals import (
    Rule,
    finding_f1,
    folded,
    likeness,
    matched,
    pair_similarities,
    read_findings,
    spread,
    words_of,
)

_MAX_QUERIES = 20  # as released
_BULLET = re.compile(r"[ \t]{0,16}(?:[-*•]|\d{1,3}[.)])[ \t]+")
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding's text without the bullet, and the place of its line in the graded text."""

    text: str
    start: int
    end: int


def findings_of(text: str, offset: int = 0) -> tuple[list[Finding], int]:
    """Return the findings of an answer that begins at `offset`, and how many lines with something else it has."""
    findings: list[Finding] = []
    others = 0
    at = offset
    for line in text.splitlines(keepends=True):
        bullet = _BULLET.match(line)
        rest = line[bullet.end() :].strip() if bullet else ""
        if _WORD.search(rest):
            findings.append(Finding(text=rest, start=at, end=at + len(line.rstrip())))
        else:
            others += bool(line.strip())
        at += len(line)
    return findings, others


@dataclass(slots=True, kw_only=True)
class _Work:
    sample: Sample
    findings: list[Finding]
    others: int
    queries: list[str]
    references: list[str]
    pairs: list[tuple[int, int]] = field(default_factory=list)
    likeness: list[float] = field(default_factory=list)
    given: list[Score] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class FindingsScorer(TrajectoryNestedScorer):
    """A list of findings beside reference findings: format, F1 by one-to-one matching, diversity (O2-Searcher).

    The reference is `{"findings": ["..", ..]}` or a list of texts.

    Attributes:
        rule: how alike two texts are where no scorer is given: "token_f1" or "cosine" of their words.
        similarity: a scorer in [0, 1] of two texts, one the response and one the reference; None for the rule.
        threshold: the least similarity of a finding and the reference finding that it matches.
        weights: of format, factual F1 and diversity; they are divided by their sum.
        scale: what full marks are worth.
        lines: "all": the format is 1 if every line of the answer is a finding and none is repeated, else 0; "share":
            the share of such lines, less `repeat_cost` times the share of repeated findings, and at least 0;
            "released": see the module.
        repeat_cost: see there; 3 as released.
        diverse: whose diversity counts: "findings" for those that were matched, "queries", or "released" for queries
            as the module has it.
        gated: whether format and diversity count only where the F1 is above 0.
        max_findings, max_characters: an answer with more scores 0 (`too_complex`).
    """

    name: ClassVar[str] = "findings"
    version: ClassVar[str] = "3"
    inner: ClassVar[tuple[str, ...]] = ("similarity",)

    rule: Rule = "token_f1"
    similarity: Any = None
    threshold: Annotated[float, Range(gt=0, le=1)] = 0.75
    weights: tuple[float, float, float] = (1.0, 1.0, 0.5)
    scale: Value = 1.0
    lines: Literal["all", "share", "released"] = "all"
    repeat_cost: Weight = 3.0
    diverse: Literal["findings", "queries", "released"] = "findings"
    gated: bool = True
    max_findings: Count = 50
    max_characters: Count = 50_000

    def __post_init__(self) -> None:
        super().__post_init__()
        weights: Any = self.weights
        numbers = isinstance(weights, list | tuple) and [
            one for one in weights if isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one < math.inf
        ]
        if not numbers or len(numbers) != 3 or len(weights) != 3 or not sum(numbers):
            raise ValueError(
                f"{self.name} option weights={weights!r}; give three numbers from 0, of format, factual F1, diversity"
            )
        object.__setattr__(self, "weights", tuple(weights))

    def gold(self, sample: Sample) -> list[str]:
        """Return the reference findings; `BadReferenceError` if there are none that could be matched."""
        return read_findings(sample.reference)

    def read(self, sample: Sample, trajectory: Trajectory) -> _Work | Score:
        """Return the findings of a sample, or its score if it has none."""
        answer = final_answer(trajectory, self.shape)
        if sample.finish_reason == "length":
            return Score.scored(0.0, "truncated")
        if answer.reason:
            return Score.scored(0.0, answer.reason)
        block = trajectory.blocks(self.shape.answer)[-1]
        inside, end = block.start + len(block.tag) + 2, block.end - len(block.tag) - 3
        if end - inside > self.max_characters:
            return Score.scored(0.0, "too_complex")
        findings, others = findings_of(trajectory.text[inside:end], inside)
        if not findings:
            return Score.scored(0.0, "bad_format", lines=others)
        if len(findings) > self.max_findings:
            return Score.scored(0.0, "too_complex", findings=len(findings))
        queries: list[str] = []
        if self.diverse != "findings":  # what came back makes a query one, not what the agent says
            answered = [search.query for search in searches_of(trajectory, self.shape) if search.answered]
            queries = [query[:1_000] for query in answered if query.strip()][:_MAX_QUERIES]
        references = self.gold(sample)
        return _Work(sample=sample, findings=findings, others=others, queries=queries, references=references)

    async def judge(self, read: Sequence[_Work]) -> list[Score]:
        """Return one score per answer, in order."""
        await self._match(read)
        await self._compare(read)
        return [self._scored(work) for work in read]

    async def _match(self, works: Sequence[_Work]) -> None:
        alike = await self._alike(
            works, [[(finding.text, gold) for finding in one.findings for gold in one.references] for one in works]
        )
        for work, values in zip(works, alike, strict=True):
            wide = len(work.references)
            rows = [values[at : at + wide] for at in range(0, len(values), wide)]
            work.pairs = matched(rows, self.threshold)

    async def _compare(self, works: Sequence[_Work]) -> None:
        texts = [
            [work.findings[row].text for row, _ in work.pairs] if self.diverse == "findings" else work.queries
            for work in works
        ]
        alike = await self._alike(works, [list(itertools.combinations(one, 2)) for one in texts])
        for work, values in zip(works, alike, strict=True):
            work.likeness = values

    async def _alike(self, works: Sequence[_Work], asked_for: Sequence[Sequence[tuple[str, str]]]) -> list[list[float]]:
        """How alike the texts of each pair are, in [0, 1]; scores without a number are kept with the work."""
        if self.similarity is None:
            words = {text: words_of(text) for pairs in asked_for for pair in pairs for text in pair}
            return [[likeness(words[one], words[other], self.rule) for one, other in pairs] for pairs in asked_for]
        samples = [
            [
                replace(work.sample, response=one, reference=other, id="", group="", finish_reason=None, extra={})
                for one, other in pairs
            ]
            for work, pairs in zip(works, asked_for, strict=True)
        ]
        alike = await asked_each(self.similarity, samples, called=f"the similarity of {self.name!r}")
        for work, scores in zip(works, alike, strict=True):
            work.given += scores
        return [[min(max(score.value or 0.0, 0.0), 1.0) for score in scores] for scores in alike]

    def _scored(self, work: _Work) -> Score:
        unknown = next((one for one in work.given if one.value is None), None)
        if unknown is not None:
            parts = {"similarity": unknown}
            return replace(without_number(parts) or unknown, cost=cost_of(work.given))
        count, pairs = len(work.findings), len(work.pairs)
        precision, recall, factual = finding_f1(pairs, count, len(work.references))
        form = self._form(work)
        diversity = (
            query_diversity(work.queries, work.likeness) if self.diverse == "released" else spread(work.likeness)
        )
        rewards = (form, factual, diversity) if factual or not self.gated else (0.0, 0.0, 0.0)
        weighed = sum(weight * reward for weight, reward in zip(self.weights, rewards, strict=True))
        rows = {row for row, _ in work.pairs}
        values = [float(at in rows) for at in range(count)]
        return Score(
            value=self.scale * weighed / sum(self.weights),
            reason="" if factual else "wrong",
            steps=steps_at(work.findings, values, ("matched" if value else "unmatched" for value in values)),
            evidence={
                "format": form,
                "factual": factual,
                "diversity": diversity,
                "precision": precision,
                "recall": recall,
                "pairs": [list(pair) for pair in work.pairs],
            },
            cost=cost_of(work.given),
        )

    def _form(self, work: _Work) -> float:
        count = len(work.findings)
        different = len({folded(finding.text) for finding in work.findings})
        if self.lines == "all":
            return float(not work.others and different == count)
        form = count / (count + work.others)
        if self.lines == "released":
            form = (0.5 * form + 0.3 * min(count / 10, 1) + 0.5 * unlikeness([one.text for one in work.findings])) / 1.3
        return min(1.0, max(0.0, form - self.repeat_cost * (1 - different / count)))


def unlikeness(texts: Sequence[str]) -> float:
    """Return how unlike the findings of a list are by the released code; see the module."""
    similar = pair_similarities(texts)
    if not similar:
        return 1.0
    alike = sum(one > 0.6 for one in similar) / len(similar)
    return max(0.0, 1 - math.pow(0.5 * max(similar) + 0.6 * alike + 0.2 * sum(similar) / len(similar), 1.5))


def query_diversity(queries: Sequence[str], similar: Sequence[float]) -> float:
    """Return the diversity of queries by the released code, where pairs of them are so similar; see the module."""
    count = len(queries)
    if count < 2:
        return 0.0
    if min(similar) > 0.98:
        return 0.5 * 0.2 ** (count - 1)
    weight = 0.5 + 0.05 * min(max(count - 5, 0), 10) if count <= 15 else 0.9 - 0.02 * (count - 15)
    beside = [0.0] * count
    for (one, other), value in zip(itertools.combinations(range(count), 2), similar, strict=True):
        beside[one] += (1 - value) / (count - 1)
        beside[other] += (1 - value) / (count - 1)
    worth = {  # queries that are the same count once
        query: far * weight * min(1.0, (sum(words_of(query).values()) + 2) / 8)  # and the two tokens round a text
        for query, far in zip(queries, beside, strict=True)
    }
    return sum(worth.values()) / len(worth)
