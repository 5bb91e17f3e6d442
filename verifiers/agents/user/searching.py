"""Answers of a model that may search: it stops behind a query, reads what is found, and goes on.

A query stands in a tag, as policies of `rollouts.tools` with `style: tags` write it; what is found is a tool's turn,
which `engine: policy` reads as it does in its run.  Each answer goes on by itself, with random numbers of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from adjudge.engines.interface import Completion, Engine, Fault, Generation, Sampling
from adjudge.io.passages import Passages
from adjudge.protocol import NO_COST, Cost, Message

HOW: Final = "You may search: write <search>the words</search>, and what is found comes next."
"""What a model is told."""

_CALL_END = "</search>"
_QUERY = re.compile(r"<search>([^<]*)\Z")


@dataclass(slots=True)
class _Talk:
    """One answer: its turns so far, and the newest piece that was written, or what went wrong."""

    turns: list[Message]
    said: Completion | Fault
    searched: bool = False

    def query(self) -> str | None:
        """Return what the newest piece ends by searching for; None if it does not."""
        if isinstance(self.said, Fault) or self.said.finish_reason != "stop":
            return None
        asked = _QUERY.search(self.said.text)
        return asked[1].strip() if asked else None


async def searched(
    engine: Engine, prompts: Sequence[list[Message]], sampling: Sampling, passages: Passages, *, most: int
) -> list[Generation | Fault]:
    """Return the last pieces of `sampling.n` answers to each prompt, each of which may search `most` times."""
    piece = replace(sampling, stop=(_CALL_END,))
    costs, rows = [], []
    for prompt, one in zip(prompts, await engine.generate(prompts, piece), strict=True):
        costs.append(one.cost if isinstance(one, Generation) else NO_COST)
        said = one.completions if isinstance(one, Generation) else (one,)
        rows.append([_Talk(turns=[*prompt], said=each) for each in said])
    for turn in range(1, most + 1):
        for number in range(sampling.n):
            going = [
                (at, row[number], query)
                for at, row in enumerate(rows)
                if number < len(row) and (query := row[number].query()) is not None
            ]
            for _, talk, query in going:
                assert isinstance(talk.said, Completion)
                found = passages.found(query) or "error: the query has no words"
                own: Message = {"role": "assistant", "content": talk.said.text + _CALL_END}
                talk.searched = True
                talk.turns += [own, {"role": "tool", "content": found}]
            seed = sampling.seed + turn * sampling.n + number
            asked = [talk.turns for _, talk, _ in going]
            given = await engine.generate(asked, replace(piece, n=1, seed=seed)) if asked else []
            for (at, talk, _), made in zip(going, given, strict=True):
                talk.said = made.completions[0] if isinstance(made, Generation) else made
                costs[at] += made.cost if isinstance(made, Generation) else NO_COST
    return [_together(row, cost) for row, cost in zip(rows, costs, strict=True)]


def _together(row: Sequence[_Talk], cost: Cost) -> Generation | Fault:
    """The answers of a prompt; the first fault, but for those that searched on until their window was full."""
    full = Completion(text="", finish_reason="length")
    said = [full if isinstance(one.said, Fault) and one.said.too_long and one.searched else one.said for one in row]
    fault = next((one for one in said if isinstance(one, Fault)), None)
    return fault or Generation(completions=tuple(one for one in said if isinstance(one, Completion)), cost=cost)
