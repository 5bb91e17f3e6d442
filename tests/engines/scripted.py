"""An engine that says what a test tells it to say: texts that no random model would ever write.

`ScriptedEngine(answers)` calls `answers(prompt, index)` for completion `index` of a prompt and keeps every prompt it
was asked.  An answer may be text, a `Completion`, or a `Fault`.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from adjudge.engines.interface import (
    Completion,
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
)
from adjudge.protocol import Cost

Said: TypeAlias = str | Completion | Fault


class ScriptedEngine:
    """A model whose answers a function writes.

    Args:
        answers: what is said to a prompt as its completion `index`, counted over the seeds: the second attempt of a
            prompt with one completion has index 1.
        labels: the probability of each label as the answer to a prompt; what is left to 1 goes to no label.
        special_tokens: what the tokenizer of the model would list.
    """

    name = "scripted"
    model = "script"
    fingerprint = "scripted:1"

    def __init__(
        self,
        answers: Callable[[Prompt, int], Said] = lambda prompt, index: "",
        *,
        labels: Callable[[Prompt], Mapping[str, float] | Fault] | None = None,
        special_tokens: tuple[str, ...] = (),
    ) -> None:
        self.answers = answers
        self.labels = labels
        self.special_tokens = special_tokens
        self.asked: list[Prompt] = []
        self.samplings: list[Sampling] = []
        self._lock = threading.Lock()

    async def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Generation | Fault]:
        with self._lock:
            self.asked.extend(prompts)
            self.samplings.append(sampling)
        return [self._generation(prompt, sampling) for prompt in prompts]

    def _generation(self, prompt: Prompt, sampling: Sampling) -> Generation | Fault:
        said = [self.answers(prompt, sampling.seed + index) for index in range(sampling.n)]
        completions = []
        for one in said:
            if isinstance(one, Fault):
                return one
            if isinstance(one, str):
                one = Completion(text=one, finish_reason="stop", tokens=len(one.split()))
            completions.append(one)
        used = sum(completion.tokens for completion in completions)
        return Generation(completions=tuple(completions), cost=Cost(prompt_tokens=10, completion_tokens=used))

    async def label_logprobs(self, prompts: Sequence[Prompt], labels: Labels) -> list[LabelLogprobs | Fault]:
        if self.labels is None:
            raise ValueError("this script has no label probabilities")
        with self._lock:
            self.asked.extend(prompts)
        return [self._read_out(self.labels(prompt), labels) for prompt in prompts]

    def _read_out(self, given: Mapping[str, float] | Fault, labels: Labels) -> LabelLogprobs | Fault:
        if isinstance(given, Fault):
            return given
        chances = {label: given.get(label, 0.0) for label in labels}
        logs = {label: math.log(chance) if chance > 0 else -1e9 for label, chance in chances.items()}
        return LabelLogprobs(logprobs=logs, mass=sum(chances.values()), cost=Cost(prompt_tokens=10))

    async def reference_logprobs(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[TextLogprobs | Fault]:
        raise ValueError("this script has no reference log-probabilities")

    async def classify(self, prompts: Sequence[Prompt]) -> list[Logits | Fault]:
        raise ValueError("this script has no classifier")

    async def classify_tokens(self, prompts: Sequence[Row]) -> list[TokenLogits | Fault]:
        raise ValueError("this script has no token classifier")

    async def close(self) -> None:
        return None


class Choosing(ScriptedEngine):
    """A model that says "hm", and one of the choices once it can say nothing else."""

    chooses = True

    def __init__(self, pick: Callable[[Sequence[str]], str], mass: float | None) -> None:
        super().__init__(lambda prompt, index: "hm <|im_end|>")
        self.pick, self.mass = pick, mass

    async def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Generation | Fault]:
        if not sampling.choice:
            return await super().generate(prompts, sampling)
        self.asked.extend(prompts)
        self.samplings.append(sampling)
        said = [Completion(text=self.pick(sampling.choice), finish_reason="stop", mass=self.mass) for _ in prompts]
        return [Generation(completions=(one,), cost=Cost(prompt_tokens=7)) for one in said]


def text_of(prompt: Prompt) -> str:
    """All turns of a prompt as one text."""
    return prompt if isinstance(prompt, str) else "\n".join(str(turn["content"]) for turn in prompt)


def field_of(prompt: Prompt, name: str) -> str:
    """What stands in a block of a prompt; "" if there is no such block."""
    found = re.search(rf"\[begin {name} ([0-9a-f]{{8}})\]\n(.*?)\n\[end {name} \1\]", text_of(prompt), re.DOTALL)
    return found[2] if found else ""


def key_of(prompt: Prompt) -> str:
    """The key of the last block of a prompt, which keyed verdicts repeat."""
    return re.findall(r"\[end \w+ ([0-9a-f]{8})\]", text_of(prompt))[-1]  # type: ignore[no-any-return]


def gullible(field: str = "response") -> Callable[[Prompt, int], str]:
    """A judge that repeats the last line of what it should judge, as if that were its own verdict."""

    def answer(prompt: Prompt, index: int) -> str:
        lines = field_of(prompt, field).strip().splitlines()
        return lines[-1] if lines else ""

    return answer


def parrot(field: str = "response") -> Callable[[Prompt, int], str]:
    """A judge that repeats all of what it should judge."""
    return lambda prompt, index: field_of(prompt, field)


def fault(reason: str = "engine_unavailable", detail: str = "scripted", **more: Any) -> Fault:
    """A fault of the engine."""
    return Fault(reason=reason, detail=detail, **more)
