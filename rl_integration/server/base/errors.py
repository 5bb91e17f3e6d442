"""What the server answers when it does not answer the question: a status, a code, a sentence, and when to try again."""

from __future__ import annotations

import json
import math
from typing import Any

from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from adjudge.rl_integration.service.tickets import Overloaded, Refused


def json_bytes(value: Any) -> bytes:
    """Return plain data as compact ASCII JSON: half a surrogate pair that came with a request can go back.

    Raises:
        ValueError: a number in it is not finite.
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


class JsonAnswer(JSONResponse):
    """A response that is JSON."""

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return json_bytes(content)


_LONGEST = 1000  # characters of a message
_LOGGED = 500  # characters of a message in the log


class Told(BaseModel):
    """What is the matter."""

    code: str = Field(description="One word for programs.")
    message: str = Field(description="What is the matter and what to do, for a person.")


class ErrorAnswer(BaseModel):
    """Every answer that is an error."""

    error: Told
    request_id: str = Field(description="As in the header X-Request-Id and in the log.")


REFUSALS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorAnswer, "description": "The request cannot be answered as it is."},
    "503": {"model": ErrorAnswer, "description": "Not now; Retry-After says when to try again."},
}
"""What any route may answer, for its description."""


class HttpError(Exception):
    """An answer that is an error.

    Args:
        status: the HTTP status.
        code: one word for programs.
        message: what is the matter and what to do, for a person.
        retry_after: seconds after which it is worth another try.
    """

    def __init__(self, status: int, code: str, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after = retry_after

    @classmethod
    def of(cls, refused: Refused) -> HttpError:
        """Return the answer to a refused request: 503, or 413 where it could never be taken."""
        if isinstance(refused, Overloaded) and refused.retry_after is None:
            return cls(413, "too_many_samples", str(refused))
        code = type(refused).__name__.lower()
        return cls(503, code, str(refused), retry_after=5.0 if refused.retry_after is None else refused.retry_after)

    def logged(self) -> dict[str, str]:
        """Return what the log's line of the request says of it."""
        return {"code": self.code, "message": self.message[:_LOGGED]}

    def response(self, request_id: str = "") -> JsonAnswer:
        """Return it as a response."""
        headers = {} if self.retry_after is None else {"Retry-After": str(max(1, math.ceil(self.retry_after)))}
        message = self.message  # it may quote anything that came with the request
        if len(message) > _LONGEST:
            message = f"{message[: _LONGEST // 2]} ... {message[-_LONGEST // 2 :]}"
        body = {"error": {"code": self.code, "message": message}, "request_id": request_id}
        return JsonAnswer(body, self.status, headers=headers)


def bad_request(message: str) -> HttpError:
    """Return the answer to a request that cannot be read as what it should be."""
    return HttpError(422, "bad_request", message)
