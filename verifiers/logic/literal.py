"""Read one value written as a Python or JSON literal; nothing is evaluated.

Numbers, texts, bytes, booleans, None, lists, tuples, sets and mappings of them are values.  `true`, `false` and `null`
are read as JSON means them.  Sizes are bounded: 100,000 characters, 100 open brackets, whole numbers of 4,300 digits.

Not covered: arithmetic (`1 + 2`), calls (`set()`, `float("nan")`), names and f-strings; they are not literals.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from typing import Any, Final, TypeVar

from adjudge.reasons import ReasonedError

MAX_CHARACTERS: Final = 100_000
MAX_DEPTH: Final = 100
MAX_BITS: Final = 14_000  # of a whole number in hexadecimal digits; Python writes out 4,300 decimal ones

Read = TypeVar("Read")

_BRACKET = re.compile(r"[()\[\]{}]")
_WORDS: Final = {"true": True, "false": False, "null": None}
_PLAIN = (str, bytes, int, float, complex, bool, type(None))


class LiteralError(ReasonedError):
    """A text that is not a literal."""


def read_literal(text: str) -> Any:
    """Return the value that a text states; `LiteralError` if it is not a literal, or beyond the sizes."""
    return _guarded(lambda: _value(parse_python(text.strip())))


def read_unambiguous(text: str) -> Any:
    """Return what `read_literal` does of a text in which no mapping has a key twice."""
    tree = parse_python(text.strip())
    value = value_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and len({ast.dump(key) for key in node.keys if key}) < len(node.keys):
            raise LiteralError("several_answers", "a key is there twice")
    return value


def read_arguments(text: str, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments that a text states for one call of a function: "[1, 2], key=3", or "f([1, 2], key=3)"."""
    text = text.strip()
    call = text if re.match(rf"{re.escape(name)}\s{{0,3}}\(", text) else f"{name}({text})"
    return _guarded(lambda: _arguments(parse_python(call), name))


def read_claim(text: str, name: str) -> Any:
    """Return the value that a text states for a call of a function: the value alone, or "f(...) == value"."""
    text = text.strip().removeprefix("assert ").strip()
    return _guarded(lambda: _claimed(parse_python(text), name))


def value_of(node: ast.expr) -> Any:
    """Return the value of a part of a syntax tree that is a literal."""
    return _guarded(lambda: _value(node))


def parse_python(text: str) -> ast.expr:
    """Return the syntax tree of one Python expression; `LiteralError` if it is none, or beyond the sizes."""
    if len(text) > MAX_CHARACTERS:
        raise LiteralError("too_complex", f"{len(text)} characters; a literal may have {MAX_CHARACTERS}")
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth += 1 if bracket[0] in "([{" else -1
        if depth > MAX_DEPTH:
            raise LiteralError("too_complex", f"more than {MAX_DEPTH} open brackets")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes such as "\d"
            return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise LiteralError("unparsable_answer", "it is not a literal") from error
    except (MemoryError, RecursionError) as error:  # the parser's own limits: 6,000 signs in a row, for example
        raise LiteralError("too_complex", "it is nested too deeply") from error


def _guarded(read: Callable[[], Read]) -> Read:
    try:
        return read()
    except (TypeError, OverflowError) as error:  # a list as the key of a mapping
        raise LiteralError("unparsable_answer", f"it is not a value: {error}") from error
    except RecursionError as error:
        raise LiteralError("too_complex", "it is nested too deeply") from error


def _claimed(node: ast.expr, name: str) -> Any:
    match node:
        case ast.Compare(left=ast.Call(func=ast.Name(id=called)), ops=[ast.Eq()], comparators=[value]) if (
            called == name
        ):
            return _value(value)
    return _value(node)


def _arguments(node: ast.expr, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    match node:
        case ast.Call(func=ast.Name(id=called)) if called == name:
            keywords = [keyword.arg for keyword in node.keywords]
            if None in keywords or len(set(keywords)) < len(keywords):
                raise LiteralError("unparsable_answer", "a keyword argument is repeated or unpacked")
            named = {str(keyword.arg): _value(keyword.value) for keyword in node.keywords}
            return tuple(map(_value, node.args)), named
    raise LiteralError("unparsable_answer", f"it is not one call of {name}")


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value) if isinstance(value, _PLAIN):
            if isinstance(value, int) and value.bit_length() > MAX_BITS:
                raise LiteralError("too_complex", f"a whole number has more than {MAX_BITS} bits")
            return value
        case ast.Name(id=word) if word in _WORDS:
            return _WORDS[word]
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item) for item in items)
        case ast.Set(elts=items):
            return {_value(item) for item in items}
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {_value(key): _value(value) for key, value in zip(keys, values, strict=True) if key is not None}
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=ast.Constant(value=value)):
            if isinstance(value, int | float | complex) and not isinstance(value, bool):
                return -value if isinstance(sign, ast.USub) else value
    raise LiteralError("unparsable_answer", f"a {type(node).__name__} is not a literal")
