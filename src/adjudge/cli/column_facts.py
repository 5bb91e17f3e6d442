"""What the columns of some rows are, for people: what each is taken for, what it holds, and its first value."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.cli.console import plain
from adjudge.io.columns import MISSING, Column
from adjudge.io.preferences import (
    CHOSEN,
    LABELS,
    PROMPTS,
    RANKS,
    REJECTED,
    RESPONSES,
    SCORES,
    SIDES,
    PreferenceColumns,
)
from adjudge.io.values import is_chat, reference_of
from adjudge.io.values import plain as plain_data
from adjudge.protocol import Sample
from adjudge.scoring.compose.auto import auto_scorer

_REFERENCES: Final = {
    "math": "answers", "code": "tests", "sql": "queries", "verilog": "designs", "instructions": "constraints",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFact:
    """What one column is.

    Attributes:
        name: its name or path.
        role: what it is taken for; "" for nothing.
        guessed: whether nobody named it.
        holds: what kinds of values it has.
        first: its first value that is not empty, shortened.
    """

    name: str
    role: str
    guessed: bool
    holds: str
    first: str


def column_facts(
    roles: Sequence[tuple[Column, str]],
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    named: Sequence[str],
    references: Mapping[str, int],
) -> list[ColumnFact]:
    """Return what each column is, those that are taken for something first.

    Args:
        roles: the columns that are read, each with what it is read as.
        rows: the rows.
        names: all top-level columns.
        named: the columns that the user named.
        references: how many references there are of each kind.
    """
    tops = {top for column, _ in roles for top in column.tops(names)}
    facts = []
    for column, role in [*roles, *((Column(name), "") for name in names if name not in tops)]:
        values = [column.of(row) for row in rows]
        there = next((value for value in values if not _is_empty(value)), None)
        facts.append(
            ColumnFact(
                name=column.name,
                role=role,
                guessed=bool(role) and column.name not in named,
                holds=said_of_references(references) if role == "reference" else _holds(values),
                first="" if there is None else plain(plain_data(there), 40),
            )
        )
    return facts


def references_by_kind(samples: Iterable[Sample]) -> dict[str, int]:
    """Return how many references there are of each kind: by the scorer that they call for, "none" and "unknown"."""
    counted: Counter[str] = Counter()
    for sample in samples:
        try:
            counted["none" if sample.reference is None else scorer_name(auto_scorer(sample.reference))] += 1
        except ValueError:
            counted["unknown"] += 1
    return dict(counted.most_common())


def scorer_name(spec: str) -> str:
    """Return the name of the scorer that "auto" means by a spec."""
    return str(next(iter(json.loads(spec)))) if spec.startswith("{") else spec


def said_of_references(counts: Mapping[str, int]) -> str:
    """Return the counts of references as words."""
    words = {"none": "rows without one", "unknown": "that no scorer is known for"}
    return ", ".join(
        f"{count} {words.get(name) or (f'{_REFERENCES[name]} ({name})' if name in _REFERENCES else name)}"
        for name, count in counts.items()
    )


def preference_roles(rows: Sequence[Mapping[str, Any]], given: PreferenceColumns) -> list[tuple[Column, str]]:
    """Return the columns that preference rows are read from, each with what it is read as."""

    def there(named: str, usual: Sequence[str]) -> list[str]:
        have = [name for name in usual if any(not _is_empty(Column(name).of(row)) for row in rows)]
        return [named] if named else have[:1]

    sides = next((pair for pair in SIDES if all(rows[0].get(name) is not None for name in pair)), ("", ""))
    roles = [(name, "prompt") for name in there(given.prompt, PROMPTS)]
    if given.first or (sides[0] and not there(given.chosen, CHOSEN)):
        first, second = (given.first, given.second) if given.first else sides
        roles += [(first, "first response"), (second, "second response")]
        roles += [(name, "label") for name in there(given.label, LABELS)]
    elif there(given.chosen, CHOSEN):
        roles += [(name, "chosen") for name in there(given.chosen, CHOSEN)]
        roles += [(name, "rejected") for name in there(given.rejected, REJECTED)]
    else:
        roles += [(name, "responses") for name in there(given.responses, RESPONSES)]
        ranks = there(given.ranks, RANKS)
        roles += [(name, "ranks") for name in ranks] or [(name, "scores") for name in there(given.scores, SCORES)]
    return [(Column(name), role) for name, role in roles]


def _is_empty(value: Any) -> bool:
    return value is MISSING or value is None or (isinstance(value, str | list | Mapping) and not value)


def _holds(values: Sequence[Any]) -> str:
    """The kinds of some values, the most frequent first, with counts where there are several."""
    counted = Counter(_kind(plain_data(value)) for value in values).most_common(3)
    return counted[0][0] if len(counted) == 1 else ", ".join(f"{count} {kind}" for kind, count in counted)


def _kind(value: Any) -> str:
    if _is_empty(value):
        return "empty"
    if is_chat(value):
        return "chat"
    if isinstance(value, Mapping):
        return f"object of {', '.join(list(value)[:4])}"
    if isinstance(value, list):
        return f"list of {_kind(value[0])}"
    if isinstance(value, str):
        return "text" if isinstance(reference_of(value), str) else "JSON text"
    return "true or false" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "other data"
