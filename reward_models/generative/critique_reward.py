"""A model that writes a critique of the response and then scores it with that in view (CLoud, MM-RLHF).

    reward = mean over K critiques of head(prompt, response, request, critique)

One checkpoint does both: a language model with a head beside it, as `adjudge train critique` writes it.  The request,
the length of critiques and the normaliser stand in its notes.  Sources: arXiv 2408.11791, arXiv 2502.10391.

A critique that was cut off, refused or left empty is not scored: the head was trained at the ends of whole ones.

Not covered: a critic and a scorer that are two models, and heads of several numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from adjudge.engines.checkpoint_notes import CheckpointNotes, Normalizer
from adjudge.engines.interface import Fault, Generation, Sampling
from adjudge.finish import finished
from adjudge.options import Count, Range
from adjudge.prompts.asking import NoVerdict
from adjudge.prompts.scorer import mean_and_error, shortened
from adjudge.protocol import NO_COST, Cost
from adjudge.reward_models.generative.assistant_turn import own_turn
from adjudge.reward_models.scalar.checkpoint import OneModel
from adjudge.reward_models.scalar.reward_scorer import Rating, RewardScorer, Turns, Unratable

_TOKENS = 512  # of a critique, where the checkpoint does not say


@dataclass(frozen=True, kw_only=True)
class CritiqueReward(OneModel, RewardScorer):
    """The reward of a model that writes a critique first.  The reference is an answer to compare with, or none.

    Give `model` or `engine`.

    Attributes:
        model: a checkpoint's folder; short for `engine: transformers:FOLDER`.
        engine: a spec of an engine that writes and classifies, or an engine.
        ask: the turn that asks for the critique; "" for that of the checkpoint.
        critiques: how many are written and averaged; more than one needs a temperature.
        max_tokens: most tokens of a critique; None for what the checkpoint was trained with.
        temperature: how freely it is written.
        top_p: the share of probability that it is sampled from.
        seed: where the random numbers start.
        quorum: the share of the critiques that must be finished, in (0, 1].
        undecided: "failed" where fewer are, which is unknown; "floor" gives the reward of saying nothing, for
            training, where a policy could learn answers on which the model never comes to an end.
    """

    name: ClassVar[str] = "critique_reward"
    version: ClassVar[str] = "2"

    model: str = ""
    engine: Any = None
    ask: str = ""
    critiques: Count = 1
    max_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    quorum: Annotated[float, Range(gt=0, le=1)] = 0.5
    undecided: Literal["failed", "floor"] = "failed"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_model()
        if self.critiques > 1 and self.temperature == 0:
            raise ValueError(
                f"{self.name}: critiques={self.critiques} with temperature=0; all would be the same: set a temperature"
            )
        self._sampling(_TOKENS if self.max_tokens is None else self.max_tokens)

    @cached_property
    def notes(self) -> CheckpointNotes | None:
        """What the checkpoint says of itself; None where the engine does not show its folder."""
        folder = getattr(getattr(self.resolved(), "config", None), "model", "")
        return CheckpointNotes.read(Path(folder).expanduser()) if folder else None

    @property
    def request(self) -> str:
        """The turn that asks for the critique.

        Raises:
            ValueError: neither the options nor the checkpoint say it.
        """
        stored = self.notes.trained.get("ask") if self.notes else None
        request = self.ask or stored
        if not isinstance(request, str) or not request.strip():
            raise ValueError(
                f"{self.name}: the checkpoint does not say how a critique is asked for; give `ask`, the user's turn "
                "that it was trained with"
            )
        return request

    @property
    def scale(self) -> Normalizer:
        """Mean and standard deviation that rewards are brought to a common scale with, (0, 1) for none.

        Raises:
            ValueError: they are asked for and not stored.
        """
        return self.scale_of(lambda: self.notes.normalizer if self.notes else None)

    def check(self) -> None:
        """Raise `ValueError` if the options do not fit the model."""
        notes = self.notes
        if notes is not None:
            if notes.what != "critique" or notes.head.columns != 1:
                raise ValueError(
                    f"{self.name}: the checkpoint is a {notes.what} model with {notes.head.columns} outputs; this "
                    "scorer reads models that write a critique and give one number (`adjudge train critique`)"
                )
            notes.check_template(self.resolved().model)
        _ = self.request, self.scale

    def special_tokens(self) -> tuple[str, ...]:
        """Return what the model's tokenizer takes for tokens of its own."""
        return tuple(getattr(self.resolved(), "special_tokens", ()))

    def identity(self) -> list[Any]:
        """Return plain data that changes whenever the model could rate the same chat otherwise."""
        sampling = [
            self.critiques,
            self._tokens(),
            self.temperature,
            self.top_p,
            self.seed,
            self.quorum,
            self.undecided,
        ]
        return [self.resolved().fingerprint, self.request, sampling, list(self.scale)]

    def origin(self) -> tuple[str, str]:
        """Return the engine's name and the model's."""
        engine = self.resolved()
        return engine.name, str(engine.model)

    async def rate(self, chats: Sequence[Turns]) -> list[Rating | Fault]:
        """Return the rating of each finished chat, in order, or why there is none."""
        engine = self.resolved()
        asked = [(*chat, {"role": "user", "content": self.request}) for chat in chats]
        written = await engine.generate(asked, self._sampling(self._tokens()))
        special = self.special_tokens()
        whole: list[tuple[int, Turns, str]] = []
        for place, result in enumerate(written):
            if isinstance(result, Generation):
                ended = [one.text.strip() for one in result.completions if finished(one.finish_reason)]
                texts = [text for text in ended if text]
                turns = [{"role": "assistant", "content": own_turn(text, special=special)} for text in texts]
                whole += [(place, (*asked[place], turn), text) for turn, text in zip(turns, texts, strict=True)]
        read = await engine.classify([chat for _, chat, _ in whole]) if whole else []
        if len(written) != len(chats) or len(read) != len(whole):
            raise RuntimeError(f"the engine {engine.name!r} did not give one result for each chat")
        rows: list[list[tuple[float, str]]] = [[] for _ in chats]
        faults: dict[int, Fault] = {}
        costs: list[Cost] = [result.cost if isinstance(result, Generation) else NO_COST for result in written]
        for (place, _, text), logits in zip(whole, read, strict=True):
            if isinstance(logits, Fault):
                faults.setdefault(place, logits)
                continue
            costs[place] += logits.cost
            rows[place].append((logits.values[0], text))
        return [
            result if isinstance(result, Fault) else faults.get(place) or self._rating(rows[place], costs[place])
            for place, result in enumerate(written)
        ]

    def _rating(self, row: Sequence[tuple[float, str]], cost: Cost) -> Rating | Fault:
        if not row or len(row) < self.quorum * self.critiques:
            detail = f"{self.critiques - len(row)} of {self.critiques} critiques were cut off, refused or empty"
            if self.undecided == "floor":
                return Unratable(reason="judge_truncated", detail=detail)
            return NoVerdict(reason="judge_truncated", detail=detail, cost=cost)
        values = [value for value, _ in row]
        if not all(map(math.isfinite, values)):
            return Unratable(reason="engine_error", detail="the model gave numbers that are not finite")
        mean, std = self.scale
        reward, error = mean_and_error(values)
        return Rating(
            reward=(reward - mean) / std,
            spread=None if error is None else error / std,
            evidence={"raw": values, "critique": shortened(row[0][1]), "missing": self.critiques - len(row)},
            cost=cost,
        )

    def _tokens(self) -> int:
        stored = self.notes.trained.get("critique_tokens") if self.notes else None
        return self.max_tokens or (stored if isinstance(stored, int) else _TOKENS)

    def _sampling(self, tokens: int) -> Sampling:
        return Sampling(
            n=self.critiques, max_tokens=tokens, temperature=self.temperature, top_p=self.top_p, seed=self.seed
        )
