"""Prompts for judges in training: those that the judges of `adjudge.judges` are asked with, and two of our own.

A judge learns to answer the very text that it will be asked, with untrusted text fenced and escaped in the same way: a
response that holds a verdict does not put one into the judge's mouth.

Not covered: what the answers are worth (the scorers `verdict`, `verdict_orders`, `verdict_scores`, `verdict_steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from adjudge.prompts.template import load_template
from adjudge.protocol import Message

Prompt: TypeAlias = str | Sequence[Message]

AskPair: TypeAlias = Callable[[Prompt, str, str], Prompt]
"""The prompt that shows a judge a question, response A and response B."""

AskOne: TypeAlias = Callable[[Prompt, str], Prompt]
"""The prompt that shows a judge a question and one response."""

AskSteps: TypeAlias = Callable[[Prompt, Sequence[str]], Prompt]
"""The prompt that shows a verifier a question and the steps of a solution."""


def ask_pair(template: str = "judges/j1_pair") -> AskPair:
    """Return what asks about pairs: "judges/j1_pair", "judges/rm_r1", or the path of a `.prompt` file.

    Raises:
        ValueError: there is no such template.
    """
    loaded = load_template(template)

    def ask(question: Prompt, first: str, second: str) -> Prompt:
        return loaded.render({"question": question, "response_a": first, "response_b": second}).messages

    return ask


def ask_one(template: str = "judges/j1_score") -> AskOne:
    """Return what asks about one response: "judges/j1_score", or the path of a `.prompt` file.

    "rl_integration/trainer/judging/critique" asks for Critique-Coder's critique of a solution.

    Raises:
        ValueError: there is no such template.
    """
    loaded = load_template(template)

    def ask(question: Prompt, response: str) -> Prompt:
        return loaded.render({"question": question, "response": response}).messages

    return ask


def ask_principle(principle: str, template: str = "judges/principle") -> AskOne:
    """Return what asks whether one response keeps to a principle (RLBFF).

    Raises:
        ValueError: there is no such template, or the principle is empty.
    """
    if not principle.strip():
        raise ValueError("the principle is empty; say what a response is to be judged by")
    loaded = load_template(template)

    def ask(question: Prompt, response: str) -> Prompt:
        return loaded.render({"question": question, "principle": principle, "response": response}).messages

    return ask


def ask_steps(template: str = "rl_integration/trainer/judging/steps") -> AskSteps:
    """Return what asks for verdicts on the steps of a solution and on the whole (RL Tango).

    Raises:
        ValueError: there is no such template.
    """
    loaded = load_template(template)

    def ask(question: Prompt, steps: Sequence[str]) -> Prompt:
        numbered = "\n".join(f"{number}. {_indented(step)}" for number, step in enumerate(steps, start=1))
        return loaded.render({"question": question, "steps": numbered}).messages

    return ask


def _indented(step: str) -> str:
    """A step whose further lines cannot be taken for steps of their own."""
    return step.strip().replace("\n", "\n   ")
