"""General-Reasoner's verifier (arXiv 2505.14652): an extracted answer, a yes or no, and a reward shaped by length.

The answer is the last box of the last 1024 tokens, else what follows the last "answer is" or "answer:" on its line.
Tokens are counted as words and signs, where the released code counts the policy's own tokens, and the decision is the
last line of the agreed form, where the released code looks for "Yes" anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from adjudge.judges.language_judge import Opinion
from adjudge.judges.pointwise import AnswerJudge, accepted_answers
from adjudge.prompts.scorer import Case
from adjudge.protocol import Sample, Score

_TAIL = 1024  # tokens from the end of the response that are searched
_TOKEN = re.compile(r"[^\W_]+|[^\w\s]|_")
_BOX = re.compile(r"\\boxed\s{0,3}\{")
_MARKER = re.compile(r"\banswer(?:\s{1,3}is\b[ \t]{0,3}[:：]?|[ \t]{0,3}[:：])[ \t]{0,10}([^\n]{1,500})", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class GeneralReasonerJudge(AnswerJudge):
    """1 - 0.05 * min(10, |difference in tokens|) for an equivalent answer, 0 for another, -0.5 for none.

    The reference is the accepted answer as a text or a number, or a list of accepted ones, of which
    the nearest in length counts.  The prompt is in our words; give the released verifier its own as `template`
    (docs/judges.md).
    """

    name: ClassVar[str] = "general_reasoner"
    text_template: ClassVar[str] = "judges/general_reasoner"
    direct_template: ClassVar[str] = ""

    max_characters: int = 2_000_000
    labels: Mapping[str, float] | None = field(default_factory=lambda: {"Yes": 1.0, "No": 0.0})
    output: Literal["unit", "scale"] = "unit"
    reasons: Mapping[str, str] = field(default_factory=lambda: {"No": "wrong"})

    def case(self, sample: Sample) -> Case | Score:
        """Return the extracted answer as what is judged, or -0.5 where there is none."""
        ready = super().case(sample)
        if isinstance(ready, Score):
            return replace(ready, value=-0.5) if ready.status == "scored" else ready
        answer = extracted_answer(ready.response)
        if answer is None or not any(char.isalnum() for char in answer):
            return Score.scored(-0.5, "no_answer")
        return replace(ready, response=answer)

    def scored(self, case: Case, opinion: Opinion) -> Score:
        """Return the reward of a decision."""
        score = super().scored(case, opinion)
        tokens = count_tokens(case.response)
        gold = min(
            (count_tokens(answer) for answer in accepted_answers(case.sample.reference)), key=lambda n: abs(n - tokens)
        )
        same = score.value is not None and score.value > 0.5
        evidence = {**score.evidence, "answer": case.response, "tokens": tokens, "gold_tokens": gold}
        return replace(score, value=general_reasoner_reward(same, tokens, gold), evidence=evidence, uncertainty=None)


def general_reasoner_reward(same: bool, tokens: int, gold_tokens: int, *, extracted: bool = True) -> float:
    """Return General-Reasoner's reward (arXiv 2505.14652): 1 - 0.05 * min(10, |tokens - gold_tokens|), 0 or -0.5.

    Args:
        same: whether the verifier finds the answers equivalent.
        tokens: length of the answer.
        gold_tokens: length of the accepted answer.
        extracted: whether an answer was found at all; without one the reward is -0.5.
    """
    if not extracted:
        return -0.5
    return 1.0 - 0.05 * min(10, abs(tokens - gold_tokens)) if same else 0.0


def extracted_answer(response: str) -> str | None:
    """Return the answer a response offers in its last 1024 tokens, or None."""
    tail = last_tokens(response, _TAIL)
    boxes = list(_BOX.finditer(tail))
    if boxes and (inside := _balanced(tail, boxes[-1].end())) is not None:
        return inside.strip()
    marked = _MARKER.findall(tail)
    return marked[-1].strip().rstrip(".") if marked else None


def count_tokens(text: str) -> int:
    """Return how many words and signs a text has."""
    return sum(1 for _ in _TOKEN.finditer(text))


def last_tokens(text: str, count: int) -> str:
    """Return the end of a text, from its `count`-th last word or sign."""
    starts = [token.start() for token in _TOKEN.finditer(text)]
    return text[starts[-count] :] if len(starts) > count else text


def _balanced(text: str, start: int) -> str | None:
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at]
    return None
