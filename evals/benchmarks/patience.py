"""When a scorer is beyond hope: it judges nothing from the start, or it has stopped judging.

A sample that cannot be judged stops nothing.  A scorer that cannot judge any would go through the whole benchmark and
give a report without numbers; it is stopped with its own words instead.

Not covered: files of scores and stored ones, where a missing number costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adjudge.evals.benchmarks.given import Given
from adjudge.io.errors import JobError

_MOST_IN_A_ROW: Final = 512
_SHOWN: Final = 300


class Patience:
    """Watches what a scorer gives.

    Args:
        name: of the scorer.
        wants_steps: whether the benchmark judges steps.
        kept: whether what is scored is kept for the next run.
    """

    def __init__(self, name: str, *, wants_steps: bool, kept: bool) -> None:
        self._name = name
        self._wants_steps = wants_steps
        self._kept = kept
        self._began = False
        self._failed_in_a_row = 0

    def watch(self, given: Sequence[Given], *, first: bool) -> None:
        """Look at the scores of one batch.

        Args:
            given: the scores.
            first: whether no batch was asked about before; a small one behind it may be done earlier.

        Raises:
            ValueError: the first batch holds no score, or no steps where steps are judged.
            JobError: nothing could be judged any more.
        """
        if not given:
            return
        alive = [one for one in given if one.status != "failed"]
        if first and not self._began and not alive:
            raise ValueError(
                f"the scorer {self._name!r} could judge none of the first {len(given)} samples: {_why(given)}"
            )
        if first and alive and self._wants_steps and not any(one.steps for one in given):
            raise ValueError(
                f"the benchmark judges steps, and the scorer {self._name!r} gave none to the first {len(given)} "
                "samples; take a process reward model, or a critic whose scores have steps"
            )
        self._began = self._began or bool(alive)
        self._failed_in_a_row = 0 if alive else self._failed_in_a_row + len(given)
        if self._failed_in_a_row >= _MOST_IN_A_ROW:
            rest = "goes on behind what was scored" if self._kept else "begins anew"
            raise JobError(
                f"the scorer {self._name!r} could judge none of the last {self._failed_in_a_row} samples: "
                f"{_why(given)}. When it is repaired, the same call {rest}"
            )


def _why(given: Sequence[Given]) -> str:
    first = next((one for one in given if one.error), given[0])
    return f"{first.reason} ({' '.join(first.error.split())[:_SHOWN]})" if first.error else first.reason
