"""Asserts about calls with literal arguments: tests that are data, although they come as source.

Most lists of asserts, and most `check` functions, hold nothing but `assert f([1, 2]) == 3`.  Such tests are read once,
as what they ask and what they say of the answer.  Nothing of them has to be executed then, so they need no process
beside the candidate's, which is half of what a verdict costs.  An answer is compared by the same operator as in the
assert and, being plain data (`adjudge.sandbox.codec`), by no code of the candidate's.

Read are `==`, `!=`, `is` and `is not` with a literal, the truth of an answer, and `abs(answer - number)` below a
number; arithmetic among numbers counts as a literal.  Not covered: everything else.  A suite with a single statement of
another kind has no claims, and its tests run as what they are (`adjudge.sandbox.guest_tests`).
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from adjudge.sandbox import codec

_PATH = re.compile(r"([^\W\d]\w*)(?:(?:\(\))?\.([^\W\d]\w*))?")


@dataclass(frozen=True, slots=True)
class Target:
    """A function, or a class and one of its methods.

    A function has the method "".
    """

    name: str
    method: str = ""

    @classmethod
    def read(cls, text: str) -> Target | None:
        """Return what "f", "Solution().f" or, for the same, "Solution.f" names; None if that is neither."""
        path = _PATH.fullmatch(text)
        return None if path is None else cls(path[1], path[2] or "")


Relation = Literal["==", "!=", "is", "is not", "true", "false", "<", "<="]

_NUMBERS = (int, float, complex)
_SINGLE = (bool, type(None))  # of which there is one of each value
_LITERALS = (*_NUMBERS, *_SINGLE, str, bytes)
_MAX_BITS = 4096  # of a power that is worked out here
_SUMS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow,
}  # fmt: skip
_RELATIONS: dict[type[ast.cmpop], Relation] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not", ast.Lt: "<", ast.LtE: "<=",
}  # fmt: skip
_COMPARED: dict[Relation, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "is": operator.is_, "is not": operator.is_not,
}  # fmt: skip


class _OtherError(Exception):
    """A piece of source that is not a claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One assert.

    Attributes:
        relation: what holds between the answer and `value`; "true" and "false" are of the answer alone, "<" and "<="
            of its distance from `value` and `bound`.
        value: see `relation`.
        bound: see `relation`.
        message: what the assert says when it fails, where that is a literal.
    """

    target: Target
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    relation: Relation = "true"
    value: Any = None
    bound: Any = None
    line: int = 1
    message: str = ""

    def holds(self, answer: Any) -> bool:
        """Return whether an answer bears it out; an answer that the operator does not take does not."""
        try:
            if self.relation in ("true", "false"):
                return bool(answer) == (self.relation == "true")
            if self.relation in ("<", "<="):
                distance = abs(answer - self.value)
                return bool(distance < self.bound if self.relation == "<" else distance <= self.bound)
            return bool(_COMPARED[self.relation](answer, self.value))
        except (TypeError, ValueError, ArithmeticError, RecursionError):  # as in the assert, which fails of it
            return False
        except Warning:  # of numpy, where the caller has made errors of warnings
            return False


def read_claims(sources: Sequence[str], take: Iterable[str], check: str = "") -> tuple[tuple[Claim, ...], ...]:
    """Return the claims of each test, or () if one of them is not made of claims alone.

    Sources parse; `take` names what they get from the candidate, and `check` what its `check` is called with, as
    `Target.read` reads it, for tests that define one.
    """
    names = {name: Target(name) for name in take}
    try:
        read = tuple(tuple(_claims(ast.parse(source), names, check)) for source in sources)
        for claim in (claim for claims in read for claim in claims):
            codec.dumps((claim.args, dict(claim.kwargs)))
    except (_OtherError, codec.CodecError, TypeError, ArithmeticError, RecursionError):
        return ()
    return read if all(read) else ()


def _claims(tree: ast.Module, names: Mapping[str, Target], check: str) -> Iterable[Claim]:
    body: Sequence[ast.stmt] = tree.body
    if check:
        functions = [node for node in body if isinstance(node, ast.FunctionDef)]
        for node in body:
            if node not in functions and not _says_nothing(node, names):
                raise _OtherError
        if len(functions) != 1:
            raise _OtherError
        target = Target.read(check)
        if target is None:
            raise _OtherError
        body, names = functions[0].body, {**names, _parameter(functions[0]): target}
    for node in body:
        if isinstance(node, ast.Assert):
            if not (isinstance(node.test, ast.Constant) and node.test.value):
                yield _claim(node, names)
        elif not _says_nothing(node, names):
            raise _OtherError


def _parameter(node: ast.FunctionDef) -> str:
    """Return the one parameter of a plain `check` function."""
    match node:
        case ast.FunctionDef(
            name="check",
            decorator_list=[],
            args=ast.arguments(
                posonlyargs=[], args=[ast.arg(arg=name)], vararg=None, kwonlyargs=[], kwarg=None, defaults=[]
            ),
        ):
            return name
    raise _OtherError


def _says_nothing(node: ast.stmt, names: Mapping[str, Target]) -> bool:
    """Return whether a statement is `pass`, a text, or a literal with a name that no claim uses."""
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in (*names, "abs", "check"):
            _literal(value)
            return True
    return False


def _claim(node: ast.Assert, names: Mapping[str, Target]) -> Claim:
    message = str(node.msg.value) if isinstance(node.msg, ast.Constant) else ""
    common: dict[str, Any] = {"line": node.lineno, "message": message}
    match node.test:
        case ast.Call() as call:
            return Claim(relation="true", **_call(call, names), **common)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call() as call):
            return Claim(relation="false", **_call(call, names), **common)
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _RELATIONS:
            return Claim(**_compared(left, _RELATIONS[type(sign)], right, names), **common)
    raise _OtherError


def _compared(left: ast.expr, relation: Relation, right: ast.expr, names: Mapping[str, Target]) -> dict[str, Any]:
    if relation in ("<", "<="):
        match left:
            case ast.Call(
                func=ast.Name(id="abs"), args=[ast.BinOp(left=one, op=ast.Sub(), right=other)], keywords=[]
            ) if "abs" not in names:
                call, number = (one, other) if isinstance(one, ast.Call) else (other, one)
                value, bound = _literal(number), _literal(right)
                if type(value) in _NUMBERS and type(bound) in (int, float):
                    return {"relation": relation, "value": value, "bound": bound, **_call(call, names)}
        raise _OtherError
    if relation in ("is", "is not") and not (isinstance(right, ast.Constant) and type(right.value) in _SINGLE):
        raise _OtherError
    call, other = (left, right) if isinstance(left, ast.Call) else (right, left)
    return {"relation": relation, "value": _literal(other), **_call(call, names)}


def _call(node: ast.expr, names: Mapping[str, Target]) -> dict[str, Any]:
    """Return the target and the arguments of a call of the candidate's function, or of a method of its class."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in names:
            target = names[name]
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Name(id=name), args=[], keywords=[]), attr=method)
        ) if name in names and not names[name].method:
            target = Target(names[name].name, method)
        case _:
            raise _OtherError
    kwargs = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise _OtherError
        kwargs[keyword.arg] = _literal(keyword.value)
    return {"target": target, "args": tuple(map(_literal, node.args)), "kwargs": kwargs}


def _literal(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value) if type(value) in _LITERALS:
            return value
        case ast.List(elts=items):
            return [_literal(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_literal(item) for item in items)
        case ast.Set(elts=items):
            return {_literal(item) for item in items}
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {_literal(key): _literal(value) for key, value in zip(keys, values, strict=True) if key is not None}
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            value = _literal(operand)
            if type(value) in _NUMBERS:
                return -value if isinstance(sign, ast.USub) else value
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SUMS:
            return _sum(_literal(left), type(sign), _literal(right))
    raise _OtherError


def _sum(left: Any, sign: type[ast.operator], right: Any) -> Any:
    if not (type(left) in _NUMBERS and type(right) in _NUMBERS):
        raise _OtherError
    if sign is ast.Pow and not (
        type(left) is int and type(right) is int and right >= 0 and left.bit_length() * right <= _MAX_BITS
    ):
        raise _OtherError
    return _SUMS[sign](left, right)
