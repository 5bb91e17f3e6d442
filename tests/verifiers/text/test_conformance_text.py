"""The small text verifiers keep the rules of the protocol when they run as scorers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adjudge.protocol import Sample
from adjudge.scoring import registry
from adjudge.scoring.conformance import check_scorer

RESPONSES = (
    "The answer is 5.",
    "<think>Is it C?</think><answer>C</answer>",
    "Paris",
    "so so so so so so so so",
    "<think>never finished",
    "",
)
SCORERS: list[tuple[Any, Any]] = [
    ("exact", ["Paris", "C"]),
    ("numeric", 5),
    ("choice", {"choices": ["Lyon", "Nice", "Paris"], "answer": 2}),
    ("token_f1", "in Paris"),
    ({"regex": {"pattern": "[aeiou]", "mode": "search"}}, None),
    ("format", None),
    ({"format": {"credit": "fraction", "outside": "text"}}, None),
    ("length", None),
    ({"length": {"kind": "cosine", "unit": "words", "max_length": 10}}, None),
    ("repetition", None),
]
PAGE = Path(__file__).parents[3] / "docs" / "text_verifiers.md"


@pytest.mark.parametrize(("spec", "reference"), SCORERS, ids=lambda value: str(value)[:60])
def test_it_conforms(spec: Any, reference: Any) -> None:
    samples = [
        Sample(
            prompt="Which?",
            response=response,
            reference=reference,
            id=str(at),
            extra={"completion_tokens": 16_000 + at * 1_000},
        )
        for at, response in enumerate(RESPONSES)
    ]
    report = check_scorer(spec, samples)
    report.raise_for_failures()
    assert not [check for check in report.checks if check.outcome == "skipped"]


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    programs = _blocks("python")
    assert len(programs) == 3
    for program in programs:
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=1200
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


def test_the_specs_of_the_page_load() -> None:
    specs = _blocks("yaml")
    assert specs
    for spec in specs:
        assert registry.load(spec).fingerprint
