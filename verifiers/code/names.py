"""Names in Python sources: which ones a source binds, uses, imports and calls.

Not covered: scopes; a name that is bound anywhere in a source is the source's own.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import warnings
from collections.abc import Iterable
from weakref import WeakKeyDictionary

_MOST_KEPT = 20_000  # characters of a source whose tree is kept for whoever asks next; a tree is 100 times as large
_MISSING: WeakKeyDictionary[ast.AST, frozenset[str]] = WeakKeyDictionary()
_BELOW: WeakKeyDictionary[ast.Module, list[ast.AST]] = WeakKeyDictionary()
_WORD = re.compile(r"\w+")
IMPLICIT = frozenset({"__name__", "__file__", "__doc__", "__builtins__"})


def syntax_tree(source: str) -> ast.Module | None:
    """Return the syntax tree of a Python program, without warnings about it; None where it is no Python.

    Trees are shared: nobody changes them.
    """
    return _parsed(source) if len(source) <= _MOST_KEPT else _parsed.__wrapped__(source)


@functools.lru_cache(maxsize=32)
def _parsed(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """Return what `ast.walk` yields; those of a program, which is asked a dozen questions, are kept with its tree."""
    if not isinstance(tree, ast.Module):
        return _walked(tree)
    if (below := _BELOW.get(tree)) is None:
        below = _BELOW[tree] = _walked(tree)[1:]  # without the tree, which would keep itself
    return [tree, *below]


def _walked(tree: ast.AST) -> list[ast.AST]:
    found = [tree]
    for node in found:  # it grows as it is read
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                found.append(value)
            elif isinstance(value, list):
                found.extend(item for item in value if isinstance(item, ast.AST))
    return found


def defined(tree: ast.AST) -> set[str]:
    """Return every name that a source binds anywhere: good enough to tell its own names from the candidate's."""
    names: set[str] = set()
    for node in nodes_of(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names.update(alias.asname or alias.name.partition(".")[0] for alias in aliases)
            case ast.ExceptHandler(name=str(name)):
                names.add(name)
            case _:
                pass
    return names


def used(tree: ast.AST) -> set[str]:
    """Return every name that a source reads."""
    return {node.id for node in nodes_of(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def missing(tree: ast.AST) -> frozenset[str]:
    """Return the names that a source reads and nobody binds."""
    if (found := _MISSING.get(tree)) is None:
        read = used(tree) - IMPLICIT - vars(builtins).keys()
        found = _MISSING[tree] = frozenset(read - defined(tree) if read else read)
    return found


def names_any(source: str, names: Iterable[str]) -> bool:
    """Return whether one of the names, or any for "*", stands in a source, be it in a comment: a quick look."""
    inside = [name for name in names if name == "*" or name in source]
    return "*" in inside or not set(inside).isdisjoint(_WORD.findall(source) if inside else ())


def in_annotations(tree: ast.AST) -> set[str]:
    """Return the names that stand in annotations."""
    notes = [getattr(node, "annotation", None) or getattr(node, "returns", None) for node in nodes_of(tree)]
    return set().union(*map(used, filter(None, notes)))


def called(tree: ast.AST) -> set[str]:
    """Return the names that a source calls, and that are no method's or module's."""
    return {node.func.id for node in nodes_of(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def imported(tree: ast.AST, module: str) -> set[str]:
    """Return the names that a source imports from a module."""
    return {
        alias.name
        for node in nodes_of(tree)
        if isinstance(node, ast.ImportFrom) and node.module == module
        for alias in node.names
        if alias.name != "*"
    }


def attributes(tree: ast.AST, module: str) -> set[str]:
    """Return the names that a source reads as attributes of a module that it imports."""
    bound = {
        alias.asname or alias.name
        for node in nodes_of(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == module
    }
    return {
        node.attr
        for node in nodes_of(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in bound
    }


def modules_of(*sources: str) -> dict[str, str]:
    """Return the modules, by the names they have there, that the task's own sources import."""
    return {
        alias.asname or alias.name: alias.name
        for tree in map(syntax_tree, filter(None, sources))
        for node in (tree.body if tree else ())
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.asname or "." not in alias.name
    }


def after_future(source: str, tree: ast.Module, *lines: str) -> str:
    """Return a source with lines put at its beginning, behind its imports from `__future__`."""
    future = (node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__")
    start = max((node.end_lineno or 0 for node in future), default=0)
    given = source.split("\n")
    return "\n".join([*given[:start], *lines, *given[start:]])


def judges(trees: Iterable[ast.AST], names: set[str]) -> set[str]:
    """Return those of the names whose own word decides a test: `assert g(f(2), 4)`, where `f` is one of them, too.

    Unless other tests show that `g` can deny, as `assert not g(3, 4)` does.
    """
    found: set[str] = set()
    denying: set[str] = set()
    for node in (node for tree in trees for node in nodes_of(tree) if isinstance(node, ast.Assert)):
        test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
        for call in (part for part in nodes_of(test) if isinstance(part, ast.Call)):
            inner = set().union(*map(called, [*call.args, *(keyword.value for keyword in call.keywords)]))
            if not isinstance(call.func, ast.Name) or call.func.id not in names:
                continue
            if call is test and inner & names - {call.func.id}:
                found.add(call.func.id)
            elif call is not node.test and not inner & names:
                denying.add(call.func.id)
    return found - denying
