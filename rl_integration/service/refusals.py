"""Why the service does not take a request.  Nothing of a refused request was begun, and all of it may be sent again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial


class Refused(RuntimeError):
    """The service does not take the request now.

    Args:
        message: what is the matter, for a person.
        retry_after: seconds after which it is worth another try; None if it is not.
    """

    def __init__(self, message: str, *, retry_after: float | None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Callable[[str], Refused], tuple[str]]:
        return partial(type(self), retry_after=self.retry_after), (str(self),)


class Overloaded(Refused):
    """More samples wait than the scorer may keep waiting."""


class Suspended(Refused):
    """The scorer failed too often and rests."""


class Draining(Refused):
    """The service is being shut down."""
