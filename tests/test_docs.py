"""What the documents show works as shown: Python examples run, scorer specs load, options and entry points exist."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from adjudge.cli.data import KINDS
from adjudge.cli.demo import demo_rows
from adjudge.cli.eval import KINDS as EVALS
from adjudge.cli.main import COMMANDS
from adjudge.scoring import registry
from adjudge.wire import dumps

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
TRIED = {"python", "yaml", "toml"}
WALKED = re.compile(r"start_\w+\.md")
"""Pages that `test_start_pages` runs as a whole."""
SHOWN = {"console", "text"}


def fences(page: str) -> list[tuple[str, str, str]]:
    """The fenced blocks of a page: language, place and content."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(match[1], f"{page}:{text.count(chr(10), 0, match.start()) + 1}", match[2]) for match in found]


def blocks(language: str) -> list[tuple[str, str]]:
    pages = [page for page in PAGES if not WALKED.fullmatch(page)]
    return [(place, content) for page in pages for found, place, content in fences(page) if found == language]


def place_of(value: str) -> str:
    return value if ".md:" in value else ""


def links(page: str) -> list[str]:
    """The files that a page links to, as it names them."""
    found = re.findall(r"\]\(([^)#\s]+)[^)]*\)", (DOCS / page).read_text(encoding="utf-8"))
    return [target for target in found if "://" not in target]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_it_is(page: str) -> None:
    assert {language for language, _, _ in fences(page)} <= TRIED | SHOWN
    assert (DOCS / page).read_text(encoding="utf-8").count("\n```") == 2 * len(fences(page))


@pytest.mark.parametrize("page", PAGES)
def test_commands_stand_in_blocks(page: str) -> None:
    text = re.sub(r"^```.*?^```$", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(rf"^(?:\$ .+|adjudge (?:{'|'.join(COMMANDS)}) .+)$", text, re.MULTILINE)


@pytest.fixture(scope="module")
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """The Python examples that were asked for, run one after another in one process: their scripts, and its errors.

    A process for each would spend most of its time on imports.
    """
    scripts = {}
    for item in request.session.items:
        given = getattr(getattr(item, "callspec", None), "params", {})
        if item.path == request.path and "program" in given:
            folder = tmp_path_factory.mktemp("example")
            rows = "".join(f"{dumps(row)}\n" for row in demo_rows())
            (folder / "solutions.jsonl").write_text(rows, encoding="utf-8")
            scripts[given["place"]] = folder / "example.py"
            scripts[given["place"]].write_text(given["program"], encoding="utf-8")
    command = [
        sys.executable,
        "-W",
        "error",
        str(Path(__file__).with_name("run_examples.py")),
        *map(str, scripts.values()),
    ]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=1500, check=False)
    return {place: (script, done.stderr.decode()[-5000:]) for place, script in scripts.items()}


@pytest.mark.parametrize(("place", "program"), blocks("python"), ids=place_of)
def test_python_examples_run(place: str, program: str, ran: dict[str, tuple[Path, str]]) -> None:
    script, errors = ran[place]
    assert script.with_suffix(".error").exists(), f"{place} ended the process\n{errors}"
    error = script.with_suffix(".error").read_text(encoding="utf-8")
    assert not error, f"{place}\n{error}"
    printed = script.with_suffix(".printed").read_text(encoding="utf-8")
    assert printed.strip(), f"{place} prints nothing"
    assert "does not conform" not in printed


@pytest.mark.parametrize(("place", "spec"), blocks("yaml"), ids=place_of)
def test_specs_load(place: str, spec: str) -> None:
    assert registry.load(spec).fingerprint, place


@pytest.mark.parametrize(("place", "text"), blocks("toml"), ids=place_of)
def test_entry_points_are_in_the_group_that_is_read(place: str, text: str) -> None:
    assert registry.GROUP in tomllib.loads(text)["project"]["entry-points"], place


@functools.cache
def options_of_kinds() -> list[type]:
    """The dataclasses whose fields are the flags of `adjudge data` and `adjudge eval`."""
    return [config for kind in (*KINDS.values(), *EVALS.values()) for config in kind.configs()]


@pytest.mark.parametrize("page", PAGES)
def test_every_flag_that_is_named_exists(page: str) -> None:
    """Flags in code spans and blocks; a page that names one of another program writes it in prose."""
    flags = {"--json", "--help", "--version", "--no-deps"}
    for home, _ in COMMANDS.values():
        module, _, name = home.partition(":")
        command = getattr(importlib.import_module(module), name)
        options = [command] if isinstance(command, type) else options_of_kinds()
        flags |= {f"--{field.name.replace('_', '-')}" for each in options for field in dataclasses.fields(each)}
    text = (DOCS / page).read_text(encoding="utf-8")
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) <= flags


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page: str) -> None:
    home = (DOCS / page).parent
    for target in links(page):
        assert (home / target).exists(), f"{page} links to {target}"


def test_every_page_is_in_the_list_of_pages() -> None:
    pages = {target for target in links("README.md") if target.endswith(".md") and not target.startswith("../")}
    assert pages == {*PAGES} - {"README.md"}


def test_the_documents_hold_examples_at_all() -> None:
    assert len(blocks("python")) >= 10
    assert len(blocks("yaml")) >= 8
    assert len(blocks("toml")) >= 1
