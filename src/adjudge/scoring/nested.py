"""A scorer in an option of another: a judge in a verifier, a reward model in a judge of turns.

A part is given as a scorer, as a verifier, or in a spec by its name and options.  It is asked with samples made for
it, and where it has no number the whole has none, for the same reason.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from adjudge import options
from adjudge.fingerprints import fingerprint_of
from adjudge.protocol import NO_COST, Cost, Provenance, Sample, Score, Scorer, Verifier
from adjudge.runtime.contract import score_checked
from adjudge.scoring.bad_reference import BadReferenceError


def options_of(cls: type[Any], body: Any, loader: Any, inner: Sequence[str]) -> dict[str, Any]:
    """Return the options of a spec for a dataclass, with scorers in the place of nested specs.

    Raises:
        ValueError: the body is not a mapping, or names an option that there is not.
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


async def asked_each(scorer: Scorer, groups: Sequence[Sequence[Sample]], *, called: str) -> list[list[Score]]:
    """Return a part's scores of the samples of each group, all asked together."""
    scores = iter(await asked(scorer, [sample for group in groups for sample in group], called=called))
    return [[next(scores) for _ in group] for group in groups]


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class HasInnerScorers:
    """Part of every scorer with scorers in its options."""

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    needs_reference: ClassVar[bool] = True
    inner: ClassVar[tuple[str, ...]] = ()
    """The options that hold scorers."""

    def __post_init__(self) -> None:
        options.check_options(self, f"{self.name} option")
        for option in self.inner:
            object.__setattr__(self, option, part_of(getattr(self, option), f"{self.name} option {option}"))

    @classmethod
    def from_spec(cls, body: Any, loader: Any) -> Self:
        """Read the options of a spec; those that hold scorers may be specs themselves."""
        return cls(**options_of(cls, body, loader, cls.inner))

    @property
    def fingerprint(self) -> str:
        """Name, version and options, the scorers among them."""
        return fingerprint_of(self)

    @property
    def origin(self) -> Provenance:
        """Who gives the scores."""
        return Provenance(scorer=self.name, fingerprint=self.fingerprint)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NestedScorer(HasInnerScorers, ABC):
    """Base of the scorers that ask other scorers about what they have read in samples."""

    @abstractmethod
    def read_sample(self, sample: Sample) -> Any:
        """Return what is judged of a sample, or its score; `ValueError` if it cannot be judged as given."""

    @abstractmethod
    async def judge(self, read: Sequence[Any]) -> list[Score]:
        """Return one score for each of what was read that is none yet, in order."""

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order."""
        ready = [self._ready(sample) for sample in samples]
        work = [one for one in ready if not isinstance(one, Score)]
        judged = iter(await self.judge(work) if work else [])
        scores = [one if isinstance(one, Score) else next(judged) for one in ready]
        origin = self.origin
        return [dataclasses.replace(score, provenance=origin) for score in scores]

    def _ready(self, sample: Sample) -> Any:
        try:
            return self.read_sample(sample)
        except BadReferenceError as error:
            return Score.failed("gold_unparsable", error=str(error))
        except ValueError as error:
            return Score.failed("bad_sample", error=str(error))
