"""Sentences, tokens, what a reader sees, rows of data sets, English constraints, and contradictions."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adjudge
from adjudge.responses.rendering import as_read, without_hidden
from adjudge.responses.visible import visible
from adjudge.verifiers.instructions.conflicts import conflicts
from adjudge.verifiers.instructions.constraint import Constraint, read_constraints
from adjudge.verifiers.instructions.ifeval import language_of
from adjudge.verifiers.instructions.muldimif import converted, muldimif_constraints
from adjudge.verifiers.instructions.rows import ifeval_constraints
from adjudge.verifiers.instructions.sentences import sentences, tokens
from adjudge.verifiers.instructions.substance import worth
from adjudge.verifiers.instructions.text import Packed, Text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        (" \n ", []),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("No end", ["No end"]),
        ("Dr. No left the U.S. in Jan. with Mrs. Bo.", ["Dr. No left the U.S. in Jan. with Mrs. Bo."]),
        ("He left the U.S. The rest stayed.", ["He left the U.S.", "The rest stayed."]),
        ("J. Bach wrote.", ["J. Bach wrote."]),
        ("Take vitamin D. This helps.", ["Take vitamin D.", "This helps."]),
        ("1. One\n2. Two", ["1.", "One\n2.", "Two"]),
        ("It was 1999. then", ["It was 1999. then"]),
        ("Wait... Then go. ok", ["Wait... Then go.", "ok"]),
        ("Wait... They go.", ["Wait...", "They go."]),
        ("What?! Yes.", ["What?!", "Yes."]),
        ('He said "Go." Then left.', ['He said "Go."', "Then left."]),
        ("(A joke!). Then", ["(A joke!).", "Then"]),
        ("“Why?” he asked. Ok", ["“Why?” he asked.", "Ok"]),
        ("Version 3.5 of a.b.c is out.", ["Version 3.5 of a.b.c is out."]),
        ("One.\n\nTwo", ["One.", "Two"]),
        ("**Title.** Text", ["**Title.", "** Text"]),
    ],
)
def test_sentences_are_cut_where_punkt_cuts_them(text: str, found: list[str]) -> None:
    assert sentences(text) == found


@given(
    st.lists(st.sampled_from(["a", "Dr", "B", "1", ".", "!", "?", "..", " ", "\n", '"', ")", "The", ","])).map("".join)
)
@settings(max_examples=200, deadline=None)
def test_no_letter_is_lost_between_sentences(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("I don't, it's Ann's.", ["I", "do", "n't", ",", "it", "'s", "Ann", "'s", "."]),
        ("(3,000 or 5:30)?", ["(", "3,000", "or", "5:30", ")", "?"]),
        ("Mr. Bo cannot go...", ["Mr.", "Bo", "can", "not", "go", "..."]),
        ("well-known -- so!", ["well-known", "--", "so", "!"]),
        ('He said "go."', ["He", "said", '"', "go", ".", '"']),
        ("$5 & 10%", ["$", "5", "&", "10", "%"]),
        ("dogs' bones", ["dogs", "'", "bones"]),
    ],
)
def test_tokens_are_parted_where_treebank_parts_them(sentence: str, found: list[str]) -> None:
    assert tokens(sentence) == found


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain, text", "plain, text"),
        ("a<!-- b -->c<!--d-->e", "ace"),
        ("a <!-- not closed", "a <!-- not closed"),
        ("a\n[//]: # (b)\nc", "a\n\nc"),
        ("co\u200bst c\u00ado\u2060st", "cost cost"),
        ("c\u043est", "cost"),
        ("The \u0441\u043ep, here", "The cop, here"),
        ("оно и сор", "оно и сор"),
        ("Москва is a city; its name is Москва.", "Москва is a city; its name is Москва."),
        ("\uff23\uff4f\uff53\uff54 \U0001d41c", "Cost c"),
        ("c\u0336o\u0336st", "cost"),
        ("e\u0301t\u0301", "e\u0301t"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
        ("ไทย\u200bไทย", "ไทย\u200bไทย"),
        ("相\u200b机 カ\u200dメ 카\u200c메", "相机 カメ 카메"),
        ("α and β", "α and β"),
        ("co\ufe0fst co\x00st co\u206ast co\u034fst", "cost cost cost cost"),
        ("The со\u200dѕt of it is high here.", "The cost of it is high here."),
        ("\u1d04\u1d0fs\u1d1b \U0001f132\U0001f13e\U0001f152\U0001f15e", "cost COCO"),
        ("a\u3164b\u2800c\uffa0d", "a b c d"),
        ("\u2764\ufe0f 1\ufe0f\u20e3 x\u00b2 \U0001f17f", "\u2764\ufe0f 1\ufe0f\u20e3 x\u00b2 \U0001f17f"),
        ("The port.\n<!-- harbour\nharbour", "The port.\n"),
        ("[x]: y (harbour harbour)\nThe port.", "\nThe port."),
        ("[x]: <> 'harbour'\n[^1]: a note\n[2]: Smith 2020", "\n[^1]: a note\n[2]: Smith 2020"),
    ],
)
def test_what_a_reader_sees(text: str, seen: str) -> None:
    assert visible(text) == seen


@pytest.mark.parametrize("shard", ["\u200b", "\ufe0f", "<!-- ", "[a]: ", "[a]: b (", "\u0336", "\u0441\u200d"])
def test_what_a_reader_sees_is_found_in_one_pass(shard: str) -> None:
    """Within a second; where each joiner looks to the end of its run, 40,000 take 13 s."""
    started = time.process_time()
    visible(f"\u0905{shard * 40_000}\u0905")
    assert time.process_time() - started < 10


@given(st.text(max_size=60))
def test_nothing_is_hidden_twice(text: str) -> None:
    once = visible(text)
    assert len(visible(once)) <= len(once) <= 4 * len(text)
    if text.isascii() and text.isprintable() and "<!--" not in text and "]:" not in text:
        assert once == text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a <b>b</b>c<br>d", "a bc d"),
        ("[x](http://a.b 'c') ![d](e) [f][g]", "x  f"),
        ("`<b>`&amp;<p hidden>a<p>b</p></p>c", "<b>&c"),
        ("```py\n<b>&amp;\n```", "\n<b>&amp;\n"),
        ("<details><summary>a</summary>b</details><details open>c</details>", "a c "),
        (r"$\phantom{a}\text{b}$ \textcolor{red}{c} \textcolor{white}{d}", r"$ {b}$ \textcolor{red}{c} "),
        (r"$\def\a{b{c}}$d \gdef\a#1#2{b}e \def\a", r"$$d e \def\a"),
        (
            r"\newcommand{\a}[1][b]{c}d \renewcommand*\a {b}e \newenvironment{a}{b}{c}f \newcommand",
            r"d e f \newcommand",
        ),
        (r"\index{a|see{b}}c \label {d}e \href{f}{g} \cite[p. 1]{h}i \ref j", r"c e {g} i \ref j"),
        (r"\definition{a} \classic{b} \indexed \if0 c \fi d", r"\definition{a} \classic{b} \indexed  d"),
        (r"`\def\a{b}` \title{c}", r"\def\a{b} \title{c}"),
        ("---\na: b\n---\nc", "c"),
        ("---\nA rule, and a line\n---\nc", "---\nA rule, and a line\n---\nc"),
        ("x < y, <<title>> and 1 <2", "x < y, <<title>> and 1 <2"),
        ("<span style='color:red'>a</span><span style='color:#fefefe'>b</span>", "a"),
        ("<script>a", ""),
        ("a <title> b", "a "),
        (r"\<b> \`c\` <!-- d --> e", r"\<b> \`c\`  e"),
    ],
)
def test_what_is_read_of_markup(text: str, read: str) -> None:
    assert as_read(without_hidden(text)) == read


@pytest.mark.parametrize(
    "shard",
    ["<p hidden>", "<a ", '<a "', "[a](", "`", "`` ` ", "` \n\n", "\\phantom{", "\\phantom{} ", "$\\a", "x<!-- ",
     "```\n", "<details>", "</p>", "\\color{white}", "\\def\\a", "\\def\\a{", "\\newcommand{", "\\newcommand{} ",
     "\\label[a", "\\newcommand[]",
     "<i style='x:y'>a</i>", "![", "<?", "\x1b[8m"],
)  # fmt: skip
def test_markup_is_read_in_one_pass(shard: str) -> None:
    """Within two seconds of CPU time; what is closed again and again would take minutes if each looked to the end."""
    started = time.process_time()
    Packed(as_read(without_hidden(shard * 40_000))).times("aaaa")
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("word", "text", "times"),
    [
        ("bomb", "b0mb, b-o-m-b, bo mb, \u0185omb, B\u00d6MB and bommmb", 6),
        ("bomb", "bombs, a bombardment and a bob", 0),
        ("apart", "it is a part of it", 0),
        ("together", "to get her there", 0),
        ("along", "a long way", 0),
        ("well", "we'll see", 0),
        ("its", "it's", 0),
        ("hello", "he11o hEIIo h3llo", 3),
        ("ball", "bail", 0),
        ("ass", "the A55, a s s", 1),
        ("cop", "Это сор и мусор", 0),
        ("cafe", "le café très bien, à côté déjà", 0),
        ("resume", "send your résumé to me", 1),
        ("nuclear bomb", "a nuclear-bomb", 1),
        ("us", "the U.S. and u s", 0),
        ("brothers", "My brother's car, my brother’s, my brother`s and my brother´s", 0),
        ("brothers", "my bro'thers, brother-s, brother s and br0thers", 4),
        ("class", "a clas's and a c.l.a.s's", 2),
        ("ace", "Vitamins A, C, E; A/C/E, (A), (C) & (E), and A + C + E", 0),
        ("ace", "a-c-e, a c e and e, c, a, c, e", 2),
        ("bomb", "b, o, m, b and b/o/m/b", 2),
        ("schon", "Das Wetter ist schön.", 0),
        ("ano", "Hace un año.", 0),
        ("bomb", "Bömb", 1),
        ("bomb", "He made a bömb in un café", 1),
        ("days", "Day 5 and day\n\n5. Go", 0),
        ("score", "The party's core and the s-core", 1),
        ("cost", "c 0 st, c 0 5 t and co5t", 3),
        ("all", "As an AI, I say aII of it", 1),
        ("tail", "a tall man with a taIl", 1),
        ("bali", "a ball", 0),
        ("invite", "an lnvite", 1),
        ("least", "| east | and |east", 1),
        ("name", "your_name and _na_me_", 1),
    ],
)
def test_words_in_disguise(word: str, text: str, times: int) -> None:
    assert Packed(text).times(word) == times


def test_filler_is_worth_little_and_prose_all_of_it() -> None:
    prose = "The old ships lie in the harbour and wait for the wind, while gulls cry above the grey town".split()
    assert worth(prose) == len(prose)
    assert worth(prose * 2) == 2 * len(prose)
    assert worth("one two three".split() * 20) < 10
    assert worth("a b c d e f g".split() * 5) < 10
    assert worth(["1", "2"]) == 0


def test_a_text_has_one_language() -> None:
    names = "1. ALICE\n2. BRIAN\n3. CAROLINE\n4. DAVID\n5. EVELYN\n6. FIONA"  # near a border: draws differ
    assert len({language_of(Text(names)) for _ in range(5)}) == 1
    assert language_of(Text("Questa è una frase italiana del tutto normale.")) == "it"
    assert language_of(Text("1 2 3")) == ""


def test_a_row_of_ifeval() -> None:
    row = {
        "instruction_id_list": ["en:punctuation:no_comma", "length_constraints:number_words"],
        "kwargs": [{}, {"relation": "at least", "num_words": 300, "num_bullets": None}],
    }
    assert ifeval_constraints(row) == [
        {"kind": "punctuation:no_comma", "args": {}},
        {"kind": "length_constraints:number_words", "args": {"relation": "at least", "num_words": 300}},
    ]


def test_a_row_of_ifbench() -> None:
    row = {"instruction_id_list": ["count:numbers", "ratio:stop_words"], "kwargs": [{"N": 36.0, "m": None}, None]}
    assert ifeval_constraints(row) == [
        {"kind": "count:numbers", "args": {"N": 36}},
        {"kind": "ratio:stop_words", "args": {}},
    ]


@pytest.mark.parametrize(
    "row",
    [
        {}, {"instruction_id_list": "x", "kwargs": []}, {"instruction_id_list": [], "kwargs": []},
        {"instruction_id_list": ["a"], "kwargs": []}, {"instruction_id_list": ["a"]},
        {"instruction_id_list": [1], "kwargs": [{}]}, {"instruction_id_list": ["a"], "kwargs": ["x"]},
    ],
)  # fmt: skip
def test_rows_that_say_too_little_are_refused(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"instruction_id_list|kwargs"):
        ifeval_constraints(row)


@pytest.mark.parametrize(
    ("group", "kind", "text", "made"),
    [
        ("Length", "Words", "The answer must be at most 50 words", ("words", {"max": 50})),
        ("Length", "Words", "be between 50 and 100 words long to keep it short", ("words", {"min": 50, "max": 100})),
        ("Length", "Sentences", "The response should contain at least three sentences.", ("sentences", {"min": 3})),
        ("Length", "Words: At most", "The answer must not exceed 10 words", ("words", {"max": 10})),
        ("Length", "Words", "fewer than 10 words", ("words", {"max": 9})),
        ("Length", "Paragraphs", "exactly 2 paragraphs", ("paragraphs", {"min": 2, "max": 2})),
        ("Length", "Words", "Each name must be at most 3 words", None),
        ("Length", "Words", "The summary must be at most 3 words", None),
        ("Length", "Words", "at most 3 words and at least 2 sentences", None),
        ("Content", "Keywords", "Must include the keyword 'machine learning'",
         ("keywords", {"phrases": ["machine learning"]})),
        ("Content", "Keywords", "The answer must include the keywords 'a', 'b', and \"c\".",
         ("keywords", {"phrases": ["a", "b", "c"]})),
        ("Content", "Keywords", "include the keyword 'it's'", None),
        ("Content", "Keywords", "include the keyword 'a-'", None),
        ("Content", "Keywords", "include the keyword 'a' in each section", None),
        ("Content", "Punctuation", "Ending punctuation must be a question mark", ("final_mark", {"mark": "?"})),
        ("Content", "Punctuation", "Each sentence must end with a period", None),
        ("Language", "English", "The answer must use capitalized letters for each word.", ("capitalized", {})),
        ("Language", "English", "be written in all uppercase letters", ("upper_case", {})),
        ("Language", "English", "The title must be in all uppercase letters", None),
        ("Language", "Chinese", "The answer must be in simplified Chinese", None),
        ("Format", "Markdown", "The answer must include a level 2 heading", ("headings", {"level": 2, "min": 1})),
        ("Format", "Markdown", "include a level 2 heading titled 'A'", None),
        ("Format", "Markdown", "use at least two heading levels", ("heading_levels", {"min": 2})),
        ("Format", "Table", "include a table with no more than 3 rows", ("table", {"max": 3})),
        ("Format", "Table", "If a table is used, it must not exceed three rows", ("table_limit", {"max": 3})),
        ("Table", "Column limit", "include a table with exactly three columns",
         ("table_columns", {"min": 3, "max": 3})),
        ("Json", "Object nesting levels", "Object nesting levels must not exceed 3", ("json_depth", {"max": 3})),
        ("XML", "Number of attributes", "Each XML element must have no more than three attributes",
         ("xml_attributes", {"max": 3})),
        ("Format", "Blurb", "be short", None),
    ],
)  # fmt: skip
def test_english_is_converted_where_all_of_it_is_understood(
    group: str, kind: str, text: str, made: tuple[str, dict[str, Any]] | None
) -> None:
    assert converted(group, kind, text) == (None if made is None else {"kind": made[0], "args": made[1]})
    if made:
        Constraint(*made)


@given(
    st.text(max_size=300)
    | st.lists(st.sampled_from(["the answer ", "must ", "at least ", "3 ", "words ", "'a' "])).map("".join)
)
def test_any_sentence_is_a_constraint_or_none(text: str) -> None:
    for group, kind in (("Length", "Words"), ("Content", "Keywords"), ("Language", "English"), ("Format", "Table")):
        made = converted(group, kind, text)
        assert made is None or Constraint.read(made)


def test_what_is_left_says_why() -> None:
    row = {"constraints": [["Length", "Words", "Each name must be at most 3 words"], ["Format", "Text", "be in full"]]}
    found, left = muldimif_constraints(row)
    assert found == []
    assert [one.why for one in left] == ["about a part", "not understood"]
    with pytest.raises(ValueError, match="sentence"):
        muldimif_constraints({"constraints": [["Length", "Words"]]})


CAPITAL: tuple[str, dict[str, Any]] = ("change_case:english_capital", {})
SMALL: tuple[str, dict[str, Any]] = ("change_case:english_lowercase", {})
FRENCH = ("language:response_language", {"language": "fr"})
MANY = ("length_constraints:number_words", {"relation": "at least", "num_words": 9})


@pytest.mark.parametrize(
    ("one", "other", "excluded"),
    [
        (CAPITAL, SMALL, True),
        (CAPITAL, FRENCH, True),
        (FRENCH, ("language:response_language", {"language": "de"}), True),
        (FRENCH, FRENCH, False),
        (MANY, ("length_constraints:number_words", {"relation": "less than", "num_words": 9}), True),
        (MANY, ("length_constraints:number_words", {"relation": "less than", "num_words": 10}), False),
        (MANY, ("count:word_count_range", {"min_words": 1, "max_words": 8}), True),
        (MANY, ("words", {"max": 3}), False),  # other words: "a_b" is one here and two there
        (SMALL, ("change_case:capital_word_frequency", {"capital_frequency": 1, "capital_relation": "at least"}), True),
        (("punctuation:no_comma", {}), ("startend:end_checker", {"end_phrase": "a, b"}), True),
        (("punctuation:no_comma", {}), ("keywords:existence", {"keywords": ["a"]}), False),
        (("combination:two_responses", {}), ("length_constraints:number_paragraphs", {"num_paragraphs": 2}), True),
        (("keywords:frequency", {"keyword": "a", "frequency": 2, "relation": "at least"}),
         ("keywords:frequency", {"keyword": "A", "frequency": 2, "relation": "less than"}), True),
        (("keywords:frequency", {"keyword": "a", "frequency": 2, "relation": "at least"}),
         ("keywords:frequency", {"keyword": "b", "frequency": 2, "relation": "less than"}), False),
        (("detectable_format:number_bullet_lists", {"num_bullets": 2}),
         ("detectable_format:number_bullet_lists", {"num_bullets": 3}), True),
        (("words", {"min": 4}), ("words", {"max": 3}), True),
        (("keywords", {"phrases": ["カメラ", "Python"]}), ("words", {"max": 1}), True),
        (("keywords", {"phrases": ["카메라", "카메라는"]}), ("words", {"max": 1}), False),
        (("keywords", {"phrases": ["กา", "แฟ"]}), ("words", {"max": 1}), False),
    ],
)  # fmt: skip
def test_published_kinds_exclude_each_other(one: Any, other: Any, excluded: bool) -> None:
    assert bool(conflicts([Constraint(*one), Constraint(*other)])) is excluded
    assert bool(conflicts([Constraint(*other), Constraint(*one)])) is excluded


@pytest.mark.parametrize(
    "text", ["a b c", "A, b. C!", "I SAW IT", "é 1, 2", "a\n***\nb", "******", "this is small, so."]
)
def test_what_a_response_meets_is_no_conflict(text: str) -> None:
    words, ends, letters = len(Text(text).words), len(Text(text).sentences), text.lower().count("a")
    pool = [
        Constraint("length_constraints:number_words", {"relation": "at least", "num_words": words}),
        Constraint("length_constraints:number_words", {"relation": "less than", "num_words": words + 1}),
        Constraint("count:word_count_range", {"min_words": words, "max_words": words}),
        Constraint("length_constraints:number_sentences", {"relation": "less than", "num_sentences": ends + 1}),
        Constraint("keywords:letter_frequency", {"letter": "a", "let_relation": "at least", "let_frequency": letters}),
        Constraint(*CAPITAL), Constraint(*SMALL), Constraint("punctuation:no_comma", {}),
        Constraint("combination:two_responses", {}),
        Constraint("length_constraints:number_paragraphs", {"num_paragraphs": 2}),
    ]  # fmt: skip
    assert conflicts([one for one in pool if one.met(text)]) == []


@pytest.mark.parametrize("comma", ",‚﹐،︐﹑、，､⸴⹁꓾⹉𑑍")
def test_a_comma_in_disguise_is_one(comma: str) -> None:
    response = f"I like apples{comma} pears and plums. It is good to eat them."
    asked = {"constraints": [{"kind": "no_commas"}]}
    assert adjudge.score("", response, asked).value == 0.0
    published = {"constraints": [{"kind": "punctuation:no_comma"}]}
    assert adjudge.score("", response, published, scorer={"instructions": {"vacuous": "unmet"}}).value == 0.0


@pytest.mark.parametrize("response", ["Er sagt ‚Nein‘ und geht.", "One; two. It's three.", "Ja: ‚ein Wort’ sagt er."])
def test_a_quotation_is_no_comma(response: str) -> None:
    assert adjudge.score("", response, {"constraints": [{"kind": "no_commas"}]}).value == 1.0


def test_the_place_of_a_bad_constraint_is_named() -> None:
    with pytest.raises(ValueError, match=r"constraint 1: there is no constraint 'no_coma'.*no_commas"):
        read_constraints([{"kind": "json"}, {"kind": "no_coma"}])
