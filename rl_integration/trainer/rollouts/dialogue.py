"""Answers of several turns: the policy writes, calls a tool, reads what it says, and goes on.

Tokens are what counts.  What the policy wrote is never tokenized anew: the learner sees the very tokens that were
drawn, and between them those of the tools, which are not the policy's own, so no loss, no entropy and no divergence is
taken of them.

All open answers write their next piece side by side; calls run while other pieces are still being written.  A piece is
begun when all answers of its round have heard their tools, so it does not matter which tool was quicker.

Not covered: branching, and tools that remember a dialogue.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from adjudge.protocol import Message
from adjudge.rl_integration.trainer.contract.rollout import FinishReason, Rollout
from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.rollouts.calls import Call, CallStyle, TagCalls, Toolbox
from adjudge.rl_integration.trainer.rollouts.chat_calls import ChatCalls
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig
from adjudge.rl_integration.trainer.rollouts.tool import ToolAnswer, ToolDown, ToolUse
from adjudge.rl_integration.trainer.rollouts.writer import Generator, OnRollout, Piece, SingleTurn, Writer


def open_writer(policy: Policy, generator: Generator, tools: ToolUse | None) -> Writer:
    """Return what writes the answers of a run.

    Raises:
        ValueError: a tool cannot be opened, or the policy cannot call it in this style.
    """
    if tools is None:
        return SingleTurn(policy, generator)
    toolbox = Toolbox([choice.opened() for choice in tools.offered], threads=tools.threads)
    style: CallStyle
    if tools.style == "chat":
        style = ChatCalls(policy, toolbox.tools)
    else:
        style = TagCalls(policy, toolbox.tools, before=tools.before, after=tools.after)
    return Dialogue(policy, generator, style, toolbox, max_turns=tools.max_turns, timeout=tools.timeout)


class Dialogue:
    """Writes answers that call tools."""

    def __init__(
        self,
        policy: Policy,
        generator: Generator,
        style: CallStyle,
        toolbox: Toolbox,
        *,
        max_turns: int,
        timeout: float,
    ) -> None:
        self._policy = policy
        self._generator = generator
        self._style = style
        self._toolbox = toolbox
        self._max_turns = max_turns
        self._timeout = timeout

    def prompt(self, task: Task) -> tuple[int, ...]:
        """Return the task's prompt as tokens, with what it says of the tools."""
        return self._style.prompt(task)

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
        """Return answers; see `Writer`.

        `sampling.max_new_tokens` bounds all tokens after the prompt, those of the tools included.
        """
        prompts = [self._style.prompt(task) for task in tasks]
        answers = [
            _Answer(
                place=place,
                id=f"{name}:{place}",
                task=tasks[place // num_generations],
                prompt=prompts[place // num_generations],
                version=version,
                on_rollout=on_rollout,
            )
            for place in range(len(tasks) * num_generations)
        ]
        self._generator.refresh(version)
        for turn in range(self._max_turns):
            going = [answer for answer in answers if answer.done is None]
            if going:
                self._round(going, turn, num_generations, sampling, seed)
        found = [answer.done for answer in answers if answer.done is not None]
        assert len(found) == len(answers), "each piece that was asked for was told of"
        return found

    def _round(
        self, going: Sequence[_Answer], turn: int, num_generations: int, sampling: SamplingConfig, seed: int
    ) -> None:
        """Have the next piece of each open answer written, and its calls answered."""
        first, max_tokens = turn == 0, sampling.max_new_tokens
        asked: dict[int, tuple[Sequence[Call], Future[list[ToolAnswer]]]] = {}

        def on_piece(at: int, piece: Piece) -> None:
            answer = going[at]
            text = self._policy.decode(piece.ids[:-1] if piece.ended else piece.ids)
            answer.wrote(piece, text)
            calls = self._style.calls(text, ended=piece.ended)
            if not calls:
                answer.end(piece.finish_reason)
            elif turn + 1 == self._max_turns or len(answer.ids) >= max_tokens:
                answer.end("length")
            else:
                asked[at] = (calls, self._toolbox.ask(calls))

        self._generator.generate(
            [answer.prompt for answer in going[::num_generations]] if first else [answer.so_far for answer in going],
            num_generations if first else 1,
            sampling,
            seed=seed if first else random.Random(f"{seed}:{turn}").getrandbits(63),
            on_piece=on_piece,
            limits=None if first else [max_tokens - len(answer.ids) for answer in going],
            stops=self._style.stops,
        )
        timeout = self._timeout
        for at, (calls, future) in asked.items():  # in the order they were asked in: the rest is then already begun
            try:
                self._go_on(going[at], calls, future.result(timeout), max_tokens)
            except ToolDown as error:
                going[at].end("stop", str(error))
            except TimeoutError:
                timeout = 0.0  # what hangs hangs; only answers that are there already are still taken
                names = ", ".join(call.tool for call in calls)
                going[at].end("stop", fault=f"no answer of {names} within {self._timeout:g} s (rollouts.tools.timeout)")

    def _go_on(self, answer: _Answer, calls: Sequence[Call], told: Sequence[ToolAnswer], max_tokens: int) -> None:
        """Let an answer hear its tools, if there is room for that and for a token more."""
        texts = [self._style.shown(one.text) for one in told]
        ids = self._style.answered(texts)
        if len(answer.ids) + len(ids) >= max_tokens:
            answer.end("length")
            return
        answer.heard(
            ids,
            [
                {"role": "tool", "name": call.tool, "content": text, "ok": one.ok}
                for call, one, text in zip(calls, told, texts, strict=True)
            ],
        )


@dataclass(slots=True, kw_only=True)
class _Answer:
    """An answer on its way."""

    place: int
    id: str
    task: Task
    prompt: tuple[int, ...]
    version: int
    on_rollout: OnRollout
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    own: list[bool] = field(default_factory=list)
    turns: list[Message] = field(default_factory=list)
    done: Rollout | None = None

    @property
    def so_far(self) -> tuple[int, ...]:
        return (*self.prompt, *self.ids)

    def wrote(self, piece: Piece, text: str) -> None:
        """Take what the policy wrote."""
        self.ids += piece.ids
        self.logprobs += piece.logprobs
        self.own += [True] * len(piece.ids)
        self.turns.append({"role": "assistant", "content": text})

    def heard(self, ids: Sequence[int], turns: Sequence[Message]) -> None:
        """Take what tools said."""
        self.ids += ids
        self.logprobs += [0.0] * len(ids)
        self.own += [False] * len(ids)
        self.turns += turns

    def end(self, reason: FinishReason, fault: str = "") -> None:
        """Hand it over."""
        self.done = Rollout(
            id=self.id,
            task=self.task,
            prompt_ids=self.prompt,
            ids=tuple(self.ids),
            logprobs=np.asarray(self.logprobs, dtype=np.float32),
            own=np.asarray(self.own, dtype=np.bool_),
            text="\n".join(turn["content"] for turn in self.turns if turn["role"] == "assistant"),
            finish_reason=reason,
            version=self.version,
            turns=tuple(self.turns),
            fault=fault,
        )
        self.on_rollout(self.place, self.done)
