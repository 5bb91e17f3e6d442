r"""What an SMT reference asks: is a formula satisfiable, or is a term equivalent to, stronger or weaker than another?

S-expressions of SMT-LIB 2.6, read by hand: what a response writes reaches a solver only as terms that we print.

An expression is an atom (text) or a tuple of expressions.  Atoms are symbols of plain characters, numbers, `#b` and
`#x` literals, keywords, `|quoted symbols|`, and strings in which `""` is a quote.

Not covered: push and pop, options, and several questions in one script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

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
