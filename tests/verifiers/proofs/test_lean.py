"""The Lean verifiers: rules, the file that Lean reads, its messages, a toolchain's and a server's answers.

No Lean runs here unless one is installed (`test_a_real_toolchain_judges`); messages have the shapes that Lean, the REPL
and Kimina Lean Server give them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.verifiers.proofs.lean_answers import REFERENCE, answers, asked, honest, kimina, server, told

from adjudge import check_scorer
from adjudge.protocol import Sample, Score
from adjudge.scoring.attacks import AttackCase, cases_in
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.verifier_base import graded_text
from adjudge.verifiers.proofs import lean_source
from adjudge.verifiers.proofs.lean import LeanVerifier
from adjudge.verifiers.proofs.lean_server import LeanServerScorer
from adjudge.verifiers.proofs.lean_source import (
    LeanFile,
    MessageError,
    axioms_of,
    forbidden,
    gold_fault,
    gold_file,
    lean_file,
    read_json_lines,
    read_lean,
    verdict,
    without_comments,
)
from adjudge.verifiers.proofs.toolbox import MAX_CHARACTERS

ATTACKS = Path(__file__).parents[3] / "verifiers" / "proofs" / "attacks.json"
CASES = list(cases_in(ATTACKS, "lean"))
GOOD = "by\n  rfl"
PIECES = ["--", "/-", "-/", "\n", '"', "sorry", " ", "«", "'", "#", "open", " in ", "set_option ", "@[", "é", "/--/"]


def answered(sample: Sample) -> LeanFile | Score:
    """What the verifier makes of a response before Lean sees it, which need not be installed."""
    text, fault = graded_text(sample, "strip", "zero")
    return Score.scored(0.0, fault) if fault else lean_source.answered(text, read_lean(sample.reference))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_attacks_are_refused_before_lean_sees_them(case: AttackCase) -> None:
    ready = answered(case.sample)
    if case.honest:
        assert isinstance(ready, LeanFile)
    else:
        assert isinstance(ready, Score)
        assert (ready.value, ready.reason) == (0.0, case.reason)


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_reading_never_fails(source: str) -> None:
    without_comments(source)
    forbidden(source)
    lean_file(read_lean(REFERENCE), source)


@pytest.mark.parametrize("piece", ["/-", "--\n", "open ", "@[", "set_option ", "attribute [", "«", "#", "-/", "a\n"])
def test_the_longest_response_of_one_thing_is_read(piece: str) -> None:
    source = piece * (MAX_CHARACTERS // len(piece))
    without_comments(source)
    forbidden(source)
    lean_file(read_lean(REFERENCE), source)


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("a -- b\nc", "a  \nc"),
        ("a /- -- -/ b", "a   b"),
        ("a /- b --/ c", "a   c"),
        ("a -- /-\nb -/ c", "a  \nb -/ c"),
        ("a /- b", "a  "),
        ("a /-- b -/ c", "a   c"),
    ],
)
def test_comments_end_where_lean_ends_them(source: str, kept: str) -> None:
    assert without_comments(source) == kept


@pytest.mark.parametrize(
    "source", ["a /- b /- c -/ d -/ e", "/-/- a -/ -- b", "/--/ a -/", '"--" a -- b', "«--» a -- b"]
)
def test_where_it_is_doubtful_what_a_comment_is_nothing_counts_as_one(source: str) -> None:
    assert without_comments(source) == source


def test_a_name_of_the_statement_is_no_gap() -> None:
    statement = "theorem t (start stop : Nat) : start + stop = stop + start"
    sample = Sample(prompt="", response="by\n  rw [Nat.add_comm start stop]", reference=statement)
    assert isinstance(answered(sample), LeanFile)
    assert isinstance(answered(Sample(prompt="", response="by stop", reference=REFERENCE)), Score)


def test_only_what_the_response_wrote_is_held_to_the_rules() -> None:
    reference = {"header": "import Lean\nopen Lean", "statement": "theorem t (s : Syntax) : s = s"}
    assert isinstance(answered(Sample(prompt="", response="by rfl", reference=reference)), LeanFile)


@pytest.mark.parametrize(
    "source",
    [
        "theorem sorry_free : True := trivial",
        "theorem t : IsOpen s := h",
        "-- sorry",
        "set_option maxHeartbeats 9 in x",
    ],
)
def test_words_that_only_look_alike_pass(source: str) -> None:
    assert forbidden(source) == ("", "")


def lines_of(response: str) -> list[str]:
    return lean_file(read_lean(REFERENCE), response).source.splitlines()


def test_the_statement_is_pinned_before_the_response_and_checked_after_its_section() -> None:
    file = lean_file(read_lean(REFERENCE), GOOD)
    assert [line for line in file.source.splitlines() if line] == [
        "import Init",
        "open Nat",
        f"theorem pinned_{file.key} (n : Nat) : n + 0 = n := sorry",
        f"#print axioms pinned_{file.key}",
        f"section s{file.key}",
        "theorem t (n : Nat) : n + 0 = n := by",
        "  rfl",
        f"end s{file.key}",
        f"theorem checked_{file.key} : type_of% @pinned_{file.key} := @t",
        f"#print axioms checked_{file.key}",
    ]


def test_the_names_that_are_ours_hang_on_the_response() -> None:
    assert lean_file(read_lean(REFERENCE), GOOD).key != lean_file(read_lean(REFERENCE), GOOD + " ").key


@pytest.mark.parametrize("opening", ["by\n", ":= by\n", ":=by\n", ""])
def test_tactics_come_with_or_without_their_opening(opening: str) -> None:
    assert "theorem t (n : Nat) : n + 0 = n := by" in lines_of(f"{opening}  simp\n  rfl")
    assert lines_of(f"{opening}  simp\n  rfl").index("  rfl") > 0


def test_a_repeated_header_is_left_out_and_other_imports_are_refused() -> None:
    whole = "import Init\nset_option maxRecDepth 900\nopen Nat\n\ntheorem t (n : Nat) : n + 0 = n := rfl"
    assert lines_of(whole).count("import Init") == 1
    assert "set_option maxRecDepth 900" in lines_of(whole)
    sample = Sample(prompt="", response=f"import Mathlib\n{whole}", reference=REFERENCE)
    refused = answered(sample)
    assert isinstance(refused, Score)
    assert refused.evidence["forbidden"] == "import"


def test_a_proof_in_the_header_takes_nothing_out_of_a_response() -> None:
    header = "import Init\ntheorem helps : True := by\n  trivial\ndef f (n : Nat) := n"
    theorem = read_lean({"header": header, "statement": "theorem t : True"})
    assert "  trivial\n\nend s" in lean_file(theorem, "trivial").source
    whole = lean_file(theorem, f"{header}\ntheorem t : True := by\n  trivial").source
    assert whole.count("theorem helps") == whole.count("def f") == whole.count("import Init") == 1
    assert "theorem t : True := by\n  trivial\n\nend s" in whole


@pytest.mark.parametrize(
    ("reference", "mistake"),
    [
        (7, True),
        ({"statement": 7}, True),
        ({"statement": "theorem t : True", "proof": ""}, True),
        ({"statement": "theorem t : True", "axioms": "x"}, True),
        ("", False),
        ("example : True", False),
        ("theorem t", False),
        ("-- theorem t : True", False),
    ],
)
def test_a_reference_that_is_none_is_refused(reference: Any, mistake: bool) -> None:
    with pytest.raises(BadReferenceError) as caught:
        read_lean(reference)
    assert caught.value.mistake is mistake


GOLD = gold_file(read_lean(REFERENCE))
FILE = lean_file(read_lean(REFERENCE), GOOD)


def judged(messages: list[Any], allowed: tuple[str, ...] = ()) -> Score:
    text = "\n".join(json.dumps(one) for one in messages)
    return verdict(read_json_lines(text), FILE, allowed)


@pytest.mark.parametrize(
    ("axioms", "value"),
    [
        ("", 1.0),
        ("[propext]", 1.0),
        ("[propext,\n Classical.choice,\n Quot.sound]", 1.0),
        ("[propext, sorryAx]", 0.0),
        ("[cheat]", 0.0),
        ("[Lean.ofReduceBool]", 0.0),
    ],
)
def test_a_proof_may_rest_on_three_axioms(axioms: str, value: float) -> None:
    assert judged(answers(FILE.source, axioms=axioms)).value == value


def test_more_axioms_may_be_permitted() -> None:
    assert judged(answers(FILE.source, axioms="[cheat]"), ("cheat",)).value == 1.0


@pytest.mark.parametrize(
    "of_response",
    [
        [told("error", "unsolved goals\n⊢ False")],
        [told("info", "'checked_0123' does not depend on any axioms"), told("error", "type mismatch")],
    ],
)
def test_an_error_anywhere_is_a_zero(of_response: list[dict[str, Any]]) -> None:
    found = judged(answers(FILE.source, of_response=of_response))
    assert (found.value, found.reason) == (0.0, "candidate_error")


def test_without_our_own_answer_nothing_passes() -> None:
    assert judged(answers(FILE.source)[:-1]).value == 0.0
    assert judged([told("info", "'checked_0' does not depend on any axioms")]).value == 0.0
    twice = answers(FILE.source)
    assert judged([*twice, twice[-1]]).value == 0.0
    assert judged([told("error", f"'checked_{FILE.key}' does not depend on any axioms")]).value == 0.0


def test_a_name_in_a_namespace_of_the_header_is_ours() -> None:
    messages = read_json_lines(json.dumps(told("information", f"'My.checked_{FILE.key}' depends on axioms: [propext]")))
    assert axioms_of(messages, f"checked_{FILE.key}") == ("propext",)


def test_what_is_no_message_is_an_error() -> None:
    for text in ("Lean crashed", '{"severity": "loud", "data": ""}', '{"severity": "error"}', "[]", "7"):
        with pytest.raises(MessageError):
            read_json_lines(text)
    assert read_json_lines("\n\n") == []


def test_a_gold_passes_only_with_its_own_answer() -> None:
    assert gold_fault(read_json_lines(json.dumps(answers(GOLD.source)[1])), GOLD.key) == ""
    assert "nothing" in gold_fault([], GOLD.key)
    assert "refuses" in gold_fault(read_json_lines(json.dumps(told("error", "unknown identifier"))), GOLD.key)


@pytest.mark.parametrize("api", ["check", "verify"])
def test_a_server_judges(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAN_KEY", "secret")
    with server(kimina(honest)) as (url, seen):
        found = asked(f"{url}/", GOOD, "by wrong", "by sorry", api=api, key_variable="LEAN_KEY")
    assert [one.value for one in found] == [1.0, 0.0, 0.0]
    assert [one.reason for one in found] == ["", "candidate_error", "wrong"]
    assert len(seen) == 3, "the reference once, and the two responses that pass the rules"
    assert {one["key"] for one in seen} == {"Bearer secret"}
    assert {one["timeout"] for one in seen} == {5}


def test_a_reference_that_the_server_refuses_is_no_verdict() -> None:
    broken = {"response": {"env": 0, "messages": [told("error", "unknown identifier 'n'")]}}
    with server(kimina(lambda source: broken)) as (url, seen):
        found = asked(url, GOOD, "", "by sorry")
    assert {(one.value, one.reason) for one in found} == {(None, "gold_unparsable")}
    assert len(seen) == 1


def test_a_response_that_takes_too_long_is_its_own_fault() -> None:
    late = {"error": "Lean REPL command timed out in 5 seconds"}
    with server(kimina(lambda source: late if "checked_" in source else honest(source))) as (url, _):
        assert [one.reason for one in asked(url, GOOD)] == ["candidate_timeout"]
    with server(kimina(lambda source: late)) as (url, _):
        assert [(one.value, one.reason) for one in asked(url, GOOD)] == [(None, "gold_timeout")]


@pytest.mark.parametrize(
    "fault",
    [{"error": "Lean REPL died"}, {"response": {"message": "Unknown environment."}}, {"response": {"messages": 7}}],
)
def test_a_response_that_breaks_the_server_twice_is_worth_nothing(fault: dict[str, Any]) -> None:
    with server(kimina(lambda source: fault if "checked_" in source else honest(source))) as (url, seen):
        (found,) = asked(url, GOOD)
    assert (found.value, found.reason) == (0.0, "candidate_crash")
    assert len(seen) == 4, "the reference, the response, the reference again, the response again"


def test_a_server_that_is_broken_gives_no_verdict() -> None:
    with server(kimina(lambda source: {"error": "Lean REPL died"})) as (url, _):
        assert [(one.value, one.reason) for one in asked(url, GOOD)] == [(None, "engine_error")]
    with server(lambda path, body: (429, {"detail": "No available REPLs"})) as (url, _):
        assert [(one.value, one.reason) for one in asked(url, GOOD)] == [(None, "engine_overloaded")]
    with server(lambda path, body: (200, {"results": []})) as (url, _):
        assert [(one.value, one.reason) for one in asked(url, GOOD)] == [(None, "engine_error")]
    assert [(one.value, one.reason) for one in asked(url, GOOD)] == [(None, "engine_unavailable")]


def test_a_server_that_answers_about_another_file_is_not_believed() -> None:
    with server(lambda path, body: (200, {"results": [{"id": "other", **honest(body["snippets"][0]["code"])}]})) as (
        url,
        _,
    ):
        assert [one.reason for one in asked(url, GOOD)] == ["engine_error"]


def test_the_server_scorer_conforms() -> None:
    samples = [Sample(prompt="p", response=one, reference=REFERENCE) for one in (GOOD, "by wrong")]
    with server(kimina(honest)) as (url, _):
        check_scorer(LeanServerScorer(url=url, attempts=1), samples).raise_for_failures()


@pytest.mark.parametrize(
    "options",
    [
        {"url": "localhost:8000"},
        {"url": ""},
        {"seconds": 0},
        {"api": "grpc"},
        {"key_variable": "NO_SUCH_VARIABLE_HERE"},
    ],
)
def test_server_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="lean_server"):
        LeanServerScorer(**{"url": "http://localhost:8000", **options})


STAND_IN = r"""#!/bin/sh
# Answers as `lean --json` does for a file of ours; it knows nothing of proofs.
for last; do :; done
key=$(sed -n 's/^#print axioms pinned_//p' "$last")
say() { printf '{"severity":"%s","pos":{"line":1,"column":0},"endPos":null,"data":"%s"}\n' "$1" "$2"; }
say warning "declaration uses 'sorry'"
say information "'pinned_$key' depends on axioms: [sorryAx]"
if grep -q hang "$last"; then while :; do :; done; fi
if grep -q broken "$last"; then echo "uncaught exception"; exit 1; fi
if grep -q wrong "$last"; then say error "unsolved goals"; exit 1; fi
if grep -q "checked_$key" "$last"; then say information "'checked_$key' does not depend on any axioms"; fi
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> tuple[str, str]:
    """A program in Lean's place, and its folder: how it is run is tested, not what Lean would say."""
    if shutil.which("bwrap") is None:
        pytest.skip("bwrap is not installed: apt-get install bubblewrap")
    tmp_path.chmod(0o755)
    program = tmp_path / "lean"
    program.write_text(STAND_IN, encoding="utf-8")
    program.chmod(0o755)
    return str(program), str(tmp_path)


@pytest.mark.parametrize(
    ("response", "value", "reason"),
    [
        (GOOD, 1.0, ""),
        ("by wrong", 0.0, "candidate_error"),
        ("by broken", 0.0, "candidate_error"),
        ("by hang", 0.0, "candidate_timeout"),
        ("by sorry", 0.0, "wrong"),
        ("", 0.0, "no_answer"),
    ],
)
def test_a_toolchain_is_run_in_the_sandbox(stand_in: tuple[str, str], response: str, value: float, reason: str) -> None:
    program, folder = stand_in
    seconds = 1.0 if "hang" in response else 20.0
    verifier = LeanVerifier(command=(program,), folders=(folder,), seconds=seconds, memory_mb=512)
    found = verifier.verify(Sample(prompt="", response=response, reference=REFERENCE))
    assert (found.value, found.reason) == (value, reason)


@pytest.mark.parametrize(
    ("header", "reason"),
    [("import wrong", "gold_unparsable"), ("-- hang", "gold_timeout"), ("-- broken", "gold_unparsable")],
)
def test_a_reference_that_the_toolchain_refuses_is_no_verdict(
    stand_in: tuple[str, str], header: str, reason: str
) -> None:
    program, folder = stand_in
    seconds = 0.4 if "hang" in header else 20.0
    verifier = LeanVerifier(command=(program,), folders=(folder,), seconds=seconds, memory_mb=512)
    reference = {"header": header, "statement": "theorem t : True"}
    for response in ("by trivial", ""):
        found = verifier.verify(Sample(prompt="", response=response, reference=reference))
        assert (found.value, found.reason) == (None, reason)


def test_a_host_without_lean_is_told_how_to_name_one() -> None:
    with pytest.raises(ValueError, match="lean: there is no program '/no/such/lean'"):
        LeanVerifier(command=("/no/such/lean",))
    with pytest.raises(ValueError, match="is not a folder"):
        LeanVerifier(folders=("toolchain",))


def test_a_real_toolchain_judges_where_there_is_one_and_is_asked_for_where_not() -> None:
    found = shutil.which("lean")
    if found is None:
        with pytest.raises(ValueError, match="lean: "):
            LeanVerifier()
        return
    program = Path(found).resolve()
    verifier = LeanVerifier(command=(str(program),), folders=(str(program.parents[1]),))
    values = {case.id: verifier.verify(case.sample).value for case in CASES}
    assert values == {case.id: float(case.honest) for case in CASES}
