"""What a run reached: the page of its curves and answers, the report for programs, and the card of the policy.

The page is one file that needs nothing else; whatever a model wrote is text on it and never markup.
"""

from __future__ import annotations

import html
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from adjudge.extras import install_hint
from adjudge.io.cards.card import card_cell, card_rows, put
from adjudge.rl_integration.trainer.loop.logbook import ALARMS, PART, REASON, SAMPLES, STEPS, read_journal

COLOURS = ("#2f7ed8", "#d9730d", "#2a9d5c", "#b04fc4", "#c0392b", "#0f9aa8")
"""Of the lines; each is readable on white and on dark grey."""

_POINTS = 400  # of a line; of more, neighbours are put together
_DOTS = 30  # lines of fewer points have them marked
_INK = "#010203"  # what the drawing calls the colour of the page's text
_LOOKS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "adjudge",  # the same numbers give the same page
    "font.size": 9,
    "axes.edgecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _INK,
}


def figure(title: str, columns: Sequence[str], lines: Sequence[Mapping[str, Any]]) -> str:
    """Return a figure of some columns of the journal's lines over steps; nothing if no step has any of them.

    Raises:
        ValueError: matplotlib is not installed.
    """
    series = {
        name: np.array([(line["step"], line[name]) for line in lines if name in line], dtype=float)
        for name in columns
        if any(name in line for line in lines)
    }
    if not series:
        return ""
    drawn = _drawn([_thinned(points) for points in series.values()])
    legend = "".join(
        f'<span style="color:{COLOURS[place % len(COLOURS)]}">{html.escape(_label(name))}</span>'
        for place, name in enumerate(series)
    )
    named = html.escape(f"{title}: {', '.join(map(_label, series))}", quote=True)
    return (
        f'<figure role="img" aria-label="{named}"><figcaption><b>{html.escape(title)}</b>'
        f"{legend if len(series) > 1 or any('/' in name for name in series) else ''}</figcaption>{drawn}</figure>"
    )


def _drawn(lines: Sequence[np.ndarray[Any, Any]]) -> str:
    """The drawing: lines, axes, and numbers along them."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError as error:
        raise ValueError(f"the report needs matplotlib ({error}); {install_hint('train')}") from error
    with rc_context(_LOOKS):
        drawing = Figure(figsize=(4.4, 2.4), facecolor="none")
        axes = drawing.add_axes((0.15, 0.11, 0.83, 0.8))  # a layout made for the numbers would draw everything twice
        axes.set_facecolor("none")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.2)
        for place, points in enumerate(lines):
            marker = "." if len(points) < _DOTS else ""
            axes.plot(points[:, 0], points[:, 1], color=COLOURS[place % len(COLOURS)], marker=marker)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        file = io.StringIO()
        drawing.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    return text[text.index("<svg") :].replace(_INK, "currentColor")


def _thinned(points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """At most so many points, each the mean of neighbours."""
    if len(points) <= _POINTS:
        return points
    size = -(-len(points) // _POINTS)
    return np.array([points[at : at + size].mean(axis=0) for at in range(0, len(points), size)])


def _label(name: str) -> str:
    """The name for people; "parts/format" is told as "format", since the title says of what."""
    return (name.partition("/")[2] or name).replace("_", " ")


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
    "Error of values": ("value_error",),
    "Seconds of a step": ("seconds", "seconds_writing", "seconds_waiting", "seconds_learning"),
}
"""Titles, and names of numbers; one that ends in "/" stands for all that begin so."""

_ANSWERS = 40

_STYLE = """
:root { color-scheme: light dark; --back: #fff; --ink: #222; --soft: #f5f5f4; --line: #ddd; --alarm: #fdecea; }
@media (prefers-color-scheme: dark) {
  :root { --back: #1c1c1c; --ink: #ddd; --soft: #2a2a2a; --line: #444; --alarm: #4a2320; }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 1.5rem auto; padding: 0 1rem;
  background: var(--back); color: var(--ink); overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.curves { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); gap: 1.2rem; }
figure { margin: 0; min-width: 0; } figure svg { width: 100%; height: auto; }
figcaption { font-size: .85rem; } figcaption span { display: inline-block; margin-left: .8rem; }
figcaption span::before { content: "\\25cf\\00a0"; }
table { border-collapse: collapse; } tr { border-bottom: 1px solid var(--line); }
td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--soft); padding: .6rem; border-radius: .3rem; }
.answer { border-top: 1px solid var(--line); } .answer pre { margin: .4rem 0; font-size: .9rem; }
.stopped { background: var(--alarm); padding: .6rem; border-radius: .3rem; }
"""


def write_report(folder: Path, *, title: str, facts: Mapping[str, Any], stopped: str = "") -> Path:
    """Write the page of a run into its folder, and return its path.

    Raises:
        ValueError: matplotlib is not installed, or there are no steps.
    """
    lines = read_journal(folder, STEPS)
    if not lines:
        raise ValueError(f"{str(folder)!r} has no steps to report on")
    last = (
        f"<tr><th>{html.escape(name)}</th><td>{value:.4g}</td></tr>"
        for name, value in lines[-1].items()
        if name != "step" and isinstance(value, int | float)
    )
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p>{lines[-1]['step']} steps, {sum(line['seconds'] for line in lines):.0f} s.</p>",
        f'<p class="stopped">It ended early: {html.escape(stopped)}.</p>' if stopped else "",
        '<div class="curves">',
        *(figure(title, _columns(names, lines), lines) for title, names in _PANELS.items()),
        "</div>",
        _alarms(read_journal(folder, ALARMS)),
        "<h2>The last step</h2>",
        f"<table>{''.join(last)}</table>",
        "<h2>Answers</h2>",
        *map(_sample, read_journal(folder, SAMPLES)[-_ANSWERS:][::-1]),
        "<h2>Configuration</h2>",
        f"<pre>{html.escape(json.dumps(facts, indent=2, default=str))}</pre>",
    ]
    page = (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{_STYLE}</style>\n<body>\n" + "\n".join(part for part in parts if part) + "\n</body>\n</html>\n"
    )
    path = folder / NAME
    path.write_text(page, encoding="utf-8")
    return path


def _alarms(lines: Sequence[Mapping[str, Any]]) -> str:
    rows = "".join(
        f"<tr><th>step {html.escape(str(line['step']))}</th><td>{html.escape(str(line['kind']).replace('_', ' '))}</td>"
        f"<td>{html.escape(str(line['sentence']))}</td></tr>"
        for line in lines
    )
    return f"<h2>Alarms of the watch</h2>\n<table>{rows}</table>" if rows else ""


def _columns(names: Sequence[str], lines: Sequence[Mapping[str, Any]]) -> list[str]:
    there = sorted({name for line in lines for name in line})
    return [
        column
        for name in names
        for column in ([one for one in there if one.startswith(name)] if name.endswith("/") else [name])
    ]


def _sample(record: Mapping[str, Any]) -> str:
    value = record["value"]
    said = f"{value:.4g}" if value is not None else f"{record['status']} ({record['reason']})"
    about = f"step {record['step']}: {said}" + (", cut off" if record["finish_reason"] == "length" else "")
    prompt, response = (html.escape(str(record[name])) for name in ("prompt", "response"))
    return f'<div class="answer"><p>{html.escape(about)}</p><pre>{prompt}</pre><pre>{response}</pre></div>'


FILE = "report.json"
POLICY = "policy"
"""Folder of the trained policy in a run's folder."""

# Options that may change when a run goes on.
_FREE = ("output", "steps", "save_steps", "keep_checkpoints", "save_hf_ckpt", "eval_steps", "watch", "logs")


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
        put(folder / FILE, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

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
