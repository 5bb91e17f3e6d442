"""What is known of the model behind an engine before it is loaded: which outputs it has and what they mean.

A published checkpoint with a head of its own becomes a folder that our engines read, without copying its weights: links
to the original files, a configuration without the head, the head in `adjudge_head.safetensors` and the notes in
`adjudge.json`.  It is made once, beside other such folders, under a name that stands for the contents of the original;
such folders are small, and may be deleted at any time.

Not covered: models behind a server, of which nothing is known here; say what their outputs are with `head`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from adjudge.engines.checkpoint_files import CheckpointFiles
from adjudge.engines.checkpoint_notes import HEAD_FILE, CheckpointNotes, Normalizer, What
from adjudge.engines.head_config import HeadConfig
from adjudge.engines.interface import Engine
from adjudge.engines.loading import bind_engines, engine_of
from adjudge.engines.model_digest import folder_digest
from adjudge.engines.published_heads import Family, family_of
from adjudge.engines.smollm2 import cache_folder, make_folder
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_weights import HEAD_TENSORS, adapter_outputs
from adjudge.reward_models.scalar.chat import Reasoning

_VERSION = "1"  # goes up whenever the same checkpoint would be read in another way
_LINKED = (".safetensors", ".json", ".jinja", ".model", ".txt", ".tiktoken")
_HEAD_KEYS = ("architectures", "auto_map", "num_labels", "id2label", "label2id", "problem_type")


def adopted(files: CheckpointFiles, family: Family) -> Path:
    """Return a folder that engines read for a checkpoint with a head of its family's.

    The folder is made under `$ADJUDGE_CACHE`, else `$XDG_CACHE_HOME/adjudge`, else `~/.cache/adjudge`.

    Raises:
        ValueError: the head is not as its family has it.
    """
    named = f"{_VERSION} {family.name} {files.folder.resolve()} {folder_digest(files.folder)}"
    home = cache_folder() / "checkpoints" / f"{family.name}-{hashlib.sha256(named.encode()).hexdigest()[:16]}"
    if home.is_dir() and all(entry.exists() for entry in home.iterdir()):
        return home
    shutil.rmtree(home, ignore_errors=True)  # its links lead nowhere any more
    make_folder(home, lambda draft: adopt(files, family, draft))
    return home


def adopt(files: CheckpointFiles, family: Family, out: Path) -> None:
    """Write such a folder; `out` must be empty, and the original must stay where it is."""
    from safetensors.torch import save_file

    assert family.head is not None  # else engines read the checkpoint as it is
    head = family.head(files)
    out.mkdir(parents=True, exist_ok=True)
    for entry in sorted(files.folder.iterdir()):
        if entry.is_file() and entry.name.endswith(_LINKED) and entry.name != "config.json":
            (out / entry.name).symlink_to(entry.resolve())
    config = {key: value for key, value in files.config.items() if key not in _HEAD_KEYS}
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_file({name: value.contiguous() for name, value in head.weights.items()}, out / HEAD_FILE)
    family.notes(head, files.folder.name).write(out)


class OneModel:
    """What scorers of one model share, which is given as `model`, a folder or a name, or as `engine`, its spec."""

    name: ClassVar[str]
    model: str
    engine: Any

    def check_model(self) -> None:
        """Raise `ValueError` unless one of the two is given, and is a spec."""
        if bool(self.model) == (self.engine is not None):
            raise ValueError(
                f"{self.name} option model={self.model!r} and engine={self.engine!r}; give one of the two, such as "
                "model: FOLDER, or engine: transformers:MODEL"
            )
        self.resolved()
        if not self.model:
            bind_engines(self, "engine")

    def resolved(self) -> Engine:
        """Return the engine; nothing is loaded."""
        return engine_of({"transformers": {"model": self.model}} if self.model else self.engine)


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A reward model and what is known of it.

    Attributes:
        family: it was recognised as; "" if adjudge trained it, or nothing is known.
        head: what its outputs are; None if nothing is known.
        labels: names of the outputs; () if they have none.
        normalizer: mean and standard deviation of its rewards, where they are stored.
        reasoning: whether it was trained to read reasoning before an answer; None if nothing is known.
    """

    engine: Engine
    family: str = ""
    head: HeadConfig | None = None
    labels: tuple[str, ...] = ()
    normalizer: Normalizer | None = None
    reasoning: Reasoning | None = None

    @classmethod
    def of(cls, engine: Engine, family: str = "") -> Checkpoint:
        """Return what is known of an engine's model, of a family or one to be recognised; no weights are loaded.

        Raises:
            ValueError: there is no such model, its head is not known, or it is not a model of whole responses.
        """
        config: Any = getattr(engine, "config", None)
        if engine.name not in ("transformers", "vllm") or not hasattr(config, "model"):
            if family:
                raise ValueError(
                    f"family is {family!r}, and the engine {engine.name!r} does not show its model; families are for "
                    "models in this process"
                )
            return cls(engine=engine)
        files = CheckpointFiles.of(config.model, config.revision)
        if files.notes is None:
            return _foreign(engine, config, files, family)
        if family:
            raise ValueError(f"family is {family!r}, and {config.model!r} says itself what its head is; leave it out")
        _check(files, files.notes)
        if engine.name == "vllm" and (files.folder / HEAD_FILE).is_file():
            raise ValueError(
                f"{config.model!r} has a head of the kind {files.notes.head.kind!r} beside its body, which vLLM does "
                "not know; give it to the engine transformers"
            )
        notes = files.notes
        return cls(
            engine=engine,
            head=notes.head,
            labels=notes.labels,
            normalizer=notes.normalizer,
            reasoning=notes.reasoning,
        )


def _foreign(engine: Engine, config: Any, files: CheckpointFiles, name: str) -> Checkpoint:
    """A checkpoint that others published."""
    outputs = adapter_outputs(config) if isinstance(config, TransformersConfig) else 0
    family = family_of(files, name or ("plain" if outputs else ""))
    _check_what(files, family.what)
    if family.head is None:
        head = HeadConfig(outputs=outputs or _outputs(files))
        return Checkpoint(engine=engine, family=family.name, head=head, labels=_labels(files.config, head.outputs))
    if engine.name != "transformers":
        raise ValueError(
            f"{config.model!r} is of the family {family.name!r}, whose head vLLM does not know; give it to the engine "
            "transformers"
        )
    folder = adopted(CheckpointFiles.of(config.model, config.revision, weights=True), family)
    notes = CheckpointNotes.read(folder)
    if notes is None:
        raise RuntimeError(f"{str(folder)!r} was made without notes")
    ours = engine_of(replace(config, model=str(folder), revision=""))
    return Checkpoint(engine=ours, family=family.name, head=notes.head, labels=notes.labels)


def _check(files: CheckpointFiles, notes: CheckpointNotes) -> None:
    _check_what(files, notes.what)
    notes.check_template(files.folder)


def _check_what(files: CheckpointFiles, what: What) -> None:
    if what != "scalar":
        kind = {"process": "scores the steps of a response", "critique": "writes a critique first"}[what]
        raise ValueError(
            f"{str(files.folder)!r} {kind}; this scorer reads models that score a whole response (what='scalar')"
        )


def _outputs(files: CheckpointFiles) -> int:
    for name in HEAD_TENSORS:
        if files.shapes.get(name):
            return files.shapes[name][0]
    named = files.config.get("id2label")
    return len(named) if isinstance(named, Mapping) and named else 2  # what transformers takes where nothing is said


def _labels(config: Mapping[str, Any], outputs: int) -> tuple[str, ...]:
    """The names in a configuration, unless they are the ones that transformers makes up."""
    named = config.get("id2label")
    if not isinstance(named, Mapping) or len(named) != outputs:
        return ()
    labels = tuple(str(named[key]) for key in sorted(named, key=int))
    made_up = all(label == f"LABEL_{place}" for place, label in enumerate(labels))
    return () if made_up or len(set(labels)) != outputs else labels
