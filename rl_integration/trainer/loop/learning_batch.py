"""A batch of rollouts and what is known of it, as the updates read it."""

from __future__ import annotations

import copy
import logging
import math
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.algorithms.choices import CreditChoice
from adjudge.rl_integration.trainer.algorithms.credit.answers import Answers, Decode
from adjudge.rl_integration.trainer.algorithms.objectives.inside import Shaping
from adjudge.rl_integration.trainer.algorithms.objectives.objective import Objective
from adjudge.rl_integration.trainer.algorithms.objectives.tokens import (
    RelativeEntropy,
    Steer,
    TokenBatch,
    TopEntropy,
    Totals,
)
from adjudge.rl_integration.trainer.data.arrays import Bools, Floats
from adjudge.rl_integration.trainer.data.task import Rollout, by_task
from adjudge.rl_integration.trainer.loop.config import LearningConfig
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.rewards.groups import Groups
from adjudge.rl_integration.trainer.rollouts.policy import Policy, TokenRows, padded_tokens, token_rows, within_budget


def injected(rollouts: Sequence[Rollout]) -> Bools:
    """Return (n,) which rollouts were written to another prompt than the one they have here.

    Such a rollout carries NaN, since what the policy thought of its tokens says nothing about this prompt; the learner
    asks the policy anew before the first update (`with_logprobs`).
    """
    return np.array([bool(np.isnan(one.logprobs[one.own]).any()) for one in rollouts], dtype=np.bool_)


def with_logprobs(
    rollouts: Sequence[Rollout], logprobs: Callable[[Sequence[Rollout]], Sequence[Floats]]
) -> list[Rollout]:
    """Return the rollouts with what the policy thinks of those that were injected."""
    places = np.flatnonzero(injected(rollouts)).tolist()
    completed = list(rollouts)
    if places:
        for place, row in zip(places, logprobs([rollouts[place] for place in places]), strict=True):
            completed[place] = replace(rollouts[place], logprobs=np.asarray(row, dtype=np.float32))
    return completed


def minibatches(rollouts: Sequence[Rollout], config: LearningConfig, *, seed: str) -> list[list[int]]:
    """Return the places of each update's rollouts; groups stay whole."""
    found: list[list[int]] = []
    for epoch in range(config.epochs):
        groups = list(by_task(rollouts).values())
        if config.minibatches > 1:
            random.Random(f"{seed}:{epoch}").shuffle(groups)
        parts = min(config.minibatches, len(groups))
        found += [[place for group in groups[part::parts] for place in group] for part in range(parts)]
    return found


def read_inside(shaping: Shaping, policy: Policy, rows: TokenRows) -> Tensor:
    """Return (n, R, k) of what goes on inside the policy at the tokens of answers."""
    inputs = {name: getattr(rows, name) for name in ("input_ids", "attention_mask", "position_ids")}
    with policy.arithmetic():
        return shaping.read(policy.model, inputs, rows.own)


def reweighted(
    rollouts: Sequence[Rollout],
    scores: Sequence[Score],
    logprobs: Callable[[Sequence[Rollout], float], Sequence[Floats]],
    *,
    temperature: float,
) -> list[Floats]:
    """Return log-probabilities under a reference p that is taken, token by token, to the power of each one's score.

    p^a, normalised, is what the logits give at the temperature 1 / a.  Scores are kept in [0, 1]; one that is not there
    leaves p as it is.
    """
    powers = [1.0 if score.value is None else min(1.0, max(0.0, score.value)) for score in scores]
    read: dict[int, Floats] = {}
    for power in sorted(set(powers)):
        places = [place for place, own in enumerate(powers) if own == power]
        heat = temperature / power if power else math.inf
        read |= zip(places, logprobs([rollouts[place] for place in places], heat), strict=True)
    return [read[place] for place in range(len(rollouts))]


class ValueModel(nn.Module):
    """Predicts, before each token of an answer, the reward that is still to come.

    Args:
        model: the policy's causal language model; what is trained of its body is copied, frozen weights are shared.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        body = model.base_model
        frozen = {id(value): value for value in body.parameters() if not value.requires_grad}
        self.body = copy.deepcopy(body, frozen)
        width = int(model.config.get_text_config().hidden_size)
        self.head = nn.Linear(width, 1, dtype=torch.float32)
        nn.init.zeros_(self.head.weight)  # it begins by knowing nothing, not by guessing
        nn.init.zeros_(self.head.bias)

    def forward(self, rows: TokenRows) -> Tensor:
        """Return (n, R) values of the states before the answers' tokens, in 32 bits."""
        outputs = self.body(
            input_ids=rows.input_ids,
            attention_mask=rows.attention_mask,
            position_ids=rows.position_ids,
            use_cache=False,
        )
        width = rows.answer_ids.shape[1]
        before: Tensor = outputs.last_hidden_state[:, -width - 1 : -1]
        with torch.autocast(before.device.type, enabled=False):
            values = linear(before.float(), self.head.weight.float(), self.head.bias.float())
        return values[..., 0].clone()  # shards would lose their hooks where a view is changed in place, and warn of it


@dataclass
class LearningBatch:
    """A batch of rollouts and what was found out about it; lists have a row for each."""

    rollouts: Sequence[Rollout]
    sampler: bool

    def __post_init__(self) -> None:
        size = len(self.rollouts)
        self.old: Sequence[Any] | None = None
        self.current: Sequence[Floats] | None = None  # (t, 2) log-probabilities and entropies, until the first update
        self.weights: dict[int, Floats] | None = None
        self.reference: Sequence[Any] | None = None
        self.values: Sequence[Any] | None = None
        self.returns: Sequence[Any] | None = None
        self.behaviour: Sequence[Any] = [rollout.logprobs for rollout in self.rollouts]
        self.advantages: Sequence[Any] = [0.0] * size
        self.injected: Bools | None = None
        self.counted: Bools = np.zeros(size, dtype=np.bool_)
        self.needed: Bools = np.zeros(size, dtype=np.bool_)
        self.masked: Bools = np.zeros(size, dtype=np.bool_)
        self.numbers: dict[str, float] = {}
        numbers = {task: number for number, task in enumerate(by_task(self.rollouts))}
        self.group = [numbers[rollout.task.id] for rollout in self.rollouts]
        self.width = max(len(rollout.ids) for rollout in self.rollouts)

    def groups(self, places: Sequence[int]) -> list[list[int]]:
        """Return some of the places by task."""
        groups: dict[int, list[int]] = {}
        for place in places:
            groups.setdefault(self.group[place], []).append(place)
        return list(groups.values())

    def mask(self) -> Bools:
        """(n, width) tokens that the policy wrote."""
        mask = np.zeros((len(self.rollouts), self.width), dtype=np.bool_)
        for row, rollout in zip(mask, self.rollouts, strict=True):
            row[: len(rollout.ids)] = rollout.own
        return mask

    def padded(self, name: str) -> Floats:
        """(n, width) of a list of rows."""
        padded = np.zeros((len(self.rollouts), self.width))
        for row, given in zip(padded, getattr(self, name), strict=True):
            row[: len(given)] = given
        return padded

    def rows(self, padded: Floats) -> list[Floats]:
        """Return the rows of (n, width) numbers of tokens, each as long as its answer."""
        return [row[: len(rollout.ids)] for row, rollout in zip(padded, self.rollouts, strict=True)]

    def tensor(self, name: str, part: Sequence[int], rows: TokenRows) -> Tensor:
        """(len(part), R) of a list of rows."""
        padded = torch.zeros(rows.answer_ids.shape, dtype=torch.float32)
        for row, place in enumerate(part):
            given = np.asarray(getattr(self, name)[place], dtype=np.float32)
            padded[row, : len(self.rollouts[place].ids)] = torch.from_numpy(np.atleast_1d(given))
        return padded.to(rows.answer_ids.device)

    def totals(self, places: Sequence[int]) -> Totals:
        """What the sums over some of the rollouts are divided by."""
        tokens = sum(int(self.rollouts[place].own.sum()) for place in places if not self.masked[place])
        groups = len({self.rollouts[place].task.id for place in places})
        return Totals(sequences=len(places), tokens=tokens, groups=groups)

    def tokens(
        self, part: Sequence[int], rows: TokenRows, logprobs: Tensor, entropies: Tensor, totals: Totals
    ) -> TokenBatch:
        """The part as the losses read it."""
        group = torch.tensor([self.group[place] for place in part], device=logprobs.device)
        injected = None if self.injected is None else torch.from_numpy(self.injected[list(part)]).to(logprobs.device)
        return TokenBatch(
            logp=logprobs,
            mask=rows.own,
            advantages=self.tensor("advantages", part, rows),
            old_logp=self.tensor("old", part, rows) if self.old is not None else None,
            sampler_logp=rows.behaviour if self.sampler else None,
            reference_logp=self.tensor("reference", part, rows) if self.reference is not None else None,
            entropy=entropies,
            weight=self.tensor("weights", part, rows) if self.weights is not None else None,
            next_value=torch.zeros_like(entropies),  # ROVER's before the first update of a batch, the only one it makes
            group=group,
            injected=injected,
            totals=totals,
        )

    def shape_advantages(self, shaping: Shaping, read: Sequence[Floats]) -> None:
        """Have advantages, of answers or of tokens, shaped by what was read of each answer's tokens."""
        rows = [
            np.broadcast_to(advantage, len(rollout.ids))
            for advantage, rollout in zip(self.advantages, self.rollouts, strict=True)
        ]
        self.advantages = shaping.shaped(rows, read, [rollout.own for rollout in self.rollouts])

    def weigh(
        self, weighting: TopEntropy | Steer | RelativeEntropy, places: Sequence[int], current: Sequence[Floats]
    ) -> None:
        """Set what the tokens of an update weigh beside each other.

        Args:
            weighting: the rule.
            places: the update's rollouts; one that is learnt from twice stands here twice.
            current: of each of them, (t, 2) log-probabilities and entropies of the policy that begins the update.
        """
        self.weights = None
        rows = token_rows([self.rollouts[place] for place in places], pad=0)
        logprobs, entropies = torch.zeros((2, *rows.own.shape), dtype=torch.float64)
        for row, read in enumerate(current):
            logprobs[row, : len(read)], entropies[row, : len(read)] = torch.from_numpy(read).unbind(1)
        weights = weighting(self.tokens(places, rows, logprobs, entropies, self.totals(places))).numpy()
        self.weights = {place: row[: len(self.rollouts[place].ids)] for place, row in zip(places, weights, strict=True)}


class LearningCredit:
    """Gives credit within the answers of a batch.

    Raises:
        ValueError: the objective has no use for it.
    """

    def __init__(self, choice: CreditChoice, objective: Objective, decode: Decode) -> None:
        self._credit = choice.made()
        self._credit.check(objective)
        self._part = choice.part
        self._objective = objective
        self._decode = decode

    def of(self, batch: LearningBatch, scores: Sequence[Score], groups: Groups, *, step: int) -> Floats:
        """Return (n, t) advantages of tokens or, for an objective with a critic, rewards of tokens.

        The batch's numbers say for how many judged answers the steps were known (`steps_known`).
        """
        answers = Answers.of(batch.rollouts, scores, self._decode, part=self._part)
        judged = max(1, int(groups.valid.sum()))
        batch.numbers["steps_known"] = float((answers.known & groups.valid).sum()) / judged
        if self._objective.critic is not None:
            return self._credit.token_rewards(answers, groups)
        return self._credit.advantages(answers, groups, self._objective.advantages(groups), step=step)


_LOG = logging.getLogger("adjudge.trainer")

T = TypeVar("T")


class Torn(torch.OutOfMemoryError):
    """Memory ran out when a pass had given gradients to some of the weights."""


class Passes:
    """Divides rollouts into passes.

    Args:
        processes: those that make passes together.
        tokens: most of a pass, padding included, to begin with.
        sharded: whether a pass is one that all processes make.

    Attributes:
        tokens: most of a pass now.
    """

    def __init__(self, processes: Processes, *, tokens: int, sharded: bool) -> None:
        self._processes = processes
        self.tokens = tokens
        self._sharded = sharded

    def __call__(
        self,
        rollouts: Sequence[Rollout],
        places: Sequence[int],
        units: Callable[[Sequence[int]], list[list[int]]],
        run: Callable[[Sequence[int]], T],
        idle: Callable[[], object],
    ) -> Iterator[T]:
        """Yield what comes of each pass; one that memory does not hold is halved, and with it all that follow.

        With shards all processes make as many passes, the last of them `idle`, and none can be made anew.
        """
        left = deque(within_budget(rollouts, units(places), self.tokens))
        if self._sharded:
            lacking = max(self._processes.all_gather([len(left)])) - len(left)
            try:
                for part in left:
                    yield run(part)
                for _ in range(lacking):
                    idle()
            except torch.OutOfMemoryError as error:
                raise torch.OutOfMemoryError(
                    f"a pass does not fit into memory ({error}); lower learning.micro_tokens ({self.tokens}): "
                    "with learning.sharding: full the other processes are in that pass, too, so it is not halved"
                ) from error
            return
        while left:
            part = left.popleft()
            try:
                done = run(part)
            except torch.OutOfMemoryError as error:
                self._halve(rollouts, part, error, whole=len(units(part)) == 1)
                if isinstance(error, Torn):
                    raise
            else:
                yield done
                continue
            torch.cuda.empty_cache()  # behind the handler, which holds what the pass made
            places = [*part, *(place for more in left for place in more)]
            left = deque(within_budget(rollouts, units(places), self.tokens))

    def _halve(self, rollouts: Sequence[Rollout], part: Sequence[int], error: Exception, *, whole: bool) -> None:
        tokens = padded_tokens(rollouts, part)
        if whole:
            raise torch.OutOfMemoryError(
                f"a pass of {tokens} tokens, the least that can be read at once, does not fit into memory ({error}); "
                "set learning.gradient_checkpointing or learning.lora, or lower rollouts.sampling.max_new_tokens"
            ) from error
        self.tokens = min(self.tokens, tokens) // 2
        _LOG.warning(
            "a pass of %d tokens does not fit into memory; from here on passes have at most %d; set "
            "learning.micro_tokens to that (%s)",
            tokens,
            self.tokens,
            error,
        )
