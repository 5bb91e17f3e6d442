"""Scores verifiers' own traces by verifiers' own task, with our reward plugged in; prints what came out as JSON.

Nothing is generated: the traces are made of messages, as a run's saved ones are when it replays them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.frameworks.pages import pasted

from adjudge.prime_rl import VerifiersReward
from adjudge.protocol import Sample, Score

vf: Any = import_module("verifiers.v1")
traces: Any = import_module("verifiers.v1.trace")
graph: Any = import_module("verifiers.v1.graph")
configs: Any = import_module("verifiers.v1.configs.agent")

EXAMPLE = Path(__file__).parents[3] / "examples" / "frameworks" / "verifiers_reward.py"


class Declines:
    """Judges nothing."""

    name = "declines"
    fingerprint = "declines:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [Score.abstained("out_of_scope") for _ in samples]


DECLINES = VerifiersReward(Declines(), name="declines")
NO_FIELD = VerifiersReward("math", reference="gold")
SHOWN = pasted("verifiers and prime-rl")["CORRECT"]


class Data(vf.TaskData):  # type: ignore[misc]
    answer: str


class Adding(vf.Task[Data, vf.State, vf.TaskConfig]):  # type: ignore[misc]
    async def short(self, trace: Any) -> float:
        return 0.5


Adding.short = vf.reward(Adding.short, weight=0.5)  # type: ignore[method-assign]


def traced(task: Any, *messages: Any, stopped: str | None = None) -> Any:
    """A trace of one branch; what the assistant says was sampled."""
    kind = traces.TraceTask(type="Adding", data=task.data, key=task.key)
    trace = traces.Trace(task=kind, agent=traces.AgentInfo(config=configs.AgentConfig()), ok=True)
    for place, message in enumerate(messages):
        node = graph.MessageNode(message=message, parent=place - 1 if place else None)
        node.sampled = message.role == "assistant"
        trace.nodes.append(node)
    trace.stop_condition = stopped
    return trace


async def scored(fn: str, *messages: Any, answer: str = "2", stopped: str | None = None) -> dict[str, Any]:
    """Score a trace as a rollout does, and as it records errors."""
    task = Adding(Data(prompt="1+1?", answer=answer), vf.TaskConfig(rewards={"correct": {"fn": fn, "weight": 2.0}}))
    trace = traced(task, vf.UserMessage(content="1+1?"), *messages, stopped=stopped)
    try:
        await task.score(trace)
    except vf.RolloutError as error:
        trace.record_error(error)
    saved = json.loads(trace.model_dump_json())
    return {
        "rewards": saved["rewards"],
        "reward": trace.reward,
        "has error": trace.has_error,
        "errors": [f"{error.type}: {error.message}" for error in trace.errors],
        "info": saved["info"],
    }


def said(text: str) -> Any:
    return vf.AssistantMessage(content=text)


async def main() -> None:
    example = f"{EXAMPLE}:CORRECT"
    call = vf.AssistantMessage(tool_calls=[vf.ToolCall(id="c", name="add", arguments="{}")])
    told = vf.ToolMessage(tool_call_id="c", content=r"\boxed{2}")
    task = Adding(Data(prompt="1+1?", answer="2"))
    cut = traced(task, vf.UserMessage(content="1+1?"), said("I"), stopped="max_output_tokens")
    sample = VerifiersReward("math", reference="answer").sample(task.data, cut)
    helped = traced(task, vf.UserMessage(content="1+1?"), said("I ask"))
    asked = graph.MessageNode(message=vf.UserMessage(content="please add"))
    helped.nodes += [asked, graph.MessageNode(message=said("22"), parent=2, sampled=True)]
    helped.root_reply = "2"
    root = VerifiersReward("math", reference="answer").sample(task.data, helped)
    nobody = VerifiersReward("math", reference="answer").sample(task.data, traced(task))
    found = {
        "version": import_module("verifiers").__version__,
        "right": await scored(example, said(r"\boxed{2}")),
        "shown": await scored(f"{__name__}:SHOWN", said(r"\boxed{2}")),
        "wrong": await scored(example, said(r"\boxed{3}")),
        "by the tool alone": await scored(example, call, told, said("done")),
        "broken": await scored(example, said(r"\boxed{2}"), answer="\\frac{1}{"),
        "declined": await scored(f"{__name__}:DECLINES", said("x")),
        "no field": await scored(f"{__name__}:NO_FIELD", said("x")),
        "sample": sample.to_dict() | {"id": sample.id == cut.id, "group": sample.group == task.key},
        "with a helper": root.to_dict(),
        "nothing said": nobody.to_dict(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
