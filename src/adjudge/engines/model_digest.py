"""What a model is, in 16 hex digits: the commit of a published one, the contents of a folder.

Small files count whole; of large ones the size, the first MiB (where the list of tensors stands) and 256 blocks spread
over the rest.  A model that was trained on in the same folder differs in nearly every weight, so it gets another
digest, and 15 GB are looked at in a fraction of a second.

One model at a time is made in a process.

While `transformers` makes a model it replaces `PreTrainedModel.tie_weights` and the default type of new tensors for
the whole process, and then puts back what it had found (5.19: `initialization.no_tie_weights`, `local_torch_dtype`).
Of two threads at it, the one that ends last puts back the other's replacement: from then on no model of the process has
its output embeddings tied to its input embeddings, and each scores with random ones, without an error.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adjudge.runtime.fork_lock import anew_in_child


class _Making:
    def __init__(self) -> None:
        self.begin_anew()
        anew_in_child(self)

    def begin_anew(self) -> None:
        """Forget who makes a model: a forked child has no such thread."""
        self.lock = threading.RLock()


_making = _Making()


@contextmanager
def model_lock() -> Iterator[None]:
    """Wait until no other thread makes a model, and keep others from it."""
    with _making.lock:
        yield


_WHOLE = 64 * 2**20
_HEAD = 2**20
_BLOCK = 2**14
_BLOCKS = 256

# What decides the outputs; notes, training states and pictures do not.
_ENDINGS = (".safetensors", ".bin", ".pt", ".json", ".jinja", ".model", ".txt", ".py", ".tiktoken")
_IGNORED = ("training_args.bin", "optimizer.pt", "scheduler.pt", "trainer_state.json", "requirements.txt")


def is_folder(model: str) -> bool:
    """Return whether a model's name is a folder on this machine."""
    return Path(model).expanduser().is_dir()


def folder_digest(folder: Path) -> str:
    """Return a digest of the files in a model's folder that decide its outputs.

    Raises:
        ValueError: there is no such file.
    """
    digest = hashlib.sha256()
    names = sorted(
        entry.name
        for entry in os.scandir(folder)
        if entry.is_file() and entry.name.endswith(_ENDINGS) and entry.name not in _IGNORED
    )
    if not names:
        raise ValueError(f"the folder {str(folder)!r} holds no model: no config.json and no weights")
    for name in names:
        size = (folder / name).stat().st_size
        digest.update(f"{name}\0{size}\0".encode())
        with (folder / name).open("rb") as file:
            if size <= _WHOLE:
                while block := file.read(_HEAD):
                    digest.update(block)
                continue
            digest.update(file.read(_HEAD))
            for at in range(_BLOCKS):
                file.seek(_HEAD + (size - _HEAD - _BLOCK) * at // (_BLOCKS - 1))
                digest.update(file.read(_BLOCK))
    return digest.hexdigest()[:16]
