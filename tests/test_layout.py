"""The folders, the map from folders to packages, and that no module needs itself to load."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import Any

import pytest

FOLDERS = ("data_pipelines", "evals", "judges", "reward_models", "rl_integration", "verifiers")


@pytest.fixture(scope="module")
def config(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())


def package_files(files: list[Path]) -> dict[str, Path]:
    """Module path inside `adjudge` ("cli/main.py") -> file."""
    found = {}
    for file in files:
        if file.parts[:2] == ("src", "adjudge"):
            found["/".join(file.parts[2:])] = file
        elif file.parts[0] in FOLDERS:
            found["/".join(file.parts)] = file
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_is_real_linked_and_tracked(root: Path, project_files: list[Path], folder: str) -> None:
    link = root / "src" / "adjudge" / folder
    assert (root / folder).is_dir()
    assert not (root / folder).is_symlink()
    assert link.is_symlink()
    assert str(link.readlink()) == f"../../{folder}"
    assert not (root / folder / "__init__.py").exists(), "it would shadow the PyPI package of that name in a checkout"
    assert any(file.parts[0] == folder for file in project_files), "git keeps no empty folder, so the link would dangle"


def test_the_build_lists_name_everything_there_is(project_files: list[Path], config: dict[str, Any]) -> None:
    own = {"/".join(file.parts[:3]) for file in project_files if file.parts[:2] == ("src", "adjudge")}
    targets = config["tool"]["hatch"]["build"]["targets"]
    wheel = set(targets["wheel"]["only-include"])
    assert wheel == {name for name in own if not name.endswith(".md")} | set(FOLDERS)
    assert wheel < set(targets["sdist"]["only-include"])
    assert targets["wheel"]["sources"] == {"src/adjudge": "adjudge"} | {name: f"adjudge/{name}" for name in FOLDERS}


def test_pyright_looks_at_every_python_file_but_tests(project_files: list[Path], config: dict[str, Any]) -> None:
    looked_at = config["tool"]["pyright"]["include"]
    for file in project_files:
        if file.suffix == ".py" and file.parts[0] != "tests":  # mypy, strict there too, looks at those
            assert any(file.match(entry) or file.is_relative_to(entry) for entry in looked_at), file


def imports_of(path: Path) -> list[tuple[str, bool]]:
    """Absolute `adjudge...` names a file imports, each with whether that happens when the module is loaded."""
    found: list[tuple[str, bool]] = []

    def visit(node: ast.AST, at_load: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend((alias.name, at_load) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.extend((f"{node.module}.{alias.name}", at_load) for alias in node.names)
        typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        at_load = at_load and not typing_only and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):  # which expressions hold none of
                visit(child, at_load)

    visit(ast.parse(path.read_text(encoding="utf-8")), True)
    return [(name, at_load) for name, at_load in found if name.split(".")[0] == "adjudge"]


def test_no_module_needs_itself_to_load(root: Path, project_files: list[Path]) -> None:
    modules = {
        "adjudge." + name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): file
        for name, file in package_files(project_files).items()
        if name.endswith(".py") and name != "__init__.py"
    }
    graph = {
        module: {
            target
            for name, at_load in imports_of(root / file)
            if at_load
            for target in (name, name.rpartition(".")[0])
            if target in modules and target != module
        }
        for module, file in modules.items()
    }
    done: set[str] = set()

    def walk(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module not in done:
            for target in sorted(graph[module]):
                walk(target, (*path, module))
            done.add(module)

    for module in graph:
        walk(module, ())


def test_the_walker_sees_imports(tmp_path: Path) -> None:
    """The test above would pass on an empty list; this one shows that the list is not empty."""
    file = tmp_path / "sample.py"
    file.write_text(
        "from __future__ import annotations\nimport adjudge.wire\nfrom adjudge import reasons\n"
        "if TYPE_CHECKING:\n    from adjudge.scoring.api import score\n"
        "def f():\n    from adjudge.cli.main import main\n"
    )
    assert imports_of(file) == [
        ("adjudge.wire", True),
        ("adjudge.reasons", True),
        ("adjudge.scoring.api.score", False),
        ("adjudge.cli.main.main", False),
    ]
