"""`adjudge demo`: ten small answers that come with the package, and what the math scorer says about them.

`adjudge demo judge` (`demo_judges`) asks a small model, and `adjudge demo train` (`demo_training`) has a policy learn.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import tyro

from adjudge.cli import exits
from adjudge.cli.console import JsonFlag, print_json, print_table
from adjudge.protocol import Sample, Score
from adjudge.score_view import visible

_NEXT = """
Next:
  {adjudge} score --response "so it is \\boxed{{0.5}}" --reference "1/2"
  {adjudge} scorers
  {adjudge} demo --save demo.jsonl
  {adjudge} label demo.jsonl scores.jsonl --scorer math
  {adjudge} check demo.jsonl --scorer math
  {adjudge} demo judge
  {adjudge} demo train"""

What: TypeAlias = Literal["scores", "judge", "train"]


@dataclass(frozen=True, kw_only=True)
class DemoCommand:
    """Score ten small answers that come with the package, and say why.

    adjudge demo judge: five scorers that ask a model, SmolLM2, offline.
    adjudge demo train: a tiny policy learns to add from its verdicts.

    With --lesson it learns from other rewards:
    - smollm2: verifiers of sums and constraints; SmolLM2 is the policy;
    - steps: a process model, on sums line by line;
    - code: tests, on small programs;
    - hacked: a reward model that likes length, which goes wrong;
    - guarded: the same, stopped by the guard.

    Exit code: 0, or 2 when a file cannot be written.
    """

    what: Annotated[What, tyro.conf.Positional, tyro.conf.arg(metavar="[WHAT]")] = "scores"
    """scores, judge or train."""

    lesson: Literal["sums", "steps", "code", "hacked", "guarded", "smollm2"] = "sums"
    """What the policy learns."""

    method: Literal["grpo", "ppo"] = "grpo"
    """How the policy learns."""

    steps: Annotated[int, tyro.conf.arg(help_behavior_hint="")] = 0
    """Of the training, if not the lesson's own number."""

    seed: int = 0
    """Of the policy and its training."""

    seeds: int = 1
    """How many runs, with this seed and the next ones."""

    output: Annotated[str, tyro.conf.arg(help_behavior_hint="")] = ""
    """Keep the runs, their reports and curves in this folder."""

    save: str = ""
    """Write the rows to this .jsonl file instead of scoring them."""

    as_json: JsonFlag = False

    def run(self) -> int:
        """Score and print, and return the exit code."""
        if self.what == "train":
            from adjudge.cli.demo_training import train

            return train(self)
        if self.what == "judge":
            from adjudge.cli.demo_judges import judge

            return judge(self.as_json)
        if self.save:
            self._save(Path(self.save))
            return exits.FINE
        from adjudge.scoring.api import score_batch

        rows = demo_rows()
        scores = score_batch([sample_of(row) for row in rows], "math")
        if self.as_json:
            print_json({"rows": [row | {"score": score.to_dict()} for row, score in zip(rows, scores, strict=True)]})
            return exits.FINE
        print_table(
            ("response", "reference", "score", "reason", "what it shows"),
            [_line(row, score) for row, score in zip(rows, scores, strict=True)],
        )
        print(_NEXT.format(adjudge=_command()))
        return exits.FINE

    def _save(self, path: Path) -> None:
        if path.exists():
            raise ValueError(f"{path} exists already; give --save another name, or remove the file")
        path.write_text(_text(), encoding="utf-8")
        print(f"{len(demo_rows())} rows written to {visible(str(path))}")


def demo_rows() -> list[dict[str, Any]]:
    """Return the rows of the demo as plain data."""
    return [json.loads(line) for line in _text().splitlines()]


def sample_of(row: dict[str, Any]) -> Sample:
    """Return the sample in a row of the demo."""
    names = ("id", "prompt", "response", "reference", "finish_reason")
    return Sample(**{name: row[name] for name in names if name in row})


def _command() -> str:
    """How the person who runs this types `adjudge`: `make demo` runs one that is not on the PATH."""
    here = Path(sys.argv[0])
    if shutil.which("adjudge") or here.name != "adjudge":
        return "adjudge"
    return os.path.relpath(here)


def _text() -> str:
    from importlib.resources import files

    return files("adjudge.cli").joinpath("demo_rows.jsonl").read_text(encoding="utf-8")


def _line(row: dict[str, Any], score: Score) -> list[str]:
    value = "none" if score.value is None else f"{score.value:g}"
    return [visible(row["response"], 40), visible(row["reference"]), value, score.reason, row["shows"]]
