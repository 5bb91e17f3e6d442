r"""What an answer must look like before `reasoning-gym`'s own check may see it.

Ten tasks of version 0.1.25 evaluate the answer: `eval` in `binary_matrix`, `n_queens`, `spiral_matrix` and
`string_insertion`, `sympy.parse_expr`, which evaluates too, in `countdown`, `intermediate_integration`,
`polynomial_multiplication`, `puzzle24` and `simple_integration`, and any of them through `composite`.  Those get
literals and formulas only.  Two more evaluate the reference (`bitwise_arithmetic`, `number_sorting`), which is checked
in the same way.  The other forms keep out what the checks skip, such as words around the answer, and numbers that they
would count up to.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from adjudge.verifiers.logic.expression import exact_value, require_formula
from adjudge.verifiers.logic.literal import LiteralError, parse_python, read_literal

Form = Callable[[str, Mapping[str, Any]], None]
"""Raises `LiteralError` unless an answer, to an entry, has the form."""

_ARBITRARY: Final = frozenset({"C", "c", "K", "k"})  # constants of integration
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz")
_NUMBER: Final = r"[+-]?\d{1,50}(?:\.\d{0,50})?(?:[eE][+-]?\d{1,3})?"
_BITS: Final = (ast.Add, ast.Sub, ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
_MAX_SHIFT: Final = 1_000
_MAX_INTEGRAL: Final = 300  # five times the longest of 240 gold answers; what simplifying takes grows quickly
_MAX_TURNS: Final = 1_000
_TURN: Final = re.compile(r"[A-Za-z]{1,2}'?[0-9]?'?")
_HANOI: Final = re.compile(r"\s*Move disk (\d{1,3}) from Peg (\d{1,3}) to Peg (\d{1,3})\.?\s*", re.IGNORECASE)


def require_form(task: str, answer: str, entry: Mapping[str, Any]) -> None:
    """Raise `LiteralError` unless the task's own check may see an answer."""
    form = _ANSWERS.get(task)
    if form:
        form(answer, entry)


def require_harmless(task: str, entry: Mapping[str, Any]) -> None:
    """Raise `LiteralError` unless the parts of an entry that a task's check evaluates are plain."""
    form = _ENTRIES.get(task)
    if form:
        form(entry)


def _shape(pattern: str) -> Form:
    compiled = re.compile(pattern)

    def form(answer: str, entry: Mapping[str, Any]) -> None:
        del entry
        if not compiled.fullmatch(answer):
            raise LiteralError("unparsable_answer", "it does not have the form that the task asks for")

    return form


def _listed(*keys: str) -> Form:
    """The answer is one of the texts that are right, or a literal."""

    def form(answer: str, entry: Mapping[str, Any]) -> None:
        accepted: Any = entry
        for key in keys:
            accepted = accepted[key]
        if answer != accepted and not (isinstance(accepted, list | tuple) and answer in accepted):
            read_literal(answer)

    return form


def _integral(answer: str, entry: Mapping[str, Any]) -> None:
    if len(answer) > _MAX_INTEGRAL:
        raise LiteralError("too_complex", f"{len(answer)} characters; an integral may have {_MAX_INTEGRAL}")
    require_formula(answer, _ARBITRARY | {str(entry["metadata"]["variable"])})


def _polynomial(answer: str, entry: Mapping[str, Any]) -> None:
    del entry
    require_formula(answer, _LETTERS)


def _from_numbers(answer: str, entry: Mapping[str, Any]) -> None:
    target = Fraction(str(entry["metadata"].get("target", 24)))
    require_formula(answer, frozenset())
    value, used = exact_value(answer)
    if used != sorted(entry["metadata"]["numbers"]) or value != target:
        raise LiteralError("wrong", "it uses other numbers, or gives another one")


def _turns(answer: str, entry: Mapping[str, Any]) -> None:
    """Turns of a cube, apart by white space; the check writes "R999999999" out."""
    del entry
    words = answer.split()
    if len(words) > _MAX_TURNS or not all(_TURN.fullmatch(word) for word in words):
        raise LiteralError("unparsable_answer", "it is not a list of turns")


def _hanoi(answer: str, entry: Mapping[str, Any]) -> None:
    pegs = int(entry["metadata"]["num_pegs"])
    for line in answer.splitlines():
        move = _HANOI.fullmatch(line)
        if line.strip() and not (move and 1 <= int(move[2]) <= pegs and 1 <= int(move[3]) <= pegs):
            raise LiteralError("unparsable_answer", "a line is not a move between pegs that there are")


def _knights(answer: str, entry: Mapping[str, Any]) -> None:
    words = set(re.findall(r"\w+", entry["answer"].casefold()))
    if set(re.findall(r"\w+", answer.casefold())) - words - {"is", "a", "an", "and"}:
        raise LiteralError("unparsable_answer", "it holds other words than names and roles")


def _boxes(answer: str, entry: Mapping[str, Any]) -> None:
    """A list of steps, each of which moves boxes; the check lets targets be moved, too."""
    del entry
    try:
        steps = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise LiteralError("unparsable_answer", "it is not JSON") from error
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise LiteralError("unparsable_answer", "it is not a list of steps")
    for step in steps:
        for place, move in step.items():
            coordinates = re.findall(r"\d{1,4}(?:\.\d{1,4})?", place)
            if len(coordinates) != 2 or not isinstance(move, str) or not move.startswith("move(box_"):
                raise LiteralError("unparsable_answer", "a step moves something other than a box")


def _same_digits(answer: str, entry: Mapping[str, Any]) -> None:
    """Want as many numbers as in the gold answer, and no other letters."""
    gold = entry["answer"]
    numbers = len(re.findall(r"\d+", gold))
    letters = set(re.findall(r"[^\W\d]", gold))
    if len(re.findall(r"\d{1,9}", answer)) != numbers or set(re.findall(r"[^\W\d]", answer)) - letters:
        raise LiteralError("unparsable_answer", "it does not have the form of the gold answer")


_ANSWERS: Final[Mapping[str, Form]] = {
    "advanced_geometry": _shape(rf"\(?\s*{_NUMBER}\s*(?:°|,\s*{_NUMBER}\s*)?\)?"),
    "binary_matrix": _listed("answer"),
    "boxnet": _boxes,
    "coin_flip": _shape(rf"{_NUMBER}|\d{{1,300}}/\d{{1,300}}"),
    "complex_arithmetic": _shape(r"[\d\s.ijIJ+()-]{1,200}"),
    "countdown": _from_numbers,
    "fraction_simplification": _shape(r"\$?\s*(?:\d+\s*/\s*\d+|\\d?frac\s*\{\s*\d+\s*\}\s*\{\s*\d+\s*\})\s*\$?"),
    "intermediate_integration": _integral,
    "kakurasu": _shape(r"[01\s,\[\]]+"),
    "knights_knaves": _knights,
    "n_queens": _listed("metadata", "valid_answers"),
    "polynomial_multiplication": _polynomial,
    "pool_matrix": _shape(r"[\d\s.+-]+"),
    "power_function": _shape(_NUMBER),
    "propositional_logic": _shape(r"[A-Z\s()∧∨¬→↔]{1,1000}"),
    "puzzle24": _from_numbers,
    "quantum_lock": _shape(r"(?:[A-Ca-c\s,→]|->)*"),
    "rubiks_cube": _turns,
    "rush_hour": _shape(r"(?:[A-Z][+-]\d{1,2}[\s,]*){0,2000}"),
    "simple_integration": _integral,
    "sokoban": _shape(r"[UDLR\s,]*"),
    "spiral_matrix": _listed("answer"),
    "string_insertion": _listed("answer"),
    "survo": _shape(r"[\d\s]+"),
    "time_intervals": _same_digits,
    "tower_of_hanoi": _hanoi,
}


def _bitwise(entry: Mapping[str, Any]) -> None:
    _bits(parse_python(entry["metadata"]["problem"]))


def _bits(node: ast.expr) -> None:
    match node:
        case ast.Constant(value=int()):
            return
        case ast.UnaryOp(operand=inner):
            _bits(inner)
        case ast.BinOp(op=ast.LShift(), right=right) if not (
            isinstance(right, ast.Constant) and isinstance(right.value, int) and right.value <= _MAX_SHIFT
        ):
            raise LiteralError("unparsable_answer", "a shift is too large")
        case ast.BinOp(left=left, op=sign, right=right) if isinstance(sign, _BITS):
            _bits(left)
            _bits(right)
        case _:
            raise LiteralError("unparsable_answer", f"a {type(node).__name__} is not arithmetic of bits")


def _integrand(entry: Mapping[str, Any]) -> None:
    variable = frozenset({str(entry["metadata"]["variable"])})
    require_formula(str(entry["metadata"]["integrand"]), variable)


_ENTRIES: Final[Mapping[str, Callable[[Mapping[str, Any]], object]]] = {
    "bitwise_arithmetic": _bitwise,
    "intermediate_integration": _integrand,
    "number_sorting": lambda entry: read_literal(entry["answer"]),
    "polynomial_multiplication": lambda entry: require_formula(entry["answer"], _LETTERS),
    "simple_integration": _integrand,
}
