"""Credit within answers: from scores with steps to advantages of tokens, or to rewards of tokens for a critic.

`CREDITS` has the published ways by name, and docs/objectives.md their sources; `Credit.but` changes single options.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeAlias

import numpy as np

from adjudge.options import Options, Range, Share, named
from adjudge.responses.aggregate import TEMPERATURE
from adjudge.responses.refine import Refinement, refine
from adjudge.rl_integration.trainer.algorithms.credit.answers import (
    Answers,
    at_last_tokens,
    over_tokens,
    rows_of_tokens,
)
from adjudge.rl_integration.trainer.algorithms.credit.tree import TreeCredit
from adjudge.rl_integration.trainer.algorithms.objectives.advantages import GroupRelative
from adjudge.rl_integration.trainer.algorithms.objectives.objective import Objective, with_options
from adjudge.rl_integration.trainer.algorithms.objectives.policy_loss import Preference
from adjudge.rl_integration.trainer.data.arrays import (
    Bools,
    Floats,
    Integers,
    check_kind,
    check_number,
    floats,
    same_shape,
)
from adjudge.rl_integration.trainer.data.task import Rollout
from adjudge.rl_integration.trainer.rewards.groups import Groups


@dataclass(frozen=True, kw_only=True)
class Shape(Options):
    """From the values of steps to their rewards.

    Attributes:
        how: the formula, such as "clip", "delta", "clip_delta", "min_form" (`adjudge.responses.refine`).
        eta: the threshold of the clipped ones; the paper's is the mean value on training questions.
        start: the value before the first step, for "gain".
        temperature: of "min_form"; PURE's 0.1 is for values in [-1, 1].
    """

    how: Refinement = "none"
    eta: float = 0.5
    start: float = 0.0
    temperature: Annotated[float, Range(gt=0)] = TEMPERATURE

    def __call__(self, values: Floats) -> Floats:
        """Return (k,) rewards of steps; none of none.

        Raises:
            ValueError: a value is missing or not finite.
        """
        given = known(values).tolist()
        if not given:
            return np.zeros(0)
        refined = refine(given, self.how, eta=self.eta, start=self.start, temperature=self.temperature)
        return np.array(refined, dtype=np.float64)


def to_go(rewards: Floats, gamma: float = 1.0) -> Floats:
    """Return for each step what it and those after it get, discounted by the number of steps between."""
    check_number("gamma", gamma, Range(ge=0, le=1))
    rewards = known(rewards)
    returns = np.zeros(len(rewards))
    total = 0.0
    for step in reversed(range(len(rewards))):
        total = rewards[step] + gamma * total
        returns[step] = total
    return returns


def known(values: Floats) -> Floats:
    """Return (k,) values as an array, or raise `ValueError`."""
    array = floats("the steps' values", values)
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ValueError(f"step {bad[0]} has the value {array[bad[0]]}; leave out the steps of this response instead")
    return array


Peers: TypeAlias = Literal["group", "place", "first", "none"]
Sum: TypeAlias = Literal["none", "before", "after"]


@dataclass(frozen=True, kw_only=True)
class StepCredit(Options):
    """Advantages of tokens by their steps, beside the other steps of their group.

        A_it = (1 - a) * A_i  +  a * B_ik, k the step of token t; a token of no step has B = 0

    A_i is the response's advantage by any rule; B is made of the steps' rewards r_ik alone, with z = (r - mean) /
    (s + eps) over all steps of the group.  Outcome and steps are normalised apart since their scales differ and drift.

    | name | B_ik | a | source |
    |---|---|---|---|
    | `TANGO` | Σ_{j>=k} z_ij | decays; 0.5 is ours | RL Tango, arXiv 2505.15034 |
    | `CRITIC_SEARCH` | z_ik | 0.25 | CriticSearch |
    | `IGPO` | Σ_{j>=k} gamma^(j-k) z_ij | 1 | arXiv 2510.14967 |
    | `SHAPED` | returns to go less their mean over the group at the same place (Clip/Delta, PURE) | 0.5 is ours | |
    | `GIVEN` | r_ik, advantages already | 1 | PORTool, arXiv 2510.26020 |
    | `PAV` | r_ik, a prover's advantage; A_i for Q | alpha / (1 + alpha), alpha 3 from memory | arXiv 2410.08146 |

    A prover's chance before the first step, which PAV wants, is the mean of what the group's first steps leave.

    The steps of a response that takes no part have no vote; one whose steps are not known keeps (1 - a) A_i.  A mean
    needs two votes.

    Attributes:
        share: a, in [0, 1].
        peers: the steps whose mean is subtracted: all of the group, those at the same place in it, the first ones
            alone from each other, or none.
        scale: whether to divide by the peers' standard deviation.
        to_go: whether a step is credited with those after it: not at all, summed before the mean is taken, or after.
        gamma: the discount of that sum.
        eps: what is added to standard deviations.
    """

    share: Share = 0.5
    peers: Peers = "group"
    scale: bool = True
    to_go: Sum = "after"
    gamma: Share = 1.0
    eps: Annotated[float, Range(ge=0)] = 1e-4

    def __call__(self, rewards: Sequence[Floats], steps: Integers, groups: Groups, outcome: Floats) -> Floats:
        """Return (n, t) advantages of tokens; 0 for responses that take no part.

        Args:
            rewards: n arrays, the rewards of each response's steps; empty where they are not known.
            steps: (n, t) step of each token, -1 for none (`answers.steps_of_tokens`).
            groups: of n responses.
            outcome: (n,) their advantages; 0 for those that take no part.

        Raises:
            ValueError: there are not n, a token belongs to a step without a reward, or a reward of a response that
                takes part is not finite.
        """
        same_shape("outcome", np.shape(outcome), (len(groups),))
        spread = rows_of_tokens(self.of_steps(rewards, groups), steps)
        mixed = self.share * spread + (1 - self.share) * np.asarray(outcome)[:, None]
        return np.where(groups.valid[:, None], mixed, 0.0)

    def over(self, answers: Answers, groups: Groups, outcome: Floats) -> Floats:
        """Return (n, t) advantages of tokens; see `credit.CreditRule`."""
        return self(answers.values, answers.steps, groups, outcome)

    def of_steps(self, rewards: Sequence[Floats], groups: Groups) -> list[Floats]:
        """Return B for the steps of each response; 0 for responses that take no part.

        Raises:
            ValueError: there are not as many responses, or a reward of one that takes part is not finite.
        """
        same_shape("rewards of steps", (len(rewards),), (len(groups),))
        taken = groups.counted(2)
        rows = [known(row) if valid else np.zeros(len(row)) for row, valid in zip(rewards, taken, strict=True)]
        if self.to_go == "before":
            rows = [to_go(row, self.gamma) for row in rows]
        if self.peers != "none":
            rows = self._normalised(rows, groups.ids.tolist(), taken.tolist())
        return [to_go(row, self.gamma) for row in rows] if self.to_go == "after" else rows

    def _normalised(self, rows: Sequence[Floats], ids: Sequence[int], taken: Sequence[bool]) -> list[Floats]:
        votes: dict[tuple[int, int], list[float]] = {}
        for row, group, valid in zip(rows, ids, taken, strict=True):
            for place, value in enumerate(row.tolist() if valid else []):
                votes.setdefault((group, self._peers(place)), []).append(value)
        scales = {peers: self._scale(np.array(values)) for peers, values in votes.items()}
        normalised = []
        for row, group, valid in zip(rows, ids, taken, strict=True):
            of = [scales.get((group, self._peers(place)), (0.0, np.inf)) for place in range(len(row))]
            if self.peers == "first":
                of[1:] = [(0.0, 1.0)] * (len(of) - 1)
            values = [(value - mean) / below for value, (mean, below) in zip(row.tolist(), of, strict=True)]
            normalised.append(np.array(values) * valid)
        return normalised

    def _peers(self, place: int) -> int:
        return 0 if self.peers == "group" else place

    def _scale(self, values: Floats) -> tuple[float, float]:
        """The mean and what to divide by; infinity where there is nothing to compare."""
        if len(values) < 2 or values.min() == values.max():
            return float(values[0]), np.inf
        return float(values.mean()), float(values.std(ddof=1)) + self.eps if self.scale else 1.0


TANGO = StepCredit()
CRITIC_SEARCH = StepCredit(share=0.25, to_go="none")
IGPO = StepCredit(share=1.0)
SHAPED = StepCredit(peers="place", scale=False, to_go="before")
GIVEN = StepCredit(share=1.0, peers="none", scale=False, to_go="none")
PAV = replace(GIVEN, share=0.75, peers="first")


@dataclass(frozen=True, kw_only=True)
class Capo(Options):
    """CAPO (arXiv 2508.02298): a critic names the wrong steps, and their tokens pay for it.

    | answer | tokens of steps said to be right, and of none | tokens of steps said to be wrong |
    |---|---|---|
    | right | C | C - P |
    | wrong | 0 | -P |

    C = 2 and P = 1 are from a re-implementation; the authors' code was not found.  A token's reward is compared with
    those of all tokens of its group.  A step's value is 1 less the share of critiques that name it (`critic`).

    Attributes:
        correct: C, more than `penalty`, so that a right answer stays worth more than a wrong one.
        penalty: P.
        right: the score from which on an answer is right.
        eps: what is added to standard deviations.
    """

    correct: float = 2.0
    penalty: Annotated[float, Range(ge=0)] = 1.0
    right: float = 0.5
    eps: Annotated[float, Range(ge=0)] = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("correct", self.correct, Range(ge=self.penalty))

    def over(self, answers: Answers, groups: Groups, outcome: Floats) -> Floats:
        """Return (n, t) advantages of tokens; see `credit.CreditRule`.  The outcome's advantages are not read.

        Raises:
            ValueError: the value of a step is not a share.
        """
        rewards = np.zeros(answers.own.shape)
        taken = groups.counted(2)
        for row in np.flatnonzero(taken):
            values = answers.values[row]
            if len(values) and not 0 <= values.min() <= values.max() <= 1:
                raise ValueError(f"CAPO needs steps' values from 0 (wrong) to 1, as a critic gives them; got {values}")
            wrong = over_tokens(1 - values, answers.steps[row]) if len(values) else 0.0
            rewards[row] = self.correct * (answers.worth[row] >= self.right) - self.penalty * wrong
        rows, columns = np.nonzero(answers.own & taken[:, None])
        tokens = Groups(rewards=rewards[rows, columns], ids=groups.ids[rows], valid=np.ones(len(rows), dtype=np.bool_))
        advantages = np.zeros(answers.own.shape)
        advantages[rows, columns] = GroupRelative(eps=self.eps)(tokens)
        return advantages


Rewards: TypeAlias = Literal["outcome", "steps"]


@dataclass(frozen=True, kw_only=True)
class Gigpo(Options):
    """GiGPO (arXiv 2505.10978): episodes beside episodes, and steps beside those that were taken in the same state.

        A_ik = A_i + w * ( R_ik - mean of R over the steps of the group with the same anchor )
        R_ik = Σ_{j>=k} gamma^(j-k) r_ij

    An anchor is the state that a step was taken in; steps of one episode may share one, and one that was met once has
    the step term 0.  In the loop a step is a turn of the answer, and its anchor what a tool said before it; first turns
    share the prompt.  gamma 0.95 is from memory of the paper.

    Attributes:
        weight: w, of the step term.
        gamma: the discount of later steps' rewards.
        rewards: of turns in the loop: the answer's on its last one ("outcome"), or the scorer's of each ("steps").
        scale: whether to divide by standard deviations.
        eps: what is added to those.
    """

    weight: Annotated[float, Range(ge=0)] = 1.0
    gamma: Share = 0.95
    rewards: Rewards = "outcome"
    scale: bool = False
    eps: Annotated[float, Range(ge=0)] = 1e-6

    def over(self, answers: Answers, groups: Groups, outcome: Floats) -> Floats:
        """Return (n, t) advantages of tokens; see `credit.CreditRule`.  `outcome` stands in the place of A_i.

        With `rewards="steps"`, an answer whose steps are not its turns keeps its outcome.
        """
        rewards: list[Floats] = []
        anchors: list[Sequence[Hashable]] = []
        for row, (turns, values) in enumerate(zip(answers.turns, answers.values, strict=True)):
            states = _states(answers.rollouts[row], turns)
            given = values if self.rewards == "steps" else np.append(np.zeros(len(states)), groups.rewards[row])[1:]
            known_turns = len(states) and len(given) == len(states)
            rewards.append(given if known_turns else np.zeros(0))
            anchors.append(states if known_turns else ())
        parts = self.of_steps(rewards, anchors, groups)
        places = [
            turns if len(part) else np.full_like(turns, -1) for turns, part in zip(answers.turns, parts, strict=True)
        ]
        spread = rows_of_tokens(parts, np.reshape(places, answers.turns.shape))
        return np.where(groups.valid[:, None], np.asarray(outcome)[:, None] + self.weight * spread, 0.0)

    def of_steps(
        self, rewards: Sequence[Floats], anchors: Sequence[Sequence[Hashable]], groups: Groups
    ) -> list[Floats]:
        """Return the steps' term of each episode; 0 for episodes that take no part.

        Raises:
            ValueError: numbers of episodes or of steps differ, or a reward of a valid episode is not finite.
        """
        same_shape("rewards of steps", (len(rewards),), (len(groups),))
        same_shape("anchors", (len(anchors),), (len(groups),))
        for row, (given, states) in enumerate(zip(rewards, anchors, strict=True)):
            if len(given) != len(states):
                raise ValueError(
                    f"episode {row} has {len(given)} rewards and {len(states)} anchors; give one for each step"
                )
        counted = groups.counted(2)
        returns = [
            to_go(known(row), self.gamma) if valid else np.zeros(len(row))
            for row, valid in zip(rewards, counted, strict=True)
        ]
        rule = GroupRelative(scale="group" if self.scale else "none", eps=self.eps)
        steps = rule(_by_anchor(returns, anchors, groups, counted))
        edges = np.cumsum([len(row) for row in returns])[:-1]
        return np.split(steps, edges) if len(returns) else []


def _states(rollout: Rollout, turns: Integers) -> list[Hashable]:
    """What each turn answered: the prompt, or the tokens between it and the turn before."""
    states: list[Hashable] = []
    for turn in range(int(turns.max(initial=-1)) + 1):
        begin = int(np.flatnonzero(turns == turn)[0])
        after = int(np.flatnonzero(turns == turn - 1)[-1]) + 1 if turn else 0
        states.append((turn == 0, rollout.ids[after:begin] if turn else rollout.prompt_ids))
    return states


def _by_anchor(
    returns: Sequence[Floats], anchors: Sequence[Sequence[Hashable]], groups: Groups, counted: Bools
) -> Groups:
    """All steps as one batch, whose groups are the anchors of each group."""
    names: dict[tuple[int, Hashable], int] = {}
    ids = [
        names.setdefault((group, state), len(names))
        for group, states in zip(groups.ids.tolist(), anchors, strict=True)
        for state in states
    ]
    return Groups(
        rewards=np.concatenate([*returns, np.zeros(0)]),
        ids=np.array(ids, dtype=np.int64),
        valid=np.repeat(counted, [len(row) for row in returns]),
    )


CreditRule: TypeAlias = StepCredit | Capo | Gigpo | TreeCredit
"""From the rewards of all answers and of their steps to (n, t) advantages of tokens, by `over`.

A pure function with its options bound.  An answer that was not judged gets 0, and has no vote; what stands at tokens
that are not the policy's own is not read."""


@dataclass(frozen=True, kw_only=True)
class Credit(Options):
    """One way to give credit within answers; `CREDITS` has the published ones.

    Attributes:
        rule: from rewards of steps to advantages of tokens.
        shape: from the values of steps to their rewards.
        weight: of the steps' rewards beside the answer's, for an objective with a critic, where each stands on the last
            token of its step; None for a rule that gives advantages alone.
        half_life: steps of the run in which the share of the steps' advantages halves; None for one that stays.
    """

    rule: CreditRule
    shape: Shape = field(default_factory=Shape)
    weight: Annotated[float, Range(ge=0)] | None = None
    half_life: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kind("shape", self.shape, Shape)
        if not callable(getattr(self.rule, "over", None)):
            raise ValueError(f"rule={self.rule!r}; it must be a rule of credit, such as StepCredit()")
        if self.half_life is not None:
            check_number("half_life", self.half_life, Range(gt=0))
            if not isinstance(self.rule, StepCredit):
                raise ValueError(f"half_life={self.half_life!r}; {type(self.rule).__name__} has no share that decays")

    def but(self, changes: Mapping[str, Any]) -> Self:
        """Return the same with other options; `rule.share` reaches into parts."""
        return with_options(self, changes)

    @property
    def needs_tree(self) -> bool:
        """Whether answers must have been written as a tree."""
        return isinstance(self.rule, TreeCredit) and self.rule.needs_writer

    def check(self, objective: Objective) -> None:
        """Raise `ValueError` if an objective has no use for it."""
        if isinstance(objective.policy, Preference):
            raise ValueError("an objective of pairs compares whole answers; credit within them needs another one")
        if objective.critic is not None and self.weight is None:
            raise ValueError(
                "this credit gives advantages, and the objective takes those from a critic; name another objective, or "
                "one of the credits of rewards: steps, clip, delta, clip_delta, pure, step_search"
            )

    def advantages(self, answers: Answers, groups: Groups, outcome: Floats, *, step: int = 0) -> Floats:
        """Return (n, t) advantages of tokens, 0 where the policy did not write."""
        rule = self.rule
        if self.half_life is not None and isinstance(rule, StepCredit):
            rule = replace(rule, share=rule.share * 0.5 ** (step / self.half_life))
        return np.where(answers.own, rule.over(replace(answers, values=self._rewards(answers)), groups, outcome), 0.0)

    def token_rewards(self, answers: Answers, groups: Groups) -> Floats:
        """Return (n, t) rewards for a critic, each step's at its last token; 0 for answers without a vote."""
        rows = [
            at_last_tokens(values * (self.weight or 0.0), steps) * valid
            for values, steps, valid in zip(self._rewards(answers), answers.steps, groups.valid, strict=True)
        ]
        return np.stack(rows) if rows else np.zeros(answers.own.shape)

    def _rewards(self, answers: Answers) -> list[Floats]:
        return [self.shape(values) for values in answers.values]


CREDITS: Mapping[str, Credit] = MappingProxyType(
    {
        # Steps beside the steps of the group.
        "tango": Credit(rule=TANGO),
        "critic_search": Credit(rule=CRITIC_SEARCH),
        "igpo": Credit(rule=IGPO),
        "given": Credit(rule=GIVEN),
        "pav": Credit(rule=PAV, shape=Shape(how="gain")),
        "capo": Credit(rule=Capo()),
        "gigpo": Credit(rule=Gigpo()),
        # Rewards of steps: for a critic, or as returns to go.
        "steps": Credit(rule=SHAPED, weight=1.0),
        "clip": Credit(rule=SHAPED, shape=Shape(how="clip"), weight=1.0),
        "delta": Credit(rule=SHAPED, shape=Shape(how="delta"), weight=1.0),
        "clip_delta": Credit(rule=SHAPED, shape=Shape(how="clip_delta"), weight=1.0),
        "pure": Credit(rule=SHAPED, shape=Shape(how="min_form"), weight=1.0),
        "step_search": Credit(rule=SHAPED, weight=1.0),
        # Beginnings that answers share.
        "tempo": Credit(rule=TreeCredit(how="tempo")),
        "tree_gains": Credit(rule=TreeCredit(how="gains", nodes="turns")),
        "at2po": Credit(rule=TreeCredit(how="values", nodes="written", eps=1e-6)),
        "tree_grpo": Credit(rule=TreeCredit(how="tree_grpo", eps=1e-6)),
        "tree_rl": Credit(rule=TreeCredit(how="tree_rl")),
        "tree_po": Credit(rule=TreeCredit(how="tree_po", nodes="segments")),
    }
)


def credit(name: str) -> Credit:
    """Return a published way to give credit, or raise `ValueError`."""
    return named(CREDITS, name, "credit")
