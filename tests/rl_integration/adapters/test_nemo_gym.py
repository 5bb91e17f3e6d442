"""The adapter for NeMo Gym without it; `tests/frameworks/nemo_gym` has it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from adjudge.nemo_gym import _verdict, resources_server
from adjudge.protocol import Score
from adjudge.rl_integration.server.dialects.responses_object import masked


def test_a_verdict_says_whether_its_number_is_one() -> None:
    assert _verdict(Score.scored(0.25)) == {"reward": 0.25}
    failed = _verdict(Score.failed("engine_timeout", error="x" * 1000))
    assert (failed["reward"], failed["_ng_failure_class"]) == (0.0, "verifier_error")
    assert len(failed["failure_reason"]) < 400
    assert "_ng_failure_class" not in _verdict(Score.abstained("out_of_scope"))


def test_nemo_rl_finds_the_mask_where_it_reads_it() -> None:
    """As `nemo_rl.experience.rollouts` does: `bool((result.get("instance_config") or {}).get("mask_sample"))`."""
    agents = {"instance_config": {"mask_sample": True, "seed": 1}}
    again = {"mask_sample": True, **agents}
    assert masked({}, True) == {"mask_sample": False}
    assert masked({}, False) == {"mask_sample": True, "instance_config": {"mask_sample": True}}
    assert masked({"instance_config": {"seed": 1}}, False)["instance_config"] == {"seed": 1, "mask_sample": True}
    assert masked(agents, True) == {"mask_sample": False, **agents}, "the agent said so"
    assert masked(again, True) == {"mask_sample": False, "instance_config": {"seed": 1}}, "we had said so"
    assert masked({"instance_config": None}, False)["instance_config"] == {"mask_sample": True}


@pytest.mark.skipif(find_spec("nemo_gym") is not None, reason="it is here")
def test_outside_gyms_environment_it_is_said_what_is_missing() -> None:
    with pytest.raises(ModuleNotFoundError, match="nemo_gym"):
        resources_server()
