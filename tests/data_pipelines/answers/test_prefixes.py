"""Beginnings of the best answers, drawn as ReST-RL's code draws them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adjudge.cli import main
from adjudge.data_pipelines.answers.config import PrefixesConfig
from adjudge.data_pipelines.answers.prefixes import make_prefixes
from adjudge.io.jobs.report import JobReport

Rows = list[dict[str, Any]]


def made_of(folder: Path, rows: Rows, **options: Any) -> tuple[JobReport, Rows]:
    given, out = folder / "in.jsonl", folder / "out.jsonl"
    given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = make_prefixes(PrefixesConfig(input=str(given), output=str(out), overwrite=True, **options))
    return report, [json.loads(line) for line in out.read_text().splitlines()]


def row(prompt: str, response: str, score: float | None, **more: Any) -> dict[str, Any]:
    return {"prompt": prompt, "response": response, "score": score, "reference": "r", **more}


def test_beginnings_of_the_best_answer_join_prompts_whose_scores_differ(tmp_path: Path) -> None:
    rows = [
        row("good", "bad\n", 0.0),
        row("good", "a\nb\nc\n", 1.0),
        row("good", "later, and as good", 1.0),
        row("equal", "x", 1.0),
        row("equal", "y", 1.0),
        row("close", "x", 1.0),
        row("close", "y", 0.91),
        row("apart", "x", 0.88),
        row("apart", "y", 0.76),
        row("weak", "x\ny", 0.8),
        row("weak", "z", 0.2),
        row("unknown", "x", None),
    ]
    report, made = made_of(tmp_path, rows)
    assert made[0] == {"prompt": "good", "score": 1.0, "reference": "r", "begun": ""}
    begun = [one["begun"] for one in made if one["prompt"] == "good"]
    assert len(begun) == 1 + 2  # half of three lines, rounded up
    assert set(begun[1:]) <= {"a\n", "a\nb\n", "a\nb\nc\n"}
    assert [one["begun"] for one in made if one["prompt"] != "good"] == ["", ""]
    assert made[-1]["prompt"] == "weak"
    assert report.dropped == {"little_spread": 2, "not_best": 6, "unknown_score": 1}
    assert report.counts["prefixes"] == 2
    assert made_of(tmp_path, rows)[1] == made


def test_short_beginnings_are_drawn_more_often_by_the_published_weights(tmp_path: Path) -> None:
    answer, alpha = "\n".join("abcdefgh"), 0.6
    rows = [row(f"p{at}", text, score) for at in range(400) for text, score in ((answer, 1.0), ("x", 0.0))]
    _, made = made_of(tmp_path, rows, alpha=alpha, share=1.0)
    lines = Counter(one["begun"].count("\n") - 1 for one in made if one["begun"])
    assert sum(lines.values()) == 400 * 8
    whole = sum(alpha**at for at in range(8))
    for at in range(8):
        share = alpha**at / whole
        assert lines[at] / 3200 == pytest.approx(share, abs=4 * (share / 3200) ** 0.5)


def test_published_numbers() -> None:
    """Defaults of `process_gen_data.py`."""
    config = PrefixesConfig(input="a.jsonl", output="b.jsonl")
    assert (config.min_spread, config.pass_score, config.share, config.alpha) == (0.05, 0.9, 0.5, 0.95)


def test_what_label_wrote_gives_rows_of_the_input(tmp_path: Path) -> None:
    given = tmp_path / "answers.jsonl"
    answers = ["so\n\\boxed{2}", "\\boxed{3}"]
    given.write_text(
        json.dumps({"question": "1+1?", "answer": "2", "response": answers, "finish_reason": ["stop"] * 2})
    )
    labels, out = str(tmp_path / "labels.jsonl"), str(tmp_path / "out.jsonl")
    assert main.main(["label", str(given), labels, "--scorer", "math", "--keep-columns"]) == 0
    assert main.main(["data", "prefixes", labels, out]) == 0
    made = [json.loads(line) for line in Path(out).read_text().splitlines()]
    assert made[0] == {"question": "1+1?", "answer": "2", "begun": ""}
    assert made[1]["begun"] in ("so\n", "so\n\\boxed{2}\n")


def test_lists_of_answers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="label lists of answers"):
        made_of(tmp_path, [{"prompt": "p", "response": ["a", "b"], "score": 1.0}])
