"""What a watch has to say.

Not covered: how it was measured (`hacking`), and when it is an alarm (`alarms`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from adjudge.rl_integration.watch.forms import FormChange
from adjudge.rl_integration.watch.histogram import Bar

Kind: TypeAlias = Literal[
    "failed",
    "constant",
    "at_maximum",
    "one_response",
    "repeated",
    "longer",
    "shorter",
    "follows_length",
    "flat_groups",
    "cut_off",
    "form",
]


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """Something a person should look at.

    Attributes:
        kind: one word for programs.
        number: what was measured.
        threshold: what it reached.
        sentence: the same, for a person.
    """

    kind: Kind
    number: float
    threshold: float
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Measures:
    """The newest samples in numbers; None is what cannot be told yet, or at all.

    Attributes:
        samples: how many were seen since the start.
        window: how many of the newest the other numbers are of.
        outcomes: how many of these had each status and reason, as "failed engine_timeout"; "scored" without one.
        failed: the share that could not be judged.
        values: how many of these have a value.
        mean: of the values.
        mean_then: of the first values, as many as the baseline holds.
        lowest: the lowest value.
        highest: the highest value.
        maximum: the highest value the scorer can give, if it is known; else the highest one.
        at_maximum: the share of the values that are no less.
        length_then: median length of the responses at the start, in characters.
        length: median length now.
        length_ratio: of the two, one added to each.
        length_errors: how many standard errors lie between them, signed.
        follows_length: rank correlation of value and length.
        groups: groups with two values or more.
        flat_groups: the share of these with one value alone.
        prompts: how many different prompts there were.
        repeated: the share of long responses that came for another prompt too.
        one_response: the share of the commonest response that came for several prompts.
        cut_off: the share of responses that reached the token limit, of those where this is known.
        form: the mark of form whose share changed most since the start, and how; see `forms`.
    """

    samples: int
    window: int
    outcomes: Mapping[str, int]
    failed: float | None
    values: int
    mean: float | None
    mean_then: float | None
    lowest: float | None
    highest: float | None
    maximum: float | None
    at_maximum: float | None
    length_then: float | None
    length: float | None
    length_ratio: float | None
    length_errors: float | None
    follows_length: float | None
    groups: int
    flat_groups: float | None
    prompts: int
    repeated: float | None
    one_response: float | None
    cut_off: float | None
    form: FormChange | None


@dataclass(frozen=True, kw_only=True)
class HackingReport:
    """A moment of a watch.

    Attributes:
        measures: the numbers.
        bars: the values' histogram.
        alarms: what a person should look at, the gravest first.
        missing: how many samples are missing before anything is said; 0 if none.
    """

    measures: Measures
    bars: tuple[Bar, ...]
    alarms: tuple[Alarm, ...]
    missing: int
