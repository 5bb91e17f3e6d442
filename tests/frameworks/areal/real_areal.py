"""AReaL's own rollout executor, workflow and pool of processes, with our reward; prints what came out as JSON.

The engine is ours: it answers with what the prompt asks it to say, in AReaL's own `ModelResponse`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tests.engines.tiny_models import tiny_tokenizer
from tests.frameworks.pages import pasted

from adjudge.areal import ArealReward
from adjudge.protocol import Sample, Score

api: Any = import_module("areal.api")
options: Any = import_module("areal.api.cli_args")
workflows: Any = import_module("areal.workflow.rlvr")
executors: Any = import_module("areal.infra.workflow_executor")

SLOW = 0.6
"""Seconds a slow scorer takes; AReaL's pool is given a third of it."""


class Slow:
    """Scores everything 1, late."""

    name = "slow"
    fingerprint = "slow:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        await asyncio.sleep(SLOW)
        return [Score.scored(1.0) for _ in samples]


class Parrot:
    """An inference engine that says what it is told to."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def get_version(self) -> int:
        return 0

    async def agenerate(self, request: Any) -> Any:
        said = self._tokenizer.decode(request.input_ids).partition("say ")[2].partition("<|end|>")[0]
        tokens = self._tokenizer(f"{said}<|end|>")["input_ids"]
        return api.ModelResponse(
            input_tokens=request.input_ids,
            output_tokens=tokens,
            output_logprobs=[-0.5] * len(tokens),
            output_versions=[0] * len(tokens),
        )


def executor(tokenizer: Any) -> Any:
    config = options.InferenceEngineConfig(
        consumer_batch_size=8, max_concurrent_rollouts=8, queue_size=64, max_head_offpolicyness=100
    )
    made = executors.WorkflowExecutor(config=config, inference_engine=Parrot(tokenizer))
    made.initialize(logger=logging.getLogger("areal-test"))
    return made


def workflow(scorer: Any, tokenizer: Any) -> Any:
    made = ArealReward(scorer=scorer, ends=["<|end|>"]).workflow()
    return made(gconfig=options.GenerationHyperparameters(max_new_tokens=8), tokenizer=tokenizer)


def rolled_out(runner: Any, made: Any, said: str, **row: Any) -> Any:
    """Submit an episode as AReaL's trainers do, and return its tensors as lists, None if it was rejected."""
    task = runner.submit({"messages": [{"role": "user", "content": f"say {said}"}], **row}, made)
    found = runner.wait_for_task(task, timeout=600)
    return None if found is None else {name: value.tolist() for name, value in found.items()}


def error_of(runner: Any, made: Any) -> list[str]:
    """What AReaL raises for an episode whose row has no reference, and what it was caused by."""
    try:
        return [f"no error: {rolled_out(runner, made, 'x', gold='2')}"]
    except Exception as error:  # noqa: BLE001 - the test compares what was raised
        found: list[str] = []
        cause: BaseException | None = error
        while cause is not None:
            found.append(f"{type(cause).__name__}: {cause}")
            cause = cause.__cause__
        return found


async def from_pool(pool: Any, said: str) -> Any:
    return await pool("?", said, [1], [2], answer="2", messages=[])


def main() -> None:
    tokenizer = tiny_tokenizer()
    # The pools first: they fork, and there should be no other threads yet.
    pool = api.AsyncRewardWrapper(ArealReward(scorer="math"), max_workers=1)
    pooled = [asyncio.run(from_pool(pool, f"\\boxed{{{n}}}")) for n in (2, 3)]
    late = api.AsyncRewardWrapper(ArealReward(scorer=Slow()), timeout_seconds=SLOW / 3, max_workers=1, max_retries=0)
    late_in_pool = asyncio.run(from_pool(late, "x"))
    runner = executor(tokenizer)
    made = workflow("math", tokenizer)
    start = time.monotonic()
    late_in_workflow = rolled_out(runner, workflow(Slow(), tokenizer), "x", answer="2")
    found = {
        "version": import_module("areal").__version__,
        "is a workflow": isinstance(made, api.RolloutWorkflow) and isinstance(made, workflows.RLVRWorkflow),
        "shown": issubclass(pasted("AReaL")["MathWorkflow"], workflows.RLVRWorkflow),
        "pool": pooled,
        "late in the pool": late_in_pool,
        "late in the workflow": late_in_workflow["rewards"],
        "waited": time.monotonic() - start,
        "right": rolled_out(runner, made, "\\boxed{2}", answer="2"),
        "wrong": rolled_out(runner, made, "\\boxed{3}", answer="2"),
        "broken": rolled_out(runner, made, "\\boxed{2}", answer="\\frac{1}{"),
        "no reference": error_of(runner, made),  # the last: the runner ends with it
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
