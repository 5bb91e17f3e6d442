"""Names that tests use and do not bind: which are the candidate's, and which a library's?

Data sets leave their tests' imports to the candidate, whose `sqrt` or `Decimal` would then say what is right.  So a
well-known name is the library's, unless the tests show that they are about a function or class that goes by it.

Not covered: names that functions of tasks often have as well, such as `product` and `merge`.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from adjudge.verifiers.code.names import called, defined, nodes_of, public_names, syntax_tree, used

_ALIASES: Final = {
    **dict.fromkeys(("np", "numpy"), "numpy"),
    **dict.fromkeys(("pd", "pandas"), "pandas"),
    "plt": "matplotlib.pyplot",
    "requests": "requests",
    "scipy": "scipy",
}
_MODULES: Final = {**{name: name for name in sys.stdlib_module_names}, **_ALIASES}
_KNOWN: Final = {
    "typing": "", "math": "", "collections": "", "datetime": "", "decimal": "", "fractions": "Fraction",
    "string": "ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits printable punctuation",
    "functools": "reduce partial cmp_to_key lru_cache", "copy": "deepcopy", "io": "StringIO BytesIO", "enum": "Enum",
    "itertools": "permutations combinations combinations_with_replacement accumulate zip_longest islice",
    "statistics": "mean median stdev pstdev variance pvariance", "dataclasses": "dataclass",
    "heapq": "heappush heappop",
}  # fmt: skip
"""By module, the names that are the library's; all of them for ""."""

LIBRARY: Final[Mapping[str, str]] = {
    name: f"{module}:{name}" for module, names in _KNOWN.items() for name in names.split() or public_names(module)
}


def places(names: set[str], trees: Iterable[ast.AST], *sources: str) -> dict[str, str]:
    """Return where names are that nobody but a library can mean: "module", or "module:name".

    The sources are the task's own, and what they import has the name that it has there.  `datetime` is the class where
    the tests use it so, and so are others of which a module has the name.
    """
    found = {name: _MODULES[name] for name in names & _MODULES.keys()}
    for tree in trees:
        as_object = called(tree)
        for node in nodes_of(tree):
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in LIBRARY and name in found:
                    if not hasattr(importlib.import_module(found[name]), attr):
                        as_object.add(name)
                case _:
                    pass
        found |= {name: LIBRARY[name] for name in as_object & found.keys() & LIBRARY.keys()}
    return {**found, **{name: place for name, place in _imported(*sources).items() if name in names}}


def _imported(*sources: str) -> dict[str, str]:
    """Return where the names are that sources import at their top level."""
    found: dict[str, str] = {}
    for node in (node for tree in map(syntax_tree, filter(None, sources)) if tree for node in tree.body):
        match node:
            case ast.Import(names=aliases):
                found |= {alias.asname or alias.name: alias.name for alias in aliases}
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                found |= {alias.asname or alias.name: f"{module}:{alias.name}" for alias in aliases}
            case _:
                pass
    return found


def candidates_own(
    wanted: set[str], library: Mapping[str, str], tests: Sequence[ast.AST], solution: str, listed: bool
) -> set[str]:
    """Return those of the names that are the candidate's, where `library` says what else they may be.

    They are those of no library, those that the solution defines, and those of which a test says something without any
    of these.  `listed` says that each of the tests is one by itself, and no file.
    """
    tree = syntax_tree(solution)
    solved = {getattr(node, "name", "") for node in (tree.body if tree else ())}  # functions and classes
    own = wanted - library.keys() | wanted & solved
    calls = wanted & set().union(*map(called, tests))
    functions = {name for name in calls if not _is_class(library.get(name, ""))}
    own = own or functions or calls
    parts = [node for test in tests for node in nodes_of(test) if isinstance(node, ast.Assert | ast.Expr)]
    whole = [test for test in tests if any(isinstance(node, ast.Assert) for node in nodes_of(test))]
    known = wanted | vars(builtins).keys() | _MODULES.keys()
    for part in (*parts, *(whole if listed else ())):
        read = used(part) - defined(part)
        if own and read <= known and not read & own:
            own = own | (read & functions or read & wanted)
    return own


def _is_class(place: str) -> bool:
    module, _, name = place.partition(":")
    return bool(place) and isinstance(getattr(importlib.import_module(module), name), type)


def shadowing(names: set[str], trees: Sequence[ast.Module], solution: str) -> set[str]:
    """Return the function under test where it is called like a built-in function or a module, as `sum` of MBPP.

    The solution's is meant; else the one that all tests call, modules (which nobody calls) before functions, and
    a function that is called on what another one returns is a helper.
    """
    asserts = [[node.test for node in nodes_of(tree) if isinstance(node, ast.Assert)] for tree in trees]
    calls = [set().union(*map(called, tests)) & names for tests in asserts]
    common = set.intersection(*calls)
    tree = syntax_tree(solution)
    if tree is not None and common & defined(tree):
        return common & defined(tree)
    outer = {
        node.func.id
        for node in (node for tests in asserts for test in tests for node in nodes_of(test))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if any(called(argument) & common for argument in node.args)
    }
    functions = {name for name in common if not isinstance(getattr(builtins, name, None), type)}
    for choice in (functions - vars(builtins).keys(), functions - outer):
        if len(choice) == 1:
            return choice
    return set()
