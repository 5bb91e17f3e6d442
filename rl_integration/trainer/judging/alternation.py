"""RL Tango: a generator and a verifier learn in turn, each from the other as it is.

    40 steps of the verifier on what the generator writes before it learns, then again and again
    3 steps of the generator, its steps credited by the verifier's present weights, and 1 step of the verifier

Two ordinary runs do the work.  A leg ends with a checkpoint of its run, and the next leg of that run goes on from it.
So whose turn it is follows from the steps that both have done, and an alternation that was killed goes on as if it had
not been.  What a generator's step wrote is kept in its folder for the verifier.  Source: arXiv 2505.15034, whose
repository holds no code.

Not covered: several processes, and guards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from adjudge.options import Options, Range
from adjudge.protocol import Score
from adjudge.responses.steps import Splitting
from adjudge.rl_integration.trainer.contract.rollout import Rollout
from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.judging.present_verifier import PresentVerifier
from adjudge.rl_integration.trainer.judging.solutions import Solutions, solutions_of
from adjudge.rl_integration.trainer.loop.checkpoints import newest_checkpoint
from adjudge.rl_integration.trainer.loop.logbook import OnStep
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.rewards.rewards import Rewards, Scoring
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.rl_integration.trainer.rollouts.writer import SingleTurn


@dataclass(frozen=True, kw_only=True)
class Turns(Options, what="turns option"):
    """Who learns when.

    Attributes:
        first: steps of the verifier before the generator's first.
        generator: steps of the generator in each round.
        verifier: steps of the verifier after them.
        splitting: where a step of a solution begins.
        right: the least outcome of a right solution.
    """

    first: Annotated[int, Range(ge=0)] = 40
    generator: Annotated[int, Range(ge=1)] = 3
    verifier: Annotated[int, Range(ge=1)] = 1
    splitting: Splitting = "blank_line"
    right: float = 1.0

    def needed(self, steps: int) -> int:
        """Return the verifier's steps by the time that the generator has done so many."""
        return self.first + -(-steps // self.generator) * self.verifier

    def next(self, generator: int, verifier: int, *, steps: int) -> tuple[bool, int]:
        """Return whether it is the generator's turn, and up to which step of its run."""
        if verifier < self.first:
            return False, self.first
        rounds, begun = divmod(verifier - self.first, self.verifier)
        end = min((rounds + 1) * self.generator, steps)
        if not begun and generator < end:
            return True, end
        return False, self.first + (rounds + 1) * self.verifier


class Alternation:
    """Trains both.

    Args:
        generator: its reward is `reward`, as an object.
        verifier: its source is `solutions`, and its reward the scorer `verdict_steps`.
        reward: what scores the generator's solutions with the verifier's weights.
        solutions: what the generator wrote lately.
        tasks: what the generator answers once before it learns, for the verifier to begin with.
        turns: who learns when.

    Raises:
        ValueError: the runs do not fit together.
    """

    def __init__(
        self,
        generator: Run,
        verifier: Run,
        *,
        reward: PresentVerifier,
        solutions: Solutions,
        tasks: Sequence[Task],
        turns: Turns,
    ) -> None:
        if generator.config.reward.scorer is not reward:
            raise ValueError("the generator's reward.scorer must be the very PresentVerifier that is given as reward")
        if verifier.config.rollouts.staleness:
            raise ValueError(
                f"the verifier's rollouts.staleness is {verifier.config.rollouts.staleness}; its tasks come from the "
                "generator's last step, so it must be 0"
            )
        if generator.config.guard is not None or verifier.config.guard is not None:
            raise ValueError("a guard would end one run's leg and not the alternation; leave guard out of both")
        needed = turns.needed(generator.config.steps)
        if verifier.config.steps < needed:
            raise ValueError(
                f"the verifier's run has {verifier.config.steps} steps, and beside {generator.config.steps} steps of "
                f"the generator it takes {needed}; set steps to that or more"
            )
        if not tasks:
            raise ValueError("there are no tasks for the generator to answer before it learns; give at least one")
        self._generator = generator
        self._verifier = verifier
        self._reward = reward
        self._solutions = solutions
        self._tasks = tasks
        self._turns = turns

    def train(
        self, *, resume: bool = False, on_generator: OnStep | None = None, on_verifier: OnStep | None = None
    ) -> tuple[int, int]:
        """Train until the generator has done all its steps; return the generator's steps and the verifier's.

        Args:
            resume: go on from the newest checkpoints, if there are any.
            on_generator: told of each of the generator's steps; true ends the alternation.
            on_verifier: the same of the verifier's.

        Raises:
            ValueError: there are checkpoints and `resume` is false.
            TooManyFailures: too many solutions of a step could not be judged.
        """
        if not resume and any(newest_checkpoint(run.folder) for run in (self._generator, self._verifier)):
            raise ValueError("the folders hold checkpoints of an earlier alternation; resume it, or name others")
        steps = self._generator.config.steps
        done = {True: self._generator.put_back(), False: self._verifier.put_back()}  # by whether it is the generator
        self._solutions.open(done[True])
        if not any(done.values()) and not self._solutions.count:
            self._begin()
        ended = False
        while not ended and (done[True] < steps or done[False] < self._turns.needed(steps)):
            generating, until = self._turns.next(done[True], done[False], steps=steps)
            self._reward.version = done[False]
            done[generating], ended = self._leg(generating, until, on_generator if generating else on_verifier)
        return done[True], done[False]

    def _leg(self, generating: bool, until: int, on_step: OnStep | None) -> tuple[int, bool]:
        """Let one of them learn up to a step; return its steps, and whether the alternation ends here."""
        ended = False

        def told(numbers: Mapping[str, float], rollouts: Sequence[Rollout], scores: Sequence[Score]) -> bool:
            nonlocal ended
            if generating:
                self._keep(int(numbers["step"]), rollouts, scores)
            ended = on_step is not None and bool(on_step(numbers, rollouts, scores))
            return ended or numbers["step"] >= until

        run = self._generator if generating else self._verifier
        result = run.train(resume=True, on_step=told)
        return result.steps, ended or result.steps < until

    def _begin(self) -> None:
        """Let the generator answer its tasks once, for the verifier to begin with."""
        config = self._generator.config
        policy = self._generator.policy
        with Rewards(replace(config.reward, scorer=self._reward.outcome)) as rewards:
            scoring = Scoring(rewards, self._tasks, config.rollouts.num_generations)
            rollouts = SingleTurn(policy, TransformersGenerator(policy)).roll_out(
                self._tasks,
                config.rollouts.num_generations,
                config.rollouts.sampling,
                seed=config.seed,
                version=0,
                name="begin",
                on_rollout=scoring.add,
            )
            self._keep(0, rollouts, scoring.wait()[0])

    def _keep(self, step: int, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> None:
        """Keep what the generator wrote."""
        kept = solutions_of(rollouts, scores, splitting=self._turns.splitting, right=self._turns.right)
        self._solutions.add(step, kept)
