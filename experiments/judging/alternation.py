"""RL Tango: a generator and a verifier learn in turn, each from the other as it is (arXiv 2505.15034, without code).

    40 steps of the verifier on what the generator writes before it learns, then again and again
    3 steps of the generator, its steps credited by the verifier's present weights, and 1 step of the verifier

Two ordinary runs do the work.  A leg ends with a checkpoint of its run, and the next leg of that run goes on from it.
So whose turn it is follows from the steps that both have done, and an alternation that was killed goes on as if it had
not been.  What a generator's step wrote is kept in its folder for the verifier.

Not covered: several processes, and guards.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from adjudge.options import Count, Options, Range
from adjudge.prompts.template import load_template
from adjudge.protocol import Provenance, Sample, Score, StepScore, response_text
from adjudge.responses.steps import Splitting, Step, split_steps
from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.judge_tasks.pairs import Prompt
from adjudge.rl_integration.trainer.loop.checkpoints import newest_checkpoint
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.loop.run_logger import Journal, OnStep, read_journal
from adjudge.rl_integration.trainer.rewards.rewards import Rewards
from adjudge.rl_integration.trainer.rollouts.curricula.improvers import fits
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.rl_integration.trainer.rollouts.writer import Writer
from adjudge.runtime.contract import score_checked, validate_sample
from adjudge.scoring.api import load

AskSteps: TypeAlias = Callable[[Prompt, Sequence[str]], Prompt]
"""The prompt that shows a verifier a question and the steps of a solution."""


def ask_steps() -> AskSteps:
    """Return what asks for verdicts on the steps of a solution and on the whole (RL Tango)."""
    template = load_template(Path(__file__).with_name("steps.prompt"))

    def ask(question: Prompt, steps: Sequence[str]) -> Prompt:
        # Further lines of a step are indented, so that they cannot be taken for steps of their own.
        indented = [step.strip().replace("\n", "\n   ") for step in steps]
        numbered = "\n".join(f"{number}. {step}" for number, step in enumerate(indented, start=1))
        return template.render({"question": question, "steps": numbered}).messages

    return ask


SOLUTIONS = "solutions.jsonl"
"""File in the generator's folder: what was written at each step, for a run that is resumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A solution that was judged by its outcome; it has one step at least."""

    question: Prompt
    steps: tuple[str, ...]
    right: bool


class Solutions:
    """The newest solutions, as a source of the verifier's tasks: as many right as wrong ones, while there are both.

    A verifier that sees one kind alone learns to say nothing else; RL Tango scales advantages instead.
    """

    def __init__(self, folder: Path, ask: AskSteps, *, seed: int, newest: int = 512) -> None:
        if newest < 1:
            raise ValueError(f"newest is {newest!r}; a verifier needs at least one solution to judge")
        self._folder = folder
        self._ask = ask
        self._seed = seed
        self._draws = 0
        self._newest: deque[tuple[str, Solution]] = deque(maxlen=newest)
        self._journal: Journal | None = None

    @property
    def count(self) -> int:
        """How many solutions are drawn from."""
        return len(self._newest)

    def open(self, step: int) -> None:
        """Read what was kept up to a step of the generator; what a killed process left of later ones is dropped."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._journal = Journal(self._folder, SOLUTIONS, step=step)
        self._newest.clear()
        for line in read_journal(self._folder, SOLUTIONS):
            kept = [Solution(**{**record, "steps": tuple(record["steps"])}) for record in line["solutions"]]
            self._take(line["step"], kept)

    def add(self, step: int, solutions: Sequence[Solution]) -> None:
        """Keep what the generator wrote at a step."""
        assert self._journal is not None, "opened before the first leg"
        self._journal.write({"step": step, "solutions": [asdict(solution) for solution in solutions]})
        self._take(step, solutions)

    def draw(self, count: int) -> list[Task]:
        """Return so many tasks, half of them right as far as there are both; none twice, if there are enough.

        Raises:
            ValueError: there are no solutions.
        """
        kinds = [[one for one in self._newest if one[1].right == right] for right in (True, False)]
        if not any(kinds):
            raise ValueError(
                "there is no solution for the verifier to judge: none of the generator's answers has a judged outcome "
                "and a step in it"
            )
        order = random.Random(f"{self._seed}:{self._draws}")
        self._draws += 1
        for kind in kinds:
            order.shuffle(kind)
        drawn: list[tuple[str, Solution]] = []
        while len(drawn) < count:
            kind = kinds[len(drawn) % 2] or kinds[1 - len(drawn) % 2]
            if not kind:  # fewer solutions than tasks: begin anew
                kinds = [[one for one in self._newest if one[1].right == right] for right in (True, False)]
                continue
            drawn.append(kind.pop())
        return [self._task(f"{self._draws}.{place}:{name}", solution) for place, (name, solution) in enumerate(drawn)]

    def observe(self, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Mapping[str, float]:
        """Return the share of right solutions among those judged, and of the judgements by kind that are right."""
        shares: dict[str, float] = {}
        rights = [bool(rollout.task.reference["verdict"]) for rollout in rollouts]
        shares["solutions_right"] = sum(rights) / len(rights) if rights else 0.0
        for right, name in ((True, "right_seen"), (False, "wrong_seen")):
            own = [
                score.evidence.get("final") == int(right)
                for score, kind in zip(scores, rights, strict=True)
                if kind == right and score.status == "scored"
            ]
            if own:
                shares[name] = sum(own) / len(own)
        return shares

    def state(self) -> dict[str, Any]:
        """Return how often it was drawn from; the solutions are in the generator's folder."""
        return {"draws": self._draws}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._draws = state["draws"]

    def _take(self, step: int, solutions: Sequence[Solution]) -> None:
        self._newest.extend((f"{step}.{number}", solution) for number, solution in enumerate(solutions))

    def _task(self, name: str, solution: Solution) -> Task:
        return Task(
            id=name,
            prompt=self._ask(solution.question, solution.steps),
            reference={"verdict": solution.right, "steps": len(solution.steps)},
        )


class PresentVerifier:
    """Scores solutions by their outcome, and their steps by a policy as it is now.

        value = the outcome scorer's;   steps = -1 or 1 each, as the verifier writes them with its weights of this
        moment

    The verifier reads the question and the steps, without the reference, and answers with the likeliest text.  Where
    its text has not one verdict for each step, or its window is too small, the outcome alone counts.  It takes whole
    groups, so that the answers that are read side by side, on which rounding depends, are always the
    same.
    """

    name = "present_verifier"
    groupwise = True

    def __init__(
        self, policy: Policy, outcome: Any, ask: AskSteps, *, max_new_tokens: int, splitting: Splitting = "blank_line"
    ) -> None:
        self.version = 0  # updates that the verifier has seen
        self._policy = policy
        self.outcome = load(outcome)
        self._reader = load("verdict_steps")
        self._ask = ask
        self._sampling = SamplingConfig(max_new_tokens=max_new_tokens, temperature=0.0)
        self._splitting: Splitting = splitting
        self._writer = Writer(policy, TransformersGenerator(policy))
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
        scores = dict(enumerate(outcomes))
        for places in groups.values():
            members = [samples[place] for place in places]
            for place, steps in zip(places, await self._steps(members), strict=True):
                scores[place] = replace(scores[place], steps=steps)
        origin = Provenance(scorer=self.name, fingerprint=self.fingerprint)
        return [replace(scores[place], provenance=origin) for place in range(len(samples))]

    async def _steps(self, samples: Sequence[Sample]) -> list[tuple[StepScore, ...]]:
        """The verdicts on the steps of each solution; none where they are not known."""
        split = [split_steps(response_text(sample), self._splitting) for sample in samples]
        tasks = {
            place: Task(id=str(place), prompt=self._ask(sample.prompt, [step.text for step in steps]))
            for place, (sample, steps) in enumerate(zip(samples, split, strict=True))
            if steps
        }
        room = self._sampling.max_new_tokens
        readable = {place: task for place, task in tasks.items() if fits(self._policy, task, room)}
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


@dataclass(frozen=True, kw_only=True)
class Turns(Options, what="turns option"):
    """Who learns when: the verifier before the generator's first step, and then each in turn.

    Attributes:
        splitting: where a step of a solution begins.
        right: the least outcome of a right solution.
    """

    first: Annotated[int, Range(ge=0)] = 40
    generator: Count = 3
    verifier: Count = 1
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

        def stops(numbers: Mapping[str, float], rollouts: Sequence[Rollout], scores: Sequence[Score]) -> bool:
            nonlocal ended
            if generating:
                self._keep(int(numbers["step"]), rollouts, scores)
            ended = on_step is not None and bool(on_step(numbers, rollouts, scores))
            return ended or numbers["step"] >= until

        run = self._generator if generating else self._verifier
        result = run.train(resume=True, on_step=stops)
        return result.steps, ended or result.steps < until

    def _begin(self) -> None:
        """Let the generator answer its tasks once, for the verifier to begin with."""
        config = self._generator.config
        policy = self._generator.policy
        with Rewards(replace(config.reward, scorer=self._reward.outcome)) as rewards:
            writer, own = Writer(policy, TransformersGenerator(policy)), config.rollouts
            rollouts, scores = writer.scored(
                rewards, self._tasks, own.num_generations, own.sampling, seed=config.seed, version=0, name="begin"
            )
            self._keep(0, rollouts, scores)

    def _keep(self, step: int, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> None:
        """Keep what can be learnt from: solutions with a judged outcome and at least one step."""
        kept = []
        for rollout, score in zip(rollouts, scores, strict=True):
            steps = tuple(step.text for step in split_steps(response_text(rollout.sample()), self._turns.splitting))
            if score.value is not None and steps:
                right = score.value >= self._turns.right
                kept.append(Solution(question=rollout.task.prompt, steps=steps, right=right))
        self._solutions.add(step, kept)
