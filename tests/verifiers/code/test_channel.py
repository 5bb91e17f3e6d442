"""Objects that tests and candidates hand each other: honest patterns of `channel.json` work, in executed tests."""

from __future__ import annotations

import ast
import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from adjudge.protocol import Sample
from adjudge.verifiers.code.verifier import CodeVerifier

CASES = json.loads(Path(__file__).with_name("channel.json").read_text(encoding="utf-8"))["cases"]
PACKAGES = ("numpy", "pandas")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_an_honest_pattern_passes(case: dict[str, Any]) -> None:
    for package in PACKAGES:
        if package in case["test"]:
            pytest.importorskip(package)
    defined = [node.name for node in ast.parse(case["source"]).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    tests = f"from solution import {', '.join(defined)}\ndef test_it():\n{textwrap.indent(case['test'], '    ')}\n"
    reference = {"tests": tests, "style": "pytest", **({"solution": case["source"]} if case.get("stated") else {})}
    response = f"```python\n{case['source']}\n```"
    score = CodeVerifier(seconds=20.0).verify(Sample(prompt="", response=response, reference=reference))
    assert (score.status, score.value) == ("scored", 1.0), score
