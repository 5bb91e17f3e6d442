"""How the service runs one scorer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from adjudge.options import Count, Options, Range

_SECONDS: Final = Range(gt=0, unit="seconds")


@dataclass(frozen=True, kw_only=True)
class LaneConfig(Options, what="service option"):
    """One scorer in the service, and what it may take.

    Attributes:
        scorer: anything `adjudge.load` takes.
        batch: most samples of one call of the scorer.
        characters: most characters of prompts and responses in one call; a longer sample goes alone.
        linger: seconds that a sample may wait for company while the scorer is free.  0 sends it at once: what comes
            while the scorer works is a batch anyway.
        concurrency: calls of the scorer under way at once.
        waiting: most samples that are accepted and not begun; more are refused.
        seconds: how long a call of the scorer may take, from when it begins.  What it finished by then counts; the rest
            is called again as long as something of it gets done, and fails with `scorer_timeout` where nothing does.
        cohort: for scorers of groups: how many members a group has, so that they may come in separate requests.  None:
            a request holds whole groups.
        cohort_seconds: how long a group waits for its last member.
        incomplete: what happens to a group whose members did not all come: "failed" or "scored" as it is.
        cache: path of a score cache; "" for none.
        trip: the share of the last `window` calls without any score from which on the scorer is suspended, in (0, 1].
        window: calls that are looked back upon.
        rest: seconds of the first suspension; each that follows without a success between takes twice as long, up to
            `longest_rest`.
        longest_rest: see `rest`.
    """

    scorer: Any
    batch: Count = 256
    characters: Count = 1_000_000
    linger: Annotated[float, Range(ge=0, unit="seconds")] = 0.0
    concurrency: Count = 2
    waiting: Count = 20_000
    seconds: Annotated[float, _SECONDS] = 300.0
    cohort: Count | None = None
    cohort_seconds: Annotated[float, _SECONDS] = 60.0
    incomplete: Literal["failed", "scored"] = "failed"
    cache: str = ""
    trip: Annotated[float, Range(gt=0, le=1)] = 0.5
    window: Count = 10
    rest: Annotated[float, _SECONDS] = 1.0
    longest_rest: Annotated[float, _SECONDS] = 60.0
