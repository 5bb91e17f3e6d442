"""Published models with heads of their own: the engine's numbers against a forward pass with the publisher's tensors.

Nothing can be downloaded in a test.  Classes, fields and names of tensors are those of public copies of the publishers'
configurations and code (Skywork-Reward-V2, Math-Shepherd, RLHFlow: the classes alone); sizes and weights are not.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.engines.tiny_models import WINDOW, Family, tiny_config, tiny_tokenizer
from tests.engines.vllm_server import starting, unheard
from torch.nn import functional

from adjudge.engines.interface import Fault, TokenLogits
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine
from adjudge.engines.vllm_config import VllmConfig
from adjudge.engines.vllm_engine import VllmEngine

WIDTH = 64
CLOSE = 1e-5
TEXTS = ["Is the answer right? ", "Score: 1 2 3<|turn|>4 5 6", "yes or no"]

QWEN_PRM: dict[str, Any] = {
    "architectures": ["Qwen2ForProcessRewardModel"],
    "auto_map": {
        "AutoConfig": "configuration_qwen2_rm.Qwen2RMConfig",
        "AutoModel": "modeling_qwen2_rm.Qwen2ForProcessRewardModel",
    },
    "use_sliding_window": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.37.0",
}
SKYWORK_PRM: dict[str, Any] = {"architectures": ["Qwen2ForPrmModel"], "torch_dtype": "bfloat16"}
ARMORM: dict[str, Any] = {
    "architectures": ["LlamaForRewardModelWithGating"],
    "auto_map": {"AutoModelForSequenceClassification": "modeling_custom.LlamaForRewardModelWithGating"},
    "num_objectives": 3,
    "gating_temperature": 10,
    "gating_hidden_dim": 16,
    "gating_n_hidden": 3,
}


def tensors(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
    """Random tensors."""
    generator = torch.Generator().manual_seed(1)
    return {name: torch.randn(*shape, generator=generator) * 0.3 for name, shape in shapes.items()}


QWEN_HEAD = tensors(
    {"score.0.weight": (WIDTH, WIDTH), "score.0.bias": (WIDTH,), "score.2.weight": (2, WIDTH), "score.2.bias": (2,)}
)
VALUE_HEAD = tensors({"v_head.summary.weight": (1, WIDTH), "v_head.summary.bias": (1,), "lm_head.weight": (512, WIDTH)})
# Classes of transformers, for which no head of ours is needed.
SKYWORK_V2: dict[str, Any] = {
    "architectures": ["LlamaForSequenceClassification"],
    "id2label": {"0": "LABEL_0"},
    "label2id": {"LABEL_0": 0},
    "pad_token_id": None,
}
MATH_SHEPHERD: dict[str, Any] = {"architectures": ["MistralForCausalLM"], "sliding_window": 4096}
RLHFLOW: dict[str, Any] = {"architectures": ["LlamaForCausalLM"], "pad_token_id": None}
INF_ORM: dict[str, Any] = {"architectures": ["INFORMForSequenceClassification"], "num_labels": 1}
QRM: dict[str, Any] = {**ARMORM, "num_quantiles": 4}
URM: dict[str, Any] = {"architectures": ["LlamaForSequenceClassificationWithNormal_Weights"], "num_labels": 10}
URM_HEAD = tensors(
    {
        "score.weight": (10, WIDTH),
        "weights.fc.0.weight": (WIDTH, WIDTH),
        "weights.fc.0.bias": (WIDTH,),
        "weights.fc.2.weight": (WIDTH, WIDTH),
        "weights.fc.2.bias": (WIDTH,),
        "weights.fc.4.weight": (5, WIDTH),
        "weights.fc.4.bias": (5,),
    }
)
GATED_HEAD = tensors(
    {
        "regression_layer.weight": (3, WIDTH),
        "reward_transform_matrix": (3, 3),
        "gating.logit_scale": (1,),
        "gating.layers.0.weight": (16, WIDTH),
        "gating.layers.0.bias": (16,),
        "gating.layers.1.weight": (3, 16),
        "gating.layers.1.bias": (3,),
    }
)


def write(folder: Path, family: Family, head: Mapping[str, torch.Tensor], config: Mapping[str, Any]) -> Path:
    """Write a checkpoint as its publisher does, with Python files that must not be run."""
    from transformers import AutoModel

    tokenizer = tiny_tokenizer()
    with torch.random.fork_rng():
        torch.manual_seed(3)
        body: Any = AutoModel.from_config(tiny_config(family, tokenizer))  # type: ignore[no-untyped-call]
    folder.mkdir()
    state = {f"model.{name}": value.contiguous() for name, value in body.state_dict().items()} | dict(head)
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    record = {**body.config.to_dict(), **config}
    (folder / "config.json").write_text(json.dumps(record), encoding="utf-8")
    tokenizer.save_pretrained(folder)
    for name in (config.get("auto_map") or {}).values():
        file = folder / f"{name.partition('.')[0]}.py"
        file.write_text("raise SystemExit('published code was run')\n", encoding="utf-8")
    return folder


def states(folder: Path, text: str) -> torch.Tensor:
    """The body's hidden states of a text: (tokens, width)."""
    from transformers import AutoModel, AutoTokenizer

    body: Any = AutoModel.from_pretrained(folder, dtype=torch.float32)
    ids = AutoTokenizer.from_pretrained(folder)(text, add_special_tokens=False, return_tensors="pt").input_ids
    with torch.inference_mode():
        hidden: torch.Tensor = body(input_ids=ids).last_hidden_state[0]
    return hidden


def engine(folder: Path) -> TransformersEngine:
    return TransformersEngine(TransformersConfig(model=str(folder), device="cpu"))


def qwen_formula(hidden: torch.Tensor, held: Mapping[str, torch.Tensor]) -> torch.Tensor:
    inner = functional.linear(hidden, held["score.0.weight"], held["score.0.bias"]).relu()
    return functional.linear(inner, held["score.2.weight"], held["score.2.bias"])


def value_formula(hidden: torch.Tensor, held: Mapping[str, torch.Tensor]) -> torch.Tensor:
    return functional.linear(hidden, held["v_head.summary.weight"], held["v_head.summary.bias"])


Formula = Callable[[torch.Tensor, Mapping[str, torch.Tensor]], torch.Tensor]


def check_tokens(folder: Path, answers: Sequence[TokenLogits | Fault], formula: Formula) -> None:
    """Compare an engine's answers to `TEXTS` with a formula on the tensors in a folder."""
    held = load_file(folder / "model.safetensors")
    for text, answer in zip(TEXTS, answers, strict=True):
        assert isinstance(answer, TokenLogits), answer
        wanted = formula(states(folder, text), held)
        assert wanted.std() > 0.1
        torch.testing.assert_close(torch.tensor(answer.values), wanted, atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize(
    ("head", "config", "formula"),
    [(QWEN_HEAD, QWEN_PRM, qwen_formula), (VALUE_HEAD, SKYWORK_PRM, value_formula)],
    ids=["qwen2.5-math-prm", "skywork-o1-open-prm"],
)
def test_a_process_head_is_read_at_every_token(
    head: Mapping[str, torch.Tensor], config: Mapping[str, Any], formula: Formula, tmp_path: Path
) -> None:
    folder = write(tmp_path / "published", "qwen2", head, config)
    check_tokens(folder, asyncio.run(engine(folder).classify_tokens(TEXTS)), formula)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of what vLLM itself uses
def test_vllm_reads_a_process_head_at_every_token(tmp_path: Path) -> None:
    """By default vLLM's class gives the outputs of steps alone, and knows no step."""
    pytest.importorskip("vllm")
    folder = write(tmp_path / "published", "qwen2", QWEN_HEAD, QWEN_PRM)
    config = VllmConfig(model=str(folder), dtype="float32", enforce_eager=True, max_model_len=WINDOW)

    async def main() -> list[TokenLogits | Fault]:
        served = VllmEngine(config)
        answers = await served.classify_tokens(TEXTS)
        await served.close()
        return answers

    with unheard(), starting(processes=False):
        answers = asyncio.run(main())
    check_tokens(folder, answers, qwen_formula)


def test_vllm_is_not_started_for_a_head_that_it_lacks(tmp_path: Path) -> None:
    folder = write(tmp_path / "published", "qwen2", VALUE_HEAD, SKYWORK_PRM)
    with pytest.raises(ValueError, match=r"vLLM does not know \(family value_head\); use the transformers engine"):
        asyncio.run(VllmEngine(VllmConfig(model=str(folder))).classify_tokens(TEXTS))


def test_a_process_model_does_not_score_whole_responses(tmp_path: Path) -> None:
    folder = write(tmp_path / "published", "qwen2", QWEN_HEAD, QWEN_PRM)
    with pytest.raises(ValueError, match="process model, which classify_tokens reads"):
        asyncio.run(engine(folder).classify(TEXTS))


def test_a_head_of_two_layers_is_read_at_the_last_token(tmp_path: Path) -> None:
    folder = write(tmp_path / "published", "llama", QWEN_HEAD, INF_ORM)
    answers = asyncio.run(engine(folder).classify(TEXTS))
    held = load_file(folder / "model.safetensors")
    for text, answer in zip(TEXTS, answers, strict=True):
        assert not isinstance(answer, Fault)
        wanted = qwen_formula(states(folder, text)[-1], held)
        torch.testing.assert_close(torch.tensor(answer.values), wanted, atol=CLOSE, rtol=CLOSE)


def test_weights_and_attributes_are_read_at_the_last_token(tmp_path: Path) -> None:
    folder = write(tmp_path / "published", "llama", URM_HEAD, URM)
    answers = asyncio.run(engine(folder).classify(TEXTS))
    for text, answer in zip(TEXTS, answers, strict=True):
        assert not isinstance(answer, Fault)
        hidden = states(folder, text)[-1]
        inner = hidden
        for layer in (0, 2, 4):
            inner = functional.linear(
                inner, URM_HEAD[f"weights.fc.{layer}.weight"], URM_HEAD[f"weights.fc.{layer}.bias"]
            )
            inner = functional.selu(inner) if layer < 4 else inner
        wanted = torch.cat([(URM_HEAD["score.weight"] @ hidden).reshape(5, 2)[:, 0], inner])
        torch.testing.assert_close(torch.tensor(answer.values), wanted, atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize("config", [ARMORM, QRM], ids=["armorm", "qrm"])
def test_a_gated_head_is_read_at_two_places(config: Mapping[str, Any], tmp_path: Path) -> None:
    quantiles = config.get("num_quantiles", 1)
    rows = tensors({"regression_layer.weight": (3 * quantiles, WIDTH)})
    folder = write(tmp_path / "published", "llama", {**GATED_HEAD, **rows}, config)
    chat = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "four"}]
    (answer,) = asyncio.run(engine(folder).classify([chat]))
    assert not isinstance(answer, Fault)
    held = load_file(folder / "model.safetensors")
    asked = "<|turn|>user\n2+2?<|end|>\n"
    hidden = states(folder, f"{asked}<|turn|>assistant\nfour<|end|>\n")
    end = len(states(folder, asked)) - 2  # the token of <|end|>, before its line break
    rewards = (held["regression_layer.weight"] @ hidden[-1]).reshape(3, quantiles).mean(1)
    attributes = rewards @ held["reward_transform_matrix"]
    inner = functional.linear(hidden[end], held["gating.layers.0.weight"], held["gating.layers.0.bias"]).relu()
    gate = functional.linear(inner, held["gating.layers.1.weight"], held["gating.layers.1.bias"])
    wanted = torch.cat([held["gating.logit_scale"] * attributes, gate])
    torch.testing.assert_close(torch.tensor(answer.values), wanted, atol=CLOSE, rtol=CLOSE)


def test_a_plain_classifier_is_read_at_the_last_token(tmp_path: Path) -> None:
    head = tensors({"score.weight": (1, WIDTH)})
    folder = write(tmp_path / "published", "llama", head, SKYWORK_V2)
    answers = asyncio.run(engine(folder).classify(TEXTS))
    for text, answer in zip(TEXTS, answers, strict=True):
        assert not isinstance(answer, Fault)
        wanted = head["score.weight"] @ states(folder, text)[-1]
        torch.testing.assert_close(torch.tensor(answer.values), wanted, atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize(
    ("family", "config", "text"),
    [
        ("mistral", MATH_SHEPHERD, "Is 42 right? Step 1: yes ки\nStep 2: no ки\n"),
        ("llama", RLHFLOW, "<|turn|>user\nIs 42 right?<|end|>\n<|turn|>assistant\n+<|end|>\n"),
    ],
    ids=["math-shepherd", "rlhflow"],
)
def test_signs_of_a_language_model_are_read_inside_a_row(
    family: Family, config: Mapping[str, Any], text: str, tmp_path: Path
) -> None:
    head = tensors({"lm_head.weight": (512, WIDTH)})
    folder = write(tmp_path / "published", family, head, config)
    logprobs = functional.log_softmax(states(folder, text) @ head["lm_head.weight"].T, dim=-1)
    places = list(range(0, len(logprobs), 3))
    labels = {"good": ("+",), "bad": ("-",)}
    (found,) = asyncio.run(engine(folder).inner_label_logprobs([text], labels, [places]))
    assert not isinstance(found, Fault)
    good, bad = (tiny_tokenizer().convert_tokens_to_ids(sign) for sign in "+-")
    for place, answer in zip(places, found, strict=True):
        both = torch.tensor([answer.logprobs["good"], answer.logprobs["bad"]])
        torch.testing.assert_close(both, logprobs[place, [good, bad]], atol=CLOSE, rtol=CLOSE)


@pytest.mark.parametrize("classes", [["Qwen2ForOtherRewardModel"], ["Qwen2ForTokenClassification"]])
def test_a_head_that_is_not_known_is_refused_before_weights_are_loaded(
    classes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = tensors({"v_head.inner.weight": (1, WIDTH)})
    folder = write(tmp_path / "published", "qwen2", head, {"architectures": classes})

    def loaded(*args: Any, **options: Any) -> None:
        raise AssertionError("weights were loaded")

    monkeypatch.setattr("transformers.PreTrainedModel.from_pretrained", loaded)
    with pytest.raises(ValueError, match=r"v_head.inner.weight \[1, 64\]"):
        asyncio.run(engine(folder).classify_tokens(TEXTS))
