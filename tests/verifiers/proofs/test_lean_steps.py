"""Steps of a proof: the lines before Lean's first error, and the one it is in."""

from __future__ import annotations

from typing import Any

import pytest
from tests.verifiers.proofs.lean_answers import REFERENCE, answers, asked, honest, kimina, server, told

from adjudge.verifiers.proofs.lean_source import lean_file, read_lean, read_messages, verdict

MANY = """by
  have h : 1 = 1 := by
    rfl
  rw [Nat.add_comm,
    Nat.zero_add]
  -- so much for that
  exact rfl"""
TOP = "import Init\nopen Nat\n\n"
WHOLE = f"theorem t (n : Nat) :\n    n + 0 = n := {MANY}"


@pytest.mark.parametrize(
    ("response", "before"),
    [
        (MANY, ""),
        (MANY[3:], ""),
        (WHOLE, WHOLE.removesuffix(MANY)),
        (f"Thus:\n```lean\n{WHOLE}\n\n```\n", WHOLE.removesuffix(MANY)),
        (f"<think>{WHOLE}</think>{TOP}{WHOLE}  \n", f"{TOP}{WHOLE.removesuffix(MANY)}"),
    ],
)
@pytest.mark.parametrize(
    ("wrong", "accepted"),
    [
        ("rfl", 0),
        ("rw", 1),
        ("Nat.zero_add", 1),
        ("exact", 2),
        ("", 3),
    ],
)
def test_steps_are_lines_up_to_the_first_error(response: str, before: str, wrong: str, accepted: int) -> None:
    pieces = [
        "  have h : 1 = 1 := by\n    rfl",
        "  rw [Nat.add_comm,\n    Nat.zero_add]",
        "  -- so much for that\n  exact rfl",
    ]
    pieces[0] = f"{before}by\n{pieces[0]}" if "by\n  have" in response else pieces[0]

    def judge(source: str) -> dict[str, Any]:
        said = [told("error", "unsolved goals\n⊢ False", 1)]
        if wrong and "checked_" in source:
            at = max(number for number, line in enumerate(source.split("\n"), 1) if line.strip().startswith(wrong))
            said = [told("error", "linarith failed", at), told("error", "linarith failed", at + 1)]
        return {"response": {"messages": answers(source, of_response=said if "checked_" in source else [])}}

    with server(kimina(judge)) as (url, _):
        (score,) = asked(url, response)
    assert (score.value, score.reason) == (0.0, "candidate_error")
    said = [response[step.start : step.end] for step in score.steps]
    assert [step.value for step in score.steps] == [1.0] * accepted + [0.0] * bool(wrong)
    assert said[:accepted] == pieces[:accepted]
    if wrong:
        assert pieces[accepted].startswith(said[-1])
        assert wrong in said[-1]


def test_every_line_of_a_proof_is_a_step_and_the_last_whatever_it_ends_with() -> None:
    with server(kimina(honest)) as (url, _):
        (right,) = asked(url, "by\n  show (n + 0 = n) -- (\n  exact rfl |> (")
    assert [step.value for step in right.steps] == [1.0, 1.0]
    file = lean_file(read_lean(REFERENCE), "by\n  rfl")
    said = read_messages([*answers(file.source), {"severity": "error", "data": "of no place"}])
    assert verdict(said, file, ()).steps == ()
