"""Running tests against a candidate that lives in another process.

The tests see the candidate's functions as stand-ins (`peer`) and everything else as their own: what they import, what
their setup defines, the built-ins.  Each test's outcome is reported as it is known, so that a test that never ends
costs only itself.

Reports on the channel: `("asked", seconds)` before the candidate is asked for the first time, so that who listens knows
whether it can have brought about what follows, and now and then later, with the seconds that it takes to ask so often
and so much, which are nobody's; `("collected", count)` once a pytest file is read; `("result", index,
name, passed, blame, text, seconds)` with `blame` "wrong", "raised" (the candidate's code raised), "memory" (it raised
MemoryError), "lost" (the candidate's process is gone) or "tests" (the tests failed before any answer of the candidate
reached them); `("skipped", index)` for a test that is marked so and therefore says nothing; then `("end", count)`.

The file uses the standard library alone, and pytest for pytest files.  Not covered: tests that patch modules the
candidate uses; the two share no modules.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import importlib.machinery
import io
import os
import re
import socket
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from adjudge.sandbox import codec, frames, library_values
from adjudge.sandbox.peer import Peer, PeerLostError
from adjudge.sandbox.raised import INNER, SAID, home_of, places_of
from adjudge.sandbox.remote import ARITHMETIC, ORDER, Remote, is_remote, remote_of
from adjudge.sandbox.served import TESTS, Served

_SHOWN = 1000
_LONG = 20_000  # characters
_BUILT_IN = frozenset(dir(builtins))  # before tests get names of the candidate's there
_FILE = "test_candidate.py"
_HELD = "adjudge:held"  # no name of a candidate's
_UNUSED = (
    "cacheprovider faulthandler junitxml pastebin setuponly setupplan stepwise threadexception unraisableexception"
)
_CLOSE = ("allclose", "isclose")
_CLOSE_ASSERTS = (
    *("assert_allclose", "assert_almost_equal", "assert_approx_equal", "assert_array_almost_equal"),
    *("assert_array_equal", "assert_equal", "assert_array_less"),
)
_STRICT = (*_CLOSE, *_CLOSE_ASSERTS)
_EXPECTED = re.compile(r"(?:[Rr]aises(?:Regex)?\(\s*|\bexcept\s+)(\([^()]*\)|[\w.]+)")
_WORD = re.compile(r"\w+")
_LATER, _SETTLE = "__adjudge_later__", "__adjudge_settle__"  # built in for the tests
_WITHOUT = [word for name in _UNUSED.split() for word in ("-p", f"no:{name}")]  # a seventh of a run
_REFLECTED = (*ARITHMETIC, "divmod")
_BINARY = [f"__{name}__" for name in (*_REFLECTED, *(f"r{name}" for name in _REFLECTED), *ORDER)]
_UNARY = [f"__{name}__" for name in "neg pos abs invert int float index len iter next getitem contains enter".split()]


def run(channel: socket.socket, connection: socket.socket, job: dict[str, Any]) -> int:
    """Run the job's tests and report; return the exit status."""
    session = Session(channel, connection, job)
    try:
        session.prepare()
    except BaseException as error:  # noqa: BLE001 the tests' own setup, before the candidate could answer anything
        session.report(0, "setup", False, error, time.monotonic())
        session.tell("end", 0)
        return 0
    if job["style"] == "pytest":
        session.run_pytest()
    else:
        session.run_units()
    return 0


class Session:
    """One run of tests.

    Args:
        channel: where the reports go.
        connection: the socket to the candidate.
        job: "style", "setup", "tests" (a list of sources), "names" (what the candidate has), "take" (names the tests
            get from it), "own" (names that they define themselves), "imports" (names they get, each with the "module"
            or "module:name" that it is), "entry_point", "idle" (see `remote.Notes`),
            "named" (classes they name), "classes" (those that their text shows to be classes, each with what they use
            on its instances), "start", "module".
    """

    def __init__(self, channel: socket.socket, connection: socket.socket, job: dict[str, Any]) -> None:
        self._channel = channel
        self._job = job
        serves = Served(os.getcwd())
        self._peer = Peer(connection, serves, serves.own, frozenset(job["named"]))
        self._peer.notes.idle = None if job["idle"] is None else frozenset(job["idle"])
        library_values.Kept.remote = staticmethod(lambda handle: remote_of(self._peer, handle, Remote))
        self._peer.crossing = lambda seconds: self.tell("asked", seconds)
        self._classes = {name: frozenset(uses) for name, uses in job["classes"].items() if name not in job["own"]}
        sys.modules[TESTS] = types.ModuleType(TESTS)  # data classes look for the module that they are made in
        self._names = sys.modules[TESTS].__dict__
        self._names["__builtins__"] = builtins
        builtins.__dict__.update({_LATER: self._peer.aliases.later, _SETTLE: self._peer.settle})

    @functools.cached_property
    def _noted(self) -> Callable[..., type[BaseException]]:
        return _noting(self.touch, self._peer)  # when it is needed: it is a tenth of a millisecond's work

    def prepare(self) -> None:
        """Fill the tests' namespace."""
        sources = [self._job["setup"], *self._job["tests"]]
        if "numpy" in sys.modules and any(name in source for name in _STRICT for source in sources):
            _strict(sys.modules["numpy"])  # which the server has imported where the tests do
        for name, place in self._job["imports"].items():
            module, _, attribute = place.partition(":")
            __import__(module)
            self._names[name] = getattr(sys.modules[module], attribute) if attribute else sys.modules[module]
        take = self._job["take"]
        known = [entry for entry in self._job["names"] if entry[0] in take or entry[1] == "exception"]
        stand_ins = {name: self._stand_in(name, kind, value) for name, kind, value in _bases_first(known)}
        stand_ins = {name: stand_ins[name] for name in take}
        data = [name for name, kind, value in known if _is_data(kind, value)]
        setup = self._job["setup"]
        expected = {word for source in sources for place in _EXPECTED.findall(source) for word in _WORD.findall(place)}
        wrong = any(name in expected for name, kind, _ in self._job["names"] if kind != "exception")
        if wrong or any(name in setup for name in data):
            self.touch()
        self._names.update(stand_ins)  # for a setup that makes objects of the candidate's class
        if setup:
            exec(compile(self._settling(setup, "<setup>"), "<setup>", "exec"), self._names)
        self._names.update(stand_ins)
        if data:
            self.touch()

    def _stand_in(self, name: str, kind: str, value: Any) -> Any:
        if kind == "exception":
            words = [word for word in value if type(word) is str]
            names, places = [[word for word in words if (":" in word) is placed] for placed in (False, True)]
            bases = self._peer.exceptions.bases_of(names, places)
            if places[:1] == places_of(bases[0])[:1]:
                return bases[0]  # a library's
            made = self._exception(name.rpartition(INNER)[2], bases, value[-1])
            known = "".join(places[:1]).partition(":")[2] if INNER in name else name
            return self._peer.exceptions.known.setdefault(known, self._peer.is_here(value[-1], made))
        if isinstance(value, codec.Handle):
            value = codec.Handle(value.number, value.kind)  # an exception stays there: nothing shows that it is asked
            return self._peer.stand_in(value, self._job["module"], self._classes.get(name))
        self._peer.share(name, value)
        return value

    def _exception(
        self, name: str, bases: tuple[type[BaseException], ...], handle: codec.Handle
    ) -> type[BaseException]:
        """Return the class of ours for a class of the candidate's exceptions."""

        def asked(error: BaseException, name: str) -> Any:
            home = home_of(error)
            if home is None or name.startswith("_"):
                raise AttributeError(f"{name!r} is no attribute of this {type(error).__name__}")
            return _asked(self._peer, home, name)

        told = property(lambda error: type(error).__doc__)
        own = {"__str__": _said, "__getattr__": asked, "__doc__": told, _HELD: handle}
        try:
            return self._noted(name, bases, own)
        except TypeError:  # bases that do not go together here
            return self._noted(name, bases[:1], own)

    def touch(self, name: str = "", value: Any = None) -> None:
        """Note that the tests have data of the candidate's, such as a global, so that what follows can be its doing."""
        self._peer.received += 1
        if name:
            self._peer.share(name, value)

    def run_units(self) -> None:
        """Run tests that are sources: statements, or a `check` function that is given the candidate."""
        tests = self._job["tests"]
        for index in range(self._job["start"], len(tests)):
            started = time.monotonic()
            error: BaseException | None = None
            try:
                file = f"<test {index}>"
                exec(compile(self._settling(tests[index], file), file, "exec"), self._names)
                if self._job["style"] == "humaneval":
                    self._names["check"](self._entry())
            except BaseException as caught:  # noqa: BLE001 whatever a test raises, it did not pass
                error = caught
            self.report(index, tests[index][:_SHOWN], error is None, error, started)
            if isinstance(error, PeerLostError):
                break
        self.tell("end", len(tests))

    def _entry(self) -> Any:
        """Return what `check` is called with: the candidate's function, or a method of an object of its class."""
        name, _, method = self._job["entry_point"].replace("()", "").partition(".")
        return getattr(self._names[name](), method) if method else self._names[name]

    def _settling(self, source: Any, file: str) -> Any:
        """Return tests that do before each statement what was put off in the last one (`Aliases.take`).

        Long ones that are about no class, which are tables of numbers, stay as they are: a tree takes 2 s per MB.
        """
        if len(source) > _LONG and not self._classes:
            return source
        tree = compile(source, file, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        self._peer.notes.certain.update((file, line) for line in _certain(tree))
        (settle,) = ast.parse(f"if {_LATER}: {_SETTLE}()").body  # a hundredth of a microsecond
        for node in [*ast.walk(tree)]:
            for place in ("body", "orelse", "finalbody"):
                statements = getattr(node, place, None)
                if type(statements) is list:
                    settled = [one for each in statements for one in ([each] if _is_quiet(each) else [settle, each])]
                    setattr(node, place, settled)
        return tree

    def report(self, index: int, name: str, passed: bool, error: BaseException | None, started: float) -> None:
        """Tell the outcome of a test."""
        self._peer.renew()
        blame = text = ""
        if error is not None:
            text = _last_lines(error)
            if any(error is raised for raised in self._peer.raised):
                blame = "memory" if isinstance(error, MemoryError) else "raised"
            elif isinstance(error, PeerLostError):
                blame = "lost"
            else:
                blame = "wrong" if self._peer.received or isinstance(error, AssertionError) else "tests"
        self.tell("result", index, name, passed, blame, text, time.monotonic() - started)

    def tell(self, *message: object) -> None:
        """Send a report."""
        frames.send(self._channel, codec.dumps(message))

    @property
    def untouched(self) -> bool:
        """Whether nothing of the candidate's has reached the tests yet."""
        return not self._peer.received

    def run_pytest(self) -> None:
        """Run a test file with pytest; the candidate's names can be imported, and are there without an import."""
        import pytest

        data = {name: value for name, kind, value in self._job["names"] if _is_data(kind, value)}
        module = _Candidate(self._job["module"], data, self.touch)
        for name, kind, value in _bases_first(self._job["names"]):
            if name not in data:
                vars(module)[name] = self._stand_in(name, kind, value)
        # `import *` must not replace what the tests judge with
        taken = {*dir(builtins), *self._job["own"], *self._job["imports"]}
        names = [name for name, _, _ in self._job["names"] if INNER not in name and not name.startswith("_")]
        module.__all__ = [name for name in names if name not in taken]
        sys.modules[self._job["module"]] = module
        for name, value in self._names.items():
            if name in (*self._job["take"], *self._job["imports"]) or not hasattr(builtins, name):
                setattr(builtins, name, value)
        with open(_FILE, "w", encoding="utf-8") as file:
            file.write("\n".join(self._job["tests"]))
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the host's plugins are not part of the tests
        read = importlib.machinery.SourceFileLoader.source_to_code

        def code_of(loader: Any, data: Any, path: Any, **options: Any) -> Any:
            ours = os.path.basename(path) == _FILE
            return read(loader, self._settling(data, path) if ours else data, path, **options)

        setattr(importlib.machinery.SourceFileLoader, "source_to_code", code_of)  # noqa: B010
        recorder = _Recorder(self, self._job["start"])
        options = ["-q", "-c", "/dev/null", "--rootdir=.", "--import-mode=importlib", "--assert=plain"]
        started = time.monotonic()
        sink = io.StringIO()
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            status = pytest.main([*options, *_WITHOUT, _FILE], plugins=[recorder])
        if recorder.silent and status in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR):
            error = RuntimeError("pytest was ended while it read the tests")  # as by a SystemExit of the candidate's
            self.report(self._job["start"], "collection", False, error, started)
        self.tell("end", recorder.collected)


def _certain(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of which an error depends on nothing that tests are given: a block may take it away.

    They are in blocks and functions, before anything that leaves them: what raises, and what uses built-ins alone.
    """
    nodes = [*ast.walk(tree)]
    own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    for block in (node for node in nodes if isinstance(node, (ast.With, ast.FunctionDef))):
        for part in block.body:
            inner = [*ast.walk(part)]
            names = {node.id for node in inner if isinstance(node, ast.Name)}
            if isinstance(part, ast.Raise) or (isinstance(part, ast.Expr) and names <= _BUILT_IN - own):
                yield from range(part.lineno, (part.end_lineno or part.lineno) + 1)
            if any(isinstance(node, (ast.Return, ast.Break, ast.Continue)) for node in inner):
                break


def _is_quiet(statement: ast.stmt) -> bool:
    """Return whether a statement may be the first of a file or a function, or reads nothing."""
    text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return text or isinstance(statement, (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal))


def _strict(numpy: Any) -> None:
    """Have numpy's comparisons say that what is empty is not close to what is not: by broadcasting, nothing differs."""

    def differ(values: tuple[Any, ...]) -> bool:
        try:
            one, other = (numpy.asarray(value).size for value in values[:2])
        except Exception:  # noqa: BLE001 numpy's own function says what is wrong
            return False
        return bool((one == 0) != (other == 0))

    def strict(compare: Callable[..., Any], asserts: bool, *values: Any, **named: Any) -> Any:
        if asserts and differ(values):
            raise AssertionError("one of the two is empty")
        return (asserts or not differ(values)) and compare(*values, **named)

    for module, asserts, names in ((numpy, False, _CLOSE), (numpy.testing, True, _CLOSE_ASSERTS)):
        for name in names:
            setattr(module, name, functools.partial(strict, getattr(module, name), asserts))


class _Candidate(types.ModuleType):
    """The module that a test file imports; that a candidate has data does not matter until the tests read it.

    Its data are as the program has them now, if its end says where they are.
    """

    __all__: list[str]

    def __init__(self, name: str, data: dict[str, Any], touch: Callable[[str, Any], None]) -> None:
        super().__init__(name)
        self.__dict__[_HELD] = (data, touch)

    def __getattr__(self, name: str) -> Any:
        data, touch = self.__dict__[_HELD]
        if name not in data:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        touch(name, data[name])
        return getattr(self.__dict__[INNER], name) if INNER in self.__dict__ else data[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name[:1] != "_" and INNER in self.__dict__:
            setattr(self.__dict__[INNER], name, value)
        if name not in self.__dict__[_HELD][0]:
            super().__setattr__(name, value)


class _Recorder:
    """A pytest plugin that reports each test as it ends.

    A test that the file marks `skip`, `skipif` or `xfail` counts neither way, as long as nothing of the candidate's
    came before the marks were made; any other test that does not pass fails, whatever it raises.
    """

    def __init__(self, session: Session, start: int) -> None:
        self._session = session
        self._index = self._start = start
        self._done: set[str] = set()
        self._marks_are_ours = False
        self.collected = 0

    @property
    def silent(self) -> bool:
        """Whether it has told nothing."""
        return not self.collected and self._index == self._start

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        self.collected = len(items)
        self._marks_are_ours = self._session.untouched
        self._session.tell("collected", len(items))
        del items[: self._start]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            error = RuntimeError(str(report.longrepr)[-_SHOWN:])
            self._session.report(self._index, "collection", False, error, time.monotonic())
            self._index += 1

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        error = None if call.excinfo is None else call.excinfo.value
        if item.nodeid in self._done or (error is None and call.when != "teardown"):
            return
        self._done.add(item.nodeid)
        if self._excused(item, error):
            self._session.tell("skipped", self._index)
        else:
            started = time.monotonic() - call.duration
            self._session.report(self._index, item.nodeid, error is None, error, started)
        self._index += 1

    def _excused(self, item: Any, error: BaseException | None) -> bool:
        if not self._marks_are_ours:
            return False
        if item.get_closest_marker("xfail") is not None:
            return True
        marked = any(item.get_closest_marker(mark) is not None for mark in ("skip", "skipif"))
        return marked and isinstance(error, sys.modules["pytest"].skip.Exception)


def _noting(touch: Callable[[], None], peer: Peer) -> Callable[..., type[BaseException]]:
    """Return the class of a candidate's exception classes: whatever tests do but expect one is noted.

    Where a function or a number is asked for and the candidate has an exception, what goes wrong is its doing.
    """

    def refuse(*_: Any) -> Any:
        touch()
        return NotImplemented

    def fail(kind: type, *_: Any) -> Any:
        touch()
        raise TypeError(f"{kind.__name__} is an exception")

    def call(kind: type, *values: Any, **named: Any) -> Any:
        touch()
        error = peer.made(vars(kind)[_HELD], values, named)  # which has what the candidate's own `__init__` gives it
        if type(error) is not kind:
            raise error or TypeError(f"{kind.__name__} made no exception")
        peer.raised.pop()  # the tests have it, and nobody has raised it yet
        return error

    def attribute(kind: type, name: str) -> Any:
        if name.startswith("_") and name != "__doc__":  # pytest asks whatever a file imports for private ones
            raise AttributeError(f"{kind.__name__} has no attribute {name!r}")
        touch()
        return _asked(peer, vars(kind)[_HELD], name)

    def instance(kind: type, value: Any) -> bool:
        mine = type.__instancecheck__(kind, value)
        return mine or (is_remote(value) and peer.exchange("instance", vars(kind)[_HELD], (value,), {}) is True)

    operations: dict[str, Any] = {**dict.fromkeys(_BINARY, refuse), **dict.fromkeys(_UNARY, fail), "__call__": call}
    operations |= {
        "__doc__": property(lambda kind: attribute(kind, "__doc__")),
        "__getattr__": attribute,
        "__bool__": lambda _: True,
        "__instancecheck__": instance,
    }
    return type("Noted", (type,), operations)


def _asked(peer: Peer, handle: codec.Handle, name: str) -> Any:
    """Return an attribute of an object of the candidate's; where there is none, that is said here, not there."""
    try:
        return getattr(remote_of(peer, handle, Remote), name)
    except AttributeError as error:
        raise AttributeError(*error.args) from None


def _said(error: BaseException) -> str:
    """Return what an exception of the candidate's says, or said where it was raised."""
    return str(vars(error).get(SAID, BaseException.__str__(error)))


def _bases_first(names: Iterable[tuple[str, str, Any]]) -> list[tuple[str, str, Any]]:
    """Return (name, kind, value) of a candidate's names, exceptions after those above them."""
    return sorted(names, key=lambda entry: len(entry[2]) if entry[1] == "exception" else 0)


def _is_data(kind: str, value: Any) -> bool:
    return kind == "object" and not isinstance(value, codec.Handle)


def _last_lines(error: BaseException) -> str:
    """Return what went wrong and at which line of the tests."""
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(("<test", "<setup")) or frame.filename.endswith(_FILE):
            place = f"line {frame.lineno}: "
    return (place + "".join(traceback.format_exception_only(error)).strip())[:_SHOWN]
