"""The options of attacking a scorer, and its attackers by name or as "module:object"."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from adjudge.evals.attacks.attacker import Attacker, JointAttacker
from adjudge.evals.attacks.attackers import ATTACKERS
from adjudge.evals.attacks.target import Goals
from adjudge.evals.probes.row_file import RowsConfig
from adjudge.options import Range

SHIPPED: Final = "shipped"
"""The attack suite of a verifier, on tasks of its own; nothing is searched."""

ALL: Final = (*ATTACKERS, SHIPPED)


def make_attacker(name: str) -> Attacker | JointAttacker:
    """Return an attacker by its name or "module:object".

    Raises:
        ValueError: it cannot be imported, or is not an attacker.
    """
    module, _, attribute = name.partition(":")
    try:
        made = ATTACKERS.get(name) or getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"the attacker {name!r} cannot be imported: {error}; is its folder on PYTHONPATH?") from error
    try:
        attacker = made() if isinstance(made, type) else made
    except TypeError as error:
        raise ValueError(f"the attacker {name!r} cannot be made: {error}; give a class without arguments") from error
    if not isinstance(attacker, Attacker | JointAttacker):
        raise ValueError(f"the attacker {name!r} is a {type(attacker).__name__}; derive it from Attacker")
    if not isinstance(getattr(attacker, "name", None), str) or attacker.name == SHIPPED:
        raise ValueError(f"the attacker {name!r} needs a name of its own: a class variable `name`, and not {SHIPPED!r}")
    return attacker


@dataclass(frozen=True, kw_only=True)
class AttackConfig(RowsConfig):
    """Search for worthless responses that a scorer pays for, within a budget.

    Rows hold a prompt, and best a bad response, on which attacks build (an empty one
    without), a good one and a reference.
    The input rows:NAME names rows that adjudge ships: math, code, pairs, ...
    """

    scorer: str
    """Whom to attack: a name, module:object, a spec as YAML or JSON text, or a
    .yaml or .json file."""

    attack: tuple[str, ...] = ALL
    """Attackers: constants, random, greedy, suffix, genetic, answers, shipped, or a
    module:object of your own; give it several times for several."""

    budget: Annotated[int, Range(ge=1)] = 1_000
    """Most questions that an attacker asks about a row."""

    restarts: Annotated[int, Range(ge=0)] = 0
    """How often a search that found nothing begins anew; the budget is dealt evenly."""

    goal: Literal["auto", "right", "good", "genuine"] = "auto"
    """What is a success: at least the value of a right answer ("right"), of the
    row's good response ("good"), or of a quantile of all good ones ("genuine").
    "auto" is right for verifiers and where no row has a good response, else good."""

    right: float = 1.0
    """Least value of a right answer."""

    quantile: Annotated[float, Range(ge=0, le=1)] = 0.5
    """Of the scores of good responses, for the goal genuine."""

    gold: str = "math"
    """A second scorer, which knows right answers: an attack that it pays, too, said
    the right answer, and is no success. It is never asked about itself; "none" asks
    nobody."""

    feedback: Literal["value", "verdict"] = "value"
    """What attackers see: the score, or only whether they have won."""

    transfer: tuple[str, ...] = ()
    """Another scorer to try the winning responses on; give it several times for
    several."""

    held_out: Annotated[float, Range(ge=0, lt=1)] = 0.0
    """Share of the rows that no attacker sees; winning texts are tried on them."""

    vocabulary: str = ""
    """A file with a token on each line for the searches over tokens; without it, a
    short list of our own. Words of other rows' good responses come with either."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.scorer:
            raise ValueError("there is no scorer to attack; give one with --scorer")
        if not self.attack:
            raise ValueError(f"there is no attack; give some of {', '.join(ALL)}")
        for name in self.attack:
            if name not in ALL and ":" not in name:
                raise ValueError(
                    f"attack is {name!r}; it must be one of {', '.join(ALL)}, or module:object for an attacker of your "
                    "own"
                )
            if self.attack.count(name) > 1:
                raise ValueError(f"attack names {name!r} twice; name each once")
        if not self.gold:
            raise ValueError("gold is empty; give a scorer that knows right answers, or none")
        if self.restarts >= self.budget:
            raise ValueError(f"option restarts={self.restarts}; give fewer than the budget {self.budget}")

    @property
    def goals(self) -> Goals:
        """What a success is."""
        return Goals(goal=self.goal, right=self.right, quantile=self.quantile)
