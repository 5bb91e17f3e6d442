"""A task for which tests are made, as read from a row or from the rows of a group.

Not covered: whether the solutions are right; that is what agreement is for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.data_pipelines.tasks.unit_tests.calls_guest import DEPTH
from adjudge.data_pipelines.tasks.unit_tests.config import UnitTestsConfig
from adjudge.data_pipelines.tasks.unit_tests.known_inputs import inside
from adjudge.io.columns import MISSING, Column
from adjudge.io.jobs.maker import Unit

_DEEPEST = DEPTH + 10  # of known tests: a list of tests holds objects, which hold arguments
_ENTRY = re.compile(r"[A-Za-z_]\w*(?:\(\)\.[A-Za-z_]\w*)?", re.ASCII)
_RIGHT = {"pass", "passed", "right", "correct", "true", "1"}
_WRONG = {"fail", "failed", "wrong", "incorrect", "timeout", "error", "false", "0"}


class UnusableRow(Exception):
    """A row that tests cannot be made for; the message is the reason, in snake_case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What there is to make tests from.

    Attributes:
        prompt: the task's text.
        entry_point: the function under test, or "Class().method"; "" for a program that reads standard input.
        solutions: programs that are taken to be right, no two of them the same but for layout and comments.
        wrong: programs that are known to be wrong, likewise.
        known: tests that exist already, in whatever form.
        copies: how many solutions were left out for being the same.
    """

    prompt: str
    entry_point: str = ""
    solutions: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    known: tuple[Any, ...] = field(default_factory=tuple)
    copies: int = 0


def read_problem(unit: Unit, config: UnitTestsConfig) -> Problem:
    """Return the task of a row, or of the rows of a group.

    Raises:
        UnusableRow: a value is missing or of the wrong type.
    """
    right: list[str] = []
    wrong: list[str] = []
    known: list[Any] = []
    for row in unit.rows:
        programs = _programs(_value(row, config.solutions_column))
        (right if _is_right(row, config) else wrong).extend(programs)
        wrong.extend(_programs(_value(row, config.wrong_column)))
        tests = _value(row, config.tests_column)
        if any(depth > _DEEPEST for _, depth in inside(tests)):
            raise UnusableRow("nested_too_deeply")
        if tests is not None and tests not in known:
            known.append(tests)
    prompts = {_text(_value(row, config.prompt_column)) for row in unit.rows}
    entries = {_entry_point(_value(row, config.entry_point_column)) for row in unit.rows}
    if len(prompts) > 1 or len(entries) > 1:
        raise UnusableRow("tasks_differ")
    distinct = distinct_programs(right)
    return Problem(
        prompt=prompts.pop(),
        entry_point=entries.pop(),
        solutions=distinct,
        wrong=distinct_programs(wrong),
        known=tuple(known),
        copies=len(right) - len(distinct),
    )


def distinct_programs(programs: Iterable[str]) -> tuple[str, ...]:
    """Return programs without those that repeat an earlier one: copies agree, and that says nothing."""
    found: dict[str, str] = {}
    for program in programs:
        found.setdefault(_form(program), program)
    return tuple(found.values())


def _form(program: str) -> str:
    """Return a program without layout, comments and docstrings, if it is Python; else without trailing blanks."""
    try:
        tree = ast.parse(program)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef | ast.Module):
                body = [one for one in node.body if not _is_text(one)]
                node.body = body or [ast.Pass()]
        return ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "\n".join(line.rstrip() for line in program.strip().splitlines())


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _value(row: Mapping[str, Any], column: str) -> Any:
    value = Column(column).of(row) if column else None
    return None if value is MISSING else value


def _programs(value: Any) -> Sequence[str]:
    if value is None:
        return ()
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not all(isinstance(program, str) for program in given):
        raise UnusableRow("bad_program")
    return [program for program in given if program.strip()]


def _is_right(row: Mapping[str, Any], config: UnitTestsConfig) -> bool:
    if not config.label_column:
        return True
    label = _value(row, config.label_column)
    text = str(int(label)) if isinstance(label, bool | float) and label in (0, 1) else str(label).strip().lower()
    if text in _RIGHT:
        return True
    if text in _WRONG:
        return False
    raise UnusableRow("unknown_label")


def _entry_point(value: Any) -> str:
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or not _ENTRY.fullmatch(value):
        raise UnusableRow("bad_entry_point")
    return value


def _text(prompt: Any) -> str:
    if prompt is None or prompt == "":
        raise UnusableRow("no_prompt")
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, list):
        turns = [turn for turn in prompt if isinstance(turn, Mapping) and turn.get("role") == "user"]
        if turns and isinstance(turns[-1].get("content"), str):
            return str(turns[-1]["content"])
    raise UnusableRow("bad_prompt")
