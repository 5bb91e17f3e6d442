r"""BAPO: an agent earns a little for saying that it does not know, where nobody of its group knows.

    malformed                                   -1
    answered, token F1 above 0                  F1
    answered otherwise                          0
    "I don't know"                              0.5 where no response of the group scored above 0, else 0

The bonus of 0.5 is held back in two stages.  Early, while validation still improves, where already as many as `ratio`
of the batch abstain; late, in a group with more than 3 different wrong answers, which is still exploring.

A score depends on the group alone.  The stage and the batch's rate come from outside: options, or the columns
`bapo_stage` or `stale_evals`, and `abstention_rate`, of `Sample.extra`.  Our trainer says the last two
(`rollouts.facts`).  The release speaks of "5 validations without improvement in a row" and counts all that are below
the best one, wherever they stand; here they are in a row.

The form is that of the release: `<think>` elements, at least one; one `<answer>` with a `\boxed{}`; every `<search>`
and `<python>` closed, and followed by what the tool returned.  It is asked of the assistant's own text alone.  The
release asks the whole text, so a page that shows a tag makes a good answer a malformed one there, and results that the
policy wrote itself pass for results.

Source: `Liushiyu-0709/BAPO-Reliable-Search` @ b8b1072, `re_search_faith.py`.  docs/agents.md lists where this
differs.  Not covered: advantages; groups are normalised by the trainer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from numbers import Real
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from adjudge.fingerprints import fingerprint_of
from adjudge.options import Count, Range, Share, check_options
from adjudge.protocol import Provenance, Sample, Score
from adjudge.responses.answer_span import find_spans, shorten
from adjudge.responses.trajectories.reading import check_trajectory, read_trajectory
from adjudge.responses.trajectories.trajectory import TrajectoryForm
from adjudge.runtime.contract import grouped
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.verifier_base import graded_text, refuse_mistakes
from adjudge.verifiers.agents.abstention.sentences import Sentences, sentences_of
from adjudge.verifiers.text.token_f1 import MAX_CHARACTERS, TokenF1Verifier, token_f1

ToolText = Literal["spans", "tags"]

_TOOLS: Final = ("search", "python")
_TAG: Final = re.compile(r"<(?P<slash>/?)(?P<name>think|answer|search|python)>")


class _MalformedError(Exception):
    """A response without the form that is asked for; the argument says what is wrong."""


@lru_cache(maxsize=4)
def _form(tool_text: ToolText) -> TrajectoryForm:
    return TrajectoryForm(result="result", more=("python",), tool_text=tool_text)


def _search_answer(sample: Sample, form: TrajectoryForm, *, boxed: bool) -> str:
    trajectory = read_trajectory(sample, form)
    _check_tags("\n".join(turn.text for turn in trajectory.turns))
    if trajectory.forged():
        raise _MalformedError("the response wrote a tool's result itself")
    if any(not turn.results and any(turn.tagged(name) for name in _TOOLS) for turn in trajectory.turns):
        raise _MalformedError("a tool was called and nothing came back")
    blocks = trajectory.blocks(form.answer)
    if len(blocks) != 1:
        raise _MalformedError("the answer does not stand outside the thoughts")
    if not boxed:
        return blocks[0].text
    spans = find_spans(blocks[0].text, "boxed")
    if not spans:
        raise _MalformedError("the answer has no closed \\boxed{}")
    return spans[0].texts[-1]


def _plain_answer(sample: Sample) -> str:
    """The answer of any response: the last element, box or marker behind the reasoning, or all of it."""
    text, fault = graded_text(sample, "strip")
    spans = find_spans(text, "auto")
    if fault or not spans:
        raise _MalformedError("the response ends inside its reasoning" if fault else "there is no answer")
    return spans[0].texts[-1]


def _check_tags(text: str) -> None:
    opened = Counter[str]()
    closed = Counter[str]()
    for mark in _TAG.finditer(text):
        name = mark["name"]
        (closed if mark["slash"] else opened)[name] += 1
        if not 0 <= opened[name] - closed[name] <= 1:
            raise _MalformedError(f"<{name}> is not opened and closed in turn")
    for name in ("think", *_TOOLS, "answer"):
        if opened[name] != closed[name]:
            raise _MalformedError(f"<{name}> is not closed")
    if not opened["think"]:
        raise _MalformedError("there is no <think>")
    if opened["answer"] != 1:
        raise _MalformedError("there is not exactly one <answer>")


Stage = Literal["early", "late", "always", "never"]

STAGE: Final = "bapo_stage"
RATE: Final = "abstention_rate"
STALE: Final = "stale_evals"
SIZE: Final = "group_size"

_MALFORMED: Final = -1.0
_CLOSED: Final = frozenset({"yes", "no", "noanswer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One response of a group: its score before any bonus, and whether it is well formed and abstains.

    `wrong` is the normal form of a well-formed answer that earned nothing, `size` that of the group where it is known.
    """

    score: Score
    abstains: bool = False
    wrong: str = ""
    size: int = 0


@dataclass(frozen=True, kw_only=True)
class BapoScorer:
    """BAPO: -1 malformed, token F1, and 0.5 for "I don't know" where nobody in the group scored above 0.

    The reference is a text, or a list of accepted texts; it should be the same in a group.  `Sample.group` names the
    group; where `Sample.extra` has `group_size`, fewer responses are an incomplete group.

    Attributes:
        stage: "early", "late", "always" (the bonus is never held back) or "never" (no bonus, as in validation); the
            column `bapo_stage` goes before it.  "early" is late from a column `stale_evals` of `patience` on.
        patience: validations in a row without improvement that end the early stage.
        rate: share of the batch that abstains, in [0, 1]; the column `abstention_rate` goes before it.  The early stage
            needs one of them.
        ratio: the early stage pays no bonus from this rate on: 0.05 in the release, 0.1 in its documents.
        bonus: for an abstention, above 0 and at most 1.
        right_above: a token F1 above this, in [0, 1], is somebody who knows; 0 as published, where one shared word is.
        max_distinct: the late stage pays no bonus in a group with more different wrong answers.
        form: "search" asks for the release's elements; "plain" takes the last marked answer, or all of a response.
        boxed: whether the answer of "search" stands in a box inside its element.
        tool_text: "spans": `extra["tool_spans"]` says what tools wrote in a flat response; "tags" trusts the result
            tags.  Chat turns say it themselves.
        language: of token F1: "en", or "any" for other languages.
        languages, sentences: which of the built-in lists of sentences count ("en", "zh"), or sentences in their place.
        truncated: whether a response that was cut off is malformed ("zero") or graded ("grade").
    """

    name: ClassVar[str] = "bapo"
    version: ClassVar[str] = "3"
    needs_reference: ClassVar[bool] = True
    groupwise: ClassVar[bool] = True

    stage: Stage = "early"
    patience: Count = 5
    rate: Share | None = None
    ratio: Share = 0.05
    bonus: Share = 0.5
    right_above: Share = 0.0
    max_distinct: Annotated[int, Range(ge=0)] = 3
    form: Literal["search", "plain"] = "search"
    boxed: bool = True
    tool_text: ToolText = "spans"
    language: Literal["en", "any"] = "en"
    languages: tuple[str, ...] = ("en", "zh")
    sentences: tuple[str, ...] | None = None
    truncated: Literal["zero", "grade"] = "zero"
    _known: Sentences = field(init=False, repr=False, compare=False)
    _f1: TokenF1Verifier = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_options(self, f"{self.name} option")
        if not self.bonus:
            raise ValueError('bapo option bonus=0; give stage="never" for no bonus')
        object.__setattr__(self, "_known", sentences_of(self.languages, self.sentences, inside=self.name))
        object.__setattr__(self, "_f1", TokenF1Verifier(language=self.language))

    @property
    def fingerprint(self) -> str:
        """Name, version and options."""
        return fingerprint_of(self, self._f1)

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the group, the reference, the stage or the rate is missing or malformed."""
        if not sample.group:
            raise ValueError("bapo: the sample has no group; set Sample.group, the same for all its responses")
        refuse_mistakes(self.name, sample, lambda: self._golds(sample))
        refuse_mistakes(self.name, sample, lambda: self._circumstances(sample))
        if self.form == "search":
            refuse_mistakes(self.name, sample, lambda: check_trajectory(sample, _form(self.tool_text)))

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order; whole groups must be given."""
        members = [self.read(sample) for sample in samples]
        groups = grouped({place: sample.group for place, sample in enumerate(samples)})
        origin = Provenance(scorer=self.name, fingerprint=self.fingerprint)
        scores = {}
        for places in groups.values():
            group = [members[place] for place in places]
            missing = max(member.size for member in group) - len(places)
            for place in places:
                scores[place] = self._in_group(samples[place], members[place], group, missing)
        return [replace(scores[place], provenance=origin) for place in range(len(samples))]

    def rate_of(self, samples: Sequence[Sample]) -> float:
        """Return the share of samples that abstain, for the column `abstention_rate` of a batch; 0 for none."""
        return sum(self.read(sample).abstains for sample in samples) / len(samples) if samples else 0.0

    def read(self, sample: Sample) -> Member:
        """Return what a response is worth by itself."""
        try:
            golds = self._golds(sample)
        except BadReferenceError as error:
            return Member(score=Score.failed("gold_unparsable", error=str(error)))
        try:
            self._circumstances(sample)
            return replace(self._member(self._answer(sample), golds), size=_size(sample))
        except _MalformedError as error:
            score = Score.scored(_MALFORMED, "bad_format", problem=str(error))
            return Member(score=score, size=_size(sample))
        except ValueError as error:
            return Member(score=Score.failed("bad_sample", error=str(error)))

    def worth_resampling(self, samples: Sequence[Sample]) -> bool:
        """Return whether BAPO draws a group anew: nobody scored above 0, and nobody abstains.

        A group of which a response has no score, or none at all, is none to draw anew: nobody knows.
        """
        members = [self.read(sample) for sample in samples]
        values = [member.score.value for member in members]
        return bool(members) and all(
            value is not None and value <= 0 and not member.abstains
            for member, value in zip(members, values, strict=True)
        )

    def _member(self, answer: str, golds: Sequence[tuple[str, ...]]) -> Member:
        said = shorten(answer)
        if len(answer) > MAX_CHARACTERS:
            return Member(score=Score.scored(0.0, "too_complex"), wrong=said)
        if self._known.whole(answer):
            return Member(score=Score.scored(0.0, "no_answer", answer=said, abstains=True), abstains=True)
        tokens = tuple(self._f1.tokens(answer))
        value = max(_agreement(tokens, gold) for gold in golds)
        if value > 0:
            return Member(score=Score.scored(value, answer=said, abstains=False))
        wrong = " ".join(tokens) or answer
        return Member(score=Score.scored(0.0, "wrong", answer=said, abstains=False), wrong=wrong)

    def _in_group(self, sample: Sample, member: Member, group: Sequence[Member], missing: int) -> Score:
        """Return the score of a member: its own, with the bonus where it abstains and the group lets it."""
        if not member.abstains:
            return member.score
        stage, rate = self._circumstances(sample)
        evidence = {**member.score.evidence, "stage": stage}

        def unpaid(why: str) -> Score:
            return Score.scored(0.0, "no_answer", **evidence, bonus=why)

        if stage == "never":
            return unpaid("there is none")
        if stage == "early" and rate is not None and rate >= self.ratio:
            return unpaid("the batch abstains often enough")
        if any((one.score.value or 0.0) > self.right_above for one in group):
            return unpaid("a response of the group is right")
        distinct = len({one.wrong for one in group if one.wrong})
        if stage == "late" and distinct > self.max_distinct:
            return unpaid("the group is still exploring")
        if missing > 0:
            return Score.failed("cohort_incomplete", missing=missing, error="one of them may be right")
        if len(group) < 2:
            return Score.failed("group_too_small", error="nobody else of the group has tried; two are needed")
        if any(one.score.value is None for one in group):
            return Score.failed("part_failed", error="a response of the group has no score; it may be right")
        return Score.scored(self.bonus, "", **evidence, bonus="nobody in the group is right")

    def _answer(self, sample: Sample) -> str:
        form = _form(self.tool_text) if self.form == "search" else None
        if self.truncated == "zero" and sample.finish_reason == "length":
            if form is not None:
                check_trajectory(sample, form)
            raise _MalformedError("the response was cut off")
        read = _plain_answer(sample) if form is None else _search_answer(sample, form, boxed=self.boxed)
        if not read.strip():
            raise _MalformedError("the answer is empty")
        return read

    def _golds(self, sample: Sample) -> tuple[tuple[str, ...], ...]:
        golds = self._f1.read_reference(sample.reference)
        for gold in [sample.reference] if isinstance(sample.reference, str) else sample.reference:
            if self._known.whole(gold):
                raise BadReferenceError(f"the gold answer {shorten(gold, 60)!r} is one of the sentences that abstain")
        return golds

    def _circumstances(self, sample: Sample) -> tuple[Stage, float | None]:
        """Return the stage and the rate that hold for a sample; `ValueError` if one, or the group's size, cannot be."""
        _size(sample)
        stage = sample.extra.get(STAGE, self.stage)
        if stage not in get_args(Stage):
            raise ValueError(f"extra[{STAGE!r}] is {stage!r}; it must be one of {', '.join(get_args(Stage))}")
        stale = sample.extra.get(STALE, 0)
        if isinstance(stale, bool) or not isinstance(stale, int) or stale < 0:
            raise ValueError(f"bapo: extra[{STALE!r}] is {stale!r}; it must be a whole number from 0")
        if stage == "early" and stale >= self.patience:
            stage = "late"
        rate = sample.extra.get(RATE, self.rate)
        if rate is not None:
            if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= float(rate) <= 1:
                raise ValueError(f"bapo: extra[{RATE!r}] is {rate!r}; it must be a number in [0, 1]")
        elif stage == "early":
            raise ValueError(
                f"the early stage needs the share of the batch that abstains: give extra[{RATE!r}] (BapoScorer.rate_of "
                "counts it) or the option rate, or another stage"
            )
        return stage, None if rate is None else float(rate)


def _agreement(tokens: tuple[str, ...], gold: tuple[str, ...]) -> float:
    """Return the token F1; where one side is yes or no, only the same word agrees, as in the release."""
    if tokens != gold and any(len(side) == 1 and side[0] in _CLOSED for side in (tokens, gold)):
        return 0.0
    return token_f1(Counter(tokens), Counter(gold)) if tokens else 0.0


def _size(sample: Sample) -> int:
    size: Any = sample.extra.get(SIZE)
    if size is not None and (type(size) is not int or size < 1):
        raise ValueError(f"extra[{SIZE!r}] is {size!r}; it must be a whole number from 1")
    return size or 0
