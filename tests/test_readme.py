"""The README does what it says: Python blocks print what is shown, commands work, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.shown_pages import Command, Shell, commands, files, missing, scripts

from adjudge.scoring import registry
from adjudge.scoring.builtin import BUILTIN

README = Path(__file__).parents[1] / "README.md"


def typed() -> list[Command]:
    """The `adjudge` lines of console blocks."""
    return [command for command in commands(README) if command.line.startswith("adjudge ")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files the README shows: blocks that begin with a comment that names a file."""
    folder = tmp_path_factory.mktemp("readme")
    for name, text in files(README).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_there_is_something_to_test() -> None:
    assert len(scripts(README)) >= 2
    assert len(typed()) >= 3


# The other is run by tests/engines/test_smollm2.py, which has the model loaded.
@pytest.mark.parametrize(("script", "output"), [one for one in scripts(README) if "smollm2" not in one[0]])
def test_python_blocks_print_what_is_shown(script: str, output: str | None, place: Path) -> None:
    (place / "block.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "-W", "error", "block.py"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if output is not None:
        assert done.stdout == output


def test_commands_work_in_their_order_and_print_what_is_shown(place: Path) -> None:
    with Shell(place) as shell:
        for command in typed():
            code, printed = shell.run(command)
            assert code in (0, 1), f"{command.line}: {printed}"
            absent = missing(command.shown, printed)
            assert absent is None, f"{command.line} does not print {absent!r}: {printed}"


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_to_files(root: Path, document: str) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", (root / document).read_text(encoding="utf-8")):
        if "://" not in target:
            assert (root / target).exists(), f"{document} links to {target}"


@pytest.mark.parametrize(("document", "count"), [("README.md", 40), ("docs/scorers.md", 100)])
def test_what_the_tables_name_is_a_scorer(root: Path, document: str, count: int) -> None:
    rows = [line for line in (root / document).read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [row.split("|")[2 if document == "README.md" else 1] for row in rows]
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert len(named) > count
    assert named <= set(registry.names())
    assert document == "README.md" or set(BUILTIN) <= named, "each published scorer has its row"
