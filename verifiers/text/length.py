r"""Reward or punish the length of a response.

Three schedules, with L the length and M `max_length`:

- "overlong": the soft overlong punishment of DAPO (Yu et al., 2025, arXiv 2503.14476, equation 13), with B `buffer`:

      0                 if L <= M - B
      ((M - B) - L) / B if M - B < L <= M
      -1                if L > M

- "cosine": the cosine reward of Yeo et al. (2025, arXiv 2502.03373, "Demystifying Long Chain-of-Thought"):

      at_max + (at_zero - at_max) * (1 + cos(pi * L / M)) / 2    if L < M
      outside                                                     if L >= M

  The paper takes one pair of ends for right answers and another for wrong ones; `correct_key` names the extra column
  that says which.  Its released code treats L + 16 >= M as too long already; set `max_length` accordingly.

- "linear": at_max + (at_zero - at_max) * (1 - L / M) if L <= M, else outside.

Not covered: lengths beside those of the other responses of a group (`group_length`), and counting tokens, which needs
the tokenizer that made the response: the count is read from the sample.
"""

from __future__ import annotations

import math
from collections.abc import Sized
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from adjudge.options import Count, Range, check_options
from adjudge.protocol import Sample, Score, Verifier
from adjudge.scoring.verifier_base import graded_text

Unit: TypeAlias = Literal["tokens", "words", "characters"]


@dataclass(frozen=True, kw_only=True)
class LengthPenalty(Verifier):
    """A value that depends on the length of the response alone.

    Attributes:
        kind: "overlong" (-1 to 0), "cosine" or "linear"; formulas in the module's description.
        max_length: M, in units; the defaults of M and B are those of DAPO.
        buffer: B, in units, 0 <= B <= M; only "overlong" uses it, and 0 makes the punishment a step.
        unit: "tokens" reads the count from `Sample.extra[count_key]`; "words" counts what stands between whitespace,
            "characters" counts code points.
        count_key: the extra column with the number of completion tokens, or with the list of their ids.
        reasoning: "keep" measures the whole response; "strip" only what follows the last end-of-thinking tag, and an
            unfinished reasoning then gets `outside`.  A token count is always that of the whole response.
        min_length: shorter responses get `outside`.
        at_zero, at_max: values at the lengths 0 and M ("cosine" and "linear"); of right answers with `correct_key`.
        wrong_at_zero, wrong_at_max: the same of wrong answers.
        outside: value beyond M and below `min_length`; no larger than any value inside.
        correct_key: the extra column that says whether the answer is right (true, false, 1 or 0); "" for none.
    """

    name: ClassVar[str] = "length"
    version: ClassVar[str] = "2"
    needs_reference: ClassVar[bool] = False

    kind: Literal["overlong", "cosine", "linear"] = "overlong"
    max_length: Count = 20_480
    buffer: int = 4_096
    unit: Unit = "tokens"
    count_key: str = "completion_tokens"
    reasoning: Literal["keep", "strip"] = "keep"
    min_length: Annotated[int, Range(ge=0)] = 0
    at_zero: float = 1.0
    at_max: float = 0.5
    wrong_at_zero: float = -1.0
    wrong_at_max: float = -0.5
    outside: float = -1.0
    correct_key: str = ""

    def __post_init__(self) -> None:
        check_options(self, "length option")
        if self.min_length > self.max_length:
            raise ValueError(f"length option min_length={self.min_length}, above max_length {self.max_length}")
        if self.kind == "overlong" and not 0 <= self.buffer <= self.max_length:
            raise ValueError(f"length option buffer={self.buffer}; it must be from 0 to max_length {self.max_length}")
        if self.kind == "overlong" and self.correct_key:
            raise ValueError("length: the overlong punishment does not look at the answer; remove correct_key")
        if self.unit == "tokens" and self.reasoning == "strip":
            raise ValueError("length: a token count is that of the whole response; use reasoning='keep' or words")
        wrong = (self.wrong_at_zero, self.wrong_at_max) if self.correct_key else ()
        least = -1.0 if self.kind == "overlong" else min(self.at_zero, self.at_max, *wrong)
        if self.outside > least:
            raise ValueError(
                f"length option outside={self.outside}; it must be at most {least}, the least value inside the "
                "limits, or breaking them would pay"
            )

    def verify(self, sample: Sample) -> Score:
        """Return the value of the schedule; the evidence holds the length."""
        try:
            correct = self._correct(sample)
            length, fault = self._length(sample)
        except ValueError as error:
            return Score.failed("bad_sample", error=str(error))
        if fault:
            return Score.scored(self.outside, fault)
        evidence: dict[str, Any] = {"length": length, "unit": self.unit}
        if length < self.min_length:
            return Score.scored(self.outside, "too_short", **evidence)
        if length > self.max_length or (self.kind == "cosine" and length == self.max_length):
            return Score.scored(self.outside, "too_long", **evidence)
        if self.kind == "overlong":
            value = soft_overlong(length, self.max_length, self.buffer)
            return Score.scored(value, "too_long" if value < 0 else "", **evidence)
        ends = (self.at_zero, self.at_max) if correct else (self.wrong_at_zero, self.wrong_at_max)
        schedule = cosine_schedule if self.kind == "cosine" else linear_schedule
        return Score.scored(schedule(length, self.max_length, *ends), **evidence)

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the sample lacks the columns this schedule reads."""
        self._correct(sample)
        self._length(sample)

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return `outside`: a response that cannot be measured must not do better than one that can."""
        return Score.scored(self.outside, reason)

    def _correct(self, sample: Sample) -> bool:
        if not self.correct_key:
            return True
        value = sample.extra.get(self.correct_key)
        if value not in (0, 1):
            raise ValueError(
                f"length: the extra column {self.correct_key!r} is {value!r}; it must be true, false, 1 or 0"
            )
        return bool(value)

    def _length(self, sample: Sample) -> tuple[int, str]:
        return length_of(sample, self.unit, self.count_key, self.reasoning)


def soft_overlong(length: int, max_length: int, buffer: int) -> float:
    """Return the soft overlong punishment of DAPO, between -1 and 0."""
    if length <= max_length - buffer:
        return 0.0
    if length <= max_length:
        return ((max_length - buffer) - length) / buffer
    return -1.0


def cosine_schedule(length: int, max_length: int, at_zero: float, at_max: float) -> float:
    """Return the value at `length` on half a cosine from `at_zero` at 0 to `at_max` at `max_length`."""
    return at_max + (at_zero - at_max) * (1 + math.cos(math.pi * length / max_length)) / 2


def linear_schedule(length: int, max_length: int, at_zero: float, at_max: float) -> float:
    """Return the value at `length` on the line from `at_zero` at 0 to `at_max` at `max_length`."""
    return at_max + (at_zero - at_max) * (1 - length / max_length)


def length_of(sample: Sample, unit: Unit, count_key: str, reasoning: str = "keep") -> tuple[int, str]:
    """Return the length of a response, and why there is nothing to measure, "" if there is.

    Raises:
        ValueError: tokens are wanted, and `Sample.extra[count_key]` has no count of them.
    """
    if unit == "tokens":
        return _count(sample.extra.get(count_key), count_key), ""
    text, fault = graded_text(sample, reasoning)
    return (len(text) if unit == "characters" else len(text.split())), fault


def _count(value: Any, key: str) -> int:
    if isinstance(value, Sized) and not isinstance(value, str | bytes):
        return len(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(
            f"length: the extra column {key!r} is {value!r}; give the number of completion tokens there, "
            "or choose unit='words' or 'characters'"
        )
    return value
