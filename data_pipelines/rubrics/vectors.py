"""Vectors of texts by a model of embeddings, loaded with Transformers and run one text at a time.

A text's vector is the mean of the last hidden states of its tokens, or the state of its last token where the folder
says so (`1_Pooling/config.json` with `pooling_mode_lasttoken`, as Qwen3-Embedding has); its length is 1.  One text at a
time costs speed, and keeps what a text gets from depending on its neighbours.

Not covered: instructions that some models want before a text, other ways of pooling, the pooling file of a model that
is named by its hub name (download the folder), and a GPU.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adjudge.engines.model_digest import folder_digest, is_folder
from adjudge.extras import need

_LONGEST = 512  # tokens; a principle or a fact is a sentence


class TextVectors:
    """A model of embeddings, loaded when first used.

    Args:
        model: a folder, or a name on the Hugging Face hub.
    """

    def __init__(self, model: str) -> None:
        self._name = model
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any, bool] | None = None

    @property
    def fingerprint(self) -> str:
        """The digest of a folder, or the name on the hub; and what is taken of the hidden states."""
        what = folder_digest(Path(self._name).expanduser()) if is_folder(self._name) else self._name
        return f"vectors:1:{what}:{'last' if _takes_last(self._name) else 'mean'}"

    def of(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector of length 1 for each text.

        Raises:
            ValueError: there is no such model, or Transformers is not installed.
        """
        with self._lock:
            found = {text: self._vector(text) for text in dict.fromkeys(texts)}
        return [found[text] for text in texts]

    def _vector(self, text: str) -> list[float]:
        import torch

        tokenizer, network, last = self._ready()
        row = tokenizer(text, return_tensors="pt", truncation=True, max_length=_LONGEST)
        with torch.inference_mode():
            states = network(input_ids=row["input_ids"], attention_mask=row["attention_mask"]).last_hidden_state[0]
        pooled = (states[-1] if last else states.mean(dim=0)).double()
        vector: list[float] = (pooled / pooled.norm().clamp_min(1e-12)).tolist()
        return vector

    def _ready(self) -> tuple[Any, Any, bool]:
        if self._loaded is None:
            transformers = need("transformers", "embedding texts with a model", "models")
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(self._name)
                network = transformers.AutoModel.from_pretrained(self._name).eval()
            except (OSError, ValueError) as error:
                raise ValueError(f"the model of embeddings {self._name!r} cannot be loaded: {error}") from error
            self._loaded = tokenizer, network, _takes_last(self._name)
        return self._loaded


def _takes_last(model: str) -> bool:
    pooling = Path(model).expanduser() / "1_Pooling" / "config.json"
    if not pooling.is_file():
        return False
    return bool(json.loads(pooling.read_text(encoding="utf-8")).get("pooling_mode_lasttoken"))
