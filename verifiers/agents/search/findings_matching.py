"""Findings beside reference findings: one-to-one, as many pairs as can be, and the F1 of that.

    precision = pairs / findings,  recall = pairs / reference findings,  F1 = 2 * pairs / (findings + references)

The released code of O2-Searcher keeps for each reference the most similar finding alone and then maximises similarity,
which can lose pairs: a finding that is the best for two references blocks the second-best finding of both.  Here the
number of pairs is a maximum.

Not covered: similarity (`findings_similarity`).
"""

from __future__ import annotations

from collections.abc import Sequence


def matched(similar: Sequence[Sequence[float]], threshold: float) -> list[tuple[int, int]]:
    """Return pairs of rows and columns, each in one pair at most, as many as there can be.

    Rows come in their order, and each takes its most similar columns first, so that the result is always the same one.

    Args:
        similar: for each row, its similarity with each column.
        threshold: the least similarity of a pair.
    """
    allowed = [_by_likeness(row, threshold) for row in similar]
    row_of: dict[int, int] = {}
    column_of: dict[int, int] = {}
    for row in range(len(similar)):
        _place(row, allowed, row_of, column_of)
    return sorted(column_of.items())


def _by_likeness(row: Sequence[float], threshold: float) -> list[int]:
    """The columns that a row may have, the most similar ones first."""
    return sorted((at for at, value in enumerate(row) if value >= threshold), key=lambda at: (-row[at], at))


def _place(first: int, allowed: Sequence[Sequence[int]], row_of: dict[int, int], column_of: dict[int, int]) -> None:
    """Find a column for a row, and others for the rows that give way to it (Berge's augmenting path, breadth first)."""
    came: dict[int, int] = {}
    rows = [first]
    for row in rows:
        for column in allowed[row]:
            if column in came:
                continue
            came[column] = row
            if column in row_of:
                rows.append(row_of[column])
                continue
            end: int | None = column
            while end is not None:
                owner = came[end]
                row_of[end] = owner
                column_of[owner], end = end, column_of.get(owner)
            return


def finding_f1(pairs: int, findings: int, references: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 of so many pairs; 0 for no findings."""
    if not pairs:
        return 0.0, 0.0, 0.0
    return pairs / findings, pairs / references, 2 * pairs / (findings + references)
