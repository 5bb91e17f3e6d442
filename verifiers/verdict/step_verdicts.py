r"""RL Tango's reward for a verifier that judges a solution step by step, and is paid for its last word alone.

    value = (1 - format_share) * [final verdict is right] + format_share * [each of the K steps has one verdict]

The verifier writes what it wants, and on lines of their own `Verdict 1: 1` or `Verdict 1: -1` for each step in order,
then, at the end, `Final verdict: 1` or `Final verdict: 0`.  Steps have no labels: they get better since they help the
final one, and are what the generator is paid by (`evidence["steps"]`, -1 or 1 each).

Source: RL Tango, arXiv 2505.15034; its repository holds no code.  The wording and `format_share` are ours.

Not covered: whether the steps' verdicts and the final one agree, and how the generator uses them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from adjudge.options import Range
from adjudge.protocol import Sample, Score
from adjudge.scoring.bad_reference import ReferenceFormError
from adjudge.scoring.reference_fields import fields_of, shown
from adjudge.scoring.verifier_base import ReferenceVerifier
from adjudge.verifiers.verdict.verifier import behind_reasoning

_STEP = re.compile(r"^Verdict ([0-9]{1,4}): (-?1)[ \t]*$", re.MULTILINE)
_FINAL = re.compile(r"^Final verdict: ([01])\s*\Z", re.MULTILINE)
_LOOKS_FINAL = re.compile(r"final\s+verdict", re.IGNORECASE)
_MAX_STEPS = 1_000


@dataclass(frozen=True, kw_only=True)
class StepVerdictsVerifier(ReferenceVerifier[tuple[bool, int], str]):
    """How right a step-by-step verifier is about a whole solution, in [0, 1] (RL Tango).

    The reference is `{"verdict": true, "steps": 4}`: whether the solution is right, and how many steps it has.

    Attributes:
        format_share: what verdicts on all steps are worth, in [0, 1).
    """

    name: ClassVar[str] = "verdict_steps"

    format_share: Annotated[float, Range(ge=0, lt=1)] = 0.1

    def read_reference(self, reference: Any) -> tuple[bool, int]:
        """Return whether the solution is right, and how many steps it has."""
        reference = fields_of(reference, ("verdict", "steps"), give='{"verdict": true or false, "steps": COUNT}')
        right, count = reference["verdict"], reference["steps"]
        if not isinstance(right, bool) or type(count) is not int or not 1 <= count <= _MAX_STEPS:
            raise ReferenceFormError(
                f"the reference is {shown(reference)}; the verdict must be true or false, and the steps a "
                f"whole number from 1 to {_MAX_STEPS}"
            )
        return right, count

    def find(self, sample: Sample, gold: tuple[bool, int]) -> str | Score:
        """Return what is said behind the reasoning."""
        answer, _, fault = behind_reasoning(sample)
        return Score.scored(0.0, fault) if fault else answer

    def judge(self, answer: str, gold: tuple[bool, int]) -> Score:
        """Return the reward; the evidence has `final`, and `steps` where there is one verdict for each."""
        right, count = gold
        final = _FINAL.search(answer)
        if final is None or len(_LOOKS_FINAL.findall(answer)) > 1:
            return Score.scored(0.0, "no_answer" if final is None else "several_answers")
        verdicts = _STEP.findall(answer)
        whole = [int(number) for number, _ in verdicts] == list(range(1, count + 1))
        agrees = (final[1] == "1") == right
        value = (1 - self.format_share) * agrees + self.format_share * whole
        reason = "wrong" if not agrees else "" if whole else "bad_format"
        steps = {"steps": [int(verdict) for _, verdict in verdicts]} if whole else {}
        return Score.scored(value, reason, final=int(final[1]), **steps)
