"""The error of a reference that a scorer cannot use."""

from __future__ import annotations


class BadReferenceError(ValueError):
    """A reference that cannot be used.

    Attributes:
        mistake: True when its type or shape is wrong, which the user can repair for all samples at once; False when
            one value of the right shape says nothing that the scorer understands.
        limit: True when it ran into a limit, which may be the machine's fault and not its own.
    """

    def __init__(self, message: str, *, mistake: bool = False, limit: bool = False) -> None:
        super().__init__(message)
        self.mistake = mistake
        self.limit = limit


class ReferenceFormError(BadReferenceError):
    """A reference of a wrong type or shape, which the user can repair for all samples at once."""

    def __init__(self, message: str) -> None:
        super().__init__(message, mistake=True)
