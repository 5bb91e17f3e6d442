"""What training a process model minimises: losses of steps and answers, and the modules that compute them.

A step's *logit* is the log-odds that it is right: the head's number where it has one output, and the difference of the
two where it has two (the softmax of the two is then the sigmoid of the difference, so both forms train alike).  Labels
are probabilities; a step without one is left out before a loss sees it, so its logit gets a gradient of exactly 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from adjudge.engines.reward_network import RewardNetwork
from adjudge.reward_models.training.objective import HeadedNetwork
from adjudge.reward_models.training.policy_objective import SpanModel
from adjudge.reward_models.training.process_config import Normalize, StepLossChoice


def step_logits(outputs: Tensor) -> Tensor:
    """Return the log-odds that steps are right, (...), of outputs, (..., 1) or (..., 2) with "right" second."""
    if outputs.shape[-1] == 1:
        return outputs[..., 0]
    if outputs.shape[-1] == 2:
        return outputs[..., 1] - outputs[..., 0]
    raise ValueError(f"a head of steps has 1 or 2 outputs, and this one has {outputs.shape[-1]}")


def cross_entropy(logits: Tensor, labels: Tensor, *, good: float = 1.0, bad: float = 1.0) -> Tensor:
    """Return -w_good p log σ(z) - w_bad (1 - p) log σ(-z) of (n,) logits and labels; σ(z) = p is best at equal weights.

    Where wrong steps are rare, the inverse of their share as `bad` balances them, and σ(z) is not a probability any
    more.
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
        solutions: how many there are; one that has no step here has the loss 0.
        margin: by which wrong steps should stay below.
    """
    losses = []
    for place in range(solutions):
        mine = owners == place
        values, correct = logits[mine], right[mine]
        chain = torch.cat([values.new_zeros(1), values[correct]])
        wrong = values[~correct] + margin
        below = torch.logcumsumexp(chain, dim=0)
        if len(wrong):
            below = torch.logaddexp(below, torch.logsumexp(wrong, dim=0))
        losses.append((below - chain).mean())
    return torch.stack(losses)


def label_weights(counts: Sequence[int], normalize: Normalize) -> list[float]:
    """Return what the loss of one labelled step weighs in each solution; all weights of a batch sum to 1.

    "step" gives every labelled step the same weight, so that long solutions count more; "solution" gives every solution
    the same, split evenly among its labelled steps, of which `counts` says how many there are.
    """
    if normalize == "step":
        return [1 / total if (total := sum(counts)) else 0.0] * len(counts)
    solutions = sum(1 for count in counts if count)
    return [1 / (solutions * count) if count else 0.0 for count in counts]


def implicit(policy: Tensor, reference: Tensor, outcomes: Tensor, *, beta: float = 0.05) -> Tensor:
    """Return the cross-entropy of σ(β Σ log(π / π_ref)) with outcomes in [0, 1] (arXiv 2412.01981, 2502.01456).

    `policy` and `reference` are (n,) summed log-probabilities of responses under the model and its frozen start.
    """
    return cross_entropy(beta * (policy - reference), outcomes)


class StepObjective(HeadedNetwork):
    """Labels of steps, read by a head at each step's place.

    Args:
        network: with pooling "tokens"; its outputs are 1 or 2 for the steps, and one more if `outcome` is above 0.
        loss: of the steps; None for the cross-entropy.
        outcome: weight of the cross-entropy of the answer's label, read at the last step; 0 for none.
        error: a step is wrong if its label is at most this ("ranking", and the accuracy).
        bf16: compute the body in bfloat16; the head and the loss stay in 32 bits.
    """

    def __init__(
        self,
        network: RewardNetwork,
        loss: StepLossChoice | None = None,
        *,
        outcome: float = 0.0,
        error: float = 0.0,
        bf16: bool = False,
    ):
        super().__init__(network, bf16=bf16)
        self._loss = loss or StepLossChoice()
        self._outcome, self._error = outcome, error

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
        logits, answers = self.logits(input_ids, attention_mask, places)
        known, choice = ~labels.isnan(), self._loss
        given, wanted = logits[known], labels[known]
        right = wanted > self._error
        if choice.name == "ranking":
            losses = ranking(given, right, known.nonzero()[:, 0], len(labels), margin=choice.margin)
            loss = (losses * solution_weights).sum()
        elif choice.name == "squared_error":
            loss = (squared_error(given, wanted) * weights[known]).sum()
        else:
            loss = (cross_entropy(given, wanted, good=choice.good, bad=choice.bad) * weights[known]).sum()
        if self._outcome:
            answered = ~outcomes.isnan()
            errors = cross_entropy(answers[answered], outcomes[answered])
            loss = loss + self._outcome * (errors * outcome_weights[answered]).sum()
        hits = (given.detach() > 0) == right
        return {"loss": loss, "numbers": {"accuracy": (hits * weights[known]).sum()}}

    def logits(self, input_ids: Tensor, attention_mask: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-odds of steps, (rows, steps), and of answers, (rows,); the latter only with `outcome`."""
        outputs = self.read(input_ids, attention_mask)
        rows = torch.arange(len(places), device=places.device)
        at_steps = outputs[rows.unsqueeze(1), places]
        steps = at_steps[..., :-1] if self._outcome else at_steps
        return step_logits(steps), outputs[rows, places.amax(1), -1]

    def chances(self, input_ids: Tensor, attention_mask: Tensor, places: Tensor) -> Tensor:
        """Return the probabilities that steps are right, and behind them those of answers, (rows, steps + 1)."""
        steps, answers = self.logits(input_ids, attention_mask, places)
        return torch.sigmoid(torch.cat([steps, answers.unsqueeze(1)], dim=1).double())


class ImplicitObjective(SpanModel):
    """Labels of answers alone, for a model whose log-ratio to its frozen start, times β, becomes the reward."""

    def __init__(self, model: Any, *, beta: float = 0.05, bf16: bool = False):
        super().__init__(model, bf16=bf16)
        self._beta = beta

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        tokens: Tensor,
        reference: Tensor,
        outcomes: Tensor,
        outcome_weights: Tensor,
    ) -> dict[str, Any]:
        """Return the shares of the loss and of the accuracy; `reference` are the frozen model's sums, (rows,)."""
        policy = self.logprobs(input_ids, attention_mask, tokens)
        losses = implicit(policy, reference, outcomes, beta=self._beta)
        hits = (policy.detach() > reference) == (outcomes > 0.5)
        return {
            "loss": (losses * outcome_weights).sum(),
            "numbers": {"accuracy": (hits * outcome_weights).sum()},
        }
