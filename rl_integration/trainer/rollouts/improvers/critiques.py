"""What is said about a wrong answer before it is written again.

| kind | says | source |
|---|---|---|
| `verdict` | that it is wrong | Critique-GRPO |
| `gold` | that it is wrong, and the right answer | Critique-GRPO's `simple_gt`, the default of its code |
| `evidence` | a judge's rationale, or what else the scorer's evidence says | Critique-GRPO's full text |

Not covered: who scores (`refinements`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.rollouts.improvers.improver import gold_text

Critique: TypeAlias = Literal["verdict", "gold", "evidence"]

_WRONG = "The answer above is wrong."
_SHOWN = 2_000  # characters of a rationale or of the facts; its end, where judges conclude


def critique(kind: Critique, task: Task, score: Score) -> str | None:
    """Return what is said of a wrong answer; None where there is nothing to say beyond what the kind asks for.

    Args:
        kind: see the module.
        task: what was to be answered.
        score: whose evidence is read.
    """
    match kind:
        case "verdict":
            return _WRONG
        case "gold":
            gold = gold_text(task)
            return None if gold is None else f"{_WRONG} The right answer is: {gold}"
        case "evidence":
            if score.status == "failed":  # then the evidence is about the scorer, not about the answer
                return None
            found = _rationale(score.evidence) or _facts(score)
            return f"{_WRONG}\n\n{found}" if found else None


def _rationale(evidence: Mapping[str, Any]) -> str:
    found = evidence.get("rationale")
    return found.strip()[-_SHOWN:] if isinstance(found, str) else ""


def _facts(score: Score) -> str:
    """The reason, and what of the evidence is plain."""
    lines = [score.reason.replace("_", " ")] if score.reason else []
    for name, value in score.evidence.items():
        if isinstance(value, str | int | float) and str(value).strip():
            lines.append(f"{name}: {value}")
    return "\n".join(lines)[-_SHOWN:]
