"""The value of a patch: numbers counted by hand, the released code's faults, references, options, hostile inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.verifiers.code.patches.responses import written

from adjudge import check_scorer
from adjudge.protocol import Sample, Score
from adjudge.verifiers.code.patches import similarity
from adjudge.verifiers.code.patches.similarity import LinearMatcher
from adjudge.verifiers.code.patches.verifier import PatchVerifier

FILES = {"a.py": "a\nb\nc\n", "b.py": "one\n"}
GOLD = {"files": FILES, "after": {"a.py": "a\nx\nc\n"}}
# "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c" has 15 + 4 * 3 = 27 characters
DIFF = "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c"


def verify(response: str, reference: Any = GOLD, **options: Any) -> Score:
    return PatchVerifier(**options).verify(Sample(prompt="", response=response, reference=reference))


def edits(*given: tuple[str, str, str]) -> str:
    return written(list(given), "I think.")


def test_the_diff_is_as_counted() -> None:
    assert similarity.gold_diffs(FILES, GOLD["after"]) == {"a.py": DIFF}
    assert len(DIFF) == 27


@pytest.mark.parametrize(
    ("response", "value"),
    [
        (edits(("a.py", "b", "x")), 1.0),
        # all but one of 27 characters match on both sides
        (edits(("a.py", "b", "y")), 2 * 26 / (27 + 27)),
        # the gold change, and a file that the gold one leaves alone: (1 + 0) / 2
        (edits(("a.py", "b", "x"), ("b.py", "one", "two")), 0.5),
        # a file that the gold change alone touches, and one that the response alone touches
        (edits(("b.py", "one", "two")), 0.0),
        (edits(("a.py", "b", "y"), ("new.py", "", "x")), 26 / 27 / 2),
        # its diff has 30 characters: a line "+y" more, and +1,4 for +1,3; all others of the gold one's 27 match
        (edits(("a.py", "b", "x\ny")), 2 * 26 / (27 + 30)),
    ],
)
def test_values_counted_by_hand(response: str, value: float) -> None:
    score = verify(response)
    assert score.value == pytest.approx(value, abs=1e-12)
    assert score.reason == ("" if value == 1.0 else "wrong")


def test_a_response_out_of_form_has_the_lowest_value_of_the_scale() -> None:
    assert (verify("hello").value, verify("hello", scale="unit").value) == (-1.0, 0.0)
    half = verify(edits(("a.py", "b", "y")), scale="unit").value
    assert half == verify(edits(("a.py", "b", "y"))).value
    assert PatchVerifier().killed(Sample(prompt="", response=""), "candidate_timeout").value == -1.0


def test_a_file_that_neither_side_changes_does_not_count() -> None:
    reference = {"files": FILES, "after": {"a.py": "a\nx\nc\n", "b.py": "one\n"}}
    assert verify(edits(("a.py", "b", "y")), reference).value == pytest.approx(26 / 27)
    padded = edits(("a.py", "b", "y"), ("b.py", "one", "two"), ("b.py", "two", "one"))
    assert verify(padded, reference).value == pytest.approx(26 / 27)


def test_released_fault_no_change_on_either_side_is_an_assertion_error() -> None:
    same = {"files": FILES, "after": {"a.py": FILES["a.py"]}}
    score = verify(edits(("a.py", "b", "x"), ("a.py", "x", "b")), same)
    assert (score.status, score.reason) == ("failed", "gold_unparsable")
    assert verify(edits(("a.py", "b", "x"), ("a.py", "x", "b"))).value == 0.0


def test_released_fault_tags_are_counted_and_not_ordered() -> None:
    good = edits(("a.py", "b", "x"))
    thought, _, rest = good.partition("<solution>")
    for response in (f"<solution>{rest}{thought}", good.replace("<think>", "").replace("</think>", "</think><think>")):
        assert all(response.count(tag) == 1 for tag in ("<think>", "</think>", "<solution>", "</solution>"))
        assert verify(response).reason == "bad_format"


def test_released_fault_a_megabyte_stops_a_worker_for_hours() -> None:
    text = "\n".join("xyz"[n % 3] * 7 for n in range(100_000))
    assert verify(edits(("a.py", "b", text))).reason == "too_complex"
    assert verify("<think>x</think><solution>" + "x" * (1 << 20)).reason == "too_complex"
    lines = "".join(f"{n % 150}\n" for n in range(40_000))
    reference = {"files": {"a.py": f"{lines}end\n"}, "after": {"a.py": f"{lines}END\n"}}
    assert verify(edits(("a.py", "end", "END")), reference).value == 1.0
    assert verify(edits(("a.py", "end", "fin")), reference).value == pytest.approx(0.92, abs=0.05)


def test_too_much_work_is_the_fault_of_whose_text_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Impatient(LinearMatcher):
        def __init__(self, a: Any, b: Any, *, autojunk: bool) -> None:
            super().__init__(a, b, autojunk=autojunk, work=60)

    monkeypatch.setattr(similarity, "LinearMatcher", Impatient)
    score = verify(edits(("a.py", "b", "\n".join("abcdefghijklmnopqrstuvwxyz"))))
    assert (score.value, score.reason) == (-1.0, "too_complex")
    big = {"files": {"a.py": "a\nb\n" * 50}, "after": {"a.py": "c\na\n" * 50}}
    assert (verify("", big).status, verify("", big).reason) == ("failed", "gold_timeout")


@pytest.mark.parametrize(
    "change",
    [
        {"patch": "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"},
        {"edits": [{"path": "a.py", "search": "b", "replace": "x"}]},
        {"after": {"a.py": "a\nx\nc\n"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_three_forms_of_a_reference_say_the_same(change: Mapping[str, Any]) -> None:
    assert verify(edits(("a.py", "b", "y")), {"files": FILES, **change}).value == pytest.approx(26 / 27)


def test_a_deleted_file_is_one_with_nothing_left() -> None:
    reference = {"files": FILES, "after": {"b.py": None}}
    response = "<think>x</think><solution>```\n### b.py\n<<<<<<< SEARCH\none\n=======\n>>>>>>> REPLACE\n```</solution>"
    assert verify(response, reference).value == 1.0


@pytest.mark.parametrize(
    "reference",
    [
        None,
        "text",
        {"after": {}},
        {"files": FILES},
        {"files": FILES, "after": {}, "patch": ""},
        {"files": FILES, "patch": 3},
        {"files": FILES, "after": {3: None}},
        {"files": FILES, "edits": []},
        {"files": FILES, "edits": [{"path": "a.py"}]},
        {"files": FILES, "edits": [{"path": "a.py", "search": 1, "replace": "x"}]},
        {"files": ["a.py"], "after": {"a.py": ""}},
        {"files": {"a.py": b"bytes"}, "after": {"a.py": ""}},
        {**GOLD, "tests": {}},
    ],
)
def test_a_reference_of_the_wrong_shape_is_a_mistake(reference: Any) -> None:
    with pytest.raises(ValueError, match="patch"):
        PatchVerifier().validate(Sample(prompt="", response="", reference=reference, id="s1"))
    if reference is not None:
        assert verify("", reference).reason == "gold_unparsable"


@pytest.mark.parametrize(
    "change",
    [
        {"patch": "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-z\n+x\n"},
        {"edits": [{"path": "a.py", "search": "zzz", "replace": "x"}]},
        {"after": {"../a.py": "x"}},
        {"after": {}},
        {"after": {"a.py": "a\nb\nc"}},
    ],
)
def test_a_change_that_cannot_be_applied_or_changes_nothing_is_the_golds_fault(change: Mapping[str, Any]) -> None:
    sample = Sample(prompt="", response="", reference={"files": FILES, **change})
    PatchVerifier().validate(sample)
    assert PatchVerifier().verify(sample).reason == "gold_unparsable"


@pytest.mark.parametrize(
    "options",
    [{"scale": "wide"}, {"matching": "fuzzy"}, {"thought": "maybe"}, {"think_tag": "<t>"}, {"solution_tag": "think"}],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        PatchVerifier(**options)


def test_tags_and_the_need_to_think_are_options() -> None:
    good = edits(("a.py", "b", "x"))
    renamed = good.replace("think>", "thought>").replace("solution>", "answer>")
    assert verify(renamed, think_tag="thought", solution_tag="answer").value == 1.0
    _, _, opened = good.partition("<think>")
    assert (verify(opened).value, verify(opened, thought="opened").value) == (-1.0, 1.0)
    assert verify(good, thought="opened").value == -1.0
    bare = good[good.index("<solution>") :]
    assert (verify(bare).value, verify(bare, thought="optional").value) == (-1.0, 1.0)


def test_a_response_that_was_cut_off_is_told_from_one_out_of_form() -> None:
    cut = Sample(prompt="", response=edits(("a.py", "b", "x"))[:-20], reference=GOLD, finish_reason="length")
    assert PatchVerifier().verify(cut).reason == "truncated"
    whole = Sample(prompt="", response=edits(("a.py", "b", "x")), reference=GOLD, finish_reason="length")
    assert PatchVerifier().verify(whole).value == 1.0


PIECES = ["<think>", "</think>", "<solution>", "</solution>", "x", *written([("a.py", "b", "y")], "").split("\n")[3:-1]]


@settings(max_examples=50)
@given(st.lists(st.sampled_from(PIECES), max_size=16))
def test_any_response_has_a_value(pieces: list[str]) -> None:
    value = verify("\n".join(pieces)).value
    assert value in (-1.0, pytest.approx(26 / 27))


def test_the_verifier_conforms() -> None:
    samples = [
        Sample(prompt="", response=edits(("a.py", "b", text)), reference=GOLD) for text in ("x", "y", "b", "x\ny")
    ]
    check_scorer(PatchVerifier(), [*samples, Sample(prompt="", response="", reference=GOLD)]).raise_for_failures()
