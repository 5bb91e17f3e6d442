from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.engines.tiny_models import tiny_tokenizer, write_model, write_reward_model
from transformers import AutoModelForSequenceClassification

from adjudge.engines.checkpoint_notes import CheckpointNotes, Normalizer
from adjudge.engines.head_config import HeadConfig
from adjudge.reward_models.scalar.weight_average import average_checkpoints

Members = Callable[[int], list[Path]]
IDS = torch.tensor([[5, 9, 17, 300, 2, 44]])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Classifiers that differ in their weights alone."""
    home = tmp_path_factory.mktemp("members")
    return [write_model(home / str(seed), task="classify", seed=seed) for seed in range(4)]


@pytest.fixture
def members(written: list[Path], tmp_path: Path) -> Members:
    """Makes copies of the first of them, to be changed at will."""

    def made(count: int) -> list[Path]:
        return [Path(shutil.copytree(folder, tmp_path / folder.name)) for folder in written[:count]]

    return made


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for path in folder.glob("*.safetensors"):
        found |= load_file(path)
    return found


def test_weights_are_the_weighted_mean_and_the_folder_loads(members: Members, tmp_path: Path) -> None:
    folders = members(3)
    out = average_checkpoints(folders, tmp_path / "out", weights=[2.0, 1.0, 1.0])
    held, found = [tensors(folder) for folder in folders], tensors(out)
    assert list(found) == list(held[0])
    for name, value in found.items():
        wanted = sum(share * each[name].double() for share, each in zip((0.5, 0.25, 0.25), held, strict=True))
        torch.testing.assert_close(value.double(), wanted, atol=1e-6, rtol=1e-6)
    kind: Any = AutoModelForSequenceClassification
    model, info = kind.from_pretrained(out, output_loading_info=True)
    assert not info["missing_keys"]
    assert torch.isfinite(model(IDS).logits).all()


def test_sums_are_in_32_bits_whatever_the_files_hold(members: Members, tmp_path: Path) -> None:
    """Quarters of 1, and of 1 + 2 ** -7 three times: a running sum in bfloat16 rounds each step down, and ends at 1."""
    folders = members(4)
    values = [1.0, *[1 + 2**-7] * 3]
    for folder, value in zip(folders, values, strict=True):
        state = {name: torch.full_like(tensor, value).bfloat16() for name, tensor in tensors(folder).items()}
        save_file(state, folder / "model.safetensors", {"format": "pt"})
    found = tensors(average_checkpoints(folders, tmp_path / "out"))
    naive = torch.zeros((), dtype=torch.bfloat16)
    for value in values:
        naive += torch.tensor(value).bfloat16() * 0.25
    assert float(naive) == 1.0
    assert {value.dtype for value in found.values()} == {torch.bfloat16}
    assert all(bool((value == 1 + 2**-7).all()) for value in found.values())


def test_members_in_other_files_are_read_by_name(members: Members, tmp_path: Path) -> None:
    folders = members(2)
    state = tensors(folders[1])
    names = sorted(state)
    (folders[1] / "model.safetensors").unlink()
    table = {name: f"model-{1 + place % 2:05}-of-00002.safetensors" for place, name in enumerate(names)}
    for file in set(table.values()):
        save_file({name: state[name] for name in names if table[name] == file}, folders[1] / file, {"format": "pt"})
    (folders[1] / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}), encoding="utf-8")
    whole, split = (
        tensors(average_checkpoints(pair, tmp_path / name)) for name, pair in (("one", folders), ("two", folders[::-1]))
    )
    assert all(torch.equal(whole[name], split[name]) for name in whole)


def test_whole_numbers_are_kept_and_must_agree(members: Members, tmp_path: Path) -> None:
    folders = members(2)
    for folder in folders:
        save_file({**tensors(folder), "model.steps": torch.tensor([7])}, folder / "model.safetensors", {"format": "pt"})
    assert tensors(average_checkpoints(folders, tmp_path / "out"))["model.steps"].tolist() == [7]
    save_file(
        {**tensors(folders[1]), "model.steps": torch.tensor([8])}, folders[1] / "model.safetensors", {"format": "pt"}
    )
    with pytest.raises(ValueError, match=r"model\.steps holds whole numbers"):
        average_checkpoints(folders, tmp_path / "other")


def test_our_own_heads_and_notes(tmp_path: Path) -> None:
    head = HeadConfig(kind="mlp", hidden=16, bias=True)
    folders = [write_reward_model(tmp_path / str(seed), head, seed=seed) for seed in range(2)]
    for folder, limit in zip(folders, (256, 512), strict=True):
        CheckpointNotes(what="scalar", head=head, normalizer=Normalizer(1.0, 2.0), max_length=limit).write(folder)
    out = average_checkpoints(folders, tmp_path / "out")
    notes = CheckpointNotes.read(out)
    assert notes is not None
    assert (notes.head, notes.normalizer, notes.max_length) == (head, None, 256)
    assert notes.trained["weights"] == [0.5, 0.5]
    assert len(set(notes.trained["averaged"])) == 2
    held = [tensors(folder) for folder in folders]
    torch.testing.assert_close(tensors(out)["score.weight"], (held[0]["score.weight"] + held[1]["score.weight"]) / 2)


def _other_width(folder: Path) -> None:
    shutil.rmtree(folder)
    write_model(folder, task="classify", seed=1, intermediate_size=128)


def _other_labels(folder: Path) -> None:
    shutil.rmtree(folder)
    write_model(folder, task="classify", seed=1, labels=2)


def _other_template(folder: Path) -> None:
    shutil.rmtree(folder)
    write_model(folder, task="classify", seed=1, tokenizer=tiny_tokenizer(chat="{{ messages[0]['content'] }}"))


def _with_notes(folder: Path) -> None:
    CheckpointNotes(what="scalar", head=HeadConfig()).write(folder)


def _with_nan(folder: Path) -> None:
    state = tensors(folder)
    state["score.weight"][0, 3] = torch.nan
    save_file(state, folder / "model.safetensors", {"format": "pt"})


def _without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def _lacking_a_tensor(folder: Path) -> None:
    state = tensors(folder)
    del state["score.weight"]
    save_file(state, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (_other_width, "intermediate_size=96 in one and 128"),
        (_other_labels, "id2label"),
        (_other_template, "tokenizers"),
        (_with_notes, "only one has adjudge.json"),
        (_with_nan, r"score.weight .* not finite"),
        (_without_weights, "the tensor"),
        (_lacking_a_tensor, r"score.weight has the shape \(1, 64\) in one and None"),
    ],
)
def test_checkpoints_that_differ_are_refused(
    members: Members, change: Callable[[Path], None], named: str, tmp_path: Path
) -> None:
    folders = members(2)
    change(folders[1])
    with pytest.raises(ValueError, match=named):
        average_checkpoints(folders, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith(".")]


@pytest.mark.parametrize(
    ("weights", "named"),
    [
        ([1.0], "1 weights for 2"),
        ([1.0, -1.0], "not negative"),
        ([0.0, 0.0], "positive sum"),
        ([1.0, float("nan")], "finite"),
    ],
)
def test_weights_that_cannot_be_are_refused(weights: list[float], named: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=named):
        average_checkpoints([tmp_path / "a", tmp_path / "b"], tmp_path / "out", weights)


def test_folders_that_cannot_be_are_refused(members: Members, tmp_path: Path) -> None:
    folders = members(2)
    with pytest.raises(ValueError, match="at least two"):
        average_checkpoints(folders[:1], tmp_path / "out")
    with pytest.raises(ValueError, match="not empty"):
        average_checkpoints(folders, folders[0])


def adapter(base: Path, out: Path, seed: int, **options: Any) -> Any:
    """A LoRA adapter with random factors and a head of its own on a base, written to a folder; returns the model."""
    import peft

    kind: Any = AutoModelForSequenceClassification
    config = peft.LoraConfig(
        task_type="SEQ_CLS", target_modules=["q_proj", "v_proj"], modules_to_save=["score"], **options
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = peft.get_peft_model(kind.from_pretrained(base), config)
        for name, value in model.named_parameters():
            if "lora_" in name or "modules_to_save" in name:
                value.data.normal_(std=0.3)
    model.save_pretrained(str(out))
    return model.eval()


def test_adapters_are_averaged_as_the_merged_models_would_be(written: list[Path], tmp_path: Path) -> None:
    import peft

    base = written[0]
    options = [{"r": 4, "lora_alpha": 8}, {"r": 2, "lora_alpha": 6, "use_rslora": True}]
    folders, merged = [], []
    for seed, option in enumerate(options):
        model = adapter(base, tmp_path / f"adapter{seed}", seed, **option)
        whole = model.merge_and_unload()
        whole.save_pretrained(tmp_path / f"merged{seed}")
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copyfile(base / file, tmp_path / f"merged{seed}" / file)
        folders.append(tmp_path / f"adapter{seed}")
        merged.append(tmp_path / f"merged{seed}")
    kind: Any = AutoModelForSequenceClassification
    wanted = kind.from_pretrained(average_checkpoints(merged, tmp_path / "whole", [3.0, 1.0])).eval()
    joint = average_checkpoints(folders, tmp_path / "joint", [3.0, 1.0])
    got: Any = peft.PeftModel.from_pretrained(kind.from_pretrained(base), joint)
    assert got.peft_config["default"].r == 6
    with torch.inference_mode():
        assert float(got.eval()(IDS).logits) == pytest.approx(float(wanted(IDS).logits), abs=1e-4)
    naive = _averaged_factor_by_factor(folders, (0.75, 0.25), base, tmp_path / "naive")
    with torch.inference_mode():
        assert abs(float(naive(IDS).logits) - float(wanted(IDS).logits)) > 1e-2


def _averaged_factor_by_factor(folders: list[Path], shares: tuple[float, float], base: Path, out: Path) -> Any:
    """What averaging adapters tensor by tensor would give; the second one's rank is filled up with zeros."""
    import peft

    one, two = (load_file(folder / "adapter_model.safetensors") for folder in folders)
    state = {}
    for name, value in one.items():
        other = torch.zeros_like(value)
        other[tuple(slice(size) for size in two[name].shape)] = two[name]
        state[name] = shares[0] * value + shares[1] * other
    shutil.copytree(folders[0], out)
    save_file(state, out / "adapter_model.safetensors", {"format": "pt"})
    kind: Any = AutoModelForSequenceClassification
    return peft.PeftModel.from_pretrained(kind.from_pretrained(base), out).eval()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"use_dora": True}, "use_dora=True"),
        ({"rank_pattern": {"q_proj": 2}}, "rank_pattern"),
        ({"target_modules": ["q_proj"]}, "target_modules"),
        ({"base_model_name_or_path": "another"}, "base_model_name_or_path"),
        ({"peft_type": "IA3"}, "IA3"),
    ],
)
def test_adapters_that_cannot_be_put_side_by_side_are_refused(
    change: dict[str, Any], named: str, written: list[Path], tmp_path: Path
) -> None:
    base = written[0]
    folders = [tmp_path / f"adapter{seed}" for seed in range(2)]
    for seed, folder in enumerate(folders):
        adapter(base, folder, seed, r=2)
    path = folders[1] / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **change}), encoding="utf-8")
    with pytest.raises(ValueError, match=named):
        average_checkpoints(folders, tmp_path / "out")


def test_a_model_and_an_adapter_do_not_mix(written: list[Path], tmp_path: Path) -> None:
    base = written[0]
    adapter(base, tmp_path / "adapter", 0, r=2)
    with pytest.raises(ValueError, match="merge the adapter first"):
        average_checkpoints([base, tmp_path / "adapter"], tmp_path / "out")
