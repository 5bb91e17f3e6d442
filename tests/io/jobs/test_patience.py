"""When a scorer is given up: batches are asked about in order, and answered in any."""

from __future__ import annotations

import pytest

from adjudge.data_pipelines.label.bench import Written
from adjudge.io.errors import JobError
from adjudge.io.jobs.report import Patience

DEAD = Written("", None, "failed", "engine_error", "scorer", error="status 400: the\nmodel is gone")
ALIVE = Written("", 1.0, "scored", "", "scorer")


def patience(most: int = 512) -> Patience:
    return Patience("scorer", after="goes on", most=most)


def test_a_small_last_batch_that_is_done_first_is_not_the_first_one() -> None:
    waiting = patience()
    waiting.watch([DEAD, DEAD], first=False)
    waiting.watch([DEAD, ALIVE], first=True)
    waiting.watch([DEAD] * 511, first=False)
    told = r"none of the last 512 samples: engine_error \(status 400: the model is gone\)\. .* the same call goes on"
    with pytest.raises(JobError, match=told):
        waiting.watch([DEAD], first=False)


def test_the_first_batch_must_hold_a_score_unless_another_one_did() -> None:
    with pytest.raises(ValueError, match="none of the first 2 samples"):
        patience().watch([DEAD, DEAD], first=True)
    waiting = patience()
    waiting.watch([ALIVE], first=False)
    waiting.watch([DEAD, DEAD], first=True)


def test_how_many_failures_are_too_many_is_said() -> None:
    waiting = patience(most=3)
    waiting.watch([DEAD, DEAD], first=False)
    waiting.watch([], first=False)
    with pytest.raises(JobError, match="none of the last 3"):
        waiting.watch([DEAD], first=False)


def test_samples_of_another_scorers_kind_say_nothing_unless_all_are() -> None:
    other = Written("", None, "abstained", "out_of_scope", "scorer", error="it compares with a reference")
    waiting = patience(most=3)
    waiting.watch([DEAD, other], first=False)
    waiting.watch([other] * 5, first=False)
    assert waiting.failed_in_a_row == 1
    with pytest.raises(JobError, match="none of the last 3 samples: engine_error"):
        waiting.watch([DEAD, DEAD, other], first=False)
    with pytest.raises(ValueError, match=r"none of the first 2 samples: out_of_scope \(it compares with"):
        patience().watch([other, other], first=True)
