"""Completion: what may stand at the cursor, and bash itself with the lines loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adjudge.cli import exits
from adjudge.cli.completion import SCRIPTS, completions
from adjudge.cli.data import KINDS
from adjudge.cli.main import COMMANDS
from adjudge.scoring import registry

Adjudge = Callable[..., Any]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["sc"], ["score", "scorers"]),
        (["scorers", "mat"], ["math"]),
        (["serve", "math", "ex"], ["exact"]),
        (["data", ""], list(KINDS)),
        (["data", "pairs", "--max-row"], ["--max-row-mb"]),
        (["eval", "pro"], ["process_bench", "probes"]),
        (["eval", "pairs", "--scorer", "mat"], ["math"]),
        (["label", "in", "out", "--scorer", "mat"], ["math"]),
        (["label", "in", "out", "--engine", ""], ["local", "ray"]),
        (["label", "in", "out", "--engine=r"], ["--engine=ray"]),
        (["label", "in", "out", "--engine", "=", "r"], ["ray"]),  # as bash cuts it
        (["label", "in", "out", "--engine", "="], ["local", "ray"]),
        (["label", "in", "out", "--json"], ["--json"]),
        (["label", "i"], []),  # a file: the shell's
        (["train", ""], ["rm", "prm", "critique", "policy"]),
        (["train", "rm", "--help=learning_r"], ["--help=learning_rate"]),
        (["train", "rm", "f.yaml", "--set", "schedule.learn"], ["schedule.learning_rate="]),
        (["--print-completion", "z"], ["zsh"]),
        (["nothing", ""], []),
        (["--line", "adjudge label in out --engine "], ["local", "ray"]),  # as tcsh has it
        (["--line", "adjudge label in out --engine l"], ["local"]),
    ],
    ids=str,
)
def test_what_may_stand_at_the_cursor(words: list[str], found: list[str]) -> None:
    assert completions(words) == found


def test_everything_is_offered() -> None:
    assert set(completions([""])) > set(COMMANDS)
    assert completions(["scorers", ""]) == registry.names()


def test_words_come_one_to_a_line(adjudge: Adjudge) -> None:
    ran = adjudge("--complete", "sc")
    assert (ran.code, ran.out) == (exits.FINE, "score\nscorers\n")
    assert adjudge("--complete", "label", "i").out == ""


@pytest.mark.parametrize("shell", SCRIPTS)
def test_each_shell_has_its_lines(adjudge: Adjudge, shell: str) -> None:
    ran = adjudge("--print-completion", shell)
    assert ran.code == exits.FINE
    assert "adjudge" in ran.out
    assert "--complete" in ran.out


def test_an_unknown_shell(adjudge: Adjudge) -> None:
    ran = adjudge("--print-completion", "cmd")
    assert ran.code == exits.USER
    assert ran.err == "adjudge: there is no completion for 'cmd'; give bash, zsh, fish, tcsh\n"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("adjudge sc", "score scorers"),
        ("adjudge label in out --scorer preference", "preference_model"),
        ("adjudge train rm --help = schedule.learn", "schedule.learning_rate"),
    ],
)
def test_bash_completes(words: str, found: str) -> None:
    count = len(words.split()) - 1
    program = (
        "source <(adjudge --print-completion bash)\n"
        f'COMP_WORDS=({words}); COMP_CWORD={count}; _adjudge adjudge; echo "${{COMPREPLY[@]}}"; complete -p adjudge\n'
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )
    assert done.stdout == f"{found}\ncomplete -o default -F _adjudge adjudge\n", done.stderr
