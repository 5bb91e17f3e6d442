"""The tests' side: stand-ins for the repository's modules, and pytest told which tests to run.

This file is sent as source, followed by a call of `_prepare`.  It runs where the tests run, and nothing of the
candidate's is here: what the tests import from the repository are stand-ins for objects of the candidate's process.

Not covered: tests that subclass the repository's classes, or put something else in the place of one of its names.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_CANDIDATE = "adjudge_candidate"  # the module that holds what the candidate offers
_PROBES = ("__", "_pytest", "_mock_name", "pytestmark")
_NOTHING = object()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the stand-ins.

    It is told of modules whether they are packages, the folder of each package, and the names that the tests bind
    themselves.

    Attributes:
        missed: whether something was asked for that the candidate has not.
    """

    def __init__(self, modules: Mapping[str, bool], places: Mapping[str, str], own: Sequence[str]) -> None:
        self.modules = modules
        self._places = places
        self._own = own
        self.missed = False

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.modules:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, is_package=self.modules[fullname])
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(os.path.abspath(self._places[fullname]))
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name, self)

    def exec_module(self, module: types.ModuleType) -> None:
        if _offered(f"{module.__name__}:loaded") is _NOTHING:
            self.miss()
            raise ImportError(f"the repository's module {module.__name__!r} cannot be imported")
        start = f"{module.__name__}."
        names = [key[len(start) :] for key in vars(sys.modules[_CANDIDATE]) if key.startswith(start)]
        taken = {*dir(builtins), *self._own}  # `import *` must not replace what the tests judge with
        module.__dict__["__all__"] = [
            name for name in names if name.isidentifier() and name[0] != "_" and name not in taken
        ]

    def miss(self) -> None:
        """Note that something is missing, so that what follows from it is the candidate's doing."""
        self.missed = True
        _offered("adjudge:touch")


class _StandIn(types.ModuleType):
    def __init__(self, name: str, finder: _Finder) -> None:
        super().__init__(name)
        self.__dict__["__finder__"] = finder

    def __getattr__(self, name: str) -> Any:
        finder: _Finder = self.__dict__["__finder__"]
        offered = _offered(f"{self.__name__}.{name}")
        if isinstance(offered, type) and issubclass(offered, BaseException):
            known = _offered(name)  # the one under whose name it is raised
            return offered if known is _NOTHING else known
        if offered is _NOTHING and f"{self.__name__}.{name}" in finder.modules:
            return importlib.import_module(f"{self.__name__}.{name}")
        if offered is _NOTHING:
            if not name.startswith(_PROBES):  # what imports and pytest ask of any module may be missing
                finder.miss()
            raise AttributeError(f"module {self.__name__!r} of the repository has no {name!r}")
        return offered


def _offered(key: str) -> Any:
    return getattr(sys.modules[_CANDIDATE], key, _NOTHING)


def _prepare(text: str) -> None:
    import pytest

    job = json.loads(text)
    for path, content in job["files"].items():
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(content)
    if loaded := sorted(set(job["modules"]) & set(sys.modules)):
        raise RuntimeError(
            f"the tests would get another module {loaded[0]!r} than the repository's; pytest has loaded it"
        )
    finder = _Finder(job["modules"], job["places"], job["own"])
    sys.meta_path.insert(0, finder)
    sys.dont_write_bytecode = True
    sys.path += [os.path.abspath(folder) for folder in job["folders"]]
    importlib.invalidate_caches()
    plugin: Any = types.ModuleType("adjudge_chosen")
    vanished: list[str] = []

    def note(report: Any) -> None:
        """Note a file that skips all its tests after it missed something, as `pytest.importorskip` has it."""
        if report.skipped and finder.missed:
            vanished.append(report.nodeid)

    plugin.pytest_collectreport = note
    plugin.pytest_collection_modifyitems = pytest.hookimpl(tryfirst=True)(
        _choice(job["ids"], vanished, job["counted"], pytest)
    )
    sys.modules["adjudge_chosen"] = plugin
    os.environ["PYTEST_ADDOPTS"] = job["options"]


def _choice(ids: Sequence[str], vanished: Sequence[str], counted: bool, pytest: Any) -> Callable[..., None]:
    """Return the hook that keeps the tests that are asked for; one that is not there is a test that fails.

    Where all are asked for, and they are counted, those whose marks say so are left out: a response that brings marks
    about has fewer tests than the gold change, and pays for it.
    """

    class Absent(pytest.Item):  # type: ignore[misc]
        def runtest(self) -> None:
            raise AssertionError(f"there is no test {self.name}")

    def choose(session: Any, config: Any, items: list[Any]) -> None:
        if not ids:
            items[:] = [item for item in items if not (counted and _excused(item))]
            items += [Absent.from_parent(session, name=name) for name in vanished]
            return
        by_name: dict[str, list[Any]] = {}
        for item in items:
            name = item.nodeid
            while name:
                by_name.setdefault(name, []).append(item)
                name = _above(name)
        chosen: list[Any] = []
        for name in ids:
            chosen += by_name.get(name) or [Absent.from_parent(session, name=name)]
        items[:] = list(dict.fromkeys(chosen))

    return choose


def _excused(item: Any) -> bool:
    """Return whether a test is marked to be skipped or to fail; conditions that are texts are not looked at."""
    conditions = [
        condition
        for mark in item.iter_markers("skipif")
        for condition in (*mark.args, mark.kwargs.get("condition", False))
        if not isinstance(condition, str)
    ]
    return any(conditions) or any(item.get_closest_marker(name) is not None for name in ("skip", "xfail"))


def _above(name: str) -> str:
    """Return what a test's identifier is part of: the test without its parameters, its class, its file; then ""."""
    if name.endswith("]") and "[" in name:
        return name[: name.index("[")]
    return name.rpartition("::")[0]
