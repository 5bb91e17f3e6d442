"""What a training did, measured on examples it never saw: data for programs, and a model card for people.

Not covered: the numbers themselves (`held_out`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from adjudge.card_tables import card_cell, card_rows
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
