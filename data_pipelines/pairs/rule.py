"""The contract of a rule.

A rule is a frozen dataclass; its fields are its options.  It sees one group at a time, and what it makes of a group
does not depend on the order of the rows unless its description says so: `ScoredGroup.ranked` and `draw` see to that.

Not covered: equal texts, pairs that come twice, limits and weights; the maker sees to those for all rules.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from adjudge.data_pipelines.pairs.answers import ScoredGroup
from adjudge.data_pipelines.pairs.pair import Pair
from adjudge.io.jobs.maker import Kind


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


class Rule(ABC):
    """Says which of the answers to a prompt is better than which."""

    name: ClassVar[str]

    @property
    def needs(self) -> Needs:
        """What it asks of the answers."""
        return Needs()

    @property
    def columns(self) -> Mapping[str, Kind]:
        """What its pairs hold beyond what all pairs hold (`Pair.more`)."""
        return {}

    @abstractmethod
    def pairs(self, group: ScoredGroup) -> Iterable[Pair]:
        """Yield the pairs of a group."""


class LearningRule(Rule):
    """A rule that must see all groups before the first pair."""

    @abstractmethod
    def learnt(self, groups: Iterable[ScoredGroup]) -> Rule:
        """Return the rule with what the groups teach."""
