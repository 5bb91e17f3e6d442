"""The model that writes items: asked in keyed templates, read strictly, and never guessed for.

The object that it is asked for repeats the key of the prompt's last block, which no text in the prompt can hold.  So an
object that a passage holds, and that a model copies, is not taken for its answer.

An engine that is gone stops the job; whatever befalls a single prompt is a reason on the unit's account: `unparsable`,
`truncated`, `too_long`, `engine_error`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from adjudge.data_pipelines.items.config import AskingConfig
from adjudge.engines.interface import Engine, Fault, Sampling
from adjudge.engines.model_digest import is_folder
from adjudge.io.jobs.engines import engine_named, stop_if_gone
from adjudge.io.jobs.maker import DroppedError
from adjudge.io.jobs.row_maker import Account
from adjudge.prompts.asking import Answer, Reader, Retry, ask, cost_of
from adjudge.prompts.reading import json_object
from adjudge.prompts.template import Value, load_template
from adjudge.protocol import Message

KEY = "key"
"""Under which an answer repeats the prompt's key."""

LONGEST = 1_000
"""Characters of one item; rubrics, nuggets and principles are sentences."""


def keyed_object(text: str, nonce: str, keys: Mapping[str, type]) -> dict[str, Any] | None:
    """Return the last JSON object of a text if it has the key and exactly the declared others, or None."""
    found = json_object(text, {KEY: str, **keys})
    if found is None or not nonce or found.pop(KEY) != nonce:
        return None
    return found


def numbered_turns(role: str, texts: Sequence[str]) -> list[Message]:
    """Return texts as turns of one block, each headed by its role and number, and by the block's key."""
    return [{"role": f"{role}_{number}", "content": text} for number, text in enumerate(texts, start=1)]


def is_text(value: Any, longest: int = LONGEST) -> bool:
    """Return whether a value is a text that is neither blank nor longer than allowed."""
    return isinstance(value, str) and bool(value.strip()) and len(value) <= longest


@dataclass(frozen=True, slots=True, kw_only=True)
class TextsReader:
    """Reads `{"key": .., NAME: ["..", ..]}`.

    Attributes:
        name: the key of the list.
        most: most texts there may be.
        labels: the texts there may be; () for any.
        count: how many there must be; None for any number.
    """

    name: str
    most: int
    labels: tuple[str, ...] = ()
    count: int | None = None

    def __call__(self, text: str, nonce: str = "", /) -> tuple[str, ...] | None:
        """Return the texts, without white space around them, or None."""
        found = keyed_object(text, nonce, {self.name: list})
        if found is None or len(found[self.name]) > self.most:
            return None
        if not all(is_text(one) for one in found[self.name]):
            return None
        texts = tuple(one.strip() for one in found[self.name])
        if self.labels and not all(one in self.labels for one in texts):
            return None
        return texts if self.count in (None, len(texts)) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsReader:
    """Reads `{"key": .., NAME: [{FIELD: "..", ..}, ..]}`.

    Attributes:
        name: the key of the list.
        fields: what each record has: exactly these, each a text.
        most: most records there may be.
        labels: for a field, the texts it may hold.
    """

    name: str
    fields: tuple[str, ...]
    most: int
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __call__(self, text: str, nonce: str = "", /) -> tuple[dict[str, str], ...] | None:
        """Return the records, or None."""
        found = keyed_object(text, nonce, {self.name: list})
        if found is None or len(found[self.name]) > self.most:
            return None
        records = []
        for record in found[self.name]:
            if not isinstance(record, dict) or set(record) != set(self.fields):
                return None
            if not all(is_text(value) for value in record.values()):
                return None
            made = {field: record[field].strip() for field in self.fields}
            if any(made[field] not in allowed for field, allowed in self.labels):
                return None
            records.append(made)
        return tuple(records)


T = TypeVar("T")

_REASONS = {"judge_unparsable": "unparsable", "judge_truncated": "truncated"}
_AGAIN = 0.7  # temperature of further attempts: at 0 a model would say the same


@dataclass(frozen=True, kw_only=True)
class Model:
    """An engine and how it is asked."""

    engine: Engine
    sampling: Sampling
    attempts: int = 3

    @classmethod
    def of(cls, config: AskingConfig, engine: Engine | None = None) -> Model:
        """Return the model that a config names, or one around a given engine."""
        sampling = Sampling(max_tokens=config.max_tokens, temperature=config.temperature, seed=config.seed)
        found = engine if engine is not None else engine_named(config.engine)
        return cls(engine=found, sampling=sampling, attempts=config.attempts)

    @property
    def called(self) -> str:
        """The engine's kind and the model's name; of a folder, its own name alone."""
        model = self.engine.model
        return f"{self.engine.name}:{Path(model).name if is_folder(model) else model}"

    async def ask(
        self, template: str, values: Sequence[Mapping[str, Value]], read: Reader[T], account: Account
    ) -> list[T | None]:
        """Return what was read from each answer, in order; None where a reason went on the account.

        Raises:
            JobError: the engine is gone.
        """
        special = tuple(getattr(self.engine, "special_tokens", ()))
        made = load_template(template)
        prompts = [made.render(one, special=special) for one in values]
        retry = Retry(attempts=self.attempts, temperature=max(_AGAIN, self.sampling.temperature))
        answers = await ask(self.engine, prompts, self.sampling, read, retry=retry)
        account.cost += cost_of(answers)
        account.counts["asked"] += len(prompts)
        return [self._value(answer, account) for answer in answers]

    async def ask_one(self, template: str, values: Mapping[str, Value], read: Reader[T], account: Account) -> T:
        """Return what was read from the answer to one prompt.

        Raises:
            DroppedError: nothing was read.
            JobError: the engine is gone.
        """
        (found,) = await self.ask(template, [values], read, account)
        if found is None:
            raise DroppedError("no_answer")
        return found

    def _value(self, answer: Answer[T] | Fault, account: Account) -> T | None:
        if isinstance(answer, Answer):
            return answer.value
        stop_if_gone(self.engine, answer)
        account.drop("too_long" if answer.too_long else _REASONS.get(answer.reason, "engine_error"))
        return None
