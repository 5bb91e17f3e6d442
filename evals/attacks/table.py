"""The attackers by name; each is "module:Class", imported when it is asked for.

Not covered: `shipped`, which is no search (`shipped`).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from adjudge.evals.attacks.attacker import Attacker, JointAttacker
from adjudge.extras import install_hint

SHIPPED: Final = "shipped"
"""The attack suite of a verifier, on tasks of its own; nothing is searched."""

ATTACKERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "constants": "adjudge.evals.attacks.attackers.constants:Constants",
        "random": "adjudge.evals.attacks.attackers.random_tokens:RandomTokens",
        "greedy": "adjudge.evals.attacks.attackers.random_tokens:GreedyTokens",
        "suffix": "adjudge.evals.attacks.attackers.universal_suffix:UniversalSuffix",
        "genetic": "adjudge.evals.attacks.attackers.evolution:GeneticTemplates",
        "answers": "adjudge.evals.attacks.attackers.evolution:AnswerShapes",
        "rl": "adjudge.rl_integration.trainer.suffix_policy:SuffixPolicy",
    }
)

DEFAULT: Final = ("constants", "random", "greedy", "suffix", "genetic", "answers", SHIPPED)
"""All that need no torch."""


def check_attackers(names: tuple[str, ...]) -> None:
    """Raise `ValueError` unless each is known, or a module:object, and none is there twice."""
    if not names:
        raise ValueError(f"there is no attack; give some of {', '.join([*ATTACKERS, SHIPPED])}")
    for name in names:
        if name not in ATTACKERS and name != SHIPPED and ":" not in name:
            raise ValueError(
                f"attack is {name!r}; it must be one of {', '.join([*ATTACKERS, SHIPPED])}, or module:object for an "
                "attacker of your own"
            )
        if names.count(name) > 1:
            raise ValueError(f"attack names {name!r} twice; name each once")


def make_attacker(name: str) -> Attacker | JointAttacker:
    """Return an attacker by its name or "module:object".

    Raises:
        ValueError: it cannot be imported, or is no attacker.
    """
    module, _, attribute = ATTACKERS.get(name, name).partition(":")
    try:
        made = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        remedy = install_hint("train") if name == "rl" else "is its folder on PYTHONPATH?"
        raise ValueError(f"the attacker {name!r} cannot be imported: {error}; {remedy}") from error
    try:
        attacker = made() if isinstance(made, type) else made
    except TypeError as error:
        raise ValueError(f"the attacker {name!r} cannot be made: {error}; give a class without arguments") from error
    if not isinstance(attacker, Attacker | JointAttacker):
        raise ValueError(f"the attacker {name!r} is a {type(attacker).__name__}; derive it from Attacker")
    if not isinstance(getattr(attacker, "name", None), str) or attacker.name == SHIPPED:
        raise ValueError(f"the attacker {name!r} needs a name of its own: a class variable `name`, and not {SHIPPED!r}")
    return attacker
