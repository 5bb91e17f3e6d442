"""House rules that no linter knows; the limits are those of CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from pathlib import Path

import pytest

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 80

# Folders of particular machines, and hosts of package registries; neither belongs into a project.
MACHINE_PATH = re.compile(r"(?<![\w.~<>)}\]-])/(?:work|root|farm|home|Users)/[\w.]")
REGISTRY_HOST = re.compile(r"pypi\.(?:org|python)|pythonhosted|registry\.npmjs|index-url")


def python_files(files: list[Path]) -> list[Path]:
    return [file for file in files if file.suffix == ".py"]


def long_functions(source: str) -> list[str]:
    """Names of the functions longer than the limit, decorators and docstring included."""
    return [
        f"{node.name} ({length} lines)"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - min([node.lineno, *(d.lineno for d in node.decorator_list)]) + 1)
        > MAX_FUNCTION_LINES
    ]


def test_files_are_short(root: Path, project_files: list[Path]) -> None:
    lengths = {
        file: len((root / file).read_text(encoding="utf-8").splitlines()) for file in python_files(project_files)
    }
    assert {file: length for file, length in lengths.items() if length > MAX_FILE_LINES} == {}


def test_functions_are_short(root: Path, project_files: list[Path]) -> None:
    sources = {file: (root / file).read_text(encoding="utf-8") for file in python_files(project_files)}
    found = {file: long_functions(text) for file, text in sources.items() if text.count("\n") > MAX_FUNCTION_LINES}
    assert {file: names for file, names in found.items() if names} == {}


def test_modules_have_names_of_their_own(project_files: list[Path]) -> None:
    for file in python_files(project_files):
        assert file.stem not in ("utils", "util", "helpers", "misc", "common"), f"{file}: name it after what it holds"
        assert file.stem not in sys.stdlib_module_names - {"__main__"}, f"{file} hides a standard module when it is run"


def test_modules_say_what_they_are_for(root: Path, project_files: list[Path]) -> None:
    for file in python_files(project_files):
        if file.parts[0] not in ("tests", "examples"):
            with (root / file).open("rb") as source:
                between = (tokenize.ENCODING, tokenize.COMMENT, tokenize.NL)
                first = next(token for token in tokenize.tokenize(source.readline) if token.type not in between)
            assert first.type == tokenize.STRING, f"{file} has no docstring"
            assert ast.literal_eval(first.string).strip(), f"{file} has no docstring"


def test_nothing_names_a_machine(root: Path, project_files: list[Path]) -> None:
    for file in project_files:
        if file.parts[:2] == ("tests", "attacks") or file.name == "LICENSE":
            continue
        text = (root / file).read_text(encoding="utf-8", errors="replace")
        if file != Path("tests/test_style.py"):
            assert not MACHINE_PATH.search(text), f"{file}: {MACHINE_PATH.search(text)}"
            assert not REGISTRY_HOST.search(text), f"{file}: {REGISTRY_HOST.search(text)}"


@pytest.mark.parametrize("text", ["see /work/x", "open('/root/.config')", "cd /home/me/adjudge"])
def test_a_machine_path_is_seen(text: str) -> None:
    assert MACHINE_PATH.search(text)


@pytest.mark.parametrize("text", ["framework/adapters", "https://host.example/home/page", "../work/x", "a /workbench/"])
def test_other_slashes_are_not_machine_paths(text: str) -> None:
    assert not MACHINE_PATH.search(text)


def test_a_long_function_is_seen() -> None:
    assert long_functions("@x\ndef f():\n" + "    pass\n" * 79) == ["f (81 lines)"]
    assert long_functions("def f():\n" + "    pass\n" * 79) == []
