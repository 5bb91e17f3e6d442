"""Answers that share beginnings: written once, forked, and gone on with.

`segments` writes so many tokens, forks, writes as many more, until there are as many answers as wanted; each of them
then goes on to its end.  Where an answer ends before it was forked often enough, the missing ones begin at the prompt.
`uncertain` writes whole answers, and then others from the tokens before those that were least likely, `random` before
any; an answer of too few tokens is gone on with from the prompt.  `Rollout.path` says which tokens were written once
for several answers.

An answer's place in its group is fixed before it is written, so neither timing nor the order in which pieces end can
change a batch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np

from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig, TreeConfig
from adjudge.rl_integration.trainer.rollouts.writer import Generator, OnRollout, Piece, Writer, alike


@dataclass(frozen=True, slots=True, kw_only=True)
class _Branch:
    """A beginning of answers: their task, its tokens, and the places of the answers that it is to become."""

    task: int
    first: int
    leaves: int
    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    path: tuple[tuple[str, int], ...] = ()

    def on(self, piece: Piece, node: str) -> _Branch:
        """The branch with a piece behind it."""
        return replace(
            self,
            ids=self.ids + piece.ids,
            logprobs=self.logprobs + piece.logprobs,
            path=(*self.path, (node, len(piece.ids))),
        )

    def split(self, count: int) -> list[_Branch]:
        """So many branches that share the places evenly."""
        edges = [self.first + self.leaves * part // count for part in range(count + 1)]
        return [replace(self, first=begin, leaves=end - begin) for begin, end in pairwise(edges)]


class TreeWriter(Writer):
    """Writes the answers to each task as a tree."""

    def __init__(self, policy: Policy, generator: Generator, config: TreeConfig) -> None:
        super().__init__(policy, generator)
        self._config = config

    def roll_out(
        self,
        tasks: Sequence[Task],
        num_generations: int,
        sampling: SamplingConfig,
        *,
        seed: int,
        version: int,
        name: str,
        on_rollout: OnRollout,
    ) -> list[Rollout]:
        """Return answers; see `Writer`.  A group of one does not branch.

        Raises:
            ValueError: groups of that size cannot branch as they should.
        """
        if num_generations > 1:
            self._config.check(num_generations)
        self._generator.refresh(version)
        growth = _Growth(
            policy=self._policy,
            generator=self._generator,
            tasks=tasks,
            sampling=sampling,
            seed=seed,
            version=version,
            name=name,
            on_rollout=on_rollout,
        )
        if self._config.kind != "segments" and num_generations > 1:
            growth.in_the_end(num_generations, self._config)
        else:
            growth.by_segments(num_generations, self._config if num_generations > 1 else replace(self._config, trees=1))
        return [growth.rollouts[place] for place in range(len(tasks) * num_generations)]


@dataclass(kw_only=True)
class _Growth:
    """The trees of one batch, while they grow."""

    policy: Policy
    generator: Generator
    tasks: Sequence[Task]
    sampling: SamplingConfig
    seed: int
    version: int
    name: str
    on_rollout: OnRollout
    rollouts: dict[int, Rollout] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._prompts = [self.policy.encode(task) for task in self.tasks]
        self._calls = self._nodes = 0

    def by_segments(self, num_generations: int, config: TreeConfig) -> None:
        """Fork after every segment."""
        going = [
            branch
            for task in range(len(self.tasks))
            for branch in _Branch(task=task, first=task * num_generations, leaves=num_generations).split(config.trees)
        ]
        while going:
            pieces = self._written(going, lambda one: config.segment if one.leaves > 1 else self._left(one))
            going = []
            for branch, piece in pieces:
                if not self._done(branch, piece):
                    going += branch.split(min(config.width, branch.leaves))
                elif branch.leaves > 1:
                    missing = _Branch(task=branch.task, first=branch.first + 1, leaves=branch.leaves - 1)
                    going += missing.split(missing.leaves)

    def in_the_end(self, num_generations: int, config: TreeConfig) -> None:
        """Fork whole answers, at random or where they were least likely."""
        draw = random.Random(f"{self.seed}:nodes")
        size = num_generations // config.trees
        roots = [
            _Branch(task=task, first=task * num_generations + tree * size, leaves=1)
            for task in range(len(self.tasks))
            for tree in range(config.trees)
        ]
        forked: list[_Branch] = []
        for branch, _ in self._written(roots, self._left):
            ranked = sorted(range(1, len(branch.logprobs)), key=lambda place: (branch.logprobs[place], place))
            if config.kind == "random":
                draw.shuffle(ranked)
            parts = _cut(branch, sorted(ranked[: config.forks]), self._named)
            rollout = self.rollouts[branch.first]
            self.rollouts[branch.first] = replace(rollout, path=parts[-1].path)
            beginnings = [part for part in parts[:-1] for _ in range(config.copies)]
            prompt = _Branch(task=branch.task, first=0, leaves=1)
            beginnings += [prompt] * (size - 1 - len(beginnings))
            forked += [replace(one, first=branch.first + 1 + at) for at, one in enumerate(beginnings)]
        for _ in self._written(forked, self._left):
            pass

    def _left(self, branch: _Branch) -> int:
        """How many tokens an answer may still have."""
        return self.sampling.max_new_tokens - len(branch.ids)

    def _named(self) -> str:
        """A name for a node, as unique as those of the answers."""
        self._nodes += 1
        return f"{self.name}:{self._nodes}"

    def _done(self, branch: _Branch, piece: Piece) -> bool:
        return piece.finish_reason == "stop" or not self._left(branch)

    def _written(self, branches: Sequence[_Branch], limit: Callable[[_Branch], int]) -> list[tuple[_Branch, Piece]]:
        """Each branch with one more piece, in the order given; finished answers are told as soon as they end."""
        nodes = [self._named() for _ in branches]
        grown: dict[int, tuple[_Branch, Piece]] = {}

        def ended(places: Sequence[int], at: int, piece: Piece) -> None:
            place = places[at]
            branch = branches[place].on(piece, nodes[place])
            grown[place] = (branch, piece)
            if self._done(branch, piece):
                self._finish(branch, piece)

        for copies, places in alike([(one.task, one.ids, one.leaves > 1) for one in branches]):
            heads = places[::copies]
            self.generator.generate(
                [self._prompts[branches[at].task] + branches[at].ids for at in heads],
                copies,
                self.sampling,
                seed=self._next_seed(),
                on_piece=partial(ended, places),
                limits=[min(limit(branches[at]), self._left(branches[at])) for at in heads],
            )
        return [grown[place] for place in range(len(branches))]

    def _next_seed(self) -> int:
        """A seed for each call: the batch's own first, and then such as no other batch begins with."""
        self._calls += 1
        return self.seed if self._calls == 1 else random.Random(f"{self.seed}:{self._calls}").getrandbits(48)

    def _finish(self, branch: _Branch, piece: Piece) -> None:
        self.rollouts[branch.first] = Rollout(
            id=f"{self.name}:{branch.first}",
            task=self.tasks[branch.task],
            prompt_ids=self._prompts[branch.task],
            ids=branch.ids,
            logprobs=np.asarray(branch.logprobs, dtype=np.float32),
            own=np.ones(len(branch.ids), dtype=np.bool_),
            text=self.policy.decode(branch.ids[:-1] if piece.ended else branch.ids),
            finish_reason=piece.finish_reason,
            version=self.version,
            path=branch.path,
        )
        self.on_rollout(branch.first, self.rollouts[branch.first])


def _cut(branch: _Branch, places: Sequence[int], named: Callable[[], str]) -> list[_Branch]:
    """A whole answer and its beginnings up to each place, shortest first, with a node for each stretch between."""
    path: tuple[tuple[str, int], ...] = ()
    branches: list[_Branch] = []
    for begin, end in pairwise([0, *places, len(branch.ids)]):
        path = (*path, (named(), end - begin))
        branches.append(replace(branch, ids=branch.ids[:end], logprobs=branch.logprobs[:end], path=path))
    return branches
