"""Solutions that a guided tree finds: values are those of the released code, and three trainings read the rows."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.evals.best_of_n.decoding.tree_engine import Letters, TreeEngine, letters_of

from adjudge.cli import main
from adjudge.data_pipelines.steps.collecting import labels_among
from adjudge.data_pipelines.steps.config import StepsConfig
from adjudge.data_pipelines.steps.labeling import label_steps
from adjudge.data_pipelines.steps.rollouts import Rollout
from adjudge.io.jobs.report import JobReport
from adjudge.training.data_files import read_steps

RIGHT = "aab"


@dataclass
class Node:
    """`treeNode` of THUDM/ReST-MCTS at 643d63b, as far as its samples of values need it."""

    parent: Node | None = None
    children: dict[str, Node] = field(default_factory=dict)
    steps_left: int = 1024
    right_below: bool = False
    value: float = 0.0


def released_values(whole: list[Rollout]) -> dict[tuple[str, ...], float]:
    """`get_full_value_samples_vm`: the value of each prefix that it gives one."""
    root, leaves = Node(), []
    for one in whole:
        node = root
        for piece in one.pieces:
            node = node.children.setdefault(piece, Node(parent=node))
        node.steps_left = 1 if one.right else 1024
        leaves.append(node)
    for leaf in leaves:
        if leaf.steps_left == 1:
            leaf.right_below, up = True, leaf.parent
            while up is not None:
                up.steps_left = min(child.steps_left for child in up.children.values()) + 1
                up.right_below, up = True, up.parent
    for leaf in leaves:
        up = leaf
        while up is not None and up.steps_left == 1024:
            up = up.parent
        if up is not None:
            left, down = up.steps_left, leaf
            while down.steps_left == 1024:
                down.steps_left = left
                assert down.parent is not None
                down = down.parent
    values: dict[tuple[str, ...], float] = {}

    def walk(node: Node, prefix: tuple[str, ...]) -> None:
        if node.parent is not None:
            sign = 1 if node.right_below else -1
            node.value = max(0.0, (1 - node.parent.value) * sign / node.steps_left + node.parent.value)
            values[prefix] = node.value
        for piece, child in node.children.items():
            if child.steps_left < 1024:
                walk(child, (*prefix, piece))

    walk(root, ())
    return values


def test_values_are_those_of_the_released_code() -> None:
    chance, seen = random.Random(1), 0
    for _ in range(200):
        ends: dict[tuple[str, ...], bool] = {}
        for _ in range(chance.randint(1, 12)):  # no end lies on the way to another, as in a tree of what has ended
            depth = chance.randint(1, 5)
            ends[(*[chance.choice("ab") for _ in range(depth - 1)], f"end {chance.choice('ab')}")] = False
        for pieces in ends:
            ends[pieces] = chance.random() < 0.4
        whole = [Rollout(pieces=pieces, right=right) for pieces, right in ends.items()]
        values = released_values(whole)
        for one in whole:
            labels = labels_among(one, whole).labels
            expected = [values.get(one.pieces[: at + 1]) for at in range(len(one.pieces))]
            assert list(labels) == pytest.approx(expected) if values else set(labels) == {None}
            seen += bool(values)
    assert seen > 500


def searched(folder: Path, critic: Any = None, **options: Any) -> tuple[JobReport, list[dict[str, Any]]]:
    given, out = folder / "problems.jsonl", folder / "steps.jsonl"
    given.write_text("".join(json.dumps({"prompt": f"problem {at}", "reference": RIGHT}) + "\n" for at in range(3)))
    chosen: dict[str, Any] = {"method": "mcts", "engine": "x:y", "tree_searches": 12, "overwrite": True} | options
    config = StepsConfig(input=str(given), output=str(out), **chosen)
    gold = Letters("gold", lambda text: float(text == RIGHT))
    report = label_steps(config, engine=TreeEngine(3, "ab"), scorer=gold, critic=critic)
    return report, [json.loads(line) for line in out.read_text().splitlines()]


def planted(text: str) -> float:
    return sum(one == two for one, two in zip(text, RIGHT, strict=False)) / 3


def test_a_guide_leads_to_right_solutions_whose_steps_have_values_once(tmp_path: Path) -> None:
    guide = Letters("guide", planted)
    report, rows = searched(tmp_path, guide)
    assert all(sample.reference is None for sample in guide.seen)
    assert {row["prompt"] for row in rows} == {"problem 0", "problem 1", "problem 2"}
    seen: set[tuple[str, str]] = set()
    for row in rows:
        assert row["outcome"] == float(letters_of(row["response"]) == RIGHT)
        assert "\n\n".join(row["steps"]) == row["response"]
        prefixes = [letters_of(row["response"])[: at + 1] for at in range(3)]
        for prefix, label in zip(prefixes, row["labels"], strict=True):
            assert (label is None) == ((row["prompt"], prefix) in seen)
            if label is not None and RIGHT.startswith(prefix):
                assert label == pytest.approx(len(prefix) / 3)
        seen |= {(row["prompt"], prefix) for prefix in prefixes}
    assert report.counts["calls"] == sum(row["calls"] for row in rows)
    assert searched(tmp_path, Letters("guide", planted))[1] == rows


def test_without_a_critic_the_ends_of_a_prefix_say_what_it_is_worth(tmp_path: Path) -> None:
    _, rows = searched(tmp_path, rollouts=4, tree_rule="vm_mcts")
    assert any(row["outcome"] == 1.0 for row in rows)


def test_limits_and_what_is_left_out(tmp_path: Path) -> None:
    report, rows = searched(tmp_path, Letters("guide", planted), min_value=0.7)
    assert rows
    assert {letters_of(row["response"]) for row in rows} == {RIGHT}
    assert report.dropped["small_value"] > 0
    report, rows = searched(tmp_path, Letters("guide", lambda text: 1 - planted(text)), min_value=0.9)
    assert (rows, report.dropped["never_solved"]) == ([], 3)
    report, _ = searched(tmp_path, Letters("guide", planted), max_calls_per_row=9)
    assert report.counts["calls"] <= 27
    report, rows = searched(tmp_path, Letters("guide", lambda text: None))
    assert (rows, report.dropped["nothing_found"]) == ([], 3)


def test_the_rows_become_step_data_pairs_and_rows_for_fine_tuning(tmp_path: Path) -> None:
    searched(tmp_path, Letters("guide", planted))
    steps, pairs, kept = (str(tmp_path / name) for name in ("steps.jsonl", "pairs.jsonl", "kept.jsonl"))
    rule = "{first_bad_step: {labels: values}}"
    assert main.main(["data", "pairs", steps, pairs, "--rule", rule]) == 0
    made = [json.loads(line) for line in Path(pairs).read_text().splitlines()]
    assert made
    for pair in made:
        assert letters_of(pair["chosen"]) == RIGHT
        common = len(letters_of(pair["prefix"]))
        assert letters_of(pair["rejected"])[common] != RIGHT[common]
    assert len(read_steps(steps).examples) == len(Path(steps).read_text().splitlines())
    filtered = ["data", "filter", steps, kept, "--rule", "passed", "--score-column", "outcome", "--pass-score", "1"]
    assert main.main(filtered) == 0
    assert {letters_of(json.loads(line)["response"]) for line in Path(kept).read_text().splitlines()} == {RIGHT}


@pytest.mark.parametrize(
    ("options", "message"),
    [({"splitting": "sentence"}, "--splitting is sentence"), ({"ends": "("}, "not a regular expression")],
)
def test_options_that_do_not_go_together_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        searched(tmp_path, **options)


def test_a_guide_that_needs_the_reference_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="never sees the reference"):
        searched(tmp_path, critic="math")
