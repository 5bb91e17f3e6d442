"""The scorer of process reward models: every step of a response is judged in one forward pass.

Not covered: models whose verdict on a step is text (`adjudge.reward_models.generative`), and responses that call tools:
the assistant's turns are judged as one text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from adjudge.engines.interface import Engine, Fault
from adjudge.engines.loading import bind_engines, engine_of
from adjudge.protocol import Provenance
from adjudge.reward_models.process.formats import format_in_notes, format_of, spec_of
from adjudge.reward_models.process.rows import StepRow, Unfit, tokens_of
from adjudge.reward_models.process.step_format import StepFormat
from adjudge.reward_models.process.step_scorer import Judged, Solution, StepScorer, doubt


@dataclass(frozen=True, kw_only=True)
class ProcessRewardScorer(StepScorer):
    """How good the steps of a response are, by a process reward model; the least good one counts.

    `Score.steps` has each step's value (refined, if that is asked for), a label and its characters in the response;
    the evidence has the raw values, the number of steps, and what steps were made harmless.

    Attributes:
        engine: the model: "transformers:MODEL", a mapping such as `{"transformers": {"model": ..}}`, or an engine.
        format: how the model is asked: a published one ("qwen_math_prm", "math_shepherd", "rlhflow", "trl",
            "skywork", "rest_mcts", "reason_eval"), a kind with options (`{"marker": {"marker": "<step>"}}`), or
            "notes": what the checkpoint's own notes say, as those of models that adjudge trained do.
        tokenizer: the folder or name of the model's tokenizer; "" for the model's own.
    """

    name: ClassVar[str] = "process_reward"
    version: ClassVar[str] = "1"

    engine: Any
    format: Any = "notes"
    tokenizer: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        bind_engines(self, "engine")
        self.lowest  # noqa: B018 raises if the formula does not fit the format's values

    def resolved(self) -> Engine:
        """Return the engine itself; one that is given by name is shared by this process."""
        return engine_of(self.engine)

    @property
    def form(self) -> StepFormat:
        """The format itself.

        Raises:
            ValueError: the option names none, or the checkpoint has no notes that do.
        """
        return format_in_notes(self.resolved().model) if self.format == "notes" else format_of(self.format)

    @property
    def bounded(self) -> bool:
        """Whether the values of steps are probabilities."""
        return self.form.bounded

    def identity(self) -> list[Any]:
        """Return the format, the tokenizer's name, and the engine's fingerprint."""
        return [spec_of(self.form), self.tokenizer, self.resolved().fingerprint]

    def provenance(self) -> Provenance:
        """Return who gives the scores."""
        engine = self.resolved()
        return Provenance(
            scorer=self.name,
            fingerprint=self.fingerprint,
            engine=engine.name,
            revision=f"{engine.model} {self.form.kind}",
        )

    async def judge(self, solutions: Sequence[Solution]) -> list[Judged | Fault]:
        """Return what the model says about each solution, in order."""
        engine, form = self.resolved(), self.form
        rows = await asyncio.to_thread(self._rows, engine, form, solutions)
        ready = [row for row in rows if isinstance(row, StepRow)]
        readings = iter(await form.read(engine, ready) if ready else [])
        judged: list[Judged | Fault] = []
        for row in rows:
            result = next(readings) if isinstance(row, StepRow) else row
            if isinstance(result, Fault):
                judged.append(doubt(result) if isinstance(row, StepRow) else result)
            else:
                judged.append(Judged(reading=result, changed=row.changed if isinstance(row, StepRow) else ()))
        return judged

    def _rows(self, engine: Engine, form: StepFormat, solutions: Sequence[Solution]) -> list[StepRow | Fault]:
        tokens = tokens_of(engine, self.tokenizer)
        rows = [form.row(tokens, one.sample.prompt, [step.text for step in one.steps]) for one in solutions]
        return [Unfit(reason=row.reason, detail=row.detail) if isinstance(row, Fault) else row for row in rows]
