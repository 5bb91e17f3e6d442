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
from typing import Any, Literal, cast, get_args

from adjudge.sandbox import codec
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.verifiers.code.claims import Claim, Target, read_claims
from adjudge.verifiers.code.extraction import defines
from adjudge.verifiers.code.languages import LANGUAGES, PYTHON_FEEDS, PYTHON_PRINTS, PYTHON_READS, language_of
from adjudge.verifiers.code.layouts import CONTEST_IMPORTS, FIELDS, tests_of
from adjudge.verifiers.code.names import (
    IMPLICIT,
    LIBRARY,
    SEEDS,
    after_future,
    attributes,
    candidates_own,
    defined,
    imported,
    in_annotations,
    judges,
    missing,
    names_any,
    parsed,
    places,
    reaching,
    shadowing,
    silent,
    starred,
    syntax_tree,
    used,
)
from adjudge.verifiers.code.outcome import Outcome, shorten
from adjudge.verifiers.code.task_classes import records, stated_classes

Style = Literal["calls", "stdio", "asserts", "humaneval", "pytest"]

_MAX_SOURCE = 8 << 20  # characters of all tests; they travel in one frame
_MOST = 1e9  # of any number
_MAX_READ = 256  # references kept
_CHANCE = re.compile(
    r"random|shuffle|sample|secrets|torch|tensorflow|keras|jax|sklearn|scipy|networkx|faker", re.IGNORECASE
)
_LEETCODE = "Solution"  # the class whose methods LeetCode calls, after the imports that everybody leaves out


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test with data: a call, or a run of the program.

    Attributes:
        expected: what the call returns, or what the program prints.
        also: further values of which each is as right as `expected`.
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
        cases: tests with data, for "calls" and "stdio".
        sources: tests as source, for the other styles.
        claims: what each of the sources claims, where they are made of nothing else; then they need not be executed.
        targets: what tests of the style "calls" call: the first of these whose function or class there is.
        solution: a program that passes; "" for none.
        setup: source that the tests, and only they, run first.
        take: names that the tests get from the candidate.
        needs: names that the candidate must define: `take`, and what a pytest file imports from it.
        imports: where the names are that the tests use without importing them: "module" or "module:name".
        offered: modules that the candidate may use, with all their names, without importing them; None for those that
            LeetCode has, where the candidate is its class.
        named: classes that the tests name and the candidate may define.
        own: names that the tests define or import from elsewhere.
        stated: classes that the task's own program or prompt defines.
        records: by name, the sources of classes in the setup or the prompt that a program may use (`task_classes`).
        reaching: by the test's name or number, what it uses that needs the candidate's own process or objects.
        silent: whether no test looks as if it could fail other than by an error of the candidate.
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
    stated: tuple[str, ...] = ()
    records: Mapping[str, str] = field(default_factory=dict)
    reaching: Mapping[str, str] = field(default_factory=dict)
    silent: bool = False
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
            looks = [LANGUAGES[self.language].whole] if self.language != "python" else [PYTHON_PRINTS]
            if self.language == "python" and any(case.stdin for case in self.cases):
                looks.append(PYTHON_READS)
                return lambda source: (
                    all(re.search(look, source) for look in looks) and not re.search(PYTHON_FEEDS, source)
                )
            return lambda source: all(re.search(look, source) for look in looks)
        if self.targets:
            return lambda source: any(defines(source, [target.name]) for target in self.targets)
        return (lambda source: defines(source, self.needs)) if self.needs else None

    def program(self, source: str) -> str:
        """Return a candidate's source with the `offered` modules' names and the `records`, if it lacks what it uses."""
        offered = self.offered
        if not offered and "class" not in source and not names_any(source, (*self.own, *self.records)):
            return source
        if (tree := syntax_tree(source)) is None or not (lacking := missing(tree)):
            return source  # where it is not Python, the run says so
        if offered is None and self.asks_for_class(tree):
            offered = CONTEST_IMPORTS
        lines = ["; ".join(f"from {module} import *; import {module}" for module in offered)] if offered else []
        lines += [text for name, text in self.records.items() if name in lacking]
        if lacking & (in_annotations(tree) & {*self.own} | self.records.keys()):  # of names that only the tests have
            lines.insert(0, "from __future__ import annotations")
        return after_future(source, tree, *lines) if lines else source

    def asks_for_class(self, tree: ast.Module) -> bool:
        """Return whether the tests need a class that a program defines, such as LeetCode's `Solution` and designs."""
        classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        return self.style != "pytest" and not classes.isdisjoint(self.needs)

    @property
    def nothing(self) -> str:
        """A program of nothing: it has every name that the tests need, and whatever is called returns nothing."""
        lines = ["class _Nothing:", "    def __init__(self, *_, **__): pass"]
        lines += ["    def __getattr__(self, name): return lambda *_, **__: None"]
        return "\n".join([*lines, *(f"class {name}(_Nothing): pass" for name in self.named)])

    def reached(self, number: int, outcome: Outcome, source: str) -> str:
        """Return what a test that failed uses that needs the candidate's own process or objects; "" for nothing.

        A seed is nothing where the candidate, whose program is given, leaves nothing to chance.
        """
        if outcome.passed or outcome.reason not in ("wrong", "candidate_error"):
            return ""
        path = str(outcome.detail.get("source", "")).partition("[")[0]
        name = str(number) if self.style != "pytest" else path.partition("::")[2] or path
        word = self.reaching.get(name, "")
        return "" if word in SEEDS and not _CHANCE.search(source) else word


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
        raise ReferenceFormError(
            f"the code reference has the field {unknown[0]!r}; known are {', '.join(sorted(FIELDS))}"
        )
    language = _language(reference)
    tests = reference["tests"]
    if checker := _text(reference, "checker"):
        parsed(checker, "checker")
    common: dict[str, Any] = {
        "language": language,
        "solution": _text(reference, "solution"),
        "timeout": positive(reference, "timeout"),
        "memory_mb": int(positive(reference, "memory_mb") or 0) or None,
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
        raise ReferenceFormError(f"tests of the style {style!r} are for Python, not {language!r}")
    return _with_sources(style, tests, common, _text(reference, "setup"), prompt)


def _language(reference: Mapping[str, Any]) -> str:
    name = _text(reference, "language") or "python"
    if not (language := language_of(name)):
        known = ", ".join(("python", *LANGUAGES))
        raise ReferenceFormError(f"the code reference's language is {name!r}; known are {known}")
    return language


def _style(reference: Mapping[str, Any], tests: Any) -> Style:
    if (named := reference.get("style")) is not None:
        if named not in get_args(Style):
            known = ", ".join(get_args(Style))
            raise ReferenceFormError(f"the style is {shorten(named)!r}; it must be one of {known}")
        return cast("Style", named)
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
    known = tuple(target for target in targets if target is not None)
    if len(known) == 1:  # a function may be in LeetCode's class, and its method a function
        other = Target(known[0].method) if known[0].method else Target(_LEETCODE, known[0].name)
        known, targets = (*known, other), [*targets, other]
    if len(known) < len(targets) or language != "python":
        raise ReferenceFormError(
            f'tests with "args" are for Python and need "entry_point", a function or "Class().method", or a list of '
            f"those; it is {shorten(reference.get('entry_point', ''))!r}"
        )
    names = tuple(dict.fromkeys(target.name for target in known))
    return {"entry_point": str(entries[-1]), "targets": known, "needs": names}


def _modules(reference: Mapping[str, Any], language: str) -> tuple[str, ...] | None:
    """Return the modules whose names the candidate gets; None where the reference does not say."""
    if "imports" not in reference:
        return None
    modules = reference["imports"]
    if not isinstance(modules, Sequence) or isinstance(modules, str):
        modules = [None]
    if not all(isinstance(module, str) and module in sys.stdlib_module_names for module in modules):
        raise ReferenceFormError(
            f'"imports" is {shorten(reference["imports"])}; it must be a list of modules of the standard library'
        )
    return tuple(modules) if language == "python" else ()


def _with_cases(style: Style, tests: Any, common: dict[str, Any]) -> Suite:
    if isinstance(tests, str):
        raise ReferenceFormError(f'"tests" of the style {style!r} must be a list')
    cases = []
    for number, test in enumerate(tests):
        if not isinstance(test, Mapping):
            raise ReferenceFormError(f"test {number} is a {type(test).__name__}; it must be a mapping")
        cases.append(_case(style, number, test, bool(common["checker"])))
    return Suite(style=style, cases=tuple(cases), **common)


def _case(style: Style, number: int, test: Mapping[str, Any], checked: bool) -> Case:
    if style == "stdio":
        given, printed = test.get("stdin"), test.get("stdout", "" if checked else None)
        for name, value in (("stdin", given), ("stdout", printed)):
            if not isinstance(value, str):
                raise ReferenceFormError(
                    f'test {number} has {shorten(value)} for "{name}"; it needs "stdin" and "stdout" as texts, and '
                    "tests of one reference are of one kind"
                )
        given = str(given)
        if re.search("[\ud800-\udc7f\udd00-\udfff]", given):
            raise BadReferenceError(f"the stdin of test {number} holds half a character (a lone surrogate)")
        return Case(stdin=given, expected=printed)
    if null := test.get("null_field"):
        raise BadReferenceError(
            f"{null} of test {number} is null, and columns of objects fill in so what only other rows have: whether "
            "the function gets it cannot be told. Keep the tests as JSON text"
        )
    args, kwargs = test.get("args", ()), test.get("kwargs", {})
    right = [test["expected"]] if "expected" in test else test.get("expected_any")
    for name, value, kinds in (
        ("args", args, list | tuple),
        ("kwargs", kwargs, Mapping),
        ("expected_any", right, list | tuple),
    ):
        if not isinstance(value, kinds) or (name == "expected_any" and not value):
            said = "has no result" if right is None and name[:8] == "expected" else f"has {shorten(value)} for {name!r}"
            raise ReferenceFormError(
                f'test {number} {said}; it needs "args", a list, and "expected" (or "expected_any", a list); tests of '
                "one reference are of one kind"
            )
    assert isinstance(right, list | tuple)
    for what, value in (("arguments", (list(args), dict(kwargs))), ("expected value", right)):
        try:
            codec.dumps(value)
        except codec.CodecError as error:
            raise BadReferenceError(f"the {what} of test {number} cannot be sent: {error}") from error
    return Case(args=tuple(args), kwargs=dict(kwargs), expected=right[0], also=tuple(right[1:]))


def _with_sources(style: Style, tests: Any, common: dict[str, Any], setup: str, prompt: str) -> Suite:
    sources = (tests,) if isinstance(tests, str) else tuple(tests)
    entry = Target.read(common["entry_point"])
    if common["entry_point"] and (entry is None or (entry.method and style != "humaneval")):
        raise ReferenceFormError(
            f'"entry_point" is {common["entry_point"]!r}; tests of the style {style!r} take a function'
        )
    if not sources or not all(isinstance(source, str) and source.strip() for source in sources):
        raise ReferenceFormError(f'"tests" of the style {style!r} must be sources that are not empty')
    if sum(map(len, sources)) + len(setup) > _MAX_SOURCE:
        raise BadReferenceError(f"the tests are longer than {_MAX_SOURCE} characters")
    read = _read_sources(style, sources, setup, prompt, common["entry_point"], common["solution"], common["module"])
    return Suite(style=style, **read, **common)


@functools.lru_cache(maxsize=_MAX_READ)
def _read_sources(
    style: Style, tests: tuple[str, ...], setup: str, prompt: str, entry: str, solution: str, module: str
) -> Mapping[str, Any]:
    """Return the fields of a suite that take a parser to find, 0.5 ms and more; the samples of a group share them."""
    trees = [parsed(source, f"test {number}") for number, source in enumerate(tests)]
    if style == "humaneval":
        if not entry:
            raise ReferenceFormError('tests of the style "humaneval" need "entry_point", a function')
        if "check" not in set().union(*map(defined, trees)):
            raise BadReferenceError("the tests define no function `check`")
    if style == "asserts" and len(trees) == 1:
        tests = tuple(_statements(tests[0], trees[0]))
    given, setup_tree = setup, parsed(setup, "setup") if setup else ast.Module([], [])
    sources = (setup_tree, *trees)
    bound = set().union(*map(defined, sources), *map(starred, trees))
    library = {**LIBRARY, **starred(setup_tree)}
    wanted = set().union(*map(used, sources)) - bound - IMPLICIT
    imports = places(wanted, sources, prompt, solution)
    theirs, wanted = wanted & (imports.keys() | vars(builtins)), wanted - imports.keys() - vars(builtins).keys()
    target = Target.read(entry)
    asked = set().union(*(imported(tree, module) for tree in trees))
    told = asked.union(*(attributes(tree, module) for tree in trees))
    pieces = trees if len(trees) == len(tests) else [ast.parse(source) for source in tests]
    if target is not None:
        own, helpers = {target.name}, wanted - {target.name}
    elif style == "pytest":
        own = (
            wanted - library.keys()
            if told
            else candidates_own(wanted, library, trees, solution, listed=False) or wanted
        )
        helpers = judges(trees, own)
    else:
        own = candidates_own(wanted, library, pieces, solution, listed=True) or shadowing(theirs, trees, solution)
        own = own or wanted
        if not own:
            raise BadReferenceError("the tests call nothing of the candidate's; name the function in `entry_point`")
        helpers = judges(trees, own)
    if target is None:
        own -= helpers
    imports |= {name: library[name] for name in library.keys() & wanted}
    imports = {name: place for name, place in imports.items() if name not in own}
    setup, helpers = _helpers(setup, helpers - imports.keys(), prompt, solution)
    if helpers:
        raise BadReferenceError(
            f"the tests use {sorted(helpers)[0]!r}, which neither they nor `setup` define; what judges the function "
            "under test must not come from the candidate"
        )
    needs = tuple(sorted(own | asked))
    lent = {name: text for name, text in records(given, prompt).items() if name not in needs}
    fields: dict[str, Any] = {
        "setup": setup,
        "take": tuple(sorted(own)),
        "needs": needs,
        "named": tuple(sorted(own | told)),
        "stated": stated_classes(solution, prompt),
        "records": lent,
        "own": tuple(sorted((bound | (starred(setup_tree).keys() - own)) - asked)),
    }
    if style != "pytest" and not setup:
        fields["claims"] = read_claims(tests, own, entry if style == "humaneval" else "")
    if not fields.get("claims"):
        fields["reaching"] = reaching(pieces, [setup_tree, *trees], style == "pytest")
        fields["silent"] = silent([setup_tree, *trees])
    return MappingProxyType({"sources": tests, "imports": MappingProxyType(imports), **fields})


def _helpers(setup: str, wanted: set[str], prompt: str, solution: str) -> tuple[str, set[str]]:
    """Look for helper functions that the tests use in the solution and the prompt; the candidate's are not believed."""
    for source in (solution, prompt):
        tree = syntax_tree(source) if wanted and source else None
        if tree is not None and wanted & defined(tree):
            setup, wanted = f"{source}\n\n{setup}", wanted - defined(tree)
    return setup, wanted


def _statements(source: str, tree: ast.Module) -> list[str]:
    """Return a list of asserts, one text each; other statements stay with the assert that follows them."""
    lines = source.splitlines(keepends=True)
    pieces, start = [], 0
    for node in tree.body:
        if isinstance(node, ast.Assert):
            end = node.end_lineno or node.lineno
            if end > start:
                pieces.append("".join(lines[start:end]))
            start = end
    if not pieces:
        return [source]
    if "".join(lines[start:]).strip():
        pieces.append("".join(lines[start:]))
    return pieces


def _text(reference: Mapping[str, Any], name: str) -> str:
    value = reference.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ReferenceFormError(f'"{name}" is a {type(value).__name__}; it must be a text')
    return value


def positive(reference: Mapping[str, Any], name: str) -> float | None:
    """Return the number above 0 that a field of a reference holds; None where it holds none."""
    value = reference.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST:
        raise ReferenceFormError(f'"{name}" is {shorten(value)}; it must be a number above 0')
    return float(value)
