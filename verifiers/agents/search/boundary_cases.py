"""What a search agent's answer is worth by how it came about: the tables of IKEA, SEM, AdaSearch and Tool-Star.

| case | when |
|---|---|
| `malformed` | no answer that can be read, or a form that the policy does not allow |
| `wrong`, `wrong_searched` | wrong; a tool answered a search |
| `wrong_needless` | wrong after a search, and the direct answer was right |
| `right` | right; with "sem", without a search |
| `right_needed`, `right_needless` | right with a search, and the direct answer was wrong; was right, too |
| `right_tools` | right, and several different tools answered |
| `decision_right`, `decision_wrong` | the agent's word on whether it needs a search, beside its direct answer |

| policy | where the numbers are from |
|---|---|
| `ikea` | the released code, hzy312/knowledge-r1 @ 0b254e2: 1.6, 1.4, 1.2, 1.0 for 0, 1, 2, 3 searches; 0.05; -1 |
| `sem` | the order is the paper's (arXiv 2505.07903); the numbers are ours |
| `adasearch` | the second stage of arXiv 2512.16883; 1 and 0 are its outcome reward, the rest is ours |
| `tool_star` | from memory of arXiv 2505.16410 |

Not covered: reading a trajectory (`boundary_reading`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from adjudge.verifiers.agents.search.boundary_reading import Conduct

Policy: TypeAlias = Literal["ikea", "sem", "adasearch", "tool_star"]
POLICIES: tuple[Policy, ...] = get_args(Policy)

THRIFT = "thrift"
"""The key of a table for what a right answer gets beside: times 1 - searches / `most_searches`, never below 0."""

TABLES: Mapping[Policy, Mapping[str, float]] = MappingProxyType(
    {
        "ikea": {"malformed": -1.0, "wrong": 0.0, "wrong_searched": 0.05, "right": 1.0, THRIFT: 0.6},
        "sem": {
            "malformed": -1.0,
            "wrong": 0.0,
            "wrong_needless": -0.2,
            "right": 1.0,
            "right_needed": 0.8,
            "right_needless": 0.4,
        },
        "adasearch": {"malformed": 0.0, "decision_wrong": 0.0, "decision_right": 1.0},
        "tool_star": {"malformed": -1.0, "wrong": 0.0, "right": 1.0, "right_tools": 1.1},
    }
)


def case_of(policy: Policy, conduct: Conduct, *, right: bool, direct: bool | None) -> str:
    """Return the case of a well-formed trajectory; "adasearch" has its own (`decision_case`).

    Args:
        policy: whose table is used.
        conduct: what the agent did: searches that it tried cost, those that a tool answered can earn.
        right: whether the answer is right.
        direct: whether the answer without a search is right; None if nobody looked.
    """
    if policy == "ikea":
        return "right" if right else "wrong_searched" if conduct.answered else "wrong"
    if policy == "tool_star":
        return ("right_tools" if len(conduct.tools) > 1 else "right") if right else "wrong"
    if not conduct.attempted:
        return "right" if right else "wrong"
    if right:
        return "right_needless" if direct else "right_needed"
    return "wrong_needless" if direct else "wrong"


def decision_case(knows: bool, direct: bool) -> str:
    """Return the case of a decision: the agent says whether it knows, and its direct answer shows it."""
    return "decision_right" if knows == direct else "decision_wrong"


def value_of(table: Mapping[str, float], case: str, attempted: int, most_searches: int) -> float:
    """Return what a case is worth.

    Args:
        table: case to value, and `thrift` where there is one.
        case: the case.
        attempted: how many searches were tried.
        most_searches: from so many on, thrift pays nothing.
    """
    thrift = table.get(THRIFT, 0.0) if case.startswith("right") else 0.0
    return table[case] + thrift * max(0.0, 1.0 - attempted / most_searches)


def decision_f1(knows: Sequence[bool], direct: Sequence[bool]) -> float:
    """Return AdaSearch's metric: the F1 of "I know" beside right direct answers, in [0, 1].

    It is 0 where no decision is a true "I know", also if none could be.

    Raises:
        ValueError: there are no decisions, or not as many answers.
    """
    if not knows or len(knows) != len(direct):
        raise ValueError(f"{len(knows)} decisions and {len(direct)} direct answers; give one for each, at least one")
    hits = sum(said and true for said, true in zip(knows, direct, strict=True))
    return 2 * hits / (sum(knows) + sum(direct)) if hits else 0.0
