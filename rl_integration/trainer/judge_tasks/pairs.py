"""Tasks for judges: prompts that show pairs or responses, and the rows of a file that they are written to.

A judge learns to answer the very text that it will be asked, with untrusted text fenced and escaped in the same way.

| function | tasks of a pair | scorer | after |
|---|---|---|---|
| `in_both_orders` | both orders, scored together | `verdict_orders` or `verdict` | J1 |
| `in_one_order` | one, the better one first in every second pair | `verdict` | RM-R1 |
| `one_by_one` | one for each response, scored together | `verdict_scores` | J1, pointwise |
| `labelled` | one for a response with a known verdict | `verdict` | Critique-Coder, RLBFF |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from adjudge.prompts.template import load_template
from adjudge.protocol import Message
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.rollouts.cohort_order import GIVEN, LABELS, SWAPPED

Prompt: TypeAlias = str | Sequence[Message]

AskPair: TypeAlias = Callable[[Prompt, str, str], Prompt]
"""The prompt that shows a judge a question, response A and response B."""

AskOne: TypeAlias = Callable[[Prompt, str], Prompt]
"""The prompt that shows a judge a question and one response."""


def ask_pair(template: str = "judges/j1_pair") -> AskPair:
    """Return what asks about pairs: "judges/j1_pair", "judges/rm_r1", or the path of a `.prompt` file."""
    render = _renderer(template)
    return lambda question, first, second: render(question=question, response_a=first, response_b=second)


def ask_one(template: str = "judges/j1_score") -> AskOne:
    """Return what asks about one response: "judges/j1_score", or the path of a `.prompt` file.

    "rl_integration/trainer/judge_tasks/critique" asks for Critique-Coder's critique of a solution.
    """
    render = _renderer(template)
    return lambda question, response: render(question=question, response=response)


def ask_principle(principle: str, template: str = "judges/principle") -> AskOne:
    """Return what asks whether one response keeps to a principle (RLBFF); `ValueError` if it is empty."""
    if not principle.strip():
        raise ValueError("the principle is empty; say what a response is to be judged by")
    render = _renderer(template)
    return lambda question, response: render(question=question, principle=principle, response=response)


def _renderer(template: str) -> Callable[..., Prompt]:
    """What fills a template in; `ValueError` if there is none of that name."""
    loaded = load_template(template)
    return lambda **values: loaded.render(values).prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two responses to a prompt, one of them known to be better; ids are unique."""

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
        Task(id=f"{pair.id}:{side}", prompt=ask(pair.prompt, response), reference=side, cohort=pair.id)
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
        reference=LABELS[not better_first],
        extra={"order": order},
        cohort=pair.id,
    )


def write_tasks(path: Path, tasks: Iterable[Task]) -> int:
    """Write a line of JSON for each task, with `id`, `prompt`, `reference`, `cohort` and its extra fields; count them.

    Raises:
        ValueError: an extra field has the name of one of these columns, or a value is not plain data.
    """
    lines = []
    for task in tasks:
        row = {"id": task.id, "prompt": task.prompt, "reference": task.reference, "cohort": task.cohort}
        if clash := row.keys() & task.extra.keys():
            raise ValueError(f"the extra field {min(clash)!r} of task {task.id!r} has the name of a column; rename it")
        try:
            lines.append(json.dumps({**row, **task.extra}, ensure_ascii=False))
        except TypeError as error:
            raise ValueError(f"the task {task.id!r} cannot be written as JSON: {error}") from error
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)
