"""`engine: policy`: the very policy that learns, asked by the scorers of its run in the same process.

It reads what it read and wrote itself as it did then: a chat through its template up to where it went on, and from
there the text as it stands.  While it is asked, it is in evaluation mode and computes in its own precision, and nobody
writes with it or changes it; no random number of the run is drawn, and nothing of it stays behind.

Not covered: policies in shards, and what was thought in earlier turns of a chat whose template drops that.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NoReturn, Protocol

from adjudge.engines.interface import Fault, Logits, Prompt, Row, TokenLogits
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine
from adjudge.engines.transformers_jobs import Done
from adjudge.protocol import Message, content_text

SHARDED: Final = (
    "engine: policy asks the policy in each process by itself, and it is in shards (learning.sharding: full); set "
    "learning.sharding to none, or ask a frozen copy (engine: transformers:MODEL)"
)


class LivePolicy(Protocol):
    """What is asked."""

    model: Any
    name: str
    shards: Any

    def reading(self) -> AbstractContextManager[None]:
        """Inside, the model is in evaluation mode, and this thread's alone."""
        ...


class PolicyPrompts(PromptTokens):
    """Makes tokens of turns as the policy read and wrote them.

    Args:
        tokens: how its prompts are written, with what it is told of tools.
        texts: whether its prompts are texts; then turns are read without a template, one text behind the other.
        around: for tools that are called in tags: the texts before and behind a result, which stands in the policy's
            own turn.
    """

    def __init__(self, tokens: PromptTokens, *, texts: bool = False, around: tuple[str, str] | None = None) -> None:
        super().__init__(tokens.tokenizer, model=tokens.model, window=tokens.window, options=tokens._options)
        self._lock = tokens._lock
        self._texts = texts
        self._around = around
        begin, some = tokens.tokenizer.bos_token_id, tokens.tokenizer("a", verbose=False)["input_ids"]
        self._begin = (begin,) if texts and begin is not None and some[0] == begin else ()

    def read(
        self, prompts: Sequence[Row], *, finished: bool = False, special: bool = False
    ) -> list[tuple[int, ...] | Fault]:
        """Return the tokens of each prompt; a text begins as the tokenizer begins texts, where the policy reads texts.

        Raises:
            ValueError: there is a chat, the policy reads chats, and it has no chat template.
        """
        rows = super().read(prompts, finished=finished, special=special)
        return [row if isinstance(row, Fault) else self._begin + row for row in rows]

    def rendered(self, chat: Sequence[Message], *, finished: bool) -> str | Fault:
        """Return the text that the policy reads: of the last turns, if they are its own, as they were written."""
        own = ("assistant",) if self._around is None else ("assistant", "tool")
        at = 0 if self._texts else len(chat)
        while at and chat[at - 1].get("role") in own:
            at -= 1
        read = "" if self._texts else super().rendered(chat[:at], finished=False)
        return read if isinstance(read, Fault) else read + "".join(map(self._written, chat[at:]))

    def _written(self, turn: Message) -> str:
        before, behind = self._around if self._around is not None and turn.get("role") == "tool" else ("", "")
        return before + content_text(turn.get("content")) + behind


class PolicyEngine(TransformersEngine):
    """The policy as an engine; see `adjudge.engines.interface.Engine` for the calls.

    Args:
        policy: as it is when it is asked; None for a run that has not opened it, where scorers are made and not asked.
        prompts: makes tokens of what it is asked.
    """

    as_written: Final = True
    """The policy's own turns are read as they stand, whatever a chat template would make of their thinking."""

    def __init__(self, policy: LivePolicy | None = None, prompts: PromptTokens | None = None) -> None:
        self._policy = policy
        self._prompts = prompts
        super().__init__(TransformersConfig(model="policy"))

    def __reduce__(self) -> NoReturn:
        raise TypeError("the policy that learns is in this process alone; give scorers in others another engine")

    @property
    def name(self) -> str:
        """Return "policy"."""
        return "policy"

    @property
    def model(self) -> str:
        """The policy's name."""
        return "" if self._policy is None else self._policy.name

    @property
    def fingerprint(self) -> str:
        """The policy's name, and a number that grows with each change of its weights; of use within its run alone."""
        weights = () if self._policy is None else self._policy.model.parameters()
        return f"policy:{self.model}@{sum(value._version for value in weights)}"

    async def classify(self, prompts: Sequence[Prompt]) -> list[Logits | Fault]:
        """Raise `ValueError`: a policy has no classifier's head."""
        self._has_no_head()

    async def classify_tokens(self, prompts: Sequence[Row]) -> list[TokenLogits | Fault]:
        """Raise `ValueError`: a policy has no classifier's head."""
        self._has_no_head()

    def _has_no_head(self) -> NoReturn:
        raise ValueError("engine: policy is a language model, which has no classifier's head; name a reward model")

    def _asked_policy(self) -> LivePolicy:
        if self._policy is None:
            raise ValueError("engine: policy was asked before the run has opened its policy; look at its data alone")
        if self._policy.shards is not None:
            raise ValueError(SHARDED)
        return self._policy

    def _prepared(self) -> PromptTokens:
        self._asked_policy()
        assert self._prompts is not None, "given with the policy"
        return self._prompts

    def _placed(self) -> tuple[str, Any]:
        model = self._asked_policy().model
        return str(model.device), model

    def _run(self, job: Hashable, rows: Sequence[Hashable]) -> list[Done | Fault]:
        with self._asked_policy().reading():
            return super()._run(job, rows)
