"""Which column of scored rows is what, and scores joined with the rows they are of.

Rows that `adjudge label` wrote are known by their fields; the columns of the row that was labelled are then those of
`input`, and may be named with or without it.  Scores and rows are read side by side, since scores stand in the order of
their rows; outputs of several shards one behind the other begin the rows anew each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from adjudge.data_pipelines.label.samples import Item, Sampler, hash_of
from adjudge.data_pipelines.pairs.config import PairsConfig
from adjudge.data_pipelines.pairs.rule import Rule
from adjudge.io.columns import GUESSES, MISSING, Column, Wanted, map_columns, unknown_column
from adjudge.io.errors import JobError
from adjudge.io.jobs.opening import glance
from adjudge.io.row import Cursor, Row
from adjudge.io.source import Source
from adjudge.io.values import are_answered, is_chat, nested_names

_STATUSES: Final = ("scored", "abstained", "failed")
_LABELLED: Final = ("value", "status", "reason", "provenance")
_SCORES: Final = (
    "score", "scores", "reward", "rewards", "value", "values", "label", "labels", "is_correct", "correct", "outcome",
    "rating",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The columns of scored rows.

    Attributes:
        response: the response, or a list of them; of labelled rows with several, `column` says which.
        score: the score, or None where the rule needs none.
        group: what the rows of a group share; "" where each row holds all answers to its prompt.
        named: whether groups have names of their own, and are not told apart by their prompts.
        labelled: whether `adjudge label` wrote the rows.
        coalesced: whether rows hold the scores of several scorers, and that of the first which settled a row counts.
        answered: whether the prompts are chats that end with an answer other than the response; it is left out.
        words: what words in the score column are worth.
        notes: how the columns were chosen.
    """

    prompt: Column
    response: Column
    score: Column | None
    id: Column | None
    group: str
    named: bool
    labelled: bool
    coalesced: bool = False
    answered: bool = False
    words: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def layout_of(config: PairsConfig, rule: Rule, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Layout:
    """Return which column is what, or raise `ValueError` for one that is needed and not there."""
    return _Choice(config, rule, list(columns), rows).layout()


def within(home: str, names: str) -> str:
    """Return a name of columns with each of them inside an object: "input.a+input.b" for "a+b"."""
    return re.sub(r"(?:^|(?<=[+|]))(?=[^+|])", home, names)


def is_labelled(row: Mapping[str, Any]) -> bool:
    """Return whether `adjudge label` wrote a row, with one score or with scores by name."""
    if all(name in row for name in _LABELLED):
        return row["status"] in _STATUSES
    return "scores" in row and "not_asked" in row


class _Choice:
    def __init__(self, config: PairsConfig, rule: Rule, columns: list[str], rows: Sequence[Mapping[str, Any]]) -> None:
        self._config = config
        self._rule = rule
        self._rows = rows
        self._known = [*columns, *nested_names(rows)]
        self._labelled = bool(rows) and all(is_labelled(row) for row in rows)
        self._notes: list[str] = []
        self._coalesced = False

    def layout(self) -> Layout:
        config, rule = self._config, self._rule
        if self._labelled:
            self._notes.append("the input was written by `adjudge label`")
            if not any(isinstance(row.get("input"), Mapping) for row in self._rows):
                raise ValueError(
                    "the input holds scores without the rows they are of; name the file that was labelled with --rows, "
                    "or label again with --keep-columns"
                )
        for name in rule.needs.columns:
            if all(Column(name).of(row) is MISSING for row in self._rows):
                raise ValueError(unknown_column(name, self._known, f"the rule {rule.name}"))
        joined = any("sample" in row for row in self._rows) if config.rows else False
        named = [row.get("column") for row in self._rows] if self._labelled and not config.response_column else []
        response: Column | None
        if joined:
            response = Column("sample.response")
        elif named and all(isinstance(name, str) for name in named):  # a labelled row says which of several was scored
            self._notes.append("response: the column that each row names")
            response = Column(within("input.", str(named[0])))
        else:
            response = self._column("response", config.response_column, GUESSES["response"], steps=rule.needs.stepped)
        prompt = Column("sample.prompt") if joined else self._column("prompt", config.prompt_column, GUESSES["prompt"])
        if response is None or prompt is None:
            what = "response" if response is None else "prompt"
            raise ValueError(
                f"no column looks like a {what}; name it with --{what}-column. The columns are: "
                f"{', '.join(self._known[:40]) or 'none'}"
            )
        answered = not config.prompt_column and not joined and are_answered(prompt.of(row) for row in self._rows)
        if answered:
            self._notes.append("prompt: without the answers that end the chats (--prompt-column keeps them)")
        lists = any(isinstance(value := response.of(row), list) and not is_chat(value) for row in self._rows)
        listed = lists and not self._labelled and not rule.needs.stepped
        group, has_name = self._group(prompt, listed)
        return Layout(
            prompt=prompt,
            response=response,
            score=self._score(response),
            id=Column("id") if self._labelled else self._column("id", config.id_column, GUESSES["id"]),
            group=group,
            named=has_name,
            labelled=self._labelled,
            coalesced=self._coalesced,
            answered=answered,
            words=config.words(),
            notes=tuple(self._notes),
        )

    def _column(self, role: str, name: str, guesses: Sequence[str], *, steps: bool = False) -> Column | None:
        flag = f"--{role.replace('_', '-')}-column"
        if name:
            return self._given(name, flag)
        inside = "input." if self._labelled else ""
        for guess in (*guesses, *(("steps",) if steps else ())):
            found = within(inside, guess)
            if self._there(found):
                self._notes.append(f"{role}: column {found!r} (guessed; {flag} chooses another)")
                return Column(found)
        return None

    def _given(self, name: str, flag: str) -> Column:
        homes = ("", "input.", "scores.") if self._labelled else ("",)
        for home in sorted(homes, reverse="+" in name):  # "input" of several is a column of the row that was labelled
            if self._there(found := within(home, name)):
                return Column(found)
        raise ValueError(unknown_column(name, self._known, flag))

    def _there(self, name: str) -> bool:
        parts = [Column(part) for part in name.split("+") if part]
        return name in self._known or all(any(part.of(row) is not MISSING for row in self._rows) for part in parts)

    def _score(self, response: Column) -> Column | None:
        name = self._config.score_column
        if name:
            return self._given(name, "--score-column")
        if self._labelled and self._there("value"):
            return Column("value")
        if self._labelled:  # with scores by name
            names = list(dict.fromkeys(name for row in self._rows for name in row["scores"]))
            if len(names) == 1:
                return Column(f"scores.{names[0]}")
            self._coalesced = True
            self._notes.append(
                f"score: of each row that of the first scorer which settled it ({', then '.join(names)}), so their "
                "numbers must be on one scale; --score-column takes those of one"
            )
            return Column("scores")
        # Of solutions in steps, "labels" and "values" are lists of the steps' own.
        for guess in ("outcome", *_SCORES) if self._rule.needs.stepped else _SCORES:
            if guess != response.name and self._there(guess):
                self._notes.append(f"score: column {guess!r} (guessed; --score-column chooses another)")
                return Column(guess)
        if self._rule.needs.score:
            raise ValueError(
                f"no column looks like a score (tried {', '.join(_SCORES)}), and the rule {self._rule.name} needs one; "
                f"name it with --score-column. The columns are: {', '.join(self._known[:40])}"
            )
        return None

    def _group(self, prompt: Column, listed: bool) -> tuple[str, bool]:
        if self._config.group_column:
            return self._given(self._config.group_column, "--group-column").name, True
        for guess in ("group",) if self._labelled else GUESSES["group"]:
            if self._there(guess) and all(Column(guess).of(row) not in (MISSING, None, "") for row in self._rows):
                self._notes.append(f"group: column {guess!r} (guessed; --group-column chooses another)")
                return guess, True
        if listed:
            self._notes.append("group: each row, which holds all answers to its prompt")
            return "", False
        self._notes.append(f"group: rows of one prompt ({prompt.name!r}; --group-column chooses another)")
        return prompt.name, False


_MAX_BEGINNINGS: Final = 1000


class LabelledRows:
    """A source of scores, each with its row in `input`.

    Raises:
        ValueError: a column is not there.
    """

    def __init__(self, scores: Source, rows: Source, config: PairsConfig) -> None:
        self.name = scores.name
        self._scores, self._rows = scores, rows
        seen = glance(rows)
        named = dict.fromkeys(row.get("column") for row in glance(scores).rows)
        given = tuple(name for name in named if isinstance(name, str)) or (config.response_column,)
        wanted = Wanted(
            prompt=config.prompt_column,
            responses=tuple(name for name in given if name),
            id=config.id_column,
        )
        columns, notes = map_columns(wanted, seen.columns, seen.rows, closed=seen.closed)
        self.notes = tuple(note for note in notes if note.startswith(("response", "prompt", "id")))
        self._read = ", ".join(column.name for column in columns.responses)
        self._sampler = Sampler(columns=columns, keep=True)

    def identity(self) -> dict[str, Any]:
        """Return what must be the same for a job to go on."""
        return {"scores": self._scores.identity(), "rows": self._rows.identity()}

    def columns(self) -> list[str] | None:
        """Return None: the rows tell."""
        return None

    def count(self) -> int | None:
        """Return the number of scores, or None if unknown."""
        return self._scores.count()

    def fraction(self, cursor: Cursor) -> float | None:
        """Return the share of the scores before a place, from 0 to 1, or None if unknown."""
        return self._scores.fraction(cursor)

    def rows(self, start: Cursor) -> Iterator[Row]:
        """Yield the scores behind a place, each with its row in `input`, and in `sample` what was scored of it.

        Raises:
            JobError: the rows are not those that were labelled.
        """
        rows: Iterator[Row] = iter(())
        items: dict[str, Item] = {}
        number, beginnings = -1, 0
        for score in self._scores.rows(start):
            wanted = None if score.data is None else score.data.get("row")
            if score.data is None or not isinstance(wanted, int):
                yield score
                continue
            if wanted < number or beginnings == 0:
                rows, number, beginnings = self._rows.rows(Cursor()), -1, beginnings + 1
                if beginnings > _MAX_BEGINNINGS:
                    raise JobError(f"the scores in {self.name} are in no order; sort them by `row`")
            while number < wanted:
                row = next(rows, None)
                if row is None:
                    raise self._mismatch(score.data, f"it has {number + 1} rows")
                number = row.index
                if number == wanted:
                    items = {item.id: item for item in self._sampler.items(row, "")}
            yield replace(score, data=self._joined(score.data, items))

    def _joined(self, score: Mapping[str, Any], items: Mapping[str, Item]) -> Mapping[str, Any]:
        item = items.get(str(score.get("id")))
        if item is None:
            raise self._mismatch(score, f"the id there is {next(iter(items), '')!r}")
        if hash_of(item.sample) != score.get("sample_hash"):
            raise self._mismatch(score, "another prompt or response is there")
        sample = None if item.sample is None else {"prompt": item.sample.prompt, "response": item.sample.response}
        return {**score, "input": item.input, "sample": sample}

    def _mismatch(self, score: Mapping[str, Any], what: str) -> JobError:
        return JobError(
            f"{self._rows.name} does not hold what was scored in {self.name}: at row {score['row']}, id "
            f"{score.get('id')!r}, {what} (response: column {self._read!r}). Name the file that was labelled, "
            "unchanged, and its columns as `adjudge label` was told them (--prompt-column, --response-column, "
            "--id-column)"
        )
