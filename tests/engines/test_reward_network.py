"""Reward models as modules and on disk: pooling by length, heads in 32 bits, folders that other programs load too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engines.tiny_models import tiny_config, tiny_tokenizer
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    BertConfig,
    BertModel,
)

from adjudge.engines.checkpoint_notes import FILE, HEAD_FILE, CheckpointNotes
from adjudge.engines.head_config import HeadConfig
from adjudge.engines.reward_network import HeadNetwork, RewardNetwork

ROWS = ([7, 300, 42, 1], [9, 1, 1, 260, 88, 140, 1], [301, 2])  # 1 is the end token; one row begins and ends with it

HEADS = [
    pytest.param(HeadConfig(), True, id="linear"),
    pytest.param(HeadConfig(bias=True), False, id="linear-with-bias"),
    pytest.param(HeadConfig(kind="mlp", outputs=2, hidden=24, depth=2, activation="gelu", bias=True), False, id="mlp"),
    pytest.param(HeadConfig(kind="gaussian", outputs=3), True, id="gaussian"),
    pytest.param(HeadConfig(kind="quantile", outputs=2, levels=5), True, id="quantile"),
    pytest.param(HeadConfig(kind="multi", outputs=2, members=4), True, id="ensemble"),
    pytest.param(HeadConfig(kind="gating", outputs=4, hidden=16), False, id="gating"),
    pytest.param(HeadConfig(pooling="mean"), False, id="mean"),
    pytest.param(HeadConfig(pooling="first"), False, id="first"),
    pytest.param(HeadConfig(pooling="tokens", outputs=2), True, id="tokens"),
    pytest.param(HeadConfig(pooling="tokens", bias=True), True, id="tokens-with-bias"),
    pytest.param(HeadConfig(kind="mlp", pooling="tokens"), False, id="tokens-mlp"),
]


def body(dtype: torch.dtype = torch.float32, **config: Any) -> Any:
    torch.manual_seed(0)
    kind: Any = AutoModel
    return kind.from_config(tiny_config("qwen2", tiny_tokenizer(), **config), dtype=dtype).eval()


def network(config: HeadConfig, dtype: torch.dtype = torch.float32) -> RewardNetwork:
    made = RewardNetwork.on(body(dtype), config).eval()
    with torch.no_grad():
        for parameter in made.head.parameters():
            if parameter.ndim == 1:
                parameter.uniform_(-1, 1)  # fresh biases are 0, and would not be missed
    return made


def notes(config: HeadConfig) -> CheckpointNotes:
    return CheckpointNotes(what="process" if config.pooling == "tokens" else "scalar", head=config)


def batch(side: str, pad: int = 1) -> dict[str, torch.Tensor]:
    """The rows, padded with their end token."""
    width = max(map(len, ROWS))
    fill = [(width - len(row)) for row in ROWS]
    left = side == "left"
    ids = [[pad] * lack + row if left else row + [pad] * lack for row, lack in zip(ROWS, fill, strict=True)]
    own = [
        [0] * lack + [1] * len(row) if left else [1] * len(row) + [0] * lack
        for row, lack in zip(ROWS, fill, strict=True)
    ]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(own)}


def outputs(made: RewardNetwork, side: str = "right") -> list[torch.Tensor]:
    """What a network gives for each row, without padding."""
    inputs = batch(side)
    if made.head.gate is not None:
        inputs["prompt_lengths"] = torch.tensor([2, 3, 1])
    with torch.inference_mode():
        found = made(**inputs)
    if made.pooling != "tokens":
        return list(found)
    return [values[own.bool()] for values, own in zip(found, inputs["attention_mask"], strict=True)]


def alone(made: RewardNetwork, row: list[int]) -> torch.Tensor:
    """What the rules say of a row, worked out by hand from the hidden states of that row."""
    with torch.inference_mode():
        hidden = made.backbone(input_ids=torch.tensor([row])).last_hidden_state[0].float()
        places = {"last": hidden[-1], "first": hidden[0], "mean": hidden.mean(0), "tokens": hidden}
        found: torch.Tensor = made.head(places[made.pooling])
        if made.head.gate is None:
            return found
        prompt = hidden[{4: 2, 7: 3, 2: 1}[len(row)] - 1]
        return torch.cat([made.head(hidden[-1])[:4], made.head(prompt)[4:]])


@pytest.mark.parametrize(("config", "_"), HEADS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_changes_nothing(config: HeadConfig, _: bool, side: str) -> None:
    made = network(config)
    for row, found in zip(ROWS, outputs(made, side), strict=True):
        assert found.shape[-1] == config.columns
        torch.testing.assert_close(found, alone(made, row), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("config", "plain"), HEADS)
def test_what_is_saved_gives_the_same_numbers(tmp_path: Path, config: HeadConfig, plain: bool) -> None:
    made = network(config)
    made.save(tmp_path, tiny_tokenizer(pad="<|end|>"), notes(config))
    assert CheckpointNotes.read(tmp_path) == notes(config)
    assert (tmp_path / HEAD_FILE).is_file() != plain
    state = torch.get_rng_state()
    back = RewardNetwork.load(tmp_path)
    assert torch.equal(torch.get_rng_state(), state)  # a program that loads a model keeps its luck
    for one, other in zip(outputs(made), outputs(back), strict=True):
        assert torch.equal(one, other)
    assert all(parameter.requires_grad for parameter in back.parameters())
    if not plain:
        return
    kinds: dict[str, Any] = {"last": AutoModelForSequenceClassification, "tokens": AutoModelForTokenClassification}
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    other = kinds[config.pooling].from_pretrained(tmp_path)
    assert tokenizer.pad_token_id == other.config.pad_token_id != tokenizer.eos_token_id
    inputs = batch("right", pad=tokenizer.pad_token_id)
    with torch.inference_mode():
        found = other(**inputs).logits
    for values, own, wanted in zip(found, inputs["attention_mask"], outputs(made), strict=True):
        torch.testing.assert_close(
            values[own.bool()] if config.pooling == "tokens" else values, wanted, rtol=0, atol=1e-5
        )


def test_the_usual_way_reads_another_token_where_padding_is_the_end_token(tmp_path: Path) -> None:
    """The trap that the saved padding token avoids: pooling by ids passes over real end tokens."""
    made, tokenizer = network(HeadConfig()), tiny_tokenizer(pad="<|end|>")
    made.save(tmp_path, tokenizer, notes(HeadConfig()))
    kind: Any = AutoModelForSequenceClassification
    naive = kind.from_pretrained(tmp_path)
    naive.config.pad_token_id = tokenizer.eos_token_id
    with torch.inference_mode():
        found = naive(**batch("right")).logits
    gaps = [float((one - other).abs().max()) for one, other in zip(found, outputs(made), strict=True)]
    assert min(gaps[0], gaps[1]) > 1e-2  # these rows end with an end token
    assert gaps[2] < 1e-5


@pytest.mark.parametrize("spare", [pytest.param(True, id="a-free-row"), pytest.param(False, id="no-free-row")])
def test_a_padding_token_is_found_without_touching_what_was_given(tmp_path: Path, spare: bool) -> None:
    tokenizer = tiny_tokenizer(pad="<|end|>")
    size = len(tokenizer) + 3 * spare
    made = RewardNetwork.on(body(vocab_size=size), HeadConfig()).eval()
    made.save(tmp_path, tokenizer, notes(HeadConfig()))
    assert tokenizer.pad_token_id == tokenizer.eos_token_id
    assert made.backbone.get_input_embeddings().weight.shape[0] == size
    back = RewardNetwork.load(tmp_path)
    assert back.backbone.get_input_embeddings().weight.shape[0] == size + (not spare)
    assert AutoTokenizer.from_pretrained(tmp_path).pad_token_id == len(tokenizer)


@pytest.mark.parametrize("config", [HeadConfig(), HeadConfig(kind="mlp"), HeadConfig(pooling="tokens", bias=True)])
def test_heads_stay_in_32_bits(tmp_path: Path, config: HeadConfig) -> None:
    made = network(config, torch.bfloat16)
    kept = {name: value.clone() for name, value in made.head.state_dict().items()}
    assert any(not torch.equal(value, value.bfloat16().float()) for value in kept.values())
    wanted = outputs(made)
    made = made.to(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        assert all(found.dtype == torch.float32 for found in outputs(made))
    made.save(tmp_path, tiny_tokenizer(), notes(config))
    back = RewardNetwork.load(tmp_path, dtype="auto")
    assert back.backbone.dtype == torch.bfloat16
    for name, value in back.head.state_dict().items():
        assert torch.equal(value, kept[name])
    for one, other in zip(wanted, outputs(back), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_an_encoder_keeps_its_head_beside_it(tmp_path: Path) -> None:
    torch.manual_seed(0)
    kind: Any = BertModel
    sizes: dict[str, Any] = {"vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2}
    made = RewardNetwork.on(kind(BertConfig(num_hidden_layers=2, **sizes)).eval(), HeadConfig(pooling="first")).eval()
    made.save(tmp_path, tiny_tokenizer(), notes(HeadConfig(pooling="first")))
    assert (tmp_path / HEAD_FILE).is_file()
    for one, other in zip(outputs(made), outputs(RewardNetwork.load(tmp_path)), strict=True):
        assert torch.equal(one, other)


def test_a_model_that_writes_keeps_its_language_head(tmp_path: Path) -> None:
    torch.manual_seed(0)
    kind: Any = AutoModelForCausalLM
    writer = kind.from_config(tiny_config("qwen2", tiny_tokenizer())).eval()
    with pytest.raises(ValueError, match="base_model"):
        RewardNetwork.on(writer, HeadConfig())
    made = RewardNetwork.on(writer.base_model, HeadConfig()).eval()
    critic = CheckpointNotes(what="critique", head=HeadConfig())
    made.save(tmp_path, tiny_tokenizer(), critic, language_model=writer)
    for one, other in zip(outputs(made), outputs(RewardNetwork.load(tmp_path)), strict=True):
        assert torch.equal(one, other)
    inputs = batch("right")
    with torch.inference_mode():
        assert torch.equal(kind.from_pretrained(tmp_path)(**inputs).logits, writer(**inputs).logits)


def test_a_folder_can_be_saved_into_again(tmp_path: Path) -> None:
    network(HeadConfig(kind="mlp")).save(tmp_path, tiny_tokenizer(), notes(HeadConfig(kind="mlp")))
    made = network(HeadConfig(kind="multi", members=2))
    made.save(tmp_path, tiny_tokenizer(), notes(made.head.config))
    for one, other in zip(outputs(made), outputs(RewardNetwork.load(tmp_path)), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        pytest.param(HEAD_FILE, "does not fit", id="no-head"),
        pytest.param("model.safetensors", "cannot be loaded", id="no-body"),
        pytest.param(FILE, "not a reward model that adjudge has saved", id="no-notes"),
    ],
)
def test_nothing_is_made_up_for_what_is_lost(tmp_path: Path, lost: str, told: str) -> None:
    network(HeadConfig(kind="mlp")).save(tmp_path, tiny_tokenizer(), notes(HeadConfig(kind="mlp")))
    (tmp_path / lost).unlink()
    with pytest.raises(ValueError, match=told):
        RewardNetwork.load(tmp_path)


def test_what_would_be_saved_wrong_is_refused(tmp_path: Path) -> None:
    made = network(HeadConfig())
    with pytest.raises(ValueError, match="another head"):
        made.save(tmp_path, tiny_tokenizer(), notes(HeadConfig(outputs=2)))
    made.backbone = torch.nn.Sequential(made.backbone)
    with pytest.raises(ValueError, match="merge adapters"):
        made.save(tmp_path, tiny_tokenizer(), notes(HeadConfig()))
    assert not list(tmp_path.iterdir())


def test_a_gate_needs_to_know_where_prompts_end() -> None:
    with pytest.raises(ValueError, match="prompt_lengths"):
        network(HeadConfig(kind="gating", outputs=2))(**batch("right"))


def test_fresh_heads_are_small_and_follow_the_seed() -> None:
    torch.manual_seed(5)
    one = HeadNetwork(HeadConfig(outputs=400), 63)
    torch.manual_seed(5)
    other = HeadNetwork(HeadConfig(outputs=400), 63)
    assert torch.equal(one.score.weight, other.score.weight)
    assert float(one.score.weight.detach().std()) == pytest.approx(64**-0.5, rel=0.02)


def test_gradients_reach_the_body() -> None:
    made = network(HeadConfig(kind="gaussian")).train()
    made(**batch("left")).square().sum().backward()
    lacking = [name for name, value in made.named_parameters() if value.grad is None]
    assert not lacking
