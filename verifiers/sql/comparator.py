"""When two results count as the same: one object with every choice spelt out, and published ways as named ones.

How lenient a comparison is changes who wins a benchmark, so it is a policy and not a constant.

Which columns of one result stand for which of another is found by a backtracking search over columns with equal
contents.  Each step refines a number per row that stands for the row's cells chosen so far, so a wrong choice is seen
after one pass; columns with the same contents are tried once.  Numbers within a tolerance of a reference number are
made equal to it first (`Snap`), so that tables are compared by hashing, in linear time, and not by pairs of rows.

Sources: BIRD mini-dev `evaluation_ex.py` (4d970a9); test-suite-sql-eval `exec_eval.py` (e97acc5); defog sql-eval
`eval.py` (b833324); IBM text2sql-eval-toolkit `text2sql_utils.py` (02fef3d).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

from adjudge.options import Range, check_options
from adjudge.verifiers.sql.engine import Cell, Row, Table

MAX_WORK = 8_000_000  # cells looked at before giving up: about a second


class SearchLimitError(Exception):
    """The search would take more than `MAX_WORK` cells."""


class ColumnSearch:
    """Looks for columns of `wide` that, in the order of `narrow`'s columns, hold the same rows.

    Args:
        narrow: the columns to be found, each a sequence of cells.
        wide: the columns to choose from; at least as many.
        narrow_runs: a number for each row of `narrow` that must be equal too: its place, or its group of places.
        wide_runs: the same for `wide`.
        distinct: whether rows are compared as a set; else as a bag.
    """

    def __init__(
        self,
        narrow: Sequence[Sequence[Cell]],
        wide: Sequence[Sequence[Cell]],
        narrow_runs: Sequence[int],
        wide_runs: Sequence[int],
        distinct: bool,
    ) -> None:
        self._narrow, self._wide, self._distinct = narrow, wide, distinct
        self._runs = list(narrow_runs), list(wide_runs)
        self._work = 0
        contents: dict[tuple[Cell, ...], int] = {}
        self._same = [contents.setdefault(tuple(column), len(contents)) for column in wide]

    def found(self) -> bool:
        """Return whether there is such a choice of columns.

        Raises:
            SearchLimitError: the search is too large.
        """
        signatures = [self._signature(column, self._runs[1]) for column in self._wide]
        options = []
        for column in self._narrow:
            wanted = self._signature(column, self._runs[0])
            options.append([at for at, signature in enumerate(signatures) if signature == wanted])
        order = sorted(range(len(options)), key=lambda at: len(options[at]))
        return self._extend(order, options, frozenset(), self._runs)

    def _signature(self, column: Sequence[Cell], runs: Sequence[int]) -> Hashable:
        self._spend(len(column))
        pairs = zip(runs, column, strict=True)
        return frozenset(pairs) if self._distinct else frozenset(Counter(pairs).items())

    def _extend(
        self, order: list[int], options: list[list[int]], used: frozenset[int], ids: tuple[list[int], list[int]]
    ) -> bool:
        if not order:
            return True
        tried: set[int] = set()
        for choice in options[order[0]]:
            if choice in used or self._same[choice] in tried:
                continue
            tried.add(self._same[choice])
            refined = self._refine(ids, self._narrow[order[0]], self._wide[choice])
            if refined is not None and self._extend(order[1:], options, used | {choice}, refined):
                return True
        return False

    def _refine(
        self, ids: tuple[list[int], list[int]], left: Sequence[Cell], right: Sequence[Cell]
    ) -> tuple[list[int], list[int]] | None:
        """Return the row numbers with one more column taken in, or None when the rows differ already."""
        self._spend(len(left) + len(right))
        numbers: dict[tuple[int, Cell], int] = {}
        one = [numbers.setdefault(pair, len(numbers)) for pair in zip(ids[0], left, strict=True)]
        known = len(numbers)
        two = [numbers.setdefault(pair, len(numbers)) for pair in zip(ids[1], right, strict=True)]
        if len(numbers) > known:
            return None
        same = set(one) == set(two) if self._distinct else Counter(one) == Counter(two)
        return (one, two) if same else None

    def _spend(self, cells: int) -> None:
        self._work += cells
        if self._work > MAX_WORK:
            raise SearchLimitError(f"matching the columns takes more than {MAX_WORK:,} cells")


class Snap:
    """Maps cells to the reference number they are close to, and everything else to itself.

    Two whole numbers are equal only when they are the same: a count of 1,000,000,001 is not 1,000,000,000.

    `rel_tol` is a share of the reference's number, `abs_tol` in its unit.
    """

    def __init__(self, rows: Iterable[Row], rel_tol: float, abs_tol: float) -> None:
        self._rel, self._abs = rel_tol, abs_tol
        self._numbers: list[int | float] = sorted(
            {cell for row in rows for cell in row if isinstance(cell, int | float)}
        )
        self._named: dict[int | float, int | float] = {}
        anchor: int | float | None = None
        for number in self._numbers:
            if anchor is None or not self._close(number, anchor):
                anchor = number
            self._named[number] = anchor

    def rows(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows with every number replaced."""
        known: dict[Cell, Cell] = dict(self._named)
        return [tuple([self._cell(cell, known) for cell in row]) for row in rows]

    def _cell(self, cell: Cell, known: dict[Cell, Cell]) -> Cell:
        if not isinstance(cell, int | float):
            return cell
        snapped = known.get(cell)
        if snapped is None:
            snapped = known[cell] = self._nearest(cell)
        return snapped

    def _nearest(self, number: int | float) -> int | float:
        at = bisect_left(self._numbers, number)
        close = [other for other in self._numbers[max(0, at - 1) : at + 1] if self._close(number, other)]
        if not close:
            return number
        return self._named[min(close, key=lambda other: abs(other - number))]

    def _close(self, number: int | float, gold: int | float) -> bool:
        if isinstance(number, int) and isinstance(gold, int):
            return False
        try:
            return abs(number - gold) <= max(self._abs, self._rel * abs(gold)) < float("inf")
        except OverflowError:  # a whole number beyond the floats
            return False


@dataclass(frozen=True, slots=True)
class Difference:
    """Why two results are not the same."""

    kind: Literal["columns", "row_count", "rows", "order", "too_complex"]
    text: str


@dataclass(frozen=True, kw_only=True)
class Comparator:
    """Compares a candidate's table with the reference's.

    Attributes:
        rows: "set" (duplicates and order do not count), "bag" (duplicates count), "ordered" (both count), or "auto":
            "ordered" when the reference sorts its result, else "bag".
        sorted_by: what "auto" calls a sorted reference: "outermost", an ORDER BY of its outermost query, or
            "anywhere", the words `order by` anywhere in its text, as the test-suite metric has it.
        ties: rows that the reference's ORDER BY leaves equal may stand in any order ("free"), or not ("strict").
        columns: "position" compares the first column with the first; "any" looks for an order of the candidate's
            columns that fits.
        extra_columns: how many columns the candidate may have beyond the reference's.
        missing_columns: how many of the reference's columns it may lack.
        distinct: "remove" drops the word DISTINCT from both queries before they run.
        nulls: NULL is equal to NULL ("equal"), or to nothing ("differ").
        rel_tol: tolerance on numbers that are not both whole, as a share of the reference's number.
        abs_tol: the same in the number's unit.
    """

    rows: Literal["auto", "set", "bag", "ordered"] = "auto"
    sorted_by: Literal["outermost", "anywhere"] = "outermost"
    ties: Literal["free", "strict"] = "free"
    columns: Literal["position", "any"] = "any"
    extra_columns: Annotated[int, Range(ge=0, le=1000)] = 0
    missing_columns: Annotated[int, Range(ge=0, le=1000)] = 0
    distinct: Literal["keep", "remove"] = "keep"
    nulls: Literal["equal", "differ"] = "equal"
    rel_tol: Annotated[float, Range(ge=0)] = 1e-9
    abs_tol: Annotated[float, Range(ge=0)] = 0.0

    def __post_init__(self) -> None:
        check_options(self, "comparator option")
        if (self.extra_columns or self.missing_columns) and self.columns == "position":
            raise ValueError(
                "comparator: extra_columns and missing_columns need columns='any'; set it, or leave them 0"
            )

    def difference(
        self, gold: Table, candidate: Table, *, ordered: bool = False, runs: Sequence[int] | None = None
    ) -> Difference | None:
        """Return how the candidate's table differs from the reference's, or None when it does not.

        Args:
            gold: the reference's table.
            candidate: the candidate's.
            ordered: what "auto" makes of the reference's query.
            runs: a number for each row of the reference, equal for rows whose order is free; by default each row
                has a place of its own.
        """
        if not gold.rows and not candidate.rows:
            return None
        wide = len(candidate.columns) - len(gold.columns)
        if not -self.missing_columns <= wide <= self.extra_columns:
            return Difference("columns", f"{len(candidate.columns)} columns instead of {len(gold.columns)}")
        if self.rows != "set" and len(gold.rows) != len(candidate.rows):
            return Difference("row_count", f"{len(candidate.rows)} rows instead of {len(gold.rows)}")
        in_order = self.rows == "ordered" or (self.rows == "auto" and ordered)
        golds, candidates = self._comparable(gold.rows, candidate.rows)
        places = [0] * len(golds)
        if in_order:
            places = list(runs) if runs is not None and self.ties == "free" else list(range(len(golds)))
        try:
            if self._same(golds, candidates, places, wide):
                return None
            if in_order and self._same(golds, candidates, [0] * len(golds), wide):
                return Difference("order", "the same rows in another order")
        except SearchLimitError as error:
            return Difference("too_complex", str(error))
        return Difference("rows", "other rows")

    def _comparable(self, gold: list[Row], candidate: list[Row]) -> tuple[list[Row], list[Row]]:
        if self.rel_tol or self.abs_tol:
            floats = any(type(cell) is float for rows in (gold, candidate) for row in rows for cell in row)
            if floats:
                snap = Snap(gold, self.rel_tol, self.abs_tol)
                gold, candidate = snap.rows(gold), snap.rows(candidate)
        if self.nulls == "differ":
            gold = [tuple(object() if cell is None else cell for cell in row) for row in gold]
        return gold, candidate

    def _same(self, gold: list[Row], candidate: list[Row], places: list[int], wide: int) -> bool:
        distinct = self.rows == "set"
        if wide == 0 and _rows_equal(gold, candidate, places, distinct):
            return True
        if self.columns == "position" or not gold or not candidate:
            return False
        # Without distinct, both have as many rows; with it, every place is 0.
        other = [0] * len(candidate) if distinct else places
        tables = (list(zip(*gold, strict=True)), list(zip(*candidate, strict=True)))
        narrow, broad = tables if wide >= 0 else tables[::-1]
        runs = (places, other) if wide >= 0 else (other, places)
        return ColumnSearch(narrow, broad, *runs, distinct).found()


def _rows_equal(gold: list[Row], candidate: list[Row], places: list[int], distinct: bool) -> bool:
    if distinct:
        return set(gold) == set(candidate)
    if gold == candidate:
        return True
    return Counter(zip(places, gold, strict=True)) == Counter(zip(places, candidate, strict=True))


POLICIES: Final[dict[str, Comparator]] = {
    "default": Comparator(),
    "strict": Comparator(columns="position", rel_tol=0.0),
    # Set equality of tuples; the position of columns counts, order and duplicates do not.
    "bird": Comparator(rows="set", columns="position", rel_tol=0.0),
    # Bag equality up to the order of columns; rows in order when the reference says "order by" anywhere.
    "test_suite": Comparator(sorted_by="anywhere", ties="strict", distinct="remove", rel_tol=0.0),
    "spider": Comparator(sorted_by="anywhere", ties="strict", rel_tol=0.0),
    # Duplicate rows dropped, further columns accepted.  pandas compares floats to 1e-5 there.
    "defog": Comparator(rows="set", extra_columns=1000, rel_tol=1e-5, abs_tol=1e-8),
    # The toolkit sorts cells, and then columns, as text, which also accepts tables that differ; this one does not.
    "ibm": Comparator(sorted_by="anywhere", ties="strict", rel_tol=0.0),
    "ibm_subset": Comparator(
        sorted_by="anywhere", ties="strict", extra_columns=1000, missing_columns=1000, rel_tol=1e-15
    ),
}


def comparator(choice: str | dict[str, Any] | Comparator) -> Comparator:
    """Return a comparator by name, or from its options; the key "policy" names what the others change.

    Raises:
        ValueError: no policy has that name, or an option means nothing.
    """
    if isinstance(choice, Comparator):
        return choice
    if isinstance(choice, str):
        if choice not in POLICIES:
            raise ValueError(f"there is no comparator {choice!r}; the named ones are {', '.join(POLICIES)}")
        return POLICIES[choice]
    if not isinstance(choice, dict):
        raise ValueError(
            f"the comparator is {choice!r:.80}; give a name ({', '.join(POLICIES)}) or a mapping of options"
        )
    options = dict(choice)
    base = comparator(options.pop("policy", "default"))
    if unknown := sorted(options.keys() - Comparator.__dataclass_fields__.keys()):
        known = ", ".join(Comparator.__dataclass_fields__)
        raise ValueError(f"comparator: there is no option {unknown[0]!r}; the options are {known}")
    return replace(base, **options)
