"""What every composite shares: its parts, how its spec is read, its checks, and where its scores say they come from.

A composite class has `from_spec(body, loader)`; `body` is what stands behind its key in a spec, and `loader` turns
nested specs into scorers (`adjudge.scoring.registry` has the usual one).  A plug-in may offer the same class method.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import typing
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from adjudge.fingerprints import fingerprint_of
from adjudge.options import check_options, options_of
from adjudge.protocol import NO_COST, OutOfScopeError, Provenance, Sample, Score, Scorer, Verifier
from adjudge.reasons import of_parts
from adjudge.runtime.contract import is_groupwise, lacking_of, score_checked, validate_sample
from adjudge.runtime.loop import together

_PART_KEYS = ("scorer", "name", "weight")


class Loader(Protocol):
    """Turns nested specs into scorers."""

    def scorer(self, spec: Any) -> Scorer:
        """Return the scorer a nested spec describes."""
        ...

    def file(self, name: str) -> Path:
        """Return the path of a file a spec names; relative names are relative to the spec's own file."""
        ...


@dataclass(frozen=True, init=False)
class Part:
    """A named, weighted scorer.

    Attributes:
        scorer: the scorer; a `Verifier` is wrapped so that it runs in the default worker pool.
        name: the key in `Score.parts`; the scorer's own name unless given.
        weight: a finite factor, negative for a penalty; only `Weighted` and the bonuses of `Gate` use it.
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

    @classmethod
    def of(cls, entry: Any, loader: Loader, *, inside: str) -> Self:
        """Return a part from a nested spec, or from `{scorer: SPEC, name: ..., weight: ...}`.

        A part given by name goes by that name, any other by the scorer's own unless `name` says otherwise.
        """
        if isinstance(entry, str) and entry.replace("-", "_").isidentifier():
            return cls(loader.scorer(entry), name=entry)
        if not (isinstance(entry, Mapping) and "scorer" in entry):
            return cls(loader.scorer(entry))
        given = options_of(entry, _PART_KEYS, inside=f"a part of {inside!r}")
        return cls(loader.scorer(given.pop("scorer")), **given)

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


class Composite(ABC):
    """A scorer made of scorers: a frozen dataclass whose fields are its parts and its options.

    Fields that are declared as `Scorer | Verifier` or `tuple[Part, ...]` are its members.  A composite returns one
    score per sample, in order; `Score.parts` keeps the score of every part that was asked, `Score.cost` is their sum.

    Attributes:
        name: short name, used in provenance and reports.
        version: bumped whenever the same parts and options could give another score.
        spec_form: how its part of a spec is written, for people.
        example: a spec, for messages.
        short_for: the option that a spec without options stands for; "" where there is no such short form.
        weighs: whether the weights of its parts are used.
    """

    name: str
    version: ClassVar[str] = "1"
    spec_form: ClassVar[str] = ""
    example: ClassVar[str] = ""
    short_for: ClassVar[str] = ""
    weighs: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for option, several in _member_options(type(self)).items():
            given = getattr(self, option)
            object.__setattr__(self, option, tuple(given) if several else Part(given).scorer)
            for part in given if several else ():
                if not isinstance(part, Part):
                    raise ValueError(f"{self.name!r} holds {part!r}; wrap each scorer as adjudge.Part(scorer, ...)")
        check_options(self, f"{type(self).__name__} option")
        names = [part.name for part in self.members()]
        if not names:
            raise ValueError(f"{self.name!r} has no parts; it needs at least one scorer")
        for part in self.members():
            if names.count(part.name) > 1:
                raise ValueError(f"{self.name!r} has two parts named {part.name!r}; give one of them another `name`")
            if part.weight != 1.0 and not self.weighs:
                raise ValueError(
                    f"{self.name!r} does not weigh its parts, and {part.name!r} has the weight {part.weight}"
                )

    @classmethod
    def from_spec(cls, body: Any, loader: Loader) -> Self:
        """Return the composite of a spec, with scorers in the place of nested specs."""
        options = {item.name: item.default for item in dataclasses.fields(cls)}  # type: ignore[arg-type]
        called = str(options["name"])
        if cls.short_for and not (isinstance(body, Mapping) and (cls.short_for in body or not cls.weighs)):
            body = {cls.short_for: body}
        required = [name for name, default in options.items() if default is MISSING]
        given = options_of(body, list(options), inside=called, required=required, example=cls.example)
        for option, several in _member_options(cls).items():
            if option in given:
                read = partial(cls._parts, loader=loader, inside=called) if several else loader.scorer
                given[option] = read(given[option])
        return cls(**cls.read(given, loader))

    @classmethod
    def read(cls, given: dict[str, Any], loader: Loader) -> dict[str, Any]:
        """Return a spec's options as the class takes them; `from_spec` has made the scorers."""
        return given

    @classmethod
    def _parts(cls, body: Any, loader: Loader, inside: str) -> tuple[Part, ...]:
        """Return parts from a list of them or, where they have weights, from a mapping of names to weights."""
        if isinstance(body, Mapping) and not cls.weighs:
            raise ValueError(f"{inside!r} does not weigh its parts: give a list, as in {cls.example}")
        if isinstance(body, Mapping):
            for name, weight in body.items():
                if isinstance(weight, Mapping | list):
                    raise ValueError(
                        f"{inside!r} maps {name!r} to {weight!r}; a mapping holds only `name: weight`. To give "
                        "options, use the list form: [{scorer: {name: {option: value}}, weight: 1.0}]"
                    )
            return tuple(Part(loader.scorer(name), name=name, weight=weight) for name, weight in body.items())
        if isinstance(body, Sequence) and not isinstance(body, str):
            return tuple(Part.of(entry, loader, inside=inside) for entry in body)
        raise ValueError(
            f"{inside!r} has the parts {body!r}; they must be a list of scorers or a mapping of names to weights"
        )

    def members(self) -> tuple[Part, ...]:
        """Return all parts, whether or not they are asked for every sample."""
        parts: list[Part] = []
        for option, several in _member_options(type(self)).items():
            held = getattr(self, option)
            parts += held if several else [Part(held)]
        return tuple(parts)

    @abstractmethod
    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order, with the parts filled in."""

    @property
    def fingerprint(self) -> str:
        """Kind, version, options and the fingerprints of the parts."""
        return fingerprint_of(self, type(self).__qualname__)

    @property
    def groupwise(self) -> bool:
        """Whether a score depends on the other samples of its group; such a scorer needs whole groups."""
        return any(is_groupwise(part.scorer) for part in self.members())

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` naming the part that lacks something in this sample."""
        for part in self.members():
            part.validate(sample, inside=self.name)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order.

        Raises:
            BrokenScorer: a part raised, or did not return one proper score per sample.
        """
        if not samples:
            return []
        who = Provenance(scorer=self.name, fingerprint=self.fingerprint)
        return [
            dataclasses.replace(score, provenance=who, cost=sum((part.cost for part in score.parts.values()), NO_COST))
            for score in await self.mix(samples)
        ]

    async def ask(self, parts: Sequence[Part], samples: Sequence[Sample]) -> list[dict[str, Score]]:
        """Ask parts at the same time; return, for each sample, the score of each part by name.

        If a part breaks, the others are cancelled and its error is raised.
        """
        columns = await together([part.score(samples, inside=self.name) for part in parts])
        names = [part.name for part in parts]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def reject_groupwise(self, parts: Sequence[Part], *, sees: str) -> None:
        """Raise `ValueError` if a part needs whole groups and would be shown only some samples."""
        for part in parts:
            if is_groupwise(part.scorer):
                raise ValueError(
                    f"the part {part.name!r} of {self.name!r} compares the members of a group, and there it would see "
                    f"only {sees}; put the group statistic around {self.name!r} instead"
                )


@functools.cache
def _member_options(kind: type[Composite]) -> dict[str, bool]:
    """The fields of a composite that hold its members, and whether each holds several."""
    hints = typing.get_type_hints(kind)
    several = {name: hint == tuple[Part, ...] for name, hint in hints.items()}
    return {name: many for name, many in several.items() if many or hints[name] == Scorer | Verifier}


def no_number(parts: Mapping[str, Score], **evidence: Any) -> Score:
    """Return the failed score of a composite whose parts leave it without a number; it is transient if a part is."""
    reason = of_parts(part.reason for part in parts.values())
    return Score(value=None, status="failed", reason=reason, parts=parts, evidence=evidence)


def missing(parts: Mapping[str, Score]) -> dict[str, str]:
    """Return the parts without a number, each with its status and reason, as evidence."""
    return {name: f"{part.status}: {part.reason}" for name, part in parts.items() if part.value is None}
