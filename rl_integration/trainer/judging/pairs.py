"""Tasks for judges, made of pairs and labelled responses.

| function | tasks of a pair | scorer | after |
|---|---|---|---|
| `in_both_orders` | both orders, scored together | `verdict_orders` or `verdict` | J1 |
| `in_one_order` | one, the better one first in every second pair | `verdict` | RM-R1 |
| `one_by_one` | one for each response, scored together | `verdict_scores` | J1, pointwise |
| `labelled` | one for a response with a known verdict | `verdict` | Critique-Coder, RLBFF |

Not covered: making pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.judging.asking import AskOne, AskPair, Prompt
from adjudge.rl_integration.trainer.rollouts.tasks.order_effects import GIVEN, LABELS, SWAPPED

_FIRST, _SECOND = LABELS


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two responses to a prompt, one of them known to be better.

    Attributes:
        id: unique among the pairs.
        prompt: what was answered.
        chosen: the better response.
        rejected: the other one.
    """

    id: str
    prompt: Prompt
    chosen: str
    rejected: str

    @classmethod
    def of(cls, row: Mapping[str, Any], number: int) -> Pair:
        """Return the pair of a row with the columns `prompt`, `chosen` and `rejected`, and `id` if it has one.

        Raises:
            ValueError: a column is missing or no text, or the responses are the same.
        """
        where = f"pair {row.get('id', number)}"
        for name in ("chosen", "rejected"):
            if not isinstance(row.get(name), str):
                raise ValueError(f"{where} has the {name} response {row.get(name)!r}; it must be text")
        if not row.get("prompt"):
            raise ValueError(f"{where} has no prompt; give the text or the turns that were answered")
        if row["chosen"] == row["rejected"]:
            raise ValueError(f"{where} has the same response twice, so neither is better; leave it out")
        return cls(id=str(row.get("id", number)), prompt=row["prompt"], chosen=row["chosen"], rejected=row["rejected"])


def in_both_orders(pairs: Iterable[Pair], ask: AskPair) -> list[Task]:
    """Return two tasks for each pair, side by side: the better response is first in every second pair as given."""
    return [
        _shown(pair, ask, better_first=better_first, order=order)
        for number, pair in enumerate(pairs)
        for better_first, order in ((number % 2 == 0, GIVEN), (number % 2 == 1, SWAPPED))
    ]


def in_one_order(pairs: Iterable[Pair], ask: AskPair) -> list[Task]:
    """Return a task for each pair; the better response is first in every second one."""
    return [_shown(pair, ask, better_first=number % 2 == 0, order=GIVEN) for number, pair in enumerate(pairs)]


def one_by_one(pairs: Iterable[Pair], ask: AskOne) -> list[Task]:
    """Return two tasks for each pair, side by side: rate the better response, and rate the other one."""
    return [
        Task(
            id=f"{pair.id}:{side}",
            prompt=ask(pair.prompt, response),
            reference=side,
            cohort=pair.id,
        )
        for pair in pairs
        for side, response in (("chosen", pair.chosen), ("rejected", pair.rejected))
    ]


def labelled(rows: Sequence[Mapping[str, Any]], ask: AskOne) -> list[Task]:
    """Return a task for each row with the columns `prompt`, `response` and `verdict`, and `id` if it has one.

    A verdict is whatever the scorer takes for a reference: true, false or a label.

    Raises:
        ValueError: a column is missing.
    """
    tasks = []
    for number, row in enumerate(rows):
        for name in ("prompt", "response", "verdict"):
            if row.get(name) is None:
                raise ValueError(f"row {row.get('id', number)} has no {name}; it needs prompt, response and verdict")
        prompt = ask(row["prompt"], row["response"])
        tasks.append(Task(id=str(row.get("id", number)), prompt=prompt, reference=row["verdict"]))
    return tasks


def _shown(pair: Pair, ask: AskPair, *, better_first: bool, order: str) -> Task:
    first, second = (pair.chosen, pair.rejected) if better_first else (pair.rejected, pair.chosen)
    return Task(
        id=f"{pair.id}:{order}",
        prompt=ask(pair.prompt, first, second),
        reference=_FIRST if better_first else _SECOND,
        extra={"order": order},
        cohort=pair.id,
    )
