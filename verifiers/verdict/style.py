r"""How published judges write their verdicts, and what a right and a wrong one are worth in their training.

| style | verdict | labels | right, wrong | source |
|---|---|---|---|---|
| `j1` | `<answer>A</answer>` | A, B | 1, 0 | J1, arXiv 2505.10320 (pairwise verdict) |
| `rm_r1` | `<answer>[[A]]</answer>` | A, B | 1, -1 | RM-R1, arXiv 2505.02387 |
| `scores` | `<score_A>7</score_A>` and `<score_B>4.5</score_B>`, the higher wins | A, B | 1, 0 | J1 (pairwise scores) |
| `critique` | `\conclusion{T}` | T, F | 1, 0 | Critique-Coder (CRL) |
| `principle` | Yes or No, and nothing else behind the thinking | Yes, No | 1, 0 | RLBFF's GenRM, arXiv 2509.21319 |

Where released code and this differ: RM-R1 looks for exactly one of `[[A]]` and `[[B]]` in the last 80 characters, and
Critique-Coder takes a conclusion for true if it contains the letter T ("Tentative" is true).  Here a verdict stands
once, in its whole form, at the end.  J1 and RLBFF released no code; RLBFF's values here are ours.

Not covered: prompts that ask for these forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from adjudge.prompts.reading import WHOLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """One way to write a verdict.

    Attributes:
        forms: forms of the verdict as `adjudge.prompts.reading` takes them, the first whole; whatever looks like one of
            them is a verdict, and there must be no other.
        labels: the verdicts there are.
        scores: whether each label has a number, and the verdict is the label with the highest; then there is a form for
            each label.
        wrong: value of a wrong verdict, and of none.
    """

    forms: tuple[str, ...]
    labels: tuple[str, ...]
    scores: bool = False
    wrong: float = 0.0


STYLES: Final[Mapping[str, Style]] = {
    "j1": Style(forms=("<answer>{answer}</answer>",), labels=("A", "B")),
    "rm_r1": Style(
        forms=("<answer>[[{answer}]]</answer>", "<answer>{answer}</answer>", "[[{answer}]]"),
        labels=("A", "B"),
        wrong=-1.0,
    ),
    "scores": Style(
        forms=("<score_A>{answer}</score_A>", "<score_B>{answer}</score_B>"), labels=("A", "B"), scores=True
    ),
    "critique": Style(forms=("\\conclusion{{answer}}",), labels=("T", "F")),
    "principle": Style(forms=(WHOLE,), labels=("Yes", "No")),
}
