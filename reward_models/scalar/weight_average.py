"""Several checkpoints of one architecture averaged into one: no more work at inference, and robuster rewards.

WARM (arXiv 2401.12187): weight by weight, theta = sum_i w_i theta_i, for models that were trained from the same start
with other seeds, orders of data or hyperparameters.  Sums are in 32 bits, tensor by tensor: memory holds one tensor of
two checkpoints at a time, whatever the models' size.

Not covered: models that started from different checkpoints (their average means nothing, and nothing here can tell),
and quantised weights.

LoRA adapters averaged exactly, without their body.

An adapter adds s B A to a weight.  The average of the merged weights adds sum_i w_i s_i B_i A_i, and that is not what
the average of the B_i and the average of the A_i give: their product has terms B_i A_j too, and factors of different
runs do not even span the same space.  So the factors are put side by side, A = [A_1; A_2; ..] and
B = [w_1 s_1 B_1, w_2 s_2 B_2, ..].  That is exact; the rank is the sum of the ranks.  Modules that are saved whole
(`modules_to_save`, a reward head) are averaged weight by weight.

Not covered: adapters other than LoRA, DoRA, ranks that differ between modules, and trained biases; merge those first.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.engines.checkpoint_files import CheckpointFiles, header_of
from adjudge.engines.checkpoint_notes import FILE
from adjudge.engines.model_digest import folder_digest

if TYPE_CHECKING:
    import torch


ADAPTER = "adapter_model.safetensors"
CONFIG = "adapter_config.json"

_COPIED = (".json", ".jinja", ".model", ".txt", ".tiktoken")
_SAME = (
    "base_model_name_or_path",
    "target_modules",
    "modules_to_save",
    "fan_in_fan_out",
    "task_type",
)
_PLAIN: Mapping[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",),
    "use_dora": (False, None),
    "bias": ("none", None),
    "lora_bias": (False, None),
    "rank_pattern": ({}, None),
    "alpha_pattern": ({}, None),
}


def average_adapters(homes: Sequence[Path], out: Path, shares: Sequence[float]) -> None:
    """Write the average of adapters into an empty folder; their shares sum to 1.

    Raises:
        ValueError: they differ in more than their factors, or are of a kind that cannot be put side by side.
    """
    import torch
    from safetensors.torch import load_file, save_file

    configs = [_config(home) for home in homes]
    for home, config in zip(homes[1:], configs[1:], strict=True):
        for key in _SAME:
            if _unordered(configs[0].get(key)) != _unordered(config.get(key)):
                raise _differ(homes[0], home, CONFIG, key, configs[0].get(key), config.get(key))
    tensors = [load_file(str(home / ADAPTER)) for home in homes]
    for home, held in zip(homes[1:], tensors[1:], strict=True):
        if odd := sorted(set(held) ^ set(tensors[0])):
            raise ValueError(
                f"{str(homes[0])!r} and {str(home)!r} cannot be averaged: only one has the tensor {odd[0]}"
            )
    average: dict[str, torch.Tensor] = {}
    for name, first in tensors[0].items():
        values = [held[name].float() for held in tensors]
        if "lora_A" in name or "lora_embedding_A" in name:
            joined = torch.cat(values, dim=0)
        elif "lora_B" in name or "lora_embedding_B" in name:
            factors = [share * _scale(config) for share, config in zip(shares, configs, strict=True)]
            joined = torch.cat([factor * value for factor, value in zip(factors, values, strict=True)], dim=1)
        else:
            joined = sum(
                (share * value for share, value in zip(shares, values, strict=True)), torch.zeros_like(values[0])
            )
        average[name] = joined.to(first.dtype).contiguous()
    save_file(average, str(out / ADAPTER), metadata={"format": "pt"})
    rank = sum(int(config["r"]) for config in configs)
    joint = {**configs[0], "r": rank, "lora_alpha": rank, "use_rslora": False, "init_lora_weights": True}
    (out / CONFIG).write_text(json.dumps(joint, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    _copy_files(homes[0], out, CONFIG)


def _copy_files(home: Path, out: Path, without: str) -> None:
    for entry in sorted(home.iterdir()):
        if entry.is_file() and entry.name.endswith(_COPIED) and entry.name != without:
            shutil.copyfile(entry, out / entry.name)


def _config(home: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((home / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"the adapter {str(home)!r} has no {CONFIG} that can be read ({error})") from error
    for key, known in _PLAIN.items():
        if config.get(key) not in known:
            raise ValueError(
                f"the adapter {str(home)!r} has {key}={config.get(key)!r}; such adapters cannot be put side by side: "
                "merge each into its body, and average the models"
            )
    return config


def _differ(first: Path, other: Path, where: str, key: str, one: Any, two: Any) -> ValueError:
    return ValueError(
        f"{str(first)!r} and {str(other)!r} cannot be averaged: {where} has {key}={one!r} in one and {two!r} in the "
        "other"
    )


def _unordered(value: Any) -> Any:
    return sorted(map(str, value)) if isinstance(value, list) else value


def _scale(config: Mapping[str, Any]) -> float:
    """What the product of an adapter's factors is multiplied with."""
    rank, alpha = int(config["r"]), float(config["lora_alpha"])
    return alpha / math.sqrt(rank) if config.get("use_rslora") else alpha / rank


_FREE_KEYS = ("_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache")
_TOKENIZER = ("tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt", "chat_template.jinja")
_FLOATS = ("F64", "F32", "F16", "BF16")


def average_checkpoints(folders: Sequence[str | Path], out: str | Path, weights: Sequence[float] | None = None) -> Path:
    """Write the average of checkpoints, or of LoRA adapters, into a folder, and return the folder.

    Args:
        folders: at least two, of one architecture with one tokenizer and one head; all checkpoints, or all adapters.
        out: where to; it must not exist, or be empty.
        weights: one for each folder, which need not sum to 1: they are divided by their sum.  None for equal ones.

    Raises:
        ValueError: folders differ in more than weights (the first difference is named), or an argument is out of range.
    """
    homes = [Path(folder).expanduser() for folder in folders]
    if len(homes) < 2:
        raise ValueError(f"average_checkpoints was given {len(homes)} folders; give at least two")
    shares = _shares(weights, len(homes))
    target = Path(out).expanduser()
    if target.exists() and any(target.iterdir()):
        raise ValueError(f"{str(target)!r} is not empty; give a new folder")
    adapters = [(home / ADAPTER).is_file() for home in homes]
    if any(adapters) != all(adapters):
        odd = homes[adapters.index(not adapters[0])]
        raise ValueError(f"{str(homes[0])!r} and {str(odd)!r} are a checkpoint and an adapter; merge the adapter first")
    write = average_adapters if all(adapters) else _average_models
    draft = target.with_name(f".{target.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        write(homes, draft, shares)
        if target.exists():
            target.rmdir()
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def _shares(weights: Sequence[float] | None, count: int) -> list[float]:
    given = [1.0] * count if weights is None else [float(weight) for weight in weights]
    if len(given) != count:
        raise ValueError(f"average_checkpoints was given {len(given)} weights for {count} folders; give one for each")
    total = math.fsum(given)
    if not all(map(math.isfinite, given)) or min(given) < 0 or total <= 0:
        raise ValueError(f"the weights are {given}; they must be finite and not negative, with a positive sum")
    return [weight / total for weight in given]


def _average_models(homes: Sequence[Path], out: Path, shares: Sequence[float]) -> None:
    members = [CheckpointFiles.of(str(home)) for home in homes]
    first = members[0]
    if not first.shapes:
        raise ValueError(f"{str(first.folder)!r} holds no safetensors files; save the model again in that format")
    for member in members:
        _no_name_twice(member)
    for other in members[1:]:
        _same_model(first, other)
    for path in sorted(first.folder.glob("*.safetensors")):
        _write_average(path, members, shares, out / path.name)
    _copy_files(first.folder, out, FILE)
    if first.notes is not None:
        limits = [limit for one in members if one.notes is not None and (limit := one.notes.max_length) is not None]
        facts = {"averaged": [folder_digest(home) for home in homes], "weights": list(shares)}
        # The average has other rewards than its members; their mean and deviation have to be measured anew.
        notes = replace(first.notes, normalizer=None, max_length=min(limits, default=None), trained=facts)
        notes.write(out)


def _no_name_twice(files: CheckpointFiles) -> None:
    """Raise `ValueError` if two files hold a tensor of one name: what was adopted has the old head beside the new."""
    tensors = sum(len(header_of(path)[0]) for path in files.folder.glob("*.safetensors"))
    if tensors != len(files.shapes):
        raise ValueError(f"two files in {str(files.folder)!r} hold a tensor of one name; average the original folders")


def _same_model(first: CheckpointFiles, other: CheckpointFiles) -> None:
    """Raise `ValueError` naming the first thing in which two checkpoints differ, weights aside."""
    pair = f"{str(first.folder)!r} and {str(other.folder)!r}"
    for key in sorted({*first.config, *other.config} - set(_FREE_KEYS)):
        if first.config.get(key) != other.config.get(key):
            raise _differ(first.folder, other.folder, "config.json", key, first.config.get(key), other.config.get(key))
    for name in sorted({*first.shapes, *other.shapes}):
        if first.shapes.get(name) != other.shapes.get(name):
            raise ValueError(
                f"{pair} cannot be averaged: the tensor {name} has the shape {first.shapes.get(name)} in one and "
                f"{other.shapes.get(name)} in the other"
            )
    for name in _TOKENIZER:
        if _bytes(first.folder / name) != _bytes(other.folder / name):
            raise ValueError(f"{pair} cannot be averaged: they have different tokenizers ({name} differs)")
    ones, others = first.notes, other.notes
    if (ones is None) != (others is None):
        raise ValueError(f"{pair} cannot be averaged: only one has {FILE}")
    if ones is not None and others is not None:
        for field in ("what", "head", "labels", "marker", "template", "reasoning"):
            mine, its = getattr(ones, field), getattr(others, field)
            if mine != its and None not in (mine, its):
                raise _differ(first.folder, other.folder, FILE, field, mine, its)


def _write_average(path: Path, members: Sequence[CheckpointFiles], shares: Sequence[float], out: Path) -> None:
    """Write one safetensors file, with the table of the first member's and averaged data, a tensor at a time."""
    table, begin = header_of(path)
    with path.open("rb") as given, out.open("wb") as file:
        file.write(given.read(begin))
        for name, entry in table.items():
            floats = entry["dtype"] in _FLOATS
            data = _data(_averaged(name, members, shares) if floats else _shared(name, members))
            start, end = entry["data_offsets"]
            if len(data) != end - start or file.tell() != begin + start:
                raise ValueError(f"{str(path)!r} is not a safetensors file as they are written: {name} is out of place")
            file.write(data)


def _averaged(name: str, members: Sequence[CheckpointFiles], shares: Sequence[float]) -> torch.Tensor:
    """The weighted sum of a tensor in 32 bits (64 where it has them), in the type of the first."""
    import torch

    first = _tensor(name, members[0])
    total = torch.zeros(first.shape, dtype=torch.float64 if first.dtype == torch.float64 else torch.float32)
    for member, share in zip(members, shares, strict=True):
        value = _tensor(name, member)
        if not bool(torch.isfinite(value).all()):
            raise ValueError(f"the tensor {name} in {str(member.folder)!r} holds numbers that are not finite")
        total.add_(value.to(total.dtype), alpha=share)
    return total.to(first.dtype)


def _shared(name: str, members: Sequence[CheckpointFiles]) -> torch.Tensor:
    """A tensor of whole numbers, which must be the same in all."""
    import torch

    first = _tensor(name, members[0])
    for member in members[1:]:
        if not torch.equal(first, _tensor(name, member)):
            raise ValueError(f"the tensor {name} holds whole numbers, and they differ in {str(member.folder)!r}")
    return first


def _tensor(name: str, member: CheckpointFiles) -> torch.Tensor:
    from safetensors import safe_open

    with safe_open(member.folder / member.files[name], framework="pt") as held:
        value: torch.Tensor = held.get_tensor(name)
    return value


def _data(tensor: torch.Tensor) -> memoryview:
    """The bytes of a tensor, not copied."""
    import torch

    array: Any = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
    return memoryview(array)


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
