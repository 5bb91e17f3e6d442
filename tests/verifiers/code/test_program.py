"""Generated checkers: what runs, whose fault a missing verdict is, and what never runs."""

from __future__ import annotations

import pytest

from adjudge.protocol import Sample, Score
from adjudge.sandbox.bubblewrap import SandboxUnavailableError
from adjudge.sandbox.program import Program, RunLimits
from adjudge.sandbox.sandbox import Sandbox
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.code.program import ProgramVerifier

WORDS = "def check(prompt, response):\n    return len(response.split()) <= 3\n"


@pytest.fixture(scope="module", autouse=True)
def sandbox_works() -> None:
    """Skip, saying what is missing, where there is no sandbox."""
    try:
        with Sandbox() as sandbox:
            sandbox.run(Program(command=("true",)), RunLimits())
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


def verdict(source: str, response: str, prompt: str = "p") -> Score:
    return ProgramVerifier().verify(Sample(prompt=prompt, response=response, reference=source))


@pytest.mark.parametrize(
    ("source", "response", "value"),
    [
        (WORDS, "two words", 1.0),
        (WORDS, "these are four words", 0.0),
        ("def check(prompt, response):\n    return len(response) / 8", "four", 0.5),
        ("import re\ndef check(prompt, response):\n    return bool(re.search(prompt, response))", "a pq", 1.0),
        (WORDS, "\ud800 \x00", 1.0),
    ],
    ids=["true", "false", "degree", "sees the prompt", "odd characters"],
)
def test_a_checker_decides(source: str, response: str, value: float) -> None:
    assert verdict(source, response).value == value


@pytest.mark.parametrize(
    "source",
    ["def check(prompt, response):\n    return None", "def check(prompt, response):\n    return missing(response)"],
)
def test_a_checker_without_a_verdict_is_nobody_elses_fault(source: str) -> None:
    assert verdict(source, "abc").reason == "gold_unparsable"


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("def check(prompt, response):\n    return eval(response)", "uses eval"),
        ("import os\ndef check(prompt, response):\n    return True", "imports os"),
        ("from subprocess import run\ndef check(prompt, response):\n    return True", "imports subprocess"),
        ("def check(prompt, response):\n    return response.__class__ is str", "__class__"),
        ("def check(response):\n    return True", "two arguments"),
        ("check = len", "without a function"),
        ("def check(prompt, response:\n", "not Python"),
        ("x" * 50_001, "at most 50000"),
        ("", "without a function"),
    ],
)
def test_a_checker_that_could_be_talked_to_never_runs(source: str, complaint: str) -> None:
    sample = Sample(prompt="p", response="__import__('os')", reference={"program": source})
    with pytest.raises(BadReferenceError, match=complaint):
        ProgramVerifier().validate(sample)
    assert ProgramVerifier().verify(sample).reason == "gold_unparsable"


@pytest.mark.parametrize("options", [{"seconds": 0}, {"seconds": True}, {"memory_mb": 8}, {"isolation": "no"}])
def test_options_that_mean_nothing_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"program option {next(iter(options))}="):
        ProgramVerifier(**options)  # type: ignore[arg-type]


def test_it_keeps_the_rules() -> None:
    samples = [Sample(prompt="p", response=text, reference=WORDS) for text in ("one two", "one two three four")]
    check_scorer(ProgramVerifier(), samples, seconds=120).raise_for_failures()
