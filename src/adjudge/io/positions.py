"""References that only point to one of the options beside them, as those of MMLU do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.io.columns import Column, flag_of
from adjudge.io.questions import ANSWER_KEYS, OPTIONS, points_to_option
from adjudge.io.values import list_of, looks_like_list


def refuse_position(
    reference: Column | None,
    rows: Sequence[Mapping[str, Any]],
    option: str = f"{flag_of('reference')} ",
    otherwise: str = "name the scorer that compares with it as it stands, such as --scorer exact",
) -> None:
    """Raise `ValueError` if the reference only points to an option that stands beside it, as in MMLU.

    Whoever chooses the scorer by the reference would compare responses with the number, and every right one got 0.
    """
    if reference is None:
        return
    said = [(value, row) for row in rows if (value := reference.cell(row)) is not None]
    for name in OPTIONS if said else ():
        if 2 * sum(_points(value, row.get(name)) for value, row in said) > len(said):
            remedy = f"name both, {option}{name}+{reference.name}"
            if reference.name not in ANSWER_KEYS:
                remedy = 'give both in one column, {"choices": [...], "answer": ...}'
            raise ValueError(
                f"the column {reference.name!r} only points to one of the texts in {name!r} (the first is "
                f"{said[0][0]!r}), and no scorer can tell that from the column alone; {remedy}, for the scorer "
                f"`choice`, or {otherwise}"
            )


def _points(value: Any, options: Any) -> bool:
    """Whether a value is the position of an option, or its letter; of options that are text, as in CSV, a digit too."""
    if looks_like_list(options) and isinstance(value, str) and len(value.strip()) == 1 and value.strip().isdecimal():
        value = int(value)
    if looks_like_list(options := list_of(options)):  # not JSON, so nobody can count them
        return isinstance(value, int) or (isinstance(value, str) and len(value.strip(" ().")) == 1)
    return points_to_option({"options": options, "answer": value}, alone=isinstance(value, str))
