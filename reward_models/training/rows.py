"""Rows of tokens: finished chats, which of them are trained on in which step, and what a model says of them.

Chats are made exactly as the scorer reads them (`adjudge.reward_models.scalar.chat`): through the model's own template,
with nothing added for the model to go on, and tokenized without further special tokens: no second begin token, and an
end token where the template has one.  A template that leaves it out is refused, and a row that is too long is reported,
never cut.

The whole plan of batches is made before training, from lengths and a seed alone, so that a resumed training goes on
with the very batches that were left.  Batches hold rows of similar length: for HH conversations and 16 pairs a batch,
1.22 tokens with padding for each of text (1.14 in passes of 4,096 tokens), where shuffled batches have 3.15.

Not covered: streaming data, and inputs that are no text.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from adjudge.engines.interface import Fault
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.engines.template_lint import lint
from adjudge.protocol import Message
from adjudge.reward_models.scalar.chat import ChatForm, Reasoning
from adjudge.reward_models.training.held_out import require_finite

if TYPE_CHECKING:
    from torch import Tensor

    from adjudge.reward_models.training.policy_objective import SpanModel


_POOL = 32  # batches that are sorted together; more pads less and shuffles less


def batch_plan(lengths: Sequence[int], batch_size: int, *, epochs: int, seed: int) -> list[tuple[int, ...]]:
    """Return the batches of all epochs: places of examples; each epoch has every example once.

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
    """Return the units of each forward pass, so that rows times the longest row stay within a budget.

    Args:
        lengths: of the rows, in tokens.
        units: the rows of each unit (a pair, a list); a unit is never cut, and makes a pass alone if it is too large.
        budget: most tokens of a pass, padding included.

    Returns:
        Places of units, the longest first.
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


# A reward model never reads a generation prompt, so a template without one is no fault here.
_HARMLESS = frozenset({"no_generation_prompt"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A prompt with a response.

    Attributes:
        tokens: of both.
        start: the response's first token.
    """

    tokens: tuple[int, ...]
    start: int


class FinishedChats:
    """Turns prompts with responses into rows of tokens.

    Args:
        tokenizer: of `transformers`, with a chat template.
        model: its name, for messages.
        max_length: most tokens of a row.
        reasoning: whether the reasoning of answers is left out ("strip") or read ("keep").

    Attributes:
        warnings: what is odd about the template, one sentence each.

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
        """Return a row for each response; or, in a few words, why there are none.

        Args:
            prompt: text, which is a user's turn, or turns.
            responses: an assistant's answers.
        """
        try:
            turns = self._form.prompt(prompt)
            answers = [self._form.answer(response) for response in responses]
        except ValueError as error:
            return str(error)
        if any(answer.unfinished for answer in answers):
            return "a response ends inside its reasoning"
        chats: list[list[Message]] = [[*turns, *answer.turns] for answer in answers]
        begun, *found = [*self._reader.read([turns]), *self._reader.read(chats, finished=True)]
        rows = []
        for tokens in found:
            if isinstance(tokens, Fault):
                return tokens.detail
            if len(tokens) > self.max_length:
                return "longer than max_length"
            rows.append(Span(tokens=tokens, start=0 if isinstance(begun, Fault) else _shared(begun, tokens)))
        return rows


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two rows begin with in common; at least one token of the second stays."""
    count = 0
    for first, second in zip(one, other[:-1], strict=False):
        if first != second:
            break
        count += 1
    return count


def padded(rows: Sequence[Sequence[int]], pad: int = 0) -> dict[str, Tensor]:
    """Return rows of tokens as `input_ids` and `attention_mask`, (rows, length), padded on the right."""
    import torch

    length = max(len(row) for row in rows)
    ids = torch.full((len(rows), length), pad, dtype=torch.long)
    mask = torch.zeros((len(rows), length), dtype=torch.long)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = torch.tensor(row, dtype=torch.long)
        mask[at, : len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def span_tensors(spans: Sequence[Span]) -> dict[str, Tensor]:
    """Return spans as `padded` rows with `starts` and `ends`, (rows,)."""
    import torch

    return {
        **padded([span.tokens for span in spans]),
        "starts": torch.tensor([span.start for span in spans]),
        "ends": torch.tensor([len(span.tokens) for span in spans]),
    }


def said_of(
    model: Any, lengths: Sequence[int], read: Callable[[list[int], Any], Any], *, budget: int, device: Any
) -> list[Any]:
    """Return what a model says of rows, in order, without gradients; its mode is put back.

    Args:
        model: a module of PyTorch.
        lengths: of the rows, in tokens.
        read: places of rows and the device to what the model says of each of them: one forward pass.
        budget: most tokens of a forward pass, padding included.
        device: where the model is put.

    Raises:
        ValueError: the model says something that is no number.
    """
    import torch

    was = model.training
    model.eval().to(device)
    found: list[Any] = [None] * len(lengths)
    for places in micro_batches(lengths, [[at] for at in range(len(lengths))], budget):
        with torch.no_grad():
            said = read(places, device)
        for place, one in zip(places, require_finite(said.double().cpu().numpy()), strict=True):
            found[place] = one
    model.train(was)
    return found


def logprobs_of(model: SpanModel, spans: Sequence[Span], *, budget: int, device: Any) -> npt.NDArray[np.float64]:
    """Return the summed log-probabilities of responses, (n,), without gradients; see `said_of`."""

    def read(places: list[int], device: Any) -> Any:
        batch = span_tensors([spans[at] for at in places])
        return model.logprobs(**{name: value.to(device) for name, value in batch.items()})

    return np.array(said_of(model, [len(span.tokens) for span in spans], read, budget=budget, device=device))
