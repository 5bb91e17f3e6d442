"""Procedural tasks: the same on every run, right by the scorers, and never in two parts."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import wire
from adjudge.data_pipelines.tasks.config import TasksConfig
from adjudge.data_pipelines.tasks.procedural import FAMILIES, GymFamily, families_of, make_tasks, part_of, seed_of
from adjudge.scoring import api

OWN = tuple(FAMILIES)
GYM = ("gym/chain_sum", "gym/rubiks_cube", "gym/family_relationships", "gym/sudoku")


def package(name: str) -> Any:
    """A module of reasoning-gym, which has no types."""
    return importlib.import_module(f"reasoning_gym.{name}")


def made(tmp_path: Path, name: str = "out.jsonl", **options: Any) -> list[dict[str, Any]]:
    output = tmp_path / name
    make_tasks(TasksConfig(output=str(output), **options))
    return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def test_answers_are_right_by_the_scorer_that_goes_with_them(tmp_path: Path) -> None:
    rows = made(tmp_path, family=OWN, level=(1, 2, 3, 4, 5), count=300)
    assert {row["family"] for row in rows} == set(OWN)
    for scorer in ("math", "exact"):
        mine = [row for row in rows if row["scorer"] == scorer]
        for answer, value in (("{}", 1.0), ("{}1", 0.0)):
            samples = [
                {
                    "prompt": row["prompt"],
                    "response": f"\\boxed{{{answer.format(row['answer'])}}}",
                    "reference": row["reference"],
                }
                for row in mine
            ]
            assert {score.value for score in api.score_batch(samples, scorer)} == {value}


def independent(prompt: str) -> str:
    """The answer worked out from the prompt's text, by other means."""
    if found := re.match(r"Compute (.+) as a whole", prompt):
        terms = re.findall(r"([+-]?) ?(\d+/\d+)", found[1])
        return str(sum(Fraction(term) * (-1 if sign == "-" else 1) for sign, term in terms))
    if found := re.match(r"Compute (.+)\. Give", prompt):
        return str(eval(found[1], {}))  # our own text
    if found := re.match(r"Solve (\d+)x ([+-]) (\d+) = (.+) for x", prompt):
        left, constant = int(found[1]), int(found[3]) * (-1 if found[2] == "-" else 1)
        side = re.match(r"(?:(\d+)x ([+-]) )?(-?\d+)", found[4])
        assert side is not None
        value = int(side[3]) * (-1 if side[2] == "-" else 1)
        return str(Fraction(value - constant, left - int(side[1] or 0)))
    if found := re.match(r"What is the remainder when (\d+)(?:\^(\d+))? is divided by (\d+)", prompt):
        return str(int(found[1]) ** int(found[2] or 1) % int(found[3]))
    if found := re.match(r"Write the decimal number (\d+) in base (\d)", prompt):
        return found[1]
    found = re.match(r"What is the greatest common divisor of ([\d, and]+)\?", prompt)
    assert found is not None
    numbers = [int(one) for one in re.findall(r"\d+", found[1])]
    return str(max(one for one in range(1, min(numbers) + 1) if all(number % one == 0 for number in numbers)))


@pytest.mark.parametrize("family", OWN)
def test_answers_equal_those_worked_out_from_the_text(family: str) -> None:
    for level in range(1, 5):  # the powers of level 5 take long by plain means
        for seed in range(25):
            task = FAMILIES[family].task(level, seed)
            assert task.answer is not None
            base = re.search(r"in base (\d)", task.prompt)
            answer = str(int(task.answer, int(base[1]))) if base else task.answer
            assert answer == independent(task.prompt)


def test_a_row_depends_on_its_number_alone(tmp_path: Path) -> None:
    few = made(tmp_path, "few.jsonl", family=OWN, count=40, in_flight=1)
    many = made(tmp_path, "many.jsonl", family=OWN, count=80, in_flight=16)
    assert [row for row in many if row["index"] < 40] == few
    other = made(tmp_path, "other.jsonl", family=OWN, count=40, seed=1)
    assert not {row["prompt"] for row in few} & {row["prompt"] for row in other if row["index"] > 5}


def test_neighbouring_seeds_share_no_row() -> None:
    """What happens with seeds that are added to the number of the row: row 1 of seed 0 is row 0 of seed 1."""
    family = FAMILIES["integers"]
    seeds = {seed_of(family, 1, seed, index) for seed in range(20) for index in range(20)}
    assert len(seeds) == 400


def test_no_text_comes_twice_and_none_is_in_both_parts(tmp_path: Path) -> None:
    rows = made(tmp_path, family=("divisors", "remainder"), count=3000)
    assert len({row["prompt"] for row in rows}) == len(rows) < 3000
    parts = {
        part: made(tmp_path, f"{part}.jsonl", family=("divisors", "remainder"), count=3000, part=part, seed=seed)
        for seed, part in enumerate(("train", "test"))
    }
    texts = {part: {row["prompt"] for row in found} for part, found in parts.items()}
    assert not texts["train"] & texts["test"]
    assert {row["part"] for row in parts["test"]} == {"test"}
    share = Counter(row["part"] for row in rows)["test"] / len(rows)
    assert 0.07 < share < 0.13  # 0.1 of 3,000 has a standard deviation of 0.0055


def test_repeats_are_kept_where_they_are_wanted(tmp_path: Path) -> None:
    rows = made(tmp_path, family=("divisors",), count=3000, repeats=True)
    assert len(rows) == 3000 > len({row["prompt"] for row in rows})


@given(st.text(), st.floats(0, 0.99))
def test_case_and_spacing_do_not_change_the_part(text: str, share: float) -> None:
    folded = " ".join(text.split())
    assert part_of(text, share) == part_of(f"  {folded}\n", share)
    assert part_of(text, 0.0) == "train"


def test_tasks_of_different_levels_have_different_names(tmp_path: Path) -> None:
    names = {row["id"] for level in (1, 2) for row in made(tmp_path, f"{level}.jsonl", level=(level,), count=20)}
    assert len(names) == 40


def test_levels_grow(tmp_path: Path) -> None:
    rows = made(tmp_path, family=("integers",), level=(1, 5), count=200)
    length = {level: sum(len(row["prompt"]) for row in rows if row["difficulty"] == level) for level in (1, 5)}
    assert length[5] > 1.3 * length[1]


def test_entries_of_reasoning_gym_score_by_their_own_check(tmp_path: Path) -> None:
    rows = made(tmp_path, family=GYM, count=12)
    assert Counter(row["family"] for row in rows) == dict.fromkeys(GYM, 3)
    for row in rows:
        check = package("factory").get_score_answer_fn(row["reference"]["family"])
        entry = wire.decode(row["reference"]["entry"])
        assert row["scorer"] == "reasoning_gym"
        assert entry["question"] == row["prompt"]
        assert check("no such answer", entry) < 1.0
        if row["answer"] is not None:
            assert check(row["answer"], entry) == 1.0


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_tasks_of_reasoning_gym_do_not_depend_on_the_order_of_sets(hash_seed: str, tmp_path: Path) -> None:
    program = (
        "from adjudge.data_pipelines.tasks.procedural import GymFamily, gym_families\n"
        "print(len(gym_families()))\n"
        "for key in ('chain_sum', 'family_relationships', 'caesar_cipher', 'letter_counting', 'course_schedule'):\n"
        "    for seed in range(5): print(GymFamily(key).task(0, seed))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    expected = [str(GymFamily(key).task(0, seed)) for key in
                ("chain_sum", "family_relationships", "caesar_cipher", "letter_counting", "course_schedule")
                for seed in range(5)]  # fmt: skip
    assert done.stdout.splitlines() == ["100", *expected]


def test_levels_of_reasoning_gym_are_steps_of_its_curricula() -> None:
    family = GymFamily("chain_sum")
    assert family.levels > 1
    terms = [family.task(level, 5).reference["entry"]["metadata"]["difficulty"] for level in (1, family.levels)]
    assert terms[0] != terms[1]


def test_a_family_whose_generator_fails_costs_only_that_task(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(self: Any, index: int) -> None:
        raise IndexError("no such task")

    monkeypatch.setattr(package("arithmetic.chain_sum").ChainSumDataset, "__getitem__", broken)
    report = make_tasks(TasksConfig(output=str(tmp_path / "out.jsonl"), family=("gym/chain_sum", "bases"), count=4))
    assert (report.made, report.dropped) == (2, {"generator_error": 2})


def test_an_answer_that_its_own_check_refuses_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        package("arithmetic.chain_sum").ChainSumDataset, "score_answer", lambda self, answer, entry: 0.5
    )
    report = make_tasks(TasksConfig(output=str(tmp_path / "out.jsonl"), family=("gym/chain_sum",), count=3))
    assert (report.made, report.dropped) == (0, {"answer_refused": 3})


def test_an_answer_is_checked_on_the_entry_as_it_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What JSON cannot hold becomes text, and a check that needs the thing itself cannot use that."""
    entry = {"question": "What is 1 + 1?", "answer": "2", "metadata": {"sum": object()}}
    data_set = package("arithmetic.chain_sum").ChainSumDataset
    monkeypatch.setattr(data_set, "__getitem__", lambda self, index: entry)
    monkeypatch.setattr(
        data_set, "score_answer", lambda self, answer, entry: float(not isinstance(entry["metadata"]["sum"], str))
    )
    report = make_tasks(TasksConfig(output=str(tmp_path / "out.jsonl"), family=("gym/chain_sum",), count=1))
    assert (report.made, report.dropped) == (0, {"answer_refused": 1})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": ("integer",)}, "did you mean integers"),
        ({"family": ("gym/chainsum",)}, "did you mean gym/chain_sum"),
        ({"family": ()}, "name one"),
        ({"count": 0}, "--count is 0"),
        ({"level": (0,)}, "counted from 1"),
        ({"level": (6,)}, "it has 5 levels"),
        ({"part": "dev"}, "one of all, train, test"),
        ({"test_share": 1.0}, "--test-share is 1.0"),
        ({"input": "in.jsonl"}, "made from nothing"),
        ({"family": ("gym/word_ladder",)}, "there is no family"),
    ],
)
def test_mistakes_are_named_before_any_work(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        make_tasks(TasksConfig(output=str(tmp_path / "out.jsonl"), **options))
    assert not list(tmp_path.iterdir())


def test_all_of_reasoning_gym_has_one_name() -> None:
    assert len(families_of(("gym/*", "bases", "gym/chain_sum"))) == 101
