"""What a run reached: the page of its curves and answers, the report for programs, and the card of the policy.

The page is one file that needs nothing else; whatever a model wrote is text on it and never markup.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from adjudge.io.cards.card import card_cell, card_rows, put
from adjudge.pages.curves import curves_drawing
from adjudge.pages.document import document
from adjudge.pages.figures import Curves, Series
from adjudge.pages.markup import NOTHING, Markup, Place, cell, element, joined, row, table
from adjudge.pages.scale import number
from adjudge.rl_integration.trainer.loop.run_logger import ALARMS, PART, REASON, SAMPLES, STEPS, read_journal

_POINTS = 200  # of a line; of more, neighbours are put together


def curves(title: str, columns: Sequence[str], lines: Sequence[Mapping[str, Any]]) -> Curves | None:
    """Return some columns of the journal's lines over steps; None if no step has any of them."""
    series = tuple(
        _thinned(name, [(float(line["step"]), float(line[name])) for line in lines if name in line])
        for name in columns
        if any(name in line for line in lines)
    )
    return Curves(title=title, x_axis="step", y_axis="", series=series) if series else None


def _thinned(name: str, points: Sequence[tuple[float, float]]) -> Series:
    """At most so many points, each the mean of neighbours; "parts/format" is "format", since the title says of what."""
    size = -(-len(points) // _POINTS)
    means = [tuple(map(fmean, zip(*points[at : at + size], strict=True))) for at in range(0, len(points), size)]
    x, y = zip(*means, strict=True)
    return Series(name=(name.partition("/")[2] or name).replace("_", " "), x=x, y=y)


NAME = "report.html"

_PANELS: Mapping[str, Sequence[str]] = {
    "Reward": ("reward", "held_out"),
    "Parts of the reward": (PART,),
    "Reward and gold scorer": ("proxy", "gold"),
    "Samples without a score": ("failed", "abstained", "held_out_unscored", "gold_unscored"),
    "Failures by reason": (REASON,),
    "Order of a pair": ("right_first", "right_second", "consistent", "first_preferred"),
    "Groups that teach nothing": ("frac_reward_zero_std",),
    "Advantages": ("advantage_mean", "advantage_std", "reward_std"),
    "Tokens of an answer": ("completion_length",),
    "Answers that were cut off": ("clipped_ratio",),
    "Entropy, nats": ("entropy",),
    "KL, nats": ("kl",),
    "Clipped tokens": ("clip_ratio_low", "clip_ratio_high"),
    "Length of the gradient": ("grad_norm", "value_grad_norm"),
    "Learning rate": ("learning_rate",),
    "Error of values": ("value_error",),
    "Seconds of a step": ("seconds", "seconds_writing", "seconds_waiting", "seconds_learning"),
}
"""Titles, and names of numbers; one that ends in "/" stands for all that begin so."""

_ANSWERS = 40


def write_report(folder: Path, *, title: str, facts: Mapping[str, Any], stopped: str = "") -> Path:
    """Write the page of a run into its folder, and return its path.

    Raises:
        ValueError: there are no steps.
    """
    lines = read_journal(folder, STEPS)
    if not lines:
        raise ValueError(f"{str(folder)!r} has no steps to report on")
    drawn = [curves(title, _columns(names, lines), lines) for title, names in _PANELS.items()]
    last = [row(name, cell(number(value))) for name, value in lines[-1].items() if isinstance(value, int | float)]
    alarms = [
        row(f"step {line['step']}", cell(str(line["kind"]).replace("_", " ")), cell(str(line["sentence"])))
        for line in read_journal(folder, ALARMS)
    ]
    answers = map(_sample, read_journal(folder, SAMPLES)[-_ANSWERS:][::-1])
    place = Place(prefix="run")
    body = joined(
        place.section("alarms", "Alarms of the watch", table(None, (), alarms) if alarms else NOTHING),
        place.section("drawn", "Curves", element("div", {"class": "figures"}, *map(_figure, filter(None, drawn)))),
        place.section("last", "The last step", table(None, (), last)),
        place.section("worst", "Answers", *answers),
        place.section("made", "Configuration", _text(json.dumps(facts, indent=2, default=str))),
    )
    seconds = sum(line["seconds"] for line in lines)
    top = joined(
        element("h1", None, title),
        element("p", {"class": "aside"}, f"{lines[-1]['step']} steps, {seconds:.0f} s."),
        element("p", {"class": "notice"}, f"It ended early: {stopped}.") if stopped else NOTHING,
    )
    path = folder / NAME
    path.write_text(document(title, "adjudge train policy", top, body), encoding="utf-8")
    return path


def _figure(drawn: Curves) -> Markup:
    return element("figure", None, element("figcaption", None, element("h3", None, drawn.title)), curves_drawing(drawn))


def _text(text: str) -> Markup:
    return element("pre", {"class": "text"}, text)


def _columns(names: Sequence[str], lines: Sequence[Mapping[str, Any]]) -> list[str]:
    there = sorted({name for line in lines for name in line})
    return [
        column
        for name in names
        for column in ([one for one in there if one.startswith(name)] if name.endswith("/") else [name])
    ]


def _sample(record: Mapping[str, Any]) -> Markup:
    value = record["value"]
    said = number(value) if value is not None else f"{record['status']} ({record['reason']})"
    about = f"step {record['step']}: {said}" + (", cut off" if record["finish_reason"] == "length" else "")
    texts = (_text(str(record[name])) for name in ("prompt", "response"))
    return element("div", {"class": "answer"}, element("h3", None, about), *texts)


FILE = "report.json"
POLICY = "policy"
"""Folder of the trained policy in a run's folder."""

# Options that may change when a run goes on.
_FREE = ("output", "steps", "save_steps", "keep_checkpoints", "save_hf_ckpt", "eval_steps", "watch", "report_to")


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
        idle: how many steps learned nothing from rewards, and why; "" if none.
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
    idle: str = ""

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
                f"{str(path)!r} is not the report of a run ({type(error).__name__}: {error}); name another output"
            ) from error

    def write(self, folder: Path) -> None:
        """Write the policy's card, and then the report: a folder with a report is whole."""
        (folder / POLICY / "README.md").write_text(self.card(), encoding="utf-8")
        put(folder / FILE, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    def differing(self, config: Mapping[str, Any]) -> list[str]:
        """Return the options whose values would make another policy than this run's."""
        now, was = (
            {name: value for name, value in by_path(_plain(dict(one))) if name.partition(".")[0] not in _FREE}
            for one in (config, self.config)
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
        against = card_cell(reward.get("scorer") or reward.get("server") or "")
        trained = f"A policy, trained from {card_cell(self.model)} by adjudge in {self.steps} steps against the reward"
        lines.append(f"{trained} {against}.")
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
        if mind := (*self.alarms, *self.notes, *([self.idle] if self.idle else [])):
            lines += ["", "## Mind", "", *(f"- {card_cell(sentence)}" for sentence in mind)]
        return "\n".join(lines) + "\n"


def idle_steps(history: Sequence[Mapping[str, float]], *, masks: bool) -> str:
    """Return a sentence about the steps in which rewards taught nothing; "" if there are none.

    Args:
        history: the numbers of every step.
        masks: whether answers that were cut off are left out.
    """
    causes: Counter[str] = Counter()
    for line in history:
        flat = line.get("advantage_mean") == 0 == line.get("advantage_std")
        if not flat and line.get("trained", line.get("update_norm")) != 0:
            continue
        if masks and line["clipped_ratio"] == 1:
            causes["all answers were cut off (learning.mask_truncated_completions)"] += 1
        elif line.get("frac_reward_zero_std", 1) == 1:
            causes["the rewards of each group were equal"] += 1
        else:
            causes["no answer with an advantage counted"] += 1
    why = ", ".join(f"in {count} {cause}" for cause, count in causes.most_common())
    return f"{causes.total()} of {len(history)} steps learned nothing from rewards: {why}" if causes else ""


def by_path(options: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each option by its path, such as "learning.learning_rate"."""
    for name, value in options.items():
        if isinstance(value, Mapping) and value:
            yield from by_path(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _plain(value: Any) -> Any:
    """Plain JSON data; numbers that JSON does not have (an option may be infinite) become texts."""

    def named(one: Any) -> Any:
        if isinstance(one, dict):
            return {name: named(inner) for name, inner in one.items()}
        if isinstance(one, list):
            return [named(inner) for inner in one]
        return str(one) if isinstance(one, float) and not math.isfinite(one) else one

    return named(json.loads(json.dumps(value, default=str)))
