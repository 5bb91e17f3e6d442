"""Advantages shaped by what goes on inside the policy as it reads the answers: one more forward pass over a batch.

`AttentionRhythm` (arXiv 2510.13554) multiplies advantages above 0 by gamma >= 1.  Of the attention maps A of five
layers in the middle third, heads that look back least on average over the answer are local, those that look back most
global:

    waad_t = mean of the local heads of Σ_s A_ts min(t - s, window),     change_t = |waad_t - waad_t+1|
    fai_s = mean over t from s + 10 to s + 50 of the mean of the global heads of A_ts

| `how` | gamma |
|---|---|
| `local` | amplify for the share of an answer's tokens that change most, else 1 |
| `global` | amplify for the share with the highest fai (anchors), else 1 |
| `coupled` | as `global`, but a led anchor gives the part `back` of its surplus to the token that planned it |

An anchor is led if its waad is at most the answer's median, and a change among the `near` tokens before it at least the
median of changes; the largest such change is where it was planned.  The paper leaves both thresholds open; the medians,
and 0.5 for `back`, are a re-implementation's (AH-Technologies/llm-training-experiments at 9d920a2).  Heads are told
apart anew for each answer.

`EffectiveRank` (VERL, arXiv 2509.23808; hf618/VERL at 3740772) adds min( max(0, bonus), |A| / kappa ) to an advantage.
An answer's rank is exp(entropy of the normalised singular values) of its centred last states; of the ranks of the
beginnings of `stride`, 2 `stride`, ... tokens and of all, a difference is one less the mean of those before it, v the
mean of the differences and a that of the differences of these.  With d = (x - mean) / |mean|, kept in [-5, 5]:

    bonus = s tanh(d of the rank) + (1 - s) tanh(d of v),   s = sigmoid(gain * d of a)

The mean is that of the batch, where the code has a moving one of the steps before.  As in the code, the bonus stands at
the last token of an answer alone; `tokens: all` puts it everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from adjudge.options import Count, Options, Range, Share
from adjudge.rl_integration.trainer.data.arrays import Bools, Floats

_FIRST, _LAST = 10, 50  # how far behind a token the answer may look at it


@dataclass(frozen=True, kw_only=True)
class AttentionRhythm(Options):
    """More of an advantage above 0 for tokens that plan or are looked back at; see the module.

    Attributes:
        how: which tokens.
        share: of an answer's tokens that are picked.
        amplify: what their advantage is multiplied by.
        window: tokens from which on a look back counts no more.
        heads: share of the heads that are local, and that are global.
        near: tokens before an anchor that may have planned it.
        back: part of the surplus that an anchor gives back.
    """

    how: Literal["local", "global", "coupled"] = "coupled"
    share: Share = 0.4
    amplify: Annotated[float, Range(ge=1)] = 1.5
    window: Count = 10
    heads: Annotated[float, Range(gt=0, le=0.5)] = 0.3
    near: Count = 3
    back: Share = 0.5

    def read(self, model: Any, inputs: dict[str, Tensor], own: Tensor) -> Tensor:
        """Return (n, R, 2) waad and fai of the answers' tokens; see `EffectiveRank.read`."""
        layers = [module for module in model.modules() if type(module).__name__.endswith("Attention")]
        if not layers:
            raise ValueError(f"{type(model).__name__} has no modules named Attention; this rule cannot read its maps")
        ends = len(layers) // 3, min(2 * len(layers) // 3, len(layers) - 1)
        picked = {round(at) for at in np.linspace(*ends, 5)}
        looks: list[Tensor] = []
        hooks = [
            layers[at].register_forward_hook(lambda _, __, output: looks.append(self._looks(output[1], own)))
            for at in sorted(picked)
        ]
        before = model.config._attn_implementation
        model.set_attn_implementation("eager")  # the others make no maps
        try:
            model.base_model(**inputs, use_cache=False)
        finally:
            model.set_attn_implementation(before)
            for hook in hooks:
                hook.remove()
        span, waad, fai = torch.cat(looks, dim=1).unbind(-1)  # (n, heads of all, R)
        order = (span * own.unsqueeze(1)).sum(-1).argsort(dim=1)
        count = max(1, int(self.heads * order.shape[1]))
        near, far = (one[..., None].expand(-1, -1, own.shape[1]) for one in (order[:, :count], order[:, -count:]))
        return torch.stack([waad.gather(1, near).mean(1), fai.gather(1, far).mean(1)], dim=-1)

    def _looks(self, maps: Tensor, own: Tensor) -> Tensor:
        """(n, heads, R, 3) of the maps (n, heads, T, T) of a layer: how far a token looks back, waad, fai."""
        width, answer = maps.shape[-1], maps.float()[..., -own.shape[1] :, :]
        place = torch.arange(width, device=maps.device)
        back = (place[-own.shape[1] :, None] - place).clamp(min=0)
        later = (back >= _FIRST) & (back <= _LAST) & own.unsqueeze(-1)  # (n, R, T)
        fai = torch.einsum("nhts,nts->nhs", answer, later.float()) / later.sum(1, keepdim=True).clamp(min=1)
        sums = [(answer * far).sum(-1) for far in (back, back.clamp(max=self.window))]
        return torch.stack([*sums, fai[..., -own.shape[1] :]], dim=-1)

    def shaped(self, advantages: Sequence[Floats], read: Sequence[Floats], own: Sequence[Bools]) -> list[Floats]:
        """Return the advantages of the tokens of each answer."""
        rows = []
        for row, found, wrote in zip(advantages, read, own, strict=True):
            factors = np.ones(len(row))
            factors[wrote] = self.factors(*found[wrote].T)
            rows.append(np.where(row > 0, factors, 1.0) * row)
        return rows

    def factors(self, waad: Floats, fai: Floats) -> Floats:
        """Return (t,) gamma of the tokens of an answer."""
        if len(waad) < 2:
            return np.ones(len(waad))
        change = np.append(np.abs(np.diff(waad)), 0.0)
        surplus = self.amplify - 1
        picked = change if self.how == "local" else fai
        factors = np.where(picked >= np.quantile(picked, 1 - self.share), self.amplify, 1.0)
        if self.how != "coupled":
            return factors
        planned = set()
        for at in np.flatnonzero((factors > 1) & (waad <= np.median(waad))):
            begin = max(0, at - self.near)
            if at and change[begin:at].max() >= np.median(change):
                factors[at] -= self.back * surplus
                planned.add(begin + int(change[begin:at].argmax()))
        factors[sorted(planned)] += self.back * surplus
        return factors


@dataclass(frozen=True, kw_only=True)
class EffectiveRank(Options):
    """More for answers whose states keep unfolding; see the module.

    Attributes:
        stride: tokens between two ranks.
        gain: how sharply the acceleration decides between the rank and its velocity.
        weight: what the bonus is multiplied by.
        kappa: the bonus is at most the advantage's size over this.
        tokens: where it is added.
    """

    stride: Count = 40
    gain: float = 2.0
    weight: Annotated[float, Range(ge=0)] = 1.0
    kappa: Annotated[float, Range(gt=0)] = 2.0
    tokens: Literal["last", "all"] = "last"

    def read(self, model: Any, inputs: dict[str, Tensor], own: Tensor) -> Tensor:
        """Return (n, R, k) numbers of the answers' tokens; here an answer's rank, velocity, acceleration.

        Args:
            model: a causal language model of `transformers`.
            inputs: its arguments, prompts ending and answers beginning in the same column.
            own: (n, R) tokens of the answers that the policy wrote.
        """
        states = model.base_model(**inputs, use_cache=False).last_hidden_state[:, -own.shape[1] - 1 : -1].float()
        rows = [self.of_states(row[wrote]) for row, wrote in zip(states, own, strict=True)]
        return torch.tensor(rows).unsqueeze(1).expand(-1, own.shape[1], -1)

    def of_states(self, states: Tensor) -> tuple[float, float, float]:
        """Return rank, velocity and acceleration of (t, d) states; 0 where there are too few."""
        length = len(states)
        ranks = [effective_rank(states[:end]) for end in range(self.stride, length + 1, self.stride)]
        whole = effective_rank(states)
        if ranks and len(ranks) * self.stride < max(1, length - 1):
            ranks.append(whole)
        changes = [rank - float(np.mean(ranks[:at])) for at, rank in enumerate(ranks) if at]
        velocity = float(np.mean(changes)) if changes else 0.0
        return whole, velocity, float(np.mean(np.diff(changes))) if len(changes) > 1 else 0.0

    def shaped(self, advantages: Sequence[Floats], read: Sequence[Floats], own: Sequence[Bools]) -> list[Floats]:
        """Return the advantages of the tokens of each answer."""
        values = np.array([found[0] if len(found) else np.zeros(3) for found in read])
        mean = values.mean(axis=0)
        rank, velocity, acceleration = np.clip((values - mean) / (np.abs(mean) + 1e-8), -5, 5).T
        explore = 1 / (1 + np.exp(-self.gain * acceleration))
        bonuses = self.weight * (explore * np.tanh(rank) + (1 - explore) * np.tanh(velocity))
        rows = []
        for row, bonus, wrote in zip(advantages, bonuses, own, strict=True):
            where = wrote if self.tokens == "all" else wrote & (np.cumsum(wrote[::-1])[::-1] == 1)
            rows.append(row + where * np.minimum(max(0.0, bonus), np.abs(row) / self.kappa))
        return rows


def effective_rank(states: Tensor) -> float:
    """Return exp of the entropy of the normalised singular values of (t, d) centred states; 0 of fewer than two."""
    if len(states) < 2:
        return 0.0
    values = torch.linalg.svdvals((states - states.mean(dim=0)).double())
    shares = values[values > 0] / values.sum()
    return float((-(shares * shares.log()).sum()).exp())


Shaping: TypeAlias = AttentionRhythm | EffectiveRank
