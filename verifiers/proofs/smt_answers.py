"""What a response says of a formula: unsat, or sat with a model, or a term.

A model is what solvers print: `(define-fun x () Int 3)`, several of them, in one list or none, or pairs: `((x 3))`.
Its values are built from literals, constructors and total functions, so that nothing is left for a solver to choose;
a division, say, is only one by a literal that is not 0.

Not covered: models that name elements of uninterpreted sorts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final

from adjudge.verifiers.proofs.smt_reference import (
    Expression,
    Formula,
    Function,
    TermError,
    atoms,
    is_literal,
    printed,
    read_expressions,
)

_DEFINING: Final = ("define-fun", "define-const")
_TOTAL: Final = frozenset(
    "ite = and or not xor => distinct < <= > >= + - * store str.++ bvadd bvmul bvand bvor bvxor bvnot bvneg".split()
)

_GROWS: Final = frozenset(("*", "str.++"))  # under nested `let`, to more digits than any solver holds
_MARKS: Final = r"[\s*_`]*"
_FIRST: Final = re.compile(rf"{_MARKS}(?P<said>(?:un)?sat){_MARKS}[.:,!]?{_MARKS}(?=[(;]|\Z)", re.IGNORECASE)
_STATED: Final = re.compile(
    rf"(?:\A|\bis\b|:){_MARKS}(?P<said>(?:un)?sat)(?:isfiable)?{_MARKS}[.!]?{_MARKS}\Z", re.IGNORECASE
)
_NAMED: Final = re.compile(r"\b(?:un)?sat(?:isfiable)?\b", re.IGNORECASE)
_LONGEST = 4_000  # Z3 takes 0.1 s for a number of so many digits, and 10 s for one of 150,000


@dataclass(frozen=True, slots=True)
class Claim:
    """A verdict on a formula, and the definitions that a model gives by name; None where there is no model."""

    verdict: str
    values: Mapping[str, Expression] | None


class AnswerError(ValueError):
    """An answer that is none; `reason` is the code of its zero."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def read_term(text: str) -> Expression:
    """Return the one term of an answer, or what its assertions say together.

    Raises:
        AnswerError: there is none, or more than one.
    """
    expressions = _read(text)
    asserted = [one[1] for one in expressions if isinstance(one, tuple) and len(one) == 2 and one[0] == "assert"]
    if len(asserted) == len(expressions):
        expressions = [("and", *asserted)] if len(asserted) > 1 else asserted
    if len(expressions) != 1:
        raise AnswerError("unparsable_answer", f"the answer holds {len(expressions)} terms; it must be one")
    return expressions[0]


def read_claim(text: str, formula: Formula) -> Claim:
    """Return what an answer claims of a formula.

    Raises:
        AnswerError: it claims nothing, or its model is none.
    """
    verdict, model = _said(text)
    rest = _read(model) if model.strip() else []
    if not verdict and rest and isinstance(rest[0], str):
        raise AnswerError("unparsable_answer", f"the answer begins with {rest[0]:.40}; say sat or unsat")
    if not verdict and not rest:
        raise AnswerError("no_answer", "the answer is empty")
    if verdict == "unsat":
        if rest:
            raise AnswerError("unparsable_answer", "there is something behind unsat")
        return Claim("unsat", None)
    return Claim("sat", _model(rest, formula) if rest else None)


def _said(text: str) -> tuple[str, str]:
    """Return the verdict of a text and what follows it: of its first word, or of the last line of its prose."""
    if first := _FIRST.match(text):
        return first["said"].lower(), text[first.end() :]
    last = text.strip().rpartition("\n")[2]
    stated = None if text.lstrip().startswith("(") else _STATED.search(last)
    if stated and len(_NAMED.findall(last)) == 1:
        return stated["said"].lower(), ""
    return "", text


def _read(text: str) -> list[Expression]:
    inline = re.fullmatch(r"\s*`([^`]+)`\s*", text)
    try:
        terms = read_expressions(inline[1] if inline else text)
    except TermError as error:
        raise AnswerError("too_complex" if error.deep else "unparsable_answer", str(error)) from error
    if not terms:
        raise AnswerError("no_answer", "the answer is empty")
    if any(len(atom) > _LONGEST for atom in atoms(tuple(terms))):
        raise AnswerError("too_complex", f"an atom is longer than {_LONGEST} characters")
    return terms


def _model(given: list[Expression], formula: Formula) -> dict[str, Expression]:
    if len(given) == 1 and isinstance(given[0], tuple) and (not given[0] or given[0][0] not in _DEFINING):
        inner = given[0][1:] if given[0] and given[0][0] == "model" else given[0]
        given = list(inner)
    values: dict[str, Expression] = {}
    for one in given:
        name, parameters, body = _definition(one)
        function = formula.functions.get(name)
        if function is None:
            raise AnswerError("unparsable_answer", f"the model defines {name!r:.60}, which is not declared")
        if name in values:
            raise AnswerError("several_answers", f"the model defines {name!r:.60} twice")
        values[name] = _defined(function, parameters, body, formula)
    if missing := [name for name in formula.functions if name not in values]:
        raise AnswerError("wrong", f"the model says nothing of {missing[0]!r:.60}")
    return values


def _definition(one: Expression) -> tuple[str, tuple[Expression, ...], Expression]:
    match one:
        case ("define-fun", str(name), tuple(parameters), _, body):
            return name, parameters, body
        case ("define-const", str(name), _, body) | (str(name), body):
            return name, (), body
    raise AnswerError("unparsable_answer", f"{printed(one):.60} defines nothing; write (define-fun x () Int 3)")


def _defined(function: Function, parameters: tuple[Expression, ...], body: Expression, formula: Formula) -> Expression:
    """Return the definition that takes a declaration's place, with the declared sorts."""
    names = [one[0] if isinstance(one, tuple) and len(one) == 2 else one for one in parameters]
    plain = [name for name in names if isinstance(name, str) and not is_literal(name)]
    if len(plain) != len(function.arguments) or len(set(plain)) < len(plain) or len(names) != len(plain):
        raise AnswerError(
            "unparsable_answer", f"{function.name!r:.60} takes {len(function.arguments)} arguments, not {len(names)}"
        )
    fresh = {name: f"argument{position}!" for position, name in enumerate(plain)}
    value = _value(body, fresh, formula)
    if function.sort == "Real":
        value = _real(value)
    arguments = tuple((fresh[name], sort) for name, sort in zip(plain, function.arguments, strict=True))
    return ("define-fun", function.name, arguments, function.sort, value)


def _value(term: Expression, fresh: Mapping[str, str], formula: Formula) -> Expression:
    """Return a value with its parameters renamed.

    Raises:
        AnswerError: something in it is not a literal, parameter, constructor or total function.
    """
    if isinstance(term, str):
        if term in fresh:
            return fresh[term]
        if term in ("true", "false") or is_literal(term) or term in formula.constructors:
            return term
        if term.startswith("-") and is_literal(term[1:]):  # no solver takes it, and many people write it
            return ("-", term[1:])
        raise AnswerError("unparsable_answer", f"a value names {term!r:.60}, which is not a value")
    match term:
        case ("/", above, str(below)) if below[0].isdigit() and is_literal(below) and below.strip("0."):
            return ("/", _real(_value(above, fresh, formula)), _real(below))
        case ("_", str(vector), str(width)) if vector[:2] == "bv" and vector[2:].isdigit() and width.isdigit():
            return term
        case (("as", "const", sort), value):
            _sort_only(sort, formula)
            return (("as", "const", sort), _value(value, fresh, formula))
        case ("as", str(name), sort) if name in formula.constructors:
            _sort_only(sort, formula)
            return term
        case ("let", tuple(pairs), body) if not _GROWS & set(atoms(term)):
            return _let(pairs, body, fresh, formula)
        case (str(head), *parts) if parts and (head in _TOTAL or head in formula.constructors):
            return (head, *(_value(part, fresh, formula) for part in parts))
    raise AnswerError("unparsable_answer", f"a value holds {printed(term):.60}, which is not a value")


def _let(pairs: tuple[Expression, ...], body: Expression, fresh: Mapping[str, str], formula: Formula) -> Expression:
    bound, inner = [], dict(fresh)
    for pair in pairs:
        match pair:
            case (str(name), term) if not is_literal(name):
                inner[name] = next(new for at in count() if (new := f"bound{at}!") not in inner.values())
                bound.append((inner[name], _value(term, fresh, formula)))
            case _:
                raise AnswerError("unparsable_answer", f"{printed(pair):.60} binds nothing")
    return ("let", tuple(bound), _value(body, inner, formula))


def _sort_only(sort: Expression, formula: Formula) -> None:
    known = {"Int", "Real", "Bool", "String", "Array", "BitVec", "_", *formula.symbols}
    for atom in atoms(sort):
        if atom not in known and not atom.isdigit():
            raise AnswerError("unparsable_answer", f"{printed(sort):.60} is not a sort of the formula")


def _real(value: Expression) -> Expression:
    """Return a value of sort Real with a dot in its whole numbers, without which solvers take them for integers."""
    match value:
        case str():
            return f"{value}.0" if value.isdigit() else value
        case ("+" | "-" | "*" as head, *parts):
            return (head, *map(_real, parts))
        case ("ite", condition, yes, no):
            return ("ite", condition, _real(yes), _real(no))
        case ("let", bound, body):
            return ("let", bound, _real(body))
    return value
