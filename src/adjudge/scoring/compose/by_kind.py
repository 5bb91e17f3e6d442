"""A scorer for tasks of several kinds: each sample goes to the scorer of its kind.

    {by_kind: {critique: {verdict: {style: critique}}, program: code}}

Which kind a sample is of stands in `extra["kind"]`.  Scores of different scorers are not brought to one scale; the
trainer compares answers to one prompt with each other, and those are of one kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from adjudge.fingerprints import signed
from adjudge.protocol import OutOfScopeError, Sample, Score, Scorer
from adjudge.runtime.contract import is_groupwise, score_each, validate_sample
from adjudge.scoring.compose.composite import Loader


@dataclass(frozen=True, kw_only=True)
class ByKind:
    """The scorer of each kind, by `extra["kind"]`.

    Attributes:
        scorers: kind to scorer.
        name: short name, used in provenance and reports.
    """

    scorers: Mapping[str, Scorer]
    name: str = "by_kind"

    def __post_init__(self) -> None:
        if not self.scorers:
            raise ValueError(
                f"{self.name} has no scorers; give one for each kind, as in {{critique: verdict, code: code}}"
            )

    @classmethod
    def from_spec(cls, body: Any, loader: Loader) -> Self:
        """Read `{KIND: SPEC, ...}`."""
        if not isinstance(body, Mapping):
            raise ValueError(
                f"by_kind takes a scorer for each kind, not {body!r}; as in {{critique: verdict, code: code}}"
            )
        return cls(scorers={str(kind): loader.scorer(spec) for kind, spec in body.items()})

    @property
    def fingerprint(self) -> str:
        """Kinds and the fingerprints of their scorers."""
        return signed(self.name, self.scorers)

    @property
    def groupwise(self) -> bool:
        """Whether one of them compares the answers of a group."""
        return any(is_groupwise(scorer) for scorer in self.scorers.values())

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if the sample's kind has no scorer, or that scorer refuses it."""
        validate_sample(self._scorer(sample), sample)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order; one of a kind without a scorer abstains."""
        chosen: list[str | Score] = []
        for sample in samples:
            kind = sample.extra.get("kind")
            if isinstance(kind, str) and kind in self.scorers:
                chosen.append(kind)
            elif isinstance(kind, str):
                chosen.append(Score.abstained("out_of_scope", error=self._unknown(kind)))
            else:
                chosen.append(Score.failed("bad_sample", error=self._unknown(kind)))
        return await score_each(self.scorers, chosen, samples, called="the scorer of the kind {}")

    def _scorer(self, sample: Sample) -> Scorer:
        kind = sample.extra.get("kind")
        if not isinstance(kind, str) or kind not in self.scorers:
            error = OutOfScopeError if isinstance(kind, str) else ValueError
            raise error(f"{self.name}{f', sample {sample.id!r}' if sample.id else ''}: {self._unknown(kind)}")
        return self.scorers[kind]

    def _unknown(self, kind: Any) -> str:
        told = "; name the column (label: --extra-column kind, a run: data.extra)" if kind is None else ""
        return f'extra["kind"] is {kind!r}, and there are scorers for {", ".join(self.scorers)}{told}'
