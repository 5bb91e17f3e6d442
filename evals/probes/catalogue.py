"""All probes.

The options of probing a scorer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Literal

from adjudge.evals.probes.changes import CODE, GIVEN, LENGTH, POSITION, STEPS
from adjudge.evals.probes.fixed_texts import INJECTIONS, PERSUASION, WORTHLESS
from adjudge.evals.probes.form import FORM, TRUTH
from adjudge.evals.probes.probe import Probe
from adjudge.evals.probes.wording import WORDING
from adjudge.evals.reports.config import EvalConfig

PROBES: Final[tuple[Probe, ...]] = (
    *WORTHLESS,
    *INJECTIONS,
    *TRUTH,
    *LENGTH,
    *STEPS,
    *FORM,
    *PERSUASION,
    *POSITION,
    *GIVEN,
    *CODE,
    *WORDING,
)

FAST: Final[tuple[Probe, ...]] = tuple(probe for probe in PROBES if probe.fast)
"""What `adjudge check` tries."""


def chosen(only: Sequence[str] = (), skip: Sequence[str] = (), *, fast: bool = False) -> tuple[Probe, ...]:
    """Return probes by their names, in the catalogue's order.

    Raises:
        ValueError: a name is unknown, or nothing is left.
    """
    names = [probe.name for probe in PROBES]
    for name in (*only, *skip):
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(names)}"
            raise ValueError(f"there is no probe {name!r}{hint}")
    found = [probe for probe in (FAST if fast else PROBES) if not only or probe.name in only]
    found = [probe for probe in found if probe.name not in skip]
    if not found:
        raise ValueError("no probe is left; name fewer in --skip, or others in --only")
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class ProbesConfig(EvalConfig):
    """Change responses on purpose, and see whether the scores answer as they must.

    Rows hold a prompt, a good response or a reference, and best a bad response too.
    The input rows:NAME names rows that adjudge ships: text, pairs, code, ...

    Raises:
        ValueError: an option is out of range, or a probe is unknown.
    """

    scorer: str = "auto"
    """A name, module:object, ./file.py:object, a reward model's folder or hub name,
    a spec as YAML or JSON text, or a .yaml or .json file.
    "auto" chooses by the reference of each row."""

    other_scale: str = ""
    """The same judge on another scale, as a spec: what is better must stay better."""

    only: tuple[str, ...] = ()
    """A probe to try; give it several times for several. Without it, all."""

    skip: tuple[str, ...] = ()
    """A probe to leave out."""

    fast: bool = False
    """Only the probes that adjudge check tries."""

    per_row: int = 0
    """Most variants of a probe for each row, drawn; 0 tries all."""

    epsilon: float | None = None
    """Largest change of a score that counts as none; without it, a share of the
    scorer's own spread."""

    epsilon_share: float = 0.1
    """That share: of the mean distance between the scores of good and bad
    responses."""

    tolerated: float = 0.01
    """Share of a probe's variants that may break its rule."""

    given_bad: bool = False
    """Use only bad responses that rows hold. Without it, a row that has none takes
    the good response of a row with another reference."""

    compare: Literal["auto", "yes", "no"] = "auto"
    """Whether the scorer's reference is the other response of a pair.
    "auto" asks the scorer."""

    prompt_column: str = ""
    """Column of the prompts: text or chat turns. Of every column: without it, the
    usual names are tried."""

    good_column: str = ""
    """Column of the good responses. Without any, the answer in the reference is it."""

    bad_column: str = ""
    """Column of the bad responses."""

    reference_column: str = ""
    """Column of the references."""

    id_column: str = ""
    """Column of the ids; without one, rows are named by their number, from 0."""

    domain_column: str = ""
    """Column that says text, code or verdict; without it, the response tells."""

    extra_column: tuple[str, ...] = ()
    """A further column that the scorer asks for by name."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per_row < 0:
            raise ValueError(f"per_row is {self.per_row!r}; give 0 for all, or more")
        if self.epsilon is not None and not (math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ValueError(f"epsilon is {self.epsilon!r}; give 0 or more, in units of the score")
        for name in ("epsilon_share", "tolerated"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}; give a share from 0 to below 1")
        if self.compare not in ("auto", "yes", "no"):
            raise ValueError(f"compare is {self.compare!r}; it must be auto, yes or no")
        _ = self.probes

    @property
    def probes(self) -> tuple[Probe, ...]:
        """The probes to try."""
        return chosen(self.only, self.skip, fast=self.fast)
