"""Groups of answers for tests of rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from adjudge.data_pipelines.pairs.rule import Answer, Pair, Rule, ScoredGroup


def scored(*scores: float | None, texts: Sequence[str] = (), name: str = "g", seed: int = 0) -> ScoredGroup:
    """Answers "a", "b", ... with these scores."""
    words = texts or [chr(ord("a") + number) for number in range(len(scores))]
    answers = [
        Answer(id=str(number), text=text, score=score, place=number)
        for number, (text, score) in enumerate(zip(words, scores, strict=True))
    ]
    return ScoredGroup(name=name, prompt="Which?", answers=tuple(answers), seed=seed)


def rows(*found: Mapping[str, Any], prompt: str = "Which?") -> ScoredGroup:
    """Answers with further columns; "text" and "score" are the answer's own."""
    answers = [
        Answer(id=str(number), text=row.get("text", ""), score=row.get("score"), place=number, row=row, judged=row)
        for number, row in enumerate(found)
    ]
    return ScoredGroup(name="g", prompt=prompt, answers=tuple(answers))


def sides(pairs: Iterable[Pair]) -> list[str]:
    """Each pair as "chosen>rejected", sorted."""
    return sorted(f"{chosen}>{rejected}" for chosen, rejected in (pair.texts for pair in pairs))


def made(rule: Rule, group: ScoredGroup) -> list[Pair]:
    """The pairs of a group."""
    return list(rule.pairs(group))
