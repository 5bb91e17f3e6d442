"""Searches for the first error of a solution, and what a step adds to another policy's chance.

Halving needs log2(n) prefixes in place of n (OmegaPRM, arXiv 2406.06592).  It keeps two prefixes: the longest from
which a rollout ended right, which proves all steps up to there in the sense of hard labels, and the shortest from which
none did.  What is not reached from a prefix is taken to be reached from no longer one, which fails where k rollouts
missed the way ((1 - p)^k if one finds it with p), and where a later step repairs an earlier one; `verify` asks again
where the search stopped.  A solution that is right is not searched, and neither is what is behind the first error.

OmegaPRM's tree: a state is a prefix with k rollouts; MC(s) is the share of them that ended right.  Wrong rollouts r of
states with 0 < MC(s) < 1 wait in a pool.  In each round the one with the largest Q(s, r) + U(s) is taken out and its
first error is searched by halving, which makes new states, whose wrong rollouts go into the pool.

    Q(s, r) = alpha^(1 - MC(s)) * beta^(len(r) / L)
    U(s)    = c_puct * sqrt(sum of N over all states) / (1 + N(s))

N(s) counts how often a rollout of s was taken, and len(r) its tokens.  The defaults are the paper's.

Process advantages under a prover (PAV, arXiv 2410.08146) are differences of its chance of a right answer after and
before a step.  The prover takes the best of K rollouts of some policy.  From n judged rollouts with c right ones its
chance is estimated without bias by 1 - C(n - c, K) / C(n, K); K = 4 of the base policy worked best in the paper.
`first_pit` stops at the first prefix from which no rollout ends right, so that rollouts are spent where advantages are
learnt; the paper has no code, and this is how we read it.  A trainer's credit `pav` learns from them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from adjudge.data_pipelines.steps.rollouts import (
    UNKNOWN,
    Estimate,
    Oracle,
    Prefix,
    Rollout,
    StepLabels,
    certain,
    estimate_of,
    first_unreached,
    monte_carlo,
    shares,
)
from adjudge.training.step_data import Label


async def binary_search(oracle: Oracle, pieces: Prefix, *, k: int, outcome: bool | None, verify: int = 0) -> StepLabels:
    """Return hard labels up to the first error of a solution; what is behind it stays unknown.

    At most ceil(log2(n)) + 1 + `verify` prefixes are asked for n steps.  Where a good prefix is overturned by `verify`,
    halving goes on behind it, and more are asked.

    Args:
        oracle: goes on from prefixes.
        pieces: of the solution, at least one.
        k: rollouts from each prefix that is asked.
        outcome: whether the solution is right; None where unknown, and then nothing is searched.
        verify: how often k more rollouts are asked where the search ended.
    """
    steps = len(pieces)
    if outcome is not False:
        estimates = (*[UNKNOWN] * (steps - 1), certain(outcome))
        labels: tuple[Label, ...] = (1.0 if outcome else None,) * steps
        error = -1 if outcome else None
        return StepLabels(labels=labels, values=shares(estimates), estimates=estimates, first_error=error)
    search = _Halving(oracle, pieces, k)
    place = await search.shortest_bad()
    again = 0
    while place is not None and place < steps and again < verify:
        again += 1
        if (await search.ask(place, k * (again + 1))).reached:
            search.good = place
            place, again = await search.shortest_bad(), 0
    if place == 1 and not (await search.ask(0, k)).reached:
        place = None  # the first step is to blame only if the problem itself can be solved
    error = None if place is None else place - 1
    estimates = tuple(search.asked.get(length, UNKNOWN) for length in range(1, steps + 1))
    return StepLabels(
        labels=tuple(1.0 if at < search.good else 0.0 if at == error else None for at in range(steps)),
        values=shares(estimates),
        estimates=estimates,
        first_error=error,
    )


class _Halving:
    """The longest prefix that is known to be good, and the votes on all lengths that were asked."""

    def __init__(self, oracle: Oracle, pieces: Prefix, k: int):
        self._oracle = oracle
        self._pieces = pieces
        self._k = k
        self.good = 0
        self.asked: dict[int, Estimate] = {len(pieces): certain(False)}

    async def ask(self, length: int, n: int) -> Estimate:
        estimate = self.asked[length] = estimate_of(await self._oracle.rollouts(self._pieces[:length], n))
        return estimate

    async def shortest_bad(self) -> int | None:
        """Return the length of the shortest prefix with the error; None where unknown prefixes hide it."""
        while True:
            bad = min(length for length, votes in self.asked.items() if votes.reached is False and length > self.good)
            length = _middle(self.good, bad, self.asked)
            if length is None:
                return bad if bad == self.good + 1 else None
            if (await self.ask(length, self._k)).reached:
                self.good = length


def _middle(low: int, high: int, known: Collection[int]) -> int | None:
    """Return the length nearest to the middle between two that is not known yet; None if there is none."""
    between = [length for length in range(low + 1, high) if length not in known]
    return min(between, key=lambda one: (abs(one - (low + high) / 2), one), default=None)


@dataclass(frozen=True, kw_only=True)
class TreeOptions:
    """How a tree grows; `StepsConfig` says what each may be.

    Attributes:
        rollouts: k, from each state.
        searches: most rollouts that are searched.
        alpha: the smaller, the more states with a high share come first.
        beta: the smaller, the more short rollouts come first.
        length: L, in tokens.
        c_puct: weight of states that were seldom chosen.
    """

    rollouts: int = 8
    searches: int = 100
    alpha: float = 0.5
    beta: float = 0.9
    length: int = 500
    c_puct: float = 0.125

    def merit(self, share: float, length: int) -> float:
        """Return Q of a rollout of `length` tokens from a state with this share."""
        return float(self.alpha ** (1 - share) * self.beta ** (length / self.length))

    def urge(self, visits: int, all_visits: int) -> float:
        """Return U of a state that was chosen `visits` times, of `all_visits` in the tree."""
        return self.c_puct * math.sqrt(all_visits) / (1 + visits)


@dataclass(slots=True, kw_only=True)
class State:
    """A prefix that was rolled out."""

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


async def grow(oracle: Oracle, options: TreeOptions, *, given: Sequence[Rollout] = ()) -> Tree:
    """Return the tree of a problem, with given solutions in its pool; no prefix is asked twice.

    It ends early when the pool is empty: where the problem is always or never solved, it is a root.
    """
    tree = Tree(oracle, options)
    root = await tree.state(())
    for rollout in given:
        tree.offer(root, rollout)
    while tree.pool and sum(state.visits for state in tree.states.values()) < options.searches:
        await tree.search()
    return tree


class Tree:
    """What grows.

    Attributes:
        states: by their prefixes.
        paths: the wrong solutions that were searched.
        pool: wrong rollouts that wait, with their states.
    """

    def __init__(self, oracle: Oracle, options: TreeOptions):
        self._oracle = oracle
        self._options = options
        self.states: dict[Prefix, State] = {}
        self.paths: list[Path] = []
        self.pool: list[tuple[State, Rollout]] = []
        self._offered: set[Prefix] = set()
        self._shown: set[Prefix] = set()

    async def state(self, prefix: Prefix) -> State:
        """Return the state of a prefix, made when it is first reached."""
        if prefix not in self.states:
            rollouts = await self._oracle.rollouts(prefix, self._options.rollouts)
            made = self.states[prefix] = State(prefix=prefix, estimate=estimate_of(rollouts))
            for rollout in rollouts:
                self.offer(made, rollout)
        return self.states[prefix]

    def offer(self, state: State, rollout: Rollout) -> None:
        """Put a wrong rollout into the pool, once, if its state is neither hopeless nor sure."""
        share, pieces = state.estimate.value, (*state.prefix, *rollout.pieces)
        if rollout.right is False and rollout.pieces and share is not None and 0 < share < 1:
            if pieces not in self._offered:
                self.pool.append((state, rollout))
            self._offered.add(pieces)

    async def search(self) -> None:
        """Take the best rollout out of the pool, and halve it."""
        visits = sum(state.visits for state in self.states.values())
        at = max(range(len(self.pool)), key=lambda one: (self._merit(*self.pool[one], visits), -one))
        state, rollout = self.pool.pop(at)
        state.visits += 1
        pieces = (*state.prefix, *rollout.pieces)
        low, high, unknown = len(state.prefix), len(pieces), set[int]()
        while (length := _middle(low, high, unknown)) is not None:
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
            if (state := self.states.get(pieces[:length])) is not None and state.estimate.judged
        }
        estimates[len(pieces)] = certain(False)
        fresh = frozenset(length for length in estimates if pieces[:length] not in self._shown)
        self._shown.update(pieces[:length] for length in fresh)
        if fresh:
            self.paths.append(Path(pieces=pieces, estimates=estimates, fresh=fresh, error=error))


def chance_of(estimate: Estimate, best_of: int) -> float | None:
    """Return the chance that best-of-K is right, without bias; None with fewer than K judged rollouts."""
    if estimate.judged < best_of:
        return None
    wrong = estimate.judged - estimate.right
    return 1.0 - math.comb(wrong, best_of) / math.comb(estimate.judged, best_of)


async def advantages(
    oracle: Oracle, pieces: Prefix, *, k: int, best_of: int, outcome: bool | None, first_pit: bool = False
) -> StepLabels:
    """Return the prover's chance after each step; the values are its advantages, None where a chance is unknown.

    It takes n k calls for n steps, fewer with `first_pit`.
    """
    start = estimate_of(await oracle.rollouts((), k))
    if first_pit:
        asked = [start]
        while len(asked) < len(pieces) and asked[-1].reached is not False:
            asked.append(estimate_of(await oracle.rollouts(pieces[: len(asked)], k)))
        estimates = (*asked[1:], *[UNKNOWN] * (len(pieces) - len(asked)), certain(outcome))
    else:
        estimates = await monte_carlo(oracle, pieces, k=k, outcome=outcome)
    first = chance_of(start, best_of)
    chances = (*[chance_of(estimate, best_of) for estimate in estimates[:-1]], estimates[-1].value)
    return StepLabels(
        labels=chances,
        values=tuple(
            None if before is None or after is None else after - before
            for before, after in itertools.pairwise([first, *chances])
        ),
        estimates=estimates,
        start=first,
        first_error=first_unreached(estimates),
    )
