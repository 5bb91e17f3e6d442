"""Names in Python sources: which ones a source binds, uses, imports and calls, and whose they are.

What tests use that needs the process, or the very objects, of what they test: tests that run apart from the candidate
cannot see what it prints, warns of or logs, share no files, environment, random state or patches with it, and await
nothing of it.  A failure of such a test says nothing about the candidate; that of any other test does.  So each test is
read by itself, with the fixtures, helpers and class that it uses: that a word stands somewhere in the file, or is
imported there, does not matter.  Also read here: whether tests can fail at all, but by an error of the candidate.

Names that tests use and do not bind: data sets leave their tests' imports to the candidate, whose `sqrt` or `Decimal`
would then say what is right.  So a well-known name is the library's, unless the tests show that they are about a
function or class that goes by it.

Not covered: scopes, since a name that is bound anywhere in a source is the source's own; names that functions of tasks
often have as well, such as `product` and `merge`.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final
from weakref import WeakKeyDictionary

from adjudge.scoring.bad_reference import BadReferenceError

_MAX_KEPT = 20_000  # characters of a source whose tree is kept for whoever asks next; a tree is 100 times as large
_MISSING: WeakKeyDictionary[ast.AST, frozenset[str]] = WeakKeyDictionary()
_BELOW: WeakKeyDictionary[ast.Module, list[ast.AST]] = WeakKeyDictionary()
_WORD = re.compile(r"\w+")
_STARRED = frozenset(  # fixed, since candidates' sources are read here, too
    "math cmath collections datetime decimal fractions itertools functools heapq bisect string typing statistics "
    "operator copy random re io time".split()
)
IMPLICIT = frozenset({"__name__", "__file__", "__doc__", "__builtins__"})


def parsed(source: str, what: str) -> ast.Module:
    """Return the syntax tree of a reference's Python program, without warnings about it.

    Raises:
        BadReferenceError: it is none; `what` it is begins the message.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an escape that is none ("\\d") is a habit of generators, and harmless
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadReferenceError(f"{what} is not Python: {error}") from error


def syntax_tree(source: str) -> ast.Module | None:
    """Return the syntax tree of a Python program, without warnings about it; None where it is not Python.

    Trees are shared: nobody changes them.
    """
    return _parsed(source) if len(source) <= _MAX_KEPT else _parsed.__wrapped__(source)


@functools.lru_cache(maxsize=32)
def _parsed(source: str) -> ast.Module | None:
    try:
        return parsed(source, "the program")
    except BadReferenceError:
        return None


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """Return what `ast.walk` yields; those of a program, which is asked a dozen questions, are kept with its tree."""
    if not isinstance(tree, ast.Module):
        return _walked(tree)
    if (below := _BELOW.get(tree)) is None:
        below = _BELOW[tree] = _walked(tree)[1:]  # without the tree, which would keep itself
    return [tree, *below]


def _walked(tree: ast.AST) -> list[ast.AST]:
    walked = [tree]
    for node in walked:  # it grows as it is read
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                walked.append(value)
            elif isinstance(value, list):
                walked.extend(item for item in value if isinstance(item, ast.AST))
    return walked


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
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.MatchMapping(rest=str(name)):
                names.add(name)
            case ast.Call(func=ast.Name(id="exec"), args=[ast.Constant(value=str(source)), *_]):
                names |= defined(syntax_tree(source) or ast.Module([], []))
    return names


def starred(tree: ast.AST) -> dict[str, str]:
    """Return the names that a source gets by `from module import *` of the usual modules, with their places."""
    return {
        name: f"{node.module}:{name}"
        for node in nodes_of(tree)
        if isinstance(node, ast.ImportFrom) and node.module in _STARRED and node.names[0].name == "*"
        for name in public_names(node.module)
    }


@functools.cache
def public_names(module: str) -> frozenset[str]:
    """Return the names that `from module import *` binds."""
    names = vars(importlib.import_module(module))
    return frozenset(names.get("__all__", [name for name in names if not name.startswith("_")]))


def used(tree: ast.AST) -> set[str]:
    """Return every name that a source reads."""
    return {node.id for node in nodes_of(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def missing(tree: ast.AST) -> frozenset[str]:
    """Return the names that a source reads and nobody binds."""
    if (unbound := _MISSING.get(tree)) is None:
        read = used(tree) - IMPLICIT - vars(builtins).keys()
        unbound = _MISSING[tree] = frozenset(read - defined(tree) - starred(tree).keys() if read else read)
    return unbound


def names_any(source: str, names: Iterable[str]) -> bool:
    """Return whether one of the names, or any for "*", stands in a source, be it in a comment: a quick look."""
    inside = [name for name in names if name == "*" or name in source]
    return "*" in inside or not set(inside).isdisjoint(_WORD.findall(source) if inside else ())


def in_annotations(tree: ast.AST) -> set[str]:
    """Return the names that stand in annotations."""
    notes = [getattr(node, "annotation", None) or getattr(node, "returns", None) for node in nodes_of(tree)]
    return set().union(*map(used, filter(None, notes)))


def called(tree: ast.AST) -> set[str]:
    """Return the names that a source calls, and that are not method's or module's."""
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


def after_future(source: str, tree: ast.Module, *lines: str) -> str:
    """Return a source with lines put at its beginning, behind its imports from `__future__`."""
    future = (node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__")
    start = max((node.end_lineno or 0 for node in future), default=0)
    given = source.split("\n")
    return "\n".join([*given[:start], *lines, *given[start:]])


def judges(trees: Iterable[ast.AST], names: set[str]) -> set[str]:
    """Return those of the names whose own word decides a test: `assert g(f(2), 4)`, where `f` is one of them, too.

    Unless other tests show that `g` can deny, as `assert not g(3, 4)` does.  In `assert f(2) == LIMIT` so does `LIMIT`,
    unless nothing but a value is compared with it elsewhere.
    """
    trees = list(trees)
    plain = names.difference(*map(called, trees))
    judging: set[str] = set()
    denying: set[str] = set()
    for node in (node for tree in trees for node in nodes_of(tree) if isinstance(node, ast.Assert)):
        test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
        if isinstance(test, ast.Compare):
            sides = (test.left, *test.comparators)
            bare = {side.id for side in sides if isinstance(side, ast.Name) and side.id in plain}
            (judging if called(test) & names else denying).update(bare)
        for call in (part for part in nodes_of(test) if isinstance(part, ast.Call)):
            inner = set().union(*map(called, [*call.args, *(keyword.value for keyword in call.keywords)]))
            if not isinstance(call.func, ast.Name) or call.func.id not in names:
                continue
            if call is test and inner & names - {call.func.id}:
                judging.add(call.func.id)
            elif call is not node.test and not inner & names:
                denying.add(call.func.id)
    return judging - denying


_FIXTURES = frozenset(
    "monkeypatch mocker capsys capfd capsysbinary capfdbinary caplog recwarn tmp_path tmpdir tmp_path_factory".split()
)
_NAMES = frozenset(
    "unittest.mock.patch mock.patch asyncio anyio trio pytest.mark.asyncio pytest.mark.anyio inspect "
    "types.GeneratorType "
    "contextlib.redirect_stdout contextlib.redirect_stderr contextlib.chdir sys.stdin sys.stdout sys.stderr sys.argv "
    "sys.modules builtins open io.open tempfile pathlib shutil os.environ os.getenv os.putenv os.chdir os.listdir "
    "os.mkdir os.makedirs os.remove os.unlink os.rename os.walk os.scandir os.path.exists os.path.isfile os.path.isdir "
    "os.path.getsize subprocess "
    "socket sqlite3 logging warnings pytest.warns pytest.deprecated_call gc weakref matplotlib "
    "unittest.IsolatedAsyncioTestCase".split()
)
SEEDS = frozenset(
    {"random.seed", "random.setstate", "numpy.random.seed", "numpy.random.set_state", "torch.manual_seed"}
)
"""What `reaching` names only where a test uses nothing else that reaches into the candidate."""
_METHODS = frozenset({"assertLogs", "assertNoLogs", "assertWarns", "assertWarnsRegex"})
_USUAL = {"np": "numpy", "plt": "matplotlib.pyplot", "patch": "unittest.mock.patch"}
_JUDGES = re.compile(r"assert|raises|fail|warns|exit", re.IGNORECASE)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def silent(trees: Iterable[ast.AST]) -> bool:
    """Return whether nothing in the tests looks as if it could fail: no assert of anything but constants, no raise."""
    for node in (node for tree in trees for node in nodes_of(tree)):
        match node:
            case ast.Assert(test=ast.Constant(value=value)) if value:
                pass
            case ast.Assert(test=ast.Tuple(elts=[_, *_])):
                pass
            case ast.Assert() | ast.Raise():
                return False
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if _JUDGES.search(name):
                return False
    return True


def reaching(tests: Iterable[ast.Module], context: list[ast.Module], collected: bool) -> Mapping[str, str]:
    """Return what each test uses that reaches into the candidate, by the test's name; tests without are left out.

    The context are all sources whose definitions and imports the tests use.  Where pytest does not collect them, each
    source is one, named by its number.
    """
    reader = _Reader(context)
    words: dict[str, str] = {}
    for number, tree in enumerate(tests):
        if not collected:
            words[str(number)] = reader.word(tree)
            continue
        common = reader.common(tree)
        words["collection"] = common
        for node in tree.body:
            if isinstance(node, _FUNCTIONS):
                words[node.name] = _first([common, reader.word(node)])
            elif isinstance(node, ast.ClassDef):
                methods = [part for part in node.body if isinstance(part, _FUNCTIONS) and part.name.startswith("test")]
                shared = reader.words([part for part in ast.iter_child_nodes(node) if part not in methods])
                for method in methods:
                    words[f"{node.name}::{method.name}"] = _first([common, shared, reader.word(method)])
    return MappingProxyType({name: word for name, word in words.items() if word})


def _first(words: Iterable[str]) -> str:
    """Return the first that is no seed, else the first of all; "" for none."""
    seed = ""
    for word in filter(None, words):
        if word not in SEEDS:
            return word
        seed = seed or word
    return seed


class _Reader:
    """Reads the parts of a test file."""

    def __init__(self, trees: list[ast.Module]) -> None:
        self._known: dict[str, _Definition] = {
            node.name: node for tree in trees for node in tree.body if isinstance(node, _Definition)
        }
        self._imports: dict[str, str] = {}
        stored: set[str] = set()
        for node in (node for tree in trees for node in nodes_of(tree)):
            match node:
                case ast.Import(names=aliases):
                    for alias in aliases:
                        plain = alias.name.partition(".")[0]
                        self._imports[alias.asname or plain] = alias.name if alias.asname else plain
                case ast.ImportFrom(module=str(source), names=aliases):
                    self._imports.update({alias.asname or alias.name: f"{source}.{alias.name}" for alias in aliases})
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    stored.add(name)
        self._bound = (stored | self._known.keys()) - self._imports.keys()

    def common(self, tree: ast.Module) -> str:
        """Return what every test of a file uses: statements of the module, and fixtures that nobody asks for."""
        plain = [node for node in tree.body if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.If))]
        fixtures = [node for node in tree.body if isinstance(node, _FUNCTIONS) and _is_automatic(node)]
        return self.words([*plain, *fixtures])

    def words(self, parts: Iterable[ast.AST]) -> str:
        """Return what one of several parts uses."""
        return _first(map(self.word, parts))

    def word(self, part: ast.AST, seen: frozenset[str] = frozenset()) -> str:
        """Return what a part uses, itself or by a definition of the file's; "" for nothing."""
        return _first(self._words(part, seen))

    def _words(self, part: ast.AST, seen: frozenset[str]) -> Iterator[str]:
        for node in nodes_of(part):
            yield self._reach(node)
            name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
            definition = self._known.get(name)
            if definition is not None and definition is not part and name not in seen:
                yield self.word(definition, seen | {name})

    def _reach(self, node: ast.AST) -> str:
        match node:
            case ast.AsyncFunctionDef() | ast.Await():
                return "async"
            case ast.arg(arg=name) if name in _FIXTURES and name not in self._known:
                return name
            case ast.Attribute(attr=name) if name in _METHODS:
                return name
            case ast.Attribute() | ast.Name(ctx=ast.Load()):
                parts = self._dotted(node).split(".")
                prefixes = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
                return next((prefix for prefix in prefixes if prefix in _NAMES or prefix in SEEDS), "")
        return ""

    def _dotted(self, node: ast.AST) -> str:
        """Return the full name of an attribute or a name, as the imports have it; "" where it is the tests' own."""
        match node:
            case ast.Attribute(value=value, attr=name):
                before = self._dotted(value)
                return f"{before}.{name}" if before else ""
            case ast.Name(id=name) if name not in self._bound:
                return self._imports.get(name, _USUAL.get(name, name))
        return ""


def _is_automatic(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        isinstance(mark, ast.Call) and any(keyword.arg == "autouse" for keyword in mark.keywords)
        for mark in node.decorator_list
    )


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
