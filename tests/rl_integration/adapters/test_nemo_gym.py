"""The adapter for NeMo Gym without it; `tests/frameworks/nemo_gym` has it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from adjudge.nemo_gym import _verdict, resources_server
from adjudge.protocol import Score


def test_a_verdict_says_whether_its_number_is_one() -> None:
    assert _verdict(Score.scored(0.25)) == {"reward": 0.25, "mask_sample": False}
    failed = _verdict(Score.failed("engine_timeout", error="x" * 1000))
    assert (failed["reward"], failed["mask_sample"], failed["_ng_failure_class"]) == (0.0, True, "verifier_error")
    assert len(failed["failure_reason"]) < 400
    assert "_ng_failure_class" not in _verdict(Score.abstained("out_of_scope"))


@pytest.mark.skipif(find_spec("nemo_gym") is not None, reason="it is here")
def test_outside_gyms_environment_it_is_said_what_is_missing() -> None:
    with pytest.raises(ModuleNotFoundError, match="nemo_gym"):
        resources_server()
