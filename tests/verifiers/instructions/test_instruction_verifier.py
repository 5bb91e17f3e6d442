"""The scorer `instructions`: its options, its parts, its faults, and what it does with hostile text."""

from __future__ import annotations

import dataclasses
import json
import string
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adjudge.protocol import Sample
from adjudge.scoring.attacks import AttackCase, shipped_cases
from adjudge.scoring.compose.auto import auto_scorer
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.instructions.constraint import KINDS, Constraint
from adjudge.verifiers.instructions.verifier import InstructionVerifier, variants

WORDS: dict[str, Any] = {"kind": "length_constraints:number_words", "args": {"relation": "at least", "num_words": 3}}
NO_COMMA = {"kind": "punctuation:no_comma"}
TITLE = {"kind": "detectable_format:title", "args": {}}
ARGS: dict[str, dict[str, Any]] = {
    "keywords": {"phrases": ["cat"]}, "forbidden": {"phrases": ["dog"]}, "keyword_count": {"phrase": "cat", "min": 1},
    "starts_with": {"text": "a"}, "ends_with": {"text": "b"}, "final_mark": {"mark": "."}, "bullets": {"count": 2},
    "headings": {"level": 2, "min": 1}, "table": {"max": 2}, "language": {"language": "zh"}, "words": {"min": 2},
    "sentences": {"max": 2}, "paragraphs": {"min": 1}, "characters": {"max": 9}, "json_depth": {"max": 2},
    "xml_attributes": {"max": 1}, "heading_levels": {"min": 1}, "block_quotes": {"min": 1}, "table_limit": {"max": 1},
    "table_columns": {"max": 2}, "keywords:existence": {"keywords": ["cat"]},
    "keywords:frequency": {"keyword": "cat", "frequency": 2, "relation": "less than"},
    "keywords:forbidden_words": {"forbidden_words": ["dog"]},
    "keywords:letter_frequency": {"letter": "a", "let_frequency": 2, "let_relation": "at least"},
    "language:response_language": {"language": "de"},
    "length_constraints:number_sentences": {"num_sentences": 2, "relation": "at least"},
    "length_constraints:number_paragraphs": {"num_paragraphs": 2}, "length_constraints:number_words": WORDS["args"],
    "length_constraints:nth_paragraph_first_word": {"num_paragraphs": 2, "nth_paragraph": 1, "first_word": "a"},
    "detectable_content:number_placeholders": {"num_placeholders": 1},
    "detectable_content:postscript": {"postscript_marker": "P.P.S"},
    "detectable_format:number_bullet_lists": {"num_bullets": 1},
    "detectable_format:number_highlighted_sections": {"num_highlights": 1},
    "detectable_format:multiple_sections": {"section_spliter": "Section", "num_sections": 1},
    "combination:repeat_prompt": {"prompt_to_repeat": "a b"}, "startend:end_checker": {"end_phrase": "end"},
    "change_case:capital_word_frequency": {"capital_frequency": 1, "capital_relation": "at least"},
    "count:word_count_range": {"min_words": 1, "max_words": 9}, "count:unique_word_count": {"N": 2},
    "count:conjunctions": {"small_n": 1}, "count:person_names": {"N": 1}, "count:numbers": {"N": 1},
    "count:pronouns": {"N": 1}, "count:words_japanese": {"N": 2},
    "count:keywords_multiple": {f"keyword{n}": "abcde"[n - 1] for n in range(1, 6)},
    "ratio:stop_words": {"percentage": 50}, "ratio:overlap": {"reference_text": "a b c d", "percentage": 10},
    "words:repeats": {"small_n": 1}, "words:keywords_specific_position": {"keyword": "a", "n": 1, "m": 1},
    "words:words_position": {"keyword": "a"}, "sentence:keyword": {"word": "a", "N": 1},
    "sentence:increment": {"small_n": 1}, "repeat:repeat_change": {"prompt_to_repeat": "a b"},
    "repeat:repeat_span": {"prompt_to_repeat": "a b c", "n_start": 0, "n_end": 1},
    "format:options": {"options": "yes/no"}, "format:list": {"sep": "..."},
}  # fmt: skip
"""Arguments of each kind that has any."""

ALL = [Constraint(kind, ARGS.get(kind, {})) for kind in KINDS]
CASES = shipped_cases(InstructionVerifier(), Path())


ROW = {"instruction_id_list": ["en:punctuation:no_comma", "length_constraints:number_words"],
       "kwargs": [{"num_words": None}, {"num_words": 3.0, "relation": "at least", "keyword": None}]}  # fmt: skip


@pytest.mark.parametrize(
    "reference",
    [
        ROW,
        ROW | {"kwargs": json.dumps(ROW["kwargs"]), "key": 1000, "prompt": "Write."},
        [{"instruction_id": ROW["instruction_id_list"], "kwargs": ROW["kwargs"]}],
    ],
)
def test_rows_of_ifeval_and_rlvr_are_references(reference: Any) -> None:
    assert auto_scorer(reference) == "instructions"
    for response, value in (("a b c", 1.0), ("a, b c", 0.0), ("a b", 0.0)):
        assert InstructionVerifier().verify(Sample(prompt="", response=response, reference=reference)).value == value
    wrong = Sample(prompt="", response="a", reference={"instruction_id_list": ["x:y"], "kwargs": []})
    with pytest.raises(ValueError, match='"kwargs"'):
        InstructionVerifier().validate(wrong)


RLVR = dict.fromkeys(
    ("N", "end_phrase", "first_word", "forbidden_words", "i", "keyword_list", "language", "letter", "options",
     "original_prompt", "postscript_marker", "quantifier", "section_splitter", "word")
)  # fmt: skip


@pytest.mark.parametrize(
    ("function", "args", "right", "wrong"),
    [
        ("verify_keywords", {"keyword_list": ["tea", "milk"]}, "Tea with milk, please.", "Tea, please."),
        ("verify_keyword_frequency", {"word": "tea", "N": 2}, "Tea is tea.", "Tea is tea, and tea."),
        ("validate_forbidden_words", {"forbidden_words": ["milk"]}, "Tea.", "Milk."),
        ("verify_letter_frequency", {"letter": "q", "N": 1}, "A quick one.", "A quick quest."),
        ("verify_paragraph_count", {"N": 2}, "One here.\n* * *\nAnother there.", "One.\n* * *\n"),
        ("validate_word_constraint", {"N": 20, "quantifier": "around"}, "word and " * 9, "word and " * 8),
        ("validate_word_constraint", {"N": 3, "quantifier": "at most"}, "one two three", "one two three four"),
        ("verify_sentence_constraint", {"N": 2, "quantifier": "at least"}, "I am. You are.", "I am."),
        ("validate_paragraphs", {"N": 2, "i": 2, "first_word": "Then"}, "First.\n\nThen that.", "First.\n\nThis."),
        ("verify_postscript", {"postscript_marker": "P.S."}, "Yours. P.S. Bring tea along.", "Yours."),
        ("validate_placeholders", {"N": 1}, "Dear [name],", "Dear Ann,"),
        ("verify_bullet_points", {"N": 2}, "* one\n* two", "* one"),
        ("validate_choice", {"options": ["yes", "no"]}, "yes", "maybe"),
        ("validate_sections", {"N": 2, "section_splitter": "Part"}, "Part 1\nTea.\nPart 2\nMilk.", "Part 1\nTea."),
        ("validate_repeat_prompt", {"original_prompt": "Say it."}, "Say it. Tea.", "Tea."),
        ("validate_frequency_capital_words", {"N": 1, "quantifier": "at most"}, "TEA for me", "TEA FOR me"),
        ("validate_frequency_capital_words", {"N": 2, "quantifier": "around"}, "TEA for me", "Tea for me"),
        ("validate_end", {"end_phrase": "The end."}, "Tea. The end.", "Tea."),
        ("validate_no_commas", {}, "Tea.", "Tea, please."),
        ("validate_lowercase", {}, "tea is what i would like to drink.", "Tea is what I would like to drink."),
    ],
)
def test_functions_of_rlvr_are_references(function: str, args: dict[str, Any], right: str, wrong: str) -> None:
    reference = RLVR | args | {"func_name": function}
    assert auto_scorer(reference) == "instructions"
    for response, value in ((right, 1.0), (wrong, 0.0)):
        assert InstructionVerifier().verify(Sample(prompt="", response=response, reference=reference)).value == value


@pytest.mark.parametrize(
    "row", [{"func_name": "validate_taste"}, {"func_name": "validate_word_constraint", "N": 3, "quantifier": "nearly"}]
)
def test_a_row_of_rlvr_that_asks_for_nothing_known_is_a_mistake(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="an RLVR row has"):
        InstructionVerifier().validate(Sample(prompt="", response="a", reference=row))


def sample(response: str, *constraints: Any, **more: Any) -> Sample:
    return Sample(prompt="Write.", response=response, reference={"constraints": list(constraints)}, **more)


@pytest.mark.parametrize(("credit", "value"), [("all", 0.0), ("fraction", 2 / 3), ("count", 2.0)])
def test_credit_makes_one_number_of_the_parts(credit: Any, value: float) -> None:
    score = InstructionVerifier(credit=credit).verify(sample("Three plain words", WORDS, NO_COMMA, TITLE))
    assert score.value == pytest.approx(value)
    assert score.reason == "bad_format"
    assert {name: part.value for name, part in score.parts.items()} == {
        "length_constraints:number_words": 1.0,
        "punctuation:no_comma": 1.0,
        "detectable_format:title": 0.0,
    }
    assert score.parts["length_constraints:number_words"].evidence["words"] == 3


@pytest.mark.parametrize("credit", ["all", "fraction"])
def test_all_met_is_one(credit: Any) -> None:
    score = InstructionVerifier(credit=credit).verify(sample("<<Three>> plain words", WORDS, NO_COMMA, TITLE))
    assert (score.value, score.reason) == (1.0, "")


def test_constraints_of_one_kind_are_parts_of_their_own() -> None:
    most = {"kind": "length_constraints:number_words", "args": {"relation": "less than", "num_words": 3}}
    score = InstructionVerifier().verify(sample("Three plain words", WORDS, most))
    assert {name: part.value for name, part in score.parts.items()} == {
        "length_constraints:number_words 1": 1.0,
        "length_constraints:number_words 2": 0.0,
    }


def test_the_list_alone_is_a_reference() -> None:
    score = InstructionVerifier().verify(Sample(prompt="p", response="Three plain words", reference=[WORDS]))
    assert score.value == 1.0


def test_lines_may_end_as_on_windows() -> None:
    two = {"kind": "paragraphs", "args": {"min": 2, "max": 2}}
    assert InstructionVerifier().verify(sample("Three words.\r\n\r\nAnd more.", two)).value == 1.0


def test_loose_takes_the_best_of_eight_forms() -> None:
    response = "Sure, here:\n*one*\n*two*\nBye, now"
    assert [(name, form.raw) for name, form in variants(response)] == [
        ("as it is", response),
        ("without the first line", "*one*\n*two*\nBye, now"),
        ("without the last line", "Sure, here:\n*one*\n*two*"),
        ("without both lines", "*one*\n*two*"),
        ("as it is, without stars", "Sure, here:\none\ntwo\nBye, now"),
        ("without the first line, without stars", "one\ntwo\nBye, now"),
        ("without the last line, without stars", "Sure, here:\none\ntwo"),
        ("without both lines, without stars", "one\ntwo"),
    ]
    loose = InstructionVerifier(mode="loose").verify(sample(response, NO_COMMA))
    assert loose.value == 1.0
    assert loose.parts["punctuation:no_comma"].evidence["form"] == "without both lines"
    assert InstructionVerifier().verify(sample(response, NO_COMMA)).value == 0.0


def test_each_constraint_may_be_met_by_another_form() -> None:
    response = "Title, then\n<<x>> *a* b\n"
    assert InstructionVerifier(mode="loose").verify(sample(response, NO_COMMA, TITLE)).value == 1.0


@pytest.mark.parametrize(
    ("options", "response", "more", "value", "reason"),
    [
        ({}, "", {}, 0.0, "no_answer"),
        ({}, " \n\t", {}, 0.0, "no_answer"),
        ({}, "\u200b\ufeff", {}, 0.0, "no_answer"),
        ({"see": "raw"}, "\u200b", {}, 0.0, "no_answer"),
        ({"see": "raw"}, "a\u200b", {}, 1.0, ""),
        ({}, "...", {}, 0.0, "no_answer"),
        ({}, "\u3164 \u3164", {}, 0.0, "no_answer"),
        ({}, "<think>a, b</think>plain", {}, 1.0, ""),
        ({"reasoning": "keep"}, "<think>a, b</think>plain", {}, 0.0, "bad_format"),
        ({}, "<think>a, b", {}, 0.0, "unfinished_reasoning"),
        ({"truncated": "zero"}, "plain", {"finish_reason": "length"}, 0.0, "truncated"),
        ({}, "plain", {"finish_reason": "length"}, 1.0, ""),
        ({"max_characters": 4}, "plain", {}, 0.0, "too_complex"),
        ({"max_characters": 5}, "plain", {}, 1.0, ""),
    ],
)
def test_what_is_checked(
    options: dict[str, Any], response: str, more: dict[str, Any], value: float, reason: str
) -> None:
    score = InstructionVerifier(**options).verify(sample(response, NO_COMMA, **more))
    assert (score.value, score.reason) == (value, reason)


@pytest.mark.parametrize(
    "reference",
    [
        "words", 7, [], {}, {"constraints": []}, {"constraints": "words"}, {"constraints": [WORDS], "more": 1},
        [{"kind": "no_commas", "args": 0}], [{"kind": "no_commas", "args": ""}], [{"kind": "no_commas", "args": []}],
        [{"kind": "poem"}], [{"kind": ["words"]}], [{"args": {}}], [{"kind": "json", "args": [1]}], [None],
        [WORDS] * 201,
        [{"kind": "json", "args": {1: 2}}],
        [{"kind": "length_constraints:number_words", "args": {"num_words": 3}}],
        [{"kind": "length_constraints:number_words", "args": {"num_words": 3, "relation": "about"}}],
        [{"kind": "length_constraints:number_words", "args": {"num_words": -3, "relation": "at least"}}],
        [{"kind": "length_constraints:number_words", "args": {"num_words": 3.5, "relation": "at least"}}],
        [{"kind": "length_constraints:number_words", "args": {"num_words": True, "relation": "at least"}}],
        [{"kind": "length_constraints:number_words", "args": {"num_words": "3", "relation": "at least"}}],
        [{"kind": "length_constraints:number_words", "args": {"num_words": float("nan"), "relation": "at least"}}],
        [{"kind": "punctuation:no_comma", "args": {"strict": True}}],
        [{"kind": "keywords:existence", "args": {"keywords": "cat"}}],
        [{"kind": "keywords:existence", "args": {"keywords": ["cat", ""]}}],
        [{"kind": "keywords:letter_frequency",
          "args": {"letter": "ab", "let_frequency": 1, "let_relation": "at least"}}],
        [{"kind": "language:response_language", "args": {"language": "tlh"}}],
        [{"kind": "length_constraints:nth_paragraph_first_word",
          "args": {"num_paragraphs": 2, "nth_paragraph": 3, "first_word": "a"}}],
        [{"kind": "count:word_count_range", "args": {"min_words": 3, "max_words": 2}}],
        [{"kind": "count:words_japanese", "args": {"N": 0}}],
        [{"kind": "sentence:keyword", "args": {"N": 0, "word": "a"}}],
        [{"kind": "repeat:repeat_span", "args": {"prompt_to_repeat": "a b", "n_start": 2, "n_end": 3}}],
        [{"kind": "ratio:stop_words", "args": {"percentage": "half"}}],
        [{"kind": "words", "args": {}}], [{"kind": "words", "args": {"min": 3, "max": 2}}],
        [{"kind": "keywords", "args": {"phrases": ["-"]}}], [{"kind": "starts_with", "args": {"text": " a"}}],
        [{"kind": "final_mark", "args": {"mark": ";"}}],
    ],
)  # fmt: skip
def test_constraints_that_cannot_be_meant_are_refused(reference: Any) -> None:
    bad = Sample(prompt="p", response="", reference=reference)
    with pytest.raises(ValueError, match=r"constraint|reference"):
        InstructionVerifier().validate(bad)
    score = InstructionVerifier().verify(bad)
    assert (score.status, score.reason) == ("failed", "gold_unparsable")


@pytest.mark.parametrize(
    "reference",
    [
        "x" * 100_000, [WORDS] * 201, [{"kind": "x" * 100_000}], [{"kind": "words", "args": ["x" * 100_000]}],
        [{"kind": "words", "args": {"min": "x" * 100_000}}], [{"kind": "final_mark", "args": {"mark": "x" * 100_000}}],
    ],
)  # fmt: skip
def test_a_message_is_short_whatever_the_reference(reference: Any) -> None:
    with pytest.raises(ValueError, match="constraint") as caught:
        InstructionVerifier().validate(Sample(prompt="p", response="", reference=reference))
    assert len(str(caught.value)) < 2_000


def test_arguments_that_are_none_are_not_there() -> None:
    ranges: list[Any] = [{"kind": "words", "args": {"min": None, "max": 3}}, {"kind": "words", "args": {"min": 5}}]
    refusing = InstructionVerifier(contradictions="refuse")
    with pytest.raises(ValueError, match="no number lies in both ranges"):
        refusing.validate(Sample(prompt="p", response="", reference=ranges))
    refusing.validate(Sample(prompt="p", response="", reference=ranges[:1]))


@pytest.mark.parametrize(
    ("kind", "response"),
    [
        ("ratio:sentence_type", "No marks"), ("ratio:sentence_balance", "No marks"), ("words:last_first", "One."),
        ("words:alphabet", "One."), ("words:no_consecutive", "One."), ("words:odd_even_syllables", "One."),
        ("words:paragraph_last_first", "One.\nTwo."), ("sentence:increment", "One."), ("format:line_indent", "One."),
        ("sentence:alliteration_increment", "One."), ("format:quote_unquote", "One."), ("format:sub-bullets", "One."),
        ("format:title_case", "1 2"), ("count:words_japanese", "One."),
    ],
)  # fmt: skip
def test_what_nothing_could_break_is_met_only_as_published(kind: str, response: str) -> None:
    asked = sample(response, {"kind": kind, "args": ARGS.get(kind, {})})
    published, safe = InstructionVerifier().verify(asked), InstructionVerifier(vacuous="unmet").verify(asked)
    assert (published.value, safe.value) == (1.0, 0.0)
    assert published.parts[kind].evidence["vacuous"] is safe.parts[kind].evidence["vacuous"] is True


def test_evidence_is_short_whatever_the_response() -> None:
    for word in ("a" * 9_000, f"<<{'a' * 9_000}>>", "1" * 9_000, f"a b{'c' * 9_000} b"):
        score = InstructionVerifier(credit="count").verify(sample(word, *(one.to_dict() for one in ALL)))
        assert len(str(score.parts)) < 60_000


def test_the_message_names_the_value_and_the_remedy() -> None:
    asked = {"kind": "length_constraints:number_words", "args": {"num_words": 3, "relation": "about"}}
    with pytest.raises(
        ValueError, match=r"constraint 1: .*'relation' is 'about'; it must be one of less than, at least"
    ):
        InstructionVerifier().validate(sample("x", NO_COMMA, asked))


def test_contradictions_are_refused_where_that_is_asked_for() -> None:
    both = sample("x", {"kind": "change_case:english_capital"}, {"kind": "change_case:english_lowercase"})
    InstructionVerifier().validate(both)
    with pytest.raises(ValueError, match="exclude each other: letters cannot be both"):
        InstructionVerifier(contradictions="refuse").validate(both)


@pytest.mark.parametrize(
    "options", [{"mode": "lax"}, {"credit": "any"}, {"see": "all"}, {"contradictions": "no"}, {"max_characters": 0},
                {"vacuous": "no"},
                {"max_characters": True}, {"reasoning": "drop"}, {"truncated": "no"}],
)  # fmt: skip
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        InstructionVerifier(**options)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("mode", ["strict", "loose"])
def test_attacks_score_zero_and_what_is_honest_scores_one(case: AttackCase, mode: Any) -> None:
    verifier = dataclasses.replace(InstructionVerifier(mode=mode), **case.options)
    score = verifier.verify(case.sample)
    assert score.value == float(case.honest), score


def test_raw_lets_some_attacks_pass() -> None:
    raw = InstructionVerifier(see="raw")
    passed = {case.id for case in CASES if not case.honest and raw.verify(case.sample).value == 1.0}
    assert {"split_words", "comment_keyword", "split_forbidden", "look_alike_forbidden", "joiner_forbidden"} <= passed


def test_a_missing_detector_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    from adjudge.verifiers.instructions import ifeval

    ifeval._factory.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "langdetect.detector_factory", None)
    score = InstructionVerifier().verify(
        sample("Bonjour.", {"kind": "language:response_language", "args": {"language": "fr"}})
    )
    ifeval._factory.cache_clear()
    assert (score.status, score.reason) == ("failed", "engine_unavailable")
    assert "pip install" in score.evidence["error"]


def test_the_verifier_keeps_the_contract() -> None:
    samples = [
        sample("Three plain words", WORDS, NO_COMMA),
        sample("Three, plain words", WORDS, NO_COMMA),
        sample("ALL OF THIS IS LOUD ENGLISH.", {"kind": "change_case:english_capital"}),
    ]
    check_scorer(InstructionVerifier(mode="loose", credit="fraction"), samples).raise_for_failures()


SHARDS = ("a", "B", "cat", " ", "\n", "\n\n", "*", "**", "***", "******", "- ", "[", "]", "<<", ">>", '"', "'", "`",
          "```", ".", "!", "?", ",", "1", "{", "}", "(", ")", "<i>", "</i>", "|", "#", "Question 1", "A) x",
          "P.S.", "中", "é", "\u200b", "\ud800", "\x00", "\u0301", "😀", "<!--", "-->", "Zimbabwe", "\r", "\t",
          "1800-01-01")  # fmt: skip


@given(st.lists(st.sampled_from(SHARDS), max_size=40).map("".join) | st.text(max_size=80))
@example("")
@example("'")
@example('"' * 9)
@example("ProductID,Category,Brand,Price,Stock\n\x00\r\r")
@settings(max_examples=50, deadline=None)
def test_any_text_gets_a_verdict_from_every_kind(text: str) -> None:
    for mode in ("strict", "loose"):
        score = InstructionVerifier(mode=mode, credit="count").verify(
            Sample(prompt="p", response=text, reference=[one.to_dict() for one in ALL])
        )
        assert score.status == "scored"
        assert score.value is not None
        assert 0 <= score.value <= len(ALL)


@pytest.mark.parametrize(
    "shard",
    ["a", " ", "\n", "*", ". ", ".", "'", '"', "[", "<<", "(", "a'", "- ", "***", "<!--", "\u200b", "а", "a,", "<a",
     "|", "```json\n", "a@", "\n \n", "e\u0336", "#", "P.", "1"],
    ids=repr,
)  # fmt: skip
def test_a_long_response_takes_time_in_proportion_to_its_length(shard: str) -> None:
    """All kinds within 4 s of CPU time, where work that grows with the square of the length would take minutes."""
    text = shard * (40_000 // len(shard))
    started = time.process_time()
    InstructionVerifier().verify(Sample(prompt="p", response=text, reference=[one.to_dict() for one in ALL]))
    assert time.process_time() - started < 20


def test_the_kinds_of_every_set_are_there() -> None:
    assert len(KINDS) == 25 + 58 + 27
    assert set(ARGS) <= set(KINDS)
    assert all(set(kind) <= set(string.ascii_lowercase + "_:-") for kind in KINDS)
