from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import adjudge as package
from adjudge.cli import exits
from adjudge.cli import main as main_module
from adjudge.cli.main import COMMANDS, main

Adjudge = Callable[..., Any]

FORBIDDEN = ("tyro", "rich", "sympy", "flint", "yaml", "asyncio", "multiprocessing")


def test_version_and_help(adjudge: Adjudge) -> None:
    assert adjudge("--version").out == f"adjudge {package.__version__}\n"
    ran = adjudge("--help")
    assert ran.code == exits.FINE
    for name, (_, line) in COMMANDS.items():
        assert f"{name} " in ran.out
        assert line in ran.out


def test_no_command_prints_the_help_and_is_a_mistake(adjudge: Adjudge) -> None:
    ran = adjudge()
    assert ran.code == exits.USER
    assert ran.out.startswith("usage: adjudge COMMAND")


@pytest.mark.parametrize(
    ("words", "hinted"),
    [
        (("label", "a.jsonl", "b.jsonl", "out.jsonl", "--scorer", "math"), True),
        (("label", "--scorer", "math", "a.jsonl", "b.jsonl", "out.jsonl"), True),
        (("data", "dedup", "a.jsonl", "b.jsonl", "out.jsonl"), True),
        (("label", "a.jsonl", "out.jsonl", "--colour", "red"), False),
        (("data", "dedup", "a.jsonl", "out.jsonl", "--colour"), False),
    ],
)
def test_a_pattern_that_the_shell_spelt_out(adjudge: Adjudge, words: tuple[str, ...], hinted: bool) -> None:
    ran = adjudge(*words)
    assert ran.code == exits.USER
    assert ("quote a pattern" in ran.err) == hinted


def test_unknown_command_names_the_nearest(adjudge: Adjudge) -> None:
    ran = adjudge("labl", "in", "out")
    assert ran.code == exits.USER
    assert "unknown command 'labl'" in ran.err
    assert "did you mean 'label'?" in ran.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(adjudge: Adjudge, command: str) -> None:
    ran = adjudge(command, "--help")
    assert ran.code == exits.FINE
    assert f"usage: adjudge {command}" in ran.out
    assert "--json" in ran.out
    assert "--no-" not in ran.out


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_terminal_of_80_columns(adjudge: Adjudge, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = adjudge(*[command] if command else [], "--help").out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if "None" in line] == []


@pytest.mark.parametrize("name", ["FINE", "FOUND", "USER", "BUG", "INTERRUPTED", "PIPE"])
def test_the_help_lists_every_exit_code(adjudge: Adjudge, name: str) -> None:
    listed = adjudge("--help").out.partition("exit codes:\n")[2]
    assert str(getattr(exits, name)) in [line.split()[0] for line in listed.splitlines()]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_flag_is_a_mistake(adjudge: Adjudge, command: str) -> None:
    words = {"label": ("in", "out"), "check": ("file",), "compare": ("a", "b"), "train": ("rm", "config")}
    positional = words.get(command, ())
    required = ("--response", "x") if command == "score" else ()
    ran = adjudge(command, *positional, *required, "--frobnicate", "3")
    assert ran.code == exits.USER
    assert "frobnicate" in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(flag: str) -> None:
    script = (
        f"import sys\nfrom adjudge.cli.main import main\nassert main([{flag!r}]) == 0\n"
        f"print([name for name in {FORBIDDEN!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


class _Raises:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def run(self) -> int:
        raise self.error


def _command_that(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    monkeypatch.delenv("ADJUDGE_DEBUG", raising=False)
    monkeypatch.setattr(main_module, "_parse", lambda name, args: _Raises(error))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("--limit is 0;\n   it must be 1 or more"), exits.USER),
        (FileNotFoundError(2, "No such file or directory", "rows.jsonl"), exits.USER),
        (OSError("no device"), exits.USER),
        (ZeroDivisionError("division by zero"), exits.BUG),
    ],
)
def test_every_error_is_one_paragraph(
    adjudge: Adjudge, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    _command_that(monkeypatch, error)
    ran = adjudge("demo")
    assert ran.code == code
    assert ran.err.startswith("adjudge: ")
    assert "\n\n" not in ran.err.strip()
    assert "Traceback" not in ran.err
    assert ran.out == ""
    assert ("ADJUDGE_DEBUG=1" in ran.err) == (code == exits.BUG)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError(13, "Permission denied", "out/scores.jsonl.partial"),
         "out/scores.jsonl.partial cannot be used: Permission denied; check the path and its permissions"),
        (OSError(errno.ENOSPC, "No space left on device", "out/report.html"),
         "the disk is full (No space left on device) while writing out/report.html; make room and make the same call "
         "again"),
        (OSError(errno.EFBIG, "File too large"),
         "the disk is full (File too large); make room and make the same call again"),
    ],
)  # fmt: skip
def test_a_path_or_a_disk_that_refuses_is_named_with_the_remedy(
    adjudge: Adjudge, monkeypatch: pytest.MonkeyPatch, error: OSError, told: str
) -> None:
    _command_that(monkeypatch, error)
    assert adjudge("demo").err == f"adjudge: {told}\n"


def test_the_text_of_an_error_cannot_drive_the_terminal(adjudge: Adjudge, monkeypatch: pytest.MonkeyPatch) -> None:
    _command_that(monkeypatch, ValueError("the column '\x1b[2J\u202eevil' is not there"))
    ran = adjudge("demo")
    assert "\x1b" not in ran.err
    assert "\\x1b[2J\\u202eevil" in ran.err


def test_a_broken_scorer_is_named_without_a_traceback(adjudge: Adjudge, monkeypatch: pytest.MonkeyPatch) -> None:
    from adjudge.runtime.contract import BrokenScorer

    _command_that(monkeypatch, BrokenScorer("the scorer 'mine' raised KeyError: 'x'"))
    assert adjudge("demo").code == exits.USER


def test_debug_shows_the_traceback(adjudge: Adjudge, monkeypatch: pytest.MonkeyPatch) -> None:
    _command_that(monkeypatch, ZeroDivisionError("division by zero"))
    monkeypatch.setenv("ADJUDGE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["demo"])


def test_interrupted(adjudge: Adjudge, monkeypatch: pytest.MonkeyPatch) -> None:
    _command_that(monkeypatch, KeyboardInterrupt())
    ran = adjudge("demo")
    assert (ran.code, ran.err) == (exits.INTERRUPTED, "adjudge: stopped\n")


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGPIPE there")
def test_a_reader_that_goes_away_is_no_error() -> None:
    script = "import sys\nfrom adjudge.cli.main import main\nsys.exit(main(['scorers', '--json']))"
    readable, writable = os.pipe()
    os.close(readable)
    with os.fdopen(writable, "wb") as out:
        done = subprocess.run([sys.executable, "-c", script], stdout=out, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (exits.PIPE, b"")


def test_exit_codes_are_those_of_the_shell() -> None:
    assert exits.INTERRUPTED == 128 + signal.SIGINT
    assert exits.PIPE == 128 + signal.SIGPIPE


@pytest.mark.parametrize(
    ("words", "now"),
    [
        (["data", "theorems", "a", "b", "--most", "3"], "--most is --max-statements now"),
        (["data", "nuggets", "a", "b", "--longest-passage", "3"], "--longest-passage is --max-passage-chars now"),
        (["data", "rubrics", "a", "b", "--longest-response=3"], "--longest-response is --max-response-chars now"),
    ],
)
def test_a_flag_by_its_earlier_name_is_told_the_new_one(
    words: list[str], now: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.endswith(f"{now}\n")
