"""Reading documents through an engine: what does not fit is split, what is refused is asked about again.

The logits of a document are the largest of each category over its windows.  A response that the engine refuses twice,
though it takes a harmless one in its place, is itself at fault (`Reading.refused`): nobody buys a failed score with a
text that a model cannot take.  An engine that is gone is nobody's fault but ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adjudge.engines.interface import Engine, Fault, Logits
from adjudge.protocol import NO_COST, Cost
from adjudge.reward_models.safety.documents import Document, Stretch

_HARMLESS = "Yes."
_PATIENCE = 3  # harmless texts in a row that an engine does not take: then it is broken


@dataclass(slots=True, kw_only=True)
class Reading:
    """A document on its way to its logits, in windows of so many characters, 0 for as many as fit.

    Attributes:
        read_logits: the logits of each stretch that was read.
        fault: why it could not be read, and not by its own doing.
        refused: why its response could not be read, though others could.
        asked: shorter stretches that were asked for.
    """

    document: Document
    window: int
    overlap: int
    read_logits: dict[Stretch, tuple[float, ...]] = field(default_factory=dict)
    fault: Fault | None = None
    refused: str = ""
    cost: Cost = NO_COST
    asked: set[Stretch] = field(default_factory=set)

    def is_new(self, stretch: Stretch) -> bool:
        """Whether a stretch was not asked for yet; from now on it was.  Two windows may put the same prompt aside."""
        before = len(self.asked)
        self.asked.add(stretch)
        return len(self.asked) > before

    def take(self, stretch: Stretch, result: Logits) -> None:
        """Keep what the model said of a stretch."""
        self.read_logits[stretch] = result.values
        self.cost += result.cost

    @property
    def windows(self) -> int:
        """How many stretches were read."""
        return len(self.read_logits)

    @property
    def logits(self) -> list[float]:
        """The largest logit of each category."""
        return [max(column) for column in zip(*self.read_logits.values(), strict=True)]

    @property
    def is_apart(self) -> bool:
        """Whether a part of the response was read without the prompt before it, though both are judged."""
        return self.document.view == "both" and any(not stretch.context for stretch in self.read_logits)

    def where(self, counted: Sequence[int]) -> dict[str, Any]:
        """Return the worst window: whose text it is of, and its place among the characters of the escaped text."""
        worst = max(self.read_logits, key=lambda stretch: max(self.read_logits[stretch][place] for place in counted))
        return {"of": worst.side, "start": worst.start, "end": worst.start + len(worst.text)}


_Asked = tuple[Reading, Stretch]


async def read(readings: Sequence[Reading], engine: Engine, outputs: int, *, splits: bool) -> None:
    """Read documents through an engine of so many logits; what is known of them stands in the readings then.

    What does not fit is read in windows if `splits`; else it is a fault.

    Raises:
        ValueError: the engine gives more or fewer logits, or cannot classify.
    """
    waiting = [(one, stretch) for one in readings for stretch in one.document.stretches(one.window, one.overlap)]
    refused: list[_Asked] = []
    while waiting:
        results = await _classified(waiting, engine, outputs)
        parts: list[_Asked] = []
        for (one, stretch), result in zip(waiting, results, strict=True):
            if isinstance(result, Logits):
                one.take(stretch, result)
            elif result.too_long:
                shorter = one.document.shorter(stretch, one.overlap) if splits else []
                parts += [(one, part) for part in shorter]
                if not shorter:
                    one.fault = replace(result, too_long=not splits)  # with windows: not even one character fits
            elif result.reason == "engine_error":
                refused.append((one, stretch))
            else:
                one.fault = result
        waiting = [(one, part) for one, part in parts if one.fault is None and one.is_new(part)]
    await _ask_again(refused, engine, outputs)


async def _ask_again(refused: Sequence[_Asked], engine: Engine, outputs: int) -> None:
    """Ask for each stretch by itself, and find out whether it or the engine is at fault."""
    broken: list[Fault] = []
    for one, stretch in refused:
        if one.fault is not None or one.refused:
            continue
        if len(broken) == _PATIENCE:
            one.fault = broken[-1]
            continue
        (result,) = await _classified([(one, stretch)], engine, outputs)
        if isinstance(result, Logits):
            one.take(stretch, result)
            continue
        (other,) = await _classified([(one, replace(stretch, text=_HARMLESS, whole=False))], engine, outputs)
        if isinstance(other, Logits) and stretch.side == "response":
            one.refused, broken = result.detail, []
        else:
            one.fault = replace(result, too_long=False)
            broken = [*broken, one.fault] if isinstance(other, Fault) else []


async def _classified(asked: Sequence[_Asked], engine: Engine, outputs: int) -> list[Logits | Fault]:
    results = await engine.classify([one.document.shown(stretch) for one, stretch in asked])
    if len(results) != len(asked):
        raise RuntimeError(f"the engine {engine.name!r} gave {len(results)} results for {len(asked)} texts")
    return [_finite(result, outputs) for result in results]


def _finite(result: Logits | Fault, outputs: int) -> Logits | Fault:
    if isinstance(result, Fault):
        return result
    if len(result.values) != outputs:
        raise ValueError(
            f"the model gave {len(result.values)} logits, and there are {outputs} categories; name each output of the "
            "model, in order, with `categories`"
        )
    if not all(map(math.isfinite, result.values)):
        return Fault(reason="engine_error", detail="the model gave numbers that are not finite")
    return result
