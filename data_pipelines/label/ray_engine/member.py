"""One Ray worker, as the calling process sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(eq=False, slots=True)
class Member:
    """A worker and what it is busy with.

    Attributes:
        actor: Ray's handle.
        opening: what becomes its name, fingerprint and kind when the scorer is loaded.
        load: batches it has.
        ready: whether the scorer is loaded.
        watched: whether a task waits for `opening`.
        alone: whether the batch that it has, or waits for, must be the only one.
        lost: whether it is dead.
    """

    actor: Any
    opening: Any
    load: int = 0
    ready: bool = False
    watched: bool = False
    alone: bool = False
    lost: bool = False
