"""When a scorer is given up: batches are asked about in order, and answered in any."""

from __future__ import annotations

import pytest

from adjudge.evals.benchmarks.given import Given
from adjudge.evals.benchmarks.patience import Patience
from adjudge.io.errors import JobError

DEAD = Given(None, "failed", "gold_unparsable")
ALIVE = Given(1.0, "scored")


def test_a_small_last_batch_that_is_done_first_is_not_the_first_one() -> None:
    patience = Patience("scorer", wants_steps=False, kept=False)
    patience.watch([DEAD, DEAD], first=False)
    patience.watch([DEAD, ALIVE], first=True)
    patience.watch([DEAD] * 511, first=False)
    with pytest.raises(JobError, match="none of the last 512 samples: gold_unparsable"):
        patience.watch([DEAD], first=False)


def test_the_first_batch_must_hold_a_score_unless_another_one_did() -> None:
    with pytest.raises(ValueError, match="none of the first 2 samples"):
        Patience("scorer", wants_steps=False, kept=False).watch([DEAD, DEAD], first=True)
    patience = Patience("scorer", wants_steps=False, kept=False)
    patience.watch([ALIVE], first=False)
    patience.watch([DEAD, DEAD], first=True)


def test_the_first_batch_must_hold_steps_where_they_are_wanted() -> None:
    patience = Patience("scorer", wants_steps=True, kept=False)
    with pytest.raises(ValueError, match="gave none to the first 1 samples"):
        patience.watch([ALIVE], first=True)
