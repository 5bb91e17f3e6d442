"""What a scalar reward model minimises: a loss of preferences or ratings, and terms added to it.

Each forward pass brings the share of its examples in the step, so that the sum over the passes of a step is the
weighted mean over its examples; terms about the batch as a whole (correlations) are taken within each pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from adjudge.engines.head_config import HeadConfig
from adjudge.engines.reward_network import RewardNetwork, pooled
from adjudge.reward_models.training import losses
from adjudge.reward_models.training.scalar_config import LossChoice


class Objective(nn.Module):
    """Raw numbers of a head to a loss; with the term "length" the network has one column more than the head."""

    def __init__(self, loss: LossChoice, head: HeadConfig, terms: Mapping[str, float]) -> None:
        super().__init__()
        self.loss = loss
        self.head = head
        self.terms = dict(terms)
        self.tie_parameter: nn.Parameter | None = None
        if loss.learn_ties:
            # The threshold must stay above 0, so its logarithm is learnt; log ν may be anything.
            start = loss.log_nu if loss.name == "davidson" else torch.tensor(loss.threshold).log().item()
            self.tie_parameter = nn.Parameter(torch.tensor(float(start)))

    @property
    def tie_value(self) -> float | None:
        """The threshold or log ν as it was learnt; None if it was not."""
        if self.tie_parameter is None:
            return None
        value = self.tie_parameter.detach()
        return float(value if self.loss.name == "davidson" else value.exp())

    def rewards(self, raw: Tensor) -> Tensor:
        """Return the rewards, (rows, members), of raw numbers, (rows, columns); one member unless it is an ensemble."""
        if self.head.kind == "gaussian":
            return raw[:, : self.head.outputs]
        if self.head.kind == "quantile":
            return raw.mean(dim=1, keepdim=True)
        return raw[:, : self.head.columns]

    def forward(self, raw: Tensor, batch: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the pass's share of the step's loss, and numbers to log."""
        if "targets" in batch:
            return self._rated(raw, batch)
        rewards = self.rewards(raw)
        whole = rewards + raw[:, -1:] if "length" in self.terms else rewards
        if "ranks" in batch:
            members, weights = batch["members"], batch["weights"]
            values = torch.stack(
                [losses.plackett_luce(whole[members, at], batch["ranks"]) for at in range(whole.shape[1])], dim=1
            )
            best = rewards[members].mean(dim=2).masked_fill(batch["ranks"] < 0, -torch.inf).argmax(dim=1)
            right = batch["ranks"].gather(1, best.unsqueeze(1)).squeeze(1) == 0
            numbers = {"accuracy": _mean(right.float().unsqueeze(1), weights)}
        else:
            values = self._paired(whole, raw, batch)
            weights = batch["weights"]
            gap = rewards[batch["better"]] - rewards[batch["worse"]]
            numbers = {"accuracy": _mean((gap > 0).float(), weights), "gap": _mean(gap, weights)}
        total = _mean(values, weights)
        for name, value in self._terms(raw, rewards, batch).items():
            total = total + self.terms[name] * value
            numbers[name] = value
        return total, {name: value.detach() for name, value in numbers.items()}

    def _paired(self, rewards: Tensor, raw: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
        """The loss of each pair, (pairs, members)."""
        choice, learnt = self.loss, self.tie_parameter
        better, worse = rewards[batch["better"]], rewards[batch["worse"]]
        tied = batch["tied"].unsqueeze(1)
        match choice.name:
            case "margin" | "scaled" | "hinge" | "margin_mse":
                margins = batch["margins"].unsqueeze(1)
                if choice.margin is not None:
                    margins = margins.nan_to_num(choice.margin)
                loss: Tensor = getattr(losses, choice.name)(better, worse, margins)
                return loss
            case "soft":
                plain = torch.full_like(better, 1 - choice.smoothing).masked_fill(tied, 0.5)
                given = batch["probabilities"].unsqueeze(1)
                return losses.soft(better, worse, torch.where(torch.isnan(given), plain, given))
            case "tempered":
                return losses.tempered(better, worse, choice.temperature)
            case "focal":
                return losses.focal(better, worse, choice.gamma)
            case "rao_kupper":
                return losses.rao_kupper(better, worse, tied, choice.threshold if learnt is None else learnt.exp())
            case "davidson":
                return losses.davidson(better, worse, tied, choice.log_nu if learnt is None else learnt)
            case "purm" | "sampled_bt":
                return self._uncertain(better, worse, raw, batch)
        return losses.bt(better, worse)

    def _uncertain(self, better: Tensor, worse: Tensor, raw: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
        columns = raw[:, self.head.outputs : 2 * self.head.outputs]
        log_std = columns.clamp(-losses.LOG_STD_LIMIT, losses.LOG_STD_LIMIT)
        if self.loss.name == "purm":
            return losses.purm(better, log_std[batch["better"]], worse, log_std[batch["worse"]])
        noise = torch.randn_like(log_std) * log_std.exp()
        return losses.bt(better + noise[batch["better"]], worse + noise[batch["worse"]])

    def _terms(self, raw: Tensor, rewards: Tensor, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        terms: dict[str, Tensor] = {}
        weights = batch["weights"]
        if "better" in batch:
            better, worse = rewards[batch["better"]], rewards[batch["worse"]]
            if "centering" in self.terms:
                terms["centering"] = _mean(losses.centering(better, worse), weights)
            if "l2" in self.terms:
                terms["l2"] = _mean(losses.l2(better) + losses.l2(worse), weights)
        if "length" in self.terms:
            split = losses.length_split(rewards[:, 0], raw[:, -1], batch["lengths"])
            terms["length"] = split * weights.sum()
        if "consistency" in self.terms and "original" in batch:
            apart = losses.consistency(rewards[batch["original"]], rewards[batch["paraphrase"]])
            terms["consistency"] = _mean(apart, batch["paraphrase_weights"])
        return terms

    def _rated(self, raw: Tensor, batch: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        targets, weights, outputs = batch["targets"], batch["weights"], self.head.outputs
        rewards, known = self.rewards(raw), ~torch.isnan(targets)
        numbers: dict[str, Tensor] = {}
        match self.loss.name:
            case "regression":
                counted = torch.tensor(self.loss.weights, device=raw.device) if self.loss.weights else None
                values = losses.regression(raw, targets, counted).unsqueeze(1)
            case "gaussian_nll":
                values = losses.gaussian_nll(raw[:, :outputs], raw[:, outputs:], targets).unsqueeze(1)
            case "pinball":
                values = losses.pinball(raw.reshape(len(raw), outputs, self.head.levels), targets).unsqueeze(1)
            case "multi_label":
                values = losses.multi_label(raw, targets, known).unsqueeze(1)
                right = ((raw > 0) == (targets > 0.5)) & known
                numbers["accuracy"] = _mean((right.sum(1) / known.sum(1)).unsqueeze(1), weights)
            case _:
                values = losses.bce(rewards, targets)
                numbers["accuracy"] = _mean(((rewards > 0) == (targets > 0.5)).float(), weights)
        total = _mean(values, weights)
        if "l2" in self.terms:
            numbers["l2"] = _mean(losses.l2(rewards), weights)
            total = total + self.terms["l2"] * numbers["l2"]
        return total, {name: value.detach() for name, value in numbers.items()}


class HeadedNetwork(nn.Module):
    """A reward network that is trained, with its language head where that is trained too.

    With `bf16` the body computes in bfloat16; the head and the loss stay in 32 bits.
    """

    def __init__(self, network: RewardNetwork, *, bf16: bool, language_head: nn.Module | None = None) -> None:
        super().__init__()
        self.network = network
        self.language_head = language_head
        self.bf16 = bf16

    @property
    def config(self) -> Any:
        """The body's configuration, which the Trainer looks at."""
        return self.network.config

    def read(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the head's raw numbers."""
        with torch.autocast(input_ids.device.type, dtype=torch.bfloat16, enabled=self.bf16):
            raw: Tensor = self.network(input_ids, attention_mask)
            return raw

    def read_and_write(
        self, input_ids: Tensor, attention_mask: Tensor, rows: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the head's raw numbers, and the logits of the token behind each place of each row."""
        assert self.language_head is not None
        with torch.autocast(input_ids.device.type, dtype=torch.bfloat16, enabled=self.bf16):
            hidden = self.network.backbone(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            raw = self.network.head(pooled(hidden, attention_mask, self.network.pooling))
            return raw, self.language_head(hidden[rows, places])


class TrainedNetwork(HeadedNetwork):
    """A reward network with its objective, as the training loop calls it; a language head is for the term "text"."""

    def __init__(
        self, network: RewardNetwork, objective: Objective, *, bf16: bool, language_head: nn.Module | None = None
    ) -> None:
        super().__init__(network, bf16=bf16, language_head=language_head)
        self.objective = objective

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **batch: Tensor) -> dict[str, Any]:
        """Return the loss of one forward pass, with numbers to log."""
        written = None
        if self.language_head is None:
            raw = self.read(input_ids, attention_mask)
        else:
            raw, written = self.read_and_write(input_ids, attention_mask, batch["text_rows"], batch["text_places"])
        loss, numbers = self.objective(raw, batch)
        terms = self.objective.terms
        if "length" in terms:
            quality, length = self.network.head.score.weight
            loss = loss + terms["length"] * batch["weights"].sum() * losses.orthogonality(quality, length)
        if written is not None:
            weights = batch["text_weights"]
            said = losses.text_loss(written, batch["text_targets"], batch["text_units"], len(weights)) @ weights
            numbers["text"] = said.detach()
            loss = (1 - terms["text"]) * loss + terms["text"] * said
        return {"loss": loss, "numbers": numbers}


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    """The weighted sum over examples, and the mean over members: the weights of a step sum to 1 for each member."""
    return (values * weights).sum(dim=0).mean()
