"""Tests that are source, run in the candidate's own process, as the checkers of BigCodeBench and CanItEdit do.

Such tests may patch what the candidate uses, read the files that it writes, and compare its objects with their own.
The price: a program that shares a process with its tests can make them pass.  This is for programs that you trust to
try in earnest, and never for training; `python_candidate` is for all others.

Not covered: a limit for each test; there is one for all of them.
"""

from __future__ import annotations

import json
from typing import Final

from adjudge.verifiers.code.outcome import Outcome, TestsBrokenError, Verdict, shorten
from adjudge.verifiers.code.program_run import ENDINGS
from adjudge.verifiers.code.suite import Suite
from adjudge.verifiers.execution.program import RunLimits
from adjudge.verifiers.execution.warm_python import WarmPython, flavour_of

_PROGRAM: Final = """
import json, os, sys, types

def main(given):
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ.setdefault("MPLBACKEND", "agg")
    os.environ["MPLCONFIGDIR"] = os.getcwd()
    sys.path.insert(0, os.getcwd())
    for name, text in given["files"].items():
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    import pytest
    found = []

    class Recorder:
        def pytest_runtest_logreport(self, report):
            if report.failed or (report.when == "call" and report.passed):
                found.append((report.nodeid, report.outcome, str(report.longrepr or "")[-600:]))

        def pytest_collectreport(self, report):
            if report.failed:
                found.append(("collection", "failed", str(report.longrepr)[-600:]))

    options = ["-q", "-c", os.devnull, "--rootdir=.", "-p", "no:cacheprovider"]
    status = pytest.main([*options, given["tests"]], plugins=[Recorder()])
    sys.__stdout__.write("\\n" + json.dumps([int(status), found]))

"""
_TESTS: Final = "test_candidate.py"
_WHOLE: Final = (0, 1)  # pytest's exit status when it has come to its end
_NO_TEST: Final = (0, 5)


def run_shared(warm: WarmPython, source: str, suite: Suite, limits: RunLimits) -> Verdict:
    """Run the tests with pytest in one process with the candidate.

    Args:
        warm: the sandboxes.
        source: the program.
        suite: tests of the style "pytest".
        limits: what all tests together may use.

    Raises:
        TestsBrokenError: pytest found no test that is not skipped.
    """
    given = {"files": {f"{suite.module}.py": source, _TESTS: _joined(suite)}, "tests": _TESTS}
    program = f"{_PROGRAM}main(json.loads({json.dumps(json.dumps(given))}))\n"
    flavour = flavour_of(source, *suite.sources, "import pytest")
    done, _ = warm.script(program, b"", limits, flavour)
    verdict = Verdict(total=suite.count, memory_mb=done.memory_mb)
    printed = done.stdout.decode("utf-8", "replace").rpartition("\n")[2]
    try:
        status, found = json.loads(printed)
    except (ValueError, TypeError):  # the program ended the run, or printed after it
        status, found = None, []
    if done.ending != "exited" or done.code or status is None:
        verdict.reason = ENDINGS.get(done.ending, "candidate_error")
        verdict.detail = done.stderr.decode("utf-8", "replace") or f"the run of the tests {done.ending} before its end"
        return verdict
    if not found and status in _NO_TEST:
        raise TestsBrokenError("pytest found no test in the file that is not skipped")
    if status not in _WHOLE:
        found.append(("the run", "failed", "pytest was ended before all tests were run"))
    failed = {name: text for name, outcome, text in found if outcome == "failed"}
    for name in dict.fromkeys(name for name, _, _ in found):
        detail = {"source": shorten(name), "error": shorten(failed[name], 600)} if name in failed else {}
        reason = "wrong" if name in failed else ""
        verdict.outcomes.append(Outcome(passed=name not in failed, reason=reason, detail=detail))
    verdict.total = len(verdict.outcomes)
    return verdict


def _joined(suite: Suite) -> str:
    """Return the test file: it sees all that the candidate has, modules too."""
    names = f"import {suite.module}; globals().update((k, v) for k, v in vars({suite.module}).items() if k[:2] != '__')"
    return "\n".join([names, suite.setup, *suite.sources])
