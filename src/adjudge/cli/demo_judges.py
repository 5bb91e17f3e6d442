"""`adjudge demo judge`: ten small answers, and what five scorers make of them that ask a model, SmolLM2, offline.

All verdicts are taken, however little probability they have together: what a model of 135 million weights says shows
how the scorers work, and is not a judgement.
"""

from __future__ import annotations

import json
import time
from importlib.resources import files
from typing import Any

from adjudge.cli import exits
from adjudge.cli.console import print_json, print_table
from adjudge.engines.smollm2 import NAME
from adjudge.protocol import Sample, Score
from adjudge.score_view import visible

# Options and the reference that goes with them, made of a row's right answer.
_SCORERS: dict[str, tuple[dict[str, Any], str | None]] = {
    "judge": ({"readout": "probabilities", "min_mass": 0, "labels": {"good": 1.0, "bad": 0.0}}, "{answer}"),
    "rubric": ({"forced_mass": 0, "max_tokens": 8}, "The response says that it is {answer}."),
    "nuggets": ({"forced_mass": 0, "max_tokens": 8}, "It is {answer}."),
    "genrm": ({"min_mass": 0}, "{answer}"),
    "pair_model": ({"against": "group"}, None),
}
_SAID = f"""
above: pairs in which the right answer gets more than the wrong one.
A model of 135 million weights ({NAME}) judges hardly better than a coin. Name yours in its place:
  adjudge score --prompt "Name a colour." --response "Blue." --scorer '{{"judge": {{"engine": "openai:MODEL"}}}}'
docs/engines.md has the engines, docs/judges.md the judges."""


def judge(as_json: bool) -> int:
    """Score and print, and return the exit code.

    Raises:
        ValueError: the model or a package is not installed.
    """
    from adjudge.scoring.api import score_batch

    rows = judged_rows()
    found: list[list[Score]] = []
    summary: list[dict[str, Any]] = []
    for name, (options, reference) in _SCORERS.items():
        listed = name in ("rubric", "nuggets")
        samples = [
            Sample(
                prompt=row["prompt"],
                response=row["response"],
                reference=_reference(reference, row["answer"], listed),
                group=row["prompt"],
            )
            for row in rows
        ]
        begun = time.perf_counter()
        scores = score_batch(samples, {name: {"engine": NAME, **options}})
        seconds = time.perf_counter() - begun
        values = [score.value for score in scores]
        pairs = list(zip(values[::2], values[1::2], strict=True))
        known = [(right, wrong) for right, wrong in pairs if right is not None and wrong is not None]
        above = sum(right > wrong for right, wrong in known)
        found.append(scores)
        summary.append({"scorer": name, "pairs": len(known), "above": above, "seconds": seconds})
    if as_json:
        table = [
            row | {"scores": {name: one[at].to_dict() for name, one in zip(_SCORERS, found, strict=True)}}
            for at, row in enumerate(rows)
        ]
        print_json({"rows": table, "scorers": summary})
        return exits.FINE
    lines = [
        [visible(row["response"], 44), "right" if row["good"] else "wrong", *(_shown(one[at].value) for one in found)]
        for at, row in enumerate(rows)
    ]
    lines += [["", "above", *(f"{one['above']} of {one['pairs']}" for one in summary)]]
    lines += [["", "seconds", *(f"{one['seconds']:.0f}" for one in summary)]]
    print_table(("response", "is", *_SCORERS), lines)
    print(_SAID)
    return exits.FINE


def judged_rows() -> list[dict[str, Any]]:
    """Return the rows: prompt, response, right answer, and whether the response is right; each right one first."""
    text = files("adjudge.cli").joinpath("demo_judges.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _reference(form: str | None, answer: str, listed: bool) -> Any:
    if form is None:
        return None
    text = form.format(answer=answer)
    return [text] if listed else text


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"
