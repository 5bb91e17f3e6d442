"""Answers of several turns: the policy writes, calls a tool, reads what it says, and goes on.

What the policy wrote is never tokenized anew: the learner sees the very tokens that were drawn, and between them those
of the tools, which are not the policy's own, so no loss, no entropy and no divergence is taken of them.  All open
answers write their next piece side by side, once all have heard their tools, so it does not matter which was quicker.

In the style chat, calls are `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` in the assistant's turn, as
Hermes and Qwen models write them, and answers turns of the role "tool".  What stands around these is what the model's
chat template puts there, found out once with a chat that is made up for it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from adjudge.engines.interface import Fault
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.protocol import Message
from adjudge.rl_integration.trainer.data.task import FinishReason, Rollout, Task
from adjudge.rl_integration.trainer.rollouts.calls import (
    Call,
    TagCalls,
    Toolbox,
    broken_up,
    check_writable,
    plain_tokens,
)
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig, TreeConfig
from adjudge.rl_integration.trainer.rollouts.tool import Tool, ToolAnswer, ToolDown
from adjudge.rl_integration.trainer.rollouts.writer import Generator, OnRollout, Piece, Writer, alike

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_BLOCK = re.compile(rf"{_OPEN}(.*?)(?:{_CLOSE}|\Z)", re.DOTALL)
_ROLE_MARKS = (_OPEN, _CLOSE, "<tool_response>", "</tool_response>")


class ChatCalls:
    """Reads and answers calls in turns.

    Raises:
        ValueError: the policy has no chat template, or one that such a dialogue cannot be written with.
    """

    stops: tuple[str, ...] = ()

    def __init__(self, policy: Policy, tools: Sequence[Tool]) -> None:
        self._policy = policy
        schemas: list[dict[str, Any]] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
            }
            for tool in tools
        ]
        self.tokens = PromptTokens(
            policy.tokenizer,
            model=policy.name,
            window=policy.tokens.window,
            options={**policy.chat_template_kwargs, "tools": schemas},
        )
        check_writable(policy, (_OPEN, _CLOSE))
        asked: Message = {"role": "user", "content": "-"}
        if _text(policy.tokens, [asked]) == _text(self.tokens, [asked]):
            raise ValueError(
                f"the chat template of {policy.name!r} does not tell the model what tools there are; use one that "
                "writes its variable `tools`, or the style tags, where prompts say it"
            )
        _check_form(policy)
        around = _around(policy)
        self._head, self._between, self._tail = map(policy.tokens.text, around)
        # Of templates that name roles in plain words, such as "user: ", these lines are what must not be forged.
        headers = {line.strip() for text in around for line in text.splitlines() if len(line.strip()) > 3}
        self._marks = (*_ROLE_MARKS, *policy.tokens.special_tokens, *sorted(headers))

    def prompt(self, task: Task) -> tuple[int, ...]:
        """Return a task's chat as tokens, with what the template says of the tools.

        Raises:
            ValueError: the prompt is a text, or the template refuses it.
        """
        if isinstance(task.prompt, str):
            raise ValueError(
                f"the prompt of task {task.id!r} is a text, and tools are called in the style chat; give it as a chat, "
                "or use the style tags"
            )
        (read,) = self.tokens.read([task.prompt])
        if isinstance(read, Fault):
            raise ValueError(f"the prompt of task {task.id!r} cannot be written: {read.detail}")
        return read

    def calls(self, text: str, *, ended: bool) -> tuple[Call, ...]:
        """Return the calls of a turn, once it has ended."""
        return tuple(_call(match) for match in _BLOCK.finditer(text)) if ended else ()

    def shown(self, text: str) -> str:
        """Return a tool's text with everything broken up that reads as a call, a special token or a turn's head."""
        return broken_up(text, self._marks)

    def answered(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of the tools' turns, up to where the assistant's next one begins."""
        tokens = list(self._head)
        for place, text in enumerate(texts):
            tokens += [*(self._between if place else ()), *plain_tokens(self._policy, text)]
        return [*tokens, *self._tail]


def _around(policy: Policy) -> tuple[str, str, str]:
    """What a chat template writes around the texts of tools, found out with dialogues that nobody would write.

    Behind the assistant's end token up to a tool's text, between two tools' texts, and behind the last one up to where
    the assistant goes on.
    """
    said, told = "adjudgesaid", [f'adjudge "told"\n{number}' for number in range(3)]
    chat: list[Message] = [{"role": "user", "content": "-"}, {"role": "assistant", "content": said}]
    answers: list[Message] = [{"role": "tool", "content": text} for text in told]
    behind = [
        _text(policy.tokens, [*chat, *answers[:count]], finished=count == 0).rpartition(said)[2]
        for count in range(len(told) + 1)
    ]
    ends = [policy.tokenizer.decode([token]) for token in policy.ends]
    end = next((text for text in ends if text and all(one.startswith(text) for one in behind)), None)
    if end is None:
        raise ValueError(
            f"the chat template of {policy.name!r} ends the assistant's turn differently when a tool answers, or "
            f"with none of the tokens that end an answer ({', '.join(sorted(ends))}): it writes {behind[0]!r} and "
            f"{behind[1]!r}; use another chat template, or the style tags"
        )
    alone, two, three = (_split(text.removeprefix(end), told[:at]) for at, text in enumerate(behind) if at)
    if not (alone and two and three) or [alone[0], two[1], two[1], alone[1]] != three or two[::2] != alone:
        raise ValueError(
            f"the chat template of {policy.name!r} does not write what a tool says as it is, or not in the same "
            f"way each time: it writes {behind[3]!r}; use another chat template, or the style tags"
        )
    return two[0], two[1], two[2]


def _split(text: str, marks: Sequence[str]) -> list[str] | None:
    """The text around marks that stand in it once each, in order."""
    parts = []
    for mark in marks:
        head, separator, text = text.partition(mark)
        if not separator:
            return None
        parts.append(head)
    return None if any(mark in text for mark in marks) else [*parts, text]


def _check_form(policy: Policy) -> None:
    """Reject a template that writes calls in another form; one that writes none is none."""
    call = Call(tool="adjudgetool", arguments={"adjudgekey": "-"})
    function = {"name": call.tool, "arguments": dict(call.arguments)}
    turn: Message = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}
    text = policy.tokens.rendered([{"role": "user", "content": "-"}, turn], finished=True)
    if isinstance(text, str) and call.tool in text and call not in map(_call, _BLOCK.finditer(text)):
        raise ValueError(
            f"the chat template of {policy.name!r} writes calls in another form than {_OPEN} with JSON, and so will "
            f"its model: {text!r}; use another model, or the style tags"
        )


def _text(tokens: PromptTokens, chat: Sequence[Message], *, finished: bool = False) -> str:
    rendered = tokens.rendered(chat, finished=finished)
    if isinstance(rendered, Fault):
        raise ValueError(f"{rendered.detail}; the style chat needs a template that takes turns of the role tool")
    return rendered


def _call(block: re.Match[str]) -> Call:
    if not block[0].endswith(_CLOSE):
        return Call(problem="the call is not closed by its tag")
    try:
        record = json.loads(block[1])
    except (ValueError, RecursionError) as error:
        return Call(problem=f"the call is no JSON: {error}")
    if not isinstance(record, dict) or not isinstance(record.get("name"), str):
        return Call(problem='the call has no name; write {"name": "...", "arguments": {...}}')
    arguments = record.get("arguments", {})
    if not isinstance(arguments, dict):
        return Call(problem=f"the call's arguments are a {type(arguments).__name__}; they must be a JSON object")
    return Call(tool=record["name"], arguments=arguments)


class Dialogue(Writer):
    """Writes answers that call tools; in a tree, a node is a turn with what its tools said.

    "segments" forks after every turn; "random" and "uncertain" fork finished answers before some of their later turns.
    """

    def __init__(
        self,
        policy: Policy,
        generator: Generator,
        style: ChatCalls | TagCalls,
        toolbox: Toolbox,
        *,
        max_turns: int,
        timeout: float,
        tree: TreeConfig | None = None,
    ) -> None:
        super().__init__(policy, generator)
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
        """Return the tokens that answers to a task begin behind, with what they say of the tools."""
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
                prompt=self._style.prompt(task),
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
            answers += self._talked([one for answer in answers for one in answer.forked(tree, size - 1, draw)], talk)
        rollouts = {answer.place: answer.done for answer in answers}
        return [done for place in range(len(tasks) * num_generations) if (done := rollouts[place]) is not None]

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
        """Have the next piece of each open answer written, and its calls answered."""
        max_tokens = talk.sampling.max_new_tokens
        asked: dict[int, tuple[Sequence[Call], Future[list[ToolAnswer]]]] = {}

        def on_piece(places: Sequence[int], at: int, piece: Piece) -> None:
            answer = going[places[at]]
            text = self._policy.decode(piece.ids[:-1] if piece.ended else piece.ids)
            answer.wrote(piece, text)
            calls = self._style.calls(text, ended=piece.ended)
            if not calls:
                answer.end(piece.finish_reason)
            elif answer.pieces == self._max_turns or len(answer.ids) >= max_tokens:
                answer.end("length")
            else:
                asked[places[at]] = (calls, self._toolbox.ask(calls))

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
        timeout = self._timeout
        for at in sorted(asked):  # in the order they were asked in: the rest is then already begun
            calls, future = asked[at]
            try:
                told = future.result(timeout)
            except ToolDown as error:
                going[at].end("stop", str(error))
            except TimeoutError:
                timeout = 0.0  # what hangs hangs; only answers that are there already are still taken
                names = ", ".join(call.tool for call in calls)
                going[at].end("stop", fault=f"no answer of {names} within {self._timeout:g} s (rollouts.tools.timeout)")
            else:
                texts = [self._style.shown(one.text) for one in told]
                ids = self._style.answered(texts)
                if len(going[at].ids) + len(ids) >= max_tokens:  # no room for that and for a token more
                    going[at].end("length")
                    continue
                turns = [
                    {"role": "tool", "name": call.tool, "content": text, "ok": one.ok}
                    for call, one, text in zip(calls, told, texts, strict=True)
                ]
                going[at].heard(ids, turns)


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
    """A turn of an answer with what it was told: its name, and where it ends in the answer's lists."""

    name: str
    tokens: int
    turns: int
    logprob: float


@dataclass(slots=True, kw_only=True)
class _Answer:
    """An answer on its way, or the beginning of several.

    Attributes:
        place: of the first answer that it becomes.
        group: the place of its task.
        leaves: how many answers it is to become.
        nodes: its turns, in a tree; None for an answer that shares none.
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
    done: Rollout | None = None

    @property
    def beginning(self) -> tuple[Any, ...]:
        """What answers side by side have in common that go on from the same tokens, read once."""
        if not self.ids:
            return (self.group, self.leaves > 1)
        shared = self.nodes[-1].name if self.nodes else self.place
        return (shared, self.leaves > 1)

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

    def forked(self, tree: TreeConfig, count: int, draw: random.Random) -> list[_Answer]:
        """Return so many answers that begin as this one did, before the turns that the tree's kind picks."""
        nodes = self.nodes or ()
        later = list(range(1, len(nodes)))
        if tree.kind == "random":
            draw.shuffle(later)
        else:
            later.sort(key=lambda turn: (nodes[turn].logprob, turn))
        kept = [turn for turn in sorted(later[: tree.forks]) for _ in range(tree.copies)]
        kept += [0] * (count - len(kept))
        return [self._copy(self.place + 1 + at, 1, turn) for at, turn in enumerate(kept)]

    def _copy(self, place: int, leaves: int, turns: int) -> _Answer:
        """An open answer with its first turns."""
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
            node = _Node(name=f"{self.name}:{self.place}.{self.pieces}", tokens=0, turns=0, logprob=mean)
            self.nodes = (*self.nodes, node)
            self._closed()

    def heard(self, ids: Sequence[int], turns: Sequence[Message]) -> None:
        """Take what tools said."""
        self.ids += ids
        self.logprobs += [0.0] * len(ids)
        self.own += [False] * len(ids)
        self.turns += turns
        self._closed()

    def _closed(self) -> None:
        """The newest turn ends here."""
        if self.nodes:
            newest = replace(self.nodes[-1], tokens=len(self.ids), turns=len(self.turns))
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
            fault=fault,
            path=tuple(
                (node.name, end - begin) for node, (begin, end) in zip(self.nodes or (), pairwise(ends), strict=True)
            ),
        )
        self.on_rollout(self.place, self.done)
