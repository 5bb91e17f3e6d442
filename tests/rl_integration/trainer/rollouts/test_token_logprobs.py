"""Log-probabilities and entropies in parts are those of the whole, and so are their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from adjudge.rl_integration.trainer.rollouts import token_rows as module
from adjudge.rl_integration.trainer.rollouts.token_rows import token_logprobs


def given(*, n: int = 3, columns: int = 5, vocabulary: int = 7, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(n, columns + 1, vocabulary, generator=generator, dtype=torch.float64) * 3
    ids = torch.randint(vocabulary, (n, columns), generator=generator)
    return [logits.to(dtype), ids]


def plain(logits: Tensor, ids: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """As one would write it: several copies of the logits."""
    logprobs = (logits[:, :-1] / temperature).log_softmax(-1)
    return logprobs.gather(-1, ids[..., None])[..., 0], -(logprobs.exp() * logprobs).sum(-1)


def test_they_are_numpys() -> None:
    logits, ids = given()
    z = logits.numpy()[:, :-1] / 0.7
    p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)
    logprobs, entropies = token_logprobs(logits, ids, temperature=0.7, steer=False)
    expected = np.log(np.take_along_axis(p, ids.numpy()[..., None], -1)[..., 0])
    np.testing.assert_allclose(logprobs.numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(entropies.numpy(), -(p * np.log(p)).sum(-1), rtol=1e-12)


@pytest.mark.parametrize("part", [1, 10, 40, 10_000])
def test_gradients_are_finite_differences(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    monkeypatch.setitem(module._PART, "cpu", part)
    logits, ids = given(n=3, columns=3, vocabulary=4)
    logits.requires_grad_()

    def both(values: Tensor) -> tuple[Tensor, Tensor]:
        return token_logprobs(values, ids, temperature=0.7, steer=True)

    assert torch.autograd.gradcheck(both, (logits,))


@pytest.mark.parametrize("steer", [False, True])
def test_gradients_are_those_of_autograd(monkeypatch: pytest.MonkeyPatch, steer: bool) -> None:
    monkeypatch.setitem(module._PART, "cpu", 20)
    gradients: list[Tensor] = []
    for parts in (True, False):
        logits, ids = given(dtype=torch.float32)
        logits.requires_grad_()
        if parts:
            logprobs, entropies = token_logprobs(logits, ids, temperature=1.3, steer=steer)
            assert entropies.requires_grad == steer
        else:
            logprobs, entropies = plain(logits, ids, 1.3)
        loss = logprobs.square().sum() + (2 * entropies.sum() if steer else 0)
        gradients += torch.autograd.grad(loss, logits)
    found, expected = gradients
    assert not found[:, -1].any(), "nobody asked for what follows the last token"
    torch.testing.assert_close(found, expected)


def test_coarse_logits_are_read_in_32_bits() -> None:
    logits, ids = given(dtype=torch.bfloat16, vocabulary=50)
    logits.requires_grad_()
    logprobs, entropies = token_logprobs(logits, ids, temperature=1.0, steer=False)
    assert (logprobs.dtype, entropies.dtype) == (torch.float32, torch.float32)
    expected, _ = plain(logits.detach().float(), ids, 1.0)
    torch.testing.assert_close(logprobs.detach(), expected)
    (gradient,) = torch.autograd.grad(logprobs.sum(), logits)
    assert gradient.dtype == torch.bfloat16
