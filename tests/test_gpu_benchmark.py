"""`make gpu` where there is no GPU: every part runs, and a number that misses its bound fails the whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.gpu.report import Part, write

ROOT = Path(__file__).parents[1]
QUICK = ("environment", "correctness", "logits")


def measured(output: Path, *parts: str) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "benchmarks.gpu", "--tiny", "--output", str(output)]
    done = subprocess.run(
        [*command, *(["--parts", *parts] if parts else [])],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "tests" / "without", ROOT / "src", ROOT))),
            "ADJUDGE_TEST_WITHOUT": "sklearn,scipy,trio,vllm",  # what transformers imports, and no part needs
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found: list[dict[str, object]] = json.loads((output / "report.json").read_text(encoding="utf-8"))
    return found


def test_the_quick_parts_run_on_a_cpu(tmp_path: Path) -> None:
    parts = measured(tmp_path, *QUICK)
    assert [part["name"] for part in parts] == list(QUICK)
    assert all(part["numbers"] for part in parts[1:])


@pytest.mark.full
def test_all_parts_run_on_a_cpu(tmp_path: Path) -> None:
    from benchmarks.gpu.__main__ import PARTS

    assert [part["name"] for part in measured(tmp_path)] == list(PARTS)


def test_a_number_that_misses_its_bound_fails_its_part(tmp_path: Path) -> None:
    part = Part(name="some")
    part.add("fine", 0.5, at_most=1.0)
    assert not part.failed
    part.add("unknown", float("nan"), at_least=0.0)
    assert part.failed
    write(tmp_path, [part.record()])
    assert (tmp_path / "report.md").read_text(encoding="utf-8").count("**not kept**") == 1
