"""What a checkpoint does not say about itself: `adjudge.json`, beside the weights of a reward model.

A folder of weights names its architecture, and nothing of how it was trained: where in a row the head reads, what its
numbers mean, which marker ends a step, how rewards are normalised, which chat template was used.  Programs that guess
give other numbers for the same checkpoint; here it is written down.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from adjudge.engines.head_config import HeadConfig
from adjudge.options import Options, Range

FILE = "adjudge.json"
HEAD_FILE = "adjudge_head.safetensors"
"""Holds a head that a plain Hugging Face checkpoint has no place for; programs other than adjudge do not read it."""

_TEMPLATE = "chat_template.jinja"

What = Literal["scalar", "process", "critique"]

_VERSION = 1
_REMEDY = "it was written by a newer adjudge, or by hand; update adjudge, or remove the file to read a plain checkpoint"


class Normalizer(NamedTuple):
    """Mean and standard deviation of the raw rewards of a reference set, in the units of the head."""

    mean: float
    std: float


@dataclass(frozen=True, kw_only=True)
class CheckpointNotes(Options, what="checkpoint note"):
    """What is known of a reward model beyond its weights.

    Attributes:
        what: "scalar" scores an answer, "process" the steps of one, "critique" writes a critique and then scores.
        head: the head and where it reads.
        normalizer: of the raw rewards; None if none was measured.
        labels: names of the outputs, as many as `head.outputs`; () if they have none.
        marker: the text that stands for "end of step" (process models); "" if steps are read at their last tokens.
        max_length: most tokens of a row in training; None if nothing limited them.
        template: `template_digest` of the chat template that was used; "" where it was trained on plain texts.
        reasoning: whether training left out reasoning before an answer ("strip") or read it ("keep"); None if unknown.
        trained: facts about the training for people and reports (data, loss, seed, held-out metrics), plain JSON data.
    """

    what: What
    head: HeadConfig
    normalizer: Normalizer | None = None
    labels: tuple[str, ...] = ()
    marker: str = ""
    max_length: Annotated[int, Range(ge=1, unit="tokens")] | None = None
    template: str = ""
    reasoning: Literal["strip", "keep"] | None = None
    trained: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.what == "process") != (self.head.pooling == "tokens"):
            raise ValueError(
                f"checkpoint note what={self.what!r} with a head that reads {self.head.pooling!r}; process models read "
                "'tokens', and no others do"
            )
        if self.labels and len(self.labels) != self.head.outputs:
            raise ValueError(f"checkpoint note labels={self.labels!r}; the head has {self.head.outputs} outputs")
        if self.normalizer is not None:
            mean, std = self.normalizer
            if not (math.isfinite(mean) and math.isfinite(std) and std > 0):
                raise ValueError(f"checkpoint note normalizer={(mean, std)!r}; it must be finite, with std above 0")
            object.__setattr__(self, "normalizer", Normalizer(float(mean), float(std)))

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> CheckpointNotes | None:
        """Return the notes of a model's folder; None if it has none.

        Raises:
            ValueError: the file is damaged, or of a version that is not known here.
        """
        path = Path(folder).expanduser() / FILE
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            return cls._of(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise ValueError(f"{str(path)!r} cannot be read ({problem[:300]}); {_REMEDY}") from error

    def check_template(self, folder: str | os.PathLike[str]) -> None:
        """Raise `ValueError` if the chat template in a model's folder is not the one that was trained with."""
        path = Path(folder).expanduser() / _TEMPLATE
        if not (self.template and path.is_file()):
            return
        with path.open(encoding="utf-8", newline="") as file:
            digest = template_digest(file.read())
        if digest != self.template:
            raise ValueError(
                f"{str(path)!r} is not the chat template that the model was trained with (digest {digest}, trained "
                f"{self.template}); put the old one back, or train again"
            )

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write the notes into a model's folder; a file that is there is replaced whole or not at all.

        Raises:
            ValueError: `trained` holds something that JSON cannot.
        """
        record = {"version": _VERSION, **asdict(self), "normalizer": self.normalizer and self.normalizer._asdict()}
        try:
            text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"checkpoint note trained={self.trained!r}; it must be plain JSON data ({error})"
            ) from error
        path = Path(folder).expanduser() / FILE
        draft = path.with_suffix(".json.part")
        draft.write_text(text + "\n", encoding="utf-8")
        draft.replace(path)

    @classmethod
    def _of(cls, record: Mapping[str, Any]) -> CheckpointNotes:
        if record["version"] != _VERSION:
            raise ValueError(f"version {record['version']!r} is not known; this adjudge knows version {_VERSION}")
        given = {name: value for name, value in record.items() if name != "version"}
        given["head"] = HeadConfig.of(given["head"])
        given["labels"] = tuple(given["labels"])
        if given["normalizer"] is not None:
            given["normalizer"] = Normalizer(**given["normalizer"])
        return cls(**given)


def template_digest(template: str | Mapping[str, str] | None) -> str:
    """Return what stands for a tokenizer's `chat_template` in the notes: 16 hex digits, "" for none."""
    if not template:
        return ""
    text = template if isinstance(template, str) else json.dumps(dict(template), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
