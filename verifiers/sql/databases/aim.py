"""Rows aimed at queries: their constants among the values, and shared values in the columns that they join.

Not covered: conditions that no constant shows, such as a comparison with a subquery.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from adjudge.verifiers.sql.databases.column_draw import Aim, LookedAt
from adjudge.verifiers.sql.databases.file_facts import FileFacts
from adjudge.verifiers.sql.databases.mutants import (
    all_parsed,
    conditions,
    constants,
    joined_columns,
    lacking,
    looks,
    parsed,
    ranked_columns,
    reached_texts,
    row_limit,
    sorted_columns,
)
from adjudge.verifiers.sql.databases.row_maker import RowMaker
from adjudge.verifiers.sql.databases.rows_like import RowsLike
from adjudge.verifiers.sql.databases.schema_shape import Schema

if TYPE_CHECKING:
    from sqlglot import expressions as exp

_MAX_AIMS: Final = 40  # of a candidate; one may name thousands of constants
_MAX_GROUPED: Final = 120  # rows of a table for groups of a size
_MAX_LIMIT: Final = 200  # rows; tables of a thousand take seconds to make
_ANOTHER_MOMENT: Final = "1990-01-01 00:00:00"  # "up to today" leaves nothing out, so rows of the future aim at nothing


def aimed_rows(
    schema: Schema, queries: Sequence[str], seed: str, moment: str, *, through_keys: bool = False
) -> RowMaker:
    """Return what fills databases of a schema so that queries find something and their neighbours something else.

    Args:
        schema: the tables.
        queries: SQLite queries; those that sqlglot cannot read aim at nothing.
        seed: decides every row.
        moment: what SQLite's clock shows when the queries run.
        through_keys: whether what a foreign key is compared with is also put among the values that it points to.
    """
    names = _column_names(schema)
    groups: dict[str, int] = {}
    for tree in all_parsed(queries):
        for one, other in joined_columns(tree, names):
            _join(groups, one, other)
    compared = _compared(names, queries, moment)
    if through_keys:
        _pass_on(compared, schema)
    return RowMaker(schema, {name: tuple(values) for name, values in compared.items()}, groups, seed)


def rows_like(
    facts: FileFacts,
    queries: Sequence[str],
    seed: str,
    moment: str,
    looked_at: LookedAt,
    candidate: CandidateAim | None = None,
) -> RowsLike:
    """Return what fills databases like a file so that queries find something and their neighbours something else.

    The other arguments are those of `aimed_rows`; `looked_at` says which rows make up the result, and `candidate` what
    one candidate looks at beyond that.
    """
    from sqlglot import expressions as exp

    compared = _compared(_column_names(facts.schema), queries, moment)
    beyond = candidate or CandidateAim()
    trees = all_parsed(queries)
    groups = [group for tree in trees for group in tree.find_all(exp.Group)] if beyond.limit else []
    grouped = {column.name.lower() for group in groups for column in group.find_all(exp.Column)}
    facts = facts.opened(looked_at.spared | grouped)
    for table in facts.tables.values():
        for rule in (rule for rule in table.derived if not rule.outcomes):
            source, target = (table.columns[at].shape.name.lower() for at in (*rule.sources, rule.target))
            parts = (str(value).zfill(rule.part[1] - rule.part[0]) for value in compared.get(target, ()))
            compared.setdefault(source, {}).update(dict.fromkeys(parts))
    if any(map(lacking, trees)):
        facts = facts.uncovered()
    for name, value in beyond.constants:
        compared.setdefault(name, {})[value] = None
    reached: dict[str, list[str | int]] = {}
    for name, text in beyond.reached:
        reached.setdefault(name, []).append(text)
    numbers = [int(word) for query in queries for word in re.findall(r"\b\d{1,2}\b", query)]
    aim = Aim(
        constants={name: tuple(values) for name, values in compared.items()},
        ranked=frozenset(name for tree in trees for name in ranked_columns(tree)),
        sizes=tuple(sorted({size for number in numbers for size in _sizes(number, trees) if size > 1})),
        looked_at=looked_at,
        sorted_by=beyond.named.union(name for tree in trees for name in sorted_columns(tree)),
        reached={name: tuple(texts) for name, texts in reached.items()},
        named=beyond.named,
        aimed=candidate is not None,
        limit=beyond.limit,
    )
    return RowsLike(facts, aim, aimed_rows(facts.schema, queries, seed, moment), seed)


def _sizes(number: int, trees: Sequence[exp.Expr]) -> Iterator[int]:
    """Yield how many rows are just enough, or one too few, for a number in queries, of a table or of its groups."""
    for size in (number, number + 1):
        yield size
        if any(tree.args.get("having") for tree in trees):
            yield from (groups * size for groups in (2, 4, 6) if groups * size < _MAX_GROUPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateAim:
    """What a candidate looks at and no accepted query does; rows aimed at it can only separate.

    Attributes:
        constants: pairs of a lower-case column name and a constant that it compares the column with.
        reached: pairs of such a name and a text that a pattern, a range or a part of the column reaches for, or the
            length of a beginning.
        named: the lower-case names of the columns of which it makes something else than an accepted query.
        sifts: whether it has a condition on a column on which no accepted query has one, so NULL there may matter.
        limit: how many rows it takes at most where no accepted query has a LIMIT; 0 for all, or for very many.
    """

    constants: tuple[tuple[str, Any], ...] = ()
    reached: tuple[tuple[str, str | int], ...] = ()
    named: frozenset[str] = frozenset()
    sifts: bool = False
    limit: int = 0

    @property
    def seed(self) -> str:
        """Text of all this, the same in every process: the order of a set is another one in each."""
        names = ", ".join(map(repr, sorted(self.named)))
        named = f"frozenset({{{names}}})" if names else "frozenset()"
        told = f"constants={self.constants}, reached={self.reached}, named={named}, sifts={self.sifts}"
        return f"CandidateAim({told}{f', limit={self.limit}' if self.limit else ''})"


def candidate_aim(schema: Schema, queries: Sequence[str], candidate: str, moment: str) -> CandidateAim | None:
    """Return what a candidate looks at beyond the accepted queries, or None where that is nothing."""
    names = _column_names(schema)
    known = _compared(names, queries, moment)
    tree = parsed(candidate)
    if tree is None:
        return None
    later = _compared(names, (candidate,), _ANOTHER_MOMENT)
    given = {pair for other in all_parsed(queries) for pair in conditions(other, names)}
    other = {name for name, _ in {*conditions(tree, names)} - given}  # `age >= 40` where `age > 40` is right
    new = other - {name for name, _ in given}
    texts = [text.lower() for values in known.values() for text in values if isinstance(text, str) and "%" not in text]
    wanted = [
        (name, value)
        for name, values in _compared(names, (candidate,), moment).items()
        for value in values
        if (name in other or value not in known.get(name, ()))
        and value != ""
        and value in later.get(name, ())
        # The reference's constant in another case: columns rarely mix cases, and `LOWER(x) = 'france'` is fair.
        and (value in known.get(name, ()) or str(value).lower() not in texts)
    ]
    # A whole constant of the reference within a longer text: `LIKE '%France%'` is a fair answer.
    reached = [
        (name, part)
        for name, part in dict.fromkeys(reached_texts(tree, names))
        if isinstance(part, int) or not any(len(text) > 2 and text in part.lower() for text in texts)
    ]
    own, *others = [dict(looks(one)) for one in (tree, *all_parsed(queries))]
    both = [pair for two in others for pair in ((own, two), (two, own))]
    named = frozenset(name for one, two in both for part in one.keys() - two for name in one[part]) & names
    named |= new
    limits = [row_limit(one) for one in (tree, *all_parsed(queries))]
    limit = limits[0] if not any(limits[1:]) and limits[0] <= _MAX_LIMIT else 0
    if not wanted and not reached and not named and not limit:
        return None
    return CandidateAim(
        constants=tuple(wanted[:_MAX_AIMS]),
        reached=tuple(reached[:_MAX_AIMS]),
        named=named,
        sifts=bool(new),
        limit=limit,
    )


def _column_names(schema: Schema) -> frozenset[str]:
    return frozenset(column.name.lower() for table in schema.tables for column in table.columns)


def _compared(names: frozenset[str], queries: Sequence[str], moment: str) -> dict[str, dict[Any, None]]:
    """Return the constants that each column is compared with."""
    compared: dict[str, dict[Any, None]] = {}
    for tree in all_parsed(queries):
        for name, value in constants(tree, names, moment):
            compared.setdefault(name, {})[value] = None
    return compared


def _pass_on(compared: dict[str, dict[Any, None]], schema: Schema) -> None:
    """Give the columns that foreign keys point to the constants of those that point to them, along whole chains."""
    pairs = [
        (column.name.lower(), column.parent[1].lower())
        for table in schema.tables
        for column in table.columns
        if column.parent is not None
    ]
    grown = True
    while grown:
        grown = False
        for child, parent in pairs:
            fresh = compared.get(child, {}).keys() - compared.get(parent, {}).keys()
            grown = grown or bool(fresh)
            for value in [value for value in compared.get(child, {}) if value in fresh]:
                compared.setdefault(parent, {})[value] = None


def _join(groups: dict[str, int], one: str, other: str) -> None:
    """Put two columns, and all that were joined with them, into one group."""
    number = groups.get(one, groups.get(other, len(groups)))
    for name in [name for name, group in groups.items() if name == other or group == groups.get(other)]:
        groups[name] = number
    groups[one] = groups[other] = number
