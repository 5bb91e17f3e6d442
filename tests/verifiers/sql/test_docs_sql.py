"""The page on SQL keeps its word: its example runs, and it names every policy, reward and option."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

from adjudge.verifiers.sql.comparator import POLICIES, Comparator
from adjudge.verifiers.sql.rewards import REWARDS

PAGE = (Path(__file__).parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")


def test_the_example_prints_what_it_says(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=1200)
    assert done.stdout == "1.0  match\n0.0 wrong compare\n", done.stderr


def test_everything_is_named() -> None:
    options = {field.name for field in dataclasses.fields(Comparator)}
    assert {name for name in (*POLICIES, *REWARDS, *options) if f"`{name}`" not in PAGE} == set()
