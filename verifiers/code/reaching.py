"""What tests use that needs the process, or the very objects, of what they test.

Tests that run apart from the candidate cannot see what it prints, warns of or logs, share no files, environment, random
state or patches with it, and await nothing of it.  A failure of such a test says nothing about the candidate; that of
any other test does.  So each test is read by itself, with the fixtures, helpers and class that it uses: that a word
stands somewhere in the file, or is imported there, does not matter.

Also read here: whether tests can fail at all, other than by an error of the candidate.

Not covered: what imported helpers do.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from adjudge.verifiers.code.names import nodes_of

_FIXTURES = frozenset(
    "monkeypatch mocker capsys capfd capsysbinary capfdbinary caplog recwarn tmp_path tmpdir tmp_path_factory".split()
)
_NAMES = frozenset(
    "unittest.mock.patch mock.patch asyncio anyio trio pytest.mark.asyncio pytest.mark.anyio inspect "
    "types.GeneratorType "
    "contextlib.redirect_stdout contextlib.redirect_stderr contextlib.chdir sys.stdin sys.stdout sys.stderr sys.argv "
    "sys.modules builtins open io.open tempfile pathlib shutil os.environ os.getenv os.putenv os.chdir os.listdir "
    "os.mkdir os.makedirs os.remove os.unlink os.rename os.walk os.scandir os.path.exists os.path.isfile os.path.isdir "
    "os.path.getsize random.seed random.setstate numpy.random.seed numpy.random.set_state torch.manual_seed subprocess "
    "socket sqlite3 logging warnings pytest.warns pytest.deprecated_call gc weakref matplotlib "
    "unittest.IsolatedAsyncioTestCase".split()
)
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
            case _:
                pass
    return True


def reaching(tests: Iterable[ast.Module], context: list[ast.Module], module: str, collected: bool) -> Mapping[str, str]:
    """Return what each test uses that reaches into the candidate, by the test's name; tests without are left out.

    Args:
        tests: the tests.
        context: all sources whose definitions and imports they use.
        module: the name under which they import the candidate.
        collected: whether pytest collects the tests from the sources; else each source is one, named by its number.
    """
    reader = _Reader(context, module)
    found: dict[str, str] = {}
    for number, tree in enumerate(tests):
        if not collected:
            found[str(number)] = reader.word(tree)
            continue
        common = reader.common(tree)
        found["collection"] = common
        for node in tree.body:
            if isinstance(node, _FUNCTIONS):
                found[node.name] = common or reader.word(node)
            elif isinstance(node, ast.ClassDef):
                methods = [part for part in node.body if isinstance(part, _FUNCTIONS) and part.name.startswith("test")]
                shared = reader.words([part for part in ast.iter_child_nodes(node) if part not in methods])
                for method in methods:
                    found[f"{node.name}::{method.name}"] = common or shared or reader.word(method)
    return MappingProxyType({name: word for name, word in found.items() if word})


class _Reader:
    """Reads the parts of a test file.

    Args:
        trees: the sources whose definitions the parts use.
        module: see `reaching`.
    """

    def __init__(self, trees: list[ast.Module], module: str) -> None:
        self._module = module
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
                case _:
                    pass
        self._bound = (stored | self._known.keys()) - self._imports.keys()

    def common(self, tree: ast.Module) -> str:
        """Return what every test of a file uses: statements of the module, and fixtures that nobody asks for."""
        plain = [node for node in tree.body if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.If))]
        fixtures = [node for node in tree.body if isinstance(node, _FUNCTIONS) and _is_automatic(node)]
        return self.words([*plain, *fixtures])

    def words(self, parts: Iterable[ast.AST]) -> str:
        """Return what one of several parts uses."""
        return next(filter(None, map(self.word, parts)), "")

    def word(self, part: ast.AST, seen: frozenset[str] = frozenset()) -> str:
        """Return what a part uses, itself or by a definition of the file's; "" for nothing."""
        for node in nodes_of(part):
            if found := self._reach(node):
                return found
            name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
            definition = self._known.get(name)
            if definition is None or definition is part or name in seen:
                continue
            if found := self.word(definition, seen | {name}):
                return found
        return ""

    def _reach(self, node: ast.AST) -> str:
        match node:
            case ast.AsyncFunctionDef() | ast.Await():
                return "async"
            case ast.arg(arg=name) if name in _FIXTURES and name not in self._known:
                return name
            case ast.Attribute(attr=name) if name in _METHODS:
                return name
            case ast.Attribute() | ast.Name(ctx=ast.Load()):
                dotted = self._dotted(node)
                parts = dotted.split(".")
                prefixes = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
                if name := next((prefix for prefix in prefixes if prefix in _NAMES), ""):
                    return name
                if len(parts) == 2 and parts[0] == self._module and isinstance(node, ast.Attribute):
                    return dotted if not isinstance(node.ctx, ast.Load) or parts[1].isupper() else ""
            case _:
                pass
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
