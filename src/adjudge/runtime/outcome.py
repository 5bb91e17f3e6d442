"""What became of one item that a pool was asked to work on.

Not covered: what an outcome means for a score; `adjudge.runtime.verifying` decides that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

R = TypeVar("R")

Kind: TypeAlias = Literal["ok", "raised", "timeout", "memory", "crash", "lost", "overloaded", "closed"]


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """The result of one call of a target, or why there is none.

    Attributes:
        kind: "ok"; "raised" (the target raised); "timeout", "memory" (a limit was passed and the worker replaced);
            "crash" (the worker process died of the item, twice); "lost" (it was killed from outside, twice);
            "overloaded" (the machine let it wait until its time was up many times over); "closed" (the pool was closed
            first).
        value: what the target returned when `kind` is "ok", else None.
        error: "" when `kind` is "ok", else one line that says what happened.
        seconds: wall-clock seconds from the start of the call, queueing not counted; 0 when it never started.
        delivered: False when the item could not be pickled or unpickled, so the target never saw it.
    """

    kind: Kind
    value: R | None = None
    error: str = ""
    seconds: float = 0.0
    delivered: bool = True
