"""Going on from a prefix: whoever writes the rest of a solution.

Not covered: which of the ends are right (`ends`), and how many rollouts a row may cost (`spending`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from adjudge.engines.interface import Completion, Engine, Fault, Generation, Prompt, Sampling
from adjudge.io.errors import JobError
from adjudge.io.jobs.engines import GONE
from adjudge.protocol import Message

_DRAWS = 1 << 16  # of one prefix; the seeds of two configurations stay apart


class Completer(Protocol):
    """Writes the rest of a solution."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same prefix could get other completions."""
        ...

    async def complete(self, prompt: str | Sequence[Message], prefix: str, *, first: int, n: int) -> Generation | Fault:
        """Return draws `first` to `first + n - 1` of a prefix; the text of each goes on behind the prefix.

        They depend on the prompt, the prefix and these numbers alone.

        Raises:
            JobError: the model is gone.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class EngineCompleter:
    """An engine that continues.

    Attributes:
        engine: the language model.
        sampling: how it writes; `n` and `seed` are set for each prefix.
        chat: the prompt is a user's turn and the prefix the beginning of the assistant's; else both are plain text.
    """

    engine: Engine
    sampling: Sampling
    chat: bool = True

    @property
    def fingerprint(self) -> str:
        """The engine's, with all that shapes what it writes."""
        return f"{self.engine.fingerprint} {self.sampling} chat={self.chat}"

    async def complete(self, prompt: str | Sequence[Message], prefix: str, *, first: int, n: int) -> Generation | Fault:
        """Return completions behind the prefix.

        Blanks at the prefix's end are not shown to the model, whose tokens begin with them; where it writes them, they
        are taken off.
        """
        shown = prefix.rstrip(" \t")
        seed = self.sampling.seed * _DRAWS + first
        try:
            (found,) = await self.engine.generate([self._asked(prompt, shown)], replace(self.sampling, n=n, seed=seed))
        except ValueError as error:  # the engine says that it cannot do this at all
            raise JobError(f"the engine {self.engine.name!r} cannot go on from a prefix: {error}") from error
        if isinstance(found, Fault):
            if found.reason in GONE:
                raise JobError(
                    f"the engine {self.engine.name!r} with the model {self.engine.model!r} is gone "
                    f"({found.reason}: {found.detail})"
                )
            return found
        if shown == prefix:
            return found
        return replace(found, completions=tuple(map(_without_blanks, found.completions)))

    def _asked(self, prompt: str | Sequence[Message], prefix: str) -> Prompt:
        if not self.chat:
            return f"{prompt}{prefix}"
        turns: list[Any] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        return [*turns, {"role": "assistant", "content": prefix}] if prefix else turns


def _without_blanks(completion: Completion) -> Completion:
    return replace(completion, text=completion.text.lstrip(" \t"))
