"""A scorer in an option of another: a judge in a verifier, a reward model in a judge of turns.

A part is given as a scorer, as a verifier, or in a spec by its name and options.  It is asked with samples made for
it, and where it has no number the whole has none, for the same reason.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge import options
from adjudge.protocol import NO_COST, Cost, Sample, Score, Scorer, Verifier
from adjudge.runtime.contract import score_checked


def options_of(cls: type[Any], body: Any, loader: Any, inner: Sequence[str]) -> dict[str, Any]:
    """Return the options of a spec for a dataclass, with scorers in the place of nested specs.

    Raises:
        ValueError: the body is no mapping, or names an option that there is not.
    """
    known = {item.name: item for item in dataclasses.fields(cls) if item.init}
    required = [
        name
        for name, item in known.items()
        if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    ]
    body = options.options_of({} if body is None else body, list(known), inside=cls.name, required=required)
    made = {key: tuple(value) if isinstance(value, list) else value for key, value in body.items()}
    return made | {name: loader.scorer(body[name]) for name in inner if body.get(name) is not None}


def part_of(given: Any, called: str) -> Scorer | None:
    """Return a scorer for an option that holds one; a verifier runs in the worker pool.

    Raises:
        ValueError: it is neither a scorer nor None, or it compares the samples of a group.
    """
    if given is None:
        return None
    if isinstance(given, Verifier):
        from adjudge.runtime.verifying import VerifierScorer

        return VerifierScorer(given)
    if not callable(getattr(given, "score", None)) or getattr(given, "groupwise", False):
        raise ValueError(
            f"{called}={given!r}; give a scorer of single responses (adjudge.load makes one of a name), or none"
        )
    scorer: Scorer = given
    return scorer


async def asked(scorer: Scorer, samples: Sequence[Sample], *, called: str) -> list[Score]:
    """Return a part's scores, one for each sample; `called` names it in errors."""
    return await score_checked(scorer, samples, called=called)


def cost_of(parts: Sequence[Score]) -> Cost:
    """Return what several scores took together."""
    return sum((part.cost for part in parts), NO_COST)


def without_number(parts: Mapping[str, Score]) -> Score | None:
    """Return the score of a whole of which a part has no number; None if all have one."""
    for name, part in parts.items():
        if part.value is None:
            return Score(
                value=None,
                status=part.status,
                reason=part.reason,
                parts=parts,
                evidence={"part": name},
                cost=cost_of(list(parts.values())),
            )
    return None
