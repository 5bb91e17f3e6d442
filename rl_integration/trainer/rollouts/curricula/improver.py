"""What improvers share: which groups they help, and how more text is shown to a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adjudge.protocol import Message
from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.rollouts.writer import Answered

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.rollouts.policy import Policy


@dataclass(frozen=True, kw_only=True)
class Improved:
    """Groups as they are learnt from.

    Attributes:
        groups: one for each that was given, in order.
        counts: what was done, for the log; the same names each time.
    """

    groups: list[Answered]
    counts: Mapping[str, int]


def is_unsolved(group: Answered, right_above: float) -> bool:
    """Return whether some answer of a group was judged, and none is right."""
    return any(value is not None for value in group.values) and not is_solved(group, right_above)


def is_solved(group: Answered, right_above: float) -> bool:
    """Return whether some answer of a group is right."""
    return any(value is not None and value > right_above for value in group.values)


def gold_text(task: Task) -> str | None:
    """Return a task's right answer as text; None where the reference is not one.

    It is the reference itself, the first of a list of accepted ones, or the "answer" of a mapping.
    """
    found: Any = task.reference
    if isinstance(found, Mapping):
        found = found.get("answer")
    if isinstance(found, Sequence) and not isinstance(found, str) and found:
        found = found[0]
    return str(found) if isinstance(found, str | int | float) and not isinstance(found, bool) and found != "" else None


def quoted(policy: Policy, text: str) -> str:
    """Return text with the tokenizer's special tokens spelled so that it does not read them as such."""
    for token in sorted(policy.tokens.special_tokens, key=len, reverse=True):
        text = text.replace(token, f"{token[:1]} {token[1:]}")
    return text


def with_more(prompt: str | Sequence[Message], text: str) -> str | list[Message]:
    """Return a prompt with more text at the end of what the user says last."""
    if isinstance(prompt, str):
        return prompt + text
    turns: list[Message] = [dict(turn) for turn in prompt]
    if not turns or turns[-1].get("role") != "user" or not isinstance(turns[-1].get("content"), str):
        return [*turns, {"role": "user", "content": text.strip()}]
    return [*turns[:-1], {**turns[-1], "content": turns[-1]["content"] + text}]


def probe(policy: Policy, tasks: Sequence[Task], shown: Callable[[Task], str | Sequence[Message]]) -> None:
    """Write one prompt of each kind that a run may come to, so that a chat template's refusal comes before any work.

    Raises:
        ValueError: the template refuses the turns.
    """
    kinds: set[tuple[str, ...]] = set()
    for task in tasks:
        kind = () if isinstance(task.prompt, str) else tuple(str(turn.get("role")) for turn in task.prompt)
        if kind not in kinds:
            kinds.add(kind)
            policy.encode(Task(id=task.id, prompt=shown(task)))


def fits(policy: Policy, task: Task, max_new_tokens: int) -> bool:
    """Return whether a prompt leaves room for an answer in the policy's window."""
    return len(policy.encode(task)) + max_new_tokens <= policy.tokens.window
