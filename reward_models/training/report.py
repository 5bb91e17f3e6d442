"""What a training leaves in its folder: a report for programs, a card for people, and the scorer that reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from adjudge.engines.checkpoint_notes import HEAD_FILE, CheckpointNotes
from adjudge.io.cards.card import card_cell, card_rows
from adjudge.statistics.intervals import Interval

Kind = Literal["scalar", "process", "critique", "ngrams", "policy"]

Measures = tuple[Mapping[str, Interval], Mapping[str, Interval]]
"""What a model reaches, and what trivial rules reach."""

FILE = "report.json"

_MEANINGS: Mapping[str, str] = {
    "accuracy": "the better response gets the higher reward; 95 % interval over prompts",
    "accuracy_wilson": "the same with Wilson's interval, which takes the rows for independent",
    "over_longer_wins": 'accuracy less that of "longer wins" on the same pairs',
    "equal_rewards": "share of pairs with one reward for both; counted as wrong",
    "brier": "mean squared error of σ(difference)",
    "ece": "calibration error of σ(difference)",
    "length_correlation": "of differences of rewards and of lengths",
    "length_rank_correlation": "the same of ranks",
    "best_first": "the best of a list gets the highest reward",
}


@dataclass(frozen=True, kw_only=True)
class TrainingReport:
    """What a training did.

    Attributes:
        what: the kind of model.
        model: what it was made from.
        output: the folder it was saved to.
        steps: optimizer steps.
        resumed: the step at which it was resumed; 0 if it was not.
        seconds: that this process trained.
        data: counts and digests: rows read, bad rows and dropped ones by reason, examples trained on and held out.
        metrics: measured on held-out examples.
        baselines: what trivial rules and small models reach on the same examples.
        config: the options, as plain data.
        warnings: what people should know, one sentence each.
        history: lines of the training's log.
        sections: further text of the model card, by heading.
    """

    what: Kind
    model: str
    output: str
    steps: int = 0
    resumed: int = 0
    seconds: float = 0.0
    data: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Interval] = field(default_factory=dict)
    baselines: Mapping[str, Interval] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    history: tuple[Mapping[str, float], ...] = ()
    sections: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        record = {item.name: getattr(self, item.name) for item in fields(self)}
        for name in ("metrics", "baselines"):
            record[name] = {key: measure.to_dict() for key, measure in record[name].items()}
        record["warnings"], record["history"] = list(self.warnings), [dict(line) for line in self.history]
        return record

    @classmethod
    def read(cls, folder: Path) -> TrainingReport | None:
        """Return the report that a finished training left in a folder; None if there is none."""
        path = folder / FILE
        if not path.is_file():
            return None
        record = json.loads(path.read_text(encoding="utf-8"))
        for name in ("metrics", "baselines"):
            record[name] = {key: Interval(**measure) for key, measure in record[name].items()}
        return cls(**{**record, "warnings": tuple(record["warnings"]), "history": tuple(record["history"])})

    def write(self, folder: Path) -> None:
        """Write the model card (README.md), and then report.json, into a folder: a folder with a report is whole."""
        (folder / "README.md").write_text(self.card(), encoding="utf-8")
        draft = folder / f"{FILE}.part"
        draft.write_text(json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
        draft.replace(folder / FILE)

    def facts(self) -> dict[str, Any]:
        """Return the plain facts that belong into a checkpoint's notes."""
        return {
            "model": self.model,
            "data": dict(self.data),
            "steps": self.steps,
            "loss": self.config.get("loss"),
            "seed": self.config.get("seed"),
            "held_out": {name: measure.to_dict() for name, measure in self.metrics.items()},
        }

    def card(self) -> str:
        """Return the model card as Markdown."""
        lines = ["---", "tags: [reward-model, adjudge]", "---", "", f"# {Path(self.output).name}", ""]
        lines += [
            f"A {self.what} reward model, trained from {card_cell(self.model)} by adjudge in {self.steps} steps.",
            "",
        ]
        if self.metrics:
            lines += ["## On held-out prompts", "", "| | value | rows | |", "|---|---|---|---|"]
            lines += [_measured(name, measure, _MEANINGS.get(name, "")) for name, measure in self.metrics.items()]
            lines += [_measured(f"baseline: {name}", measure, "") for name, measure in self.baselines.items()]
            lines += [""]
        lines += ["## Data", "", "| | |", "|---|---|"]
        lines += [f"| {card_cell(name)} | {card_cell(value)} |" for name, value in card_rows(self.data)]
        lines += ["", "## Options", "", "| | |", "|---|---|"]
        lines += [f"| {card_cell(name)} | {card_cell(value)} |" for name, value in card_rows(self.config)]
        for heading, text in self.sections.items():
            lines += ["", f"## {heading}", "", text]
        if self.warnings:
            lines += ["", "## Mind", "", *(f"- {card_cell(text)}" for text in self.warnings)]
        return "\n".join(lines) + "\n"


def _measured(name: str, measure: Interval, meaning: str) -> str:
    return f"| {card_cell(name)} | {measure} | {measure.n} | {meaning} |"


REFERENCE = "reference"
"""The sub-folder with the model that an implicit process model was trained from, where that was new."""

_LINEAR: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "preference_model.json": ("preference_model", {}),
    "step_model.json": ("step_model", {"split": "line"}),  # as steps are given in most data
}
_STEP_FORMATS = {"Qwen2ForProcessRewardModel": "qwen_math_prm", "Qwen2ForPrmModel": "skywork"}
_NEEDED = (
    "a folder is a scorer if `adjudge train rm` or `prm` wrote it, or if it has the config.json of a sequence or token "
    "classifier"
)

_SCALE = """Raw rewards have no fixed zero and no unit: compare answers to one prompt, or set `normalize`."""

_PLAIN = """The folder is an ordinary `{architecture}`, so other programs load it as well.  They must render a chat
as finished (no generation prompt), tokenize it without further special tokens, and read raw numbers: with vLLM
`LLM(folder, runner="pooling", convert="classify")` and `use_activation=False`."""

_OWN = """Other programs load the body alone: the head is in `adjudge_head.safetensors`, and `adjudge.json` says what
its numbers mean."""


def scorer_in(folder: str | Path) -> dict[str, Any]:
    """Return the spec of the scorer that reads the model in a folder; nothing is loaded.

    Raises:
        ValueError: there is no reward model in it; the message says what is there.
    """
    home = Path(folder)
    place, engine = str(folder), f"transformers:{folder}"
    for notes_file, (scorer, options) in _LINEAR.items():
        if (home / notes_file).is_file():
            return {scorer: {"model": place, **options}}
    config, report = _record(home / "config.json"), _record(home / FILE)
    if config is None and (adapter := _record(home / "adapter_config.json")) is not None:
        raise ValueError(
            f"the folder {place!r} holds an adapter of {adapter.get('base_model_name_or_path')!r}, and its head is not "
            "told from that alone; merge it into the model (peft: merge_and_unload, then save_pretrained), or train "
            "with adjudge, which merges"
        )
    if config is None:
        raise ValueError(f"the folder {place!r} has no config.json but {_listed(home)}; {_NEEDED}")
    notes = CheckpointNotes.read(home)
    what = notes.what if notes is not None else ""
    trained = (report or {}).get("config", {})
    if trained.get("objective") == "implicit":
        start = home / REFERENCE
        return implicit_scorer(place, start if start.is_dir() else trained["model"]["name"], trained)
    classes = [str(name) for name in config.get("architectures") or ()]
    if what == "critique":
        return {"critique_reward": {"model": place}}
    if what == "process":
        return {"process_reward": {"engine": engine}}
    for name in classes:
        form = _STEP_FORMATS.get(name, "trl" if name.endswith("ForTokenClassification") else "")
        if form:
            return {"process_reward": {"engine": engine, "format": form}}
    if what == "scalar" or any("SequenceClassification" in name or "ForRewardModel" in name for name in classes):
        return {"reward_model": {"model": place}}
    if any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in classes):
        raise ValueError(
            f"the folder {place!r} holds a language model ({classes[0]}), which writes answers and gives no reward; "
            f"{_NEEDED}. As a judge it is {{judge: {{engine: {json.dumps(engine)}, ...}}}}"
        )
    named = ", ".join(classes) or "no architecture"
    raise ValueError(
        f"the config.json in {place!r} names {named}; {_NEEDED}. Any other is named with its options, such as "
        f"{{process_reward: {{engine: {json.dumps(engine)}, format: ...}}}}"
    )


def implicit_scorer(folder: str | Path, reference: str | Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec for an implicit process model in a folder, with its reference and its training's options."""
    options = {
        "engine": f"transformers:{folder}",
        "reference_engine": f"transformers:{reference}",
        "beta": config["beta"],
        "chat": config["layout"]["chat"],
        "floor": -10.0,
    }
    return {"implicit_reward": options}


def use(scorer: Mapping[str, Any], *paragraphs: str) -> dict[str, str]:
    """Return the section of a model card that says how a model is used: the spec that reads it, and what else."""
    import yaml

    text = yaml.safe_dump(dict(scorer), sort_keys=False, allow_unicode=True)
    return {"Use": "\n\n".join([f"```yaml\n{text}```", *paragraphs])}


def scalar_use(folder: Path) -> dict[str, str]:
    """Return the section of the card of a reward model of one number."""
    (architecture,) = (_record(folder / "config.json") or {}).get("architectures") or [""]
    plain = not (folder / HEAD_FILE).is_file()
    return use(scorer_in(folder), _SCALE, _PLAIN.replace("{architecture}", architecture) if plain else _OWN)


def _record(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error}") from error
    if not isinstance(record, dict):
        raise ValueError(f"{str(path)!r} holds {type(record).__name__}; it must be a JSON object")
    return record


def _listed(folder: Path) -> str:
    """What is in a folder, in a few words."""
    names = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir())
    shown = ", ".join(names[:5]) + ", ..." * (len(names) > 5)
    if any(name.startswith("checkpoint-") for name in names):
        return f"{shown} (a training that has not ended: name one of its checkpoints, or go on with --resume)"
    return shown or "nothing"
