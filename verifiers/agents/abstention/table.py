"""SALU's reward: by what an answer does to a question that has or has not an answer, and by how sure the model was.

| | the question has an answer | it has none |
|---|---|---|
| the right answer | `right` | |
| another answer | `wrong` * confidence | `hallucinated` + `surely` * confidence |
| an abstention | `needless` | `abstained` |

SALU publishes that the penalty grows with the confidence and that answers to unanswerable questions are punished
strongly, and no numbers.  The numbers here are ours.

With these, a wrong answer of confidence below 0.5 costs less than a needless abstention: a guess is cheap only for a
model that knows it is guessing.

Not covered: calibrating the confidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

Case: TypeAlias = Literal["right", "wrong", "abstained", "needless", "hallucinated"]
CASES: tuple[Case, ...] = get_args(Case)


@dataclass(frozen=True, kw_only=True)
class SaluTable:
    """The numbers of SALU's reward; all defaults are ours.

    Attributes:
        right: for the right answer.
        wrong: for another answer, times the confidence.
        abstained: for an abstention where there is no answer.
        needless: for an abstention where there is one.
        hallucinated: for an answer where there is none, whatever the confidence.
        surely: for the same, times the confidence, on top.
    """

    right: float = 1.0
    wrong: float = -1.0
    abstained: float = 1.0
    needless: float = -0.5
    hallucinated: float = -1.0
    surely: float = -1.0

    def __post_init__(self) -> None:
        """Reject what is no number."""
        for item in fields(self):
            value: Any = getattr(self, item.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"abstention: {item.name} is {value!r}; it must be a finite number")

    def reward(self, case: Case, confidence: float = 1.0) -> float:
        """Return what an answer is worth.

        Args:
            case: what it does.
            confidence: how sure the model was, in [0, 1]: the mean probability of the answer's tokens.

        Raises:
            ValueError: the case is none, or the confidence is out of range.
        """
        if not 0 <= confidence <= 1:
            raise ValueError(f"the confidence is {confidence!r}; it must be in [0, 1]")
        match case:
            case "right":
                return self.right
            case "wrong":
                return self.wrong * confidence
            case "abstained":
                return self.abstained
            case "needless":
                return self.needless
            case "hallucinated":
                return self.hallucinated + self.surely * confidence
        raise ValueError(f"{case!r} is none of {', '.join(CASES)}")


def mean_probability(logprobs: Sequence[float]) -> float:
    """Return the mean probability of tokens, which SALU takes for the model's confidence, in [0, 1].

    Args:
        logprobs: natural logarithms of the probabilities of the answer's tokens, at least one.

    Raises:
        ValueError: there is none, or one of them is no logarithm of a probability.
    """
    if not logprobs:
        raise ValueError("there are no log-probabilities; the confidence needs those of the answer's tokens")
    for value in logprobs:
        if not value <= 1e-6:  # engines round 0 to a little more
            raise ValueError(f"a log-probability is {value!r}; it must be at most 0")
    return min(1.0, math.fsum(math.exp(value) for value in logprobs) / len(logprobs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """How well abstentions go with unanswerable questions, each in [0, 1]; 0 where there is nothing to divide by.

    Attributes:
        precision: share of the abstentions that were right.
        recall: share of the unanswerable questions that were met by an abstention.
        f1: their harmonic mean.
    """

    precision: float
    recall: float
    f1: float


def detection(cases: Sequence[Case], *, unknown: int = 0) -> Detection:
    """Return precision, recall and F1 of abstaining.

    Args:
        cases: what each judged answer did.
        unknown: unanswerable questions whose answer could not be judged; none of them counts as met.
    """
    hits, missed, needless = (cases.count(case) for case in ("abstained", "hallucinated", "needless"))
    missed += unknown
    precision = hits / (hits + needless) if hits + needless else 0.0
    recall = hits / (hits + missed) if hits + missed else 0.0
    f1 = 2 * hits / (2 * hits + missed + needless) if hits else 0.0
    return Detection(precision=precision, recall=recall, f1=f1)
