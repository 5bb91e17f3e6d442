"""`engine: policy`: the policy that a run trains, as an engine for the run's own scorers.

A scorer names it before there is a run, and asks it while there is one: `LearningPolicy` hands calls on to the engine
that the run has put in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from adjudge.engines.interface import (
    Engine,
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

NAME: Final = "policy"


class LearningPolicy:
    """The policy of the run that is under way in this process; its calls raise `ValueError` where none is."""

    def __init__(self) -> None:
        self._engine: Engine | None = None

    def __reduce__(self) -> str:
        return "LEARNING_POLICY"

    @contextmanager
    def standing_for(self, engine: Engine) -> Iterator[None]:
        """Inside, calls go to this engine."""
        before, self._engine = self._engine, engine
        try:
            yield
        finally:
            self._engine = before

    @property
    def name(self) -> str:
        """Return "policy"."""
        return NAME

    @property
    def model(self) -> str:
        """The policy's name; "policy" where no run is under way."""
        return NAME if self._engine is None else self._engine.model

    @property
    def fingerprint(self) -> str:
        """Return "policy": its weights change with each update, so scores by it are valid for none but their run."""
        return NAME

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """What the tokenizer takes for a token of its own; none where no run is under way."""
        return getattr(self._engine, "special_tokens", ())

    async def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Generation | Fault]:
        """Return completions by the policy."""
        return await self._run().generate(prompts, sampling)

    async def label_logprobs(self, prompts: Sequence[Prompt], labels: Labels) -> list[LabelLogprobs | Fault]:
        """Return how likely each label comes next."""
        return await self._run().label_logprobs(prompts, labels)

    async def reference_logprobs(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[TextLogprobs | Fault]:
        """Return how likely each text is after its prompt."""
        return await self._run().reference_logprobs(prompts, texts)

    async def classify(self, prompts: Sequence[Prompt]) -> list[Logits | Fault]:
        """Raise `ValueError`: a policy is no classifier."""
        return await self._run().classify(prompts)

    async def classify_tokens(self, prompts: Sequence[Row]) -> list[TokenLogits | Fault]:
        """Raise `ValueError`: a policy is no classifier."""
        return await self._run().classify_tokens(prompts)

    async def close(self) -> None:
        """Do nothing: the policy is its run's."""

    def _run(self) -> Engine:
        if self._engine is None:
            raise ValueError(
                "engine: policy is the policy that a run trains, and no run is under way here; it is for the reward of "
                "`adjudge train policy`, elsewhere name a model, such as transformers:MODEL"
            )
        return self._engine


LEARNING_POLICY: Final = LearningPolicy()


def names_policy(spec: Any) -> bool:
    """Return whether a spec of a scorer asks the policy that learns, anywhere in it."""
    if spec is LEARNING_POLICY:
        return True
    if isinstance(spec, Mapping):
        return any(
            (value == NAME and str(key).endswith("engine")) or names_policy(value) for key, value in spec.items()
        )
    if isinstance(spec, list | tuple):
        return any(map(names_policy, spec))
    return getattr(spec, "engine", None) in (NAME, LEARNING_POLICY)
