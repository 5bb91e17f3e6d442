"""A scorer whose values are turned into probabilities by a fitted, monotone map.

Not covered: fitting; see `adjudge.scoring.compose.calibration`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from adjudge.options import options_of
from adjudge.protocol import Sample, Score, Scorer, Verifier
from adjudge.scoring.compose.calibration import Calibration
from adjudge.scoring.compose.composite import Composite
from adjudge.scoring.compose.part import Part
from adjudge.scoring.compose.spec import Loader

_EXAMPLE = "{calibrated: {scorer: SCORER, map: calibration.json}}"


@dataclass(frozen=True, kw_only=True)
class Calibrated(Composite):
    """One scorer followed by a `Calibration`; the map is part of the fingerprint.

    Samples the scorer fails or abstains on keep that status.

    Attributes:
        scorer: where the values come from.
        map: the fitted map.
        name: short name, used in provenance and reports.
    """

    scorer: Scorer | Verifier
    map: Calibration
    name: str = "calibrated"

    def __post_init__(self) -> None:
        """Reject a map of another kind."""
        object.__setattr__(self, "scorer", Part(self.scorer).scorer)
        if not isinstance(self.map, Calibration):
            raise ValueError(f"Calibrated.map is {self.map!r}; make one with Calibration.fit or Calibration.load")

    @classmethod
    def from_spec(cls, body: Any, loader: Loader) -> Self:
        """Read `{scorer: SPEC, map: FILE or MAP, name: ...}`."""
        known = ("scorer", "map", "name")
        given = options_of(body, known, inside="calibrated", required=("scorer", "map"), example=_EXAMPLE)
        given["scorer"] = loader.scorer(given["scorer"])
        written = given["map"]
        if not isinstance(written, str | Mapping):
            raise ValueError(f"the map of a calibrated scorer is {written!r}; give a JSON file or its content")
        given["map"] = (
            Calibration.load(loader.file(written)) if isinstance(written, str) else Calibration.from_dict(written)
        )
        return cls(**given)

    def members(self) -> tuple[Part, ...]:
        """Return the one scorer."""
        return (Part(self.scorer),)

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Score, then map each value."""
        (part,) = self.members()
        return [
            replace(
                score,
                value=None if score.value is None else self.map(score.value),
                uncertainty=None,
                steps=(),
                evidence={},
                parts={part.name: score},
            )
            for score in await part.score(samples, inside=self.name)
        ]
