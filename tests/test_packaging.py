"""The wheel holds every file of the package, at the right place, and works where it is installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

FOLDERS = ("data_pipelines", "evals", "judges", "reward_models", "rl_integration", "verifiers")


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was made of it."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment that holds the wheel and none of its dependencies."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home)
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, capture_output=True, check=True)
    return python


def expected(files: list[Path]) -> set[str]:
    """What must be in the wheel: the files git knows, under the names they are imported by."""
    inside = set()
    for file in files:
        if file.suffix == ".md":
            continue
        if file.parts[:2] == ("src", "adjudge"):
            inside.add("/".join(file.parts[1:]))
        elif file.parts[0] in FOLDERS:
            inside.add("/".join(("adjudge", *file.parts)))
    return inside


def test_the_wheel_holds_what_git_holds(wheel: Path, project_files: list[Path]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert len(names) == len(set(names))
    assert set(names) == expected(project_files)


def test_the_wheel_carries_licence_types_and_data(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (licence,) = (name for name in names if name.endswith("licenses/LICENSE"))
        assert b"Apache License" in archive.read(licence)
    assert {"adjudge/py.typed", "adjudge/cli/demo_rows.jsonl"} <= names


def test_the_description_leads_to_the_repository(root: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    repository = re.findall(r"^Project-URL: Repository, (.+)$", metadata, re.MULTILINE)[0]
    version = re.findall(r"^Version: (.+)$", metadata, re.MULTILINE)[0]
    links = re.findall(r"\]\(([^)]+)\)", metadata)
    assert f"git clone {repository} " in metadata
    assert len(links) > 25
    for link in links:
        assert link.startswith(f"{repository}/blob/v{version}/"), link
        file = re.split("[#?]", link.removeprefix(f"{repository}/blob/v{version}/"))[0]
        assert (root / file).exists(), link
        assert link.endswith("?raw=true") == file.endswith(".png"), "a page about a picture is not a picture"


def test_extras_that_are_named_exist(root: Path, project_files: list[Path]) -> None:
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = set()
    for file in project_files:
        if file.suffix in (".py", ".md", ".yaml", ".yml", ".toml") or file.name in ("Dockerfile", "Makefile"):
            text = (root / file).read_text(encoding="utf-8")
            lists = re.findall(r"(?:\badjudge\\?|'\.)\[([a-z, -]+)\\?\]", text) if file.name != "CHANGELOG.md" else []
            named |= {name.strip() for each in lists for name in each.split(",")}
            named |= set(re.findall(r"""install_hint\(['"]([\w-]+)['"]\)""", text))
    assert named <= set(extras)
    assert len(named) >= 9
    listed = re.findall(r"^- ((?:`[a-z]+`(?:, )?)+): ", (root / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for row in listed for name in re.findall(r"`(\w+)`", row)} == set(extras) - {"dev", "trl"}


def test_the_sdist_can_be_tested(built: Path, project_files: list[Path]) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        str(file)
        for file in project_files
        if file.parts[0] in ("tests", "examples", "docs", "benchmarks", "experiments")
    }
    assert wanted | {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "Makefile"} <= names


def test_the_installed_package_imports_under_its_own_name(python: Path, tmp_path: Path) -> None:
    script = """
import importlib.util, pathlib, sys
import adjudge, adjudge.protocol, adjudge.cli.main, adjudge.verifiers.text, adjudge.data_pipelines.label.config
home = pathlib.Path(adjudge.__file__).parent
assert home.is_relative_to(sys.prefix), home
for name in ("adjudge.verifiers.text", "adjudge.data_pipelines.label"):
    assert pathlib.Path(sys.modules[name].__file__).is_relative_to(home), name
for name in ("verifiers", "data_pipelines", "judges", "evals", "reward_models", "rl_integration"):
    assert importlib.util.find_spec(name) is None, name + " is a package of somebody else"
print(adjudge.Score.scored(1.0).value)
"""
    done = subprocess.run([python, "-I", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "1.0"), done.stderr


def test_the_installed_command_answers(python: Path, tmp_path: Path) -> None:
    command = python.with_name("adjudge")
    for flag, start in (("--version", "adjudge "), ("--help", "usage: adjudge COMMAND")):
        done = subprocess.run([command, flag], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(start)
