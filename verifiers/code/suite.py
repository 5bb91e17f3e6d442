"""What a code reference asks for, read once and checked before anything runs.

Not covered: whether the tests are right; the reference solution, where one is given, is run against them.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from adjudge.bad_reference import BadReferenceError
from adjudge.verifiers.code.claims import Claim, read_claims
from adjudge.verifiers.code.extraction import defines, syntax_tree
from adjudge.verifiers.code.languages import LANGUAGES, PYTHON_READS
from adjudge.verifiers.code.layouts import CONTEST_IMPORTS, FIELDS, tests_of
from adjudge.verifiers.code.outcome import shorten
from adjudge.verifiers.code.target import Target
from adjudge.verifiers.execution import codec

Style = Literal["calls", "stdio", "asserts", "humaneval", "pytest"]

_ALIASES = {
    **dict.fromkeys(("np", "numpy"), "numpy"),
    **dict.fromkeys(("pd", "pandas"), "pandas"),
    "plt": "matplotlib.pyplot",
    "requests": "requests",
    "scipy": "scipy",
}
_REACHING = frozenset(
    {"patch", "monkeypatch", "mocker", "capsys", "capfd", "caplog", "asyncio", "anyio", "IsolatedAsyncioTestCase"}
    | {"inspect", "GeneratorType"}
)
"""What tests use that needs the process, or the very objects, of what they test."""
_MOST_SOURCE = 8 << 20  # characters of all tests; they travel in one frame
_MOST = 1e9  # of any number
_MOST_READ = 256  # references kept
_LEETCODE = "Solution"  # the class whose methods LeetCode calls, after the imports that everybody leaves out
_IMPLICIT = frozenset({"__name__", "__file__", "__doc__", "__builtins__"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test with data: a call, or a run of the program.

    Attributes:
        args: positional arguments of the call.
        kwargs: keyword arguments of the call.
        expected: what the call returns, or what the program prints.
        also: further values of which each is as right as `expected`.
        stdin: what the program reads.
    """

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    expected: Any = None
    also: tuple[Any, ...] = ()
    stdin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The tests of one task.

    Attributes:
        style: what kind of tests.
        cases: tests with data, for "calls" and "stdio".
        sources: tests as source, for the other styles.
        claims: what each of the sources claims, where they are made of nothing else; then they need not be executed.
        entry_point: the function under test; "" where the tests name it themselves.
        targets: what tests of the style "calls" call: the first of these whose function or class there is.
        language: what the candidate is written in.
        solution: a program that passes; "" for none.
        setup: source that the tests, and only they, run first.
        take: names that the tests get from the candidate.
        needs: names that the candidate must define: `take`, and what a pytest file imports from it.
        imports: modules that the tests use without importing them, by name.
        offered: modules that the candidate may use, with all their names, without importing them; None for those that
            LeetCode has, where the candidate is its class.
        named: classes that the tests name and the candidate may define.
        own: names that the tests define or import from elsewhere.
        reaching: what the tests use that needs the candidate's own process or objects; "" for nothing.
        timeout: seconds for one test; None for the verifier's own.
        memory_mb: MiB for the candidate; None for the verifier's own.
        checker: source of a Python program that judges printed output; "" for none.
        module: the name under which tests import the candidate.
    """

    style: Style
    cases: tuple[Case, ...] = ()
    sources: tuple[str, ...] = ()
    claims: tuple[tuple[Claim, ...], ...] = ()
    entry_point: str = ""
    targets: tuple[Target, ...] = ()
    language: str = "python"
    solution: str = ""
    setup: str = ""
    take: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    imports: Mapping[str, str] = field(default_factory=dict)
    offered: tuple[str, ...] | None = None
    named: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    reaching: str = ""
    timeout: float | None = None
    memory_mb: int | None = None
    checker: str = ""
    module: str = "solution"

    @property
    def count(self) -> int:
        """How many tests there are, as far as that is known before they run."""
        return len(self.cases) or len(self.sources)

    @property
    def function(self) -> str:
        """The one Python function that the tests call; "" where they call a method, several, or none."""
        if self.targets:
            return "" if self.targets[0].method else self.targets[0].name
        return self.needs[0] if self.language == "python" and len(self.needs) == 1 else ""

    @property
    def vacuous(self) -> bool:
        """Whether every test expects nothing: None of each call, or no output of each run."""
        if self.style == "stdio":
            return not self.checker and not any(case.expected.strip() for case in self.cases)
        if self.cases:
            return all(any(value is None for value in (case.expected, *case.also)) for case in self.cases)
        return bool(self.claims) and all(
            claim.value is None and claim.relation in ("==", "is") for claims in self.claims for claim in claims
        )

    @property
    def whole(self) -> Callable[[str], bool] | None:
        """What tells a block that can be the program from one that only uses it; None where nothing does."""
        if self.style == "stdio":
            look = PYTHON_READS if self.language == "python" else LANGUAGES[self.language].whole
            reads = self.language != "python" or any(case.stdin for case in self.cases)
            return (lambda source: re.search(look, source) is not None) if look and reads else None
        if self.targets:
            return lambda source: any(defines(source, [target.name]) for target in self.targets)
        return (lambda source: defines(source, self.needs)) if self.needs else None

    def program(self, source: str) -> str:
        """Return a candidate's source with imports of the `offered` modules, if it uses a name that it has not."""
        offered = self.offered
        if offered is None and _LEETCODE in self.needs and defines(source, [_LEETCODE]):
            offered = CONTEST_IMPORTS
        if not offered:
            return source
        tree = syntax_tree(source)
        if tree is None:
            return source  # the run says so
        if not _used(tree) - _defined(tree) - _IMPLICIT - vars(builtins).keys():
            return source
        lines = source.split("\n")
        start = max((node.end_lineno or 0 for node in tree.body if _is_future(node)), default=0)
        names = "; ".join(f"from {module} import *; import {module}" for module in offered)
        return "\n".join([*lines[:start], names, *lines[start:]])


def read_suite(reference: Any, prompt: str = "") -> Suite:
    """Return the tests that a reference holds.

    Args:
        reference: see `adjudge.verifiers.code.verifier.CodeVerifier`.
        prompt: the task's text; where it is Python, as HumanEval's are, helper functions in it serve the tests.

    Raises:
        BadReferenceError: it cannot be read.
    """
    reference = tests_of(reference)
    if unknown := sorted(reference.keys() - FIELDS):
        raise BadReferenceError(
            f"the code reference has the field {unknown[0]!r}; known are {', '.join(sorted(FIELDS))}", mistake=True
        )
    language = _language(reference)
    tests = reference["tests"]
    if checker := _text(reference, "checker"):
        _parsed(checker, "checker")
    common: dict[str, Any] = {
        "language": language,
        "solution": _text(reference, "solution"),
        "timeout": _number(reference, "timeout"),
        "memory_mb": int(_number(reference, "memory_mb") or 0) or None,
        "checker": checker,
        "module": _text(reference, "module") or "solution",
        "offered": _modules(reference, language),
    }
    style = _style(reference, tests)
    if style == "calls":
        return _with_cases(style, tests, {**common, **_called(reference, language)})
    common["entry_point"] = _text(reference, "entry_point")
    if style == "stdio":
        return _with_cases(style, tests, common)
    if language != "python":
        raise BadReferenceError(f"tests of the style {style!r} are for Python, not {language!r}", mistake=True)
    return _with_sources(style, tests, common, _text(reference, "setup"), prompt)


def _language(reference: Mapping[str, Any]) -> str:
    language = (_text(reference, "language") or "python").lower()
    for name, found in LANGUAGES.items():
        if language in found.labels:
            language = name
    language = "python" if language in ("py", "python3") else language
    if language != "python" and language not in LANGUAGES:
        known = ", ".join(("python", *LANGUAGES))
        raise BadReferenceError(f"the code reference's language is {language!r}; known are {known}", mistake=True)
    return language


def _style(reference: Mapping[str, Any], tests: Any) -> Style:
    named = reference.get("style")
    styles: tuple[Style, ...] = ("calls", "stdio", "asserts", "humaneval", "pytest")
    for style in styles:
        if named == style:
            return style
    if named is not None:
        raise BadReferenceError(f"the style is {shorten(named)!r}; it must be one of {', '.join(styles)}", mistake=True)
    if isinstance(tests, str):
        return "humaneval" if "def check(" in tests else "asserts" if "def test" not in tests else "pytest"
    if isinstance(tests[0], str):
        return "asserts"
    first = tests[0] if isinstance(tests[0], Mapping) else {}
    return "stdio" if "stdin" in first or ("stdout" in first and "expected" not in first) else "calls"


def _called(reference: Mapping[str, Any], language: str) -> dict[str, Any]:
    """Return the fields of a suite that say what its tests call."""
    entries = reference.get("entry_point", "")
    entries = [entries] if isinstance(entries, str) else entries
    listed = isinstance(entries, Sequence) and bool(entries)
    targets = [Target.read(entry) if isinstance(entry, str) else None for entry in entries] if listed else [None]
    found = tuple(target for target in targets if target is not None)
    if len(found) == 1:  # a function may be in LeetCode's class, and its method a function
        other = Target(found[0].method) if found[0].method else Target(_LEETCODE, found[0].name)
        found, targets = (*found, other), [*targets, other]
    if len(found) < len(targets) or language != "python":
        raise BadReferenceError(
            f'tests with "args" are for Python and need "entry_point", a function or "Class().method", or a list of '
            f"those; it is {shorten(reference.get('entry_point', ''))!r}",
            mistake=True,
        )
    names = tuple(dict.fromkeys(target.name for target in found))
    return {"entry_point": str(entries[-1]), "targets": found, "needs": names}


def _modules(reference: Mapping[str, Any], language: str) -> tuple[str, ...] | None:
    """Return the modules whose names the candidate gets; None where the reference does not say."""
    if "imports" not in reference:
        return None
    modules = reference["imports"]
    if not isinstance(modules, Sequence) or isinstance(modules, str):
        modules = [None]
    if not all(isinstance(module, str) and module in sys.stdlib_module_names for module in modules):
        raise BadReferenceError(
            f'"imports" is {shorten(reference["imports"])}; it must be a list of modules of the standard library',
            mistake=True,
        )
    return tuple(modules) if language == "python" else ()


def _with_cases(style: Style, tests: Any, common: dict[str, Any]) -> Suite:
    if isinstance(tests, str):
        raise BadReferenceError(f'"tests" of the style {style!r} must be a list', mistake=True)
    cases = []
    for number, test in enumerate(tests):
        if not isinstance(test, Mapping):
            raise BadReferenceError(f"test {number} is a {type(test).__name__}; it must be a mapping", mistake=True)
        cases.append(_case(style, number, test, bool(common["checker"])))
    return Suite(style=style, cases=tuple(cases), **common)


def _case(style: Style, number: int, test: Mapping[str, Any], checked: bool) -> Case:
    if style == "stdio":
        given, printed = test.get("stdin"), test.get("stdout", "" if checked else None)
        if not isinstance(given, str) or not isinstance(printed, str):
            raise BadReferenceError(
                f'test {number} needs "stdin" and "stdout" as texts; tests of one reference are of one kind',
                mistake=True,
            )
        return Case(stdin=given, expected=printed)
    args, kwargs = test.get("args", ()), test.get("kwargs", {})
    right = [test["expected"]] if "expected" in test else test.get("expected_any")
    plain = isinstance(args, list | tuple) and isinstance(kwargs, Mapping)
    if not plain or not isinstance(right, list | tuple) or not right:
        raise BadReferenceError(
            f'test {number} needs "args" (a list) and "expected"; tests of one reference are of one kind', mistake=True
        )
    try:
        codec.dumps((list(args), dict(kwargs)))
    except codec.CodecError as error:
        raise BadReferenceError(f"the arguments of test {number} cannot be sent: {error}") from error
    return Case(args=tuple(args), kwargs=dict(kwargs), expected=right[0], also=tuple(right[1:]))


def _with_sources(style: Style, tests: Any, common: dict[str, Any], setup: str, prompt: str) -> Suite:
    sources = (tests,) if isinstance(tests, str) else tuple(tests)
    if common["entry_point"] and not common["entry_point"].isidentifier():
        raise BadReferenceError(
            f'"entry_point" is {common["entry_point"]!r}; tests of the style {style!r} take a function', mistake=True
        )
    if not sources or not all(isinstance(source, str) and source.strip() for source in sources):
        raise BadReferenceError(f'"tests" of the style {style!r} must be sources that are not empty', mistake=True)
    if sum(map(len, sources)) + len(setup) > _MOST_SOURCE:
        raise BadReferenceError(f"the tests are longer than {_MOST_SOURCE} characters")
    read = _read_sources(style, sources, setup, prompt, common["entry_point"], common["solution"], common["module"])
    return Suite(style=style, **read, **common)


@functools.lru_cache(maxsize=_MOST_READ)
def _read_sources(
    style: Style, tests: tuple[str, ...], setup: str, prompt: str, entry: str, solution: str, module: str
) -> Mapping[str, Any]:
    """Return the fields of a suite that take a parser to find, 0.5 ms and more; the samples of a group share them."""
    trees = [_parsed(source, f"test {number}") for number, source in enumerate(tests)]
    if style == "humaneval":
        if not entry:
            raise BadReferenceError('tests of the style "humaneval" need "entry_point", a function', mistake=True)
        if "check" not in set().union(*map(_defined, trees)):
            raise BadReferenceError("the tests define no function `check`")
    if style == "asserts" and len(trees) == 1:
        tests = tuple(_statements(tests[0], trees[0]))
    setup_names = _defined(_parsed(setup, "setup")) if setup else set()
    known = set().union(setup_names, *map(_defined, trees), _IMPLICIT, vars(builtins))
    wanted = set().union(*map(_used, trees), _used(_parsed(setup, "setup")) if setup else set()) - known
    modules = {**{name: name for name in sys.stdlib_module_names}, **_ALIASES, **_modules_of(prompt, solution)}
    imports = {name: modules[name] for name in wanted if name in modules}
    wanted -= set(imports)
    if entry:
        setup, wanted = _helpers(setup, wanted - {entry}, entry, prompt, solution)
        if wanted:
            raise BadReferenceError(
                f"the tests use {sorted(wanted)[0]!r}, which neither they nor `setup` define; what is not the entry "
                "point must not come from the candidate"
            )
        wanted = {entry}
    elif style != "pytest" and not wanted:
        raise BadReferenceError("the tests call nothing of the candidate's; name the function in `entry_point`")
    imported = set().union(*(_imported(tree, module) for tree in trees))
    needs = tuple(sorted(wanted | imported))
    own = tuple(sorted(set().union(*map(_defined, trees)) - imported))
    reaching = next(iter(sorted(set().union(*map(_words, trees)) & _REACHING)), "")
    found: dict[str, Any] = {
        "reaching": reaching,
        "setup": setup,
        "take": tuple(sorted(wanted)),
        "needs": needs,
        "named": needs,
        "own": own,
    }
    if style != "pytest" and not setup:
        found["claims"] = read_claims(tests, wanted, entry if style == "humaneval" else "")
    return MappingProxyType({"sources": tests, "imports": MappingProxyType(imports), **found})


def _helpers(setup: str, wanted: set[str], entry: str, prompt: str, solution: str) -> tuple[str, set[str]]:
    """Look for helper functions that the tests use in the solution and the prompt; the candidate's are not believed."""
    for source in (solution, prompt):
        if not wanted or not source:
            continue
        try:
            defined = _defined(ast.parse(source))
        except (SyntaxError, ValueError):
            continue
        if wanted & defined:
            setup, wanted = f"{source}\n\n{setup}", wanted - defined
    return setup, wanted


def _statements(source: str, tree: ast.Module) -> list[str]:
    """Return a list of asserts, one text each; other statements stay with the assert that follows them."""
    lines = source.splitlines(keepends=True)
    found, start = [], 0
    for node in tree.body:
        if isinstance(node, ast.Assert):
            end = node.end_lineno or node.lineno
            if end > start:
                found.append("".join(lines[start:end]))
            start = end
    if not found:
        return [source]
    if "".join(lines[start:]).strip():
        found.append("".join(lines[start:]))
    return found


def _parsed(source: str, what: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise BadReferenceError(f"{what} is not Python: {error}") from error


def _defined(tree: ast.AST) -> set[str]:
    """Return every name that a source binds anywhere: good enough to tell its own names from the candidate's."""
    names: set[str] = set()
    for node in ast.walk(tree):
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


def _words(tree: ast.AST) -> set[str]:
    """Return every name, attribute, parameter and imported name of a source."""
    words = _defined(tree) | _used(tree)
    return words | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def _modules_of(*sources: str) -> dict[str, str]:
    """Return the modules, by the names they have there, that the task's own sources import."""
    return {
        alias.asname or alias.name: alias.name
        for tree in map(syntax_tree, filter(None, sources))
        for node in (tree.body if tree else ())
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.asname or "." not in alias.name
    }


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _used(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _imported(tree: ast.AST, module: str) -> set[str]:
    """Return the names that a source imports from a module."""
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == module
        for alias in node.names
        if alias.name != "*"
    }


def _text(reference: Mapping[str, Any], name: str) -> str:
    value = reference.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadReferenceError(f'"{name}" is a {type(value).__name__}; it must be a text', mistake=True)
    return value


def _number(reference: Mapping[str, Any], name: str) -> float | None:
    value = reference.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST:
        raise BadReferenceError(f'"{name}" is {shorten(value)}; it must be a number above 0', mistake=True)
    return float(value)
