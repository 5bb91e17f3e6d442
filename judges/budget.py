"""Budget forcing: a model that wants to stop thinking is told to wait, and goes on.

`BudgetForced` wraps an engine.  Each completion is cut where the thinking ends (at its end-of-thinking tag, else
before the line with the verdict), "Wait" is put behind it, and the model continues its own turn.  After
`times` such extensions its text stands as it is.  Source: simple test-time scaling for judges (arXiv 2505.11875),
after s1 (arXiv 2501.19393).

Not covered: engines that cannot continue an assistant's turn; they say so.  Probabilities are read without thinking,
and so are choices that are forced, so nothing is extended there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from adjudge.engines.interface import Completion, Engine, Fault, Generation, Prompt, Sampling
from adjudge.finish import finished
from adjudge.protocol import NO_COST, THINK_END, Cost, Message

WAIT = "Wait"
MAX_TOKENS = 32_768  # once a completion has so many tokens it is extended no further


@dataclass(frozen=True, kw_only=True)
class BudgetForced:
    """An engine that thinks longer; all but `generate` and the fingerprint is that of the engine inside.

    Attributes:
        engine: the engine that does the work.
        times: how many times a completion is extended.
        form: the form of the verdict, as `adjudge.prompts.reading` takes it; thinking without a tag is cut before it.
    """

    engine: Engine
    times: int
    form: str = ""

    @property
    def fingerprint(self) -> str:
        """The engine's, with the options."""
        return f"{self.engine.fingerprint}+wait:{self.times}:{WAIT!r}:{self.form!r}:{MAX_TOKENS}"

    async def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Generation | Fault]:
        """Return completions of prompts, each extended `times` times; its tokens are those of all its pieces."""
        results = await self.engine.generate(prompts, sampling)
        if sampling.choice:  # nothing is thought there
            return results
        rows: list[list[Completion] | Fault] = []
        costs: list[Cost] = []
        for result in results:
            rows.append(result if isinstance(result, Fault) else list(result.completions))
            costs.append(NO_COST if isinstance(result, Fault) else result.cost)
        for _ in range(self.times):
            for index in range(sampling.n):
                await self._extend(prompts, rows, costs, index, replace(sampling, n=1, seed=sampling.seed + index))
        return [
            row if isinstance(row, Fault) else Generation(completions=tuple(row), cost=cost)
            for row, cost in zip(rows, costs, strict=True)
        ]

    async def _extend(
        self,
        prompts: Sequence[Prompt],
        rows: list[list[Completion] | Fault],
        costs: list[Cost],
        index: int,
        sampling: Sampling,
    ) -> None:
        """Extend completion `index` of every prompt by one piece; a fault takes the place of the whole row."""
        places, begun, starts = [], [], []
        for place, row in enumerate(rows):
            if isinstance(row, Fault) or row[index].tokens >= MAX_TOKENS or not finished(row[index].finish_reason):
                continue
            start = f"{thinking(row[index], self.form)}\n{WAIT}"
            places.append(place)
            starts.append(start)
            begun.append(_continued(prompts[place], start))
        results = await self.engine.generate(begun, sampling) if begun else []
        for place, start, result in zip(places, starts, results, strict=True):
            row = rows[place]
            if isinstance(result, Fault):
                rows[place] = result
            elif isinstance(row, list):
                (piece,) = result.completions
                start += f"{piece.reasoning.rstrip()}\n{THINK_END[0]}\n\n" if piece.reasoning else ""
                row[index] = replace(
                    piece, text=start + piece.text, reasoning="", tokens=row[index].tokens + piece.tokens
                )
                costs[place] += result.cost

    def __getattr__(self, name: str) -> Any:
        """All else is the engine's own."""
        if name.startswith("__") or name == "engine":  # a copy that is being made has no engine yet
            raise AttributeError(name)
        return getattr(self.engine, name)


def thinking(completion: Completion, form: str = "") -> str:
    """Return the part of a completion that comes before its answer.

    The engine's separate reasoning where there is one, put behind a `<think>` tag so that the model goes on with it;
    else the text before the last end-of-thinking tag; else the text before the line with the last verdict of this
    form; else all of it.
    """
    if completion.reasoning:
        return f"<think>\n{completion.reasoning.rstrip()}"
    text = completion.text
    end = max(text.rfind(tag) for tag in THINK_END)
    if end >= 0:
        return text[:end].rstrip()
    opening = form.partition("{")[0].strip()
    verdict = text.casefold().rfind(opening.casefold()) if opening else -1
    return text[: text.rfind("\n", 0, verdict) + 1].rstrip() if verdict >= 0 else text.rstrip()


def _continued(prompt: Prompt, start: str) -> Prompt:
    if isinstance(prompt, str):
        return prompt + start
    turns: list[Message] = list(prompt)
    if turns and turns[-1].get("role") == "assistant":
        start = f"{turns.pop().get('content', '')}{start}"
    return [*turns, {"role": "assistant", "content": start}]
