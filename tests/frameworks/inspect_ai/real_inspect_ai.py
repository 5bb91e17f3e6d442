"""Inspect's own evaluation with our scorer, and our scoring with Inspect's; prints what came out as JSON."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Any

import adjudge
from adjudge.inspect_ai import InspectScorer, scorer
from adjudge.protocol import Sample
from adjudge.scoring.api import score_rows

ai: Any = import_module("inspect_ai")
data: Any = import_module("inspect_ai.dataset")
model: Any = import_module("inspect_ai.model")
scorers: Any = import_module("inspect_ai.scorer")
solvers: Any = import_module("inspect_ai.solver")

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


def main() -> None:
    """Run both ways."""
    folder = sys.argv[1]
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
    fingerprints = [theirs.fingerprint, InspectScorer(scorers.match(location="any")).fingerprint]
    print(
        json.dumps(
            {
                "version": version("inspect-ai"),
                "ours": evaluated(folder, scorer("math")),
                "with a fallback": evaluated(folder, scorer("math", name="strict", fallback=0.0)),
                "with examples": with_examples(folder),
                "zero": [[score.status, score.value] for score in zero],
                "theirs": [[score.value, score.provenance.scorer] for score in found],
                "fingerprints differ": len(set(fingerprints)) == 2,
                "unscored": [unscored.status, unscored.reason, str(dict(unscored.evidence))],
            }
        )
    )


if __name__ == "__main__":
    main()
