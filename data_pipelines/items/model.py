"""The model that writes items: asked in keyed templates, read strictly, and never guessed for.

An engine that is gone stops the job; whatever befalls a single prompt is a reason on the unit's account: `unparsable`,
`truncated`, `too_long`, `engine_error`.

Not covered: what an answer means; readers are in `adjudge.data_pipelines.items.json_answers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from adjudge.data_pipelines.items.account import Account, Unusable
from adjudge.data_pipelines.items.config import AskingConfig
from adjudge.engines.interface import Engine, Fault, Sampling
from adjudge.engines.model_digest import is_folder
from adjudge.io.jobs.engines import engine_named, stop_if_gone
from adjudge.prompts.asking import Answer, Reader, Retry, ask, cost_of
from adjudge.prompts.template import Value, load_template

T = TypeVar("T")

_REASONS = {"judge_unparsable": "unparsable", "judge_truncated": "truncated"}
_AGAIN = 0.7  # temperature of further attempts: at 0 a model would say the same


@dataclass(frozen=True, kw_only=True)
class Model:
    """An engine and how it is asked.

    Attributes:
        engine: the engine.
        sampling: how it answers.
        attempts: how often it is asked at most.
    """

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

        Args:
            template: name of the template.
            values: what fills it, for each prompt.
            read: reads an answer.
            account: takes reasons and costs.

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
            Unusable: nothing was read.
            JobError: the engine is gone.
        """
        (found,) = await self.ask(template, [values], read, account)
        if found is None:
            raise Unusable("no_answer")
        return found

    def _value(self, answer: Answer[T] | Fault, account: Account) -> T | None:
        if isinstance(answer, Answer):
            return answer.value
        stop_if_gone(self.engine, answer)
        account.drop("too_long" if answer.too_long else _REASONS.get(answer.reason, "engine_error"))
        return None
