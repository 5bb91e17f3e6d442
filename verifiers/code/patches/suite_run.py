"""Running a repository's tests against a change of it, by the machinery of the `code` verifier's pytest style.

The repository is written and imported in one sandbox; the tests, with every file that is protected, are in another.
What they import from the repository are stand-ins whose calls travel over a typed channel
(`adjudge.sandbox.peer`), so nothing that the change does to its own process reaches pytest: no conftest.py,
plugin, configuration, `sys.exit`, printed word or file.

A module that a change adds is taken for one of the repository's only where nothing else has its name: a new
`unittest` or `numpy` of the candidate's stays in its own process.

Not covered: tests that subclass or replace what they import from the repository, or need it installed.
"""

from __future__ import annotations

import base64
import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from adjudge.sandbox import frames
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.warm_python import WarmPython, flavour_of
from adjudge.verifiers.code.outcome import TestsBrokenError, Verdict
from adjudge.verifiers.code.patches.repository import text_files
from adjudge.verifiers.code.patches.task import Modules, Task, is_taken
from adjudge.verifiers.code.python_candidate import run_tests
from adjudge.verifiers.code.suite import Suite

_MAX_PROGRAM = frames.MOST - (1 << 16)
_OPTIONS = ("-p", "adjudge_chosen", "--continue-on-collection-errors")


def run_list(
    warm: WarmPython,
    task: Task,
    files: Mapping[str, bytes],
    tests: tuple[str, ...],
    limits: RunLimits,
    thorough: bool,
    budget: float,
    counted: bool = False,
) -> Verdict:
    """Run one list of tests.

    Limits are the candidate's; their seconds are those of one test and of importing the repository, and the budget is
    in seconds for all tests.  Where the tests are `counted`, to be compared with those of a gold change, what is marked
    to be skipped, or to fail, is left out, whatever the repository has said before.  `thorough` goes on after a test
    has failed.

    Raises:
        TestsBrokenError: the tests failed before anything of the candidate's reached them, or all that is too large.
        SandboxUnavailableError: there is no sandbox.
        ZygoteLostError: the sandbox was lost.
    """
    folders = sorted({_base(test.split("::")[0], task.tests) for test in tests})
    modules = _modules(task, files, folders)
    program = _program(task, files, modules)
    suite = Suite(
        style="pytest",
        sources=("# the tests are in files of their own\n",),
        setup=_setup(task, tests, modules, folders, counted),
        module="adjudge_candidate",
        named=tuple(sorted({name.rpartition(".")[2] for name in task.imports} & task.classes)),
    )
    if max(len(program.encode()), len(suite.setup.encode())) > _MAX_PROGRAM:
        raise TestsBrokenError(f"the repository or its tests, as a program, take more than {_MAX_PROGRAM} bytes")
    return run_tests(warm, program, suite, limits, limits.seconds, thorough, budget)


def _modules(task: Task, files: Mapping[str, bytes], folders: Sequence[str]) -> Modules:
    """Return the modules that are stand-ins where the tests run."""
    made = Modules.of((path for path in files if not task.guarded(path)), task.roots)
    # what the tests' own folders have is theirs, whatever the repository has under the same name
    theirs = Modules.of(task.tests, [*task.roots, *(folder for folder in folders if folder != ".")]).paths
    known = task.modules.tops
    wanted = {name.partition(".")[0] for name in task.imports}
    if taken := sorted(known & wanted & sys.stdlib_module_names):
        raise TestsBrokenError(
            f"the repository's module {taken[0]!r} has the name of a standard one, which tests would get"
        )
    refused = {top for top in made.tops - known if top not in wanted or is_taken(top)}
    refused |= made.tops & (sys.stdlib_module_names | set(theirs))
    return made.without(refused, theirs)


def _program(task: Task, files: Mapping[str, bytes], modules: Modules) -> str:
    """Return the candidate: a program that makes the repository and imports what the tests want of it."""
    texts = text_files(files)
    job = {
        "files": texts,
        "packed": {path: base64.b64encode(data).decode() for path, data in files.items() if path not in texts},
        "roots": task.roots,
        "wanted": sorted(task.imports & set(modules.packages)),
        "modules": sorted(modules.packages),
    }
    sources = (text for path, text in texts.items() if path.endswith(".py"))
    return _with_job("repository_guest.py", sources, "_offer", job)


def _with_job(guest: str, sources: Iterable[str], call: str, job: Mapping[str, Any]) -> str:
    """Return one of the guest files with a call at its end, and hints at what other sources import."""
    return f"{_guest(guest)}\n{_hints(sources)}\n{call}({json.dumps(job, ensure_ascii=False)!r})\n"


def _setup(task: Task, tests: tuple[str, ...], modules: Modules, folders: Sequence[str], counted: bool) -> str:
    """Return what the tests' process does first."""
    paths = dict.fromkeys(test.split("::")[0] for test in tests)
    job = {
        "files": task.tests,
        "modules": modules.packages,
        "places": modules.places,
        "own": sorted(task.bound),
        "folders": folders,
        "counted": counted,
        "ids": [] if all("::" not in test for test in tests) else list(tests),
        "options": shlex.join([*_OPTIONS, *paths]),
    }
    return _with_job("stand_ins_guest.py", task.tests.values(), "_prepare", job)


def _base(path: str, files: Mapping[str, str]) -> str:
    """Return the first folder above a test that is not a package, which pytest puts on the path."""
    folder = PurePosixPath(path).parent
    while str(folder) != "." and f"{folder}/__init__.py" in files:
        folder = folder.parent
    return str(folder)


def _hints(sources: Iterable[str]) -> str:
    """Return lines that are never run and tell `flavour_of` which packages a program's other files import."""
    foreign, loaded = flavour_of(*sources)
    if not foreign:
        return ""
    return "if False:\n" + "".join(f"    import {name}\n" for name in ("installed_packages", *loaded))


@cache
def _guest(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
