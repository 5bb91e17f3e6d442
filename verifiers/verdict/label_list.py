"""Search-Gen-V's reward: a verifier of nuggets labels each one as supported, partly supported or not.

    value = 0.35 macro-F1 + 0.35 [all labels right] + 0.2 reasoning + 0.1 notation

The formula, its gates and where the released code differs are in `adjudge.verifiers.verdict.support_labels`; this is
the same as a scorer.  Beyond the paper, a text that was cut off gets 0: its labels are not all there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from adjudge.protocol import Sample, Score, response_text
from adjudge.responses.answer_span import shorten
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.verifier_base import ReferenceVerifier
from adjudge.verifiers.verdict.support_labels import LABELS, NOTATIONS, Label, Notation, label_reward

Labels: TypeAlias = tuple[tuple[Label, ...], Notation | None]


@dataclass(frozen=True, kw_only=True)
class LabelListVerifier(ReferenceVerifier[Labels, str]):
    """How well a list of support labels agrees with the right one, in [0, 1] (Search-Gen-V).

    The reference is the list of right labels, or `{"labels": [..], "notation": "json"}` with the notation that the
    prompt asked for; without one at most 0.9 can be had.
    """

    name: ClassVar[str] = "verdict_labels"

    def read_reference(self, reference: Any) -> Labels:
        """Return the right labels, and their notation."""
        return _right_labels(reference)

    def find(self, sample: Sample, gold: Labels) -> str | Score:
        """Return the response, if it is all there."""
        return Score.scored(0.0, "truncated") if sample.finish_reason == "length" else response_text(sample)

    def judge(self, text: str, gold: Labels) -> Score:
        """Return the reward."""
        value = label_reward(text, *gold)
        return Score.scored(value, "" if value > 0 else "wrong")


def _right_labels(reference: Any) -> Labels:
    given, notation = reference, None
    if isinstance(reference, Mapping):
        given, notation = reference.get("labels"), reference.get("notation")
        if set(reference) - {"labels", "notation"} or notation not in (None, *NOTATIONS):
            raise BadReferenceError(
                f"the reference is {shorten(repr(reference), 80)}; it holds labels, and a notation that is one of "
                f"{', '.join(NOTATIONS)}",
                mistake=True,
            )
    if not isinstance(given, list | tuple) or not given:
        raise BadReferenceError(
            f"the reference is {shorten(repr(reference), 80)}; give the right labels as a list, one for each nugget",
            mistake=True,
        )
    labels: tuple[Label, ...] = tuple(name for label in given for name in LABELS if label == name)
    if len(labels) < len(given):
        raise BadReferenceError(
            f"the labels {shorten(repr(given), 80)} are not all among {', '.join(LABELS)}", mistake=False
        )
    return labels, notation
