r"""What an SMT reference asks of a formula or a term, and what a response answers: unsat, sat with a model, a term.

S-expressions of SMT-LIB 2.6, read by hand: what a response writes reaches a solver only as terms that we print.

An expression is an atom (text) or a tuple of expressions.  Atoms are symbols of plain characters, numbers, `#b` and
`#x` literals, keywords, `|quoted symbols|`, and strings in which `""` is a quote.

A model is what solvers print: `(define-fun x () Int 3)`, several of them, in one list or none, or pairs: `((x 3))`.
Its values are built from literals, constructors and total functions, so that nothing is left for a solver to choose;
a division, say, is only one by a literal that is not 0.

Not covered: push and pop, options, several questions in one script, and models that name elements of uninterpreted
sorts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, Literal, TypeAlias

from adjudge.reasons import ReasonedError
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.verifiers.proofs.toolbox import parsed

Expression: TypeAlias = "str | tuple[Expression, ...]"

_TOKEN: Final = re.compile(
    r"\s+|;[^\n]*|(?P<open>\()|(?P<close>\))"
    r'|(?P<atom>"(?:[ !#-~\t\n]|"")*"|\|[ -\[\]-{}~\t\n]*\||[\w~!@$%^&*\-+=<>.?/:#]+)',
    re.ASCII,
)
_NUMBER: Final = re.compile(r"(?:0|[1-9]\d*)(?:\.\d+)?|#b[01]+|#x[0-9a-fA-F]+", re.ASCII)
_DEEPEST: Final = 400
_CORE: Final = "true false not => and or xor = distinct ite let forall exists as _"
_NUMBERS: Final = "Int Real + - * / div mod abs <= < >= > to_real to_int is_int divisible"
_ARRAYS: Final = "Array select store const"
_VECTORS: Final = (
    "BitVec concat extract bvnot bvneg bvand bvor bvxor bvnand bvnor bvxnor bvadd bvsub bvmul bvudiv bvurem bvsdiv "
    "bvsrem bvsmod bvshl bvlshr bvashr bvult bvule bvugt bvuge bvslt bvsle bvsgt bvsge bvcomp repeat zero_extend "
    "sign_extend rotate_left rotate_right"
)
_STRINGS: Final = (
    "String RegLan str.++ str.len str.< str.<= str.at str.substr str.prefixof str.suffixof str.contains str.indexof "
    "str.replace str.replace_all str.is_digit str.to_int str.from_int str.to_code str.from_code str.to_re str.in_re "
    "re.none re.all re.allchar re.++ re.union re.inter re.* re.+ re.opt re.range re.comp re.diff re.^ re.loop"
)
THEORY: Final = frozenset(f"Bool {_CORE} {_NUMBERS} {_ARRAYS} {_VECTORS} {_STRINGS}".split())
"""The names that SMT-LIB's theories give; floating-point numbers are not among them."""


class TermError(ValueError):
    """A text that is not a list of S-expressions; `deep` says whether it is only nested too deeply."""

    def __init__(self, message: str, deep: bool = False) -> None:
        super().__init__(message)
        self.deep = deep


def read_expressions(text: str) -> list[Expression]:
    """Return the expressions of a text, in time linear in its length.

    Raises:
        TermError: a character, a bracket or the depth (400) is wrong.
    """
    open_lists: list[list[Expression]] = [[]]
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise TermError(f"character {at} is {text[at]!r}, which begins nothing")
        at = token.end()
        if token["open"]:
            if len(open_lists) > _DEEPEST:
                raise TermError(f"brackets are nested deeper than {_DEEPEST}", deep=True)
            open_lists.append([])
        elif token["close"]:
            if len(open_lists) == 1:
                raise TermError(f"the bracket at character {token.start()} closes nothing")
            done = tuple(open_lists.pop())
            open_lists[-1].append(done)
        elif token["atom"]:
            open_lists[-1].append(token["atom"])
    if len(open_lists) > 1:
        raise TermError(f"{len(open_lists) - 1} brackets are not closed")
    return open_lists[0]


def printed(expression: Expression) -> str:
    """Return an expression as text."""
    return expression if isinstance(expression, str) else f"({' '.join(map(printed, expression))})"


def atoms(expression: Expression) -> Iterator[str]:
    """Yield the atoms of an expression, in no certain order."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        else:
            waiting.extend(part)


def is_literal(atom: str) -> bool:
    """Return whether an atom is a number, a bit vector or a string."""
    return atom.startswith('"') or _NUMBER.fullmatch(atom) is not None


def strange_atom(term: Expression, declared: Iterable[str]) -> str:
    """Return an atom of a term that is neither declared nor bound in it nor a theory's; "" where none is."""
    known = THEORY | set(declared) | set(_bound(term))
    for atom in atoms(term):
        if atom not in known and not is_literal(atom) and not re.fullmatch(r"bv\d+", atom, re.ASCII):
            return atom
    return ""


def _bound(term: Expression) -> Iterator[str]:
    """Yield the variables that a term binds."""
    waiting = [term]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            continue
        if len(part) == 3 and part[0] in ("let", "forall", "exists") and isinstance(part[1], tuple):
            yield from (pair[0] for pair in part[1] if isinstance(pair, tuple) and pair and isinstance(pair[0], str))
        waiting.extend(part)


Question: TypeAlias = Literal["satisfiable", "equivalent", "entails", "entailed_by"]

TERMS: Final = ("equivalent", "entails", "entailed_by")
_KEYS: Final = frozenset({"formula", "expected", "declarations", *TERMS})
_SILENT: Final = frozenset({"check-sat", "get-model", "exit", "set-info", "set-option", "get-value"})
_DECLARING: Final = frozenset(
    {"declare-const", "declare-fun", "declare-sort", "declare-datatype", "declare-datatypes", "define-fun"}
    | {"define-const", "define-fun-rec", "define-sort"}
)
_REPLACEABLE: Final = (("declare-const",), ("declare-fun",))
_MAX_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Function:
    """A declared constant or function: its name, the sorts of its arguments, and its own."""

    name: str
    arguments: tuple[Expression, ...]
    sort: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A question about formulas.

    Attributes:
        logic: of the script; "ALL" where it names none.
        commands: declarations, definitions and assertions, in order.
        symbols: all names that the commands give.
        constructors: those of them that build values of data types.
        term: the term to compare with; None where satisfiability is asked.
        expected: "sat", "unsat", or "" where the solver is to say.
    """

    question: Question
    logic: str
    commands: tuple[tuple[Expression, ...], ...]
    functions: Mapping[str, Function]
    symbols: frozenset[str]
    constructors: frozenset[str]
    term: Expression | None
    expected: str

    @property
    def nameless(self) -> str:
        """A function whose values no model can write, for its sort is only declared; "" where there is none."""
        declared = {command[1] for command in self.commands if command[0] == "declare-sort"}
        return next((one.name for one in self.functions.values() if declared.intersection(atoms(one.sort))), "")

    def script(self, *asserted: Expression, values: Mapping[str, Expression] | None = None) -> str:
        """Return a script that asks for satisfiability, with more assertions, and definitions in place of functions."""
        lines = [f"(set-logic {self.logic})"]
        for command in self.commands:
            name = command[1] if len(command) > 1 else ""
            replaced = (values or {}).get(name) if isinstance(name, str) else None
            lines.append(printed(replaced if replaced and command[:1] in _REPLACEABLE else command))
        lines += [f"(assert {printed(one)})" for one in asserted]
        return "\n".join([*lines, "(check-sat)", ""])


def read_formula(reference: Any) -> Formula:
    """Return what a reference asks.

    Raises:
        BadReferenceError: it is not of one of the forms, or its text cannot be read.
    """
    reference = parsed(reference)
    if not isinstance(reference, Mapping):
        raise ReferenceFormError(
            f'the reference is a {type(reference).__name__}; give {{"formula": ..., "expected": "sat"}} or '
            '{"declarations": ..., "equivalent": ...}'
        )
    if unknown := sorted(set(map(str, reference)) - _KEYS):
        raise ReferenceFormError(f"the reference has {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}")
    asked = [key for key in ("formula", *TERMS) if key in reference]
    if len(asked) != 1:
        raise ReferenceFormError(
            f"the reference has {' and '.join(asked) or 'no question'}; give one of formula, {', '.join(TERMS)}"
        )
    key = asked[0]
    given = {name: reference.get(name) or "" for name in (key, "declarations", "expected")}
    for name, text in given.items():
        if not isinstance(text, str):
            raise ReferenceFormError(f"the reference's {name} is a {type(text).__name__}; it must be text")
        if len(text) > _MAX_CHARACTERS:
            raise BadReferenceError(f"the reference's {name} is longer than {_MAX_CHARACTERS} characters")
    if given["expected"] not in ("", "sat", "unsat") or (given["expected"] and key != "formula"):
        raise ReferenceFormError(
            f"the reference's expected is {given['expected']!r:.60}; beside a formula it may be sat or unsat"
        )
    try:
        script = read_expressions(given["declarations"])
        if key == "formula":
            return _formula([*script, *read_expressions(given[key])], "satisfiable", None, given["expected"])
        terms = read_expressions(given[key])
    except TermError as error:
        raise BadReferenceError(f"the reference cannot be read: {error}") from error
    if len(terms) != 1:
        raise BadReferenceError(f"the reference's {key} holds {len(terms)} terms; it must be one")
    return _formula(script, next(one for one in TERMS if one == key), terms[0], "")


def _formula(script: list[Expression], question: Any, term: Expression | None, expected: str) -> Formula:
    commands: list[tuple[Expression, ...]] = []
    functions: dict[str, Function] = {}
    symbols: set[str] = set()
    constructors: set[str] = set()
    logic = "ALL"
    for command in script:
        if isinstance(command, str) or not command or not isinstance(command[0], str):
            raise BadReferenceError(f"{printed(command):.80} is not a command")
        head = command[0]
        if head in _SILENT:
            continue
        if head == "set-logic" and len(command) == 2 and isinstance(command[1], str):
            logic = command[1]
            continue
        if head not in _DECLARING and head != "assert":
            raise BadReferenceError(f"the command {head!r} is not taken; declare, define and assert")
        commands.append(command)
        if head == "assert":
            continue
        if head.startswith("declare-data"):
            symbols |= set(atoms(command[1:]))
            constructors |= set(_constructors(command))
        elif len(command) > 1 and isinstance(command[1], str):
            symbols.add(command[1])
        if head == "declare-const" and len(command) == 3:
            functions[str(command[1])] = Function(str(command[1]), (), command[2])
        elif head == "declare-fun" and len(command) == 4 and isinstance(command[2], tuple):
            functions[str(command[1])] = Function(str(command[1]), command[2], command[3])
    if not commands and term is None:
        raise BadReferenceError("the formula asserts nothing")
    return Formula(
        question=question,
        logic=logic,
        commands=tuple(commands),
        functions=functions,
        symbols=frozenset(symbols),
        constructors=frozenset(constructors),
        term=term,
        expected=expected,
    )


def _constructors(command: tuple[Expression, ...]) -> Iterator[str]:
    """Yield the constructors of data types; selectors are none, for `(head nil)` is any value."""
    bodies = (command[-1],) if command[0] == "declare-datatype" else command[-1]
    for body in bodies:
        if isinstance(body, tuple) and len(body) == 3 and body[0] == "par":
            body = body[2]
        for one in body if isinstance(body, tuple) else ():
            name = one[0] if isinstance(one, tuple) and one else one
            if isinstance(name, str):
                yield name


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


class AnswerError(ReasonedError):
    """An answer that is none."""


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
