"""What a run of policy training reached: data for programs, and the card of the policy for people."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from adjudge.card_tables import card_cell, card_rows

FILE = "report.json"
POLICY = "policy"
"""Folder of the trained policy in a run's folder."""

_FREE = (
    "output",
    "steps",
    "save_steps",
    "keep_checkpoints",
    "eval_steps",
    "watch",
    "logs",
)  # may change when a run goes on


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """What a run reached.

    Attributes:
        model: what the policy was made from.
        output: the folder of the run; the policy is in its folder `policy`.
        steps: that are done.
        resumed: the step it was resumed at; 0 if it was not.
        seconds: that the steps took, those before a resumption included.
        stopped: why it ended before its last step; "" if it did not.
        goes_on: whether it was stopped by its user, so that it can go on.
        rolled_back: the step whose policy was put back, 0 for the one before the first; None if none was.
        data: counts of rows and prompts, and of those that were left out, by reason.
        held_out: mean score on held-out prompts "before" and "after"; empty if there are none.
        last: the numbers of the last step.
        alarms: what the watch still found at the end, one sentence each.
        config: the options, as plain data.
        notes: what people should know, one sentence each.
    """

    model: str
    output: str
    steps: int
    resumed: int = 0
    seconds: float = 0.0
    stopped: str = ""
    goes_on: bool = False
    rolled_back: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    held_out: Mapping[str, float] = field(default_factory=dict)
    last: Mapping[str, float] = field(default_factory=dict)
    alarms: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def policy(self) -> Path:
        """The folder of the trained policy."""
        return Path(self.output).expanduser() / POLICY

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        record: dict[str, Any] = _plain(asdict(self))
        return {"what": "policy", **record}

    @classmethod
    def read(cls, folder: Path) -> RunReport | None:
        """Return the report that a run left in its folder; None if there is none."""
        path = folder / FILE
        if not path.is_file():
            return None
        try:
            record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            for name in ("alarms", "notes"):
                record[name] = tuple(record[name])
            return cls(**{name: value for name, value in record.items() if name != "what"})
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{str(path)!r} is no report of a run by rewards ({type(error).__name__}: {error}); name another output"
            ) from error

    def write(self, folder: Path) -> None:
        """Write the policy's card, and then the report: a folder with a report is whole."""
        (folder / POLICY / "README.md").write_text(self.card(), encoding="utf-8")
        draft = folder / f"{FILE}.part"
        draft.write_text(json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
        draft.replace(folder / FILE)

    def differing(self, config: Mapping[str, Any]) -> list[str]:
        """Return the options whose values would make another policy than this run's."""
        now, was = (
            {name: value for name, value in one.items() if name not in _FREE}
            for one in (_plain(dict(config)), _plain(dict(self.config)))
        )
        return sorted(name for name in {*now, *was} if now.get(name) != was.get(name))

    def card(self) -> str:
        """Return the model card as Markdown."""
        reward = self.config.get("reward", {})
        lines = [
            "---",
            "tags: [reinforcement-learning, adjudge]",
            "---",
            "",
            f"# {card_cell(Path(self.output).name)}",
            "",
        ]
        lines += [
            f"A policy, trained from {card_cell(self.model)} by adjudge in {self.steps} steps against the reward "
        ]
        lines[-1] += f"{card_cell(reward.get('scorer') or reward.get('server') or '')}."
        if self.stopped:
            lines += ["", f"The run ended early: {card_cell(self.stopped)}."]
        if self.rolled_back is not None:
            lines += [f"This is its policy of step {self.rolled_back}."]
        if self.held_out:
            lines += ["", "## On held-out prompts", "", "| mean score | |", "|---|---|"]
            lines += [f"| {card_cell(when)} training | {value:.4g} |" for when, value in self.held_out.items()]
        for heading, record in (("Data", self.data), ("Options", self.config)):
            lines += ["", f"## {heading}", "", "| | |", "|---|---|"]
            lines += [f"| {card_cell(name)} | {card_cell(value)} |" for name, value in card_rows(record)]
        lines += ["", "## Use", "", "An ordinary causal language model of transformers with its tokenizer."]
        if mind := (*self.alarms, *self.notes):
            lines += ["", "## Mind", "", *(f"- {card_cell(sentence)}" for sentence in mind)]
        return "\n".join(lines) + "\n"


def _plain(value: Any) -> Any:
    """Plain JSON data; numbers that JSON does not have (an option may be infinite) become texts."""

    def named(one: Any) -> Any:
        if isinstance(one, dict):
            return {name: named(inner) for name, inner in one.items()}
        if isinstance(one, list):
            return [named(inner) for inner in one]
        return str(one) if isinstance(one, float) and not math.isfinite(one) else one

    return named(json.loads(json.dumps(value, default=str)))
