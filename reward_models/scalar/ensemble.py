"""Several reward models rate the same chats, and a rule makes one reward of theirs.

Members are whole models: checkpoints trained with other seeds or data, or adapters on one body
(`{transformers: {model: BODY, adapter: ONE}}`).  The rule sees rewards before any floor: the reward of an empty
response is combined in the same way, so that a response cannot buy agreement by being cut off.

Not covered: members that are not a reward models (`ensemble` mixes any scorers), heads of one checkpoint (`combine` of
`reward_model`), and one copy in memory of a body that adapters share: each member has its own.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any, ClassVar

from adjudge.engines.interface import Fault
from adjudge.options import Count, options_of
from adjudge.protocol import NO_COST
from adjudge.reward_models.scalar.chat import Reasoning
from adjudge.reward_models.scalar.reward_scorer import Rating, RewardScorer, Turns, Unratable
from adjudge.reward_models.scalar.scorer import RewardModelScorer, combination_of
from adjudge.scoring.compose.combination import spread_of, total_spread


@dataclass(frozen=True, kw_only=True)
class RewardEnsemble(RewardScorer):
    """One reward out of several reward models.  The reference is an answer to compare with, or none.

    `Score.uncertainty` is how far members disagree, together with what each is unsure of by itself.  A member that
    fails fails the score, unless `quorum` members are left.  Rewards must share a scale: `normalize: zscore` brings
    each member's to its own stored mean and standard deviation.

    Attributes:
        members: specs of models: a folder or name, `{model: .., weights: ..}` with the options of `reward_model` that
            say what outputs mean, or `{engine: ..}`.
        combine: how rewards become one, as a `Combination`, its fields, or the name of its rule.
        quorum: how many members must have rated; None for all.
    """

    name: ClassVar[str] = "reward_ensemble"

    members: tuple[Any, ...]
    combine: Any = "mean"
    quorum: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "members", tuple(self.members))
        if len(self.members) < 2:
            raise ValueError(f"{self.name}: there are {len(self.members)} members; an ensemble has at least two")
        object.__setattr__(self, "combine", combination_of(self.combine, self.name))
        if (self.quorum or 1) > len(self.members):
            raise ValueError(f"{self.name} option quorum={self.quorum!r}; there are {len(self.members)} members")
        _ = self.scorers

    @cached_property
    def scorers(self) -> tuple[RewardModelScorer, ...]:
        """The members."""
        stored = self.normalize if self.normalize != "reference" else "none"
        return tuple(_member(spec, stored, self.name) for spec in self.members)

    @property
    def stored_reasoning(self) -> Reasoning | None:
        """Whether the members were trained to read reasoning; None if nothing is known.

        Raises:
            ValueError: some were, and some were not.
        """
        every: list[Reasoning | None] = [scorer.stored_reasoning for scorer in self.scorers]
        stored: list[Reasoning] = [reasoning for reasoning in every if reasoning is not None]
        if len(set(stored)) > 1:
            raise ValueError(
                f"{self.name}: some members were trained with reasoning: keep and some with strip; say what all are "
                "shown with `reasoning`"
            )
        return stored[0] if stored else None

    def check(self) -> None:
        """Raise `ValueError` if a member's options do not fit its model."""
        for scorer in self.scorers:
            scorer.check()
        if self.combine.needs_spreads and not all(scorer.readout.tells_spread for scorer in self.scorers):
            raise ValueError(
                f'{self.name}: combine asks for the "surest" member, and not every member tells how sure it is; give '
                'members with Gaussian or quantile heads, or nominal: "mean"'
            )

    def special_tokens(self) -> tuple[str, ...]:
        """Return what any member's tokenizer takes for tokens of its own."""
        return tuple(sorted({token for scorer in self.scorers for token in scorer.special_tokens()}))

    def identity(self) -> list[Any]:
        """Return plain data that changes whenever the ensemble could rate the same chat otherwise."""
        return [[scorer.identity() for scorer in self.scorers], dataclasses.asdict(self.combine), self.quorum]

    def origin(self) -> tuple[str, str]:
        """Return the engines' names and the models'."""
        origins = [scorer.origin() for scorer in self.scorers]
        return ", ".join(sorted({engine for engine, _ in origins})), ", ".join(model for _, model in origins)

    async def rate(self, chats: Sequence[Turns]) -> list[Rating | Fault]:
        """Return the combined rating of each finished chat, in order, or why there is none."""
        columns = await asyncio.gather(*(scorer.rate(chats) for scorer in self.scorers))
        return [self._together(row) for row in zip(*columns, strict=True)]

    def _together(self, row: Sequence[Rating | Fault]) -> Rating | Fault:
        faults = [one for one in row if isinstance(one, Fault)]
        ratings = [one for one in row if isinstance(one, Rating)]
        # A response that one member cannot read would pick its judges: a quorum is for engines that are down.
        decisive = [fault for fault in faults if fault.too_long or fault.reason == "engine_error"]
        if decisive:
            return decisive[0]
        if faults and len(ratings) < (self.quorum or len(row)):
            return faults[0]
        rewards, spreads = [one.reward for one in ratings], [one.spread for one in ratings]
        reward = self.combine.of(rewards, spreads)
        spread = total_spread(rewards, spreads)
        if not (math.isfinite(reward) and math.isfinite(spread)):
            return Unratable(reason="engine_error", detail="the members' rewards make no finite one")
        evidence: dict[str, Any] = {
            "raw": [None if isinstance(one, Fault) else one.evidence["raw"] for one in row],
            "members": [None if isinstance(one, Fault) else one.reward for one in row],
            "disagreement": spread_of(rewards),
        }
        if faults:
            evidence["missing"] = {str(at): one.reason for at, one in enumerate(row) if isinstance(one, Fault)}
        cost = reduce(add, (one.cost for one in ratings), NO_COST)
        return Rating(reward=reward, spread=spread, evidence=evidence, cost=cost)


_MEMBER_OPTIONS = ("model", "engine", "family", "head", "labels", "weights", "risk", "combine", "normalizer")


def _member(spec: Any, normalize: Any, name: str) -> RewardModelScorer:
    if isinstance(spec, RewardModelScorer):
        if spec.normalize != normalize:
            raise ValueError(
                f"{name}: a member has normalize={spec.normalize!r} and the ensemble {normalize!r}; say it once, in "
                "the ensemble"
            )
        return spec
    if isinstance(spec, str):
        spec = {"engine": spec} if spec.startswith(("transformers:", "vllm:", "openai:")) else {"model": spec}
    if not isinstance(spec, Mapping):
        return RewardModelScorer(engine=spec, normalize=normalize)
    if len(spec) == 1 and next(iter(spec)) in ("transformers", "vllm", "openai"):
        spec = {"engine": spec}
    return RewardModelScorer(**options_of(spec, _MEMBER_OPTIONS, inside=f"a member of {name}"), normalize=normalize)
