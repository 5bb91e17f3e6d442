"""From tasks to rollouts: who writes answers, and further answers (more rounds, refinements, hints) scored as they end.

The prompt of a further answer may be another than its task's; its score is always that of an answer to the task as it
stands in the data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.protocol import Message, Score
from adjudge.rl_integration.trainer.data.task import FinishReason, Rollout, Task
from adjudge.rl_integration.trainer.rewards.rewards import Rewards, Scoring
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.rollouts.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Tokens that a model wrote in one go.

    Attributes:
        ids: the tokens, the end token included.
        logprobs: log-probability of each when it was drawn, in nats, at the temperature it was drawn with.
        finish_reason: "stop" if it ended or came to a stop text, "length" if it was cut off.
        ended: whether the last token is an end token.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: FinishReason
    ended: bool


OnPiece: TypeAlias = Callable[[int, Piece], None]
"""Told the place of a piece among those asked for, and the piece."""


class Generator(Protocol):
    """Goes on with rows of tokens."""

    @property
    def exact(self) -> bool:
        """Whether log-probabilities are those that the policy's own forward pass gives, but for rounding."""
        ...

    def refresh(self, version: int) -> None:
        """Write with the policy's weights as they are now.

        All processes of a run call it at each version, one without a prompt of its own, too, so an engine may meet its
        like there; how often `generate` is called depends on the answers of a process.
        """
        ...

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        copies: int,
        sampling: SamplingConfig,
        *,
        seed: int,
        on_piece: OnPiece,
        limits: Sequence[int] | None = None,
        stops: Sequence[str] = (),
    ) -> None:
        """Write `copies` pieces after each prompt; piece `c` of prompt `p` has the place `p * copies + c`.

        Args:
            prompts: rows of tokens, none of them empty.
            copies: pieces after each.
            sampling: how they are drawn.
            seed: the same seed, weights and prompts give the same pieces.
            on_piece: told each piece as soon as it ends, in the calling thread.
            limits: most tokens of the pieces after each prompt, where they are fewer than `sampling` allows.
            stops: texts that end a piece once its text contains one; the text stays in the piece.
        """
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...


OnRollout: TypeAlias = Callable[[int, Rollout], None]
"""Told the place of a rollout among those asked for, and the rollout."""


class Writer:
    """Answers tasks, here in one turn; those that branch or call tools derive from it."""

    def __init__(self, policy: Policy, generator: Generator) -> None:
        self._policy = policy
        self._generator = generator

    @property
    def tokens(self) -> PromptTokens:
        """What makes tokens of chats, as the policy reads them."""
        return self._policy.tokens

    def prompt(self, task: Task) -> tuple[int, ...]:
        """Return the tokens that answers to a task begin behind.

        Raises:
            ValueError: the prompt is empty, or cannot be written as tokens.
        """
        return self._policy.encode(task)

    def roll_out(
        self,
        tasks: Sequence[Task],
        num_generations: int,
        sampling: SamplingConfig,
        *,
        seed: int,
        version: int,
        name: str,
        on_rollout: OnRollout,
    ) -> list[Rollout]:
        """Return `num_generations` answers to each task, those of a task side by side.

        Args:
            tasks: what to answer.
            num_generations: answers to each.
            sampling: how they are drawn.
            seed: the same seed, policy and tasks give the same answers.
            version: how many updates the policy has seen.
            name: begins the ids of the answers.
            on_rollout: told each answer as soon as it ends.
        """
        prompts = [self.prompt(task) for task in tasks]
        rollouts: dict[int, Rollout] = {}

        def done(place: int, piece: Piece) -> None:
            at = place // num_generations
            rollouts[place] = Rollout(
                id=f"{name}:{place}",
                task=tasks[at],
                prompt_ids=prompts[at],
                ids=piece.ids,
                logprobs=np.asarray(piece.logprobs, dtype=np.float32),
                own=np.ones(len(piece.ids), dtype=np.bool_),
                text=self._policy.decode(piece.ids[:-1] if piece.ended else piece.ids),
                finish_reason=piece.finish_reason,
                version=version,
            )
            on_rollout(place, rollouts[place])

        self._generator.refresh(version)
        self._generator.generate(prompts, num_generations, sampling, seed=seed, on_piece=done, stops=sampling.stop)
        return [rollouts[place] for place in range(len(tasks) * num_generations)]

    def scored(
        self, rewards: Rewards, tasks: Sequence[Task], num_generations: int, sampling: SamplingConfig, **options: Any
    ) -> tuple[list[Rollout], list[Score]]:
        """Return answers as `roll_out` does, with its `seed`, `version` and `name`; and a score for each."""
        scoring = Scoring(rewards, tasks, num_generations)
        options["on_rollout"] = scoring.add
        rollouts = self.roll_out(tasks, num_generations, sampling, **options)
        return rollouts, scoring.wait()[0]


def check_room(writer: Writer, tasks: Iterable[Task], *, max_new_tokens: int, window: int) -> None:
    """Raise `ValueError` unless each task's prompt can be written, and leaves room for the longest answer."""
    for task in tasks:
        length = len(writer.prompt(task))
        if length + max_new_tokens > window:
            raise ValueError(
                f"the prompt of task {task.id!r} has {length} tokens, and with {max_new_tokens} of an answer "
                f"(rollouts.sampling.max_new_tokens) that is more than the {window} that are read; lower "
                "max_new_tokens, or leave long prompts out (data.max_prompt_tokens)"
            )


def alike(beginnings: Sequence[Hashable]) -> Iterator[tuple[int, list[int]]]:
    """Yield how many places side by side have one beginning, which is then read once, and all places of such runs."""
    runs: list[list[int]] = []
    for place, beginning in enumerate(beginnings):
        if runs and beginnings[runs[-1][0]] == beginning:
            runs[-1].append(place)
        else:
            runs.append([place])
    for copies in sorted({len(run) for run in runs}):
        yield copies, [place for run in runs if len(run) == copies for place in run]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Answers to one task, and a score for each."""

    rollouts: list[Rollout]
    scores: list[Score]

    @property
    def values(self) -> list[float | None]:
        """What the scores say; None where an answer could not be judged."""
        return [score.value for score in self.scores]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What to write.

    Attributes:
        task: what is to be answered.
        count: how many answers.
        prompt: what the policy is shown instead of the task's prompt; None for that.
        origin: of the answers, for their record.
        learnt_after: tokens of the prompt that the answers are learnt to follow, where these are not the ones they were
            written to; what the policy thinks of them there is not known yet, so their log-probabilities are NaN.
    """

    task: Task
    count: int
    prompt: str | Sequence[Message] | None = None
    origin: str = "policy"
    learnt_after: tuple[int, ...] | None = None


class Answering:
    """Writes answers and has them scored.

    Args:
        writer: writes.
        rewards: where scores come from.
        sampling: how answers are drawn.
        version: updates that the policy has seen.
        name: begins the ids of the answers.
        seed: whole numbers that no other batch and no other process has.
    """

    def __init__(
        self,
        writer: Writer,
        rewards: Rewards,
        sampling: SamplingConfig,
        *,
        version: int,
        name: str,
        seed: Sequence[int],
    ) -> None:
        self._writer = writer
        self._rewards = rewards
        self._sampling = sampling
        self._version = version
        self._name = name
        self._seed = seed
        self._calls = 0
        self.seconds_writing = 0.0
        self.seconds_waiting = 0.0

    @property
    def max_new_tokens(self) -> int:
        """Most tokens of an answer."""
        return self._sampling.max_new_tokens

    def scored(self, asks: Sequence[Ask]) -> list[Answered]:
        """Return what was asked for, in order."""
        answered: dict[int, Answered] = {}
        scorings: list[tuple[list[int], int, Scoring, list[Rollout]]] = []
        began = time.perf_counter()
        for count in sorted({ask.count for ask in asks}):
            places = [place for place, ask in enumerate(asks) if ask.count == count]
            scoring = Scoring(self._rewards, [asks[place].task for place in places], count)
            scorings.append((places, count, scoring, self._written([asks[place] for place in places], count, scoring)))
        self.seconds_writing += time.perf_counter() - began
        for places, count, scoring, rollouts in scorings:
            scores, seconds = scoring.wait()
            self.seconds_waiting += seconds
            for at, place in enumerate(places):
                part = slice(at * count, (at + 1) * count)
                answered[place] = Answered(rollouts=rollouts[part], scores=scores[part])
        return [answered[place] for place in range(len(asks))]

    def judged(self, rollouts: Sequence[Rollout]) -> list[Answered]:
        """Return answers that are there already, each with its score; one by itself, also where groups are compared."""
        scores = self._scores([rollout.task for rollout in rollouts], 1, rollouts)
        return [Answered(rollouts=[one], scores=[score]) for one, score in zip(rollouts, scores, strict=True)]

    def texts(self, asks: Sequence[Ask]) -> list[str]:
        """Return the first answer's text of each, without a score."""
        began = time.perf_counter()
        rollouts = self._written(asks, 1, None)
        self.seconds_writing += time.perf_counter() - began
        return [rollout.text for rollout in rollouts]

    def joined(self, group: Answered, more: Answered) -> Answered:
        """Return a group with further members; a scorer that compares members sees the whole group anew."""
        rollouts = [*group.rollouts, *more.rollouts]
        if not self._rewards.by_group:
            return Answered(rollouts=rollouts, scores=[*group.scores, *more.scores])
        return Answered(rollouts=rollouts, scores=self._scores([rollouts[0].task], len(rollouts), rollouts))

    def _scores(self, tasks: Sequence[Task], count: int, rollouts: Sequence[Rollout]) -> list[Score]:
        scoring = Scoring(self._rewards, tasks, count)
        for place, rollout in enumerate(rollouts):
            scoring.add(place, rollout)
        scores, seconds = scoring.wait()
        self.seconds_waiting += seconds
        return scores

    def _written(self, asks: Sequence[Ask], count: int, scoring: Scoring | None) -> list[Rollout]:
        """Answers to asks of one count, side by side; told to the scoring as they end."""
        rollouts: dict[int, Rollout] = {}

        def done(place: int, written: Rollout) -> None:
            ask = asks[place // count]
            answer = replace(written, task=ask.task, origin=ask.origin)
            if ask.learnt_after is not None:
                unknown = np.full_like(written.logprobs, np.nan)
                answer = replace(answer, prompt_ids=ask.learnt_after, logprobs=unknown)
            rollouts[place] = answer
            if scoring is not None:
                scoring.add(place, rollouts[place])

        shown = [ask.task if ask.prompt is None else replace(ask.task, prompt=ask.prompt) for ask in asks]
        self._calls += 1
        seed = np.random.SeedSequence([*self._seed, self._calls]).generate_state(1)[0]
        self._writer.roll_out(
            shown,
            count,
            self._sampling,
            seed=int(seed),
            version=self._version,
            name=f"{self._name}.{self._calls}",
            on_rollout=done,
        )
        return [rollouts[place] for place in range(len(asks) * count)]
