"""How a server that speaks the OpenAI protocol is reached, and what it can be asked.

Not covered: keys in files or in specs.  A key comes from the environment, and is shown nowhere.
"""

from __future__ import annotations

import os
import re
from dataclasses import InitVar, dataclass, field, fields
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from adjudge.engines.http_client import Circuit, Retry
from adjudge.options import Range, check_options

Dialect = Literal["auto", "openai", "vllm"]
_COUNT: Final = Range(ge=1)
_SECONDS: Final = Range(gt=0, unit="seconds")
_USUAL_VARIABLE = "OPENAI_API_KEY"  # may be unset: many servers want no key
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOCAL = ("localhost", "127.0.0.1", "::1")

# They change how a server is asked, and never what it answers.
_TRANSPORT = (
    "api_key_env concurrency timeout deadline max_bytes attempts first_pause longest_pause dead_failures dead_seconds "
    "dead_pause"
).split()


@dataclass(frozen=True, kw_only=True)
class OpenAIConfig:
    """Options of the `openai` engine.

    Attributes:
        model: the name under which the server serves the model.
        base_url: where the protocol starts, usually ending in `/v1`.
        api_key_env: the environment variable that holds the key, read when the first request is sent; "" for none.
            The key is sent over https and to this machine, never over plain http to another.
        revision: any text; it goes into the fingerprint, so change it when the server serves other weights by the same
            name, which no client can see.
        dialect: what the server understands beyond the OpenAI protocol.  "vllm" can do all that engines do; "openai"
            generates, and reads the labels that are among the likeliest tokens; "auto" asks `/models` who owns it.
        chat_template_kwargs: for the server's chat template, such as `{"enable_thinking": false}`; vLLM and SGLang.
        echo: with the dialect "openai", whether `/completions` can return the log-probabilities of a prompt
            (`echo` with `logprobs`), as SGLang and llama.cpp do; then references of text prompts can be scored.
        top_logprobs: with the dialect "openai", how many of the likeliest tokens are asked for: OpenAI gives 20 for
            chats and 5 for text.
        unseen: with the dialect "openai", how large a share (of all labels' probability) a label may have at most, when
            the server did not show it, for its upper bound to be taken; above it there is a fault, and with 0 always.
        max_tokens_field: how the limit on generated tokens is called in chats: newer models of OpenAI insist on
            "max_completion_tokens".
        send_temperature: whether requests say at which temperature to sample.  Models that take no other than their own
            (OpenAI's reasoning models) refuse those that do; without it, greedy calls are sampled as well.
        concurrency: requests under way at once.
        timeout: seconds for one attempt at a request, from sending it to the last byte of the answer.
        deadline: seconds for all attempts at a request together, from when the first is sent.
        max_bytes: the largest answer that is read.
        attempts: how often a request is sent at most.
        first_pause: seconds that the pause after the first attempt lasts at most; each further one, twice as long.
        longest_pause: seconds that a pause lasts at most, also one that the server asks for.
        dead_failures: after so many failed connections in a row,
        dead_seconds: over so many seconds at least, the server counts as dead, and new requests fail at once.
        dead_pause: seconds between two looks whether it is back.
    """

    model: str
    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = _USUAL_VARIABLE
    api_key: InitVar[str | None] = None
    revision: str = ""
    dialect: Dialect = "auto"
    chat_template_kwargs: dict[str, object] = field(default_factory=dict)
    echo: bool = False
    top_logprobs: Annotated[int, _COUNT] = 20
    unseen: Annotated[float, Range(ge=0, lt=1)] = 1e-3
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    send_temperature: bool = True
    concurrency: Annotated[int, _COUNT] = 64
    timeout: Annotated[float, _SECONDS] = 300.0
    deadline: Annotated[float, _SECONDS] = 900.0
    max_bytes: Annotated[int, _COUNT] = 64 << 20
    attempts: int = 6
    first_pause: float = 0.5
    longest_pause: float = 30.0
    dead_failures: int = 5
    dead_seconds: float = 5.0
    dead_pause: float = 5.0

    def __post_init__(self, api_key: str | None) -> None:
        if api_key is not None:
            raise ValueError(
                "engine option api_key: keys are taken from the environment only, never from a spec; put the key into "
                "a variable and name it with api_key_env (default OPENAI_API_KEY)"
            )
        check_options(self, "engine option")
        if not self.model:
            raise ValueError("engine option model=''; give the name under which the server serves the model")
        if self.api_key_env and not _VARIABLE.fullmatch(self.api_key_env):
            raise ValueError(
                "engine option api_key_env is not a name of an environment variable; put the key itself into "
                "a variable and give the name of that"
            )
        self._check_address()
        self.retry()
        self.circuit()

    def _check_address(self) -> None:
        try:
            parts = urlsplit(self.base_url)
            _ = parts.port
        except ValueError as error:
            raise ValueError(
                f"engine option base_url is not an address ({error}); give one like http://localhost:8000/v1"
            ) from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"engine option base_url={self.base_url!r}; it must begin with http:// or https:// and a host"
            )
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise ValueError(
                f"engine option base_url (host {parts.hostname!r}) holds a user, a query or a fragment; addresses are "
                "shown in messages, so leave them out and name a key with api_key_env"
            )

    @property
    def address(self) -> str:
        """`base_url` without a slash at its end."""
        return self.base_url.rstrip("/")

    @property
    def root(self) -> str:
        """Where vLLM's own routes start: `base_url` without `/v1`."""
        return self.address.removesuffix("/v1")

    @property
    def is_local(self) -> bool:
        """Whether the server runs on this machine."""
        return urlsplit(self.base_url).hostname in _LOCAL

    def retry(self) -> Retry:
        """Return when requests are sent again."""
        return Retry(attempts=self.attempts, first_pause=self.first_pause, longest_pause=self.longest_pause)

    def circuit(self) -> Circuit:
        """Return what will say when the server counts as dead."""
        return Circuit(failures=self.dead_failures, seconds=self.dead_seconds, pause=self.dead_pause)

    def identity(self) -> dict[str, object]:
        """Return the options that decide what is answered: all but those of the transport."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name not in _TRANSPORT}

    def key(self) -> str:
        """Return the key to be sent, or "".

        Raises:
            ValueError: the variable holds something that no header can carry, or was named and is not set.
        """
        if self.api_key_env not in ("", _USUAL_VARIABLE) and self.api_key_env not in os.environ:
            raise ValueError(
                f"engine option api_key_env={self.api_key_env!r}: that environment variable is not set; set it to the "
                "key, or leave the option out"
            )
        key = os.environ.get(self.api_key_env, "").strip() if self.api_key_env else ""
        if not (self.is_local or self.base_url.startswith("https://")):
            return ""
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise ValueError(
                f"the environment variable {self.api_key_env} holds no usable key; set it to the key alone"
            )
        return key
