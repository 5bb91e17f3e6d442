"""Inspect's own evaluation with our scorer, and our scoring with Inspect's; prints what came out as JSON."""

from __future__ import annotations

import json
import math
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Any

import adjudge
from adjudge.inspect_ai import InspectScorer, scorer
from adjudge.protocol import Sample

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
                "theirs": [[score.value, score.provenance.scorer] for score in found],
                "fingerprints differ": len(set(fingerprints)) == 2,
                "unscored": [unscored.status, unscored.reason, str(dict(unscored.evidence))],
            }
        )
    )


if __name__ == "__main__":
    main()
