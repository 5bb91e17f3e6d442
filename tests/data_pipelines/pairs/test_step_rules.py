"""Rules for steps, trees and games, each against cases made by hand."""

from __future__ import annotations

import pytest
from tests.data_pipelines.pairs.made_groups import made, rows, sides

from adjudge.data_pipelines.pairs.rules_by_step import FirstBadStep, SiblingError, StepApo
from adjudge.data_pipelines.pairs.rules_by_verdict import BothOrders


def _solution(score: float, *steps: tuple[str, float | bool | None]) -> dict[str, object]:
    texts = [text for text, _ in steps]
    return {"text": "\n\n".join(texts), "score": score, "steps": texts, "labels": [label for _, label in steps]}


def test_the_first_bad_step_loses_to_a_way_on_from_the_same_prefix() -> None:
    group = rows(
        _solution(0.0, ("one", 0.75), ("two: wrong", 0.0), ("three", 0.0)),
        _solution(1.0, ("one", 0.75), ("two: right", 1.0), ("three", 1.0)),
        _solution(1.0, ("another one", 1.0), ("two: right", 1.0)),  # another prefix
    )
    (pair,) = made(FirstBadStep(), group)
    assert pair.more == {"prefix": "one\n\n", "step": 1}
    assert pair.texts == ("one\n\ntwo: right\n\nthree", "one\n\ntwo: wrong\n\nthree")
    assert pair.margin == 1.0  # (1 - 0.75) - (0 - 0.75): the advantages' difference
    (short,) = made(FirstBadStep(rest=False), group)
    assert short.texts == ("one\n\ntwo: right", "one\n\ntwo: wrong")


def test_a_bad_first_step_loses_to_every_right_solution() -> None:
    group = rows(
        _solution(0.0, ("bad", False)), _solution(1.0, ("good", True), ("more", True)), _solution(1.0, ("fine", None))
    )
    pairs = made(FirstBadStep(), group)
    assert sides(pairs) == ["fine>bad", "good\n\nmore>bad"]
    assert {pair.margin for pair in pairs} == {1.0}  # without a label, the one rollout that ended right says 1
    assert {pair.more["prefix"] for pair in pairs} == {""}


def test_an_unknown_step_before_the_bad_one_makes_no_pair() -> None:
    good = _solution(1.0, ("one", None), ("right", 1.0))
    assert made(FirstBadStep(), rows(_solution(0.0, ("one", None), ("bad", 0.0)), good)) == []


def test_solutions_that_part_in_white_space_alone_share_their_prefix() -> None:
    bad = _solution(0.0, ("one  step", 1.0), ("bad", 0.0))
    good = _solution(1.0, ("one step", 1.0), ("good", 1.0))
    (pair,) = made(FirstBadStep(), rows(bad, good))
    assert pair.texts == ("one  step\n\ngood", "one  step\n\nbad")  # both begin with the very same characters


def test_the_same_step_that_ends_right_elsewhere_is_no_pair() -> None:
    bad = _solution(0.0, ("one", 1.0), ("two", 0.0), ("wrong end", 0.0))
    good = _solution(1.0, ("one", 1.0), ("two", 1.0), ("right end", 1.0))
    assert made(FirstBadStep(), rows(bad, good)) == []


def test_steps_may_be_the_spans_that_a_process_reward_model_judged() -> None:
    def judged(text: str, score: float, *spans: tuple[int, int, float]) -> dict[str, object]:
        return {"text": text, "score": score, "steps": [{"start": a, "end": b, "value": v} for a, b, v in spans]}

    bad = judged("1+1=2. 2+2=5.", 0.0, (0, 6, 0.9), (7, 13, 0.1))
    good = judged("1+1=2. 2+2=4.", 1.0, (0, 6, 0.9), (7, 13, 0.8))
    (pair,) = made(FirstBadStep(bad=0.5), rows(bad, good))
    assert pair.more == {"prefix": "1+1=2. ", "step": 1}
    assert pair.margin == pytest.approx(0.7)


def test_solutions_of_very_many_steps_take_no_longer_than_their_text() -> None:
    steps = [(f"step {number}", 1.0) for number in range(20_000)]  # all prefixes as texts would be gigabytes
    group = rows(_solution(0.0, *steps, ("bad", 0.0)), _solution(1.0, *steps, ("good", 1.0)))
    (pair,) = made(FirstBadStep(), group)
    assert pair.more["step"] == 20_000
    assert pair.texts[0].endswith("\n\ngood")


@pytest.mark.parametrize(
    "broken",
    [
        {"text": "x", "score": 0.0},
        {"text": "x", "score": 0.0, "steps": [], "labels": []},
        {"text": "x", "score": 0.0, "steps": ["x"], "labels": [0, 1]},
        {"text": "x", "score": 0.0, "steps": ["y"], "labels": [0]},
        {"text": "x", "score": 0.0, "steps": ["x", 3], "labels": [0, 0]},
        {"text": "x", "score": 0.0, "steps": [{"start": 0, "end": 9, "value": 0}]},
        {"text": "x", "score": 0.0, "steps": "x", "labels": "0"},
    ],
)
def test_what_holds_no_steps_is_in_no_pair(broken: dict[str, object]) -> None:
    assert made(FirstBadStep(), rows(broken, _solution(1.0, ("good", 1.0)))) == []


PROOF = (
    {"text": "intro x", "node": "1", "parent": "", "on_path": True, "error": None, "goal": "∀ x"},
    {"text": "simp", "node": "2", "parent": "", "on_path": False, "error": "simp made no progress", "goal": "∀ x"},
    {"text": "induction x", "node": "3", "parent": "1", "on_path": True, "error": "", "goal": "P x"},
    {"text": "ring", "node": "4", "parent": "1", "on_path": False, "error": "ring failed", "goal": "P x"},
    {"text": "norm_num", "node": "5", "parent": "1", "on_path": False, "error": None, "goal": "P x"},
    {"text": "omega", "node": "6", "parent": "5", "on_path": False, "error": "omega failed", "goal": "Q"},
)


def test_a_step_of_the_proof_wins_over_siblings_with_an_error() -> None:
    pairs = made(SiblingError(), rows(*PROOF))
    assert sides(pairs) == ["intro x\ninduction x>intro x\nring", "intro x>simp"]
    assert sorted((pair.more["step"], pair.more["prefix"]) for pair in pairs) == [(0, ""), (1, "intro x\n")]
    assert {pair.margin for pair in pairs} == {None}


def test_with_a_state_the_state_is_the_prompt() -> None:
    pairs = made(SiblingError(state="goal"), rows(*PROOF))
    assert sorted((pair.prompt, *pair.texts) for pair in pairs) == [
        ("P x", "induction x", "ring"),
        ("∀ x", "intro x", "simp"),
    ]


def test_a_tree_that_is_none_makes_no_pair_and_ends() -> None:
    loop = (
        {"text": "a", "node": "1", "parent": "2", "on_path": True, "error": ""},
        {"text": "b", "node": "2", "parent": "1", "on_path": True, "error": ""},
        {"text": "c", "node": "3", "parent": "1", "on_path": False, "error": "no"},
    )
    assert made(SiblingError(), rows(*loop)) == []
    twice = ({"text": "a", "node": 1, "on_path": True}, {"text": "b", "node": 1, "error": "no"})
    assert made(SiblingError(), rows(*twice)) == []


TREE = (
    {"text": "A", "node": "a", "parent": None, "score": 0.5},
    {"text": "A1", "node": "a1", "parent": "a", "score": 0.9},
    {"text": "A2", "node": "a2", "parent": "a", "score": 0.2},
    {"text": "A3", "node": "a3", "parent": "a", "score": 0.4},
    {"text": "B", "node": "b", "parent": None, "score": 0.1},
)


def test_a_step_of_the_proof_is_rejected_for_no_other() -> None:
    group = rows(
        {"text": "warns", "node": "1", "parent": "", "on_path": True, "error": "linter: unused variable"},
        {"text": "proves", "node": "2", "parent": "", "on_path": "true", "error": "false"},
    )
    assert made(SiblingError(), group) == []


def test_steps_of_one_value_are_no_pair() -> None:
    group = rows(
        {"text": "A", "node": "a", "parent": "", "score": 0.5}, {"text": "B", "node": "b", "parent": "", "score": 0.5}
    )
    assert made(StepApo(), group) == []
    assert made(StepApo(siblings="all"), group) == []


def test_step_apo_margins_are_differences_of_advantages() -> None:
    pairs = {pair.texts: pair for pair in made(StepApo(), rows(*TREE))}
    assert set(pairs) == {("A", "B"), ("A\n\nA1", "A\n\nA2")}
    better, worse, start = 0.9, 0.2, 0.5
    assert pairs["A\n\nA1", "A\n\nA2"].margin == pytest.approx((better - start) - (worse - start))
    assert pairs["A\n\nA1", "A\n\nA2"].more == {"prefix": "A\n\n", "step": 1}
    everyone = made(StepApo(siblings="all"), rows(*TREE))
    assert len(everyone) == 4
    assert all(pair.margin is not None and pair.margin > 0 for pair in everyone)
    apart = made(StepApo(siblings="all", middle=0.3), rows(*TREE))
    assert {pair.texts for pair in apart} == {
        pair.texts for pair in everyone if (pair.chosen.score or 0) > 0.3 > (pair.rejected.score or 0)
    }
    assert 0 < len(apart) < 4


def test_step_apo_reads_the_nodes_of_a_search_out_of_solutions() -> None:
    solutions = {  # a beginning has one value, whichever solution shows it
        "plan a\n\nsolve b": (["plan a", "solve b"], [0.5, 0.9]),
        "plan a\n\nsolve c": (["plan a", "solve c"], [0.5, 0.2]),
        "plan a\n\nsolve d": (["plan a", "solve d"], [0.5, None]),
        "plan e": (["plan e"], [0.1]),
    }
    given = [{"text": text, "steps": steps, "values": values} for text, (steps, values) in solutions.items()]
    wanted = {("plan a", "plan e"): 0.5 - 0.1, ("plan a\n\nsolve b", "plan a\n\nsolve c"): 0.9 - 0.2}
    for order in (given, given[::-1]):
        pairs = {pair.texts: pair.margin for pair in made(StepApo(steps="steps"), rows(*order))}
        assert pairs == pytest.approx(wanted)
    assert StepApo(steps="steps").needs.columns == ("steps", "values")


def _game(response: str, other: str, score: float, **evidence: object) -> dict[str, object]:
    return {"text": response, "other": other, "score": score, "evidence": evidence}


def test_a_judge_must_say_the_same_in_both_orders() -> None:
    group = rows(
        _game("x", "y", 1.0), _game("y", "x", 0.0),  # x won twice
        _game("p", "q", 1.0), _game("q", "p", 1.0),  # whoever came first
        _game("s", "t", 1.0), _game("t", "s", 0.5),  # once a tie
        _game("u", "v", 1.0),                        # asked once
    )  # fmt: skip
    (pair,) = made(BothOrders(), group)
    assert (pair.texts, pair.margin) == (("x", "y"), 1.0)


def test_the_second_response_wins_where_both_games_say_so() -> None:
    (pair,) = made(BothOrders(), rows(_game("x", "y", 0.1), _game("y", "x", 0.7)))
    assert pair.texts == ("y", "x")
    assert pair.margin == pytest.approx(2 * (0.4 + 0.2) / 2)


def test_a_row_of_the_pairwise_judge_holds_both_games() -> None:
    agreed, split = {"games": 2, "pairs": 1, "consistent": 1}, {"games": 2, "pairs": 1, "consistent": 0}
    group = rows(
        _game("x", "y", 0.0, **agreed),
        _game("p", "q", 1.0, **split),
        _game("s", "t", 0.5, **agreed),  # a tie twice
        {**_game("u", "", 1.0, **agreed), "other": {"response": "v", "answer": "4"}},
    )
    assert sides(made(BothOrders(), group)) == ["u>v", "y>x"]
    signed = made(BothOrders(tie=0.0), rows(_game("x", "y", -1.0, **agreed)))
    assert (sides(signed), signed[0].margin) == (["y>x"], 2.0)
