"""One scorer inside a composite, under a name and with a weight.

Not covered: what the weight means; only `Weighted` and the bonuses of `Gate` use it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.protocol import OutOfScopeError, Sample, Score, Scorer, Verifier
from adjudge.runtime.contract import lacking_of, score_checked, validate_sample


@dataclass(frozen=True, init=False)
class Part:
    """A named, weighted scorer.

    Attributes:
        scorer: the scorer; a `Verifier` is wrapped so that it runs in the default worker pool.
        name: the key in `Score.parts`; the scorer's own name unless given.
        weight: a finite factor, negative for a penalty.
    """

    scorer: Scorer
    name: str
    weight: float

    def __init__(self, scorer: Scorer | Verifier, *, name: str = "", weight: float = 1.0) -> None:
        """Wrap a verifier, fill in the name, and reject a weight that is not a finite number."""
        if isinstance(scorer, Verifier):
            from adjudge.runtime.verifying import VerifierScorer

            scorer = VerifierScorer(scorer)
        if lacking_of(scorer):
            raise ValueError(
                f"a part of a composite is {scorer!r}; it must be a Scorer or a Verifier "
                "(adjudge.load makes one of a name)"
            )
        name = name or scorer.name
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
            hint = " (YAML reads 1e-3 as text: write 0.001 or 1.0e-3)" if isinstance(weight, str) else ""
            raise ValueError(f"the weight of the part {name!r} is {weight!r}; it must be a finite number{hint}")
        object.__setattr__(self, "scorer", scorer)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "weight", float(weight))

    async def score(self, samples: Sequence[Sample], *, inside: str) -> list[Score]:
        """Return the part's scores, checked; `inside` names the composite in errors."""
        return await score_checked(self.scorer, samples, called=f"the part {self.name!r} of {inside!r}")

    def validate(self, sample: Sample, *, inside: str) -> None:
        """Forward the check of a sample; a complaint names the part."""
        try:
            validate_sample(self.scorer, sample)
        except ValueError as error:
            kind = type(error) if isinstance(error, OutOfScopeError) else ValueError
            raise kind(f"the part {self.name!r} of {inside!r}: {error}") from error


async def score_all(parts: Sequence[Part], samples: Sequence[Sample], *, inside: str) -> list[dict[str, Score]]:
    """Ask all parts at the same time.

    Returns:
        For each sample, the score of each part by name.  If a part breaks, the others are cancelled and its
        error is raised.
    """
    tasks = [asyncio.ensure_future(part.score(samples, inside=inside)) for part in parts]
    try:
        columns = await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    names = [part.name for part in parts]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def check_names(parts: Sequence[Part], *, inside: str, reserved: Sequence[str] = ()) -> None:
    """Raise `ValueError` if there is no part, or if two would share a key in `Score.parts`."""
    if not parts:
        raise ValueError(f"{inside!r} has no parts; it needs at least one scorer")
    seen = set(reserved)
    for part in parts:
        if not isinstance(part, Part):
            raise ValueError(f"{inside!r} holds {part!r}; wrap each scorer as adjudge.Part(scorer, ...)")
        if part.name in seen:
            raise ValueError(f"{inside!r} has two parts named {part.name!r}; give one of them another `name`")
        seen.add(part.name)


def check_unweighted(parts: Sequence[Part], *, inside: str) -> None:
    """Raise `ValueError` if a part carries a weight where weights mean nothing."""
    for part in parts:
        if part.weight != 1.0:
            raise ValueError(f"{inside!r} does not weigh its parts, and {part.name!r} has the weight {part.weight}")
