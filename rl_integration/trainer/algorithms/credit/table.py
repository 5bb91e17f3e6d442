"""The published ways to give credit within answers by name; `Credit.but` changes single options.

docs/credit.md has the sources.

Not covered: what an answer as a whole is worth (`objectives.table`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from adjudge.rl_integration.trainer.algorithms.credit.capo import Capo
from adjudge.rl_integration.trainer.algorithms.credit.credit import Credit
from adjudge.rl_integration.trainer.algorithms.credit.gigpo import Gigpo
from adjudge.rl_integration.trainer.algorithms.credit.step_credit import CRITIC_SEARCH, IGPO, IGPO_PAPER, SHAPED, TANGO
from adjudge.rl_integration.trainer.algorithms.credit.step_rewards import Shape
from adjudge.rl_integration.trainer.algorithms.credit.tree_credit import TreeCredit

CREDITS: Mapping[str, Credit] = MappingProxyType(
    {
        # Steps beside the steps of the group.
        "tango": Credit(rule=TANGO),
        "critic_search": Credit(rule=CRITIC_SEARCH),
        "igpo_code": Credit(rule=IGPO),
        "igpo": Credit(rule=IGPO_PAPER),
        "capo": Credit(rule=Capo()),
        "gigpo": Credit(rule=Gigpo()),
        # Rewards of steps: for a critic, or as returns to go.
        "steps": Credit(rule=SHAPED, weight=1.0),
        "clip": Credit(rule=SHAPED, shape=Shape(how="clip"), weight=1.0),
        "delta": Credit(rule=SHAPED, shape=Shape(how="delta"), weight=1.0),
        "clip_delta": Credit(rule=SHAPED, shape=Shape(how="clip_delta"), weight=1.0),
        "pure": Credit(rule=SHAPED, shape=Shape(how="min_form"), weight=1.0),
        "step_search": Credit(rule=SHAPED, weight=1.0),
        # Beginnings that answers share.
        "tempo": Credit(rule=TreeCredit(how="tempo")),
        "tree_gains": Credit(rule=TreeCredit(how="gains", nodes="turns")),
        "tree_grpo": Credit(rule=TreeCredit(how="tree_grpo", eps=1e-6)),
        "tree_rl": Credit(rule=TreeCredit(how="tree_rl")),
        "tree_po": Credit(rule=TreeCredit(how="tree_po", nodes="segments")),
    }
)


def credit(name: str) -> Credit:
    """Return a published way to give credit.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in CREDITS:
        raise ValueError(f"there is no credit {name!r}; there are {', '.join(CREDITS)}")
    return CREDITS[name]
