"""The Lean scorer that asks a server: Kimina Lean Server, or another with one of its two interfaces.

| `api` | sent | read |
|---|---|---|
| "check" | /api/check `{"snippets": [{"id", "code"}], "timeout"}` | `{"results": [{"id", "error", "response"}]}` |
| "verify" | /verify `{"codes": [{"custom_id", "proof"}], "timeout"}` | the same with `custom_id` |

The files are those of `adjudge.verifiers.proofs.lean_source`, one in each request.  A response that breaks the server
while the reference passes, twice, is worth 0: it cannot buy its way out.

Not covered: keeping what Lean runs away from the server's machine; run the server in a container.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from adjudge.engines.http_client import Circuit, JsonClient, Refusal, Retry
from adjudge.engines.interface import Fault
from adjudge.fingerprints import fingerprint_of
from adjudge.options import Range, check_options
from adjudge.protocol import Sample, Score, response_text
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.verifier_base import Reasoning, Truncated, graded_text, refuse_mistakes
from adjudge.verifiers.proofs.lean_source import (
    LeanFile,
    Message,
    MessageError,
    answered,
    gold_fault,
    gold_file,
    read_lean,
    read_messages,
    verdict,
)

_TIMED_OUT = "timed out"  # in the error of a file that took too long
_MAX_BYTES = 16 << 20


class _UnreadError(Exception):
    """No messages came back.

    `reason` is a code of `adjudge.reasons.OURS`; `told` says whether the server itself said so, about this file.
    """

    def __init__(self, reason: str, detail: str, told: bool) -> None:
        super().__init__(detail)
        self.reason = reason
        self.told = told


@dataclass(frozen=True, kw_only=True)
class LeanServerScorer:
    """1 when the Lean server accepts the response's proof of the pinned theorem, else 0.

    The reference is that of `lean`: `{"header": imports and definitions, "statement": "theorem t : ..."}`, optional
    `axioms`.

    Attributes:
        url: where the server is: "http://localhost:8000".
        api: "check" for /api/check, "verify" for the older /verify.
        key_variable: environment variable that holds the server's key; "" for none.
        reuse: whether the server may take a Lean that has read the same header before.
        reasoning: "strip" looks only at what follows the end-of-thinking tag; "keep" at all of it.
        truncated: a response with `finish_reason="length"` is worth 0 ("zero") or is graded ("grade").
        seconds: Lean's time for one file.
        concurrency: files under way at once.
        attempts: how often a request is sent at most.
    """

    name: ClassVar[str] = "lean_server"
    version: ClassVar[str] = "2"
    needs_reference: ClassVar[bool] = True

    url: str
    api: Literal["check", "verify"] = "check"
    key_variable: str = ""
    reuse: bool = True
    reasoning: Reasoning = "strip"
    truncated: Truncated = "zero"
    seconds: Annotated[int, Range(ge=1, le=3600)] = 60
    concurrency: Annotated[int, Range(ge=1, le=1024)] = 16
    attempts: Annotated[int, Range(ge=1, le=20)] = 3

    def __post_init__(self) -> None:
        check_options(self, "lean_server option")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"lean_server option url={self.url!r}; give one like http://localhost:8000")
        if self.key_variable and not os.environ.get(self.key_variable):
            raise ValueError(f"lean_server: the environment variable {self.key_variable!r} holds no key; set it")

    @cached_property
    def fingerprint(self) -> str:
        """Name, version and the options that can change a score."""
        return fingerprint_of(self, without=("concurrency", "attempts", "key_variable"))

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the reference is missing or not of the form this scorer takes."""
        refuse_mistakes(self.name, sample, lambda: read_lean(sample.reference))

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order."""
        if not samples:
            return []
        call = _Call(self)
        try:
            return list(await asyncio.gather(*(call.score(sample) for sample in samples)))
        finally:
            await call.client.close()


class _Call:
    """One call of the scorer: its connections, and what the server said of each reference."""

    def __init__(self, scorer: LeanServerScorer) -> None:
        key = os.environ.get(scorer.key_variable, "") if scorer.key_variable else ""
        self.scorer = scorer
        self.client = JsonClient(
            secret=key,
            concurrency=scorer.concurrency,
            # The header may take as long again; then the server's own limit passes first.
            timeout=2 * scorer.seconds + 30,
            deadline=scorer.attempts * (2 * scorer.seconds + 30),
            max_bytes=_MAX_BYTES,
            retry=Retry(attempts=scorer.attempts, first_pause=0.2, longest_pause=5.0),
            circuit=Circuit(),
            trust_env=urlsplit(scorer.url).hostname not in ("localhost", "127.0.0.1", "::1"),
        )
        self._golds: dict[LeanFile, asyncio.Task[str]] = {}

    async def score(self, sample: Sample) -> Score:
        """Return the verdict on one response."""
        try:
            theorem = read_lean(sample.reference)
            gold = gold_file(theorem)
        except BadReferenceError as error:
            return Score.failed("gold_unparsable", error=str(error))
        try:
            if fault := await self._gold(gold):
                return Score.failed("gold_unparsable", error=fault)
        except _UnreadError as error:
            timeout = error.reason == "engine_timeout" and error.told
            return Score.failed("gold_timeout" if timeout else error.reason, error=str(error))
        text, fault = graded_text(sample, self.scorer.reasoning, self.scorer.truncated)
        start = response_text(sample).rindex(text)
        ready = Score.scored(0.0, fault, stage="extract") if fault else answered(text, theorem, start)
        if isinstance(ready, Score):
            return ready
        try:
            return verdict(await self._messages(ready), ready, theorem.axioms)
        except _UnreadError as error:
            return await self._broken(gold, ready, theorem.axioms, error)

    async def _broken(self, gold: LeanFile, ready: LeanFile, axioms: Sequence[str], error: _UnreadError) -> Score:
        """Return the score of a file that brought no messages: is it the file, or the server?"""
        if error.told and error.reason == "engine_timeout":
            return Score.scored(0.0, "candidate_timeout", stage="compile", error=str(error))
        try:
            if fault := gold_fault(await self._messages(gold), gold.key):
                return Score.failed("engine_error", error=f"{error}; then the reference was refused: {fault}")
        except _UnreadError as again:
            return Score.failed(again.reason, error=str(again))
        try:
            return verdict(await self._messages(ready), ready, axioms)
        except _UnreadError as again:
            if again.reason == "engine_overloaded":  # says nothing about this file
                return Score.failed(again.reason, error=str(again))
            return Score.scored(0.0, "candidate_crash", stage="compile", error=str(again))

    async def _gold(self, gold: LeanFile) -> str:
        if gold not in self._golds:

            async def ask() -> str:
                return gold_fault(await self._messages(gold), gold.key)

            self._golds[gold] = asyncio.ensure_future(ask())
        return await asyncio.shield(self._golds[gold])  # many samples wait for one reference

    async def _messages(self, file: LeanFile) -> list[Message]:
        """Return what Lean says of a file.

        Raises:
            _UnreadError: there is no such thing.
        """
        check = self.scorer.api == "check"
        code = {"id": file.key, "code": file.source} if check else {"custom_id": file.key, "proof": file.source}
        reuse = {"reuse": self.scorer.reuse} if check else {"disable_cache": not self.scorer.reuse}
        body = {"snippets" if check else "codes": [code], "timeout": self.scorer.seconds, **reuse}
        address = self.scorer.url.rstrip("/") + ("/api/check" if check else "/verify")
        answer = await self.client.post(address, body)
        if isinstance(answer, Refusal):
            raise _UnreadError("engine_error", f"status {answer.status}: {answer.fault.detail}", told=False)
        if isinstance(answer, Fault):
            raise _UnreadError(answer.reason, answer.detail, told=False)
        results = answer.body.get("results")
        result = results[0] if isinstance(results, list) and len(results) == 1 else None
        if not isinstance(result, Mapping) or str(result.get("id" if check else "custom_id")) != file.key:
            raise _UnreadError("engine_error", "the server's answer is not about the file that was sent", told=False)
        if error := result.get("error"):
            late = _TIMED_OUT in str(error)
            raise _UnreadError("engine_timeout" if late else "engine_error", str(error)[:500], told=True)
        response = result.get("response")
        if not isinstance(response, Mapping) or "message" in response:
            said = response.get("message") if isinstance(response, Mapping) else response
            raise _UnreadError("engine_error", f"Lean's answer is not a list of messages: {said!r:.300}", told=True)
        try:
            return read_messages(response.get("messages"))
        except MessageError as error:
            raise _UnreadError("engine_error", str(error), told=True) from error
