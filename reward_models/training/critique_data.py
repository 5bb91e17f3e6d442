"""The options of training a model that writes a critique of an answer and then scores it, and what it learns from.

A chat is the prompt, the answer, a user's turn that asks for a critique, and the critique; the reward is read at its
end.

Not covered: writing critiques for data that have none; ask a strong model, and put them into the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from adjudge import wire
from adjudge.options import Count, Range
from adjudge.protocol import Message
from adjudge.reward_models.training.rows import FinishedChats, Span
from adjudge.reward_models.training.schedule import FileChoice, TrainingOptions
from adjudge.reward_models.training.training import Split
from adjudge.training.data_files import ReadRows, Row, parsed, rows_of, split_off, usable
from adjudge.training.examples import READERS, Pair, Reading, format_of

ASK = "Critique the answer above: say what is right, what is wrong, and what is missing. Be brief and concrete."


@dataclass(frozen=True, kw_only=True)
class CritiqueChoice(FileChoice):
    """What is learnt from, and what is held out.

    Attributes:
        path: files, folders or data sets of preferences whose rows also have `chosen_critique` and
            `rejected_critique`.
        missing: what becomes of a pair without both critiques: "drop" leaves it out and counts it; "empty" scores an
            empty critique, and writes none.
    """

    missing: Literal["drop", "empty"] = "drop"


@dataclass(frozen=True, kw_only=True)
class CritiqueTraining(TrainingOptions):
    """How a model that critiques and then scores is trained (CLoud, arXiv 2408.11791; MM-RLHF, arXiv 2502.10391).

    Attributes:
        data: what it learns from.
        ask: the user's turn that asks for the critique.
        language: weight of the critiques' negative log-likelihood, a mean over critiques of means over their tokens;
            the loss of rewards has weight 1.
        ties: weight of the squared difference of the rewards of tied pairs.
        centering: weight of the squared sum of the two rewards, which keeps them near 0.
        own_critiques: held-out pairs that are also measured with critiques the trained model wrote itself.  Those that
            people wrote tell which answer they liked, so the accuracy with them says little about scoring.
        critique_tokens: most tokens of a critique that is written.
        max_length: most tokens of a prompt with answer and critique; longer pairs are left out and counted.
    """

    data: CritiqueChoice
    ask: str = ASK
    language: Annotated[float, Range(ge=0)] = 1.0
    ties: Annotated[float, Range(ge=0)] = 1.0
    centering: Annotated[float, Range(ge=0)] = 0.01
    own_critiques: Annotated[int, Range(ge=0)] = 100
    critique_tokens: Count = 256
    max_length: Annotated[int, Range(ge=2, unit="tokens")] = 4096

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_writes()
        if not self.ask.strip():
            raise ValueError("ask is empty; say how the critique is asked for")
        if self.max_length <= self.critique_tokens:
            raise ValueError(
                f"critique_tokens is {self.critique_tokens!r} and max_length {self.max_length!r}; a critique "
                "leaves room for the answer"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CritiquePair(Pair):
    """A preference with what was said about the better answer and about the worse one; None where nobody wrote it."""

    critiques: tuple[str | None, str | None]


def read_critiques(choice: CritiqueChoice, *, seed: int) -> Split[CritiquePair]:
    """Return the pairs that files hold, split by prompt.

    Raises:
        ValueError: a file cannot be read, or nothing is left to train on or to measure on.
    """
    data = _read(choice, choice.path)
    facts, aside = data.counts, None
    if choice.held_out_path:
        other = _read(choice, choice.held_out_path)
        aside, facts["held_out_files"] = other.examples, other.counts
    train, held = split_off(data.examples, aside, choice.held_out, seed=seed)
    if aside is not None:
        facts["prompt_is_held_out"] = len(data.examples) - len(train)
    digest = hashlib.sha256()
    for pair in (*train, *held):
        record = [pair.prompt, pair.chosen, pair.rejected, pair.tie, pair.weight, pair.critiques]
        digest.update(wire.dumps(record).encode("utf-8", "surrogatepass") + b"\n")
    facts |= {"train": len(train), "held_out": len(held), "digest": digest.hexdigest()[:16]}
    return Split(train=train, held_out=held, facts=facts, digest=facts["digest"])


def _read(choice: CritiqueChoice, paths: Sequence[str]) -> ReadRows[CritiquePair]:
    rows = rows_of(paths, split=choice.split, limit=choice.limit)
    return usable(parse_critiques(rows, missing=choice.missing), paths)


def parse_critiques(rows: Iterable[Row], *, missing: str = "drop") -> ReadRows[CritiquePair]:
    """Return the pairs of rows that are at hand."""
    reading = Reading(columns={})

    def pairs_of(row: Mapping[str, Any]) -> list[CritiquePair]:
        pair = READERS[format_of(row, reading)](row, reading)
        if not isinstance(pair, Pair):
            raise ValueError("the row is not a pair")
        if pair.probability is not None:
            raise ValueError("a soft label, which is not learnt from with critiques")
        chosen, rejected = (_critique(row, f"{side}_critique") for side in ("chosen", "rejected"))
        if missing == "drop" and (chosen is None or rejected is None):
            raise ValueError("a critique is missing")
        own = {item.name: getattr(pair, item.name) for item in fields(pair)}
        return [CritiquePair(**own, critiques=(chosen, rejected))]

    return parsed(rows, pairs_of)


def _critique(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"{name} is not text")
    return value.strip() or None


def asked_turns(prompt: str | Sequence[Message], response: str, ask: str) -> list[Message]:
    """Return the chat that a critique answers."""
    turns: list[Message] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    return [*turns, {"role": "assistant", "content": response}, {"role": "user", "content": ask}]


def critique_spans(chats: FinishedChats, pair: Pair, critiques: Sequence[str | None], ask: str) -> Sequence[Span] | str:
    """Return the chats of both answers with critiques, None for an empty one; or in a few words why there are none."""
    spans: list[Span] = []
    for response, critique in zip((pair.chosen, pair.rejected), critiques, strict=True):
        rows = chats.rows(asked_turns(pair.prompt, response, ask), [critique or ""])
        if isinstance(rows, str):
            return rows
        spans += rows
    return spans
