"""Claims, worked solutions, pieces and contributions, each against values made by hand."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.data_pipelines.steps.arithmetic import claims_of, number_of, results_of, worked_labels
from adjudge.data_pipelines.steps.config import StepsConfig
from adjudge.data_pipelines.steps.solutions_in_rows import Pieces
from adjudge.data_pipelines.steps.turn_labeller import CELLS, FOLDS, Centred, Contributions, features, fold_of
from adjudge.responses.steps import SPLITTINGS, Splitting


@pytest.mark.parametrize(
    ("step", "claims"),
    [
        ("She has 16 - 3 = <<16-3=13>>13 eggs.", [("16-3", "13")]),
        ("16 - 3 = 13", [("16 - 3", "13")]),
        (r"\(1/3 \times 18 = 6\), so \(18 - 6 = 12\)", [("1/3 * 18", "6"), ("18 - 6", "12")]),
        ("$5 x 20 = $100.", [("5*20", "100")]),
        ("180 × (1 - 30%) = 126", [("180 * (1 - 30%)", "126")]),
        ("1,200/4=300.", [("1,200/4", "300")]),
        ("-5 + 3 = -2", [("-5 + 3", "-2")]),
        ("3*4=12=2*6", [("3*4", "12")]),
        ("x = 3 + 4 = 7", [("3 + 4", "7")]),
        ("(a + 5) * 2 = 14", []),
        ("((1+2)*3)+4=13", []),
        ("3+4=7*2", []),
        ("5x = 10", []),
        ("He has 13 eggs.", []),
        ("1" + "+1" * 40 + "=5", []),  # too long to be read whole, so none of it is
    ],
)
def test_claims_are_read_whole_or_not_at_all(step: str, claims: list[tuple[str, str]]) -> None:
    assert [(claim.left, claim.right) for claim in claims_of(step)] == claims


@pytest.mark.parametrize(
    "text",
    [
        "1+" * 10_000,
        "(" * 20_000,
        "1 " * 10_000,
        "1,111," * 3_000,
        "<<1" * 6_000,
        "1*(" * 6_000,
        "1 - " * 5_000,
        f"{' + '.join(map(str, range(3, 20)))} is what they weigh",
        "( 1 ) * " * 2_500,
        "1 x " * 5_000,
    ],
)
def test_hostile_steps_claim_nothing(text: str) -> None:
    assert len(text) <= 20_000
    assert claims_of(text) == ()


def test_a_step_too_long_to_be_read_whole_claims_nothing() -> None:
    true, filler, false = "1 + 1 = 2. ", "word " * 4_000, "2 + 2 = 5."
    assert len(claims_of(true + false)) == 2
    assert claims_of(true + filler + false) == ()  # the false one may stand where nobody looks


@pytest.mark.parametrize(
    ("text", "number"),
    [("1,200", 1200), ("$5.50", Fraction(11, 2)), ("-$3", -3), ("30%", 30), (".5", Fraction(1, 2)), ("", None),
     ("five", None), ("1e9", None), ("1/2", None), ("٣", None), ("9" * 50, None)],
)  # fmt: skip
def test_numbers_are_those_written_with_digits(text: str, number: Fraction | int | None) -> None:
    assert number_of(text) == number


WORKED = results_of("16 - 3 = <<16-3=13>>13\n13 * 2 = <<13*2=26>>26\nA: 26")


@pytest.mark.parametrize(
    ("steps", "outcome", "labels", "error"),
    [
        (["16-3=13", "13*2=26", "A: 26"], True, (1.0, 1.0, 1.0), -1),
        (["16-3=13", "13*3=39", "A: 39"], False, (1.0, 0.0, None), 1),
        (["16-3=13", "13*2=26", "A: 62"], False, (1.0, 1.0, 0.0), 2),
        (["Let us see.", "16+3=19", "A: 19"], False, (None, 0.0, None), None),
        (["16-3=13.00", "13*2=26.004", "no"], False, (1.0, 1.0, 0.0), 2),
        (["16-3=13", "A: 13"], None, (None, None), None),
    ],
)
def test_a_wrong_solution_errs_where_it_leaves_the_worked_one(
    steps: list[str], outcome: bool | None, labels: tuple[float | None, ...], error: int | None
) -> None:
    assert worked_labels(steps, WORKED, outcome=outcome) == (labels, error)


@given(st.text(alphabet="ab.\n 1-*", max_size=60), st.sampled_from(SPLITTINGS), st.integers(1, 5))
def test_pieces_are_the_whole_text_and_hold_their_steps(text: str, how: Splitting, most: int) -> None:
    cut = Pieces.of(text, how, most)
    assert len(cut.pieces) == len(cut.steps) <= most
    assert "".join(cut.pieces) == (text if cut.steps else "")
    assert all(step == piece.strip() for step, piece in zip(cut.steps, cut.pieces, strict=True))


def test_given_steps_must_be_the_text() -> None:
    cut = Pieces.given("one\n\ntwo", ["one", "two"])
    assert cut is not None
    assert cut.pieces == ("one\n\n", "two")
    assert Pieces.given("one\n\ntwo", ["one", "three"]) is None


def trajectories(count: int) -> list[tuple[str, list[str], float]]:
    """Each turn holds one of four words; the reward is the sum of what the words are worth."""
    worth = {"open": 0.3, "look": 0.0, "drop": -0.4, "take": 0.5}
    chance = random.Random(7)
    rows = []
    for number in range(count):
        turns = chance.choices(list(worth), k=chance.randint(1, 6))
        rows.append((f"task {number}", turns, sum(worth[turn] for turn in turns)))
    return rows


def test_contributions_find_what_each_turn_is_worth() -> None:
    fit = Contributions(ridge=1e-6)
    for prompt, turns, reward in trajectories(400):
        fit.add(prompt, turns, reward)
    found = fit.of("another task", ["take", "drop", "look"])
    assert found == pytest.approx([0.5, -0.4, 0.0], abs=1e-3)


def test_contributions_are_ridge_regression_without_the_prompts_own_fold() -> None:
    rows = trajectories(60)
    fit = Contributions(ridge=2.0)
    for prompt, turns, reward in rows:
        fit.add(prompt, turns, reward)
    prompt, turns, _ = rows[0]
    others = [row for row in rows if fold_of(row[0]) != fold_of(prompt)]
    table = np.array([np.sum([features(turn) for turn in row[1]], axis=0) for row in others])
    rewards = np.array([row[2] for row in others])
    # The same problem as least squares over stacked rows, solved another way.
    stacked = np.vstack([table, np.sqrt(2.0) * np.eye(CELLS + 1)])
    weights = np.linalg.lstsq(stacked, np.concatenate([rewards, np.zeros(CELLS + 1)]), rcond=None)[0]
    assert fit.of(prompt, turns) == pytest.approx([float(features(turn) @ weights) for turn in turns])


def test_a_trajectory_never_explains_its_own_reward() -> None:
    fit = Contributions()
    fit.add("task", ["take"], 1.0)
    assert fit.of("task", ["take"]) is None
    other = next(f"task {number}" for number in range(99) if fold_of(f"task {number}") != fold_of("task"))
    assert fit.of(other, ["take"]) is not None
    assert {fold_of(f"task {number}") for number in range(99)} == set(range(FOLDS))


def test_the_released_rule_is_the_reward_less_the_mean_of_the_others() -> None:
    centred = Centred()
    for reward in (1.0, 0.0, 0.5):
        centred.add("task", reward)
    centred.add("lonely", 1.0)
    assert centred.of("task", 1.0) == pytest.approx(1.0 - 0.25)
    assert centred.of("lonely", 1.0) is None
    assert centred.of("unheard of", 1.0) is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "magic"}, "--method is 'magic'"),
        ({"labels": "firm"}, "--labels"),
        ({"splitting": "page"}, "--splitting"),
        ({"rollouts": 0}, "--rollouts is 0"),
        ({"temperature": 0.0}, "--temperature is 0"),
        ({"temperature": float("nan")}, "--temperature"),
        ({"top_p": 0.0}, "--top-p"),
        ({"max_calls_per_row": 0}, "--max-calls-per-row"),
        ({"method": "pav", "rollouts": 2}, "--best-of is 4"),
        ({"prover": "transformers:m"}, "--prover is for the method pav"),
        ({"critic": "critic"}, "--critic is for the methods consensus and mcts"),
        ({"method": "spa"}, "--outcome-column"),
        ({"outcome_column": ("a", "b")}, "one outcome for each response"),
        ({"response_column": ()}, "--response-column is empty"),
        ({"response_column": ("a", "b"), "steps_column": "s"}, "--steps-column goes with one"),
        ({"ridge": 0.0}, "--ridge"),
        ({"tree_alpha": 2.0}, "--tree-alpha is 2.0"),
        ({"tree_alpha": 0.0}, "--tree-alpha is 0.0"),
        ({"tree_beta": -1.0}, "--tree-beta is -1.0"),
        ({"tree_c_puct": float("inf")}, "--tree-c-puct is inf"),
        ({"tree_length": 0}, "--tree-length is 0"),
        ({"tree_searches": 0}, "--tree-searches is 0"),
        ({"verify": -1}, "--verify is -1"),
        ({"pass_at": float("nan")}, "--pass-at is nan"),
        ({"critic_threshold": float("nan")}, "--critic-threshold is nan"),
        ({"in_flight": 0}, "--in-flight"),
    ],
)
def test_options_that_cannot_be_meant_are_refused_by_name(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        StepsConfig(input="in", output="out", **options)  # type: ignore[arg-type]
