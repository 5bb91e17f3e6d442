"""The loop: batches of scored rollouts, updates, measurements, checkpoints.

With several processes all do the same, each with its share of the answers and of the reading; the first one alone
writes files and decides whether the run goes on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from adjudge.engines.loading import lent
from adjudge.engines.policy_engine import SHARDED, PolicyEngine, PolicyPrompts
from adjudge.protocol import Score
from adjudge.rl_integration.adapters.failures import TooManyFailures
from adjudge.rl_integration.trainer.algorithms.objectives.advantages import GroupRelative
from adjudge.rl_integration.trainer.algorithms.objectives.objective import Objective
from adjudge.rl_integration.trainer.data.task import Rollout, Task, TaskOrder, TaskSource, check_tasks
from adjudge.rl_integration.trainer.loop.batches import Batch, Batches
from adjudge.rl_integration.trainer.loop.checkpoints import (
    Checkpoint,
    check_facts,
    drop_later,
    held,
    newest_checkpoint,
    run_facts,
    save_checkpoint,
    weights_digest,
)
from adjudge.rl_integration.trainer.loop.config import RunConfig
from adjudge.rl_integration.trainer.loop.evolution import Evolution
from adjudge.rl_integration.trainer.loop.guard import Guard
from adjudge.rl_integration.trainer.loop.learner import Learner
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.loop.prompt_states import prompt_states
from adjudge.rl_integration.trainer.loop.run_logger import STEPS, OnStep, RunLogger, Verdict, batch_facts, read_journal
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rewards.rewards import Rewards
from adjudge.rl_integration.trainer.rollouts.cohort_order import CohortOrder
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import Curriculum, Setting
from adjudge.rl_integration.trainer.rollouts.curricula.filters import ZeroVariance
from adjudge.rl_integration.trainer.rollouts.dialogue import Dialogue
from adjudge.rl_integration.trainer.rollouts.facts import Facts
from adjudge.rl_integration.trainer.rollouts.opening import open_generator, open_writer, window
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.task_reader import digest
from adjudge.rl_integration.trainer.rollouts.writer import Writer, check_room
from adjudge.rl_integration.watch.hacking import HackingWatch
from adjudge.scoring import registry


def _judge(config: RewardConfig, rewards: Rewards) -> str:
    """What a judge has in common with itself, whatever its limits and caches are."""
    return digest([config.server, rewards.fingerprint or config.scorer])


def open_curriculum(
    config: RunConfig,
    objective: Objective,
    policy: Policy,
    tasks: Sequence[Task],
    *,
    processes: Processes,
    source: TaskSource | None,
) -> Curriculum:
    """Return the curriculum of a run.

    Raises:
        ValueError: the curriculum or the improver cannot be used with these tasks, groups, or this source.
    """
    setting = Setting(
        tasks=tasks,
        seed=config.seed,
        num_generations=config.rollouts.num_generations,
        advantages=objective.rule or GroupRelative(),  # with a critic there is none before it has read the batch
        states=partial(prompt_states, policy, processes),
    )
    made = config.curriculum.made(setting)
    names = ", ".join(config.curriculum.names)
    if made.source is not None and source is not None:
        raise ValueError(f"the curriculum ({names}) draws tasks, and a source was given besides; give one of them")
    if (made.source is not None or made.rounds is not None) and any(task.cohort for task in tasks):
        raise ValueError(f"the curriculum ({names}) would part tasks that are scored together; take one that filters")
    if config.rollouts.tree is not None and (made.rounds is not None or config.improver.name):
        raise ValueError(
            f"the answers to a task share their beginnings (rollouts.tree) and are written at once, and "
            f"{names or config.improver.name} adds some later; take one of the two"
        )
    kept = made.filter
    if objective.resample:
        own = ZeroVariance().made(setting).filter
        kept = own if kept is None or own is None else kept.and_then(own)
    return replace(made, source=made.source or source, filter=kept)


_BEST = "best"
"""Folder in a run's folder: the policy that the gold scorer liked most, where there is one."""

_BEST_HELD_OUT = "best_held_out"
"""The same: the policy that was best on held-out tasks, where it is to be the one at the end."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What a run did.

    Attributes:
        steps: that are done, those before a resumption included.
        resumed: the step it was resumed at; 0 if it was not.
        stopped: why it ended before its last step; "" if it did not.
        rolled_back: the step whose policy was put back, 0 for the one before the first; None if none was.
        history: the numbers of every step.
        held_out: mean score on held-out tasks of the policy that it ended with; None if nothing could be measured.
    """

    steps: int
    resumed: int
    stopped: str
    rolled_back: int | None
    history: tuple[Mapping[str, float], ...]
    held_out: float | None = None


class Run:
    """A run of policy training.

    Args:
        policy: learns; it is changed, and moved to the GPU of its process (`Processes.place`), as is the reference.
        tasks: what it is trained on.
        config: how.
        folder: for checkpoints and the log.
        held_out: tasks that it is measured on.
        reference: the policy that divergences are measured from.
        source: says which tasks come next; in a shuffled order, if it is not given.
        processes: those that train together; by default those that a launcher started with this one.

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
        processes: Processes | None = None,
    ) -> None:
        self._processes = processes if processes is not None else Processes.joined()
        if config.rollouts.tasks < self._processes.world_size:
            raise ValueError(
                f"rollouts.tasks is {config.rollouts.tasks!r}, and there are {self._processes.world_size} processes, "
                "each of which answers some of a step's tasks; give at least as many tasks, or start fewer processes"
            )
        if config.learning.sharding == "none":  # else it goes there shard by shard
            self._processes.place(policy.model)
            if reference is not None:
                reference.model.to(policy.device)
        self.policy = policy
        self.config = config
        self.folder = folder
        self._tasks = {task.id: task for task in tasks}
        self._held_out = held_out
        self._watch = HackingWatch(config.watch) if config.watch is not None else None
        self._generator = open_generator(policy, config.rollouts)
        self._writer = open_writer(
            policy, self._generator, config.rollouts.tools, config.rollouts.tree, config.rollouts.user
        )
        self.told = Facts(config.rollouts.facts, config.steps, self._direct)
        tools, asked = config.rollouts.tools, [*tasks, *held_out]
        prompts = PolicyPrompts(
            self._writer.tokens,
            texts=bool(asked) and all(isinstance(task.prompt, str) for task in asked),
            around=None if tools is None or tools.style == "chat" else (tools.before, tools.after),
        )
        self._engine = PolicyEngine(policy, prompts)
        tree = config.rollouts.tree
        if isinstance(self._writer, Dialogue) and tree is not None and tree.kind == "scored":
            turns = config.reward.scorer if tree.scorer is None else tree.scorer
            if turns is None:
                raise ValueError("rollouts.tree.scorer is not set, and a server gives the reward; name a scorer")
            with lent(self._engine):
                self._writer.worth = registry.load(turns)
        if config.load_best_model_at_end and not held_out:
            raise ValueError("load_best_model_at_end is true, and there are no held-out tasks to measure on; give some")
        for side in (tasks, held_out):
            if side:  # a source may have tasks of its own
                check_tasks(side)
        check_room(
            self._writer,
            asked,
            max_new_tokens=config.rollouts.sampling.max_new_tokens,
            window=window(policy, config.rollouts),
        )
        self._learner = Learner(
            policy,
            config.made_objective(),
            config.learning,
            temperature=config.rollouts.sampling.temperature,
            steps=config.steps,
            seed=config.seed,
            reference=reference,
            credit=config.credit,
            processes=self._processes,
        )
        evolution = config.learning.evolution
        self._evolution = None
        if evolution is not None:
            self._evolution = Evolution(evolution, policy, self._processes, seed=config.seed)
        self._reference = reference
        self._curriculum = open_curriculum(
            config, self._learner.objective, policy, tasks, processes=self._processes, source=source
        )
        order = CohortOrder if any(task.cohort for task in tasks) else TaskOrder
        self._source = self._curriculum.source or order(tasks, seed=config.seed)

    def train(self, *, resume: bool = False, on_step: OnStep | None = None) -> RunResult:
        """Train to the last step; with several processes, in all of them.

        Raises:
            ValueError: another run writes the folder, or it has checkpoints and `resume` is false, or they are damaged
                or of another run.
            TooManyFailures: too many rollouts of a step could not be judged; a checkpoint was made.
            OtherProcessFailed: another process stopped.
        """
        with ExitStack() as stack:
            stack.enter_context(self._processes.ending_together())
            if self._processes.is_main_process:
                stack.enter_context(held(self.folder))
            self.folder.mkdir(parents=True, exist_ok=True)
            newest = newest_checkpoint(self.folder)
            if newest is not None and not resume:
                raise ValueError(
                    f"{str(self.folder)!r} holds checkpoints of an earlier run; resume it (--resume), name another "
                    "output, or delete the folder"
                )
            self._meet()
            self._facts = run_facts(self.config, self._tasks.values(), self.policy, self._reference)
            stack.callback(self._generator.close)
            # PyTorch's random numbers (dropout) are the run's own, and the caller's are put back.
            stack.enter_context(torch.random.fork_rng(devices=range(torch.cuda.device_count())))
            torch.manual_seed(self.config.seed * 1_000_003 + self._processes.rank)
            rewards = stack.enter_context(self.rewards(self.config.reward))
            own = self.config.measured_by
            examiner = rewards if own is None else stack.enter_context(self.rewards(own))
            self._judges = {"reward": _judge(self.config.reward, rewards)}
            asked = [[task.id, task.prompt, task.reference, dict(task.extra), task.begun] for task in self._held_out]
            self._judges["held_out"] = digest([_judge(own or self.config.reward, examiner), asked])
            batches = self._batches(stack, rewards)
            self._learner.begin_alike()
            resumed = self._restored(newest, batches) if newest is not None else 0
            if resumed != (first := self._processes.broadcast(resumed)):
                raise ValueError(
                    f"this process found the checkpoint of step {resumed} in {str(self.folder)!r}, and the first one "
                    f"that of step {first}; all processes must see the same folder"
                )
            book = self._book(stack, on_step, newest) if self._processes.is_main_process else None
            stopped, rolled_back = "", None
            if self.config.guard is not None and self._processes.broadcast(book is not None and book.opens):
                self._save(self.folder / _BEST, batches, keep=2)
            while self._learner.step < self.config.steps and not stopped:
                try:
                    numbers, batch = self._step(batches, examiner)
                except TooManyFailures:  # the answers wait in the checkpoint, to be judged again
                    self._save(self.folder, batches, keep=self.config.keep_checkpoints)
                    raise
                entered = Verdict() if book is None else book.enter(numbers, batch)
                verdict = self._processes.broadcast(entered)
                stopped = verdict.stopped
                if verdict.best:
                    self._save(self.folder / _BEST, batches, keep=2)
                better = verdict.best_held_out and self.config.load_best_model_at_end
                if better:
                    self._save(self.folder / _BEST_HELD_OUT, batches, keep=2, held_out=numbers["held_out"])
                if verdict.roll_back:
                    self._processes.broadcast(None)  # the first process has written it
                    rolled_back = self._put_back(self.folder / _BEST)
                step = self._learner.step
                # A resumed run never begins before the policy that it may have to end with.
                if stopped or better or step == self.config.steps or step % self.config.save_steps == 0:
                    self._save(self.folder, batches, keep=self.config.keep_checkpoints)
            if self.config.load_best_model_at_end:
                self._processes.broadcast(None)  # the first process has written it
                rolled_back = self._put_back(self.folder / _BEST_HELD_OUT)
            another = stopped or rolled_back is not None
            ended = self.evaluate(self._held_out, examiner) if another and self._held_out else {}
            self._processes.broadcast(None)  # the first one has written everything
        history = tuple(read_journal(self.folder, STEPS))
        return RunResult(
            steps=self._learner.step,
            resumed=resumed,
            stopped=stopped,
            rolled_back=rolled_back,
            history=history,
            held_out=(ended if another else history[-1] if history else {}).get("held_out"),
        )

    def _batches(self, stack: ExitStack, rewards: Rewards) -> Batches:
        with lent(self._engine):
            improver = self.config.improver.made(self.policy, list(self._tasks.values()))
        if improver is not None:
            stack.callback(improver.close)
        return Batches(
            self._source,
            self._writer,
            rewards,
            self.config,
            processes=self._processes,
            curriculum=self._curriculum,
            facts=self.told,
            improver=improver,
        )

    def rewards(self, config: RewardConfig) -> Rewards:
        """Return what asks for scores; scorers with `engine: policy` ask the policy of this run.

        Raises:
            ValueError: there is no such scorer, or it asks a policy that is in shards.
        """
        rewards = Rewards(config, policy=self._engine)
        if rewards.by_policy and self.config.learning.sharding != "none":
            rewards.close()
            raise ValueError(SHARDED)
        return rewards

    def put_back(self) -> int:
        """Put the newest checkpoint's weights in place, and return its step; 0 if there is none."""
        return self._put_back(self.folder) or 0

    def _put_back(self, folder: Path) -> int | None:
        newest = newest_checkpoint(folder)
        if newest is None:
            return None
        self._learner.put_back(newest.tensors)
        return newest.step

    def evaluate(self, tasks: Sequence[Task], rewards: Rewards) -> dict[str, float]:
        """Return the mean score of the likeliest answers to tasks, if any has one, and the share without a score.

        With several processes each must call it, and answers its share.
        """
        mine = self._processes.share(tasks, together=lambda task: task.cohort)
        mine = self.told.told(mine, self._learner.step)
        likeliest = replace(self.config.rollouts.sampling, temperature=0.0)
        named: dict[str, Any] = {"version": self._learner.step, "name": "held-out"}
        with self._gathered():
            _, own = self._writer.scored(rewards, mine, 1, likeliest, seed=0, **named)
        scores = self._processes.all_gather(own)
        values = [score.value for score in scores if score.value is not None]
        if values:
            self.told.measured(float(np.mean(values)))
        metrics = {"held_out_unscored": 1 - len(values) / len(scores)} if scores else {}
        return metrics | ({"held_out": float(np.mean(values))} if values else {})

    def answers(self, tasks: Sequence[Task], rewards: Rewards) -> tuple[list[Rollout], list[Score]]:
        """Return the group of each task with its scores, by the policy as it is; nothing is learnt of it."""
        config, version = self.config, self._learner.step
        drawn, size = self.told.told(tasks, version), config.rollouts.num_generations
        named: dict[str, Any] = {"version": version, "name": "answers", "seed": config.seed}
        with self._gathered():
            return self._writer.scored(rewards, drawn, size, config.rollouts.sampling, **named)

    def _direct(self, tasks: Sequence[Task]) -> list[str]:
        """What the policy answers without tools."""
        likeliest = replace(self.config.rollouts.sampling, temperature=0.0, top_p=1.0)
        named: dict[str, Any] = {"version": self._learner.step, "name": "direct", "on_rollout": lambda place, one: None}
        writer = Writer(self.policy, self._generator)
        return [one.text for one in writer.roll_out(tasks, 1, likeliest, seed=0, **named)]

    def _gathered(self) -> AbstractContextManager[None]:
        """Where the very model that learns writes, as many calls as it takes in each process, it is in no shards."""
        self._meet()
        return self.policy.gathered() if self.config.rollouts.engine == "transformers" else nullcontext()

    def _meet(self) -> None:
        """Wait here for whoever reads or writes a checkpoint: where shards are gathered, NCCL waits ten minutes."""
        if self.policy.shards is not None:
            self._processes.broadcast(None)

    def _step(self, batches: Batches, examiner: Rewards) -> tuple[dict[str, float], Batch]:
        began = time.perf_counter()
        rate = self.config.learning.learning_rate * self.config.learning.share(self._learner.step, self.config.steps)
        if self._evolution is not None:
            batch = self._evolution.step(batches, self._learner.step, learning_rate=rate)
            self._learner.step += 1
            numbers = dict(batch.numbers)
        else:
            with self._gathered():
                batch = batches.next(self._learner.step)
            learning = time.perf_counter()
            numbers = batch.numbers | self._learner.learn(
                batch.rollouts, batch.scores, exact=self._generator.exact, copies=batch.copies
            )
            numbers["seconds_learning"] = time.perf_counter() - learning
        numbers |= batch_facts(batch.drawn.rollouts, batch.drawn.scores, self._learner.step)
        numbers["learning_rate"] = rate
        step = self._learner.step
        every = self.config.eval_steps
        if self._held_out and (step == self.config.steps or (every and step % every == 0)):
            numbers |= self.evaluate(self._held_out, examiner)
        numbers["seconds"] = time.perf_counter() - began
        return {"step": step, **numbers}, batch

    def _book(self, stack: ExitStack, on_step: OnStep | None, newest: Checkpoint | None) -> RunLogger:
        """The journals, with those who look at each step; what others than the present judges measured is no rival."""
        guard, best, step, judges = None, self.folder / _BEST_HELD_OUT, self._learner.step, self._judges
        if self.config.guard is not None:
            gold = self.config.guard.gold
            guard = Guard(config=self.config.guard, rewards=stack.enter_context(self.rewards(gold)))
            judges["gold"] = _judge(gold, guard.rewards)
            drop_later(self.folder / _BEST, step)
        then = judges if newest is None else newest.record.get("judges", judges)
        drop_later(best, step)
        kept = newest_checkpoint(best)
        if kept is not None and kept.record.get("judges", {}).get("held_out") != judges["held_out"]:
            drop_later(best, -1)
            kept = None
        return RunLogger(
            self.folder,
            step=step,
            guard=guard,
            watch=self._watch,
            on_step=on_step,
            judged_anew=any(then.get(name) != judges.get(name) for name in ("reward", "gold")),
            best_held_out=-math.inf if kept is None else kept.record["held_out"],
        )

    def _save(self, folder: Path, batches: Batches, *, keep: int, held_out: float | None = None) -> None:
        """Write a checkpoint, for which all processes say where they are."""
        tensors, optimizer = self._learner.state()
        step, alike = self._learner.step, self.policy.shards is None
        digest = weights_digest(tensors.values()) if alike else ""  # of shards there is one copy
        states = {"cpu": torch.get_rng_state()}
        if torch.cuda.is_available():
            states["gpu"] = torch.cuda.get_rng_state()
        met = self._processes.all_gather([(digest, states)])
        if len({digest for digest, _ in met}) > 1:
            raise RuntimeError(f"the weights of the run's processes have come apart at step {step}; resume it")
        checkpoint = Checkpoint(
            step=step,
            tensors=tensors,
            random={f"{rank}.{name}": state for rank, (_, states) in enumerate(met) for name, state in states.items()},
            optimizer=optimizer,
            record={
                "step": step,
                "batches": batches.state(),
                "watch": self._watch.state() if self._watch is not None else None,
                "facts": self._facts,
                "judges": self._judges,
                "held_out": held_out,
            },
        )
        save_policy = self.policy.save if self.config.save_hf_ckpt and folder == self.folder else None
        if self._processes.is_main_process:
            save_checkpoint(folder, checkpoint, keep=keep, save_policy=save_policy)
        elif save_policy is not None:
            save_policy(None)

    def _restored(self, checkpoint: Checkpoint, batches: Batches) -> int:
        check_facts(checkpoint.record["facts"], self._facts)
        self._learner.restore(checkpoint.step, checkpoint.tensors, checkpoint.optimizer)
        batches.restore(checkpoint.record["batches"], self._tasks)
        if checkpoint.record.get("judges", self._judges)["held_out"] != self._judges["held_out"]:
            self.told.judged_anew()
        if self._watch is not None and checkpoint.record.get("watch") is not None:
            self._watch.restore(checkpoint.record["watch"])
        # A process that was not there before goes on with a seed of its own.
        for name, put in (("cpu", torch.set_rng_state), ("gpu", torch.cuda.set_rng_state)):
            state = checkpoint.random.get(f"{self._processes.rank}.{name}")
            if state is not None and (name == "cpu" or torch.cuda.is_available()):
                put(state)
        return checkpoint.step
