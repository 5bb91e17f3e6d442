"""The report of a run comes back as it was written, and its card holds no markup of anybody else's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from adjudge.rl_integration.trainer.loop.report import FILE, POLICY, RunReport, idle_steps

EVIL = "<script>alert(1)</script> | [x](javascript:y) \n# heading"

REPORT = RunReport(
    model=EVIL,
    output="models/it",
    steps=3,
    stopped=EVIL,
    rolled_back=2,
    data={"rows": 5, "left_out": {EVIL: 1}},
    held_out={"before": 0.25, "after": 0.5},
    last={"step": 3, "reward": 0.5},
    alarms=(EVIL,),
    config={"reward": {"scorer": EVIL}, "objective": {"name": "grpo"}, "steps": 3, "logs": []},
    notes=(EVIL,),
    idle="1 of 3 steps learned nothing from rewards: in 1 the rewards of each group were equal",
)


def test_a_report_comes_back_as_it_was(tmp_path: Path) -> None:
    (tmp_path / POLICY).mkdir()
    REPORT.write(tmp_path)
    assert RunReport.read(tmp_path) == REPORT
    assert json.loads((tmp_path / FILE).read_text(encoding="utf-8")) == REPORT.to_dict()
    assert RunReport.read(tmp_path / POLICY) is None


def test_nothing_in_a_card_becomes_markup() -> None:
    card = REPORT.card()
    assert "<script" not in card.replace("\\<", "")
    assert "](" not in card.replace("\\]", "")
    assert card.count("\n# ") == 1
    assert "trained from \\<script\\>" in card
    assert "This is its policy of step 2." in card
    assert "| after training | 0.5 |" in card


@pytest.mark.parametrize(
    ("change", "odd"),
    [
        ({"steps": 9, "report_to": ["wandb"], "save_steps": 1}, []),
        ({"objective": {"name": "dapo"}}, ["objective.name"]),
        ({"seed": 1, "reward": {"scorer": "math"}}, ["reward.scorer", "seed"]),
    ],
)
def test_options_that_make_another_policy_are_named(change: dict[str, object], odd: list[str]) -> None:
    assert REPORT.differing({**REPORT.config, **change}) == odd


def test_an_option_that_json_has_no_number_for_is_written_as_text(tmp_path: Path) -> None:
    (tmp_path / POLICY).mkdir()
    config = {"reward": {"scorer": "math", "timeout": float("inf")}}
    replace(REPORT, config=config).write(tmp_path)
    found = RunReport.read(tmp_path)
    assert found is not None
    assert found.config["reward"]["timeout"] == "inf"
    assert found.differing(config) == []


def test_the_policy_before_the_first_step_may_be_the_one_that_was_put_back() -> None:
    assert "This is its policy of step 0." in replace(REPORT, rolled_back=0).card()
    assert "This is its policy" not in replace(REPORT, rolled_back=None).card()


def test_steps_in_which_rewards_teach_nothing_are_told_with_why() -> None:
    line = {"advantage_mean": 0.0, "advantage_std": 0.5, "trained": 0.5, "clipped_ratio": 0.5}
    fine = {**line, "frac_reward_zero_std": 0.5}
    equal = {**line, "advantage_std": 0.0, "trained": 1.0, "frac_reward_zero_std": 1.0}  # with a divergence to learn
    cut = {**fine, "trained": 0.0, "clipped_ratio": 1.0}
    assert idle_steps([fine, fine], masks=True) == ""
    assert idle_steps([fine, equal, cut, equal], masks=True) == (
        "3 of 4 steps learned nothing from rewards: in 2 the rewards of each group were equal, in 1 all answers were "
        "cut off (learning.mask_truncated_completions)"
    )
    assert "in 1 no answer with an advantage counted" in idle_steps([cut], masks=False)
    assert "in 1 the rewards" in idle_steps([{"update_norm": 0.0, "clipped_ratio": 0.0}], masks=False)
    assert "1 of 3 steps learned nothing" in REPORT.card()
