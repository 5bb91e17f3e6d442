r"""The math verifier: does a response's final answer equal the gold answer?

Tiers, cheapest first; `evidence["tier"]` names the one that decided:

1. `literal`: the same text, layout aside;
2. `rational`: two plain numbers, compared as exact fractions;
3. `exact`, `ball`, `points`, `structure`, `words`: our own parser, exact rationals, rigorous ball arithmetic, random
   points for free variables, and item-by-item comparison of sets, tuples, intervals, matrices and relations;
4. `math_verify`: for texts that our parser does not read, math-verify in a killable worker, and an acceptance only
   when everything written was understood.

What none of them decides is never accepted; the option `undecided` says what it is instead.  The response is
never evaluated, and the cost of tiers 1 to 3 is bounded by the size of the answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from adjudge.options import Range
from adjudge.protocol import Limits, Message, Sample, Score, response_text, split_reasoning, turn_texts
from adjudge.responses.markup import visible_answer
from adjudge.responses.phrases import ASKS_PERCENTAGE
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import accepted_texts
from adjudge.scoring.verifier_base import Reasoning, ReferenceVerifier
from adjudge.verifiers.math.equality import Equality
from adjudge.verifiers.math.extraction import Extraction, extract
from adjudge.verifiers.math.families import family_verdict, implied
from adjudge.verifiers.math.fitting import says
from adjudge.verifiers.math.letters import in_gold_letters
from adjudge.verifiers.math.nodes import Collection, Relation
from adjudge.verifiers.math.numerals import MAX_DIGITS, decimal_comma, grouped_number
from adjudge.verifiers.math.reading import Reading, in_units, left_out, read_answer, read_gold
from adjudge.verifiers.math.scalars import Rules, Verdict, numbers_equal
from adjudge.verifiers.math.sentences import MAX_SENTENCE, clean, sentence_end
from adjudge.verifiers.math.symbolic import load, symbolic_verdict
from adjudge.verifiers.math.vocabulary import words

_END = re.compile(r"(?<=[.!?])\s+")
_ORDER = re.compile(
    r"\brespectively\b|\bin\s+(?:that|this|the\s+(?:given|same|following|above))\s+order\b|\bordered\s+(?:pair|triple|list|tuple)"
    r"|\b(?:in)?(?:increasing|decreasing|ascending|descending)\s+order\b"
    r"|\bfrom\s+(?:the\s+)?(?:least|smallest|lowest|shortest|largest|greatest|biggest|highest|longest)\s+to\b",
    re.IGNORECASE,
)
_ASKED = 400  # characters at the end of a prompt that ask; the story before may say "respectively" of something else
_LEAST = 4  # words of a closing question that stands in the prompt; "5?" may be an answer


Prompt: TypeAlias = str | Sequence[Message]


def wants_order(prompt: Prompt) -> bool:
    """Whether the end of a prompt asks for several values in an order ("respectively", "from least to greatest")."""
    return bool(_ORDER.search(question(prompt)[-_ASKED:]))


def only_asks(text: str, prompt: Prompt) -> bool:
    """Whether a text is the prompt and nothing else, once or several times, or ends with a question out of it."""
    said, asked = " ".join(text.split()), " ".join(question(prompt).split())
    if not asked:
        return False
    if not said.replace(asked, "").strip():
        return True
    last = _END.split(said)[-1] if said.endswith("?") else ""
    return len(last.split()) >= _LEAST and last in asked


def question(prompt: Prompt) -> str:
    """Return what a prompt says: the text, or what its user's turns say."""
    return "\n".join(turn_texts(prompt, "user"))


HEDGE = re.compile(r"\b(?:or|and|not|maybe|either|if|but)\b|(?<![A-Za-z\\])[A-J]\s*[).:]|\([A-J]\)", re.IGNORECASE)
_WEAK = ("whole", "formula", "number")
_TURNS = r".*\b(?:yes|no|true|false|wait|but|however|actually|although|unless|or)\b"
_YES_OR_NO = re.compile(
    rf"\W*(?:(?P<yes>yes|true)[*_]*[,.:;](?!{_TURNS}|.*(?:\bnot\b|n['’]t\b))|(?P<no>no|false)[*_]*[,.:;](?!{_TURNS}))"
    r"[^\n?]{1,200}",
    re.IGNORECASE,
)
_RATE = re.compile(r"(.*\\text\{ [a-z ]+) per [a-z]+\}")
_PERCENT_SIGN = re.compile(r"\s*(?:\\?%|\\text\{\s*percent\s*\}|percent)\s*\Z")
SHOWN = 200  # characters of an answer kept as evidence
_UNCERTAIN = re.compile(r"(\\boxed\{[^{}]*\})\s*(?:\\pm(?![a-z])|±)[^{}]*\Z")
LOOSE = 2  # digits that a value shows where it is stated again: `\\sqrt{12}`, or 3.5


@dataclass(frozen=True, kw_only=True)
class MathVerifier(ReferenceVerifier[tuple[Reading, ...], tuple[Extraction, Prompt]]):
    r"""Compare the final answer of a response with a gold answer, by mathematics.

    Reference: the gold answer as text (`"\\frac{1}{2}"`, `"x=3"`, `"$[0,1)$"`), a number, or a list of accepted ones.

    Attributes:
        undecided: what happens to an answer that was understood but neither shown equal nor refuted: "zero" (a
            scored 0) or "failed" (no number, for labelling and audits).
        reasoning: "strip" grades only what follows the end-of-thinking tag; "keep" grades all of it.
        unfinished: an answer that stands only inside unfinished reasoning is worth 0 ("reject") or is graded
            ("accept").
        truncated: a response with `finish_reason="length"` is worth 0 ("zero") or is graded ("grade").
        boxed: of several boxed answers in different places the last counts ("last"), or all must agree ("same").
        precision: significant digits a decimal must show to stand for the value that rounds to it:
            0.333333 for 1/3, but not 0.333.
        rel_tol: further relative tolerance on numbers and on quantities in units, against the gold; 0 for none.
        abs_tol: further absolute tolerance on numbers; 0 for none.
        units: "optional" compares units where both sides have them; "required" wants the gold's unit; "ignore"
            drops them.
        percent: "strict" takes 10% as 0.1; "lenient" also accepts 10 for 10%.
        ordered: whether the order of a bare list such as `1, 2` matters.
    """

    name: ClassVar[str] = "math"
    version: ClassVar[str] = "14"
    limits: ClassVar[Limits] = Limits(seconds=5.0, memory_mb=1024)

    undecided: Literal["zero", "failed"] = "zero"
    reasoning: Reasoning = "strip"
    unfinished: Literal["reject", "accept"] = "reject"
    truncated: Literal["zero", "grade"] = "zero"
    boxed: Literal["last", "same"] = "last"
    precision: Annotated[int, Range(ge=1, le=50)] = 6
    rel_tol: Annotated[float, Range(ge=0, lt=1e6)] = 0.0
    abs_tol: Annotated[float, Range(ge=0, lt=1e6)] = 0.0
    units: Literal["optional", "required", "ignore"] = "optional"
    percent: Literal["strict", "lenient"] = "strict"
    ordered: bool = False

    def warm_up(self) -> None:
        """Load what the last tier needs, before workers are forked and outside any sample's time."""
        load()

    def check_reference(self, sample: Sample) -> None:
        """Look whether a sample's reference is an answer text, a number, or a list of these."""
        gold_texts(sample.reference)

    def read_reference(self, reference: Any) -> tuple[Reading, ...]:
        """Return the accepted answers, read."""
        try:
            return readings(reference)
        except ValueError as error:
            raise BadReferenceError(str(error)) from error

    def find(self, sample: Sample, golds: tuple[Reading, ...]) -> tuple[Extraction, Prompt] | Score:
        """Return the answer that the response commits to, and the prompt; or the zero that it earns without one."""
        extraction = self.answer(sample)
        text = response_text(sample).strip()
        graded = split_reasoning(text)[1].strip() if self.reasoning == "strip" else text
        plain = extraction.reason == "no_answer" if isinstance(extraction, Score) else extraction.marker in _WEAK
        first = _YES_OR_NO.fullmatch(graded) if plain else None
        word = first[first.lastgroup or 0] if first else ""
        if word and any(gold.literal.casefold() == word.casefold() for gold in golds):
            return Extraction(word, "whole"), sample.prompt  # "No, 91 is not prime."
        if not isinstance(extraction, Score):
            return in_gold_words(in_gold_letters(extraction, golds, graded), golds, graded), sample.prompt
        if extraction.reason == "no_answer" and any(text == gold.text for gold in golds):
            return Extraction(text, "whole"), sample.prompt  # the very reference, in signs that are not looked for
        if all(gold.tree is None for gold in golds):
            return Score.failed("gold_unparsable", error=golds[0].problem, gold=golds[0].text[:SHOWN])
        return extraction

    def judge(self, answered: tuple[Extraction, Prompt], golds: tuple[Reading, ...]) -> Score:
        """Return 1 when the answer equals one of the golds, 0 when not; see the module for the rest."""
        extraction, prompt = answered
        if extraction.text.endswith(" !"):  # behind a plain sentence, not in a formula
            calm = self.judge((extraction._replace(text=extraction.text[:-2]), prompt), golds)
            if calm.value == 1.0:
                return calm
        answer = read_answer(extraction.text)
        shown = [reading.text.rstrip(" }.").endswith(("%", "percent")) for reading in (answer, golds[0])]
        if any(shown) and not all(shown) and ASKS_PERCENTAGE.search(question(prompt)):
            golds = tuple(map(_percent, golds)) if shown[0] else (*golds, *map(_share, golds))
        golds += tuple(meant for gold in golds if (meant := in_units(gold, question(prompt))))
        golds += tuple(meant for gold in golds if (meant := left_out(gold, answer, question(prompt))))
        score = self.beside(golds[0], answer, extraction, prompt)
        for gold in golds[1:]:
            if score.value == 1.0:
                break
            other = self.beside(gold, answer, extraction, prompt)
            if other.value == 1.0 or _rank(other) > _rank(score):
                score = other
        if score.value != 1.0:
            return score
        if (score.evidence.get("tier") != "literal" or answer.about) and not any(
            says(gold, answer, question(prompt), extraction.marker) for gold in golds
        ):
            return Score(value=0.0, reason="wrong", evidence=score.evidence)
        if extraction.later:
            loose = replace(self, precision=min(self.precision, LOOSE))
            closing = extraction.closing
            worked = closing and any(loose.restates(closing, gold, extraction) for gold in golds)
            for stated in extraction.later:
                if (worked and not stated.firm) or any(
                    loose.restates(text, gold, extraction) for text in stated.readings for gold in golds
                ):
                    continue
                answers = [extraction.text[:SHOWN], (stated.readings[0] or closing)[:SHOWN]]
                return Score.scored(0.0, "several_answers", answers=answers)
        return score

    def restates(self, text: str, gold: Reading, extraction: Extraction) -> bool:
        """Whether what is stated behind the answer is the gold as well, or the very answer."""
        stated = read_answer(text)
        if stated.literal == read_answer(extraction.text).literal:
            return True
        return stated.tree is not None and gold.tree is not None and self.compare(gold, stated, extraction).value == 1.0

    def beside(self, gold: Reading, answer: Reading, extraction: Extraction, prompt: Prompt) -> Score:
        """Compare one gold with what was found; boxes that each hold the gold are one answer, as `-2, -2` may be."""
        score = self.compare(gold, answer, extraction, prompt)
        if score.value != 1.0 and extraction.marker != "boxed" and (rate := _RATE.fullmatch(extraction.text)):
            # "18 dollars a day" for `$18`: the sentence repeats the question
            score = self.compare(gold, read_answer(f"{rate[1]}}}"), extraction, prompt)
        if score.value == 1.0 or not extraction.parts:
            return score
        scores = [self.compare(gold, read_answer(part), extraction, prompt) for part in extraction.parts]
        if all(one.value == 1.0 for one in scores):
            return scores[0]
        return self.compare(gold, read_answer(", ".join(extraction.parts)), extraction, prompt)

    def answer(self, sample: Sample) -> Extraction | Score:
        """Return the answer that the response commits to, or the zero that it earns without one."""
        text = response_text(sample)
        if self.reasoning == "strip":
            reasoning, rest, open_end = split_reasoning(text)
            if open_end:
                if self.unfinished == "reject":
                    return Score.scored(0.0, "unfinished_reasoning")
                rest = reasoning
            text = rest
        if sample.finish_reason == "length" and self.truncated == "zero":
            return Score.scored(0.0, "truncated")
        extraction = extract(visible_answer(text), boxes=self.boxed, question=question(sample.prompt))
        if extraction is None or (extraction.marker in ("number", "formula") and only_asks(text, sample.prompt)):
            return Score.scored(0.0, "no_answer")
        if extraction.others and any(
            Reading(other).literal != Reading(extraction.text).literal for other in extraction.others
        ):
            return Score.scored(
                0.0, "several_answers", answers=[other[:SHOWN] for other in (*extraction.others, extraction.text)]
            )
        return extraction

    def compare(self, gold: Reading, answer: Reading, extraction: Extraction, prompt: Prompt = "") -> Score:
        """Compare one gold with the answer, tier by tier; the prompt may say that the order of a list matters."""
        evidence: dict[str, Any] = {
            "answer": answer.text[:SHOWN],
            "gold": gold.text[:SHOWN],
            "marker": extraction.marker,
        }
        if gold.text == answer.text:
            evidence["tier"] = "literal"
            return Score(value=1.0, evidence=evidence)
        number = gold.number
        if number is not None:
            if answer.number is not None:
                evidence["tier"] = "rational"
                if numbers_equal(number, answer.number, self.rules):
                    return Score(value=1.0, evidence=evidence)
                return Score(value=0.0, reason="wrong", evidence=evidence)
            bare = answer.bare
            if bare is not None and self.units != "required" and numbers_equal(number, bare, self.rules):
                evidence["tier"] = "rational"
                return Score(value=1.0, evidence=evidence)
        if (
            (answer.number is None or "," in answer.text)
            and answer.literal in (gold.literal, gold.whole)
            and answer.literal
        ):
            evidence["tier"] = "literal"
            return Score(value=1.0, evidence=evidence)
        if not answer.text:
            return Score(value=0.0, reason="no_answer", evidence=evidence)
        if gold.reasoned and (words(gold.text) or gold.literal) != (words(answer.text) or answer.literal):
            return Score(value=0.0, reason="wrong", evidence=evidence | {"tier": "words"})
        verdict = self.trees(gold, answer)
        if verdict.equal and gold.is_list and wants_order(prompt):
            verdict = self.trees(gold, answer, in_order=True)
        if not verdict.equal and (chosen := self.options(gold, answer)) is not None:
            verdict = chosen
        evidence["tier"] = verdict.tier
        if verdict.equal is True:
            return Score(value=1.0, evidence=evidence)
        if verdict.equal is False:
            return Score(value=0.0, reason="wrong", evidence=evidence)
        return self.doubtful(gold, answer, evidence)

    @cached_property
    def rules(self) -> Rules:
        """The options that bear on equality."""
        return Rules(
            precision=self.precision,
            rel_tol=self.rel_tol,
            abs_tol=self.abs_tol,
            units=self.units,
            percent=self.percent,
            ordered=self.ordered,
        )

    def trees(self, gold: Reading, answer: Reading, *, in_order: bool = False) -> Verdict:
        """Compare by our own parser, then by the symbolic tier; `in_order` makes the order of a bare list matter."""
        left, right = gold.tree, answer.tree
        if left is not None and right is not None:
            rules = replace(self.rules, ordered=True) if in_order else self.rules
            equality, letters = Equality(rules, f"{gold.text}\0{answer.text}"), (gold.parameter, answer.parameter)
            if answer.parameter and not gold.parameter and isinstance(right, Relation) and right.operators[0] != "=":
                return Verdict(False, "structure")  # only the integers of an interval
            letters = letters if any(letters) else implied(left, right)
            verdict = family_verdict(left, right, letters, equality) if any(letters) else equality.verdict(left, right)
            if not verdict.equal and isinstance(right, Collection) and right.brackets == "or":
                choices = Equality(rules, gold.text)
                if all(choices.equal(left, item) for item in right.items):
                    return Verdict(True, verdict.tier)  # alternatives that are one value
            if verdict.equal is False and (comma := self.comma(gold, answer)) is not None:
                return comma
            return verdict
        prose = "\\" not in gold.text and re.search(r"[A-Za-z]{3}", gold.text)
        if left is None and right is None and prose and gold.literal.casefold() == answer.literal.casefold():
            return Verdict(True, "literal")
        if gold.misleading or answer.misleading:
            return Verdict(None, "none")
        return symbolic_verdict(gold.text, answer.text, self.limits)

    def options(self, gold: Reading, answer: Reading) -> Verdict | None:
        r"""Compare where a side is an option with its letter and its text: `\textbf{(B)}\ 12` for B, or for 12."""
        ours, theirs = gold.option, answer.option
        if ours and theirs:
            if ours[0] != theirs[0] or HEDGE.search(theirs[1]):
                return Verdict(False, "words")
            texts = Reading(ours[1]), Reading(theirs[1])
            alone = not all(text.text for text in texts) or texts[0].literal == texts[1].literal
            return Verdict(True, "words") if alone else self.trees(*texts)
        if theirs and theirs[1] and not HEDGE.search(theirs[1]):
            return self.trees(gold, Reading(theirs[1]))
        return self.trees(Reading(ours[1]), answer) if ours and ours[1] else None

    @staticmethod
    def comma(gold: Reading, answer: Reading) -> Verdict | None:
        """Compare with a comma on one side that is not a separator, as it is read otherwise: `2,74`, `108,135,189`."""
        for one, other in ((gold, answer), (answer, gold)):
            number = decimal_comma(one.text) or (grouped_number(one.text) if one is answer else None)
            if number is not None and other.number is not None and number.value == other.number.value:
                return Verdict(True, "rational")
        return None

    def doubtful(self, gold: Reading, answer: Reading, evidence: dict[str, Any]) -> Score:
        """Return the score of a pair that no tier decided, by whose text was the trouble."""
        if gold.tree is None:
            return Score.failed("gold_unparsable", error=gold.problem, **evidence)
        if answer.tree is None:
            return Score(value=0.0, reason="unparsable_answer", evidence=evidence | {"error": answer.problem})
        if self.undecided == "failed":
            return Score.failed("undecided", **evidence)
        return Score(value=0.0, reason="undecided", evidence=evidence)

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return what a pair is worth whose symbolic tier exceeded its limits: undecided, like any other doubt."""
        if self.undecided == "failed":
            return Score.failed("undecided", error=reason)
        return Score.scored(0.0, reason)


def in_gold_words(extraction: Extraction, golds: Sequence[Reading], text: str) -> Extraction:
    """Return what was found as the gold where all that was read, or the sentence behind a marker, is its very text."""
    line = extraction.line.strip()
    if not line or len(line) > MAX_SENTENCE or any(gold.text == extraction.text for gold in golds):
        return extraction
    for end in (len(line), *([sentence_end(line)] if extraction.marker in ("answer", "final answer") else [])):
        said = Reading(clean(line[:end]))
        for gold in golds:
            if (gold.literal, gold.about) == (said.literal, said.about):
                later = () if text.endswith(line) and end == len(line) else extraction.later
                return extraction._replace(text=gold.text, later=later)
    return extraction


def readings(reference: Any) -> tuple[Reading, ...]:
    """Return the readings of the accepted answers.

    Raises:
        BadReferenceError: the reference is not an answer, or an empty one.
    """
    texts = [*gold_texts(reference)]
    texts += [exact[1] for exact in map(_UNCERTAIN.search, texts) if exact]
    golds = tuple(map(read_gold, texts))
    for gold in golds:
        if not gold.text:
            raise BadReferenceError(f"the gold answer {reference!r:.80} is empty")
    return golds


def gold_texts(reference: Any) -> list[str]:
    """Return the accepted answers as texts.

    Raises:
        BadReferenceError: the reference is something else.
    """
    if isinstance(reference, str):
        return accepted_texts(reference)
    if isinstance(reference, int) and not isinstance(reference, bool) and abs(reference) < 10**MAX_DIGITS:
        return [str(reference)]
    if isinstance(reference, float) and math.isfinite(reference):
        # 27.0 in a data set means 27, and repr() of a float is the shortest text that reads back as it
        # (0.1 + 0.2 reads back from 0.30000000000000004, and people mean the 15 digits that every float keeps)
        if float(reference).is_integer():
            return [str(int(reference))]
        return list(dict.fromkeys([repr(float(reference)), f"{reference:.15g}"]))
    if isinstance(reference, Sequence) and not isinstance(reference, bytes) and reference:
        return [text for item in reference for text in ([item] if isinstance(item, str) else gold_texts(item))]
    if isinstance(reference, Mapping) and reference.keys() == {"answer"}:
        return gold_texts(reference["answer"])
    raise BadReferenceError(
        f"the math reference is {reference!r:.80}; give the gold answer as text, a number, or a non-empty list of "
        "these",
        mistake=True,
    )


def _percent(gold: Reading) -> Reading:
    """Return the gold of a question for a percentage with the sign that the answer has."""
    value = gold.number
    return read_gold(f"{gold.text}\\%") if value is not None and value.value > 1 else gold


def _share(gold: Reading) -> Reading:
    """Return the gold of a question for a percentage without its sign, as an answer in percent may be given."""
    return read_gold(_PERCENT_SIGN.sub("", gold.text))


def _rank(score: Score) -> int:
    """Order the verdicts on several golds: doubt about one outweighs a clear no from another."""
    return {"wrong": 0, "unparsable_answer": 1, "undecided": 2, "gold_unparsable": 3}.get(score.reason, 0)
