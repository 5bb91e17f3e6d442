"""Inspect's own evaluation with our scorer, and our scoring with Inspect's; prints what came out as JSON."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from importlib import import_module
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import adjudge
from adjudge.inspect_ai import InspectScorer, scorer
from adjudge.protocol import Sample
from adjudge.scoring.api import score_rows

ai: Any = import_module("inspect_ai")
data: Any = import_module("inspect_ai.dataset")
agents: Any = import_module("inspect_ai.agent")
model: Any = import_module("inspect_ai.model")
scorers: Any = import_module("inspect_ai.scorer")
solvers: Any = import_module("inspect_ai.solver")
tools: Any = import_module("inspect_ai.tool")
tiktoken: Any = import_module("tiktoken")

ROWS = [("1+1?", "2", "\\boxed{2}"), ("1+1?", "2", "\\boxed{3}"), ("1+1?", "\\frac{1}{", "\\boxed{2}")]


@solvers.solver  # type: ignore[untyped-decorator]
def says() -> Any:
    """Answer with what is written down, where a model would be asked: counting tokens would ask the network."""

    async def solve(state: Any, generate: Any) -> Any:
        state.output = model.ModelOutput.from_content("mockllm/model", ROWS[state.sample_id][2])
        state.messages.append(state.output.message)
        return state

    return solve


@solvers.solver  # type: ignore[untyped-decorator]
def corrects_itself() -> Any:
    """Insert system messages, as solvers do, then answer, be asked again, and answer with the sample's last word."""

    async def solve(state: Any, generate: Any) -> Any:
        state.messages[:0] = [model.ChatMessageSystem(content=text) for text in ("Be brief.", "Box it.")]
        for text in ("\\boxed{3}", state.metadata["says"]):
            state.output = model.ModelOutput.from_content("mockllm/model", text)
            state.messages += [state.output.message, model.ChatMessageUser(content="Are you sure?")]
        return state

    return solve


@tools.tool  # type: ignore[untyped-decorator]
def calculator() -> Any:
    async def execute(asked: str) -> str:
        """Calculate.

        Args:
            asked: a sum.
        """
        return "2"

    return execute


def submitted(folder: str, agent: Any, **options: Any) -> list[Any]:
    """Return the values of what an agent submits: a right answer after a wrong guess, and the other way round."""
    values = []
    for guess, answer in (("My guess is \\boxed{3}", "2"), ("My guess is \\boxed{2}", "I do not know")):
        calls = [
            model.ModelOutput.for_tool_call("mockllm/model", "calculator", {"asked": "1+1"}),
            model.ModelOutput.for_tool_call("mockllm/model", "submit", {"answer": answer}),
        ]
        for call, text in zip(calls, (guess, ""), strict=True):
            call.choices[0].message.content = text
        task = ai.Task(dataset=[data.Sample(input="1+1?", target="2")], solver=agent, scorer=scorer("math", **options))
        says = model.get_model("mockllm/model", custom_outputs=calls)
        (log,) = ai.eval(task, model=says, log_dir=folder, display="none")
        assert log.status == "success", log.error
        values.append(log.samples[0].scores["math"].value)
    return values


def with_examples(folder: str) -> list[Any]:
    """Return the values of a task whose prompt has an answered example: once that is right, once the model is."""
    rows = [("\\boxed{2}", "I do not know"), ("\\boxed{7}", "\\boxed{2}")]
    samples = [
        data.Sample(
            input=[
                model.ChatMessageUser(content="1+1?"),
                model.ChatMessageAssistant(content=example),
                model.ChatMessageUser(content="2+0?"),
            ],
            target="2",
            metadata={"says": says},
        )
        for example, says in rows
    ]
    task = ai.Task(dataset=samples, solver=corrects_itself(), scorer=scorer("math"))
    (log,) = ai.eval(task, model="mockllm/model", log_dir=folder, display="none")
    return [sample.scores["math"].value for sample in log.samples]


def evaluated(folder: str, made: Any) -> dict[str, Any]:
    """Run a task."""
    task = ai.Task(
        dataset=[data.Sample(input=asked, target=gold, id=place) for place, (asked, gold, _) in enumerate(ROWS)],
        solver=says(),
        scorer=made,
    )
    (log,) = ai.eval(task, model="mockllm/model", log_dir=folder, display="none")
    assert log.status == "success", log.error
    (result,) = log.results.scores
    rows = {}
    for sample in log.samples:
        (score,) = sample.scores.values()
        value = None if isinstance(score.value, float) and math.isnan(score.value) else score.value
        rows[sample.id] = [value, score.reason, score.explanation, score.metadata["reason"]]
    return {
        "status": log.status,
        "name": result.name,
        "mean": result.metrics["mean"].value,
        "unscored": result.unscored_samples,
        "rows": rows,
    }


async def of_any_form() -> dict[str, Any]:
    """Score prompts in every form that OpenAI's have, one that has none, and references in all forms."""

    @scorers.scorer(metrics=[scorers.mean()])  # type: ignore[untyped-decorator]
    def tells() -> Any:
        async def score(state: Any, target: Any) -> Any:
            return scorers.Score(value=1, answer=state.output.stop_reason, explanation=state.input_text)

        return score

    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    contents: list[dict[str, Any]] = [
        {
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {},
        {"content": [image, {"type": "text", "text": "1+1?"}]},
        {"content": 7},
    ]
    samples = [
        Sample(
            prompt=[{"role": "user", **content}],
            response="It is 2",
            reference="2",
            finish_reason="length" if place == 0 else None,
        )
        for place, content in enumerate(contents)
    ]
    told = await score_rows(InspectScorer(tells()), samples)
    golds = [
        Sample(prompt="1+1?", response="It is 2", reference=gold)
        for gold in ({"answer": "2"}, 2.0, [3, 2.0], {"answer": ""})
    ]
    found = await score_rows(InspectScorer(scorers.match()), golds)
    return {
        "prompts": [[score.reason, *map(score.evidence.get, ("answer", "explanation"))] for score in told],
        "references": [score.value for score in found],
    }


def main() -> None:
    """Run both ways."""
    folder = sys.argv[1]
    words = SimpleNamespace(encode=lambda text, **options: text.split())
    tiktoken.get_encoding = tiktoken.encoding_for_model = lambda name: words  # these would ask the network
    theirs = InspectScorer(scorers.match())
    asked = ("1+1?", [{"role": "user", "content": "1+1?"}])
    answers = [Sample(prompt=asked[at], response=text, reference="2") for at, text in enumerate(("It is 2", "It is 3"))]
    found = adjudge.score_batch(answers, scorer=theirs)

    zero = asyncio.run(
        score_rows(theirs, [Sample(prompt="5-5?", response="It is 7", reference=gold) for gold in (0, 0.0, None, "")])
    )

    @scorers.scorer(metrics=[scorers.mean()])  # type: ignore[untyped-decorator]
    def declines() -> Any:
        async def score(state: Any, target: Any) -> Any:
            return scorers.Score.unscored(reason="grader_failed")

        return score

    (unscored,) = adjudge.score_batch(answers[:1], scorer=InspectScorer(declines()))
    try:
        scorer("math", response="turns")  # type: ignore[arg-type]
    except ValueError as error:
        wrong = str(error)
    fingerprints = [theirs.fingerprint, InspectScorer(scorers.match(location="any")).fingerprint]
    print(
        json.dumps(
            {
                "version": version("inspect-ai"),
                "ours": evaluated(folder, scorer("math")),
                "with a fallback": evaluated(folder, scorer("math", name="strict", fallback=0.0)),
                "with examples": with_examples(folder),
                "basic agent": submitted(folder, solvers.basic_agent(tools=[calculator()])),
                "react": submitted(folder, agents.react(tools=[calculator()])),
                "its messages": submitted(folder, solvers.basic_agent(tools=[calculator()]), response="messages"),
                "wrong option": wrong,
                **asyncio.run(of_any_form()),
                "zero": [[score.status, score.value] for score in zero],
                "theirs": [[score.value, score.provenance.scorer] for score in found],
                "fingerprints differ": len(set(fingerprints)) == 2,
                "unscored": [unscored.status, unscored.reason, str(dict(unscored.evidence))],
            }
        )
    )


if __name__ == "__main__":
    main()
