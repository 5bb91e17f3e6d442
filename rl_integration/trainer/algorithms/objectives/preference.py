"""DPO and RPO on the samples of a group: the best against the worst, without another round of generation.

    z = beta * ( log-ratio of the chosen - log-ratio of the rejected ),   log-ratio = Σ_t logp - logp_reference
    L = mean over groups of  -log σ(z)  +  eta * (-mean over the chosen's tokens of logp)

eta = 0 is DPO (arXiv 2305.18290); eta > 0 is RPO (arXiv 2404.19733, with its theory in arXiv 2405.16436; TRL calls eta
`rpo_alpha`): without it both probabilities may fall as long as the chosen's falls less.  A group gives one pair, of its
highest and its lowest advantage, the first of equals; where those are the same it gives none, and adds 0 to the mean.

A part of an update must hold whole groups.

Not covered: pairs with margins and weights; `adjudge.data_pipelines` builds those for training on preferences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from adjudge.options import Options, Range
from adjudge.rl_integration.trainer.algorithms.objectives.tokens import LossValue, TokenBatch


@dataclass(frozen=True, kw_only=True)
class Preference(Options):
    """The loss of pairs of a group's best and worst; see the module.

    Attributes:
        beta: how strongly log-ratios count; small allows to leave the reference policy further.
        eta: weight of the chosen's likelihood; 0 for DPO.
    """

    beta: Annotated[float, Range(gt=0)] = 0.1
    eta: Annotated[float, Range(ge=0)] = 0.0

    def __call__(self, tokens: TokenBatch) -> LossValue:
        """Return the loss and its metrics; metrics are means over groups.

        Raises:
            ValueError: `reference_logp` or `group` is not there.
        """
        reference = tokens.needs("reference_logp", "a preference loss").detach()
        chosen, rejected = pairs(tokens)
        ratios = (tokens.logp - reference).sum(dim=1)
        margin = self.beta * (ratios[chosen] - ratios[rejected])
        likelihood = tokens.logp.sum(dim=1) / tokens.mask.sum(dim=1).clamp(min=1)
        losses = -logsigmoid(margin) - self.eta * likelihood[chosen]
        count = max(1, tokens.total.groups)
        loss = losses.sum() / count + 0.0 * tokens.logp.sum()  # differentiable without a pair, too
        metrics = {
            "margin": margin.detach().sum() / count,
            "right": (margin.detach() > 0).to(margin.dtype).sum() / count,
            "pairs": torch.full_like(loss.detach(), len(margin) / count),
        }
        return LossValue(loss=loss, metrics=metrics)


def pairs(tokens: TokenBatch) -> tuple[Tensor, Tensor]:
    """Return the rows of the chosen and of the rejected, one pair for each group whose advantages differ.

    Raises:
        ValueError: `group` is not there.
    """
    group = tokens.needs("group", "a preference loss")
    # Differences to the first token, so that equal advantages give equal means, whatever the lengths.
    first = tokens.advantages.gather(1, tokens.mask.int().argmax(dim=1, keepdim=True)) if tokens.mask.numel() else 0.0
    above = ((tokens.advantages - first) * tokens.mask).sum(dim=1, keepdim=True)
    worth = (first + above / tokens.mask.sum(dim=1, keepdim=True).clamp(min=1)).flatten().tolist()
    members: dict[int, list[int]] = {}
    for row, (name, usable) in enumerate(zip(group.tolist(), tokens.mask.any(dim=1).tolist(), strict=True)):
        if usable:
            members.setdefault(name, []).append(row)
    ends = [(max(rows, key=worth.__getitem__), min(rows, key=worth.__getitem__)) for rows in members.values()]
    found = [(best, worst) for best, worst in ends if worth[best] > worth[worst]]
    chosen, rejected = torch.tensor(found, dtype=torch.long, device=group.device).reshape(-1, 2).unbind(dim=1)
    return chosen, rejected
