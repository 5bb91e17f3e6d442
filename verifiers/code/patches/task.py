"""The references of `patch_tests`: a repository, its tests, and the change that passes them where it is known.

Which tests of a repository are run: the lists of SWE-bench, a command line that is read and not run, or all.

A command is taken for the tests it names.  It is not executed, since its exit status and its output would be the
candidate's; unittest's cases are run by the same machinery as pytest's.
"""

from __future__ import annotations

import ast
import fnmatch
import hashlib
import importlib.util
import json
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from typing import Any, Final

from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.verifiers.code.names import defined
from adjudge.verifiers.code.patches.edits import CHANGES, Matching, change_of, texts_of
from adjudge.verifiers.code.patches.repository import read_repository, text_files
from adjudge.verifiers.code.suite import positive

_IMPORTERS = ("importorskip", "import_module", "__import__")


@dataclass(frozen=True, slots=True)
class Modules:
    """The modules of a repository's files.

    Attributes:
        packages: whether it is a package, by dotted name.
        places: the folder of each package, relative to the repository.
        paths: the file of each module that has one.
    """

    packages: dict[str, bool] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Iterable[str], roots: Sequence[str]) -> Modules:
        """Return the modules that files are below one of the roots; "" is the repository itself."""
        made = cls()
        for path in sorted(files):
            for root in roots:
                if path.endswith(".py") and (not root or path.startswith(f"{root}/")):
                    made._add(path, root)
        return made

    def _add(self, path: str, root: str) -> None:
        parts = path.removeprefix(f"{root}/" if root else "").removesuffix(".py").split("/")
        is_package = parts[-1] == "__init__"
        if is_package:
            parts.pop()
        if not parts or not all(part.isidentifier() for part in parts):
            return
        for depth in range(1, len(parts) + is_package):  # what is above it, and itself if it is one
            package = ".".join(parts[:depth])
            self.packages[package] = True
            self.places.setdefault(package, "/".join([root, *parts[:depth]] if root else parts[:depth]))
        self.packages.setdefault(".".join(parts), is_package)
        self.paths.setdefault(".".join(parts), path)

    def without(self, tops: Iterable[str], names: Iterable[str]) -> Modules:
        """Return those whose first part is none of `tops`, and which are none of `names` themselves."""
        left_out, others = set(tops), set(names)
        kept = {
            name: kind
            for name, kind in self.packages.items()
            if name not in others and name.partition(".")[0] not in left_out
        }
        return Modules(kept, {name: place for name, place in self.places.items() if name in kept}, self.paths)

    @property
    def tops(self) -> set[str]:
        """The first parts of all names."""
        return {name.partition(".")[0] for name in self.packages}


def imported_names(source: str, path: str) -> set[str]:
    """Return every dotted name that a source imports, or may: of `from a import b` both "a" and "a.b".

    Raises:
        SyntaxError: it is not Python.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join([*(path.split("/")[: -node.level] if node.level else ()), *filter(None, [node.module])])
            names.add(start)
            names.update(f"{start}.{alias.name}" if start else alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called, name = ast.unparse(node.func).rpartition(".")[2], node.args[0].value
            if called in _IMPORTERS and isinstance(name, str):
                names.add(name)
    return names


def reach(starts: Iterable[str], sources: Mapping[str, str], own: Modules) -> tuple[set[str], set[str]]:
    """Return the names that test files import, and those they bind, with the helpers of theirs that they import.

    Sources are text by path of all files on the tests' side, and `own` their modules.

    Raises:
        SyntaxError: one of the test files is not Python.
    """
    names: set[str] = set()
    bound: set[str] = set()
    todo, seen = list(starts), set(starts)
    while todo:
        path = todo.pop()
        imported = imported_names(sources[path], path)
        names |= imported
        bound |= defined(ast.parse(sources[path]))
        for name in imported:
            helper = own.paths.get(name, "")
            if helper and helper not in seen:
                seen.add(helper)
                todo.append(helper)
    return names, bound


def is_taken(top: str) -> bool:
    """Return whether a module of this name comes with Python or is installed here."""
    return top in sys.stdlib_module_names or _installed(top)


@cache
def _installed(top: str) -> bool:
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return True  # it is there, in some way


LISTS: Final = ("fail_to_pass", "pass_to_pass")
"""The fields with tests that the change repairs, and with those it must not break; capitals will do."""

_QUIET: Final = frozenset({"-v", "-vv", "-q", "-qq", "-s", "-b", "--verbose", "--quiet", "-rA", "-ra", "--no-header"})
_DJANGO: Final = re.compile(r"(\w+) \(([\w.]+)\)")


def is_test_file(path: str) -> bool:
    """Return whether pytest would look for tests in a file of this name."""
    name = PurePosixPath(path).name
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def chosen_tests(
    reference: Mapping[str, Any], given: Sequence[str], known: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the identifiers of the tests to run ("file", "file::test", "file::Class::test") under a name.

    The reference has the fields of `LISTS`, or "command", or neither; given are paths of its own tests, known the texts
    by path of all files on the tests' side.

    Raises:
        BadReferenceError: a test is named that is in none of the files, or there is none.
    """
    if listed := _lists(reference):
        return {name: tuple(dict.fromkeys(_identifier(test, known) for test in tests)) for name, tests in listed}
    if reference.get("command") is not None:
        named = tuple(dict.fromkeys(_of_command(reference["command"], given, known)))
    else:
        named = tuple(path for path in given if is_test_file(path))
    if not named:
        raise ReferenceFormError("the reference has no tests; give test_*.py files, a command, or lists")
    return {"tests": named}


def _lists(reference: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    lists = []
    for name in LISTS:
        value = reference.get(name, reference.get(name.upper()))
        if isinstance(value, str):  # as the published data has them
            try:
                value = json.loads(value)
            except ValueError:
                raise ReferenceFormError(f'"{name}" is {value!r:.60}; it must be a list of tests') from None
        if value is None:
            continue
        if not isinstance(value, Sequence) or not all(isinstance(test, str) for test in value):
            raise ReferenceFormError(f'"{name}" is {value!r:.60}; it must be a list of tests')
        if value:
            lists.append((name, list(value)))
    return lists


def _of_command(command: Any, given: Sequence[str], known: Mapping[str, str]) -> list[str]:
    words = shlex.split(command) if isinstance(command, str) else command
    if not isinstance(words, Sequence) or not words or not all(isinstance(word, str) for word in words):
        raise ReferenceFormError(f'"command" is {command!r:.60}; it must be a text or a list of texts')
    words = list(words)
    if words[0] in ("python", "python3") and words[1:2] == ["-m"]:
        words = words[2:]
    runner, *rest = words
    if runner not in ("pytest", "unittest"):
        raise ReferenceFormError(
            f'"command" runs {runner!r}; only "pytest ..." and "python -m unittest ..." name tests'
        )
    pattern = ""
    if runner == "unittest" and rest[:1] == ["discover"]:
        rest, pattern = _discovery([word for word in rest[1:] if word not in ("-v", "--verbose", "-q", "--quiet")])
    rest = [word for word in rest if word not in _QUIET]
    if odd := [word for word in rest if word.startswith("-")]:
        raise ReferenceFormError(f'"command" has the option {odd[0]!r}, which is not understood')
    chosen: list[str] = []
    for word in rest:
        chosen += _files_below(word, pattern, known) or [_identifier(word, known)]
    return chosen if rest else [path for path in given if is_test_file(path)]


def _discovery(words: list[str]) -> tuple[list[str], str]:
    """Return the folder and the pattern of `unittest discover`."""
    names = {"-s": "folder", "--start-directory": "folder", "-p": "pattern", "--pattern": "pattern", "-t": "top"}
    given = {"folder": ".", "pattern": "test*.py"}
    while len(words) >= 2 and words[0] in names:
        given[names[words[0]]] = words[1]
        words = words[2:]
    return [given["folder"], *words], given["pattern"]


def _files_below(word: str, pattern: str, known: Mapping[str, str]) -> list[str]:
    folder = word.rstrip("/").removeprefix("./")
    start = "" if folder in ("", ".") else f"{folder}/"
    below = [path for path in known if path.startswith(start)]
    if pattern:
        return [path for path in below if PurePosixPath(path).match(pattern)]
    return [path for path in below if is_test_file(path)]


def _identifier(test: str, known: Mapping[str, str]) -> str:
    """Return a test's identifier in pytest's form, or say that it is in none of the files."""
    name = test.removeprefix("./")
    if (django := _DJANGO.fullmatch(name)) is not None:  # unittest's own: test_name (module.Class)
        name = django[2] if django[2].endswith(f".{django[1]}") else f"{django[2]}.{django[1]}"
    path, *rest = name.split("[")[0].split("::")
    if path not in known and not rest:
        path, rest = _of_dotted(path, known)
        name = "::".join([path, *rest])
    if path not in known or any(part not in known[path] for part in rest):
        raise BadReferenceError(f"the test {test!r:.200} is in none of the test files")
    return name


def _of_dotted(name: str, known: Mapping[str, str]) -> tuple[str, list[str]]:
    parts = name.split(".")
    for depth in range(len(parts), 0, -1):
        path = f"{'/'.join(parts[:depth])}.py"
        if path in known:
            return path, parts[depth:]
    return name, []


PROTECTED: Final = (
    "tests/*", "*/tests/*", "test/*", "*/test/*", "conftest.py", "*/conftest.py", "test_*.py", "*/test_*.py",
    "*_test.py",
)  # fmt: skip
"""Where repositories keep their tests and what those share; `*` stands for slashes, too."""

_FIELDS: Final = frozenset(
    {"files", "repository", "tests", "command", *LISTS, *map(str.upper, LISTS), *CHANGES, "roots", "timeout"}
    | {"memory_mb"}
)
_TEST_BYTES: Final = 8 << 20
_CLASS: Final = re.compile(r"^[ \t]*class (\w+)", re.MULTILINE)
_OURS: Final = "test_candidate.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a reference asks for.

    Attributes:
        files: the repository by path, before the change.
        tests: the files on the tests' side by path: the reference's own, and the repository's that are protected.
        imports: names that the tests import, or may.
        bound: names that the tests bind.
        gold: the change that passes, None for a file it deletes; None where it is not known.
        protected: patterns of paths that edits do not reach, beside the tests' own.
    """

    files: dict[str, bytes]
    texts: dict[str, str]
    tests: dict[str, str]
    chosen: dict[str, tuple[str, ...]]
    imports: frozenset[str]
    bound: frozenset[str]
    gold: dict[str, str | None] | None
    roots: tuple[str, ...]
    protected: tuple[str, ...]
    timeout: float | None
    memory_mb: int | None

    def guarded(self, path: str) -> bool:
        """Return whether edits of this path are left out."""
        return path in self.tests or matches(path, self.protected)

    def changed(self, change: Mapping[str, str | None]) -> dict[str, bytes]:
        """Return the repository after a change, but for what is guarded."""
        files = dict(self.files)
        for path, text in change.items():
            if self.guarded(path):
                continue
            files.pop(path, None)
            if text is not None:
                files[path] = text.encode("utf-8", "surrogatepass")
        return files

    @property
    def modules(self) -> Modules:
        """The modules that the reference knows: the repository's, and those that the gold change makes."""
        return Modules.of((path for path in self.changed(self.gold or {}) if not self.guarded(path)), self.roots)

    @property
    def classes(self) -> set[str]:
        """The classes that the repository has, before the gold change or after it."""
        texts = [*self.texts.values(), *(text or "" for text in (self.gold or {}).values())]
        return {name for text in texts for name in _CLASS.findall(text)}

    @property
    def key(self) -> str:
        """A digest of everything that bears on the gold change's verdict."""
        digest = hashlib.sha256()
        for part in (self.tests, self.chosen, self.gold, self.roots, self.protected, self.timeout, self.memory_mb):
            digest.update(repr(part).encode("utf-8", "surrogatepass"))
        for path, content in self.files.items():
            digest.update(f"\0{path}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()


def read_task(reference: Any, matching: Matching, protected: Sequence[str]) -> Task:
    """Return what a reference asks for.

    Raises:
        BadReferenceError: it cannot be read.
    """
    if not isinstance(reference, Mapping):
        raise ReferenceFormError("the patch_tests reference must be a mapping; see docs/code.md")
    if unknown := sorted(set(map(str, reference)) - _FIELDS):
        known = ", ".join(sorted(_FIELDS))
        raise ReferenceFormError(f"the patch_tests reference has {unknown[0]!r}; known are {known}")
    if (reference.get("files") is None) == (reference.get("repository") is None):
        raise ReferenceFormError('the patch_tests reference needs one of "files" and "repository"')
    given = {} if reference.get("tests") is None else texts_of(reference["tests"], "tests")
    whole = reference["repository"] if reference.get("files") is None else reference["files"]
    files = read_repository(whole)
    texts = text_files(files)
    tests = {path: text for path, text in texts.items() if matches(path, tuple(protected))} | given
    if sum(map(len, tests.values())) > _TEST_BYTES:
        raise BadReferenceError(f"the tests and the protected files have more than {_TEST_BYTES} characters")
    if _OURS in tests:
        raise BadReferenceError(f"a test file at the top is called {_OURS!r}; give it another name")
    chosen = chosen_tests(reference, tuple(given), tests)
    roots = _roots(reference.get("roots"), files)
    starts = {test.split("::")[0] for named in chosen.values() for test in named}
    starts |= {path for path in tests if path.rpartition("/")[2] == "conftest.py"}
    try:
        imports, bound = reach(sorted(starts), tests, Modules.of(tests, roots))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise BadReferenceError(f"a test file is not Python: {error}") from error
    return Task(
        files=files,
        texts=texts,
        tests=tests,
        chosen=chosen,
        imports=frozenset(imports),
        bound=frozenset(bound),
        gold=change_of(reference, texts, matching),
        roots=roots,
        protected=tuple(protected),
        timeout=positive(reference, "timeout"),
        memory_mb=int(positive(reference, "memory_mb") or 0) or None,
    )


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Return whether a path matches one of the patterns."""
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def _roots(given: Any, files: Mapping[str, bytes]) -> tuple[str, ...]:
    if given is None:
        has_src = any(path.startswith("src/") for path in files) and "src/__init__.py" not in files
        return ("src", "") if has_src else ("",)
    if not isinstance(given, Sequence) or isinstance(given, str) or not all(isinstance(root, str) for root in given):
        raise ReferenceFormError(f'"roots" is {given!r:.60}; it must be a list of folders, "" for the top')
    roots = tuple(root.strip("/") for root in given)
    for root in roots:
        if root and not any(path.startswith(f"{root}/") for path in files):
            raise BadReferenceError(f'"roots" names {root!r}, and no file of the repository is below it')
    return roots
