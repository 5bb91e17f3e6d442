"""One step of learning: rollouts and their scores in, a better policy out.

A sample without a score has no vote in any mean and gives no gradient.  An answer whose advantage is 0 gives none
either, so unless the objective looks at it for another reason, the model does not read it again.

With several processes each has the whole batch and reads its share of every update; gradients are summed over them.
`DistributedDataParallel` sums in every backward pass, of which the processes need not make the same number.  Models in
shards do, too: there a process with fewer passes than others makes some that count for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.algorithms.choices import CreditChoice
from adjudge.rl_integration.trainer.algorithms.objectives.objective import Critic, Objective
from adjudge.rl_integration.trainer.algorithms.objectives.policy_loss import PolicyLoss, Preference, Rover
from adjudge.rl_integration.trainer.algorithms.objectives.tokens import Totals, sampling_logp_difference
from adjudge.rl_integration.trainer.data.arrays import Bools, Floats, Integers
from adjudge.rl_integration.trainer.data.task import Rollout, by_task
from adjudge.rl_integration.trainer.loop.config import LearningConfig
from adjudge.rl_integration.trainer.loop.learning_batch import (
    LearningBatch,
    LearningCredit,
    Passes,
    Torn,
    ValueModel,
    injected,
    minibatches,
    read_inside,
    reweighted,
    with_logprobs,
)
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.loop.run_logger import advantage_facts
from adjudge.rl_integration.trainer.rewards.groups import Groups, groups_of, kl_penalty, token_rewards
from adjudge.rl_integration.trainer.rollouts.policy import Policy, TokenRows, token_rows, within_budget
from adjudge.training.sharding import (
    Shards,
    in_shards,
    own_part,
    put_optimizer_state,
    whole_optimizer_state,
    whole_tensors,
)

_LARGEST = "max_sampling_ratio"  # how much likelier or less likely any token is than when it was drawn
_OF_ALL = {"loss", "value_loss", "clip_ratio_low", "clip_ratio_high", _LARGEST}  # a token without advantage adds 0


class Learner:
    """Updates a policy.

    Args:
        policy: it is changed: prepared as the configuration says, and then trained.
        objective: what is learnt from rewards.
        config: how.
        temperature: of the rollouts.
        steps: of the whole run, for the learning rate.
        seed: of the order within batches.
        reference: the policy that divergences are measured from; needed by some objectives, unless there are low-rank
            factors: then the policy without them is one.
        credit: how credit is given within answers; by default all tokens of an answer have its advantage.
        processes: those that learn together.

    Raises:
        ValueError: the objective needs a reference policy, or cannot make several updates of a batch, or the policy
            cannot be trained as it is, or it should be in shards and the process was started alone.
    """

    def __init__(
        self,
        policy: Policy,
        objective: Objective,
        config: LearningConfig,
        *,
        temperature: float,
        steps: int,
        seed: int,
        reference: Policy | None = None,
        credit: CreditChoice | None = None,
        processes: Processes | None = None,
    ) -> None:
        if objective.needs_reference and reference is None and config.lora is None:
            raise ValueError("the objective measures a divergence from a reference policy; give one")
        if isinstance(objective.policy, Rover) and config.updates > 1:
            raise ValueError("rover learns from a batch once; set learning.minibatches and learning.epochs to 1")
        self._credit = None if credit is None else LearningCredit(credit, objective, policy.decode)
        self.policy = policy
        self.objective = objective
        self.config = config
        self.step = 0
        self._temperature = temperature
        self._steps = steps
        self._seed = seed
        self._reference = reference
        self._processes = processes if processes is not None else Processes()
        self._prepare(seed)
        self.critic = ValueModel(policy.model).to(policy.device) if objective.critic is not None else None
        self._sharded = config.sharding == "full"
        self._passes = Passes(self._processes, tokens=config.micro_tokens, sharded=self._sharded)
        if self._sharded:
            self._shard()
        rate = config.learning_rate
        groups: list[dict[str, Any]] = [{"params": _trained(policy.model), "peak": rate}]
        if self.critic is not None:
            groups.append({"params": _trained(self.critic), "peak": config.critic_learning_rate or 10 * rate})
        self.optimizer = config.optimizer(groups)

    def _prepare(self, seed: int) -> None:
        policy, config = self.policy, self.config
        if config.lora is not None:
            policy.adapt(config.lora, seed=seed)
        kind = policy.device.type if config.sharding == "none" else self._device().type
        policy.bf16 = config.bf16(kind)
        policy.use_prefix_grouper = config.use_prefix_grouper
        if self._reference is not None:
            self._reference.bf16, self._reference.use_prefix_grouper = policy.bf16, policy.use_prefix_grouper
        again = config.gradient_checkpointing
        if again == "auto":
            able = policy.model.supports_gradient_checkpointing and not config.use_prefix_grouper
            again = kind == "cuda" and able
        if again:
            policy.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        for name, value in policy.model.named_parameters():
            if value.requires_grad and value.dtype.itemsize < 4:
                raise ValueError(
                    f"the weights of {policy.name} are {value.dtype} ({name}), in which a small step is lost; open it "
                    "in float32 (precision bf16 still computes in bfloat16), or train low-rank factors (learning.lora)"
                )

    def _device(self) -> torch.device:
        return torch.device(self._processes.device or self.policy.device)

    def _shard(self) -> None:
        """Have each process keep a part of the first one's weights."""
        self.begin_alike()
        policy, device, cpu_offload = self.policy, self._device(), self.config.cpu_offload
        layers = policy.model._no_split_modules or ()
        for one in (policy, self._reference):
            if one is not None:
                one.shard(device, cpu_offload=cpu_offload)
        if self.critic is not None:
            Shards(self.critic, device=device, bf16=policy.bf16, cpu_offload=cpu_offload, layers=layers)

    def learn(
        self,
        rollouts: Sequence[Rollout],
        scores: Sequence[Score],
        *,
        exact: bool = True,
        copies: Sequence[int] | Integers | None = None,
    ) -> dict[str, float]:
        """Make the updates of one batch.

        Args:
            rollouts: whole groups.
            scores: one for each.
            exact: whether the rollouts' log-probabilities are those of the policy that wrote them; those of another
                engine are only nearly so.
            copies: how often each is learnt from; by default once.  One with 0 still has a vote in its group's mean.

        Returns:
            Numbers of the step: divergence, gradient norm and what the loss reports.
        """
        with self.policy.lock:  # a scorer that was given up may still ask, and must not read half an update
            batch = self._prepared(rollouts, scores, exact=exact)
            numbers: dict[str, list[float]] = {}
            for model in (self.policy.model, self.critic):
                if model is not None:
                    model.train()
            for group in self.optimizer.param_groups:
                group["lr"] = group["peak"] * self.config.share(self.step, self._steps)
            often = [1] * len(rollouts) if copies is None else copies
            for minibatch in minibatches(rollouts, self.config, seed=f"{self._seed}:{self.step}"):
                places = [place for place in minibatch for _ in range(often[place])]
                for name, value in self._update(batch, places).items():
                    numbers.setdefault(name, []).append(value)
            self.step += 1
            return batch.numbers | {name: sum(values) / len(values) for name, values in numbers.items()}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return what is trained, by name, and the optimiser's state; of shards, all in the first process alone."""
        if not self._sharded:
            return self._parameters(), self.optimizer.state_dict()
        keep = self._processes.is_main_process
        return whole_tensors(self._parameters(), keep=keep), whole_optimizer_state(self.optimizer, keep=keep)

    def restore(self, step: int, tensors: Mapping[str, Tensor], optimizer: Mapping[str, Any]) -> None:
        """Put a state in place; see `put_back`."""
        self.put_back(tensors)
        put_optimizer_state(self.optimizer, optimizer)
        self.step = step

    def put_back(self, tensors: Mapping[str, Tensor]) -> None:
        """Put what is trained in place, by name, and leave everything else.

        Raises:
            ValueError: it is of another model.
        """
        wanted = self._parameters()
        if odd := sorted(wanted.keys() ^ tensors.keys()):
            raise ValueError(f"the checkpoint is of another model or objective: {', '.join(odd[:3])}")
        with self.policy.lock, torch.no_grad():
            for name, value in wanted.items():
                value.copy_(in_shards(tensors[name], value))

    def begin_alike(self) -> None:
        """Give every process the first one's weights, frozen ones, too; those in shards are from there already."""
        if self.policy.shards is not None:
            return
        models = (self.policy.model, self.critic, self._reference.model if self._reference is not None else None)
        for model in models:
            if model is not None:
                self._processes.broadcast_tensors([*model.parameters(), *model.buffers()])

    def _parameters(self) -> dict[str, Tensor]:
        parts = {"policy": self.policy.model, "critic": self.critic}
        return {
            f"{part}.{name}": value
            for part, model in parts.items()
            if model is not None
            for name, value in model.named_parameters()
            if value.requires_grad
        }

    def _prepared(self, rollouts: Sequence[Rollout], scores: Sequence[Score], *, exact: bool) -> LearningBatch:
        """Everything about a batch that is fixed before the first update."""
        stale = any(rollout.version != self.step for rollout in rollouts)
        sampler = stale or not exact
        several = self.config.updates > 1
        helped = injected(rollouts)
        rollouts = with_logprobs(rollouts, lambda some: self._logprobs(self.policy, some))
        batch = LearningBatch(rollouts=rollouts, sampler=sampler)
        batch.injected = helped if helped.any() else None
        # With one update, the policy that begins it is the one that is differentiated.
        if several and sampler:
            batch.current = self._current(rollouts)
            batch.old = [read[:, 0] for read in batch.current]
        elif several:
            batch.old = [one.logprobs for one in rollouts]
        if self._reference is not None:
            batch.reference = self._of_reference(self._reference, rollouts, scores)
        elif self.objective.needs_reference:
            with self.policy.without_adapters():
                batch.reference = self._of_reference(self.policy, rollouts, scores)
        groups = groups_of(rollouts, scores)
        rewards = groups.rewards.copy()
        if self.objective.overlong is not None and groups.lengths is not None:
            rewards += self.objective.overlong(groups.lengths)
        if self.objective.reward_beta:
            behaviour, reference, mask = batch.padded("behaviour"), batch.padded("reference"), batch.mask()
            batch.numbers["kl"] = float((behaviour - reference)[mask].mean())
            if self.objective.critic is None:
                rewards += kl_penalty(behaviour, reference, mask, self.objective.reward_beta)
        groups = replace(groups, rewards=rewards)
        batch.counted = self.objective.counted(groups)
        credited = None if self._credit is None else self._credit.of(batch, scores, groups, step=self.step)
        if self.objective.critic is not None:
            self._with_values(batch, groups, self.objective.critic, more=credited)
        elif credited is not None:
            batch.advantages = batch.rows(credited)
        else:
            batch.advantages = list(self.objective.advantages(groups))
        if self.objective.shaping is not None:
            seen = self._read(self.policy.model, rollouts, partial(read_inside, self.objective.shaping, self.policy))
            batch.shape_advantages(self.objective.shaping, seen)
        if self.config.mask_truncated_completions:
            batch.masked = np.array([rollout.finish_reason == "length" for rollout in rollouts], dtype=np.bool_)
        batch.needed = batch.counted & self._wanted(batch) & ~batch.masked
        flat = sum(bool(groups.uniform()[places[0]]) for places in by_task(rollouts).values())
        batch.numbers["frac_reward_zero_std"] = flat / len(by_task(rollouts))
        batch.numbers |= advantage_facts(batch.advantages, batch.counted)
        return batch

    def _wanted(self, batch: LearningBatch) -> Bools:
        """Which rollouts can change anything."""
        loss = self.objective.policy
        by_advantage = isinstance(loss, PolicyLoss) and not (loss.beta or loss.entropy_coef or loss.weighting)
        if not by_advantage or self.critic is not None:
            return np.ones(len(batch.rollouts), dtype=np.bool_)
        return np.array([bool(np.any(advantage)) for advantage in batch.advantages], dtype=np.bool_)

    def _with_values(self, batch: LearningBatch, groups: Groups, critic: Critic, *, more: Floats | None = None) -> None:
        """Advantages and returns of tokens, from the value model; `more` are rewards of tokens beside the answers'."""
        assert self.critic is not None, "asked for by objectives with a critic alone"
        with self.policy.arithmetic():
            batch.values = self._read(self.critic, batch.rollouts, self.critic)
        mask = batch.mask() & groups.valid[:, None]
        beta = self.objective.reward_beta
        rewards = token_rewards(
            groups.rewards,
            mask,
            logp=batch.padded("behaviour"),
            reference_logp=batch.padded("reference") if beta else None,
            beta=beta,
        )
        rewards = rewards if more is None else rewards + more
        advantages, returns = critic.gae(rewards, batch.padded("values"), mask)
        batch.advantages, batch.returns = batch.rows(advantages), batch.rows(returns)

    def _units(self, batch: LearningBatch, places: Sequence[int]) -> list[list[int]]:
        """What is read in one pass: groups for losses of pairs, as much of one as fits where prompts are shared."""
        pairs = isinstance(self.objective.policy, Preference)
        if not pairs and not self.config.use_prefix_grouper:
            return [[place] for place in places]
        groups, fitting = batch.groups(places), partial(within_budget, batch.rollouts, tokens=self._passes.tokens)
        return groups if pairs else [part for group in groups for part in fitting([[place] for place in group])]

    def _update(self, batch: LearningBatch, places: Sequence[int]) -> dict[str, float]:
        """Make one update, in as many forward passes as memory asks for."""
        counted = [place for place in places if batch.counted[place]]
        needed = [place for place in counted if batch.needed[place]]
        numbers = {"trained": len(needed) / max(1, len(places))}
        if not needed:
            return numbers  # nothing to learn here; a step of the optimiser's momentum alone would be a step blind
        totals = batch.totals(counted)
        seen = batch.totals(needed).tokens
        self._weigh(batch, needed)
        units = self._units(batch, needed)
        costs = [sum(_tokens(batch.rollouts[place]) for place in unit) for unit in units]
        mine, spare = self._processes.balanced(costs), units[costs.index(min(costs))]
        own: dict[str, float] | None = None
        while own is None:
            own = self._accumulated(batch, [place for at in mine for place in units[at]], totals, spare)
        for name in own.keys() - _OF_ALL:  # the others are means over the answers that were read again
            own[name] *= totals.tokens / max(1, seen)
        numbers |= self._summed(own)
        limit = self.config.max_grad_norm or float("inf")
        for group in self.optimizer.param_groups:
            norm = self._clipped(group["params"], limit)
            name = "grad_norm" if group is self.optimizer.param_groups[0] else "value_grad_norm"
            numbers[name] = norm
            if not np.isfinite(norm):
                raise ValueError(
                    f"the gradient of step {self.step + 1} is {norm}; lower learning.learning_rate, or look for "
                    "rewards that are far out of range"
                )
        self.optimizer.step()
        return numbers

    def _clipped(self, trained: Sequence[Tensor], limit: float) -> float:
        """Scale gradients down to a length, and return the length that they had."""
        if not self._sharded:
            return float(torch.nn.utils.clip_grad_norm_(trained, limit))
        grads = [own_part(value.grad) for value in trained if value.grad is not None]
        parts = self._processes.all_gather([float(torch.nn.utils.get_total_norm(grads))])
        norm = math.hypot(*parts)
        share = limit / (norm + 1e-6)  # as in `clip_grad_norm_`
        for grad in grads if share < 1 else ():
            grad.mul_(share)
        return norm

    def _weigh(self, batch: LearningBatch, places: Sequence[int]) -> None:
        """Have the update's tokens compared with each other, those of other processes included, if a rule does that."""
        current, batch.current = batch.current, None
        weighting = self.objective.policy.weighting if isinstance(self.objective.policy, PolicyLoss) else None
        if weighting is None:
            return
        if current is None:
            once = sorted(set(places))
            read = dict(zip(once, self._current([batch.rollouts[place] for place in once]), strict=True))
        else:
            read = dict(enumerate(current))
        batch.weigh(weighting, places, [read[place] for place in places])

    def _accumulated(
        self, batch: LearningBatch, places: Sequence[int], totals: Totals, spare: Sequence[int]
    ) -> dict[str, float] | None:
        """Sum up this process's gradients and numbers of an update; None if a pass left half of its gradients.

        `spare` are places for passes that count for nothing.
        """
        self.optimizer.zero_grad(set_to_none=True)
        trained = [value for group in self.optimizer.param_groups for value in group["params"]]

        def written() -> list[int | None]:  # tensors count their changes
            return [None if value.grad is None else value.grad._version for value in trained]

        def backward(part: Sequence[int], share: float = 1.0) -> dict[str, float]:
            before = written()
            try:
                return self._backward(batch, part, totals, share=share)
            except torch.OutOfMemoryError as error:
                if before != written():
                    raise Torn(str(error)) from error
                raise

        own: dict[str, float] = {}
        try:
            idle = partial(backward, spare, share=0.0)
            for numbers in self._passes(batch.rollouts, places, partial(self._units, batch), backward, idle):
                for name, value in numbers.items():
                    own[name] = _added(name, own.get(name, 0.0), value)
        except Torn:
            return None
        return own

    def _summed(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Sum gradients over the processes, in place, and numbers, which are returned; shards have been summed."""
        trained = [value for group in self.optimizer.param_groups for value in group["params"]]
        met = self._processes.all_gather([(dict(numbers), [value.grad is not None for value in trained])])
        if self._processes.world_size > 1 and not self._sharded:
            # What had no part anywhere keeps no gradient, as in one process: the optimiser leaves it alone.
            parts = [value for value, *has in zip(trained, *(has_grad for _, has_grad in met), strict=True) if any(has)]
            for value in parts:
                if value.grad is None:
                    value.grad = torch.zeros_like(value)
            self._processes.all_reduce([value.grad for value in parts])
        summed: dict[str, float] = {}
        for theirs, _ in met:
            for name, number in theirs.items():
                summed[name] = _added(name, summed.get(name, 0.0), number)
        return summed

    def _backward(self, batch: LearningBatch, part: Sequence[int], totals: Totals, *, share: float) -> dict[str, float]:
        """Add so much of the gradients of some rollouts; return the numbers of all of them."""
        rows = token_rows([batch.rollouts[place] for place in part], pad=self.policy.pad).to(self.policy.device)
        steer = isinstance(self.objective.policy, PolicyLoss) and self.objective.policy.entropy_coef > 0
        logprobs, entropies = self.policy.logprobs(rows, temperature=self._temperature, steer=steer)
        tokens = batch.tokens(part, rows, logprobs, entropies, totals)
        value = self.objective.loss(tokens)
        (share * value.loss).backward()  # type: ignore[no-untyped-call]
        numbers = {"loss": float(value.loss.detach())} | {name: float(metric) for name, metric in value.metrics.items()}
        if batch.sampler:
            numbers[_LARGEST] = float(sampling_logp_difference(tokens).max().exp())
        if self.critic is not None and self.objective.critic is not None:
            with self.policy.arithmetic():
                values = self.critic(rows)
            old, returns = batch.tensor("values", part, rows), batch.tensor("returns", part, rows)
            critic_loss = self.objective.critic.loss(values, old, returns, tokens.mask, totals=totals)
            (share * critic_loss.loss).backward()  # type: ignore[no-untyped-call]
            numbers["value_loss"] = float(critic_loss.loss.detach())
            numbers |= {name: float(one) for name, one in critic_loss.metrics.items()}
        return numbers

    def _of_reference(self, policy: Policy, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> list[Floats]:
        """Log-probabilities under the reference, to the power of each rollout's score if the objective says so."""
        read = partial(self._logprobs, policy)
        if not self.objective.reweighted_reference:
            return read(rollouts)
        return reweighted(rollouts, scores, read, temperature=self._temperature or 1.0)

    def _logprobs(self, policy: Policy, rollouts: Sequence[Rollout], heat: float | None = None) -> list[Floats]:
        """Log-probabilities of the rollouts' tokens under a policy as it is; by default at the run's temperature."""
        heat = self._temperature if heat is None else heat
        return self._read(policy.model, rollouts, lambda rows: policy.logprobs(rows, temperature=heat)[0])

    def _current(self, rollouts: Sequence[Rollout]) -> list[Floats]:
        """(t, 2) log-probabilities and entropies of each rollout's tokens under the policy as it is."""

        def both(rows: TokenRows) -> Tensor:
            return torch.stack(self.policy.logprobs(rows, temperature=self._temperature), dim=-1)

        return self._read(self.policy.model, rollouts, both)

    @torch.no_grad()
    def _read(self, model: Any, rollouts: Sequence[Rollout], of: Callable[[TokenRows], Tensor]) -> list[Floats]:
        """A number, or several, for each token of every rollout; each process reads its share of them."""
        training = model.training
        model.eval()
        costs = [_tokens(rollout) for rollout in rollouts]
        mine = self._processes.balanced(costs)

        def read_part(part: Sequence[int]) -> list[tuple[int, Floats]]:
            rows = token_rows([rollouts[place] for place in part], pad=self.policy.pad).to(self.policy.device)
            values = of(rows).cpu().numpy()
            return [
                (place, row[: len(rollouts[place].ids)].astype(np.float64))
                for place, row in zip(part, values, strict=True)
            ]

        idle = partial(read_part, [costs.index(min(costs))])
        parts = self._passes(rollouts, mine, lambda places: [[place] for place in places], read_part, idle)
        read = [one for part in parts for one in part]
        model.train(training)
        return [row for _, row in sorted(self._processes.all_gather(read), key=lambda item: item[0])]


def _added(name: str, first: float, more: float) -> float:
    return max(first, more) if name == _LARGEST else first + more


def _tokens(rollout: Rollout) -> int:
    return len(rollout.prompt_ids) + len(rollout.ids)


def _trained(model: Any) -> list[Any]:
    return [value for value in model.parameters() if value.requires_grad]
