"""Programs that are run and not judged: how they end is the score, and what they print is the evidence."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.sandbox.bubblewrap import SandboxUnavailableError
from adjudge.sandbox.sandbox import Sandbox
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.code.run import RunVerifier
from adjudge.verifiers.code.verifier import CodeVerifier


def judged(response: str, reference: Any = None, finish_reason: str | None = None, **options: Any) -> Score:
    sample = Sample(prompt="", response=response, reference=reference, finish_reason=finish_reason)
    return RunVerifier(**{"seconds": 10.0, **options}).verify(sample)


def test_a_program_that_exits_with_0_scores_1_and_shows_what_it_printed() -> None:
    score = judged("import sys\nprint(input() * 2)\nprint('no', file=sys.stderr)", {"stdin": "ab\n"})
    assert (score.value, score.reason) == (1.0, "")
    assert score.evidence["run"] == {"ending": "exited", "code": 0, "stdout": "abab\n", "stderr": "no\n"}
    assert 0 < judged("print(1)", {"measured": True}).evidence["run"]["seconds"] < 10


@pytest.mark.parametrize(
    ("program", "reference", "reason", "ending", "code"),
    [
        ("raise SystemExit(3)", None, "candidate_error", "exited", 3),
        ("1 / 0", None, "candidate_error", "exited", 1),
        ("print(", None, "candidate_error", "exited", 1),
        ("a\0b", None, "candidate_error", "exited", 1),
        ("print('\ud800')", None, "candidate_error", "exited", 1),
        ("while True: pass", {"seconds": 0.3}, "candidate_timeout", "timeout", None),
        ("while True: print('a' * 99999)", None, "candidate_output", "output", None),
        ("x = [bytearray(1 << 20) for _ in range(4096)]", {"memory_mb": 64}, "candidate_error", "exited", 1),
        ("int main() { return 4; }", {"language": "c"}, "candidate_error", "exited", 4),
        ("int main() { int *p = 0; *p = 1; }", {"language": "c++"}, "candidate_error", "signalled", 11),
        ("exit 5", {"language": "sh"}, "candidate_error", "exited", 5),
    ],
)
def test_what_the_program_does_is_its_zero(
    program: str, reference: Any, reason: str, ending: str, code: int | None
) -> None:
    score = judged(program, reference)
    told = score.evidence["run"]
    assert (score.value, told["ending"], told["code"]) == (0.0, ending, code)
    assert score.reason == reason


def test_a_program_that_does_not_compile_is_not_run() -> None:
    score = judged("int main( { return 0; }", {"language": "c"})
    assert (score.value, score.reason, set(score.evidence)) == (0.0, "candidate_error", {"compile"})
    assert "error" in score.evidence["compile"]["stderr"]
    good = judged("int main() { return 0; }", {"language": "c"})
    assert (good.value, set(good.evidence)) == (1.0, {"compile", "run"})
    slow = judged("int main() { return 0; }", {"language": "c", "compile_seconds": 0.001})
    assert (slow.value, slow.reason) == (0.0, "candidate_timeout")


@pytest.mark.parametrize(
    ("response", "options", "value", "reason"),
    [
        ("", {}, 0.0, "no_answer"),
        ("```python\n\n```", {}, 0.0, "no_answer"),
        ("```python\nprint(1)\n```\nand\n```python\n1 / 0\n```", {}, 0.0, "candidate_error"),
        ("```python\nprint(1)\n```\nand\n```python\n1 / 0\n```", {"block": "first"}, 1.0, ""),
        ("print('</think>')", {}, 1.0, ""),
        ("<think>1 / 0", {"reasoning": "strip"}, 0.0, "unfinished_reasoning"),
        ("x" * ((1 << 20) + 1), {}, 0.0, "too_complex"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_the_program_is_found_as_by_the_code_verifier(
    response: str, options: dict[str, Any], value: float, reason: str
) -> None:
    score = judged(response, **options)
    assert (score.value, score.reason) == (value, reason)


def test_a_response_that_was_cut_off_scores_0() -> None:
    assert judged("print(1)", finish_reason="length").reason == "truncated"
    assert judged("print(1)", finish_reason="length", truncated="grade").value == 1.0


@pytest.mark.parametrize(
    ("reference", "hint"),
    [
        ("python", "must be a mapping"),
        ({"lang": "python"}, "known are compile_seconds, language"),
        ({"language": "ruby"}, "known are python, c, cpp"),
        ({"language": 5}, "known are python, c, cpp"),
        ({"stdin": b"x"}, "must be text"),
        ({"seconds": 11}, "the scorer's option allows 10"),
        ({"memory_mb": 2048}, "the scorer's option allows 1024"),
        ({"seconds": 0}, "above 0"),
        ({"seconds": float("nan")}, "above 0"),
        ({"seconds": True}, "above 0"),
        ({"memory_mb": 0.5}, "at least 1"),
        ({"measured": "yes"}, "true or false"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("response", ["print(1)", ""])
def test_a_reference_that_cannot_be_is_ours_to_answer_for(reference: Any, hint: str, response: str) -> None:
    score = judged(response, reference)
    assert (score.status, score.reason) == ("failed", "gold_unparsable")
    assert hint in score.evidence["error"]


@pytest.mark.parametrize(
    "options",
    [
        {"block": "best"},
        {"isolation": "docker"},
        {"seconds": 0},
        {"compile_seconds": 4000},
        {"memory_mb": 1.5},
        {"processes": 0},
        {"output_mb": True},
    ],
    ids=str,
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"run option {next(iter(options))}="):
        RunVerifier(**options)


def test_text_that_utf_8_cannot_hold_is_the_programs_own_fault() -> None:
    program = "int main() { return \ud800; }"
    assert judged(program, {"language": "c"}).reason == "candidate_error"
    reference = {"language": "c", "tests": [{"stdin": "", "stdout": "0"}]}
    score = CodeVerifier().verify(Sample(prompt="", response=program, reference=reference))
    assert (score.value, score.reason, score.evidence["stage"]) == (0.0, "candidate_error", "compile")


def test_without_a_sandbox_nothing_is_the_programs_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def unable(*_: Any) -> None:
        raise SandboxUnavailableError("no namespaces here")

    monkeypatch.setattr(Sandbox, "run", unable)
    score = judged("int main() { return 0; }", {"language": "c"})
    assert (score.status, score.reason) == ("failed", "engine_unavailable")
    monkeypatch.setattr("adjudge.verifiers.code.run.missing", lambda name: f"{name} is missing")
    score = judged("int main() { return 0; }", {"language": "c"})
    assert score.evidence["error"] == "c is missing"


def test_it_conforms() -> None:
    samples = [
        Sample(prompt="", response="print(1)"),
        Sample(prompt="", response="1 / 0", reference={"stdin": "x"}),
        Sample(prompt="", response="print(1)", reference={"language": "ruby"}),
    ]
    check_scorer(RunVerifier(), samples).raise_for_failures()
