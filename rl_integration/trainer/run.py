"""The loop: batches of scored rollouts, updates, measurements, checkpoints.

Not covered: how batches come about (`batches`), several GPUs, and what is made of the numbers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.batches import Batches
from adjudge.rl_integration.trainer.checkpoints import Checkpoint, newest_checkpoint, save_checkpoint
from adjudge.rl_integration.trainer.config import RunConfig
from adjudge.rl_integration.trainer.guard import Guard, Measurement
from adjudge.rl_integration.trainer.journal import SAMPLES, STEPS, Journal, read_journal
from adjudge.rl_integration.trainer.learner import Learner
from adjudge.rl_integration.trainer.policy import Policy
from adjudge.rl_integration.trainer.processes import Processes
from adjudge.rl_integration.trainer.rewards import Rewards, Scoring
from adjudge.rl_integration.trainer.rollouts.rollout import Rollout, by_task
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.rl_integration.trainer.rollouts.writer import SingleTurn
from adjudge.rl_integration.trainer.tasks import Task, TaskOrder, TaskSource

_BEST = "best"
"""Folder in a run's folder: the policy that the gold scorer liked most, where there is one."""

_SHOWN = 2_000  # characters of a text in the journal

OnStep = Callable[[Mapping[str, float], Sequence[Rollout], Sequence[Score]], bool | None]
"""Told the numbers of a step, its rollouts and their scores; True stops the run."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What a run did.

    Attributes:
        steps: that are done, those before a resumption included.
        resumed: the step it was resumed at; 0 if it was not.
        stopped: why it ended before its last step; "" if it did not.
        rolled_back: the step whose policy was put back; 0 if none was.
        history: the numbers of every step.
    """

    steps: int
    resumed: int
    stopped: str
    rolled_back: int
    history: tuple[Mapping[str, float], ...]


class Run:
    """A run of policy training.

    Args:
        policy: learns; it is changed.
        tasks: what it is trained on.
        config: how.
        folder: for checkpoints and the log.
        held_out: tasks that it is measured on.
        reference: the policy that divergences are measured from.
        source: says which tasks come next; in a shuffled order, if it is not given.

    Raises:
        ValueError: the options, the tasks or the scorer cannot be used.
    """

    def __init__(
        self,
        policy: Policy,
        tasks: Sequence[Task],
        config: RunConfig,
        folder: Path,
        *,
        held_out: Sequence[Task] = (),
        reference: Policy | None = None,
        source: TaskSource | None = None,
    ) -> None:
        self.policy = policy
        self.config = config
        self.folder = folder
        self._tasks = {task.id: task for task in tasks}
        self._source = source if source is not None else TaskOrder(tasks, seed=config.seed)
        self._held_out = held_out
        self._generator = TransformersGenerator(policy)
        self._writer = SingleTurn(policy, self._generator)
        self._learner = Learner(
            policy,
            config.objective.made(most_new_tokens=config.rollouts.sampling.most_new_tokens),
            config.learning,
            temperature=config.rollouts.sampling.temperature,
            steps=config.steps,
            seed=config.seed,
            reference=reference,
        )

    def train(self, *, resume: bool = False, on_step: OnStep | None = None) -> RunResult:
        """Train to the last step.

        Args:
            resume: go on from the newest checkpoint, if there is one.
            on_step: told of each step.

        Raises:
            ValueError: the folder has checkpoints and `resume` is false.
            TooManyFailures: too many rollouts of a step could not be judged.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        newest = newest_checkpoint(self.folder)
        if newest is not None and not resume:
            raise ValueError(
                f"{str(self.folder)!r} holds checkpoints of an earlier run; resume it (--resume), name another output, "
                "or delete the folder"
            )
        with ExitStack() as stack:
            rewards = stack.enter_context(Rewards(self.config.reward))
            guard = self._guard(stack)
            batches = Batches(
                self._source,
                self._writer,
                rewards,
                self.config,
                resample=self._learner.objective.resample,
                processes=Processes(),
            )
            resumed = self._restored(newest, batches) if newest is not None else 0
            log, samples = (Journal(self.folder, name, step=resumed) for name in (STEPS, SAMPLES))
            if guard is not None:
                found = map(Measurement.of_line, read_journal(self.folder, STEPS))
                guard.measurements += [one for one in found if one is not None]
            stopped, rolled_back = "", 0
            while self._learner.step < self.config.steps and not stopped:
                numbers, rollouts, scores = self._step(batches, rewards)
                if guard is not None and guard.due(self._learner.step):
                    numbers |= guard.measure(self._learner.step, rollouts, scores)
                log.write(numbers)
                for record in _told(numbers["step"], rollouts, scores):
                    samples.write(record)
                if on_step is not None and on_step(numbers, rollouts, scores):
                    stopped = "it was told to stop"
                if guard is not None and "gold" in numbers:
                    stopped, rolled_back = self._guarded(guard, batches, stopped)
                if stopped or self._learner.step % self.config.save_steps == 0:
                    self._save(self.folder, batches, keep=self.config.keep_checkpoints)
        return RunResult(
            steps=self._learner.step,
            resumed=resumed,
            stopped=stopped,
            rolled_back=rolled_back,
            history=tuple(read_journal(self.folder, STEPS)),
        )

    def evaluate(self, tasks: Sequence[Task], rewards: Rewards) -> dict[str, float]:
        """Return the mean score of the likeliest answers to tasks, and the share without a score."""
        scoring = Scoring(rewards, len(tasks), 1)
        self._writer.roll_out(
            tasks,
            1,
            replace(self.config.rollouts.sampling, temperature=0.0),
            seed=0,
            version=self._learner.step,
            name="held-out",
            on_rollout=scoring.add,
        )
        scores, _ = scoring.wait()
        values = [score.value for score in scores if score.value is not None]
        found = {"held_out_unscored": 1 - len(values) / len(scores)}
        return found | ({"held_out": float(np.mean(values))} if values else {})

    def _step(self, batches: Batches, rewards: Rewards) -> tuple[dict[str, float], list[Rollout], list[Score]]:
        """Learn from one batch, and return its numbers."""
        began = time.perf_counter()
        batch = batches.next(self._learner.step)
        learning = time.perf_counter()
        numbers = batch.numbers | self._learner.learn(batch.rollouts, batch.scores, exact=self._generator.exact)
        numbers |= _facts(batch.rollouts, batch.scores, self._learner.step)
        numbers["seconds_learning"] = time.perf_counter() - learning
        step = self._learner.step
        every = self.config.eval_steps
        if self._held_out and (step == self.config.steps or (every and step % every == 0)):
            numbers |= self.evaluate(self._held_out, rewards)
        numbers["seconds"] = time.perf_counter() - began
        return {"step": step, **numbers}, batch.rollouts, batch.scores

    def _guard(self, stack: ExitStack) -> Guard | None:
        if self.config.guard is None:
            return None
        return Guard(config=self.config.guard, rewards=stack.enter_context(Rewards(self.config.guard.gold)))

    def _guarded(self, guard: Guard, batches: Batches, stopped: str) -> tuple[str, int]:
        """Keep the best policy so far, or stop the run; return why, and the step whose policy was put back."""
        if guard.best() == self._learner.step:
            self._save(self.folder / _BEST, batches, keep=1)
        parting = guard.parting()
        if parting is None:
            return stopped, 0
        best = newest_checkpoint(self.folder / _BEST)
        if guard.config.then == "stop" or best is None:
            return parting.sentence, 0
        self._learner.put_back(_without_random(best))
        return parting.sentence, best.step

    def _save(self, folder: Path, batches: Batches, *, keep: int) -> None:
        tensors, optimizer = self._learner.state()
        step = self._learner.step
        checkpoint = Checkpoint(
            step=step,
            tensors={**tensors, "random": torch.get_rng_state()},
            optimizer=optimizer,
            record={"step": step, "batches": batches.state()},
        )
        save_checkpoint(folder, checkpoint, keep=keep)

    def _restored(self, checkpoint: Checkpoint, batches: Batches) -> int:
        """Put a checkpoint's state in place."""
        torch.set_rng_state(checkpoint.tensors["random"])
        self._learner.restore(checkpoint.step, _without_random(checkpoint), checkpoint.optimizer)
        batches.restore(checkpoint.record["batches"], self._tasks)
        return checkpoint.step


def _without_random(checkpoint: Checkpoint) -> dict[str, Tensor]:
    return {name: value for name, value in checkpoint.tensors.items() if name != "random"}


def _told(step: float, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Iterator[dict[str, Any]]:
    """The first group's best and worst answer, for people to read."""
    places = next(iter(by_task(rollouts).values()))
    ranked = sorted(places, key=lambda at: (scores[at].value is not None, scores[at].value or 0.0))
    for place in dict.fromkeys((ranked[-1], ranked[0])):
        rollout, score = rollouts[place], scores[place]
        yield {
            "step": step,
            "prompt": _trimmed(rollout.task.prompt),
            "response": _trimmed(rollout.text),
            "finish_reason": rollout.finish_reason,
            "value": score.value,
            "status": score.status,
            "reason": score.reason,
        }


def _trimmed(text: Any) -> str:
    found = text if isinstance(text, str) else json.dumps(text, default=str)
    return found if len(found) <= _SHOWN else f"{found[:_SHOWN]} ... ({len(found)} characters)"


def _facts(rollouts: Sequence[Rollout], scores: Sequence[Score], step: int) -> dict[str, Any]:
    """What is worth watching about a batch."""
    count = len(rollouts)
    return {
        "failed": sum(score.status == "failed" for score in scores) / count,
        "abstained": sum(score.status == "abstained" for score in scores) / count,
        "length": sum(len(rollout.ids) for rollout in rollouts) / count,
        "cut_off": sum(rollout.finish_reason == "length" for rollout in rollouts) / count,
        "updates_old": sum(step - 1 - rollout.version for rollout in rollouts) / count,
    }
