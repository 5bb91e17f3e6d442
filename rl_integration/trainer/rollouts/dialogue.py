"""Answers of several turns: the policy writes, calls a tool or is answered by a user, reads that, and goes on.

What the policy wrote is never tokenized anew: the learner sees the very tokens that were drawn, and between them those
of the others, which are not the policy's own, so no loss, no entropy and no divergence is taken of them.  All open
answers write their next piece side by side, once all have heard what they wait for, so it does not matter who was
quicker.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.protocol import Message, Sample, Scorer
from adjudge.rl_integration.trainer.data.task import SESSION, FinishReason, Rollout, Task
from adjudge.rl_integration.trainer.rollouts.calls import Call, TagCalls, Toolbox, Turns, plain_tokens
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig, TreeConfig
from adjudge.rl_integration.trainer.rollouts.tool import ToolAnswer, ToolDown
from adjudge.rl_integration.trainer.rollouts.user import Reply, User, hearing
from adjudge.rl_integration.trainer.rollouts.writer import Generator, OnRollout, Piece, Writer, alike
from adjudge.runtime.contract import score_checked
from adjudge.runtime.loop import run_blocking


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """A user, how their turns are written, how many turns the policy has, and how long a reply may take, in seconds."""

    user: User
    turns: Turns
    max_turns: int
    timeout: float


class Dialogue(Writer):
    """Writes answers that others speak in; in a tree, a node is a piece with what its tools or the user said.

    The user, where there is one, hears each turn that ends without a call, and the last one however it ends.

    "segments" forks after every turn; the others fork finished answers before some of their later turns.

    Attributes:
        worth: the scorer of turns that "scored" forks behind; set before it writes.
    """

    worth: Scorer | None = None

    def __init__(
        self,
        policy: Policy,
        generator: Generator,
        style: Turns | TagCalls,
        toolbox: Toolbox | None = None,
        *,
        max_turns: int = 1,
        timeout: float = 300.0,
        tree: TreeConfig | None = None,
        user: Listening | None = None,
    ) -> None:
        super().__init__(policy, generator)
        self._user = user
        self._tree = tree
        self._style = style
        self._toolbox = toolbox
        self._max_turns = max_turns
        self._timeout = timeout

    @property
    def tokens(self) -> PromptTokens:
        """What makes tokens of chats, with what the policy is told of the tools."""
        return self._style.tokens

    def prompt(self, task: Task) -> tuple[int, ...]:
        """Return the tokens that answers to a task begin behind, with what they say of the tools.

        Raises:
            ValueError: the prompt cannot be written, or is a text, and a user answers in turns of a chat.
        """
        if self._user is not None and isinstance(task.prompt, str):
            raise ValueError(
                f"the prompt of task {task.id!r} is a text, and a user answers in a chat; give it as a chat "
                "(data.chat: true)"
            )
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

        `sampling.max_new_tokens` bounds all tokens after the prompt, those of others included.

        Raises:
            ValueError: groups of that size cannot branch as they should.
        """
        tree = self._tree if num_generations > 1 else None
        if tree is not None:
            tree.check(num_generations)
        talk = _Talk(sampling=sampling, seed=seed, width=tree.width if tree is not None else 1)
        roots = tree.trees if tree is not None else num_generations
        size = num_generations // roots
        grows = tree is not None and tree.kind == "segments"
        started = [
            answer
            for at, task in enumerate(tasks)
            for answer in _Answer(
                place=at * num_generations,
                name=name,
                group=at,
                task=task,
                prompt=self.prompt(task),
                version=version,
                on_rollout=on_rollout,
                leaves=num_generations,
                nodes=None if tree is None else (),
            ).split(roots)
        ]
        self._generator.refresh(version)
        if tree is None or grows:
            answers = self._talked(started, talk)
        else:
            answers = self._talked([replace(answer, leaves=1) for answer in started], talk)
            draw = random.Random(f"{seed}:nodes")
            worths = self._worths(answers) if tree.kind == "scored" else [()] * len(answers)
            forks = [
                one
                for answer, worth in zip(answers, worths, strict=True)
                for one in answer.forked(tree, size - 1, draw, worth)
            ]
            for fork in forks:
                self._hint(fork, tree.hints, sampling.max_new_tokens)
            answers += self._talked(forks, talk)
        rollouts = {answer.place: answer.done for answer in answers}
        return [done for place in range(len(tasks) * num_generations) if (done := rollouts[place]) is not None]

    def _worths(self, answers: Sequence[_Answer]) -> list[list[float | None]]:
        """What each turn of each answer is worth; an answer that the scorer cannot judge forks nowhere."""
        if self.worth is None:
            raise ValueError("rollouts.tree.kind is 'scored', and the scorer of turns is not open")
        scores = run_blocking(score_checked(self.worth, [answer.sample() for answer in answers]))
        if all(score.status == "failed" for score in scores):
            raise RuntimeError(f"rollouts.tree.scorer judged none of {len(scores)} answers: {scores[0].reason}")
        return [[step.value for step in score.steps] for score in scores]

    def _hint(self, fork: _Answer, hints: Sequence[str], max_tokens: int) -> None:
        """Put a hint behind what a fork has heard; one without a turn, or without room, gets none."""
        if not hints or not fork.turns:
            return
        hint = hints[fork.copy % len(hints)]
        ids = plain_tokens(self._policy, f"{hint}\n")
        if len(fork.ids) + len(ids) < max_tokens:
            fork.hinted(hint, ids)

    def _talked(self, going: list[_Answer], talk: _Talk) -> list[_Answer]:
        """Write answers to their ends, and those that they branch into."""
        ended = []
        while going:
            self._round(going, talk)
            ended += [answer for answer in going if answer.done is not None]
            # Where an answer ends before it has branched often enough, the missing ones begin at the prompt.
            going = [
                branch
                for answer in going
                for branch in (answer.split(talk.width) if answer.done is None else answer.missing())
            ]
        return ended

    def _round(self, going: Sequence[_Answer], talk: _Talk) -> None:
        """Have the next piece of each open answer written, and answered."""
        max_tokens = talk.sampling.max_new_tokens
        asked: dict[int, _Asked] = {}

        def on_piece(places: Sequence[int], at: int, piece: Piece) -> None:
            answer = going[places[at]]
            text = self._policy.decode(piece.ids[:-1] if piece.ended else piece.ids)
            answer.wrote(piece, text)
            calls = self._style.calls(text, ended=piece.ended)
            more = answer.tries < self._max_turns and len(answer.ids) < max_tokens
            if calls and self._toolbox is not None and more:
                asked[places[at]] = _Asked(calls=calls, future=self._toolbox.ask(calls), reason=None)
                return
            reason: FinishReason = "length" if calls else piece.finish_reason
            if self._user is None:
                answer.end(reason)
                return
            last = reason == "length" or answer.turned == self._user.max_turns
            heard = hearing(self._user.user, answer.sample(), last=last)
            asked[places[at]] = _Asked(calls=(), future=heard, reason=reason if last else None)

        for copies, places in alike([answer.beginning for answer in going]):
            heads = [going[at] for at in places[::copies]]
            self._generator.generate(
                [(*answer.prompt, *answer.ids) for answer in heads],
                copies,
                talk.sampling,
                seed=talk.next_seed(),
                on_piece=partial(on_piece, places),
                limits=[max_tokens - len(answer.ids) for answer in heads] if any(one.ids for one in heads) else None,
                stops=self._style.stops,
            )
        hung: set[str] = set()  # what hangs hangs; only answers that are there already are still taken
        for at in sorted(asked):  # in the order they were asked in: the rest is then already begun
            one = asked[at]
            option, timeout = (
                ("tools", self._timeout) if self._user is None or one.calls else ("user", self._user.timeout)
            )
            try:
                told = one.future.result(0.0 if option in hung else timeout)
            except ToolDown as error:
                going[at].end("stop", str(error))
            except TimeoutError:
                hung.add(option)
                if not one.calls:  # a thread cannot be told
                    one.future.cancel()
                names = ", ".join(call.tool for call in one.calls) or "the user"
                going[at].end("stop", fault=f"no answer of {names} within {timeout:g} s (rollouts.{option}.timeout)")
            else:
                self._told(going[at], one, told, max_tokens)

    def _told(self, answer: _Answer, asked: _Asked, told: Sequence[ToolAnswer] | Reply, max_tokens: int) -> None:
        """Put what tools or a user said behind an answer, or end it."""
        turns: list[Message]
        if isinstance(told, Reply):
            answer.session = told.session
            if asked.reason is not None or not told.text.strip():
                answer.end(asked.reason or "stop")
                return
            assert self._user is not None
            writes: Turns | TagCalls = self._user.turns
            turns = [{"role": "user", "content": writes.shown(told.text)}]
        else:
            writes = self._style
            turns = [
                {"role": "tool", "name": call.tool, "content": writes.shown(one.text), "ok": one.ok}
                for call, one in zip(asked.calls, told, strict=True)
            ]
        ids = writes.answered([turn["content"] for turn in turns])
        if len(answer.ids) + len(ids) >= max_tokens:  # no room for that and for a token more
            answer.end("length")
        else:
            answer.heard(ids, turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What an answer waits for: of its calls, or, without any, of the user; and with what it ends then, if it does."""

    calls: Sequence[Call]
    future: Future[list[ToolAnswer]] | Future[Reply]
    reason: FinishReason | None


@dataclass(kw_only=True)
class _Talk:
    """What all answers of a call have in common, and the seeds of its rounds."""

    sampling: SamplingConfig
    seed: int
    width: int
    calls: int = 0

    def next_seed(self) -> int:
        """A seed for each call of the generator: the batch's own first."""
        self.calls += 1
        return self.seed if self.calls == 1 else random.Random(f"{self.seed}:{self.calls - 1}").getrandbits(63)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """A piece of an answer with what it was told: its name, where it ends in the answer's lists, the user's session."""

    name: str
    tokens: int
    turns: int
    logprob: float
    session: Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class _Answer:
    """An answer on its way, or the beginning of several.

    Attributes:
        place: of the first answer that it becomes.
        group: the place of its task.
        leaves: how many answers it is to become.
        nodes: its turns, in a tree; None for an answer that shares none.
        copy: which of those it is that go on from one turn.
        hint: what it was told where it went on, since its last piece.
    """

    place: int
    name: str
    group: int
    task: Task
    prompt: tuple[int, ...]
    version: int
    on_rollout: OnRollout
    leaves: int
    nodes: tuple[_Node, ...] | None
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    own: list[bool] = field(default_factory=list)
    turns: list[Message] = field(default_factory=list)
    pieces: int = 0
    session: Mapping[str, Any] = field(default_factory=dict)
    copy: int = 0
    hint: str = ""
    done: Rollout | None = None

    @property
    def turned(self) -> int:
        """How often the policy has had its turn, this time included."""
        return 1 + [turn["role"] for turn in self.turns].count("user")

    @property
    def tries(self) -> int:
        """How many pieces it has written in this turn of its own."""
        roles = [str(turn["role"]) for turn in self.turns]
        begin = max((at for at, role in enumerate(roles) if role == "user"), default=0)
        return roles[begin:].count("assistant")

    def sample(self) -> Sample:
        """Return it as far as it is, for the user."""
        sample = self.task.sample(tuple(self.turns), id=f"{self.name}:{self.place}", finish_reason=None)
        return replace(sample, extra={**sample.extra, SESSION: self.session}) if self.session else sample

    @property
    def beginning(self) -> tuple[Any, ...]:
        """What answers side by side have in common that go on from the same tokens, read once."""
        if not self.ids:
            return (self.group, self.leaves > 1)
        shared = self.nodes[-1].name if self.nodes else self.place
        return (shared, self.hint, self.leaves > 1)

    def split(self, width: int) -> list[_Answer]:
        """Return the branches that it goes on with, which share its places evenly."""
        count = min(width, self.leaves)
        if count == 1:
            return [self]
        edges = [self.place + self.leaves * part // count for part in range(count + 1)]
        return [self._copy(begin, end - begin, len(self.nodes or ())) for begin, end in pairwise(edges)]

    def missing(self) -> list[_Answer]:
        """Return answers that begin at the prompt, for the places that it did not become."""
        return [self._copy(place, 1, 0) for place in range(self.place + 1, self.place + self.leaves)]

    def forked(
        self, tree: TreeConfig, count: int, draw: random.Random, worth: Sequence[float | None] = ()
    ) -> list[_Answer]:
        """Return so many answers that begin as this one did, before the turns that the tree's kind picks.

        `worth` are the values of its turns, for "scored"; what has none is not forked behind.
        """
        nodes = self.nodes or ()
        later = list(range(1, len(nodes)))
        if tree.kind == "random":
            draw.shuffle(later)
        elif tree.kind == "scored":
            gains = {turn: -gain for turn in later[: len(worth)] if (gain := worth[turn - 1]) is not None}
            later = sorted(gains, key=lambda turn: (gains[turn], turn))
        else:
            later.sort(key=lambda turn: (nodes[turn].logprob, turn))
        kept = [(turn, copy) for turn in sorted(later[: tree.forks]) for copy in range(tree.copies)]
        kept += [(0, 0)] * (count - len(kept))
        forks = [self._copy(self.place + 1 + at, 1, turn) for at, (turn, _) in enumerate(kept)]
        return [replace(fork, copy=copy) for fork, (_, copy) in zip(forks, kept, strict=True)]

    def _copy(self, place: int, leaves: int, turns: int) -> _Answer:
        nodes = None if self.nodes is None else self.nodes[:turns]
        tokens, messages = (nodes[-1].tokens, nodes[-1].turns) if nodes else (0, 0)
        return replace(
            self,
            place=place,
            leaves=leaves,
            nodes=nodes,
            ids=self.ids[:tokens],
            logprobs=self.logprobs[:tokens],
            own=self.own[:tokens],
            turns=self.turns[:messages],
            pieces=turns,
            session=nodes[-1].session if nodes else {},
            done=None,
        )

    def wrote(self, piece: Piece, text: str) -> None:
        """Take what the policy wrote."""
        self.ids += piece.ids
        self.logprobs += piece.logprobs
        self.own += [True] * len(piece.ids)
        self.turns.append({"role": "assistant", "content": text})
        self.pieces += 1
        if self.nodes is not None:
            mean = sum(piece.logprobs) / max(1, len(piece.logprobs))
            node = _Node(name=f"{self.name}:{self.place}.{self.pieces}", tokens=0, turns=0, logprob=mean, session={})
            self.nodes = (*self.nodes, node)
            self._closed()

    def heard(self, ids: Sequence[int], turns: Sequence[Message]) -> None:
        """Take what tools or the user said."""
        self.ids += ids
        self.logprobs += [0.0] * len(ids)
        self.own += [False] * len(ids)
        self.turns += turns
        self._closed()

    def hinted(self, hint: str, ids: Sequence[int]) -> None:
        """Take what is told to this answer alone: it belongs to the piece that it writes next."""
        self.hint = hint
        self.ids += ids
        self.logprobs += [0.0] * len(ids)
        self.own += [False] * len(ids)
        self.turns[-1] = {**self.turns[-1], "content": f"{self.turns[-1]['content']}\n\n{hint}"}

    def _closed(self) -> None:
        if self.nodes:
            newest = replace(self.nodes[-1], tokens=len(self.ids), turns=len(self.turns), session=self.session)
            self.nodes = (*self.nodes[:-1], newest)

    def end(self, reason: FinishReason, fault: str = "") -> None:
        """Hand it over."""
        ends = [0, *(node.tokens for node in self.nodes or ())]
        self.done = Rollout(
            id=f"{self.name}:{self.place}",
            task=self.task,
            prompt_ids=self.prompt,
            ids=tuple(self.ids),
            logprobs=np.asarray(self.logprobs, dtype=np.float32),
            own=np.asarray(self.own, dtype=np.bool_),
            text="\n".join(turn["content"] for turn in self.turns if turn["role"] == "assistant"),
            finish_reason=reason,
            version=self.version,
            turns=tuple(self.turns),
            session=self.session,
            fault=fault,
            path=tuple(
                (node.name, end - begin) for node, (begin, end) in zip(self.nodes or (), pairwise(ends), strict=True)
            ),
        )
        self.on_rollout(self.place, self.done)
