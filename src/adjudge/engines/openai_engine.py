"""The `openai` engine: any server that speaks the OpenAI protocol, asked with many requests at once.

vLLM's own server can do all that engines do; of others, the labels that are among the likeliest tokens can be read,
and whatever a server cannot do raises `ValueError` saying so.  See `docs/engines.md` for what is promised when a
server is slow, full, broken or gone.

Not covered: streaming, tools, images, and OpenAI's batch and responses interfaces.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from adjudge.engines.http_client import http_loop, on_http_loop
from adjudge.engines.interface import (
    Fault,
    Generation,
    LabelLogprobs,
    Labels,
    Logits,
    Prompt,
    Row,
    Sampling,
    TextLogprobs,
    TokenLogits,
    check_pairs,
)
from adjudge.engines.label_tokens import label_texts, owners_of
from adjudge.engines.openai_answers import BadAnswer
from adjudge.engines.openai_config import OpenAIConfig
from adjudge.engines.openai_session import OpenAISession, Refused
from adjudge.runtime.loop import together

R = TypeVar("R")

VERSION = "2"
"""Bumped whenever the same answers of a server would be read in another way."""

_AHEAD = 4  # prompts under way for each request under way: those that pause between attempts hold no request


class OpenAIEngine:
    """An engine behind HTTP; may be used from any thread, any event loop, and after a fork.

    Args:
        config: which server, which model, and how patient to be.

    Raises:
        ValueError: `api_key_env` names a variable without a usable key.
    """

    chooses: Final = True
    """Whether `Sampling.choice` is done."""

    def __init__(self, config: OpenAIConfig) -> None:
        config.key()
        self.config = config
        self._sessions: dict[int, OpenAISession] = {}  # by process id: connections do not survive a fork
        weakref.finalize(self, _let_go, self._sessions).atexit = False

    @property
    def name(self) -> str:
        """Return "openai"."""
        return "openai"

    @property
    def model(self) -> str:
        """The name under which the server serves the model."""
        return self.config.model

    @property
    def fingerprint(self) -> str:
        """The options that decide what is answered; what a server serves by a name, no client can see (`revision`)."""
        text = json.dumps([VERSION, self.config.identity()], sort_keys=True, default=str)
        return f"openai:{self.model}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def __repr__(self) -> str:
        return f"OpenAIEngine(model={self.model!r}, base_url={self.config.base_url!r})"

    def __reduce__(self) -> tuple[type[OpenAIEngine], tuple[OpenAIConfig]]:
        return OpenAIEngine, (self.config,)

    async def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Generation | Fault]:
        """Return completions of prompts.

        A completion's `tokens` is 0 where the server does not say; with `n` > 1 only vLLM does.

        Raises:
            ValueError: the server cannot sample that way, or cannot continue a chat that ends with an assistant's turn.
        """

        async def check(session: OpenAISession) -> None:
            if await session.dialect() == "vllm":
                if sampling.choice:
                    await session.label_tokens(label_texts(sampling.choice))
                return
            if sampling.choice:
                if all(not isinstance(prompt, str) for prompt in prompts):
                    return
                raise ValueError(
                    "sampling option choice: this server is asked for it by `response_format`, which chats have and "
                    "texts have not; ask with chat turns, or set dialect='vllm' if the server understands it"
                )
            if sampling.top_k:
                raise ValueError(
                    f"sampling option top_k={sampling.top_k}: the OpenAI protocol has no such option; set it to 0, or "
                    "dialect='vllm' if the server understands it"
                )
            _refuse_continuation(prompts)

        return await self._each(prompts, lambda session, at: session.generate(prompts[at], sampling), check)

    async def label_logprobs(self, prompts: Sequence[Prompt], labels: Labels) -> list[LabelLogprobs | Fault]:
        """Return how likely each label comes next.

        With a vLLM server the numbers are exact.  With others, a label of which no text is among the likeliest tokens
        gets its upper bound if that is a negligible share (option `unseen`), and otherwise makes a fault; `mass` counts
        only what was seen.

        Raises:
            ValueError: labels cannot be told apart, or the server cannot continue a chat.
        """
        owners_of(labels, str)  # refuses what cannot be told apart

        async def one(session: OpenAISession, at: int) -> LabelLogprobs:
            if await session.dialect() == "vllm":
                return await session.labels_read(prompts[at], await session.label_tokens(labels))
            return await session.labels_shown(prompts[at], labels)

        async def check(session: OpenAISession) -> None:
            if await session.dialect() == "vllm":
                await session.label_tokens(labels)  # once, not once for each prompt that starts at the same time
            else:
                _refuse_continuation(prompts)

        return await self._each(prompts, one, check)

    async def reference_logprobs(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[TextLogprobs | Fault]:
        """Return how likely each text is as the continuation of the prompt beside it.

        Raises:
            ValueError: there are not as many texts as prompts, or the server cannot tell.
        """
        check_pairs(prompts, texts)

        async def one(session: OpenAISession, at: int) -> TextLogprobs:
            prompt, text = prompts[at], texts[at]
            if not text:
                return TextLogprobs(tokens=(), logprobs=())
            if isinstance(prompt, str) and await session.dialect() != "vllm":
                return await session.echoed(prompt, text)
            return await session.forced(prompt, text)

        async def check(session: OpenAISession) -> None:
            readable = self.config.echo and all(isinstance(prompt, str) for prompt in prompts)
            if not readable and await session.dialect() != "vllm":
                raise ValueError(
                    "this server's log-probabilities of given text are not known to be available; use a vLLM server "
                    "(dialect='vllm'), or text prompts and echo=true if `/completions` can echo with logprobs, or an "
                    "embedded engine"
                )

        return await self._each(prompts, one, check)

    async def classify(self, prompts: Sequence[Prompt]) -> list[Logits | Fault]:
        """Return a sequence classifier's raw outputs; chats are rendered as they stand, with nothing to continue.

        Raises:
            ValueError: the server is not a vLLM server, or serves no classifier.
        """
        return await self._each(prompts, lambda session, at: session.classify(prompts[at]), _need_vllm)

    async def classify_tokens(self, prompts: Sequence[Row]) -> list[TokenLogits | Fault]:
        """Return a token classifier's raw outputs; chats are rendered as they stand, with nothing to continue.

        Raises:
            ValueError: the server is not a vLLM server, or serves no token classifier.
        """
        return await self._each(prompts, lambda session, at: session.classify_tokens(prompts[at]), _need_vllm)

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        if os.getpid() in self._sessions:
            await on_http_loop(self._close())

    async def _close(self) -> None:
        if (session := self._sessions.pop(os.getpid(), None)) is not None:
            await session.close()

    async def _each(
        self,
        prompts: Sequence[object],
        one: Callable[[OpenAISession, int], Awaitable[R]],
        check: Callable[[OpenAISession], Awaitable[None]],
    ) -> list[R | Fault]:
        """Return the result for each prompt; `check` comes first and may refuse them all."""

        async def each() -> list[R | Fault]:
            session = self._session()
            try:
                await check(session)
            except (Refused, BadAnswer) as error:
                return [session.fault_of(error)] * len(prompts)
            results: dict[int, R | Fault] = {}
            todo = iter(range(len(prompts)))

            async def work() -> None:
                for at in todo:
                    try:
                        results[at] = await one(session, at)
                    except (Refused, BadAnswer) as error:
                        results[at] = session.fault_of(error)

            # One mistake, or the caller's change of mind, ends them all.
            await together([work() for _ in range(min(len(prompts), _AHEAD * self.config.concurrency))])
            return [results[at] for at in range(len(prompts))]

        return await on_http_loop(each()) if prompts else []

    def _session(self) -> OpenAISession:
        pid = os.getpid()
        if pid not in self._sessions:
            self._sessions[pid] = OpenAISession(self.config)
        return self._sessions[pid]


def _let_go(sessions: dict[int, OpenAISession]) -> None:
    if (session := sessions.pop(os.getpid(), None)) is not None:
        asyncio.run_coroutine_threadsafe(session.close(), http_loop())


def _refuse_continuation(prompts: Sequence[Prompt]) -> None:
    for prompt in prompts:
        if not isinstance(prompt, str) and prompt and prompt[-1].get("role") == "assistant":
            raise ValueError(
                "a chat ends with an assistant's turn, and the OpenAI protocol cannot continue one; end with a user's "
                "turn, set dialect='vllm' if the server understands `continue_final_message`, or use an embedded engine"
            )


async def _need_vllm(session: OpenAISession) -> None:
    if await session.dialect() != "vllm":
        raise ValueError(
            "the OpenAI protocol has no classifiers; use a vLLM server started with `--runner pooling` (dialect='vllm' "
            "if it stands behind a proxy), or an embedded engine"
        )
