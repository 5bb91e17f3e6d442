"""What rows say: their text, as people read it, their prompt, and their scores; and the rows of a second file.

A score that is not there is unknown and has no vote: a status other than "scored", no value, or no number.  The steps
and parts of a score are not read.  The scores of all prompts take about 110 bytes of memory for each prompt, and 16 for
each score.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from adjudge import wire
from adjudge.data_pipelines.hygiene.minhash import normalised
from adjudge.io.columns import GUESSES, MISSING, Choice, Column, no_column
from adjudge.io.jobs.groups import group_key
from adjudge.io.jobs.opening import glance
from adjudge.io.preferences import is_preference, read_preference
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.io.values import Text, exchange, is_chat, nested_names, number_of, plain, prompt_of, turns_of
from adjudge.protocol import STATUSES

# The usual names, and the same of a row that another one holds.
PROMPTS: Final = (
    *GUESSES["prompt"],
    *("+".join(f"input.{part}" for part in name.split("+")) for name in GUESSES["prompt"]),
)
_SYSTEM: Final = ("system", "developer")


@dataclass(frozen=True, slots=True)
class RowText:
    """Reads text columns; chat turns give the text of each turn, and other data their JSON text.

    Attributes:
        columns: at least one, unless the text is the prompt of a pair.
        pairs: whether rows are pairs of chats or transcripts, which hold their prompt (`adjudge.io.preferences`).
    """

    columns: tuple[Column, ...]
    pairs: bool = False

    def texts(self, row: Mapping[str, Any], *, system: bool = True) -> list[str]:
        """Return every text of a row on its own, those of the turns of a chat too; empty ones are left out.

        `system` says whether turns of the system and the developer are read.
        """
        values = [_prompt_of_pair(row)] if self.pairs else [said_in(row, column) for column in self.columns]
        return [text for value in values for text in _texts(value, system=system) if text and not text.isspace()]

    def parts(self, row: Mapping[str, Any]) -> list[str]:
        """Return the text of each column that a text is made of several of: an instruction, and its input."""
        values = [column.of(row) for column in self.columns if "+" in column.name]
        return [text for each in values if isinstance(each, Mapping) for part in each.values() for text in _texts(part)]

    def text(self, row: Mapping[str, Any]) -> str:
        """Return all texts of a row as one; "" where there is none."""
        return "\n".join(self.texts(row))


def text_columns(
    named: Sequence[str], columns: Sequence[str], first: Sequence[Mapping[str, Any]], flag: str
) -> tuple[RowText, tuple[str, ...]]:
    """Decide which columns hold the text; return the reader, and a sentence if a column was guessed.

    `named` are those of the user, () for the usual names of a prompt; `flag` is how an error names the option.

    Raises:
        ValueError: a column does not exist, or none looks like a prompt.
    """
    if named:
        return RowText(tuple(existing(name, columns, first, flag) for name in named)), ()
    prompt, guess = guessed_prompt(columns, first)
    if prompt is not None:
        note = f"text: column {guess!r}, or in a row without it the prompt by another usual name"
        return RowText((prompt,)), (f"{note} (guessed; {flag} chooses others)",)
    if first and all(is_preference(row) and _prompt_of_pair(row) is not None for row in first[:1]):
        return RowText((), pairs=True), (f"text: the prompts of the pairs (guessed; {flag} chooses columns)",)
    if not first and not columns:
        return RowText((Column("prompt"),)), ()
    raise ValueError(no_column("prompt", columns, flag))


def guessed_prompt(
    columns: Sequence[str], first: Sequence[Mapping[str, Any]], *, more: Sequence[str] = ()
) -> tuple[Column | None, str]:
    """Return what reads the prompt of each row by the first usual name that it has, and the name that the first have.

    `more` are further names.  None where the first rows have no prompt.  Later ones may have another name for it.
    """
    usual = [name for name in (*PROMPTS, *more) if "+" in name or not holds_objects(name, first)]
    guess = Choice(columns, first).pick("prompt", usual=usual)
    return (None, "") if guess is None else (Column("|".join(usual)), guess.name)


def said_in(row: Mapping[str, Any], column: Column) -> Any:
    """Return the prompt in a column, read as by whoever scores it; what is no prompt as it is."""
    value = column.of(row)
    try:
        return prompt_of(value, column.name)
    except ValueError:
        return value


def existing(name: str, columns: Sequence[str], first: Sequence[Mapping[str, Any]], flag: str) -> Column:
    """Return a column that the input has, or raise `ValueError`."""
    return Choice(columns, first, closed=bool(columns or first), flag=lambda _: flag).given("", name)


def holds_objects(name: str, first: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a column holds objects, as `input` does in the output of a label job."""
    return any(isinstance(_read_back(Column(name).of(row)), Mapping) for row in first)


def _read_back(value: Any) -> Any:
    """Return a value of a kept column as it was before a job wrote what JSON has no word for: NaN, decimals."""
    try:
        return plain(wire.decode(value))
    except ValueError:
        return value


def _prompt_of_pair(row: Mapping[str, Any]) -> Text | None:
    try:
        return read_preference(row).prompt
    except ValueError:
        return None  # a row without a text


def _texts(value: Any, *, system: bool = True) -> list[str]:
    if value is MISSING or value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item, system=system)]
    if isinstance(value, Mapping) and "role" in value:
        return _texts(value.get("content")) if system or value["role"] not in _SYSTEM else []
    if isinstance(value, Mapping) and isinstance(value.get("text"), str):
        return [value["text"]]  # a part of a turn
    if isinstance(value, bytes):
        return [value.decode(errors="replace")]
    return [json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)]


_SCORES: Final = ("value", "score", "reward", "scores", "rewards", "is_correct", "correct", "passed")


@dataclass(frozen=True, slots=True)
class RowScores:
    """Reads scores.

    Attributes:
        column: a number, or a list of them: the scores of several responses.
        status: the status in the output of a label job; None if there is none.
    """

    column: Column
    status: Column | None = None

    def of(self, row: Mapping[str, Any]) -> list[float | None]:
        """Return the scores of a row; None where one is unknown."""
        if self.status is not None and self.status.of(row) != "scored":
            return [None]
        value = _read_back(self.column.of(row))
        return [number_of(item) for item in value] if isinstance(value, list) else [number_of(value)]

    def one(self, row: Mapping[str, Any]) -> float | None:
        """Return the score of a row that holds one response; None where it is unknown, or the row holds several."""
        scores = self.of(row)
        return scores[0] if len(scores) == 1 else None


def row_scores(
    named: str, columns: Sequence[str], first: Sequence[Mapping[str, Any]], flag: str = "--score-column"
) -> tuple[RowScores, tuple[str, ...]]:
    """Decide where the scores are; return the reader, and a sentence if the column was guessed.

    Raises:
        ValueError: the column does not exist, or none can be guessed.
    """
    known = {*columns, *nested_names(first)}
    name = named or next((guess for guess in _SCORES if guess in known and not holds_objects(guess, first)), "")
    if not name:
        raise ValueError(no_column("score", columns, flag, _SCORES))
    column = existing(name, columns, first, flag)
    if holds_objects(name, first):
        raise ValueError(f"{flag} {name!r} holds objects; name the number in them, such as {name}.value")
    note = () if named else (f"score: column {name!r} (guessed; {flag} chooses another)",)
    status = Column(f"{name.removesuffix('value')}status")
    of_a_label_job = name.endswith("value") and any(status.of(row) in STATUSES for row in first)  # not "open", say
    return RowScores(column, status if of_a_label_job else None), note


@dataclass(frozen=True, slots=True)
class PromptKeys:
    """Names the prompts of rows.

    Attributes:
        group: what the rows of a prompt share, or None.
        prompt: the prompt, or None.  With a group, both must be the same: of two files, each may begin its groups at 0.
        answered: whether the prompt is that of a chat which may hold the answer as well.
    """

    group: Column | None = None
    prompt: Column | None = None
    answered: bool = False

    def of(self, row: Mapping[str, Any]) -> int | None:
        """Return 64 bits that rows of the same prompt share; None for a row that names none.

        Prompts are compared without case, width and white space, groups as they are: "aB3" is another one than "Ab3".
        """
        names = [group_key(self.group.of(row)) if self.group else "", self._asked(row)]
        text = "\0".join(name for name in names if name.strip())
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "little") if text else None

    def _asked(self, row: Mapping[str, Any]) -> str:
        """Return the prompt as one text, "" where there is none."""
        said = said_in(row, self.prompt) if self.prompt is not None else ""
        if isinstance(said, str):
            return normalised(said)
        if not is_chat(said):
            return group_key(said)
        with contextlib.suppress(ValueError):  # nothing is answered yet
            said = (exchange("", said)[0] if self.answered else "") or said
        match turns := [_squeezed(turn) for turn in turns_of(said)]:
            case [{"role": "user", "content": str(text), **more}] if not more:
                return text  # no other prompt than the same as text
        return group_key(turns)


def _squeezed(turn: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: item for name, item in turn.items() if item is not None}
    return kept | ({"content": normalised(kept["content"])} if isinstance(kept.get("content"), str) else {})


def prompt_keys(
    named: str, columns: Sequence[str], first: Sequence[Mapping[str, Any]], *, groups: bool = True
) -> tuple[PromptKeys, tuple[str, ...]]:
    """Decide what names the prompts; return the reader, and sentences if columns were guessed.

    `groups` says whether a group may be guessed: it may be the number of a row, which means nothing in another file.

    Raises:
        ValueError: the column does not exist, or none can be guessed.
    """
    if named:
        column = existing(named, columns, first, "--group-column")
        asked = PromptKeys(prompt=column, answered=named.endswith("messages"))
        return asked if named in PROMPTS else PromptKeys(column), ()
    group = Choice(columns, first).pick("group") if groups else None
    prompt, name = guessed_prompt(columns, first, more=("prompt_hash",))  # in the output of a label job
    guessed = ([group.name] if group is not None else []) + ([name] if prompt is not None else [])
    if not guessed and (columns or first):
        raise ValueError(
            "nothing says which rows answer the same prompt; name a column that they share with --group-column. "
            f"The columns are: {', '.join(list(columns)[:40])}"
        )
    said = " and ".join(f"column {one!r}" for one in guessed)
    notes = [f"rows of one prompt share: {said} (guessed; --group-column chooses another)"] if guessed else []
    if prompt is None and "sample_hash" in columns:
        notes.append(
            "the scores are without their prompts; groups that several label jobs number alike are taken as one"
        )
    return PromptKeys(group, prompt, answered=name.endswith("messages")), tuple(notes)


Numbers = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PromptScores:
    """The known scores of all prompts; prompts are numbered in the order in which they appeared.

    Attributes:
        places: number of each prompt.
        firsts: (prompts,) number of the first row of each.
        prompts: (scores,) the prompt of each score.
        values: (scores,) the scores.
        unknown: how many scores were unknown.
    """

    places: dict[int, int]
    firsts: Wholes
    prompts: Wholes
    values: Numbers
    unknown: int

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int | None, list[float | None]]]) -> PromptScores:
        """Return the scores of rows: number, key of the prompt, None for a row that names none, and scores."""
        places: dict[int, int] = {}
        firsts, prompts, values = array("q"), array("q"), array("d")
        unknown = 0
        for number, key, scores in rows:
            if key is None:
                continue
            place = places.setdefault(key, len(places))
            if place == len(firsts):
                firsts.append(number)
            for score in scores:
                if score is None:
                    unknown += 1
                else:
                    prompts.append(place)
                    values.append(score)
        return cls(
            places=places,
            firsts=np.array(firsts, dtype=np.int64),
            prompts=np.array(prompts, dtype=np.int64),
            values=np.array(values, dtype=np.float64),
            unknown=unknown,
        )

    def counts(self, which: npt.NDArray[np.bool_] | None = None) -> Wholes:
        """Return (prompts,) how many known scores each has, or how many of those that are meant."""
        prompts = self.prompts if which is None else self.prompts[which]
        return np.bincount(prompts, minlength=len(self.places)).astype(np.int64)

    def deviations(self) -> Numbers:
        """Return (prompts,) the standard deviation, with n - 1 below; NaN for fewer than two scores.

        Equal scores have exactly 0, not what rounding leaves.
        """
        size, counts = len(self.places), self.counts()
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(low, self.prompts, self.values)
        np.maximum.at(high, self.prompts, self.values)
        scales = np.where(low < high, np.maximum(np.abs(low), np.abs(high)), 1.0)  # the square of 1e200 is none
        values = self.values / scales[self.prompts]
        means = np.bincount(self.prompts, values, minlength=size) / np.maximum(counts, 1)
        squares = np.bincount(self.prompts, (values - means[self.prompts]) ** 2, minlength=size)
        deviations = np.where(low == high, 0.0, scales * np.sqrt(squares / np.maximum(counts - 1, 1)))
        return np.where(counts >= 2, deviations, np.nan)


class SideFile:
    """The rows of a file that is small beside the input, of anything `open_source` opens.

    Raises:
        ValueError: it cannot be read.
    """

    def __init__(self, name: str, *, limit: int) -> None:
        self.name = name
        self._source = open_source(name, limit=limit)
        seen = glance(self._source)
        self.columns, self.first = seen.columns, seen.rows

    def identity(self) -> dict[str, Any]:
        """Return what tells it from another file: what is in it, wherever it lies; of the hub's, name and revision."""
        path = Path(self.name)
        if not path.exists():
            return {"name": self.name, **self._source.identity()}
        digest = hashlib.sha256()
        for file in sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]:
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        return {"digest": digest.hexdigest()}

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield its rows with their numbers, from 0.

        Raises:
            ValueError: a row cannot be read: what is looked up must be whole.
        """
        for row in self._source.rows(Cursor()):
            if row.data is None:
                where = f"line {row.line}" if row.line else f"row {row.index}"
                raise ValueError(f"{self.name}, {where}: {row.error}; repair it, or leave that row out")
            yield row.index, row.data
