"""Each kind on responses whose verdict was worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.verifiers.instructions.constraint import CLASSES, IFBENCH, KINDS, Constraint
from adjudge.verifiers.instructions.english import is_emoji, is_verb, syllables
from adjudge.verifiers.instructions.ifeval import IFEVAL
from adjudge.verifiers.instructions.text import Text

AT_LEAST = {"relation": "at least"}
LESS = {"relation": "less than"}
REQUEST = "Tell me, now"
SEVEN = "one two two three three three four four four four four" + " five" * 7
STEPS = "Go.\nRun now.\nSee the dog."
CSV = "ID,Country,City,Year,Count\n" + "\n".join(f"{n},France,Paris,2000,{n}" for n in range(7))
PRODUCTS = "ProductID,Category,Brand,Price,Stock\n" + "\n".join(f'{n},a,"b&c",1,2' for n in range(14))
STUDENTS = "\n".join(["StudentID\tSubject\tGrade\tSemester\tScore", *['"1"\t"a"\t"b"\t"c"\t"2"'] * 3])
QUOTED = STUDENTS.replace(
    "StudentID\tSubject\tGrade\tSemester\tScore", '"StudentID"\t"Subject"\t"Grade"\t"Semester"\t"Score"'
)
QUESTIONS = "\n".join(
    f"Question {n}: {'why ' * n}?\n" + "\n".join(f"{letter}) it" for letter in "ABCDE") for n in range(1, 5)
)
AFRICA = "\n".join(["Zimbabwe", *[f"Y{chr(122 - n // 26)}{chr(122 - n % 26)}" for n in range(51)]])
ALPHABET = " ".join(f"{chr(65 + n)}nd so." for n in range(26))
CAPITALS = (
    "Reykjavík, Helsinki, Oslo, Tallinn, Stockholm, Riga, Moscow, Copenhagen, Vilnius, Minsk, Dublin, Berlin, "
    "Amsterdam, Warsaw, London, Brussels, Prague, Luxembourg, Paris, Vienna, Bratislava, Budapest, Vaduz, Chișinău, "
    "Bern, Ljubljana, Zagreb"
)

TABLE: list[tuple[str, dict[str, Any], list[str], list[str]]] = [
    # kind, arguments, responses that meet it, responses that do not
    ("keywords:existence", {"keywords": ["cat", "a.b"]}, ["Cats: a.b"], ["cat", "cat axb"]),
    ("keywords:frequency", {"keyword": "cat", "frequency": 2, **AT_LEAST}, ["cat Concatenate"], ["cat"]),
    ("keywords:frequency", {"keyword": " cat ", "frequency": 2, **LESS}, ["cat"], ["cat cat"]),
    ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, ["cats concatenate"], ["The Cat."]),
    ("keywords:letter_frequency", {"letter": "A", "let_frequency": 2, "let_relation": "at least"}, ["Aha a"], ["b a"]),
    ("keywords:letter_frequency", {"letter": "!", "let_frequency": 1, "let_relation": "less than"}, ["b"], ["b!"]),
    ("language:response_language", {"language": "de"}, ["Das ist ein ganz gewöhnlicher deutscher Satz."],
     ["This is a quite ordinary English sentence.", "123"]),
    ("language:response_language", {"language": "zh"}, ["这是一个普通的中文句子。"], ["これは普通の日本語の文です。"]),
    ("length_constraints:number_sentences", {"num_sentences": 3, **AT_LEAST}, ["A cat. A dog! A cow?"],
     ["Dr. No left. Ok."]),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, ["a\n***\nb", "***\na *** b\n***"],
     ["a", "a\n***\n\n***\nb", "a\n\nb"]),
    ("length_constraints:number_words", {"num_words": 3, **AT_LEAST}, ["it's ok"], ["its ok"]),
    ("length_constraints:number_words", {"num_words": 3, **LESS}, ["its ok"], ["it's ok"]),
    ("length_constraints:nth_paragraph_first_word", {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Then"},
     ["One.\n\nThen two.", "One.\n\n'\"then, two."], ["One.\n\nThe two.", "Then one.", "One.\n\nThen.\n\nThree."]),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, ["[a] [b c]"], ["[a]", "[a\n] [b]"]),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, ["x\nP. S. y", "p.s. y"], ["PS y", "P.S y"]),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, ["P.P.S y", "p. p. s"], ["P.S. y"]),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2},
     ["* a\n- b", "  * a\n\n* b", "*\nx\n* b", "* a\n* b\n*"],
     ["* a", "** a\n* b", "* a\n* b\n- c", "*\n* b"]),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2},
     ["* a\n* b\n\n+1 555 0100", "* a\n* b\n\n+ 1 555 0100", "* a\n- b\n12\n+ 30\n+ 3x", "* a\n* b\n+1 for that"],
     ["* a\n* b\n+ cd", "* a\n* b\n+ 2 eggs", "* a\n* b\n+ **cd**", "* a\n* b\n+ 猫", "* a\n* b\n• 5"]),
    ("detectable_format:constrained_response", {}, ["So: My answer is no."], ["My answer is perhaps."]),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, ["*a* *b*", "**a** **b**"],
     ["*a*", "**a**", "* *\n*\n*b*"]),
    ("detectable_format:multiple_sections", {"section_spliter": "Section", "num_sections": 2},
     ["Section 1\na\nSection 2\nb", "Section1 Section2"], ["Section 1", "Section one Section two"]),
    ("detectable_format:json_format", {}, ['{"a": 1}', '```json\n{"a": 1}\n```', "7"], ["{'a': 1}", "{} x"]),
    ("detectable_format:title", {}, ["<<a>>", "x\n<< a >>"], ["<a>", "<<>>", "<< >>", "<<a\n>>"]),
    ("combination:two_responses", {}, ["a\n******\nb", "******a******b"],
     ["a", "a******a", "a******b******c", "a************b"]),
    ("combination:repeat_prompt", {"prompt_to_repeat": REQUEST}, ["tell me, NOW: this"], ["So: Tell me, now"]),
    ("startend:end_checker", {"end_phrase": " The End "}, ["x the end", '"x The end"'], ["The end."]),
    ("startend:quotation", {}, ['"a"\n', ' "a" b "c" '], ['"', "“a”", '"a']),
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "at least"},
     ["I SAW it", "I'M off"],
     ["I saw"]),
    ("change_case:english_capital", {}, ["THIS IS A PLAIN SENTENCE IN ENGLISH."],
     ["THIS IS A PLAIN SENTENCE IN English.",
     "DAS IST EIN GANZ GEWÖHNLICHER DEUTSCHER SATZ UND KEIN ENGLISCHER.", "1 2"]),
    ("change_case:english_lowercase", {}, ["this is a plain sentence in english."],
     ["This is a plain sentence in english."]),
    ("punctuation:no_comma", {}, ["a; b"], ["a, b"]),
    # IFBench
    ("count:word_count_range", {"min_words": 2, "max_words": 3}, ["a b", "a b c"], ["a", "a b c d"]),
    ("count:unique_word_count", {"N": 2}, ["a B"], ["a A, a."]),
    ("count:conjunctions", {"small_n": 2}, ["this and that, or so", "AND OR"],
     ["this and that And the other", "band nor"]),
    ("count:person_names", {"N": 2}, ["Emma met Liam"], ["Emma met Emma", "emma met Liam", "Emmanuel, Liam"]),
    ("count:numbers", {"N": 2}, ["3.5 or 1,000"], ["3 or 4 or 5", "three"]),
    ("count:pronouns", {"N": 3}, ["She/her told them"], ["She told Ann"]),
    ("count:punctuation", {}, ["a. b, c; d: e! f? g?!", "a. b, c; d: e! f? g‽"],
     ["a. b, c; d: e! f?", "a. b, c; d: g?!"]),
    ("count:words_japanese", {"N": 2}, ["one 二 three 四 5", "one 2 three さん"], ["one two"]),
    ("count:keywords_multiple", {"keyword1": "one", "keyword2": "two", "keyword3": "three", "keyword4": "four",
     "keyword5": "five"}, [SEVEN], [SEVEN + " five", SEVEN.replace("one", "ones")]),
    ("ratio:stop_words", {"percentage": 50}, ["the cat"], ["the cat and the dog"]),
    ("ratio:sentence_type", {}, ["It is. So it is. Is it?"], ["It is. Is it?"]),
    ("ratio:sentence_balance", {}, ["It is. Is it? It is!"], ["It is. It was. Is it? It is!"]),
    ("ratio:overlap", {"reference_text": "abcd", "percentage": 50}, ["abcx"], ["abcd", "xyz", "ab"]),
    ("ratio:overlap", {"reference_text": "a b c d", "percentage": 50, "unit": "words"}, ["a b c x"], ["a b c d"]),
    ("ratio:sentence_words", {}, ["A cat ran. I saw him. We fed it."],
     ["A cat ran. I saw him. We fed him.", "A cat ran."]),
    ("words:alphabet", {}, ["All bears can dance", "Yes, zebras also bite"], ["All cats", "1 all"]),
    ("words:vowel", {}, ["a red cat can dip", "a red cat\n"], ["a red cat\ncan", "a big old cup seen"]),
    ("words:consonants", {}, ["strong black things"], ["strong cat"]),
    ("words:palindrome", {}, ["level radar civic rotor kayak " * 2], ["level radar civic rotor kayak", "noon " * 10]),
    ("words:prime_lengths", {}, ["we can dance, ok"], ["a cat", "four"]),
    ("words:start_verb", {}, ["Run!", "Walking home", "Understand this"], ["The run", "Something went"]),
    ("words:repeats", {"small_n": 2}, ["a b A"], ["a, b a. A!"]),
    ("words:odd_even_syllables", {}, ["cat table dog"], ["cat dog table"]),
    ("words:last_first", {}, ["I like DOGS. Dogs bark. Bark they do."], ["I like dogs. Cats bark."]),
    ("words:paragraph_last_first", {}, ["Dogs like dogs.\n\n\"Cats and cats!\""], ["Dogs like cats.", "Cats, cats!"]),
    ("words:no_consecutive", {}, ["a big cat"], ["a bad bear"]),
    ("words:keywords_specific_position", {"keyword": "dog", "n": 2, "m": 3}, ["Hi you. See, the dog."], ["See the dog.",
     "Hi you. The dog is."]),
    ("words:words_position", {"keyword": "so"}, ["And so it is so now."], ["So it is", "And so it is so.", "so"]),
    ("sentence:alliteration_increment", {}, ["A dog. Big bad wolf. Two tiny tame tigers."], ["Big bad wolf. A dog."]),
    ("sentence:keyword", {"word": "dog", "N": 2}, ["A cat. A Dog."], ["A dog. A cat.", "A dog.", "A cat. Dogs."]),
    ("sentence:increment", {"small_n": 1}, [STEPS], [STEPS + " Oh.", "Go.\nSee the dog."]),
    ("repeat:repeat_change", {"prompt_to_repeat": REQUEST}, ["Show me, now"],
     [REQUEST, "Show us, now", "Show me, now!"]),
    ("repeat:repeat_simple", {}, ["Only output this sentence here, ignore all other requests."], ["Only output this."]),
    ("repeat:repeat_span", {"prompt_to_repeat": REQUEST, "n_start": 1, "n_end": 2}, ["me, now", " ME, now\n"],
     [REQUEST]),
    ("format:parentheses", {}, ["(a [b {c (d [e])})"], ["(a [b {c (d)}])", "((((("]),
    ("format:quotes", {}, ["\"a 'b \"c\" d' e\""], ["\"a 'b' c\"", "a"]),
    ("format:options", {"options": "yes/no/maybe"}, ["Yes.", "maybe"], ["yes, no", "perhaps"]),
    ("format:options", {"options": "a), b), c), d)"}, ["b)"], ["b", "B)", "b) it"]),
    ("format:options", {"options": "I know or I don't know"}, ["I know."], ["I do"]),
    ("format:options", {"options": "north, south"}, ["North", "south."], ["n", "th, south"]),
    ("keywords:forbidden_words", {"forbidden_words": ["C++", ".NET"]}, ["C is it"], ["Use C++ here", "in .NET?"]),
    ("sentence:keyword", {"word": "C++", "N": 1}, ["I like C++, too."], ["I like C, too."]),
    ("format:newline", {}, ["one\ntwo\n\nthree", "one"], ["one two"]),
    ("format:emoji", {}, ["Good 😀. Bad! 😢", "A heart ❤\ufe0f."], ["Good 😀. Bad.", "Good."]),
    ("format:line_indent", {}, ["a\n b\n\n  c"], ["a\nb", " a\nb"]),
    ("format:quote_unquote", {}, ['He said "go" and went'], ['"a" "b" c', 'He said "go"', 'He said "go".']),
    ("format:list", {"sep": "!?!?"}, ["!?!? a\n!?!? b"], ["!?!? a"]),
    ("format:thesis", {}, ["<i>So</i> it is", "<em>So</em> it"], ["<i>So</i>", "<i></i> it", "So it is", "<i>So it"]),
    ("format:sub-bullets", {}, ["* a\n- b\n* c\n- d", "none"], ["* a\n* b\n- c"]),
    ("format:no_bullets_bullets", {}, ["So. It is.\n* a\n* b"],
     ["So.\n* a\n* b", "So. It is.\n* a", "So. It is.\n* a\n* b\nc"]),
    ("format:title_case", {}, ["This Is It, OK", "It's A Day"], ["This is It", "A b C"]),
    ("format:output_template", {}, ["My Answer: a My Conclusion: b Future Outlook: c"], ["My Answer: a"]),
    ("format:no_whitespace", {}, ["one-word"], ["two words", "word\n"]),
    ("custom:multiples", {}, ["14, 21, 28, 35, 42, 49", "14,21,28,35,42,49"],
     ["14 21 28 35 42", "10 14 21 28 35 42 49"]),
    ("custom:mcq_count_length", {}, [QUESTIONS], [f"So: {QUESTIONS}", QUESTIONS.replace("E) it", "it"),
     QUESTIONS.replace("why why why why", "why")]),
    ("custom:reverse_newline", {}, [AFRICA, f"List:\n{AFRICA}"], [AFRICA[:-4], AFRICA + "\nZambia", "Zimbabwe"]),
    ("custom:word_reverse", {}, ["eagle bald the is It."], ["It is the bald eagle."]),
    ("custom:character_reverse", {}, [".elgaE dlaB"], ["Bald Eagle"]),
    ("custom:sentence_alphabet", {}, [ALPHABET], [ALPHABET[7:], ALPHABET + " End."]),
    ("custom:european_capitals_sort", {}, [CAPITALS], [CAPITALS.replace("Oslo, ", ""), CAPITALS + ", Rome"]),
    ("custom:csv_city", {}, [CSV], [CSV + "\n8,a,b,c,d", CSV.replace("City", "Town"), CSV.replace(",Paris", "")]),
    ("custom:csv_special_character", {}, [PRODUCTS],
     [PRODUCTS.replace("&", ""), PRODUCTS.replace("Brand", "Name"), PRODUCTS.rpartition("\n")[0]]),
    ("custom:csv_quotes", {}, [QUOTED], [STUDENTS, QUOTED.replace("\t", ","), QUOTED + '\n"1"']),
    ("custom:date_format_list", {}, ["1796-04-12, 1805-12-31", "1769-01-01, 1821-12-02"],
     ["1796-04-12; 1805-12-02", "1700-01-01", "1805-13-02",
     "1805-02-30", "1805-2-3"]),
    # our own
    ("keywords", {"phrases": ["Einstein"]}, ["Einstein's idea", "EINSTEIN’S", "he and Einstein’ll go"],
     ["Einsteins", "Einstein-like", "Einstein's-eye", "O'Einstein"]),
    ("keywords", {"phrases": ["eau"]}, ["l'eau", "d’eau"], ["b'eau", "beau", "rock'n'eau"]),
    ("keywords", {"phrases": ["5"]}, ["5", "It is 5.", "2,5", "1, 5, 100", "5.Next"], ["5.5", "3.5", "5,000", "15"]),
    ("keywords", {"phrases": ["100"]}, ["100", "1, 100"], ["1,100", "100,000", "100.5"]),
    ("forbidden", {"phrases": ["AI", "time"]}, ["aids", "overtime"],
     ["AI's role", "AI’s", "AI-driven", "a long-time friend", "d'AI"]),
    ("forbidden", {"phrases": ["100"]}, ["1,100", "100.5"], ["100.", "100, 200"]),
    ("keyword_count", {"phrase": "AI", "max": 1}, ["AI's"], ["AI's AI-driven"]),
    ("starts_with", {"text": "Einstein"}, ["Einstein's idea"], ["Einsteins", "Einstein-like"]),
    ("words", {"max": 5},
     ["A state-of-the-art, well-known engine", "J'ai l'air d'un", "JavaScript and TypeScript"],
     ["The-harbour-wakes-before-the-town-and-gulls-cry", "The-harbour wakes-before dawn-and gulls-cry at-the boats",
      "TheHarbourWakesBeforeTheTownAndGullsCry", "The'harbour'wakes'before'the'town'and'gulls'cry'on"]),
    ("language", {"language": "zh"}, ["请看：\n```python\nprint('hello, world')\n```"], ["请看: hello, world"]),
    ("language", {"language": "en"}, ["```\nWhat is it?\n```"], ["```\n什么\n```"]),
    ("upper_case", {}, ["A &amp; B<br>C", "A\n```text\nB\n```"], ["A &amp; b", "A\n```text\nb\n```"]),
    ("change_case:english_capital", {}, ["THIS IS A PLAIN SENTENCE &amp; IN ENGLISH.<br>"], []),
    ("bullets", {"count": 2},
     ["* a\n* b\n\n* * *\n\nend", "* a\n\n- - -\n* b", "- a\n - -  - -\t\n- b", "+ ab\n+ 2 eggs", "* a\n* b\n12\n+ 30",
      "* a\n* * b"],
     ["* a\n* * *", "* a\n- -\n* b", "* a\n* b\n* * * c", "+ 2\n+ 30"]),
    ("keywords", {"phrases": ["카메라"]}, ["이 카메라는 좋습니다.", "카메라입니다", "새 카메라로!", "AI카메라"],
     ["새비디오카메라", "카 메라"]),
    ("keywords", {"phrases": ["물"]}, ["물을 마신다", "찬 물", "물에서"], ["물론 좋다", "건물", "물건"]),
    ("keywords", {"phrases": ["Python"]}, ["Python은 좋다", "使用Python编程", "Pythonを使う"], ["Pythonic", "CPython"]),
    ("keywords", {"phrases": ["パン"]}, ["このパンは", "パン屋", "ﾊﾟﾝ、パン"], ["パンダ", "スパン"]),
    ("keywords", {"phrases": ["กาแฟ"]}, ["ดื่มกาแฟเย็น", "กา\u200bแฟ"], ["กาแ ฟ"]),
    ("keywords", {"phrases": ["น้ำมี"]}, ["ในน้ำมีปลา"], ["ในน้ำ มีปลา"]),
    ("forbidden", {"phrases": ["카메라"]}, ["새비디오카메라"], ["이 카메라는 좋습니다."]),
    ("forbidden", {"phrases": ["カメラ"]}, ["カメラマンです。"], ["このカメラは良いです。"]),
    ("keyword_count", {"phrase": "カメラ", "min": 2}, ["このカメラとあのカメラ"], ["カメラ、カメラマン"]),
    ("keywords:forbidden_words", {"forbidden_words": ["相机", "Go"]}, ["用Golang写"], ["这个相机很好。", "用Go写"]),
    ("words", {"min": 5, "max": 5}, ["このカメラは良い", "Python은 한국에서 well-known it's 3개"], ["カメラ"]),
    ("json_depth", {"min": 2}, ['{"a": {"b": 1}}', 'So:\n```json\n{"a": [1]}\n```'], ['{"a": 1}', "[" * 9, "none"]),
    ("xml_attributes", {"max": 1}, ['<a x="1"><b/></a>'], ['<a x="1" y="2"/>', "none"]),
    ("heading_levels", {"min": 2}, ["# a\n## b"], ["# a\n# b", "#a\n##b"]),
    ("block_quotes", {"min": 1, "max": 1}, ["a\n> b\n> c\nd"], ["a", "> a\nb\n> c"]),
    ("table_limit", {"max": 1}, ["none", "| a |\n|---|\n| b |"], ["| a |\n|---|\n| b |\n| c |"]),
    ("table_columns", {"max": 2}, ["| a | b |\n|---|---|\n| c | d |"], ["none", "| a | b | c |\n|---|---|---|"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "args", "right", "wrong"), TABLE, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_kind_tells_what_meets_it(kind: str, args: dict[str, Any], right: list[str], wrong: list[str]) -> None:
    constraint = Constraint(kind, args)
    assert [text for text in right if not constraint.met(text)] == []
    assert [text for text in wrong if constraint.met(text)] == []


def test_every_published_kind_is_in_the_table() -> None:
    assert {*IFEVAL, *IFBENCH} <= {kind for kind, *_ in TABLE}


def test_kinds_say_their_class_and_what_they_are() -> None:
    for name, kind in KINDS.items():
        assert kind.group in CLASSES, name
        assert kind.look.__doc__, name


@pytest.mark.parametrize(
    ("kind", "args", "response", "seen"),
    [
        ("length_constraints:number_words", {"num_words": 3, **LESS}, "a b c d", {"words": 4}),
        ("count:numbers", {"N": 1}, "3.5 or 1,000", {"numbers": 2}),
        ("keywords:forbidden_words", {"forbidden_words": ["a", "b", "a"]}, "b a", {"found": ["a", "b"]}),
        ("ratio:stop_words", {"percentage": 10}, "the cat and the dog", {"percentage": 60.0}),
        ("sentence:increment", {"small_n": 1}, STEPS, {"counts": [1, 2, 3]}),
        ("format:parentheses", {}, "((a))", {"depth": 2}),
    ],
)
def test_what_was_counted_is_the_evidence(kind: str, args: dict[str, Any], response: str, seen: dict[str, Any]) -> None:
    assert Constraint(kind, args).look(Text(response)).seen == seen


@pytest.mark.parametrize(
    ("word", "count"),
    [("cat", 1), ("table", 2), ("banana", 3), ("make", 1), ("walked", 1), ("wanted", 2), ("the", 1), ("rhythm", 1),
     ("beautiful", 3), ("idea", 3), ("a1", 0), ("boxes", 2), ("makes", 1), ("little", 2)],
)  # fmt: skip
def test_syllables_by_spelling(word: str, count: int) -> None:
    assert syllables(word) == count


def test_verbs_and_emoji() -> None:
    assert [
        word for word in ("Run", "carries", "Tries", "identified", "Walking", "is", "Explore") if not is_verb(word)
    ] == []
    assert [
        word for word in ("The", "king", "morning", "need", "Cat", "chemical", "relativistic", "bus") if is_verb(word)
    ] == ["need"]
    assert all(map(is_emoji, "😀🎉❤✨🇦"))
    assert not any(map(is_emoji, "a1#*é中—"))
