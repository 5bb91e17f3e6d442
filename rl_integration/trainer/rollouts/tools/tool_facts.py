"""How often a policy called its tools, and how often that went wrong.

Not covered: whether calling them was worth it.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.rl_integration.trainer.contract.rollout import Rollout


def tool_facts(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Return the numbers of a batch; none for answers of one turn.

    Returns:
        "tool_calls": answered calls of an answer, on average; "tool_errors": the share of them that were answered with
        an error, if there were any; "tool_tokens": tokens of an answer that tools wrote, on average.
    """
    dialogues = [rollout for rollout in rollouts if rollout.turns]
    if not dialogues:
        return {}
    told = [turn for rollout in dialogues for turn in rollout.turns if turn["role"] == "tool"]
    found = {
        "tool_calls": len(told) / len(dialogues),
        "tool_tokens": sum(int((~rollout.own).sum()) for rollout in dialogues) / len(dialogues),
    }
    return found | ({"tool_errors": sum(not turn["ok"] for turn in told) / len(told)} if told else {})
