from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from adjudge.cli import exits
from adjudge.cli.score import print_score
from adjudge.protocol import Score, StepScore

Adjudge = Callable[..., Any]


def test_json_is_the_score(adjudge: Adjudge, toys: str) -> None:
    ran = adjudge("score", "--response", "Paris", "--reference", "Paris", "--scorer", f"{toys}:Toy", "--json")
    assert ran.code == exits.FINE
    score = Score.from_dict(ran.json)
    assert (score.value, score.provenance.fingerprint) == (1.0, "toy:1")


def test_a_wrong_answer_is_judged_and_so_no_error(adjudge: Adjudge, toys: str) -> None:
    ran = adjudge("score", "--response", "Rome", "--reference", "Paris", "--scorer", f"{toys}:Toy")
    assert ran.code == exits.FINE
    assert ran.out.splitlines()[0].split() == ["value", "0"]


def test_what_could_not_be_judged_is_found_out(adjudge: Adjudge, toys: str) -> None:
    ran = adjudge("score", "--response", "x" * 2000, "--reference", "Paris", "--scorer", f"{toys}:Coward")
    assert ran.code == exits.FOUND
    assert "verifier_error: the scorer raised an error" in ran.out


@pytest.mark.parametrize("response", ["-5", "-x+1", "--", "", "a=b", "two\nlines", "\x1b[31mred"])
def test_any_text_is_a_response(adjudge: Adjudge, toys: str, response: str) -> None:
    words = ("score", f"--response={response}", f"--reference={response or 'x'}", "--scorer", f"{toys}:Toy", "--json")
    assert adjudge(*words).json["value"] == float(bool(response))


def test_a_minus_sign_needs_no_equals_sign(adjudge: Adjudge, toys: str) -> None:
    words = ("score", "--response", "-x+1", "--reference", r"-\frac{1}{2}", "--scorer", f"{toys}:Toy", "--json")
    assert adjudge(*words).json["value"] == 0.0


def test_the_response_can_come_from_standard_input(
    adjudge: Adjudge, toys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Paris"))
    words = ("score", "--response", "-", "--reference", "Paris", "--scorer", f"{toys}:Toy", "--json")
    assert adjudge(*words).json["value"] == 1.0


def test_a_reference_as_json(adjudge: Adjudge, toys: str) -> None:
    words = ("score", "--response", "Paris", "--reference-json", json.dumps(["Paris"]), "--scorer", f"{toys}:Toy")
    ran = adjudge(*words)
    assert ran.code == exits.USER
    assert "not ['Paris']" in ran.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--reference", "x", "--reference-json", "1"), "give one of them"),
        (("--reference-json", "{x"), "is not JSON"),
        (
            ("--reference", '{"test": []}', "--scorer", "code"),
            "give the object itself (adjudge score: --reference-json)",
        ),
        (("--scorer", "exact"), "has none"),
        ((), 'scorer="auto" chooses by the reference'),
        (("--reference", "x", "--scorer", "exat"), "did you mean 'exact'"),
    ],
)
def test_mistakes_are_told(adjudge: Adjudge, words: tuple[str, ...], says: str) -> None:
    ran = adjudge("score", "--response", "x", *words)
    assert ran.code == exits.USER
    assert says in ran.err
    assert ran.out == ""


def test_everything_a_score_holds_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    print_score(
        Score(
            value=0.25,
            reason="wrong",
            parts={"math": Score.scored(0.0, "no_answer"), "style": Score.failed("closed")},
            evidence={"answer": "\x1b[2J", "nothing": None},
            uncertainty=0.5,
            steps=(StepScore(value=1.0), StepScore(value=None)),
        )
    )
    lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    shown = {name: text.strip() for name, text in lines.items()}
    assert shown["value"] == "0.25"
    assert shown["reason"] == "wrong: the answer was understood and is not the reference"
    assert shown["answer"] == "\\x1b[2J"
    assert shown["part math"] == "0 (no_answer)"
    assert shown["part style"] == "failed (closed)"
    assert shown["steps"] == "[1.0, null]"
    assert "nothing" not in shown
