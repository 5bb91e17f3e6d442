"""TRL 0.24, which Unsloth pins, and 1.8, which axolotl pins; both call every reward in the trainer's own thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.frameworks.environment import run_in
from tests.rl_integration.mixed_data import FORMS, expected, rewards

VERSIONS = {"trl_0_24": "0.24.0", "trl_1_8": "1.8.0"}


@pytest.fixture(scope="module", params=VERSIONS)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp(request.param)
    found = run_in(
        request.param, Path(__file__).parent / "real_trl.py", str(folder), without="sklearn,scipy,trio,vllm,peft,openai"
    )
    assert found["version"] == VERSIONS[request.param]
    return found


@pytest.mark.parametrize("form", FORMS)
def test_one_data_set_of_sums_and_programs_trains_in_every_form(form: str, ran: Any) -> None:
    found = ran["forms"][form]
    assert found["called"] == expected(form)
    assert len(found["logged"]) == 2
    for line in found["logged"]:
        for reward, numbers in zip(rewards(form), expected(form), strict=True):
            assert line[f"rewards/{reward.__name__}/mean"] == 0.0, "a random model neither adds nor programs"
            if ran["version"] != "0.24.0":  # which gives rewards no way to log
                assert line[f"{reward.__name__}/failed"] == 0.0
                assert line[f"{reward.__name__}/out_of_scope"] == numbers.count(None) / len(numbers)


def test_what_trl_makes_of_none_is_as_documented(ran: Any) -> None:
    """0.24 takes None for 0; later versions leave the completion out of its group."""
    none, _, wrong, _ = ran["advantages"]
    assert wrong < -0.5
    assert none == pytest.approx(wrong if ran["version"] == "0.24.0" else 0.0)
