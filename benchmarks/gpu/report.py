"""What a part of the measurement says: numbers, each with the bound it must keep if it has one; and their page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Number:
    """One number.

    Attributes:
        name: what it is.
        value: as measured; NaN where it could not be.
        unit: such as "tokens/s"; "" for a ratio.
        at_least: its lower bound, if it has one.
        at_most: its upper bound, if it has one.
    """

    name: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def kept(self) -> bool | None:
        """Whether it keeps its bound; None where there is none."""
        if self.at_least is None and self.at_most is None:
            return None
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        return low <= self.value <= high


@dataclass(kw_only=True)
class Part:
    """What a part has measured.

    Attributes:
        name: of the part.
        seconds: that it took.
        numbers: in the order they were measured.
        notes: sentences: what was left out and why, and which way something was computed.
        error: what ended it; "" if nothing did.
    """

    name: str
    seconds: float = 0.0
    numbers: list[Number] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: str = ""

    def add(
        self, name: str, value: float, unit: str = "", *, at_least: float | None = None, at_most: float | None = None
    ) -> None:
        """Take a number down, and say it at once: a part that is killed later leaves what it had in the log."""
        number = Number(name=name, value=value, unit=unit, at_least=at_least, at_most=at_most)
        self.numbers.append(number)
        print(f"{self.name}: {_line(number)}", flush=True)

    def note(self, sentence: str) -> None:
        """Take a sentence down."""
        self.notes.append(sentence)
        print(f"{self.name}: {sentence}", flush=True)

    @property
    def failed(self) -> bool:
        """Whether it ended early, or a number does not keep its bound."""
        return bool(self.error) or any(number.kept is False for number in self.numbers)

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        numbers = [{**asdict(number), "kept": number.kept} for number in self.numbers]
        return {**asdict(self), "numbers": numbers, "failed": self.failed}


def write(folder: Path, parts: Sequence[Mapping[str, Any]]) -> None:
    """Write report.json and report.md."""
    (folder / "report.json").write_text(json.dumps(parts, indent=1) + "\n", encoding="utf-8")
    lines = ["# Measured on a GPU", ""]
    for part in parts:
        lines += [f"## {part['name']}, {part['seconds']:.0f} s", ""]
        if part["error"]:
            lines += ["It ended early:", "", "```", part["error"].strip(), "```", ""]
        if part["numbers"]:
            lines += ["| number | measured | bound | |", "| --- | ---: | ---: | --- |"]
            lines += [_row(number) for number in part["numbers"]]
            lines.append("")
        lines += [f"- {note}" for note in part["notes"]] + [""] * bool(part["notes"])
    (folder / "report.md").write_text("\n".join(lines), encoding="utf-8")


def _row(number: Mapping[str, Any]) -> str:
    bounds = [
        f"{sign} {number[key]:g}" for key, sign in (("at_least", "≥"), ("at_most", "≤")) if number[key] is not None
    ]
    kept = {None: "", True: "kept", False: "**not kept**"}[number["kept"]]
    return f"| {number['name']} | {number['value']:,.4g} {number['unit']} | {' '.join(bounds)} | {kept} |"


def _line(number: Number) -> str:
    verdict = {None: "", True: "", False: "  NOT KEPT"}[number.kept]
    bounds = "".join(
        f" ({sign} {bound:g})"
        for sign, bound in (("at least", number.at_least), ("at most", number.at_most))
        if bound is not None
    )
    return f"{number.name}: {number.value:,.4g} {number.unit}{bounds}{verdict}"
