"""Every recipe can be read, says where its numbers are from, names a test that exists, and is on docs/recipes.md."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from tests.cli.recipes_page import PAGE, page
from tests.test_known_bugs import names_in

from adjudge.cli.main import main
from adjudge.cli.recipes import NOT_HERE, ORIGINS, RECIPES, ROWS, not_here, numbers, recipes, run_file
from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.training.config_file import config_of

RUNS = [name for name, recipe in recipes().items() if "run" in recipe]
FILES = [path.stem for path in sorted(RECIPES.glob("*.yaml")) if path != NOT_HERE]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_file_is_read_and_a_number_has_one_origin(name: str) -> None:
    config_of(RunFile, run_file(name), "run.yaml")
    recipe = recipes()[name]
    origins = recipe.get("numbers", {})
    told = [path for paths in origins.values() for path in paths]
    assert set(origins) <= set(ORIGINS)
    assert set(told) <= {path for path, _ in numbers(recipe["run"])}
    assert len(told) == len(set(told))
    rows = (ROWS / f"{recipe['rows']}.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(rows) >= 3
    assert all(json.loads(row)["prompt"] for row in rows)


@pytest.mark.parametrize("name", FILES)
def test_a_recipe_names_a_test_that_exists(name: str) -> None:
    file, _, test = recipes()[name]["test"].partition("::")
    assert names_in(file), f"there is no {file}"
    assert not test or test in names_in(file), f"{file} has no {test}"


def test_length_costs_nothing_in_concisers_run_where_not_all_are_right() -> None:
    choice = config_of(RunFile, run_file("conciser"), "run.yaml").objective
    assert choice.made(max_new_tokens=4096).overlong is None


def test_every_set_of_rows_is_used() -> None:
    used = {f"{recipe.get('rows')}.jsonl" for recipe in recipes().values()} | {"passages.jsonl"}
    assert {path.name for path in ROWS.iterdir()} == used - {"None.jsonl"}


def test_the_page_is_made_of_the_recipes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m tests.cli.recipes_page"


def test_a_word_finds_and_a_name_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "2505.15107", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["recipes"]
    assert [one["name"] for one in found] == ["stepsearch"]
    folder = tmp_path / "new"
    assert main(["recipes", "stepsearch", "--write", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == {"run.yaml", "data.jsonl", "passages.jsonl"}
    assert yaml.safe_load((folder / "run.yaml").read_text(encoding="utf-8")) == run_file("stepsearch")
    capsys.readouterr()
    assert main(["recipes", "stepsearch", "--write", str(folder)]) == 2
    assert "not empty" in capsys.readouterr().err
    assert main(["recipes", "stepserch", "--write", str(folder)]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert main(["recipes", "heron", "--write", str(tmp_path / "more")]) == 2
    assert "has no run file" in capsys.readouterr().err
    assert main(["recipes", "kimi_k15_length", "--write", str(tmp_path / "k")]) == 2
    assert "no run file (kimi_k15 has one with it)" in capsys.readouterr().err


def test_a_paper_that_cannot_be_run_is_found_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert not set(not_here()) & set(recipes())
    assert all(set(one) == {"title", "source", "why"} and all(one.values()) for one in not_here().values())
    assert main(["recipes", "amft", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["recipes"], [one["title"] for one in found["not_here"]]) == ([], ["AMFT"])
    assert main(["recipes", "amft"]) == 0
    assert "why" in capsys.readouterr().out


@functools.cache
def help_of(*kinds: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as told, contextlib.suppress(SystemExit):
        main([*kinds, "--help"])
    return told.getvalue()


@pytest.mark.parametrize("name", [name for name in FILES if "steps" in recipes()[name]])
def test_the_flags_and_files_of_commands_exist(name: str) -> None:
    for command in recipes()[name]["steps"]:
        words = shlex.split(command, comments=True)
        if words[0] == "python":
            assert (Path(__file__).parents[2] / words[1]).exists(), command
            continue
        assert words[0] == "adjudge", command
        kinds = words[1:3] if words[1] in ("data", "eval", "train") else words[1:2]
        told = help_of(*kinds)
        files = [word for word in words if word.startswith("examples/")]
        assert all((Path(__file__).parents[2] / file).exists() for file in files), command
        if kinds[0] == "train":
            keys = [word.partition("=")[0] for flag, word in pairwise(words) if flag == "--set"]
            keys = [key.rpartition(".")[2] for key in keys]
        else:
            keys = [word for word in words if word.startswith("--")]
        assert all(key in told for key in keys), (command, told)
