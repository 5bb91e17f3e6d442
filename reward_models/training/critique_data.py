"""The options of training a model that writes a critique of an answer and then scores it, and what it learns from.

A chat is the prompt, the answer, a user's turn that asks for a critique, and the critique; the reward is read at its
end.

Not covered: writing critiques for data that have none; ask a strong model, and put them into the rows.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from adjudge import wire
from adjudge.options import Count, Range
from adjudge.protocol import Message
from adjudge.reward_models.training.rows import FinishedChats, Span
from adjudge.reward_models.training.schedule import FileChoice, TrainingOptions
from adjudge.training.data_files import Row, RowReader, families, rows_of, split_off
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
        """Reject options out of range."""
        super().__post_init__()
        self.check_writes()
        if not self.ask.strip():
            raise ValueError("ask is empty; say how the critique is asked for")
        if self.max_length <= self.critique_tokens:
            raise ValueError(
                f"critique_tokens is {self.critique_tokens!r} and max_length {self.max_length!r}; a critique "
                "leaves room for the answer"
            )


_SIDES = ("chosen_critique", "rejected_critique")


@dataclass(frozen=True, kw_only=True)
class CritiquePair:
    """A preference with what was said about each answer.

    Attributes:
        pair: the preference.
        critiques: of the better answer and of the worse one; None where nobody wrote one.
    """

    pair: Pair
    critiques: tuple[str | None, str | None]


@dataclass(frozen=True, kw_only=True)
class CritiqueSplit:
    """The pairs of a training.

    Attributes:
        train: pairs to learn from.
        held: pairs to measure on; they share no prompt with the others.
        clusters: the family of each held-out pair.
        facts: counts, reasons and a digest, as plain JSON data.
    """

    train: Sequence[CritiquePair]
    held: Sequence[CritiquePair]
    clusters: Sequence[str]
    facts: Mapping[str, Any]


def read_critiques(choice: CritiqueChoice, *, seed: int) -> CritiqueSplit:
    """Return the pairs that files hold, split by prompt.

    Raises:
        ValueError: a file cannot be read, or nothing is left to train on or to measure on.
    """
    examples, facts = _parsed(choice, choice.path)
    aside = None
    if choice.held_out_path:
        aside, facts["held_out_files"] = _parsed(choice, choice.held_out_path)
    train, held = split_off(examples, aside, choice.held_out, seed=seed, key=lambda item: item.pair)
    if aside is not None:
        facts["prompt_is_held_out"] = len(examples) - len(train)
    facts |= {"train": len(train), "held_out": len(held), "digest": _digest([*train, *held])}
    return CritiqueSplit(train=train, held=held, clusters=families([item.pair for item in held]), facts=facts)


def parse_critiques(rows: Iterable[Row], *, missing: str = "drop") -> tuple[list[CritiquePair], RowReader]:
    """Return the pairs of rows, and the rows that could not be used."""
    reading, reader = Reading(columns={}), RowReader()

    def pair_of(row: Mapping[str, Any]) -> CritiquePair:
        pair = READERS[format_of(row, reading)](row, reading)
        if not isinstance(pair, Pair):
            raise ValueError("the row is no pair")
        if pair.probability is not None:
            raise ValueError("a soft label, which is not learnt from with critiques")
        chosen, rejected = (_critique(row, side) for side in _SIDES)
        if missing == "drop" and (chosen is None or rejected is None):
            raise ValueError("a critique is missing")
        return CritiquePair(pair=pair, critiques=(chosen, rejected))

    return reader.read(rows, pair_of), reader


def asked_turns(prompt: str | Sequence[Message], response: str, ask: str) -> list[Message]:
    """Return the chat that a critique answers."""
    turns: list[Message] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    return [*turns, {"role": "assistant", "content": response}, {"role": "user", "content": ask}]


def critique_row(chats: FinishedChats, item: CritiquePair, side: int, ask: str) -> Span | str:
    """Return the chat of one answer with its critique, or in a few words why there is none.

    Args:
        chats: what makes tokens of chats.
        item: the pair.
        side: 0 for the better answer, 1 for the worse one.
        ask: the turn that asks for the critique.
    """
    response = item.pair.chosen if side == 0 else item.pair.rejected
    rows = chats.rows(asked_turns(item.pair.prompt, response, ask), [item.critiques[side] or ""])
    return rows if isinstance(rows, str) else rows[0]


def _parsed(choice: CritiqueChoice, paths: Sequence[str]) -> tuple[list[CritiquePair], dict[str, Any]]:
    rows = itertools.chain.from_iterable(rows_of(path, split=choice.split) for path in paths)
    found, bad = parse_critiques(itertools.islice(rows, choice.limit), missing=choice.missing)
    if not found:
        shown = "; ".join(bad.first[:3]) or "there are no rows"
        raise ValueError(f"no row of {', '.join(paths)} can be used ({shown})")
    reasons = bad.reasons
    return found, {
        "rows": len(found) + sum(reasons.values()),
        "bad_rows": reasons,
        "first_bad_rows": bad.first[:3],
    }


def _critique(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return value.strip() or None


def _digest(items: Sequence[CritiquePair]) -> str:
    found = hashlib.sha256()
    for item in items:
        pair = item.pair
        record = [pair.prompt, pair.chosen, pair.rejected, pair.tie, pair.weight, item.critiques]
        found.update(wire.dumps(record).encode("utf-8", "surrogatepass") + b"\n")
    return found.hexdigest()[:16]
