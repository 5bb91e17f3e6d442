"""What training a process model minimises: losses of steps and answers, and the modules that compute them.

A step's *logit* is the log-odds that it is right: the head's number where it has one output, and the difference of the
two where it has two (the softmax of the two is then the sigmoid of the difference, so both forms train alike).  Labels
are probabilities; a step without one is left out before a loss sees it, so its logit gets a gradient of exactly 0.

This module imports PyTorch; import it where a model is at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from adjudge.engines.reward_network import RewardNetwork
from adjudge.reward_models.training.policy_objective import SpanModel
from adjudge.reward_models.training.process_config import Normalize, StepLossName


def step_logits(outputs: Tensor) -> Tensor:
    """Return the log-odds that steps are right, (...), of a head's outputs, (..., 1) or (..., 2) with "right" second.

    Raises:
        ValueError: there is another number of outputs.
    """
    if outputs.shape[-1] == 1:
        return outputs[..., 0]
    if outputs.shape[-1] == 2:
        return outputs[..., 1] - outputs[..., 0]
    raise ValueError(f"a head of steps has 1 or 2 outputs, and this one has {outputs.shape[-1]}")


def cross_entropy(logits: Tensor, labels: Tensor, *, good: float = 1.0, bad: float = 1.0) -> Tensor:
    """Return -w_good p log σ(z) - w_bad (1 - p) log σ(-z); with equal weights its minimum is at σ(z) = p.

    Args:
        logits: (n,) log-odds z.
        labels: (n,) probabilities p in [0, 1].
        good: weight of steps that are right.
        bad: weight of steps that are wrong; where these are rare, the inverse of their share balances them, and σ(z)
            is then no probability any more.
    """
    return good * labels * softplus(-logits) + bad * (1 - labels) * softplus(logits)


def squared_error(logits: Tensor, labels: Tensor) -> Tensor:
    """Return (σ(z) - p)², the loss of value heads; its minimum is at σ(z) = p."""
    return (torch.sigmoid(logits) - labels) ** 2


def ranking(logits: Tensor, right: Tensor, owners: Tensor, solutions: int, *, margin: float = 4.0) -> Tensor:
    """Return the loss that orders the steps of a solution: wrong ones < the problem < right ones, which rise (PQM).

    With Q_0 = 0 for the problem itself, Q_1 .. Q_m of the right steps in order, and W the wrong ones, it is the mean
    over t = 0 .. m of -log( e^{Q_t} / (Σ_{q <= t} e^{Q_q} + Σ_{w in W} e^{Q_w + margin}) ).
    arXiv 2410.11287, equation 10, with a margin of 4; that the mean is taken over m + 1 terms is from memory.

    Args:
        logits: (n,) values Q of steps, solution by solution and in order.
        right: (n,) True where the step is right.
        owners: (n,) the solution of each step, from 0, ascending.
        solutions: how many there are.
        margin: by which wrong steps should stay below.

    Returns:
        (solutions,) losses; 0 where a solution has no step here.
    """
    found = []
    for place in range(solutions):
        mine = owners == place
        values, correct = logits[mine], right[mine]
        chain = torch.cat([values.new_zeros(1), values[correct]])
        wrong = values[~correct] + margin
        below = torch.logcumsumexp(chain, dim=0)
        if len(wrong):
            below = torch.logaddexp(below, torch.logsumexp(wrong, dim=0))
        found.append((below - chain).mean())
    return torch.stack(found)


def label_weights(counts: Sequence[int], normalize: Normalize) -> list[float]:
    """Return what the loss of one labelled step weighs in each solution; all weights of a batch sum to 1.

    Args:
        counts: how many labelled steps each solution of the batch has.
        normalize: "step" gives every step the same weight, so that long solutions count more; "solution" gives every
            solution the same, split evenly among its labelled steps.
    """
    if normalize == "step":
        return [1 / total if (total := sum(counts)) else 0.0] * len(counts)
    solutions = sum(1 for count in counts if count)
    return [1 / (solutions * count) if count else 0.0 for count in counts]


def implicit_reward(policy: Tensor, reference: Tensor, *, beta: float = 0.05) -> Tensor:
    """Return β Σ log(π / π_ref) of responses: the reward of an implicit process model (arXiv 2412.01981, 2502.01456).

    Args:
        policy: (n,) summed log-probabilities of the responses under the model that is trained.
        reference: (n,) the same under the frozen one.
        beta: scale.
    """
    return beta * (policy - reference)


def implicit(policy: Tensor, reference: Tensor, outcomes: Tensor, *, beta: float = 0.05) -> Tensor:
    """Return the cross-entropy of σ(reward) with the outcomes, for `implicit_reward`.

    Args:
        policy: (n,) summed log-probabilities of the responses under the model that is trained.
        reference: (n,) the same under the frozen one.
        outcomes: (n,) probabilities in [0, 1] that the responses are right.
        beta: scale.
    """
    return cross_entropy(implicit_reward(policy, reference, beta=beta), outcomes)


class StepObjective(nn.Module):
    """Labels of steps, read by a head at each step's place.

    Args:
        network: with pooling "tokens"; its outputs are 1 or 2 for the steps, and one more if `outcome` is above 0.
        loss: "cross_entropy", "squared_error" or "ranking".
        good: weight of steps that are right ("cross_entropy").
        bad: weight of steps that are wrong ("cross_entropy").
        margin: between wrong steps and the others ("ranking").
        outcome: weight of the cross-entropy of the answer's label, read at the last step; 0 for none.
        error: a step is wrong if its label is at most this ("ranking", and the accuracy).
        bf16: compute the body in bfloat16; the head and the loss stay in 32 bits.
    """

    def __init__(
        self,
        network: RewardNetwork,
        *,
        loss: StepLossName = "cross_entropy",
        good: float = 1.0,
        bad: float = 1.0,
        margin: float = 4.0,
        outcome: float = 0.0,
        error: float = 0.0,
        bf16: bool = False,
    ):
        super().__init__()
        self.network = network
        self._bf16 = bf16
        self._loss = loss
        self._good, self._bad, self._margin, self._outcome = good, bad, margin, outcome
        self._error = error

    @property
    def config(self) -> Any:
        """The body's configuration, which the Trainer looks at."""
        return self.network.config

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        places: Tensor,
        labels: Tensor,
        weights: Tensor,
        outcomes: Tensor,
        outcome_weights: Tensor,
        solution_weights: Tensor,
    ) -> dict[str, Any]:
        """Return the shares of the loss and of the accuracy, weighed as `StepBatches` says."""
        logits, answers = self.read(input_ids, attention_mask, places)
        known = ~labels.isnan()
        given, wanted = logits[known], labels[known]
        right = wanted > self._error
        if self._loss == "ranking":
            owners = known.nonzero()[:, 0]
            losses = ranking(given, right, owners, len(labels), margin=self._margin)
            loss = (losses * solution_weights).sum()
        else:
            losses = (
                squared_error(given, wanted)
                if self._loss == "squared_error"
                else cross_entropy(given, wanted, good=self._good, bad=self._bad)
            )
            loss = (losses * weights[known]).sum()
        if self._outcome:
            told = ~outcomes.isnan()
            errors = cross_entropy(answers[told], outcomes[told])
            loss = loss + self._outcome * (errors * outcome_weights[told]).sum()
        hits = (given.detach() > 0) == right
        return {"loss": loss, "numbers": {"accuracy": (hits * weights[known]).sum()}}

    def read(self, input_ids: Tensor, attention_mask: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-odds of steps, (rows, steps), and of answers, (rows,); the latter only with `outcome`."""
        with torch.autocast(input_ids.device.type, dtype=torch.bfloat16, enabled=self._bf16):
            outputs = self.network(input_ids, attention_mask)
        rows = torch.arange(len(places), device=places.device)
        found = outputs[rows.unsqueeze(1), places]
        steps = found[..., :-1] if self._outcome else found
        answers = outputs[rows, places.amax(1), -1]
        return step_logits(steps), answers


class ImplicitObjective(SpanModel):
    """Labels of answers alone, for a language model whose log-ratio to its frozen start becomes the reward.

    Args:
        model: a causal language model.
        beta: scale of the reward.
        bf16: compute the model in bfloat16; log-probabilities and the loss stay in 32 bits.
    """

    def __init__(self, model: Any, *, beta: float = 0.05, bf16: bool = False):
        super().__init__(model, bf16=bf16)
        self._beta = beta

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        starts: Tensor,
        ends: Tensor,
        reference: Tensor,
        outcomes: Tensor,
        outcome_weights: Tensor,
    ) -> dict[str, Any]:
        """Return the shares of the loss and of the accuracy.

        Args:
            input_ids: (rows, length), padded on the right.
            attention_mask: (rows, length).
            starts: (rows,) first token of each response.
            ends: (rows,) first token behind it.
            reference: (rows,) summed log-probabilities of the responses under the frozen model.
            outcomes: (rows,) labels in [0, 1].
            outcome_weights: (rows,) that sum to 1 over the step.
        """
        policy = self.logprobs(input_ids, attention_mask, starts, ends)
        losses = implicit(policy, reference, outcomes, beta=self._beta)
        hits = (policy.detach() > reference) == (outcomes > 0.5)
        return {
            "loss": (losses * outcome_weights).sum(),
            "numbers": {"accuracy": (hits * outcome_weights).sum()},
        }
