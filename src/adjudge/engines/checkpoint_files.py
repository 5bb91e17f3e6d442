"""What lies in a model's folder, read without loading the model: configuration, notes, names and shapes of tensors.

Only safetensors files are looked into: their head is JSON, and reading it runs nothing.

Not covered: weights in PyTorch's pickle format (`pytorch_model.bin`), whose tensors stay unknown.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.engines.checkpoint_notes import CheckpointNotes
from adjudge.extras import install_hint

if TYPE_CHECKING:
    import torch


_LONGEST_HEAD = 100 * 2**20  # of a safetensors file, as its own library limits it

_INDEX = "model.safetensors.index.json"

# What an engine needs of a published model; the weights come when they are needed.
_SMALL = ("*.json", "*.jinja", "*.model", "*.txt", "*.tiktoken")
_WEIGHTS = "*.safetensors"


@dataclass(frozen=True, kw_only=True)
class CheckpointFiles:
    """A model's folder, its `config.json`, and the notes that adjudge wrote beside the weights, if it did.

    Attributes:
        shapes: of each tensor in its safetensors files; () where only the name is known so far.
        files: which file each tensor is in.
    """

    folder: Path
    config: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]
    files: Mapping[str, str]
    notes: CheckpointNotes | None

    @classmethod
    def of(cls, model: str, revision: str = "", *, weights: bool = False) -> CheckpointFiles:
        """Return the files of a folder, or of a name on the hub, which is downloaded unless it was before.

        Args:
            model: folder or name.
            revision: branch, tag or commit on the hub.
            weights: whether the weights are downloaded as well.

        Raises:
            ValueError: there is no such model, or a file of it is damaged.
        """
        folder = Path(model).expanduser()
        if not folder.is_dir():
            folder = _downloaded(model, revision, weights=weights)
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"the model {model!r} has no config.json that can be read ({error})") from error
        files = _index(folder)
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(files, ())
        for path in sorted(folder.glob("*.safetensors")):
            for name, entry in header_of(path)[0].items():
                shapes[name], files[name] = tuple(entry["shape"]), path.name
        return cls(folder=folder, config=config, shapes=shapes, files=files, notes=CheckpointNotes.read(folder))

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the model's classes in its configuration."""
        return tuple(map(str, self.config.get("architectures") or ()))

    @property
    def seen(self) -> str:
        """The tensors beside the body, for messages."""
        return ", ".join(f"{name} {list(shape)}" for name, shape in sorted(self.heads.items())[:8]) or "no tensor"

    @property
    def heads(self) -> dict[str, tuple[int, ...]]:
        """The tensors that are not of the body: the body is what most tensors' names begin with."""
        begins = Counter(name.partition(".")[0] for name in self.shapes)
        body = begins.most_common(1)[0][0] if begins else ""
        return {name: shape for name, shape in self.shapes.items() if name.partition(".")[0] != body}

    @property
    def width(self) -> int:
        """The width of the body's hidden states.

        Raises:
            ValueError: the configuration does not tell.
        """
        width = self.config.get("hidden_size")
        if not isinstance(width, int):
            raise ValueError(f"the config.json in {str(self.folder)!r} has no hidden_size")
        return width

    def tensors(self, names: Sequence[str]) -> dict[str, torch.Tensor]:
        """Return tensors by name, in 32 bits.

        Raises:
            ValueError: one is not there.
        """
        from safetensors import safe_open

        tensors = {}
        for name in names:
            if name not in self.files:
                raise ValueError(f"the checkpoint {str(self.folder)!r} has no tensor {name!r}")
            with safe_open(self.folder / self.files[name], framework="pt") as held:
                tensors[name] = held.get_tensor(name).float()
        return tensors


def header_of(path: Path) -> tuple[dict[str, Any], int]:
    """Return the table of a safetensors file, in the order of its data, and the place where the data begins.

    Raises:
        ValueError: the file is damaged.
    """
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > _LONGEST_HEAD:
                raise ValueError(f"its head would have {length} bytes")
            table = json.loads(file.read(length))
    except (OSError, ValueError, struct.error) as error:
        raise ValueError(f"{str(path)!r} is not a safetensors file that can be read: {error}") from error
    table.pop("__metadata__", None)
    return dict(sorted(table.items(), key=lambda item: item[1]["data_offsets"])), 8 + length


def _index(folder: Path) -> dict[str, str]:
    """The file of each tensor, as the index of a checkpoint in several files has it."""
    path = folder / _INDEX
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8"))["weight_map"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{str(path)!r} is not an index of tensors: {error!r}") from error


def _downloaded(model: str, revision: str, *, weights: bool) -> Path:
    try:
        import huggingface_hub
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    except ImportError as error:
        raise ValueError(
            f"{model!r} is not a folder here, and fetching it from the hub needs huggingface_hub ({error}); "
            f"install it with: {install_hint('models')}"
        ) from error
    try:
        wanted: list[str] = [*_SMALL, _WEIGHTS] if weights else list(_SMALL)
        return Path(huggingface_hub.snapshot_download(model, revision=revision or None, allow_patterns=wanted))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        problem = str(error).strip().partition("\n")[0][:200]
        raise ValueError(
            f"the model {model!r} is not a folder here and cannot be had from the hub: {problem}"
        ) from error
