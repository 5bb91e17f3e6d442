"""The rows of `benchmarks.verifiers` whose samples are trajectories: searches, tools and users.

Scorers that ask a model have a scripted one, so their row is what they add to its time.

Not covered: trajectories of many turns; these have two or three.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from benchmarks.verifier_rows import Row
from tests.engines.scripted import ScriptedEngine, key_of
from tests.verifiers.agents.user import playing
from tests.verifiers.agents.user.tries import attack_cases

from adjudge.engines.interface import Prompt
from adjudge.protocol import Sample, Score, Scorer
from adjudge.scoring import registry

_QUESTION: Final = "What is the capital of France?"
_SEARCH: Final = {"name": "search", "parameters": {"properties": {"q": {"type": "string"}}, "required": ["q"]}}


class RightAnswer:
    """The outcome of a trajectory that says "Paris": 1."""

    name = "right answer"
    fingerprint = "right answer:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return a score for each sample."""
        return [Score.scored(float("Paris" in str(sample.response))) for sample in samples]


def episodes() -> list[Sample]:
    """A search, what it found, and an answer, right and wrong."""
    thought = "<think><plan>Ask for the capital.</plan> <risk>It may have moved.</risk></think>"
    return [
        Sample(
            prompt=_QUESTION,
            response=[
                {"role": "assistant", "content": f"{thought}<search>capital of France</search>"},
                {"role": "tool", "content": "Paris is the capital and the largest city of France."},
                {"role": "assistant", "content": f"<answer>{answer}</answer>"},
            ],
            reference="Paris",
        )
        for answer in ("Paris", "Lyon")
    ]


def branches() -> list[Sample]:
    """Four trajectories that begin with the same call."""
    call = {"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"q": "capital"}'}}
    return [
        Sample(
            prompt=_QUESTION,
            response=[
                {"role": "assistant", "content": "I look.", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "1", "content": "Paris is the capital."},
                {"role": "assistant", "content": f"It is {answer}."},
            ],
            group="g",
            extra={"tools": [_SEARCH]},
        )
        for answer in ("Paris", "Lyon", "Paris, surely", "Nice")
    ]


def asking(name: str, said: Callable[[str], str], **options: Any) -> Callable[[], Scorer]:
    """Return what makes a scorer whose model says this behind the key that it was asked for."""

    def answer(prompt: Prompt, index: int) -> str:
        return said(key_of(prompt))

    return lambda: registry.as_scorer(registry.resolve(name)(engine=ScriptedEngine(answer), **options))


def _user() -> Any:
    return registry.resolve("simulated_user")(engine=ScriptedEngine(playing.honest))


def dialogues() -> list[Sample]:
    """Turns that a simulated user is moved by."""
    return [case.sample for case in attack_cases() if case.honest]


AGENT_ROWS: Final = [
    Row(
        name="search_evidence",
        spec=asking("search_evidence", lambda key: f"It says so.\nAnswer {key}: Paris"),
        make=episodes,
    ),
    Row(name="turn_critic", spec=asking("turn_critic", lambda key: f"{key} 1: good\n{key} 2: good"), make=episodes),
    Row(
        name="atomic_thoughts",
        spec=asking("atomic_thoughts", lambda key: f"{key} 1: 7\n{key} 2: 4", progress=0.5),
        make=episodes,
    ),
    Row(name="tool_tree", spec="tool_tree", options={"outcome": RightAnswer()}, make=branches),
    Row(name="simulated_user", spec=_user, make=dialogues),
]
"""All of them, in the order of the table."""
