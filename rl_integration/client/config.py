"""Which server a client asks, and how patiently."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlsplit

from adjudge.options import Options, Range

_COUNT: Final = Range(ge=1)
_SECONDS: Final = Range(gt=0, unit="seconds")


@dataclass(frozen=True, kw_only=True)
class ClientConfig(Options, what="client option"):
    """Which server is asked, and how.

    Attributes:
        url: where the server is: "http://127.0.0.1:8000".
        token_env: the environment variable that holds the token; tokens are never options, since options are logged.
        chunk: most samples of one request; the samples of a group stay together.
        concurrency: requests under way at once.
        timeout: seconds for one try of a request.
        deadline: seconds for all tries of a request and the pauses between them.
        attempts: how often a request is sent at most; a repeated one is never scored twice.
        trust_env: use the proxies that the environment names.
    """

    url: str
    token_env: str = "ADJUDGE_TOKEN"
    chunk: Annotated[int, _COUNT] = 64
    concurrency: Annotated[int, _COUNT] = 16
    timeout: Annotated[float, _SECONDS] = 600.0
    deadline: Annotated[float, _SECONDS] = 3600.0
    attempts: Annotated[int, _COUNT] = 12
    trust_env: bool = False

    def __post_init__(self) -> None:
        """Check the options, and the address."""
        parts = urlsplit(self.url) if isinstance(self.url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.netloc or parts.username:
            raise ValueError(f"client option url={self.url!r}; give http://HOST:PORT, and no password in it")
        super().__post_init__()

    @property
    def token(self) -> str:
        """The token, or "" where none is set."""
        return os.environ.get(self.token_env, "")
