"""What goes wrong stays where it is: rows, models, scorers, budgets, and calls that cannot be meant.

And what must not matter does not: order, neighbours, interruptions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.data_pipelines.steps.sums import Oracle, Row, adder, config, make, parts_of, read, rows_of
from tests.engines.scripted import ScriptedEngine, fault

from adjudge.data_pipelines.steps.labeling import label_steps, maker_of
from adjudge.engines.interface import Fault, Prompt
from adjudge.io.errors import JobError
from adjudge.protocol import Sample, Score


def test_a_row_gets_the_same_labels_wherever_it_stands_and_whatever_is_made_beside_it(tmp_path: Path) -> None:
    rows = rows_of(8)
    made = []
    for name, order, at_once in (("a", rows, 1), ("b", rows[::-1], 8)):
        folder = tmp_path / name
        folder.mkdir()
        options = config(folder, order, method="mc", in_flight=at_once)
        label_steps(options, engine=ScriptedEngine(adder(slip=0.3)))
        made.append({row["id"]: row for row in read(options.output)})
    assert made[0] == made[1]


def test_a_model_that_goes_stops_the_job_and_the_same_call_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    rows = rows_of(10)
    options = config(tmp_path, rows, method="mc", in_flight=1)
    asked = 0

    def failing(prompt: Prompt, index: int) -> str | Fault:
        nonlocal asked
        asked += 1
        return fault("engine_unavailable") if asked > 60 else adder(slip=0.3)(prompt, index)

    with pytest.raises(JobError, match="scripted"):
        label_steps(options, engine=ScriptedEngine(failing))
    assert not Path(options.output).exists()
    report = label_steps(options, engine=ScriptedEngine(adder(slip=0.3)))
    resumed = Path(options.output).read_bytes()
    assert report.resumed_rows > 0
    other = tmp_path / "whole"
    other.mkdir()
    whole = config(other, rows, method="mc")
    label_steps(whole, engine=ScriptedEngine(adder(slip=0.3)))
    assert resumed == Path(whole.output).read_bytes()


def test_a_prefix_the_model_cannot_read_stays_unknown(tmp_path: Path) -> None:
    row = rows_of(2)[1]

    def answer(prompt: Prompt, index: int) -> str | Fault:
        too_long = parts_of(prompt)[1].count("\n") >= 3
        return fault("engine_error", too_long=True) if too_long else adder()(prompt, index)

    made = make(config(tmp_path, [row], method="mc"), row, engine=ScriptedEngine(answer))
    (found,) = made.rows
    assert found["labels"][2:5] == [None, None, None]
    assert None not in found["labels"][:2]
    assert made.counts["too_long"] == 3
    assert found["unknown"] == 3


def test_rollouts_nobody_could_judge_have_no_vote(tmp_path: Path) -> None:
    class Moody:
        name = "moody"
        fingerprint = "moody:1"

        async def score(self, samples: list[Sample]) -> list[Score]:
            # It judges whole solutions, and of rollouts those alone that end right.
            ends = [sample.response.endswith(f"{{{sample.reference}}}") for sample in samples]  # type: ignore[union-attr]
            return [
                Score.scored(float(right)) if right or len(samples) == 1 else Score.failed("worker_died")
                for right in ends
            ]

    row = rows_of(2)[1]
    made = make(config(tmp_path, [row], method="mc"), row, engine=ScriptedEngine(adder()), scorer=Moody())
    (found,) = made.rows
    error = row["error"]
    assert found["labels"] == [*[1.0] * error, *[None] * (5 - error), 0.0]
    assert found["judged"] == [*[4] * error, *[0] * (5 - error), 1]


def test_a_budget_leaves_steps_unknown_and_is_never_passed(tmp_path: Path) -> None:
    row = rows_of(2)[1]
    made = make(config(tmp_path, [row], method="mc", max_calls_per_row=10), row, engine=ScriptedEngine(adder()))
    (found,) = made.rows
    assert found["calls"] == made.counts["calls"] == 8
    assert [label is None for label in found["labels"]] == [False, False, True, True, True, False]
    assert found["first_error"] == (row["error"] if row["error"] < 2 else None)
    tree = make(
        config(tmp_path, [row], method="tree", max_calls_per_row=30), row, engine=ScriptedEngine(adder(slip=0.2))
    )
    assert tree.counts["calls"] <= 30


def test_a_problem_whose_wrong_rollouts_hold_nothing_is_not_called_solved(tmp_path: Path) -> None:
    row = {key: rows_of(1)[0][key] for key in ("prompt", "reference")}
    engine = ScriptedEngine(lambda prompt, index: adder()(prompt, index) if index % 2 else "")
    made = make(config(tmp_path, [row], method="tree"), row, engine=engine)
    assert (made.rows, dict(made.dropped)) == ((), {"nothing_to_search": 1})


HOSTILE: list[tuple[Row, str]] = [
    ({"prompt": "1+1="}, "bad_response"),
    ({"prompt": "1+1=", "response": None}, "bad_response"),
    ({"prompt": "1+1=", "response": ""}, "empty_response"),
    ({"prompt": "1+1=", "response": "\u200b \n"}, "empty_response"),
    ({"prompt": "1+1=", "response": 7}, "bad_response"),
    ({"prompt": "", "response": "2"}, "bad_prompt"),
    ({"prompt": ["x"], "response": "2"}, "bad_prompt"),
    ({"prompt": [{"role": "user", "content": 7}], "response": "2"}, "bad_prompt"),
    ({"prompt": [{"role": "user", "content": [7]}], "response": "2"}, "bad_prompt"),
    ({"prompt": [{"role": 7, "content": "1+1="}], "response": "2"}, "bad_prompt"),
    ({"prompt": "1+1=", "response": [{"role": "assistant", "content": "2"}] * 2}, "chat_response"),
    ({"prompt": "1+1=", "response": "\\boxed{2}", "reference": "   "}, "outcome_unknown"),
    ({"prompt": "1+1=", "response": "\\boxed{2}", "reference": None}, "bad_sample"),
]


@pytest.mark.parametrize(("row", "reason"), HOSTILE)
def test_a_bad_row_is_dropped_with_a_reason_and_costs_no_rollout(tmp_path: Path, row: Row, reason: str) -> None:
    row = {"reference": "2", **row}
    engine = ScriptedEngine(adder())
    made = make(config(tmp_path, [row], method="mc"), row, engine=engine)
    assert (made.rows, dict(made.dropped), engine.asked) == ((), {reason: 1}, [])


@pytest.mark.parametrize("content", [7, [7], {"text": "take"}])
def test_a_chat_of_odd_turns_is_dropped_and_stops_nothing(tmp_path: Path, content: Any) -> None:
    odd = [{"role": "assistant", "content": content}]
    rows = [
        {"prompt": "task", "response": odd, "reward": 1.0},
        {"prompt": odd, "response": [{"role": "assistant", "content": "take"}], "reward": 1.0},
    ]
    options = config(tmp_path, rows, method="spa", outcome_column=("reward",))
    assert dict(label_steps(options).dropped) == {"bad_prompt": 1, "bad_response": 1}


@pytest.mark.parametrize(
    ("said", "dropped"),
    [
        ([True, False], {}),
        (True, {"bad_outcome": 2}),
        ([True], {"bad_outcome": 2}),
        ([True, False, True], {"bad_outcome": 2}),
        ([True, None], {"outcome_unknown": 1}),
        (["True", "0"], {}),  # as CSV spells them
        (["", "good"], {"bad_outcome": 1, "outcome_unknown": 1}),
        ([float("inf"), 10**400], {"bad_outcome": 2}),
        (None, {"outcome_unknown": 2}),
    ],
)
def test_one_outcome_never_speaks_for_several_solutions(tmp_path: Path, said: Any, dropped: dict[str, int]) -> None:
    row = {"prompt": "1+2=", "response": ["1+2=3", "1+2=4"], "reference": "1+2=3", "right": said}
    options = config(tmp_path, [row], method="worked", outcome_column=("right",))
    made = make(options, row)
    assert dict(made.dropped) == dropped
    assert len(made.rows) == 2 - sum(dropped.values())


def test_lone_surrogates_and_huge_steps_pass_through(tmp_path: Path) -> None:
    row = {"prompt": "1+1=\ud800", "response": "x" * 200_000 + "\n\\boxed{2}", "reference": "2"}
    made = make(config(tmp_path, [row], method="mc"), row, engine=ScriptedEngine(lambda prompt, index: "\\boxed{2}"))
    assert made.rows[0]["labels"] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"prompt_column": "promt"}, "--prompt-column 'promt'.*Did you mean 'prompt'"),
        ({"response_column": ("respons",)}, "--response-column"),
        ({"reference_column": "gold"}, "--reference-column"),
        ({"method": "worked", "reference_column": "gold"}, "--reference-column"),
        ({"outcome_column": ("ok",)}, "--outcome-column"),
        ({"method": "consensus"}, "--critic"),
        ({"scorer": "no_such_scorer"}, "no_such_scorer"),
    ],
)
def test_mistakes_in_the_call_are_named_before_any_work(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    engine = ScriptedEngine(adder())
    with pytest.raises(ValueError, match=said):
        label_steps(config(tmp_path, rows_of(2), **options), engine=engine)
    assert not engine.asked


def test_a_row_without_reference_costs_no_rollout_even_if_its_outcome_is_known(tmp_path: Path) -> None:
    row = {**rows_of(1)[0], "right": True, "reference": None}
    engine = ScriptedEngine(adder())
    made = make(config(tmp_path, [row], method="mc", outcome_column=("right",)), row, engine=engine)
    assert (dict(made.dropped), engine.asked) == ({"bad_sample": 1}, [])


def test_scorers_that_compare_answers_are_refused(tmp_path: Path) -> None:
    class Comparing(Oracle):
        name = "comparing"
        groupwise = True

    with pytest.raises(ValueError, match="comparing"):
        label_steps(config(tmp_path, rows_of(2)), scorer=Comparing({}), engine=ScriptedEngine(adder()))


def test_verifying_draws_new_rollouts_and_keeps_the_old_ones(tmp_path: Path) -> None:
    row = next(row for row in rows_of(12) if row["error"] == 2)
    engine = ScriptedEngine(adder(slip=0.4))
    made = make(config(tmp_path, [row], method="binary", verify=2), row, engine=engine)
    (found,) = made.rows
    place = found["first_error"]
    assert place is not None
    asked = [
        (sampling.seed, sampling.n)
        for prompt, sampling in zip(engine.asked, engine.samplings, strict=True)
        if parts_of(prompt)[1].count("\n") == place + 1
    ]
    assert asked == [(0, 4), (4, 4), (8, 4)]
    assert found["judged"][place] == 12


def test_a_missing_engine_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--engine"):
        label_steps(config(tmp_path, rows_of(2), method="mc"))


def test_a_file_without_any_reference_is_refused_before_any_rollout(tmp_path: Path) -> None:
    rows = [{"prompt": "1+1=", "response": "2"}]
    engine = ScriptedEngine(adder())
    with pytest.raises(ValueError, match="reference"):
        label_steps(config(tmp_path, rows, method="mc"), engine=engine)
    assert not engine.asked


def test_chat_models_are_asked_with_the_prefix_as_the_beginning_of_their_turn(tmp_path: Path) -> None:
    row = rows_of(1)[0]
    engine = ScriptedEngine(adder())
    made = make(config(tmp_path, [row], method="mc", chat=True), row, engine=engine)
    assert made.rows[0]["labels"] == [1.0] * 6
    first = engine.asked[0]
    assert not isinstance(first, str)
    assert [turn["role"] for turn in first] == ["user", "assistant"]
    assert str(first[1]["content"]).endswith("\n")


def test_a_blank_that_ends_a_prefix_is_neither_shown_nor_doubled(tmp_path: Path) -> None:
    row = {"prompt": "Count to two.", "response": "One. Two. \\boxed{2}", "reference": "2"}
    seen: list[str] = []

    def answer(prompt: Prompt, index: int) -> str:
        seen.append(parts_of(prompt)[1])
        return " Two. \\boxed{2}"

    options = config(tmp_path, [row], method="mc", chat=True, splitting="sentence", rollouts=1)
    made = make(options, row, engine=ScriptedEngine(answer))
    assert seen[0] == "One."
    assert made.rows[0]["labels"][0] == 1.0


def test_the_fingerprint_changes_with_options_and_models_and_not_with_files(tmp_path: Path) -> None:
    row = rows_of(1)
    engine = ScriptedEngine(adder())

    def print_of(**options: Any) -> str:
        return maker_of(config(tmp_path, row, **options), engine=engine).fingerprint

    assert print_of() == print_of(in_flight=3, limit=2)
    assert (
        len({print_of(), print_of(rollouts=5), print_of(seed=1), print_of(method="binary"), print_of(scorer="exact")})
        == 5
    )
