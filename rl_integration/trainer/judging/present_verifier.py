"""The generator's reward in RL Tango: the outcome by a scorer, verdicts on the steps by a verifier that is learning.

    value = the outcome scorer's;   steps = -1 or 1 each, as the verifier writes them with its weights of this moment

The verifier reads the question and the steps, without the reference, and answers with the likeliest text, so a
solution is judged in one way by each version of the verifier.  Where its text has not one verdict for each step, or its
window is too small, the steps are not known and the outcome alone counts (`credit: tango`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from adjudge.protocol import Provenance, Sample, Score, StepScore, response_text
from adjudge.responses.steps import Splitting, Step, split_steps
from adjudge.rl_integration.trainer.contract.rollout import Rollout
from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.judging.pairs import AskSteps
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.rl_integration.trainer.rollouts.writer import SingleTurn
from adjudge.runtime.contract import score_checked, validate_sample
from adjudge.scoring.api import load

READER = "verdict_steps"
"""Reads a verifier's text."""


class PresentVerifier:
    """Scores solutions by their outcome, and their steps by a policy as it is now.

    It takes whole groups, so that the answers that are read side by side, on which rounding depends, are always the
    same.

    Args:
        policy: the verifier.
        outcome: scorer of whole solutions; anything `adjudge.load` takes.
        ask: the verifier's prompt.
        max_new_tokens: tokens of what it writes.
        splitting: where a step begins.
    """

    name = "present_verifier"
    groupwise = True

    def __init__(
        self,
        policy: Policy,
        outcome: Any,
        ask: AskSteps,
        *,
        max_new_tokens: int,
        splitting: Splitting = "blank_line",
    ) -> None:
        self.version = 0  # updates that the verifier has seen
        self._policy = policy
        self.outcome = load(outcome)
        self._reader = load(READER)
        self._ask = ask
        self._sampling = SamplingConfig(max_new_tokens=max_new_tokens, temperature=0.0)
        self._splitting: Splitting = splitting
        self._writer = SingleTurn(policy, TransformersGenerator(policy))
        self._one_at_a_time = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """Changes with the outcome's scorer and with every update of the verifier."""
        options = f"{self._sampling.max_new_tokens}:{self._splitting}"
        return f"{self.name}:{self.outcome.fingerprint}:{self._policy.name}:{options}:{self.version}"

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if the outcome's scorer refuses the sample."""
        validate_sample(self.outcome, sample)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order."""
        outcomes = await score_checked(self.outcome, samples, called="the outcome's scorer")
        groups: dict[str, list[int]] = {}
        for place, (sample, outcome) in enumerate(zip(samples, outcomes, strict=True)):
            if outcome.status == "scored":
                groups.setdefault(sample.group, []).append(place)
        found = dict(enumerate(outcomes))
        for places in groups.values():
            members = [samples[place] for place in places]
            for place, steps in zip(places, await self._steps(members), strict=True):
                found[place] = replace(found[place], steps=steps)
        origin = Provenance(scorer=self.name, fingerprint=self.fingerprint)
        return [replace(found[place], provenance=origin) for place in range(len(samples))]

    async def _steps(self, samples: Sequence[Sample]) -> list[tuple[StepScore, ...]]:
        """The verdicts on the steps of each solution; none where they are not known."""
        split = [split_steps(response_text(sample), self._splitting) for sample in samples]
        tasks = {
            place: Task(id=str(place), prompt=self._ask(sample.prompt, [step.text for step in steps]))
            for place, (sample, steps) in enumerate(zip(samples, split, strict=True))
            if steps
        }
        readable = {place: task for place, task in tasks.items() if self._fits(task)}
        if not readable:
            return [()] * len(samples)
        written = await asyncio.to_thread(self._written, list(readable.values()))
        asked = [
            replace(rollout.sample(), reference={"verdict": True, "steps": len(split[place])}, group="")
            for place, rollout in zip(readable, written, strict=True)
        ]
        read = await score_checked(self._reader, asked, called="the reader of the verifier's text")
        verdicts = {place: one.evidence.get("steps", ()) for place, one in zip(readable, read, strict=True)}
        return [_scored(steps, verdicts.get(place, ())) for place, steps in enumerate(split)]

    def _fits(self, task: Task) -> bool:
        return self._policy.tokens.overflow(len(self._policy.encode(task)), self._sampling.max_new_tokens) is None

    def _written(self, tasks: Sequence[Task]) -> list[Rollout]:
        with self._one_at_a_time:
            return self._writer.roll_out(
                tasks,
                1,
                self._sampling,
                seed=0,
                version=self.version,
                name="verifier",
                on_rollout=lambda place, rollout: None,
            )


def _scored(steps: Sequence[Step], verdicts: Sequence[int]) -> tuple[StepScore, ...]:
    if len(verdicts) != len(steps):
        return ()
    return tuple(
        StepScore(value=float(verdict), label="correct" if verdict > 0 else "wrong", start=step.start, end=step.end)
        for step, verdict in zip(steps, verdicts, strict=True)
    )
