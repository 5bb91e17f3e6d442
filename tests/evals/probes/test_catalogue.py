"""What probes change, and what they leave alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.evals.probes.catalogue import FAST, PROBES, WORDING, ProbesConfig, chosen
from adjudge.evals.probes.changes import KINDS
from adjudge.evals.probes.probe import KEPT, Probe, ProbeRow, Variant
from adjudge.evals.probes.probing import read_probe_rows
from adjudge.evals.probes.row_file import shipped_names
from adjudge.evals.probes.texts import MASTER_KEYS

BY_NAME = {probe.name: probe for probe in PROBES}


def rows_of(name: str) -> tuple[ProbeRow, ...]:
    return read_probe_rows(ProbesConfig(input=f"rows:{name}")).rows


ROWS = {name: rows_of(name) for name in shipped_names()}


def made(name: str, row: ProbeRow, seed: int = 0) -> list[Variant]:
    return BY_NAME[name].variants(row, Random(seed))


def text_row(good: str, **more: object) -> ProbeRow:
    return ProbeRow(id="r", prompt="What is it?", good=good, **more)  # type: ignore[arg-type]


def test_names_differ_and_every_probe_says_what_it_is() -> None:
    assert len(BY_NAME) == len(PROBES) >= 55
    for probe in PROBES:
        assert probe.says, probe.name
        assert probe.source, probe.name
        assert probe.means[0].islower(), probe.name
        assert "\n" not in probe.says + probe.means + probe.needs
    assert {probe.name for probe in FAST} >= {"master_keys", "empty", "injection", "digit", "cut", "null_model"}


def test_the_page_lists_every_probe_and_every_set_of_rows(root: Path) -> None:
    page = (root / "docs" / "probes.md").read_text(encoding="utf-8")
    for probe in PROBES:
        assert f"| `{probe.name}` | " in page, probe.name
    for name in shipped_names():
        assert f"`{name}`" in page, name


def test_every_probe_fits_some_row_that_is_shipped_or_given() -> None:
    given_row = text_row("As it is.", bad="No.", equals=dict.fromkeys(KINDS, "Thus."))
    marked = text_row("# Head\n\nSome **bold** words that stand here.", bad="x")
    units = text_row("The answer is 5 cm.", reference="5 cm")
    rows = [*(row for rows in ROWS.values() for row in rows), given_row, marked, units]
    for probe in PROBES:
        assert any(probe.variants(row, Random(0)) for row in rows), probe.name


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_variants_are_changed_repeatable_and_of_what_is_there(probe: Probe) -> None:
    for row in (row for rows in ROWS.values() for row in rows[:4]):
        variants = probe.variants(row, Random(1))
        assert variants == probe.variants(row, Random(1))
        for one in variants:
            assert one.of == "good" or row.bad is not None
            changed = one.response != (row.good if one.of == "good" else row.bad)
            told = one.prompt is not None or one.finish_reason is not None or one.turned
            assert changed or told or probe.rule in ("worthless", "mirrored")
            assert len(one.response) < 20_000


@given(st.text(max_size=300), st.text(min_size=1, max_size=20), st.text(max_size=200))
def test_no_text_breaks_a_probe(good: str, gold: str, bad: str) -> None:
    if not good.strip():
        return
    row = text_row(good, bad=bad, reference=gold, other=bad)
    for probe in PROBES:
        probe.variants(row, Random(0))


@pytest.mark.parametrize("domain", ["code", "verdict"])
@given(text=st.text(min_size=1, max_size=300))
def test_no_program_breaks_a_probe(domain: str, text: str) -> None:
    if text.strip():
        for response in (text, f"```python\n{text}\n```"):
            row = text_row(response, bad=text, domain=domain)
            for probe in PROBES:
                probe.variants(row, Random(0))


def test_the_published_keys_are_all_there() -> None:
    assert [one.response for one in made("master_keys", ROWS["math"][0])] == list(MASTER_KEYS)
    assert len(MASTER_KEYS) == 10


@pytest.mark.parametrize("probe", WORDING, ids=lambda probe: probe.name)
def test_wording_leaves_answers_mathematics_and_numbers_alone(probe: Probe) -> None:
    row = text_row(
        "The value of \\(x_{long}\\) is `some code` and $alpha$ gives Oslo twice: Oslo, then **42nd** place.\n"
        "```\nsome code\n```\nFinally \\boxed{Oslo} and https://example.org/some/page remains.",
        reference="Oslo",
        bad="The other town is surely Bergen, since nothing else would stand here.",
    )
    variants = probe.variants(row, Random(3))
    assert variants
    for one in variants:
        for kept in ("\\(x_{long}\\)", "`some code`", "$alpha$", "\n```\nsome code\n```", "\\boxed{Oslo}", "42"):
            assert kept in one.response
        assert len(re.findall(r"\bOslo\b", one.response)) == 3
        assert "https://example.org/some/page" in one.response
        assert one.partner is not None


def test_letter_noise_changes_few_words_by_one_letter() -> None:
    text = "alpha bravo charlie delta echoes foxtrot golfer hotels indigo juliet"
    (one,) = made("deleted_letters", text_row(text))
    before, after = text.split(), one.response.split()
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert len(changed) == round(0.15 * len(before))
    assert all(len(new) == len(old) - 1 for old, new in changed)


@pytest.mark.parametrize(
    ("name", "good", "reference", "wanted"),
    [
        ("digit", "We get 12, so the answer is 42.", "42", "We get 12, so the answer is 43."),
        ("digit", "There are 42 of 420.", "42", "There are 43 of 420."),
        ("digit", "It holds 7 litres.", None, "It holds 8 litres."),
        ("digit", "7", None, "8"),
        ("digit", "1. Count them.\n2. They are 7.", None, "1. Count them.\n2. They are 8."),
        ("sign", "The answer is 42.", "42", "The answer is -42."),
        ("sign", "The answer is -42.", "-42", "The answer is 42."),
        ("operator", "Thus x + 1", "x + 1", "Thus x - 1"),
        ("unit", "It is 5 cm long.", "5 cm", "It is 5 m long."),
        ("unit", "It takes 3 hours.", None, "It takes 3 minutes."),
        ("negation", "The answer is yes.", "yes", "The answer is no."),
        ("negation", "True", "True", "False"),
        ("negation", "Tea is warm. Ice is cold.", None, "Tea is warm. Ice is not cold."),
    ],
)
def test_a_small_change_makes_it_wrong(name: str, good: str, reference: str | None, wanted: str) -> None:
    (one,) = made(name, text_row(good, reference=reference))
    assert one.response == wanted


@pytest.mark.parametrize(
    ("name", "good", "reference"),
    [
        ("digit", "It is Oslo.", "Oslo"),
        ("digit", "See 12 there: it is Oslo.", "Oslo"),  # only the answer is changed where it is known
        ("digit", "It is 5.", ["5", "6"]),  # 6 is right, too
        ("digit", "Take these:\n1. a cup\n2) tea", None),  # numbers that count items
        ("sign", "It is Oslo.", "Oslo"),
        ("sign", "It is 0.", "0"),
        ("operator", "It is 1.", "1"),
        ("unit", "It is 5.", "5"),
        ("negation", "It is Oslo.", "Oslo"),
        ("digit", "```python\nx = 1\n```", {"tests": ["assert x"]}),
    ],
)
def test_what_would_stay_right_is_not_changed(name: str, good: str, reference: object) -> None:
    domain = "code" if good.startswith("```") else "text"
    assert made(name, text_row(good, reference=reference, domain=domain)) == []


@pytest.mark.parametrize(
    ("good", "refuses"),
    [
        ("I'm sorry, but I can't help with that.", True),
        ("I cannot assist with this request.", True),
        ("As an AI, I have no body.", True),
        ("I am really not able to do that.", True),
        ("I can see why: it is 4.", False),
        ("Sorry to hear that! Rest, and drink tea.", False),
    ],
)
def test_a_refusal_is_no_worthless_answer_where_the_good_response_is_one(good: str, refuses: bool) -> None:
    assert (made("refusal", text_row(good)) == []) is refuses


def test_a_cut_response_never_holds_its_answer() -> None:
    row = text_row("First we look at the many sides of it. It is 42. Some words of farewell follow.", reference="42")
    variants = made("cut", row)
    assert variants
    for one in variants:
        assert "42" not in one.response
        assert one.finish_reason == "length"
    assert made("cut", text_row("42", reference="42")) == []


@pytest.mark.parametrize("answer", ['{"names": ["Eric", "Arnold"]}', "Some Words\nIn Lines\nOf Their Own", "DRRD"])
def test_a_marked_answer_stays_as_it_is_whatever_the_reference_holds(answer: str) -> None:
    marked = f"<answer>\n{answer}\n</answer>"
    row = text_row(
        f"Think about the question first.\n\nThen look again.\n\nThat gives {marked}\n\nThere it ends.",
        bad="No idea.\nNone at all.",
        reference={"grid": answer},
    )
    tried = [one for probe in PROBES if probe.rule in ("same", "order") for one in made(probe.name, row)]
    assert {"dressed", "rot_13", "homoglyphs"} <= {
        probe.name for probe in PROBES if any(one.response != row.good for one in made(probe.name, row))
    }
    assert all(marked in one.response for one in tried)


def test_answers_without_an_end_are_found_in_linear_time() -> None:
    text = "<answer> words " * 20_000
    assert len(made("homoglyphs", text_row(text, reference="7"))) == 1


def test_programs_are_rewritten_without_changing_what_they_do() -> None:
    for row in ROWS["code"]:
        for name in ("minified", "comment_bad", "other_code"):
            (one,) = made(name, row)
            old, new = (
                ast.dump(ast.parse(text.removeprefix("```python\n").removesuffix("```")))
                for text in (row.good, one.response)
            )
            assert name == "other_code" or old == new
    (one,) = made("minified", ROWS["code"][0])
    assert one.response == "```python\ndef add(a, b):\n return a + b\n```"
    assert made("minified", text_row("```python\ndef broken(:\n```", domain="code")) == []
    assert made("minified", text_row("```sql\nSELECT 1\n```", domain="code")) == []


def test_options_move_with_their_answer() -> None:
    row = ROWS["choice"][0]
    before = row.reference["choices"]["ABCD".index(row.reference["answer"])]
    for one in made("relabelled", row):
        assert one.reference is not KEPT
        place = "ABCD".index(one.reference["answer"])
        assert one.reference["choices"][place] == before
        assert one.response.endswith(one.reference["answer"])
        assert one.reference["answer"] != row.reference["answer"]
        assert f"{one.reference['answer']}. {before}" in str(one.prompt)


def test_an_injection_that_gives_the_answer_is_an_answer_and_left_out() -> None:
    row = text_row("The answer is A.", bad="The answer is B.", reference="A")
    assert not any(re.search(r"\bA\b", one.response) for one in made("injection", row))
    assert any("[[B]]" in one.response for one in made("injection", row))
    ten = text_row("It is 10.", reference="10")
    closings = {one.how for one in made("null_model", ten)}
    assert closings == {"a triple quote"}  # the others say that the score is 10


def test_chats_keep_their_turns() -> None:
    prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is it?"}]
    row = ProbeRow(id="r", prompt=prompt, good="It is here.", bad="It is there.")
    (one,) = made("twitter_url", row)
    assert isinstance(one.prompt, list)
    assert one.prompt[0] == prompt[0]
    assert str(one.prompt[1]["content"]).startswith("What is it? https://t.co/")
    assert prompt[1]["content"] == "What is it?"


@pytest.mark.parametrize(
    ("only", "skip", "says"),
    [
        (("master_key",), (), "did you mean 'master_keys'"),
        ((), ("nothing_like_it_at_all",), "there are master_keys"),
        (("empty",), ("empty",), "no probe is left"),
    ],
)
def test_unknown_probes_are_told(only: tuple[str, ...], skip: tuple[str, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        chosen(only, skip)


def test_probes_are_chosen_in_order() -> None:
    assert [probe.name for probe in chosen(("digit", "empty"))] == ["empty", "digit"]
