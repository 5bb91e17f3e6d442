"""How alike two texts are, from 0 to 1: by their words, by their letters, or by a model's vectors.

"words" is the cosine of counts of words and of pairs of neighbouring words, so the order of words matters: "Ada beat
Bob" and "Bob beat Ada" are 0.6 alike.  "letters" is the cosine of counts of two to four letters within words, which
also sees inflected forms and scripts without blanks.  Both are about wording: "is brief" and "does not ramble" have
little in common.  A model of embeddings knows better; RLBFF used Qwen3-Embedding-8B.

What two texts get does not depend on any other text, so neither order nor company changes a decision.

A text's vector is the mean of the last hidden states of its tokens, or the state of its last token where the folder
says so (`1_Pooling/config.json` with `pooling_mode_lasttoken`, as Qwen3-Embedding has); its length is 1.  One text at
a time costs speed, and keeps what a text gets from depending on its neighbours.  Instructions that some models want
before a text, other ways of pooling, and the pooling file of a hub name (download the folder) are not read.

Not covered: choosing a threshold; 0.8 of letters and 0.8 of a model's vectors are different things.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import re
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from adjudge.engines.model_digest import folder_digest, is_folder
from adjudge.extras import need

Matrix: TypeAlias = list[list[float]]

_WORD = re.compile(r"\w+")


class Likeness(Protocol):
    """Compares texts."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever two texts could be found more or less alike."""
        ...

    async def matrix(self, texts: Sequence[str]) -> Matrix:
        """Return the likeness of each text with each, symmetric, 1 on the diagonal."""
        ...


class CountLikeness:
    """Cosines of counts.

    Args:
        of: "words" or "letters".
    """

    def __init__(self, of: str) -> None:
        self._counts = {"words": word_counts, "letters": letter_counts}[of]
        self.fingerprint = f"{of}:1"

    async def matrix(self, texts: Sequence[str]) -> Matrix:
        """Return the cosines; texts that hold no word are like their equals alone."""
        counts = [self._counts(text) for text in texts]
        lengths = [sum(n * n for n in one.values()) for one in counts]
        found = [[1.0] * len(texts) for _ in texts]
        for a, one in enumerate(counts):
            for b in range(a):
                if texts[a] != texts[b]:
                    found[a][b] = found[b][a] = _cosine(one, counts[b], lengths[a] * lengths[b])
        return found


def word_counts(text: str) -> Counter[str]:
    """Return how often each word and each pair of neighbouring words is in a text, in small letters."""
    words = _WORD.findall(text.casefold())
    return Counter(words) + Counter(f"{one} {two}" for one, two in itertools.pairwise(words))


def letter_counts(text: str) -> Counter[str]:
    """Return how often each run of two to four letters is in the words of a text, with a blank around each word."""
    return Counter(
        word[at : at + n]
        for word in (f" {found} " for found in _WORD.findall(text.casefold()))
        for n in (2, 3, 4)
        for at in range(len(word) - n + 1)
    )


def likeness_of(spec: str, flag: str = "--likeness") -> Likeness:
    """Return what compares texts: "words", "letters", or "transformers:MODEL", a folder or name of an embedding model.

    Raises:
        ValueError: it is none of these.
    """
    if spec in ("words", "letters"):
        return CountLikeness(spec)
    kind, _, model = spec.partition(":")
    if kind == "transformers" and model.strip():
        return VectorLikeness(model.strip())
    raise ValueError(f"{flag} is {spec!r}; it must be words, letters, or transformers:MODEL with a model of embeddings")


class VectorLikeness:
    """Cosines of a model's vectors, no less than 0; the model is loaded when first used.

    Args:
        model: folder or name of the model.
    """

    def __init__(self, model: str) -> None:
        self._vectors = TextVectors(model)

    @property
    def fingerprint(self) -> str:
        """Name and weights of the model."""
        return self._vectors.fingerprint

    async def matrix(self, texts: Sequence[str]) -> Matrix:
        """Return the cosines."""
        vectors = await asyncio.to_thread(self._vectors.of, list(texts))
        return [
            [
                1.0 if texts[a] == texts[b] else max(0.0, math.fsum(x * y for x, y in zip(one, two, strict=True)))
                for b, two in enumerate(vectors)
            ]
            for a, one in enumerate(vectors)
        ]


def _cosine(one: Counter[str], two: Counter[str], lengths: int) -> float:
    if not lengths:
        return 0.0
    few, many = (one, two) if len(one) <= len(two) else (two, one)
    return sum(n * many[key] for key, n in few.items() if key in many) / math.sqrt(lengths)


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
