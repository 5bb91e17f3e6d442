"""Inputs that a model's program writes: the model writes the program, and the sandbox runs it.

Not covered: whether the inputs are allowed by the task; solutions that raise, or disagree, cost the test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.data_pipelines.tasks.unit_tests.config import UnitTestsConfig
from adjudge.data_pipelines.tasks.unit_tests.execution import ProgramRunner
from adjudge.data_pipelines.tasks.unit_tests.inputs import written_inputs
from adjudge.data_pipelines.tasks.unit_tests.problem import Problem
from adjudge.engines.interface import Engine, Fault, Sampling
from adjudge.io.jobs.engines import stop_if_gone
from adjudge.prompts.template import load_template
from adjudge.protocol import NO_COST, Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a model's program came to.

    Attributes:
        inputs: calls, or texts of standard input.
        counts: what to add to the report.
        cost: what the model took.
    """

    inputs: tuple[Any, ...] = ()
    counts: Mapping[str, float]
    cost: Cost = NO_COST


class InputWriter:
    """Asks a model for programs that print inputs."""

    def __init__(self, config: UnitTestsConfig, engine: Engine) -> None:
        """Load the prompt; the model is loaded when it is asked."""
        self.engine = engine
        self.count = config.inputs
        self.sampling = Sampling(max_tokens=config.max_tokens)
        self.template = load_template("data_pipelines/tasks/unit_tests/generator")

    @property
    def fingerprint(self) -> str:
        """The model and the prompt."""
        return f"{self.engine.fingerprint} {self.template.digest} {self.sampling.max_tokens}"

    async def write(self, problem: Problem, runner: ProgramRunner) -> Written:
        """Return the inputs for a task; none, with the reason counted, where the model or its program fails.

        Raises:
            JobError: the model or the sandbox is gone.
        """
        rendered = self.template.render(
            {
                "question": problem.prompt,
                "solution": problem.solutions[0],
                "entry": problem.entry_point or None,
                "count": str(self.count),
            },
            special=tuple(getattr(self.engine, "special_tokens", ())),
        )
        (answer,) = await self.engine.generate([rendered.prompt], self.sampling)
        stop_if_gone(self.engine, answer)
        if isinstance(answer, Fault):
            return Written(counts={"generator_faults": 1.0})
        completion = answer.completions[0]
        if completion.finish_reason == "length":
            return Written(counts={"generator_cut_off": 1.0}, cost=answer.cost)
        printed = await runner.response(completion.text)
        if printed is None:
            return Written(counts={"generator_errors": 1.0}, cost=answer.cost)
        found, unread = written_inputs(printed, bool(problem.entry_point))
        counts = {"generated_inputs": float(len(found)), **({"generated_unread": float(unread)} if unread else {})}
        return Written(inputs=tuple(found), counts=counts, cost=answer.cost)
