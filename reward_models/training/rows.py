"""Rows of tokens: finished chats, which of them are trained on in which step, and what a model says of them.

Chats are made exactly as the scorer reads them (`adjudge.reward_models.scalar.chat`): through the model's own template,
with nothing added for the model to go on, and tokenized without further special tokens: no second begin token, and an
end token where the template has one.  A template that leaves it out is refused, and a row that is too long is reported,
never cut.

The whole plan of batches is made before training, from lengths and a seed alone, so that a resumed training goes on
with the very batches that were left.  Batches hold rows of similar length: for HH conversations and 16 pairs a batch,
1.22 tokens with padding for each of text (1.14 in passes of 4,096 tokens), where shuffled batches have 3.15.
"""

from __future__ import annotations

import itertools
import random
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from adjudge.engines.interface import Fault
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.engines.shared_prefixes import common
from adjudge.engines.template_lint import lint
from adjudge.protocol import Message
from adjudge.reward_models.scalar.chat import ChatForm, Reasoning
from adjudge.reward_models.training.held_out import Numbers
from adjudge.training.data_files import Grouped, families

if TYPE_CHECKING:
    from torch import Tensor

    from adjudge.reward_models.training.policy_objective import SpanModel

E = TypeVar("E", bound=Grouped)

_POOL = 32  # batches that are sorted together; more pads less and shuffles less


def batch_plan(lengths: Sequence[int], batch_size: int, *, epochs: int, seed: int) -> list[tuple[int, ...]]:
    """Return the batches of all epochs: places of examples, of which each epoch has every one once.

    Args:
        lengths: of the examples, in tokens.
        batch_size: examples of a batch; the last ones of an epoch make a smaller batch.
        epochs: passes over all examples.
        seed: another one gives other batches.
    """
    plan: list[tuple[int, ...]] = []
    for epoch in range(epochs):
        draw = random.Random(f"{seed}:{epoch}")
        order = list(range(len(lengths)))
        draw.shuffle(order)
        batches = []
        for start in range(0, len(order), _POOL * batch_size):
            pool = sorted(order[start : start + _POOL * batch_size], key=lambda at: -lengths[at])
            batches += [tuple(pool[at : at + batch_size]) for at in range(0, len(pool), batch_size)]
        draw.shuffle(batches)
        plan += batches
    return plan


def micro_batches(lengths: Sequence[int], units: Sequence[Sequence[int]], budget: int) -> list[list[int]]:
    """Return the units of each forward pass, the longest first, so that rows times the longest row keep to a budget.

    Args:
        lengths: of the rows, in tokens.
        units: the rows of each unit (a pair, a list); a unit is never cut, and makes a pass alone if it is too large.
        budget: most tokens of a pass, padding included.
    """
    longest = [max(lengths[row] for row in rows) for rows in units]
    passes: list[list[int]] = []
    rows = width = 0
    for unit in sorted(range(len(units)), key=lambda at: (-longest[at], at)):
        if passes and (rows + len(units[unit])) * width <= budget:
            passes[-1].append(unit)
            rows += len(units[unit])
        else:
            passes.append([unit])
            rows, width = len(units[unit]), longest[unit]
    return passes


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The tokens of a prompt with a response, and where the response begins."""

    tokens: Sequence[int]
    start: int = 0

    def packed(self) -> Span:
        """Return the same with 4 bytes a token, where a tuple takes up to 36."""
        return replace(self, tokens=array("i", self.tokens))

    @property
    def size(self) -> int:
        """Tokens of the response."""
        return len(self.tokens) - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit(Generic[E]):
    """An example as rows of tokens that go through the model in one pass.

    Attributes:
        example: what it was made of.
        spans: one for each response; of a pair the better one first, and behind the worse one a paraphrase.
        cluster: the prompt's family.
        places: where each step of a solution is read, ascending; () for anything else.
    """

    example: E
    spans: tuple[Span, ...]
    cluster: str = ""
    places: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """Tokens of the longest row."""
        return max(len(span.tokens) for span in self.spans)


def units_of(
    examples: Sequence[E], spans_of: Callable[[E], Sequence[Span] | str]
) -> tuple[list[Unit[E]], Counter[str]]:
    """Return the examples that can be trained on, and how many cannot, by reason (what `spans_of` says in place)."""
    units: list[Unit[E]] = []
    dropped: Counter[str] = Counter()
    for example, cluster in zip(examples, families(examples), strict=True):
        spans = spans_of(example)
        if isinstance(spans, str):
            dropped[spans] += 1
        else:
            units.append(Unit(example=example, spans=tuple(span.packed() for span in spans), cluster=cluster))
    return units, dropped


@dataclass(frozen=True, kw_only=True)
class Batches(ABC, Generic[E]):
    """Makes the forward passes of steps; what an example weighs is settled over the step, however it is cut.

    Attributes:
        units: all examples.
        budget: most tokens of a pass, padding included.
    """

    units: Sequence[Unit[E]]
    budget: int

    @abstractmethod
    def step(self, units: Sequence[Unit[E]], places: Sequence[int]) -> Callable[[list[int]], dict[str, Tensor]]:
        """Return what makes the tensors of a pass, beside its tokens, of the places of its units in the step."""

    def __call__(self, places: Sequence[int]) -> list[dict[str, Tensor]]:
        """Return the forward passes of a step that trains on these examples; the weights of all passes sum to 1."""
        units = [self.units[place] for place in places]
        more = self.step(units, places)
        lengths = [len(span.tokens) for unit in units for span in unit.spans]
        ends = itertools.accumulate((len(unit.spans) for unit in units), initial=0)
        rows = [range(start, end) for start, end in itertools.pairwise(ends)]
        return [
            {**padded([span.tokens for at in chosen for span in units[at].spans]), **more(chosen)}
            for chosen in micro_batches(lengths, rows, self.budget)
        ]


# A reward model never reads a generation prompt, so a template without one is not a fault here.
_HARMLESS = frozenset({"no_generation_prompt"})


class FinishedChats:
    """Turns prompts with responses into rows of tokens, of at most `max_length`.

    Attributes:
        warnings: what is odd about the chat template, one sentence each.

    Raises:
        ValueError: there is no chat template, or it makes chats that cannot be scored.
    """

    def __init__(self, tokenizer: Any, *, model: str, max_length: int, reasoning: Reasoning = "strip"):
        if not tokenizer.chat_template:
            raise ValueError(
                f"the model {model!r} has no chat template; set model.chat_template to a file with one, or to plain"
            )
        findings = [item for item in lint(tokenizer) if item.code not in _HARMLESS]
        if errors := [f"{item.code}: {item.text}" for item in findings if item.severity == "error"]:
            raise ValueError(f"the chat template of {model!r} cannot be used to train on: {'; '.join(errors)}")
        self.warnings = tuple(f"{item.code}: {item.text}" for item in findings if item.severity == "warning")
        self.max_length = max_length
        self._reader = PromptTokens(tokenizer, model=model, window=max_length)
        self._form = ChatForm(special=self._reader.special_tokens, reasoning=reasoning)

    def rows(self, prompt: str | Sequence[Message], responses: Sequence[str]) -> list[Span] | str:
        """Return a row for each response to a prompt, text or turns; or, in a few words, why there are none."""
        try:
            turns = self._form.prompt(prompt)
            answers = [self._form.answer(response) for response in responses]
        except ValueError as error:
            return str(error)
        if any(answer.unfinished for answer in answers):
            return "a response ends inside its reasoning"
        chats: list[list[Message]] = [[*turns, *answer.turns] for answer in answers]
        begun, *finished = [*self._reader.read([turns]), *self._reader.read(chats, finished=True)]
        rows = []
        for tokens in finished:
            if isinstance(tokens, Fault):
                return tokens.detail
            if len(tokens) > self.max_length:
                return "longer than max_length"
            start = 0 if isinstance(begun, Fault) else common(begun, tokens[:-1])  # a token of the response is left
            rows.append(Span(tokens=tokens, start=start))
        return rows

    def open_rows(self, prompt: str | Sequence[Message], responses: Sequence[str]) -> list[Span] | str:
        """Return rows that end with the response's text, as steps of a solution do: nothing says that it is over."""
        (begun,) = self._reader.read([list(self._form.prompt(prompt))])
        if isinstance(begun, Fault):
            return begun.detail
        rows = []
        for text in responses:
            (turn,) = self._form.text_turns(text)
            tokens = (*begun, *self._reader.text(str(turn["content"])))
            if len(tokens) > self.max_length:
                return "longer than max_length"
            if len(tokens) == len(begun):
                return "a response without text"
            rows.append(Span(tokens=tokens, start=len(begun)))
        return rows


def padded(rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
    """Return rows of tokens as `input_ids` and `attention_mask`, (rows, length), padded on the right by 0."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    ids = [torch.from_numpy(np.array(row, np.int64)) for row in rows]
    masks = [torch.ones_like(row) for row in ids]
    return {"input_ids": pad_sequence(ids, batch_first=True), "attention_mask": pad_sequence(masks, batch_first=True)}


def response_tokens(spans: Sequence[Span]) -> Tensor:
    """Return rows and columns, (2, m), of the tokens of responses; made here, a GPU need not be waited for."""
    import torch

    return torch.tensor(
        [(row, place) for row, span in enumerate(spans) for place in range(span.start, len(span.tokens))]
    ).T


def said_of(
    model: Any,
    rows: Sequence[Sequence[int]],
    read: Callable[..., Tensor],
    *,
    budget: int,
    device: Any,
    more: Callable[[list[int]], dict[str, Tensor]] | None = None,
) -> list[Any]:
    """Return what a model says of rows of tokens, in order, without gradients; its mode is put back.

    Args:
        model: a module of PyTorch.
        rows: tokens.
        read: the tensors of one forward pass, by name, to what the model says of each of its rows.
        budget: most tokens of a forward pass, padding included.
        device: where the model is put.
        more: makes further tensors for the places of rows.

    Raises:
        ValueError: the model says something that is not a number.
    """
    import torch

    was = model.training
    model.eval().to(device)
    answers: list[Any] = [None] * len(rows)
    for places in micro_batches([len(row) for row in rows], [[at] for at in range(len(rows))], budget):
        batch = {**padded([rows[at] for at in places]), **(more(places) if more else {})}
        with torch.no_grad():
            values = read(**{name: value.to(device) for name, value in batch.items()}).double().cpu().numpy()
        if not np.isfinite(values).all():
            raise ValueError(
                "the model gives values that are not numbers; train it with a lower schedule.learning_rate, or with "
                "schedule.precision fp32"
            )
        for place, value in zip(places, values, strict=True):
            answers[place] = value
    model.train(was)
    return answers


def logprobs_of(model: SpanModel, spans: Sequence[Span], *, budget: int, device: Any) -> Numbers:
    """Return the summed log-probabilities of responses, (n,), without gradients; see `said_of`."""
    rows = [span.tokens for span in spans]
    return np.array(
        said_of(
            model,
            rows,
            model.logprobs,
            budget=budget,
            device=device,
            more=lambda places: {"tokens": response_tokens([spans[at] for at in places])},
        )
    )
