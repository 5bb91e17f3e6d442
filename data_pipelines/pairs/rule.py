"""The contract of a rule.

A rule is a frozen dataclass; its fields are its options.  It sees one group at a time, and what it makes of a group
does not depend on the order of the rows unless its description says so: `ScoredGroup.ranked` and `draw` see to that.

Rules are named, or specified: `best_worst`, or `{pass_fail: {passing: 0.9}}` as YAML text.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, Final

from adjudge.data_pipelines.pairs.answers import Pair, ScoredGroup
from adjudge.io.jobs.maker import Kind
from adjudge.options import Options, check_options, named, options_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a rule asks of the answers.

    Attributes:
        score: answers without a score are left out before it sees them.
        merged: answers of equal text are one, and none where their scores or `columns` differ.
        stepped: a list of texts is one answer in steps, and not a list of answers.
        columns: what it reads beside the score.
    """

    score: bool = True
    merged: bool = True
    stepped: bool = False
    columns: tuple[str, ...] = ()


class Rule(Options, ABC):
    """Says which of the answers to a prompt is better than which.

    Attributes:
        name: what it is called in specifications and in the pairs.
        asks: what it asks of the answers, without the columns.
        reads: those of its options that name columns.
        adds: what its pairs hold beyond what all pairs hold (`Pair.more`).
    """

    name: ClassVar[str]
    asks: ClassVar[Needs] = Needs()
    reads: ClassVar[tuple[str, ...]] = ()
    adds: ClassVar[Mapping[str, Kind]] = {}

    def __post_init__(self) -> None:
        """Check the options against their annotations."""
        check_options(self, f"{self.name} option")

    @property
    def needs(self) -> Needs:
        """What it asks of the answers."""
        return replace(self.asks, columns=tuple(column for name in self.reads if (column := getattr(self, name))))

    @property
    def columns(self) -> Mapping[str, Kind]:
        """What its pairs hold beyond what all pairs hold."""
        return self.adds

    @abstractmethod
    def pairs(self, group: ScoredGroup) -> Iterable[Pair]:
        """Yield the pairs of a group."""

    def learnt(self, groups: Iterable[ScoredGroup]) -> Rule:
        """Return the rule with what all groups teach; one that needs no such thing does not look at them."""
        del groups
        return self


RULES: Final[Mapping[str, str]] = {
    "best_worst": "rules_by_score:BestWorst",
    "best_random": "rules_by_score:BestRandom",
    "all_ordered": "rules_by_score:AllOrdered",
    "pass_fail": "rules_by_score:PassFail",
    "execution_order": "rules_by_verdict:ExecutionOrder",
    "heron": "rules_by_verdict:Heron",
    "gap_split": "rules_by_score:GapSplit",
    "first_bad_step": "rules_by_step:FirstBadStep",
    "sibling_error": "rules_by_step:SiblingError",
    "step_apo": "rules_by_step:StepApo",
    "both_orders": "rules_by_verdict:BothOrders",
    "duoguard": "rules_by_verdict:DuoGuard",
    "agreement": "rules_by_verdict:Agreement",
}
"""The module and the class of each rule."""


def rule_of(spec: Any) -> Rule:
    """Return the rule that a specification describes.

    Raises:
        ValueError: there is no such rule or option, or a value is out of its range.
    """
    import yaml

    body = spec
    if isinstance(spec, str):
        try:
            body = yaml.safe_load(spec)
        except yaml.YAMLError as error:
            raise ValueError(f"the rule {spec!r} is not YAML: {error}") from error
    if isinstance(body, str):
        return _made(body, {})
    if isinstance(body, Mapping) and len(body) == 1:
        ((name, options),) = body.items()
        return _made(name, {} if options is None else options)
    raise ValueError(
        f"the rule {spec!r} is neither a name nor {{name: {{option: value}}}}; the rules are {', '.join(RULES)}"
    )


def _made(name: Any, options: Any) -> Rule:
    home, _, called = named(RULES, name, "rule").partition(":")
    kind = getattr(importlib.import_module(f"adjudge.data_pipelines.pairs.{home}"), called)
    known = {field.name: field for field in fields(kind)}
    needed = [one.name for one in known.values() if one.default is MISSING and one.default_factory is MISSING]
    given = options_of(options, list(known), inside=f"the rule {name!r}", required=needed)
    made: Rule = kind(**{key: _value(str(known[key].type), value) for key, value in given.items()})
    return made


def _value(kind: str, value: Any) -> Any:
    """Return an option's value as its field wants it; the rule checks it."""
    if kind == "Rule":
        return rule_of(value)
    if kind.startswith("tuple["):
        items = value if isinstance(value, list | tuple) else [value]
        return tuple(_value(kind.removeprefix("tuple["), item) for item in items)
    return float(value) if "float" in kind and type(value) is int else value
