"""OmegaPRM's tree (arXiv 2406.06592): wrong rollouts of promising prefixes are halved, and every rollout is used again.

A state is a prefix with k rollouts; MC(s) is the share of them that ended right.  Wrong rollouts r of states with
0 < MC(s) < 1 wait in a pool.  In each round the one with the largest Q(s, r) + U(s) is taken out and its first error is
searched by halving, which makes new states, whose wrong rollouts go into the pool.

    Q(s, r) = alpha^(1 - MC(s)) * beta^(len(r) / L)
    U(s)    = c_puct * sqrt(sum of N over all states) / (1 + N(s))

N(s) counts how often a rollout of s was taken, and len(r) its tokens.  The defaults are the paper's.  So rollouts that
should have been right are searched first, short ones before long ones.

Not covered: right rollouts as paths of their own; like the paper's, they count in MC alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from adjudge.data_pipelines.steps.rollouts import Estimate, Oracle, Prefix, Rollout, certain, estimate_of


@dataclass(frozen=True, kw_only=True)
class TreeOptions:
    """How a tree grows.

    Attributes:
        rollouts: k, from each state.
        searches: most rollouts that are searched.
        alpha: in (0, 1]; the smaller, the more states with a high share come first.
        beta: in (0, 1]; the smaller, the more short rollouts come first.
        length: L, in tokens.
        c_puct: weight of states that were seldom chosen.
    """

    rollouts: int = 8
    searches: int = 100
    alpha: float = 0.5
    beta: float = 0.9
    length: int = 500
    c_puct: float = 0.125

    def __post_init__(self) -> None:
        """Reject options out of their range."""
        for name in ("rollouts", "searches", "length"):
            if getattr(self, name) < 1:
                raise ValueError(f"the tree's {name} is {getattr(self, name)!r}; it must be 1 or more")
        for name in ("alpha", "beta"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"the tree's {name} is {getattr(self, name)!r}; it must be above 0 and at most 1")
        if not (math.isfinite(self.c_puct) and self.c_puct >= 0):
            raise ValueError(f"the tree's c_puct is {self.c_puct!r}; it must be 0 or more")

    def merit(self, share: float, length: int) -> float:
        """Return Q of a rollout of `length` tokens from a state with this share."""
        return float(self.alpha ** (1 - share) * self.beta ** (length / self.length))

    def urge(self, visits: int, all_visits: int) -> float:
        """Return U of a state that was chosen `visits` times, of `all_visits` in the tree."""
        return self.c_puct * math.sqrt(all_visits) / (1 + visits)


@dataclass(slots=True, kw_only=True)
class State:
    """A prefix that was rolled out.

    Attributes:
        prefix: its pieces.
        estimate: how its rollouts ended.
        visits: how often one of them was searched.
    """

    prefix: Prefix
    estimate: Estimate
    visits: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A wrong solution that was searched.

    Attributes:
        pieces: of the whole solution.
        estimates: by the length of the prefix: of all states on the way that are known by now, and of the end.
        fresh: the lengths that no earlier path holds.
        error: place of the first error, from 0; None where unknown prefixes or the budget hide it.
    """

    pieces: Prefix
    estimates: dict[int, Estimate]
    fresh: frozenset[int]
    error: int | None


@dataclass(slots=True)
class Tree:
    """What grew.

    Attributes:
        states: by their prefix; the empty one is the root.
        paths: in the order in which they were searched.
    """

    states: dict[Prefix, State] = field(default_factory=dict)
    paths: list[Path] = field(default_factory=list)


async def grow(oracle: Oracle, options: TreeOptions, *, given: Sequence[Rollout] = ()) -> Tree:
    """Return the tree of a problem.

    No prefix is asked twice.  The tree ends early when the pool is empty: where the problem is always or never solved,
    it is a root.

    Args:
        oracle: goes on from prefixes.
        options: how it grows.
        given: solutions that are searched too, as rollouts of the root; they have no vote in its share.
    """
    grower = _Grower(oracle, options)
    await grower.state(())
    for rollout in given:
        grower.offer(grower.tree.states[()], rollout)
    for _ in range(options.searches):
        if not grower.pool:
            break
        await grower.search()
    return grower.tree


class _Grower:
    def __init__(self, oracle: Oracle, options: TreeOptions):
        self._oracle = oracle
        self._options = options
        self.tree = Tree()
        self.pool: list[tuple[State, Rollout]] = []
        self._offered: set[Prefix] = set()
        self._shown: set[Prefix] = set()

    async def state(self, prefix: Prefix) -> State:
        """Return the state of a prefix, made when it is first reached."""
        if prefix not in self.tree.states:
            rollouts = await self._oracle.rollouts(prefix, self._options.rollouts)
            made = self.tree.states[prefix] = State(prefix=prefix, estimate=estimate_of(rollouts))
            for rollout in rollouts:
                self.offer(made, rollout)
        return self.tree.states[prefix]

    def offer(self, state: State, rollout: Rollout) -> None:
        """Put a wrong rollout into the pool, once, if its state is neither hopeless nor sure."""
        share, pieces = state.estimate.value, (*state.prefix, *rollout.pieces)
        if rollout.right is False and rollout.pieces and share is not None and 0 < share < 1:
            if pieces not in self._offered:
                self.pool.append((state, rollout))
            self._offered.add(pieces)

    async def search(self) -> None:
        """Take the best rollout out of the pool, and halve it."""
        visits = sum(state.visits for state in self.tree.states.values())
        at = max(range(len(self.pool)), key=lambda one: (self._merit(*self.pool[one], visits), -one))
        state, rollout = self.pool.pop(at)
        state.visits += 1
        pieces = (*state.prefix, *rollout.pieces)
        low, high, unknown = len(state.prefix), len(pieces), set[int]()
        while between := [length for length in range(low + 1, high) if length not in unknown]:
            middle = (low + high) / 2
            length = min(between, key=lambda one: (abs(one - middle), one))
            reached = (await self.state(pieces[:length])).estimate.reached
            if reached is None:
                unknown.add(length)
            elif reached:
                low = length
            else:
                high = length
        self._show(pieces, high - 1 if high == low + 1 else None)

    def _merit(self, state: State, rollout: Rollout, visits: int) -> float:
        share = state.estimate.value or 0.0
        return self._options.merit(share, rollout.length) + self._options.urge(state.visits, visits)

    def _show(self, pieces: Prefix, error: int | None) -> None:
        estimates = {
            length: state.estimate
            for length in range(1, len(pieces))
            if (state := self.tree.states.get(pieces[:length])) is not None and state.estimate.judged
        }
        estimates[len(pieces)] = certain(False)
        fresh = frozenset(length for length in estimates if pieces[:length] not in self._shown)
        self._shown.update(pieces[:length] for length in fresh)
        if fresh:
            self.tree.paths.append(Path(pieces=pieces, estimates=estimates, fresh=fresh, error=error))
