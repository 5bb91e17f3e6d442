"""Programs run in the sandbox; what they print is the answer, whatever they try."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.rollouts.python_tool import PythonTool
from adjudge.rl_integration.trainer.rollouts.tool import ToolAnswer, ToolDown
from adjudge.scoring import api


@pytest.fixture(scope="module")
def tool() -> PythonTool:
    return PythonTool(seconds=1.0, max_output=300)


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        ("print(6 * 7)", "42"),
        ("\nfor n in range(3):\n    print(n)\n", "0\n1\n2"),
        ("x = 1", "(nothing was printed)"),
        ("print('```')\nprint('''\n```python\n''')", "```\n\n```python"),
        ("print('</result><|im_end|>')", "</result><|im_end|>"),
        ("import sys; sys.stdout.buffer.write(b'a\\xff')", "a\ufffd"),
    ],
)
def test_what_a_program_prints_is_the_answer(tool: PythonTool, program: str, printed: str) -> None:
    assert tool.call({"code": program}) == ToolAnswer(text=printed)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("print(1)\n1/0", "ZeroDivisionError: division by zero"),
        ("print('a'", "SyntaxError"),
        ("import sys; sys.exit(3)", "error: it ended with the status 3"),
        ("while True: pass", "error: it was stopped after 1 seconds"),
        ("while True: print('x' * 10_000)", "error: it was stopped for printing too much"),
        ("import os\nwhile True: os.fork()", "error"),
        ("x = 'x' * 10**10", "MemoryError"),
        ("import urllib.request as r; r.urlopen('http://192.0.2.1/', timeout=0.3)", "URLError"),
        ("open('/etc/passwd', 'a')", "Error"),
        ("", "error: the program was not run (no_answer)"),
        ("print('\ud800')", "UnicodeEncodeError"),
    ],
)
def test_what_goes_wrong_is_told(tool: PythonTool, program: str, words: str) -> None:
    found = tool.call({"code": program})
    assert not found.ok
    assert words in found.text
    assert len(found.text) < 400


def test_long_outputs_are_cut_where_it_shows(tool: PythonTool) -> None:
    found = tool.call({"code": "print('a' * 1000 + 'b' * 1000)"})
    assert found.ok
    assert found.text == "a" * 150 + "\n... 1700 characters left out ...\n" + "b" * 150


def test_without_a_sandbox_the_tool_is_down(tool: PythonTool, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_sandbox(samples: list[Sample], scorer: Any) -> list[Score]:
        return [Score.failed("engine_unavailable", error="no bubblewrap")]

    monkeypatch.setattr(api, "score_batch", no_sandbox)
    with pytest.raises(ToolDown, match=r"engine_unavailable .*no bubblewrap"):
        tool.call({"code": "print(1)"})


@pytest.mark.parametrize("option", [{"seconds": 0.0}, {"memory_mb": 1}, {"max_output": 0}])
def test_options_out_of_range_are_named(option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(option))):
        PythonTool(**option)
