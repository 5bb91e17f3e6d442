"""What a label says of a response: right, wrong, or no answer at all; and what a scorer's number says.

Not covered: labels with grades; `adjudge.evals.ratings` takes those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge.evals.benchmarks.fields import shown
from adjudge.evals.benchmarks.outcome import Outcome

RIGHT: Final = "right"
WRONG: Final = "wrong"
INVALID: Final = "invalid"

USUAL: Final[Mapping[str, str]] = {
    **dict.fromkeys(("1", "true", "yes", "right", "correct", "pass", "passed"), RIGHT),
    **dict.fromkeys(("0", "false", "no", "wrong", "incorrect", "fail", "failed"), WRONG),
    "invalid": INVALID,
}
"""Words of labels, in lower case; numbers and truth are written as words first."""

NO_ANSWER: Final = frozenset({INVALID, "no_answer", "truncated", "unfinished_reasoning", "repetition", "bad_format"})
"""Reasons by which a scorer says that there is no answer to judge; each comes with a value that is not right."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What the words of a label column mean.

    Attributes:
        right: words for a right response; where any of the three is given, the usual words are not known.
        wrong: words for a wrong one.
        invalid: words for one that is no answer.
        more: further words and what they mean, beside the usual ones.
    """

    right: Sequence[str] = ()
    wrong: Sequence[str] = ()
    invalid: Sequence[str] = ()
    more: Mapping[str, str] = field(default_factory=dict)

    def of(self, label: Any) -> str:
        """Return what a label means.

        Raises:
            ValueError: it is none of the words.
        """
        words = self._words()
        found = words.get(_plain(label))
        if found is None:
            raise ValueError(
                f"the label {shown(label)} is none of {', '.join(words)}; say what labels mean with --right-label, "
                "--wrong-label and --invalid-label"
            )
        return found

    def _words(self) -> dict[str, str]:
        own = ((self.right, RIGHT), (self.wrong, WRONG), (self.invalid, INVALID))
        if any(words for words, _ in own):
            return {_plain(word): meaning for words, meaning in own for word in words}
        return {**USUAL, **self.more}


def called(outcome: Outcome, threshold: float, *, invalid: bool = False, place: int = 0) -> str | None:
    """Return what a scorer calls a response; None where it gave no number.

    Args:
        outcome: of the case.
        threshold: the smallest value that means right.
        invalid: whether a value below it, whose reason is one of `NO_ANSWER`, means that there is no answer.
        place: of the sample.
    """
    value = outcome.values[place]
    if value is None:
        return None
    if value >= threshold:
        return RIGHT
    return INVALID if invalid and outcome.reasons[place] in NO_ANSWER else WRONG


def value_of(said: str | None, threshold: float) -> tuple[float | None, str]:
    """Return a value and a reason that `called` takes for this verdict, whatever the threshold is."""
    if said is None:
        return None, ""
    return (threshold + 1.0, "") if said == RIGHT else (threshold - 1.0, INVALID if said == INVALID else "")


def _plain(label: Any) -> str:
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label).strip().casefold()
