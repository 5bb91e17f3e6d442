"""Nuggetizer's four scores and Search-Gen-V's reward against cases worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.judges.items.nuggets import Nugget, NuggetScores, nugget_scores, read_nuggets
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.verdict.support_labels import (
    NOTATIONS,
    Notation,
    label_reward,
    macro_f1,
    read_labels,
    reasoning_credit,
)

S, P, N = "support", "partial_support", "not_support"


@pytest.mark.parametrize(
    ("levels", "labels", "scores"),
    [
        (["vital", "vital", "okay", "okay"], [S, P, P, N], (1 / 2, 3 / 4, 1 / 4, 2 / 4)),
        (["vital", "okay"], [S, S], (1.0, 1.0, 1.0, 1.0)),
        (["vital", "okay"], [N, S], (0.0, 0.0, 0.5, 0.5)),
        (["okay"], [P], (0.0, 0.0, 0.0, 0.5)),
        ([], [], (0.0, 0.0, 0.0, 0.0)),
    ],
    ids=["mixed", "all", "only the okay one", "nothing vital", "nothing"],
)
def test_the_four_scores(levels: Any, labels: Any, scores: tuple[float, ...]) -> None:
    strict_vital, vital, strict_all, every = scores
    expected = NuggetScores(strict_vital=strict_vital, vital=vital, strict_all=strict_all, all=every)
    assert nugget_scores(levels, labels) == expected


@pytest.mark.parametrize(("levels", "labels"), [(["vital"], []), (["vital"], ["yes"])])
def test_labels_must_fit(levels: Any, labels: Any) -> None:
    with pytest.raises(ValueError, match="label"):
        nugget_scores(levels, labels)


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ({"nuggets": []}, "empty list"),
        ({"nuggets": [{"text": "a", "importance": "high"}]}, "vital or okay"),
        ({"nuggets": [{"text": "a", "weight": 1}]}, "the key 'weight'"),
        ({"nuggets": [7]}, "must be a text"),
        ({"rubric": ["a"]}, "list 'nuggets'"),
    ],
)
def test_bad_nuggets_are_refused(reference: Any, complaint: str) -> None:
    with pytest.raises(BadReferenceError, match=complaint):
        read_nuggets(reference)


def test_nuggets_are_vital_unless_they_say_otherwise() -> None:
    listed = ["a", {"text": "b", "importance": "okay"}]
    assert read_nuggets(listed) == (Nugget(text="a"), Nugget(text="b", importance="okay"))


WRITTEN: dict[Notation, str] = {
    "json": f'{{"labels": ["{S}", "{N}"]}}',
    "python_list": f"['{S}', '{N}']",
    "csv": f"{S},{N}",
    "comma_separated": f"{S}, {N}",
    "tsv": f"{S}\t{N}",
    "pipe_separated": f"{S} | {N}",
    "yaml": f"- {S}\n- {N}",
    "markdown": f"* {S}\n* {N}",
    "numbered": f"1. {S}\n2. {N}",
    "xml": f"<labels>\n<label>{S}</label>\n<label>{N}</label>\n</labels>",
}


@pytest.mark.parametrize("notation", NOTATIONS)
def test_every_notation_is_read(notation: Notation) -> None:
    assert read_labels(WRITTEN[notation]) == (S, N)
    assert read_labels(WRITTEN[notation], notation) == (S, N)
    other: Notation = "xml" if notation != "xml" else "json"
    assert read_labels(WRITTEN[notation], other) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[__import__('os').system('touch pwned')]",
        "[x for x in ().__class__.__base__.__subclasses__()]",
        f"['{S}' for _ in range(3)]",
        f"['{S}'] * 3",
        f'["{S}", "maybe"]',
        f'{{"labels": ["{S}"], "labels2": ["{N}"]}}',
        f"The labels are {S}, {N}",
        f"{S}\n{N}",
        f"1. {S}\n3. {N}",
        f"2. {S}",
        f"{S.upper()}",
        "[" * 15_000 + "]" * 15_000,
        f"{S}," * 2_000,
        f'["{S}", 1]',
    ],
    ids=lambda text: text[:24],
)
def test_what_is_no_list_is_not_read(text: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_labels(text) is None
    assert not list(tmp_path.iterdir())


REASONED = "<reasoning>so it is</reasoning>\n"


@pytest.mark.parametrize(
    ("output", "gold", "notation", "reward"),
    [
        (f'{REASONED}["{S}", "{P}", "{N}"]', [S, P, N], "json", 1.0),
        (f'{REASONED}["{S}", "{P}", "{N}"]', [S, P, N], None, 0.9),
        (f'<reasoning></reasoning>["{S}", "{P}", "{N}"]', [S, P, N], "json", 0.9),
        (f'["{S}", "{P}", "{N}"]', [S, P, N], "json", 0.8),
        (f'["{S}", "{P}", "{P}"]', [S, P, N], "json", 0.35 * (1 + 2 / 3) / 3 + 0.1),
        (f'{REASONED}["{S}", "{P}", "{P}"]', [S, P, N], "json", 0.35 * (1 + 2 / 3) / 3 + 0.3),
        (f"{REASONED}{S}, {P}, {N}", [S, P, N], "json", 0.9),
        (f'{REASONED}```json\n["{S}", "{N}"]\n```', [S, N], "json", 0.9),
        (f"{REASONED}```\n- {S}\n- {N}\n```", [S, N], "yaml", 0.9),
        (f"{REASONED}labels:\n- {S}\n- {N}", [S, N], "yaml", 0.9),
        (f"{REASONED}- **{S}**\n- **{N}**", [S, N], "yaml", 1.0),
        (f'{REASONED}```json\n["{S}", "{N}"]\n```\nor\n```json\n["{N}", "{N}"]\n```', [S, N], "json", 0.0),
        (f'{REASONED}```json\n["{S}", "{N}"]\n["{N}", "{N}"]\n```', [S, N], "json", 0.0),
        (f"{REASONED}labels:\n- {S}\nlabels:\n- {N}", [S, N], "yaml", 0.0),
        (f"{REASONED}- {S} or {N}\n- {N}", [S, N], "yaml", 0.0),
        (f"{REASONED}1) {S}\n2) {N}", [S, N], "numbered", 0.0),
        (f'{REASONED}["{S}"]', [S, P], "json", 0.0),
        (f'{REASONED}["{S}", "{S}"]', [S], "json", 0.0),
        (f'{REASONED}{REASONED}["{S}"]', [S], "json", 0.0),
        (f'{REASONED}["{N}", "{P}", "{S}"]', [S, N, P], "json", 0.0),
        (f"{REASONED}[__import__('os').system('true')]", [S], "python_list", 0.0),
    ],
    ids=[
        "perfect",
        "no notation asked",
        "empty reasoning",
        "no reasoning",
        "one wrong",
        "one wrong and reasoned",
        "other notation",
        "fenced",
        "fenced lines",
        "headed",
        "bold",
        "two fences",
        "two lists in a fence",
        "two headers",
        "two labels in a line",
        "brackets behind numbers",
        "too few",
        "too many",
        "two reasonings",
        "none right",
        "code",
    ],
)
def test_search_gen_v_rewards_its_verifier(output: str, gold: Any, notation: Notation | None, reward: float) -> None:
    found = label_reward(output, gold, notation)
    assert found == (reward if reward in (0.8, 0.9, 1.0) else pytest.approx(reward))


def test_the_published_measurements() -> None:
    """reward 0.494 for one of three wrong: 0.35 * F1 + 0.2 reasoning + 0.1 notation."""
    gold: Any = [S, P, N]
    assert label_reward(f"{REASONED}{S}, {P}, {P}", gold, "csv") == pytest.approx(0.494, abs=5e-4)


def test_macro_f1_counts_a_label_that_nobody_uses() -> None:
    assert macro_f1(["support"], ["support"]) == 1.0
    assert macro_f1(["support", "support"], ["support", "not_support"]) == pytest.approx((2 / 3 + 1 + 0) / 3)


@pytest.mark.parametrize(
    ("output", "credit"),
    [("<reasoning>a</reasoning>b", 1.0), ("<reasoning>a</reasoning> ", 0.5), ("</reasoning>a<reasoning>b", 0.0)],
)
def test_reasoning_has_three_degrees(output: str, credit: float) -> None:
    assert reasoning_credit(output) == credit
