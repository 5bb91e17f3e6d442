"""Log-probabilities and entropies in parts are those of whole logits, and so are their gradients; memory is bounded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from adjudge.training import token_logprobs as module
from adjudge.training.backbones import Lora, with_lora
from adjudge.training.token_logprobs import base_model, token_logprobs

VOCABULARY, ROWS, COLUMNS = 37, 3, 9
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
}
PLACES = torch.tensor([row * COLUMNS + column for row in range(ROWS) for column in range(4 + row, COLUMNS - 1)])


def small_model(kind: str = "Llama", *, tied: bool = False, bias: bool = False, **more: Any) -> Any:
    import transformers

    config = getattr(transformers, f"{kind}Config")(**SHAPE, tie_word_embeddings=tied, pad_token_id=0, **more)
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}ForCausalLM")(config)
    if bias:
        model.lm_head.bias = nn.Parameter(torch.randn(VOCABULARY))
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(20)
    return model


def given() -> dict[str, Tensor]:
    ids = torch.randint(VOCABULARY, (ROWS, COLUMNS), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, :2] = 0
    return {"input_ids": ids, "attention_mask": mask, "position_ids": (mask.cumsum(-1) - 1).clamp(min=0)}


def plain(model: Any, inputs: dict[str, Tensor], temperature: float) -> tuple[Tensor, Tensor]:
    """As one would write it: several copies of whole logits."""
    logits = model(**inputs, use_cache=False).logits
    logprobs = (logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature).log_softmax(-1)
    rows = logprobs.flatten(0, 1)[PLACES - 1]
    chosen = rows.gather(-1, inputs["input_ids"].flatten()[PLACES].unsqueeze(-1)).squeeze(-1)
    return chosen, -(rows.exp() * rows).sum(-1)


def ours(model: Any, inputs: dict[str, Tensor], temperature: float) -> tuple[Tensor, Tensor]:
    return token_logprobs(model, inputs, PLACES, columns=COLUMNS - 3, temperature=temperature, steer=True)


def gradients(
    of: Callable[..., tuple[Tensor, Tensor]], model: Any, *, bf16: bool = False
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    model.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
        logprobs, entropies = of(model, given(), 0.7)
    weights = torch.linspace(-1, 2, len(PLACES), dtype=logprobs.dtype)
    ((logprobs.square() + 2 * entropies) * weights).sum().backward()  # type: ignore[no-untyped-call]
    grads = {name: value.grad for name, value in model.named_parameters() if value.grad is not None}
    return logprobs.detach(), entropies.detach(), grads


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module._PART, "cpu", 4 * VOCABULARY)
    monkeypatch.setattr(module, "_TOKENS", 4)


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("tied", [True, False])
def test_numbers_and_gradients_are_those_of_whole_logits(dtype: torch.dtype, rtol: float, tied: bool) -> None:
    model = small_model(tied=tied, bias=not tied).to(dtype)
    assert module.plain_head(model) is model.lm_head
    found, expected = gradients(ours, model), gradients(plain, model)
    assert found[2].keys() == expected[2].keys() == {name for name, _ in model.named_parameters()}
    for one, other in zip((*found[:2], *found[2].values()), (*expected[:2], *expected[2].values()), strict=True):
        assert one.dtype == dtype
        torch.testing.assert_close(one, other, rtol=rtol, atol=rtol * float(other.abs().max()))


def test_entropies_without_gradients_steer_nothing() -> None:
    model = small_model()
    logprobs, entropies = token_logprobs(model, given(), PLACES, columns=5)
    assert logprobs.requires_grad
    assert not entropies.requires_grad


@pytest.mark.parametrize("frozen", [False, True])
def test_bfloat16_is_as_close_as_it_is_with_whole_logits(frozen: bool) -> None:
    """A body in bfloat16 by autocast, or all weights in it."""
    model = small_model()
    exact = gradients(plain, model)
    if frozen:
        model = model.bfloat16()
    found, usual = (gradients(of, model, bf16=not frozen) for of in (ours, plain))
    assert found[0].dtype == torch.float32
    for at in (0, 1):
        torch.testing.assert_close(found[at], usual[at], rtol=1e-5, atol=1e-5)
    for name, grad in found[2].items():
        assert grad.dtype == usual[2][name].dtype
        assert _apart(grad, exact[2][name]) < 1.2 * _apart(usual[2][name], exact[2][name]) + 1e-3, name


def _apart(one: Tensor, other: Tensor) -> float:
    return float((one.float() - other).norm() / other.norm())


def _odd_models() -> dict[str, Callable[[], Any]]:
    def adapted() -> Any:
        model = with_lora(small_model(), Lora(rank=2, targets=("lm_head", "q_proj")))
        nn.init.normal_(base_model(model).lm_head.lora_B.default.weight)
        return model

    return {
        "soft cap": lambda: small_model("Gemma2", final_logit_softcapping=5.0),
        "scale": lambda: small_model("Cohere", logit_scale=0.3),
        "scaling": lambda: small_model("Granite", logits_scaling=3.0),
        "factors beside the head": adapted,
    }


@pytest.mark.parametrize("name", _odd_models())
def test_a_model_that_changes_its_logits_makes_them_itself(name: str) -> None:
    model = _odd_models()[name]().double()
    assert module.plain_head(base_model(model)) is None
    found, expected = gradients(ours, model), gradients(plain, model)
    for one, other in zip((*found[:2], *found[2].values()), (*expected[:2], *expected[2].values()), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10 * float(other.abs().max()))


def test_factors_in_the_body_leave_the_head_alone() -> None:
    model = with_lora(small_model(), Lora(rank=2)).double()
    for value in model.parameters():
        if value.requires_grad:
            nn.init.normal_(value)
    assert module.plain_head(base_model(model)) is not None
    found, expected = gradients(ours, model), gradients(plain, model)
    assert found[2].keys() == expected[2].keys()
    assert all(".lora_" in name for name in found[2])
    for name, value in found[2].items():
        torch.testing.assert_close(value, expected[2][name], rtol=1e-10, atol=1e-10)


_PEAK = """
import resource, sys
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from adjudge.training.token_logprobs import token_logprobs

torch.set_num_threads(1)
width, n = map(int, sys.argv[1:])
config = LlamaConfig(vocab_size=151_936, hidden_size=width, intermediate_size=2 * width, num_hidden_layers=2,
    num_attention_heads=8, num_key_value_heads=8, tie_word_embeddings=True, max_position_embeddings=9_000)
model = LlamaForCausalLM(config)
length = 513
ids = torch.arange(n * length).view(n, length)
places = torch.tensor([row * length + column for row in range(n) for column in range(1, length)])
before = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
logprobs, _ = token_logprobs(model, {"input_ids": ids}, places, columns=length - 1)
logprobs.sum().backward()
assert len(logprobs) == 512 * n and torch.isfinite(model.lm_head.weight.grad).all()
# Not ru_maxrss, which begins with what the process had that started this one.
(peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(before, int(peak) * 1024)
"""


@pytest.mark.parametrize(
    ("width", "rows", "most"),
    [(64, 1, 0.4e9), pytest.param(512, 16, 2e9, marks=pytest.mark.full)],
    ids=["512 tokens", "8,192 tokens"],
)
def test_a_large_vocabulary_takes_little_memory(width: int, rows: int, most: float) -> None:
    """Over 151,936 tokens: whole logits alone are 0.3 and 5 GB, and autograd's copies as much each."""
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(width), str(rows)], capture_output=True, text=True, check=True
    )
    before, after = map(int, done.stdout.split())
    assert 0 < after - before < most, "with the gradients of all weights"
