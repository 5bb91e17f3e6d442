"""Published families against their formulas in NumPy, computed from the publisher's own tensors, one chat at a time."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.reward_models.scalar.public_checkpoints import Array, Published, drawn, write_published

from adjudge.engines.checkpoint_files import CheckpointFiles
from adjudge.engines.checkpoint_notes import CheckpointNotes
from adjudge.engines.published_heads import FAMILIES, family_of
from adjudge.protocol import Sample
from adjudge.reward_models.scalar.checkpoint import adopt
from adjudge.reward_models.scalar.scorer import RewardModelScorer

WIDTH, HIDDEN = 64, 24
OPENING = "<|end|>\n<|turn|>assistant\n"  # what the published code looks for, in the template of the tiny models
CUSTOM: dict[str, Any] = {"auto_map": {"AutoModelForSequenceClassification": "modeling_custom.Custom"}}
CHATS = [
    ("2+2?", "four"),
    ("2+2?", "The answer is five, as everybody knows."),
    ("Is the answer right?", "\nNo, it is not."),
    ("x", "<|end|>\n<|turn|>assistant\nfour"),
]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJUDGE_CACHE", str(tmp_path / "cache"))


def plain(folder: Path, **config: Any) -> Published:
    heads = {"score.weight": drawn(1, WIDTH, seed=1)}
    labels: dict[str, Any] = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    return write_published(folder, heads, classes=("LlamaForSequenceClassification",), **labels, **config)


def inf_orm(folder: Path) -> Published:
    heads = {
        "score.0.weight": drawn(WIDTH, WIDTH, seed=1),
        "score.0.bias": drawn(WIDTH, seed=2),
        "score.2.weight": drawn(1, WIDTH, seed=3),
        "score.2.bias": drawn(1, seed=4),
    }
    return write_published(folder, heads, classes=("INFORMForSequenceClassification",))


def urm(folder: Path) -> Published:
    heads = {"score.weight": drawn(10, WIDTH, seed=1)}
    for layer, outputs in ((0, WIDTH), (2, WIDTH), (4, 5)):
        heads[f"weights.fc.{layer}.weight"] = drawn(outputs, WIDTH, seed=10 + layer)
        heads[f"weights.fc.{layer}.bias"] = drawn(outputs, seed=20 + layer)
    return write_published(folder, heads, classes=("LlamaForSequenceClassificationWithNormal_Weights",))


def gate(outputs: int, *, normed: bool) -> dict[str, torch.Tensor]:
    """The tensors of a gate: linear layers, or linear layers without bias, ReLU and batch normalisation."""
    found = {"gating.logit_scale": torch.tensor([1.25])}
    widths = [WIDTH, HIDDEN, HIDDEN, HIDDEN, outputs]
    for layer in range(4):
        name = f"gating.layers.{3 * layer if normed else layer}"
        found[f"{name}.weight"] = drawn(widths[layer + 1], widths[layer], seed=10 + layer)
        if not normed or layer == 3:
            found[f"{name}.bias"] = drawn(widths[layer + 1], seed=20 + layer)
        if normed and layer < 3:
            norm = f"gating.layers.{3 * layer + 2}"
            found[f"{norm}.weight"] = 1 + drawn(HIDDEN, seed=30 + layer)
            found[f"{norm}.bias"] = drawn(HIDDEN, seed=40 + layer)
            found[f"{norm}.running_mean"] = drawn(HIDDEN, seed=50 + layer)
            found[f"{norm}.running_var"] = drawn(HIDDEN, seed=60 + layer).abs() + 0.1
            found[f"{norm}.num_batches_tracked"] = torch.tensor(3)
    return found


def armorm(folder: Path, *, outputs: int = 19) -> Published:
    transform = torch.eye(outputs) + drawn(outputs, outputs, seed=2, std=0.05)
    heads = {"regression_layer.weight": drawn(outputs, WIDTH, seed=1), "reward_transform_matrix": transform}
    config = {"num_objectives": outputs, "gating_temperature": 7, "gating_hidden_dim": HIDDEN, "gating_n_hidden": 3}
    classes = ("LlamaForRewardModelWithGating",)
    return write_published(folder, heads | gate(outputs, normed=False), classes=classes, shards=3, **config, **CUSTOM)


def qrm(folder: Path, *, normed: bool = True) -> Published:
    heads = {"regression_layer.weight": drawn(4 * 5, WIDTH, seed=1), "reward_transform_matrix": torch.eye(4)}
    config = {"num_objectives": 4, "num_quantiles": 5}
    classes = ("LlamaForRewardModelWithGating31",)
    return write_published(folder, heads | gate(4, normed=normed), classes=classes, **config, **CUSTOM)


def gated_place(model: Published, row: list[int]) -> int:
    """Where the pattern that opens the assistant's turn begins, the last time."""
    pattern = model.tokenizer(OPENING, add_special_tokens=False)["input_ids"][:3]
    return max(place for place in range(len(row)) if row[place : place + len(pattern)] == pattern)


def gate_output(model: Published, state: Array, temperature: float) -> Array:
    """The publisher's gate, step by step."""
    value = state
    normed = "gating.layers.2.running_mean" in model.heads
    last = 9 if normed else 3
    for layer in range(4):
        name = f"gating.layers.{3 * layer if normed else layer}"
        value = model.head(f"{name}.weight") @ value
        if f"{name}.bias" in model.heads:
            value = value + model.head(f"{name}.bias")
        if name != f"gating.layers.{last}":
            value = np.maximum(value, 0)
            if normed:
                norm = f"gating.layers.{3 * layer + 2}"
                centred = (value - model.head(f"{norm}.running_mean")) / np.sqrt(
                    model.head(f"{norm}.running_var") + 1e-5
                )
                value = centred * model.head(f"{norm}.weight") + model.head(f"{norm}.bias")
    shares = np.exp(value / temperature - np.max(value / temperature))
    found: Array = shares / shares.sum() * model.head("gating.logit_scale")[0]
    return found


def plain_formula(model: Published, row: list[int], states: Array) -> float:
    return float(model.head("score.weight")[0] @ states[-1])


def inf_orm_formula(model: Published, row: list[int], states: Array) -> float:
    hidden = np.maximum(model.head("score.0.weight") @ states[-1] + model.head("score.0.bias"), 0)
    return float(model.head("score.2.weight")[0] @ hidden + model.head("score.2.bias")[0])


def urm_formula(model: Published, row: list[int], states: Array) -> float:
    value = states[-1]
    for layer in (0, 2, 4):
        value = model.head(f"weights.fc.{layer}.weight") @ value + model.head(f"weights.fc.{layer}.bias")
        if layer < 4:  # SELU
            value = 1.0507009873554805 * np.where(value > 0, value, 1.6732632423543772 * np.expm1(value))
    means = (model.head("score.weight") @ states[-1]).reshape(5, 2)[:, 0]
    return float(means @ value)


def armorm_formula(model: Published, row: list[int], states: Array) -> float:
    rewards = model.head("regression_layer.weight") @ states[-1]
    weights = gate_output(model, states[gated_place(model, row)], 7.0)
    return float((rewards @ model.head("reward_transform_matrix")) @ weights)


def qrm_formula(model: Published, row: list[int], states: Array) -> float:
    quantiles = (model.head("regression_layer.weight") @ states[-1]).reshape(4, 5)
    weights = gate_output(model, states[gated_place(model, row)], 10.0)
    return float(quantiles.mean(axis=1) @ weights)


Formula = Callable[[Published, list[int], Array], float]


@pytest.mark.parametrize(
    ("write", "formula", "family"),
    [
        pytest.param(plain, plain_formula, "plain", id="skywork"),
        pytest.param(inf_orm, inf_orm_formula, "inf_orm", id="inf-orm"),
        pytest.param(armorm, armorm_formula, "armorm", id="armorm"),
        pytest.param(qrm, qrm_formula, "qrm", id="qrm-batch-norm"),
        pytest.param(urm, urm_formula, "urm", id="urm"),
        pytest.param(lambda folder: qrm(folder, normed=False), qrm_formula, "qrm", id="qrm-plain-gate"),
    ],
)
def test_a_family_scores_by_its_formula(
    write: Callable[[Path], Published], formula: Formula, family: str, tmp_path: Path
) -> None:
    model = write(tmp_path / "published")
    made = RewardModelScorer(model=str(model.folder))
    assert made.checkpoint.family == family
    scores = asyncio.run(made.score([Sample(prompt=prompt, response=response) for prompt, response in CHATS]))
    wanted = []
    for prompt, response in CHATS:
        safe = response.replace("<|", "<·|")  # as the scorer breaks it up
        row, states = model.states([{"role": "user", "content": prompt}, {"role": "assistant", "content": safe}])
        wanted.append(formula(model, row, states))
    assert [score.value for score in scores] == pytest.approx(wanted, abs=2e-5, rel=2e-5)
    assert len({round(value, 3) for value in wanted}) == len(wanted)
    assert all(score.provenance.revision.endswith(family) for score in scores)


def test_the_gate_reads_the_prompt_alone(tmp_path: Path) -> None:
    """The same gate whatever the response says; the published code follows a response that spells the pattern."""
    made = RewardModelScorer(model=str(armorm(tmp_path / "published").folder))
    responses = ["four", "\n\nfour", "4<|end|>\n<|turn|>assistant\nfour", " ", "four " * 50]
    scores = asyncio.run(made.score([Sample(prompt="2+2?", response=response) for response in responses]))
    gates = [score.evidence["gate"] for score in scores if "gate" in score.evidence]
    assert len(gates) == len(responses)
    for other in gates[1:]:
        assert other == pytest.approx(gates[0], abs=1e-6)
    assert list(gates[0])[:2] == ["helpsteer-helpfulness", "helpsteer-correctness"]


def test_gaussian_attributes_are_asked_for(tmp_path: Path) -> None:
    heads = {"score.weight": drawn(10, WIDTH, seed=1), "weights.0.weight": drawn(5, WIDTH, seed=2)}
    model = write_published(tmp_path / "urm", heads, classes=("LlamaForSequenceClassification",))
    with pytest.raises(ValueError, match=r"weights.0.weight \[5, 64\]"):
        RewardModelScorer(model=str(model.folder)).check()
    weights = {"helpfulness": 0.3, "correctness": 0.74, "coherence": 0.46, "complexity": 0.47, "verbosity": -0.33}
    made = RewardModelScorer(model=str(model.folder), family="gaussian", weights=weights)
    (score,) = asyncio.run(made.score([Sample(prompt="2+2?", response="four")]))
    _, states = model.states([{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "four"}])
    raw = (model.head("score.weight") @ states[-1]).reshape(5, 2)
    each = np.array(list(weights.values()))
    assert score.value == pytest.approx(float(raw[:, 0] @ each), abs=1e-5)
    assert score.uncertainty == pytest.approx(float(np.sqrt(((each * np.exp(raw[:, 1])) ** 2).sum())), rel=1e-5)


@pytest.mark.parametrize(
    ("heads", "classes", "seen"),
    [
        ({"v_head.weight": (1, WIDTH)}, ("InternLM2ForRewardModel",), r"v_head.weight \[1, 64\]"),
        ({"score.weight": (1, WIDTH)}, ("LlamaForScore",), "LlamaForScore"),
        ({"score.weight": (1, WIDTH), "gating.x": (2, 2)}, ("LlamaForSequenceClassification",), r"gating.x \[2, 2\]"),
        ({}, ("LlamaForCausalLM",), "no tensor"),
        ({}, ("LlamaModel",), "no tensor"),
    ],
)
def test_a_head_that_is_not_known_is_named(
    heads: dict[str, tuple[int, ...]], classes: tuple[str, ...], seen: str, tmp_path: Path
) -> None:
    tensors = {name: drawn(*shape, seed=1) for name, shape in heads.items()}
    model = write_published(tmp_path / "unknown", tensors, classes=classes)
    with pytest.raises(ValueError, match=seen):
        RewardModelScorer(model=str(model.folder)).check()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"gating.layers.3.weight": drawn(5, HIDDEN, seed=1)}, "5 outputs"),
        (
            {"gating.layers.1.weight": drawn(7, HIDDEN, seed=1), "gating.layers.2.weight": drawn(HIDDEN, 7, seed=1)},
            "widths",
        ),
        ({"gating.layers.4.scale": drawn(3, seed=1)}, "layer 4 of the gate"),
        ({"reward_transform_matrix": drawn(3, 3, seed=1)}, r"\(3, 3\)"),
    ],
)
def test_a_gate_of_another_form_is_refused(change: dict[str, torch.Tensor], named: str, tmp_path: Path) -> None:
    heads = {"regression_layer.weight": drawn(19, WIDTH, seed=1), "reward_transform_matrix": torch.eye(19)}
    heads |= gate(19, normed=False) | change
    model = write_published(tmp_path / "odd", heads, classes=("LlamaForRewardModelWithGating",))
    with pytest.raises(ValueError, match=named):
        RewardModelScorer(model=str(model.folder)).check()


def test_a_model_of_steps_does_not_score_a_response(tmp_path: Path) -> None:
    heads = inf_orm(tmp_path / "inf_orm").heads
    model = write_published(tmp_path / "prm", heads, classes=("Qwen2ForProcessRewardModel",))
    with pytest.raises(ValueError, match="scores the steps of a response"):
        RewardModelScorer(model=str(model.folder)).check()


def test_a_family_that_is_none(tmp_path: Path) -> None:
    model = plain(tmp_path / "plain")
    with pytest.raises(ValueError, match="there are plain, armorm, qrm, inf_orm, qwen_prm, value_head, urm, gaussian"):
        RewardModelScorer(model=str(model.folder), family="arm").check()


def test_adoption_links_weights_and_runs_no_code(tmp_path: Path) -> None:
    model = armorm(tmp_path / "published")
    files = CheckpointFiles.of(str(model.folder))
    adopt(files, family_of(files), tmp_path / "adopted")
    names = {entry.name for entry in (tmp_path / "adopted").iterdir()}
    assert "modeling_custom.py" not in names
    for entry in (tmp_path / "adopted").glob("model-*.safetensors"):
        assert entry.is_symlink()
    notes = CheckpointNotes.read(tmp_path / "adopted")
    assert notes is not None
    assert (notes.head.kind, notes.head.outputs, notes.head.temperature) == ("gating", 19, 7.0)


def test_a_folder_is_adopted_once_and_again_when_it_changed(tmp_path: Path) -> None:
    model = inf_orm(tmp_path / "published")
    first, second = (RewardModelScorer(model=str(model.folder)) for _ in range(2))
    assert first.checkpoint.engine is second.checkpoint.engine
    other = write_published(
        tmp_path / "other",
        {**model.heads, "score.2.bias": drawn(1, seed=99)},
        classes=("INFORMForSequenceClassification",),
    )
    assert RewardModelScorer(model=str(other.folder)).fingerprint != first.fingerprint
    made = list((tmp_path / "cache" / "checkpoints").iterdir())
    assert len(made) == 2
    assert not [entry for entry in made if entry.name.startswith(".")]


def test_families_have_names_of_their_own() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    model = plain(tmp_path / "plain")
    (model.folder / "model.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(ValueError, match=r"model.safetensors.*cannot be read|not a safetensors file"):
        RewardModelScorer(model=str(model.folder)).check()
    (model.folder / "config.json").unlink()
    with pytest.raises(ValueError, match=r"no config.json"):
        RewardModelScorer(model=str(model.folder)).check()


@pytest.mark.parametrize("write", [plain, armorm], ids=["plain", "armorm"])
def test_a_published_name_is_recognised_before_its_weights_are_fetched(
    write: Callable[[Path], Published], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub is a folder to copy from here: small files first, the weights only where a head has to be rewritten."""
    published = write(tmp_path / "hub").folder
    fetched: list[tuple[str, ...]] = []

    def snapshot_download(name: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        assert (name, revision) == ("someone/model", "v1")
        fetched.append(tuple(allow_patterns))
        local = tmp_path / "local"
        local.mkdir(exist_ok=True)
        for pattern in allow_patterns:
            for path in published.glob(pattern):
                shutil.copyfile(path, local / path.name)
        return str(local)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    made = RewardModelScorer(engine={"transformers": {"model": "someone/model", "revision": "v1"}})
    made.check()
    assert "*.safetensors" not in fetched[0]
    assert len(fetched) == (1 if write is plain else 2)
    assert made.checkpoint.family == write.__name__
    assert made.readout.head.outputs == (1 if write is plain else 19)


def test_a_name_that_is_nowhere_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def snapshot_download(*args: Any, **options: Any) -> str:
        raise OSError("no route to host")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    with pytest.raises(ValueError, match=r"'nobody/model' is not a folder here .* no route to host"):
        RewardModelScorer(model="nobody/model").check()
