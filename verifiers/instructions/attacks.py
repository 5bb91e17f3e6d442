"""The attack suite of the verifier of instructions: degenerate ways to keep to constraints.

Not covered: a response that keeps to everything and says nothing; that is no attack on a check of form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from adjudge.attacks import AttackCase
from adjudge.protocol import Sample

_Asked: TypeAlias = tuple[str, dict[str, Any]]

_WORDS: Final[_Asked] = ("length_constraints:number_words", {"relation": "at least", "num_words": 20})
_SHORT: Final[_Asked] = ("length_constraints:number_words", {"relation": "less than", "num_words": 8})
_KEYWORD: Final[_Asked] = ("keywords:existence", {"keywords": ["harbour"]})
_OFTEN: Final[_Asked] = ("keywords:frequency", {"keyword": "harbour", "frequency": 3, "relation": "at least"})
_NEVER: Final[_Asked] = ("keywords:forbidden_words", {"forbidden_words": ["cost"]})
_CAPITAL: Final[_Asked] = ("change_case:english_capital", {})
_SMALL: Final[_Asked] = ("change_case:english_lowercase", {})
_PARAGRAPHS: Final[_Asked] = ("length_constraints:number_paragraphs", {"num_paragraphs": 2})
_BULLETS: Final[_Asked] = ("detectable_format:number_bullet_lists", {"num_bullets": 3})
_LANGUAGE: Final[_Asked] = ("language:response_language", {"language": "fr"})
_NO_COMMA: Final[_Asked] = ("punctuation:no_comma", {})
_SPACELESS: Final[_Asked] = ("format:no_whitespace", {})
_COUNT: Final[_Asked] = ("keyword_count", {"phrase": "harbour", "min": 1, "max": 2})
_TITLE: Final[_Asked] = ("title", {})
_JSON: Final[_Asked] = ("json", {})

_ORDER: Final[_Asked] = ("words:last_first", {})
_RATIO: Final[_Asked] = ("ratio:sentence_type", {})
_CHANGE: Final[_Asked] = ("repeat:repeat_change", {"prompt_to_repeat": "Name the old harbour."})
_WIDE: Final[_Asked] = ("keywords:existence", {"keywords": ["\uff48\uff41\uff52\uff42\uff4f\uff55\uff52"]})
_COPY: Final[_Asked] = ("combination:repeat_prompt", {"prompt_to_repeat": "Name the\u200b old har\u00adbour."})
_SENTENCES: Final[_Asked] = ("length_constraints:number_sentences", {"relation": "at least", "num_sentences": 10})
_HIGHLIGHTS: Final[_Asked] = ("detectable_format:number_highlighted_sections", {"num_highlights": 3})
_PUBLISHED_TITLE: Final[_Asked] = ("detectable_format:title", {})
_PUBLISHED_JSON: Final[_Asked] = ("detectable_format:json_format", {})
_PLACEHOLDERS: Final[_Asked] = ("detectable_content:number_placeholders", {"num_placeholders": 3})
_POSTSCRIPT: Final[_Asked] = ("detectable_content:postscript", {"postscript_marker": "P.S."})
_QUOTED: Final[_Asked] = ("startend:quotation", {})
_SEAS: Final[_Asked] = ("keywords:frequency", {"relation": "at least", "keyword": "sea", "frequency": 5})
_LETTERS: Final[_Asked] = (
    "keywords:letter_frequency",
    {"let_relation": "at least", "letter": "z", "let_frequency": 10},
)
_ANSWER: Final[_Asked] = ("detectable_format:constrained_response", {})
_TWO: Final[_Asked] = ("combination:two_responses", {})
_SECTIONS: Final[_Asked] = ("detectable_format:multiple_sections", {"section_spliter": "Section", "num_sections": 3})
_END: Final[_Asked] = ("startend:end_checker", {"end_phrase": "That is all."})
_APART: Final[_Asked] = ("keywords:forbidden_words", {"forbidden_words": ["apart", "everyday", "well", "along", "its"]})
_NO_PLUS: Final[_Asked] = ("keywords:forbidden_words", {"forbidden_words": ["C++"]})

_LOOSE: Final = frozenset({"empty_bullets"})
"""Attacks that the loose check is meant to let pass: it takes a line away."""

_VACUOUS: Final = frozenset({"one_sentence", "no_sentence_ends"})
"""Attacks that pass as published, and that `vacuous="unmet"` stops."""

_ATTACKS: Final[tuple[tuple[str, str, str, _Asked], ...]] = (
    ("split_words", "part words by a character without a shape", "in\u200bter\u200bnation\u200bal " * 6, _WORDS),
    ("blank_letters", "write words of letters that look like blanks", "Yes. " + "\u3164 " * 30, _WORDS),
    ("open_comment", "hide the words in a comment that never ends", f"Yes.\n<!-- {'filler ' * 30}", _WORDS),
    (
        "link_title",
        "hide the words in the title of a link that nobody uses",
        f"Yes.\n[a]: b ({'filler ' * 30})",
        _WORDS,
    ),
    ("comment_words", "hide the words in a comment", f"Yes. <!-- {'filler ' * 30}-->", _WORDS),
    ("markdown_comment", "hide the keyword in a comment of Markdown", "The port.\n[//]: # (harbour)", _KEYWORD),
    ("comment_keyword", "hide the keyword in a comment of HTML", "The port. <!-- harbour -->", _KEYWORD),
    ("comment_often", "repeat the keyword where nobody sees it", f"A harbour. <!--{'harbour ' * 9}-->", _OFTEN),
    ("split_forbidden", "hide a forbidden word by a soft hyphen", "The co\u00adst is high.", _NEVER),
    ("joiner_forbidden", "hide a forbidden word by a joiner", "The co\u200dst is high.", _NEVER),
    ("look_alike_forbidden", "write a forbidden word with Cyrillic letters", "The c\u043est is high.", _NEVER),
    (
        "whole_look_alike",
        "write all of a forbidden word that can be in Cyrillic",
        "The \u0441\u043est is high.",
        _NEVER,
    ),
    ("fullwidth_forbidden", "write a forbidden word in wide letters", "The \uff43\uff4f\uff53\uff54 is high.", _NEVER),
    (
        "styled_forbidden",
        "write a forbidden word in letters of formulas",
        "The \U0001d41c\U0001d428\U0001d42c\U0001d42d.",
        _NEVER,
    ),
    ("struck_forbidden", "strike a forbidden word out", "The c\u0336o\u0336s\u0336t is high.", _NEVER),
    ("selector_forbidden", "part a forbidden word by a variation selector", "The co\ufe0fst is high.", _NEVER),
    ("control_forbidden", "part a forbidden word by a control character", "The co\x08st is high.", _NEVER),
    (
        "small_capitals_forbidden",
        "write a forbidden word in small capitals",
        "The \u1d04\u1d0fs\u1d1b is high.",
        _NEVER,
    ),
    (
        "joined_look_alikes",
        "join look-alikes of a forbidden word",
        "The \u0441\u043e\u200d\u0455t of it is high here.",
        _NEVER,
    ),
    ("marked_forbidden", "use a forbidden word that ends in marks", "Write it in C++, quickly.", _NO_PLUS),
    ("bidi_forbidden", "turn the direction inside a forbidden word", "The co\u202est is high.", _NEVER),
    ("no_letters", "say nothing that has letters", "1234567890 !!!", _CAPITAL),
    ("no_letters_language", "say nothing in any language", "12 34 56", _LANGUAGE),
    ("invisible_only", "answer with characters without a shape", "\u200b\u200b\ufeff\u2060", _SHORT),
    ("blank_lines", "answer with blank lines", "\n" * 1_000, _NO_COMMA),
    ("million_newlines", "bury the check under a million newlines", "harbour" + "\n" * 1_000_000, _KEYWORD),
    ("million_keywords", "repeat the keyword a million times", "harbour " * 1_000_000, _OFTEN),
    ("empty_paragraphs", "part paragraphs that are empty", "Only one.\n***\n \n***\n", _PARAGRAPHS),
    ("empty_bullets", "have one bullet too many, with nothing in it", "* a\n* b\n* c\n- ", _BULLETS),
    (
        "small_in_formula",
        "begin with a capital of formulas, and go on small",
        "\U0001d400ll of it is small.",
        _CAPITAL,
    ),
    ("inside_word", "hide the phrase in another word", "The harbourmaster spoke.", _COUNT),
    ("marks_only", "say nothing but marks", "?!...", _NO_COMMA),
    ("empty_json", "answer with JSON that holds nothing", "{}", _JSON),
    ("json_nan", "answer with what only Python calls JSON", "[1, NaN]", _JSON),
    ("one_sentence", "have no second sentence that could break the order", "The harbour is old", _ORDER),
    ("no_sentence_ends", "end no sentence, so that twice none is none", "The harbour is old", _RATIO),
    ("same_first_word", "change a blank instead of the first word", "Name  the old harbour.", _CHANGE),
    ("empty_title", "give a title of blanks", "<<  >>\nText.", _TITLE),
    ("json_scalar", "answer with a number, which is JSON", "7", _JSON),
    ("json_and_more", "write text behind JSON", '{"a": 1} and so on', _JSON),
)

_HIDDEN: Final[tuple[tuple[str, str], ...]] = (
    ("invisible_style", '<p style="visibility:hidden">harbour</p>'),
    ("no_display", "<div style='display: none'><div>old</div> harbour</div>"),
    ("white_style", '<span style="color:#fff">harbour</span>'),
    ("white_font", '<font color="white">harbour</font>'),
    ("tiny", '<span style="font-size:0">harbour</span>'),
    ("off_page", '<p style="position:absolute;left:-9999px">harbour</p>'),
    ("hidden_attribute", "<textarea hidden>harbour</textarea>"),
    ("hidden_class", '<span class="sr-only">harbour</span>'),
    ("folded", "<details><summary>More</summary>harbour</details>"),
    ("template", "<template>harbour</template>"),
    ("script", "<script>var a = 'harbour'</script>"),
    ("style", "<style>.harbour {}</style>"),
    ("noscript", "<noscript>harbour</noscript>"),
    ("page_title", "<title>harbour</title>"),
    ("attribute", '<a title="harbour"></a>'),
    ("value", '<input value="harbour">'),
    ("tag_name", "</harbour>"),
    ("open_tag", "\n<p harbour"),
    ("instruction", "<?harbour?>"),
    ("cdata", "<![CDATA[harbour]]>"),
    ("link_target", "[x](http://a.b/harbour)"),
    ("title_of_link", '[x](http://a.b "harbour")'),
    ("picture", "![harbour](http://a.b/c.png)"),
    ("reference", "[x][harbour]"),
    ("fence_language", "\n```harbour\nx = 1\n```"),
    ("phantom", r"$\phantom{harbour}$"),
    ("white_tex", r"$\color{white}{harbour}$"),
    ("white_tex_text", r"\textcolor{white}{harbour}"),
    ("tex_comment", "$$ x % harbour\n$$"),
    ("tex_skipped", r"\iffalse harbour \fi"),
    ("concealed", "\x1b[8mharbour\x1b[0m"),
)
"""Ways to have a word in a response that no reader sees."""

_DISGUISED: Final = (
    "co<wbr>st", "<b>c</b>ost", "co<span></span>st", "co<!-- -->st", "co[]()st", "`c`ost", "*c*ost", "co~~~~st",
    "co&zwnj;st", "co&shy;st", "c&omicron;st", "c&#111;st", "c0st", "co$t", "c.o.s.t", "c-o-s-t", "c o s t",
    "c_o_s_t", "co st", "c\no\ns\nt", "co|st", "co-st", "cos\u0165", "c\u00f6st", "co\u0301st",
    "c\u01a1st", "\u03f2ost", "c\u0585st", "cosssst", "c\u2080st", "\u24d2\u24de\u24e2\u24e3",
)  # fmt: skip
"""Ways to write "cost" that a reader sees through."""

_EMPTY: Final[tuple[tuple[str, str, str, _Asked], ...]] = (
    ("number_filler", "count to three over and over", "1 2 3 " * 20, _WORDS),
    ("letter_filler", "write letters for words", "It is old. " + "x.y.z." * 20, _WORDS),
    ("one_word", "say one word over and over", "harbour " * 30, _WORDS),
    ("sentence_again", "say one sentence over and over", "The harbour is old. " * 20, _SENTENCES),
    ("no_sentences", "end sentences of one mark", "It is old. " + "1. 2. 3. " * 5, _SENTENCES),
    ("products", "multiply, which looks like italics", "2*3*4 5*6*7 8*9*1", _HIGHLIGHTS),
    ("same_highlight", "emphasise one word in a row", "*old* *old* *old*", _HIGHLIGHTS),
    ("title_in_word", "shift bits, which looks like a title", "1<<2>>1", _PUBLISHED_TITLE),
    ("title_of_marks", "give a title of marks", "<<--->>\nText.", _PUBLISHED_TITLE),
    ("json_null", "answer with null", "null", _PUBLISHED_JSON),
    ("json_nan_alone", "answer with NaN", "NaN", _PUBLISHED_JSON),
    ("json_blank", "answer with JSON of blanks", '{"answer": " ", "more": [null]}', _PUBLISHED_JSON),
    ("links_for_placeholders", "give links for placeholders", "[a](b) [c](d) [e](f)", _PLACEHOLDERS),
    ("empty_placeholders", "give placeholders of nothing", "Dear [], [ ] and [x]", _PLACEHOLDERS),
    ("postscript_first", "give nothing but the postscript", "P.S. The harbour is old.", _POSTSCRIPT),
    ("postscript_of_nothing", "give a postscript of nothing", "The harbour is old.\nP.S.", _POSTSCRIPT),
    ("two_quotations", "quote twice", '"old" and "new"', _QUOTED),
    ("request_alone", "repeat the request and stop", "Name the\u200b old har\u00adbour.", _COPY),
    ("glued_keyword", "glue the keyword to itself", "A seaseaseaseasea.", _SEAS),
    ("keyword_row", "say the keyword in a row", "A sea sea sea sea sea.", _SEAS),
    ("stretched_letter", "stretch the letter", "A zzzzzzzzzz.", _LETTERS),
    ("letter_row", "write the letter alone", "A z z z z z z z z z z.", _LETTERS),
    ("all_answers", "give every answer", "My answer is yes. My answer is no. My answer is maybe.", _ANSWER),
    ("empty_items", "list nothing", "* .\n* -\n* !", _BULLETS),
    ("same_items", "list one thing", "* a b\n* a b\n* a b", _BULLETS),
    ("marks_for_paragraphs", "set marks for a paragraph", "One is old.\n***\n...", _PARAGRAPHS),
    ("same_responses", "respond twice alike", "It is old.\n******\nIt is old!", _TWO),
    ("empty_sections", "head sections of nothing", "Section 1\nSection 2\nSection 3", _SECTIONS),
    ("phrase_alone", "say the last phrase alone", "That is all.", _END),
    ("ideographic_comma", "use a comma of another script", "old\u3001 and small", _NO_COMMA),
)
"""Ways to meet a constraint in form alone."""

_HONEST: Final[tuple[tuple[str, str, _Asked], ...]] = (
    (
        "enough_words",
        "The old ships lie in the harbour and wait for the wind " * 2,
        _WORDS,
    ),
    ("keyword", "The Harbour is old.", _KEYWORD),
    ("often", "Harbour, harbour, harbour.", _OFTEN),
    ("accents", "Le café est très cher, mais nous l'aimons beaucoup.", _LANGUAGE),
    ("near_forbidden", "The costume is here.", _NEVER),
    ("russian_word", "The Russian word оно means it, and it has no other sense.", _NEVER),
    ("family", "One family \U0001f468\u200d\U0001f469\u200d\U0001f467 lives here.", _NO_COMMA),
    ("capitals", "THIS IS AN ANSWER IN ENGLISH, AND ALL OF IT IS LOUD.", _CAPITAL),
    ("small", "this is an answer in english, and all of it is quiet.", _SMALL),
    ("paragraphs", "One.\n***\nTwo.", _PARAGRAPHS),
    ("bullets", "* a\n* b\n* c", _BULLETS),
    ("spaceless", "one-word", _SPACELESS),
    ("phrase", "The harbour.", _COUNT),
    ("title", "<<Harbour>>\nText.", _TITLE),
    ("json", '{"a": [1, 2]}', _JSON),
    ("order", "The harbour is old. Old ships lie there.", _ORDER),
    ("ratio", "It is old. It is small. Is it full?", _RATIO),
    ("changed", "Paint the old harbour.", _CHANGE),
    ("wide_keyword", "The \uff48\uff41\uff52\uff42\uff4f\uff55\uff52 is old.", _WIDE),
    ("copied_request", "Name the\u200b old har\u00adbour. It is Rye.", _COPY),
    ("near_marked", "Write it in C, quickly.", _NO_PLUS),
    ("heart", "I \u2764\ufe0f the harbour.", _NO_COMMA),
    ("footnote", "See the note.[^1]\n\n[^1]: " + "The old ships lie in the harbour and wait for the wind " * 2, _WORDS),
)


_HONEST_FORMS: Final[tuple[tuple[str, str, _Asked], ...]] = (
    ("red_style", 'The <span style="color:red">harbour</span> is old.', _KEYWORD),
    ("bold_tag", "The <b>harbour</b> is old.", _KEYWORD),
    ("link_text", "See [the harbour](http://a.b).", _KEYWORD),
    ("open_details", "<details open><summary>More</summary>The harbour.</details>", _KEYWORD),
    ("code_comment", "Write this:\n```html\n<!-- harbour -->\n```", _KEYWORD),
    ("code_tag", "Write `<harbour>` first.", _KEYWORD),
    ("entity", "The har&#98;our is old.", _KEYWORD),
    ("tex_text", r"$\text{harbour}$ it is.", _KEYWORD),
    ("unclosed_less", "If a <b and c> d, the harbour is shut.", _KEYWORD),
    ("words_of_their_own", "It is a part of every day, and we'll go a long way: it's old.", _APART),
    ("longer_word", "The costs of costume and accost.", _NEVER),
    ("words_side_by_side", "Go to co-star with Stan.", _NEVER),
    ("prose", "Ten short lines. We saw boats. Gulls cried. Rain fell. Wind rose. Men ran. Ropes broke. A mast bent. "
     "Night came. All slept.", _SENTENCES),
    ("highlights", "*old*, **grey** and *old* again: three *small* things", _HIGHLIGHTS),
    ("published_title", "<<Harbour>>는 항구다.", _PUBLISHED_TITLE),
    ("published_json", '```json\n{"answer": 0}\n```', _PUBLISHED_JSON),
    ("placeholders", "Dear [name], meet [name] at [place].", _PLACEHOLDERS),
    ("postscript", "The harbour is old.\n\nP.S. Bring a coat.", _POSTSCRIPT),
    ("nested_quotation", '"He said "no" to me."', _QUOTED),
    ("quotation_of_lines", '"\nThe harbour is old.\n"', _QUOTED),
    ("request_and_answer", "Name the old harbour. Rye.", _COPY),
    ("seas", "Sea after sea, the sea and the open sea meet the seaside.", _SEAS),
    ("one_answer", "My answer is no. It is old.", _ANSWER),
    ("sections", "Section 1\nThe port\nSection 2\nThe town\nSection 3\nThe sea", _SECTIONS),
    ("end_phrase", "It is old. That is all.", _END),
    ("two_responses", "It is old.\n******\nIt is very old.", _TWO),
)  # fmt: skip
"""Honest answers near the attacks of the last three tables."""

_COUNTED: Final[Mapping[str, _Asked]] = {
    "bullets": ("bullets", {"count": 3}),
    "published_bullets": _BULLETS,
    "starts": ("starts_with", {"text": "Dear reader"}),
    "ends": ("ends_with", {"text": "the end"}),
    "ends_marked": ("ends_with", {"text": "The end."}),
    "mark": ("final_mark", {"mark": "!"}),
    "headings": ("headings", {"level": 2, "min": 2}),
    "one_sentence": ("sentences", {"max": 1}),
    "two_sentences": ("sentences", {"min": 2, "max": 2}),
    "few_sentences": ("length_constraints:number_sentences", {"relation": "less than", "num_sentences": 3}),
    "few_words": _SHORT,
    "paragraphs": ("length_constraints:number_paragraphs", {"num_paragraphs": 3}),
    "postscript": _POSTSCRIPT,
    "sections": ("detectable_format:multiple_sections", {"section_spliter": "Section", "num_sections": 2}),
    "columns": ("table_columns", {"min": 2, "max": 2}),
    "dont": ("keywords", {"phrases": ["don't"]}),
    "well_known": ("keywords", {"phrases": ["well-known harbour"]}),
    "never_dont": ("forbidden", {"phrases": ["don't"]}),
    "never_two": ("forbidden", {"phrases": ["climate change"]}),
    "never_the": ("keywords:forbidden_words", {"forbidden_words": ["the rapist"]}),
}
"""Constraints whose units and edges are met in many forms."""

_MISCOUNTED: Final[tuple[tuple[str, str], ...]] = (
    ("bullets", "- a sea\n- a gull\n- a boat\n• a rock"),
    ("bullets", "* a sea\n* a gull\n* a boat\n+ a rock"),
    ("bullets", "- a sea\n- a gull\n- a boat\n– a rock"),
    ("bullets", "- a sea\n- a gull\n- a boat\n  ▪ a rock"),
    ("bullets", "```\n- a sea\n- a gull\n- a boat\n```"),
    ("published_bullets", "* a sea\n* a gull\n* a boat\n+ a rock"),
    ("published_bullets", "- a sea\n- a gull\n- a boat\n•a rock"),
    ("starts", "Dear readership, it is old."),
    ("starts", "Dear reader-friendly port,"),
    ("starts", "**Dear readers**, it is old."),
    ("starts", "Dear reader’s friend, it is old."),
    ("ends", "It is at the bookend of loathe end"),
    ("ends", "Let us blathe end"),
    ("ends", "This is *the ending*"),
    ("ends_marked", "It is old. Breathe end."),
    ("mark", "It is old.\n!"),
    ("mark", "It is old. !"),
    ("mark", "It is old.\n\n**!**"),
    ("mark", "It is old.** !**"),
    ("headings", "```\n## a sea\n## a gull\n```"),
    ("headings", "~~~text\n## a sea\n## a gull\n~~~"),
    ("headings", "## a sea\n```\n## a gull"),
    ("one_sentence", "It is old.Gulls cry."),
    ("one_sentence", "It is old!Gulls cry."),
    ("one_sentence", "At 9 a.m. it opens. Gulls cry."),
    ("one_sentence", "It opens at 9 a.m. The gulls cry."),
    ("one_sentence", "It is old. gulls cry."),
    ("one_sentence", "They saw gulls etc. Boats left."),
    ("few_sentences", "It is old.Gulls cry above.Boats leave."),
    ("few_sentences", "It is old。 Gulls cry。 Boats leave。"),
    ("few_sentences", "It is old?Gulls cry above!Boats leave."),
    ("few_words", "The_sea_is_wide_and_blue_and_gulls_cry"),
    ("few_words", "See: the_sea_is_wide_and_blue_and_gulls_cry"),
    ("paragraphs", "The sea.\n***\n&nbsp;\n***\nThe gull."),
    ("paragraphs", "The sea.\n***\n.\n***\nThe gull."),
    ("postscript", "A letter may end with 'P.S.' and more."),
    ("postscript", "There is no P.S. in it."),
    ("postscript", "I forgot the p.s. here."),
    ("sections", "This has no Section 1 and no Section 2 in it."),
    ("sections", "Look in Section 1 and then in Section 2."),
    ("columns", "Sea | Depth | Age\n--- | --- | ---\nNorth | 94 m | old"),
    ("columns", "Sea | Depth\nNorth | 94 m"),
    ("dont", "I do not. I dont."),
    ("well_known", "The well-knownharbour is old."),
    ("well_known", "The unwell-known harbour is old."),
    ("never_dont", "I don’t know."),
    ("never_dont", "I donʼt know."),
    ("never_two", "The climatechange is here."),
    ("never_two", "The *climate* change is here."),
    ("never_the", "He saw the rapist."),
    ("never_the", "He saw **the** rapist."),
)
"""Responses that miss one of these constraints by a sign."""

_COUNTED_RIGHT: Final[tuple[tuple[str, str], ...]] = (
    ("bullets", "• The sea\n• The gull\n• The boat"),
    ("bullets", "•The sea\n•The gull\n•The boat"),
    ("bullets", "1. The sea\n2. The gull\n3. The boat"),
    ("bullets", "1) The sea\n2) The gull\n3) The boat"),
    ("bullets", "Three:\n+ The sea\n+ The gull\n+ The boat"),
    ("bullets", "1. First\n   - The sea\n   - The gull\n   - The boat"),
    ("bullets", "```markdown\n- The sea\n- The gull\n- The boat\n```"),
    ("published_bullets", "- The sea\n- The gull\n- The boat\nAll in all: 1 + 1."),
    ("starts", "**Dear reader**, it is old."),
    ("starts", "*Dear reader*: it is old."),
    ("starts", "“Dear reader, it is old.”"),
    ("starts", "# Dear reader\n\nIt is old."),
    ("starts", "Dear reader"),
    ("starts", "Dear **reader**, it is old."),
    ("ends", "It is old, and this is *the end*"),
    ("ends", "It is old: “the end”"),
    ("ends", "It is old: the **end**"),
    ("ends_marked", "It is old.\n\n**The end.**"),
    ("ends_marked", "It is old. _The end._"),
    ("ends_marked", "It is old. The end."),
    ("mark", "**It is old!**"),
    ("mark", "_It is old_!"),
    ("mark", "“It is old!”"),
    ("mark", "It is old !"),
    ("mark", "Is it old?!"),
    ("mark", "- It is old!\n- It is grey!"),
    ("headings", "## The sea\nWide.\n## The gull\nGrey."),
    ("headings", "## The sea\n```\nx = 1\n```\n## The gull"),
    ("headings", "```markdown\n## The sea\n## The gull\n```"),
    ("one_sentence", "At 9 a.m. it is calm."),
    ("one_sentence", "Some birds, e.g. gulls, are grey."),
    ("one_sentence", "It is 3.5 km wide."),
    ("one_sentence", "J. R. R. Tolkien saw it."),
    ("one_sentence", "See vol. 2 and fig. 3 of it."),
    ("one_sentence", "St. Ives is a port in the U.K. with gulls."),
    ("one_sentence", "1. The sea is wide."),
    ("two_sentences", "Mr. J. R. R. Tolkien saw the sea. He wrote vol. 2 there."),
    ("two_sentences", "Dr. Lee came at 5 p.m. She left."),
    ("two_sentences", "It cost 3.50 approx. per day. Prof. Low paid."),
    ("few_sentences", "It is 3.5 km wide. See example.com for more."),
    ("few_words", "Set max_old_age and min_age to 3."),
    ("paragraphs", "The sea.\n***\nThe boat.\n***\nThe gull."),
    ("postscript", "Dear Ann, it is old.\n\n**P.S.** Bring a coat."),
    ("postscript", "It is old, dear. P.S. Bring a coat."),
    ("postscript", "Yours, Ann P.S. Bring a coat."),
    ("sections", "**Section 1** The port.\n\n**Section 2** The town."),
    ("sections", "SECTIONS\nSection 1: The port.\nSection 2: The town."),
    ("columns", "Sea | Depth\n--- | ---\nNorth | 94 m"),
    ("columns", "| Sea | Depth |\n|:--|--:|\n| North \\| Baltic | 94 m |"),
    ("dont", "I don’t know it."),
    ("dont", "I **don't** know it."),
    ("well_known", "A well‑known harbour it is."),
    ("well_known", "A *well-known* harbour it is."),
    ("well_known", "A well-known\nharbour it is."),
    ("never_dont", "I do not know."),
    ("never_two", "The climate will change."),
    ("never_the", "The therapist lives here."),
)
"""Responses that meet one of these constraints."""


def attack_suite(scorer: Any, folder: Path) -> Iterator[AttackCase]:
    """Yield the cases, each with one constraint."""
    del scorer, folder  # one suite, and its cases need no files
    for name, hidden in _HIDDEN:
        sample = _sample(f"The port is old.\nIt is grey. {hidden}\nIt is small.", _KEYWORD)
        yield AttackCase(id=f"hidden_{name}", tries="have the keyword where nobody sees it", sample=sample)
    for at, written in enumerate(_DISGUISED):
        sample = _sample(f"It is old.\nThe {written} is high.\nIt is grey.", _NEVER)
        yield AttackCase(id=f"disguised_{at}", tries=f"write a forbidden word as {written!r}", sample=sample)
    for name, tries, response, constraint in _EMPTY:
        yield AttackCase(
            id=f"empty_{name}", tries=tries, sample=_sample(response, constraint), options={"vacuous": "unmet"}
        )
    for name, response, constraint in _HONEST_FORMS:
        sample = _sample(response, constraint)
        yield AttackCase(id=f"honest_{name}", sample=sample, honest=True, options={"vacuous": "unmet"})
    for name, tries, response, constraint in _ATTACKS:
        options = {"mode": "strict"} if name in _LOOSE else {"vacuous": "unmet"} if name in _VACUOUS else {}
        yield AttackCase(id=name, tries=tries, sample=_sample(response, constraint), options=options)
    for at, (name, response) in enumerate(_MISCOUNTED):
        sample = _sample(response, _COUNTED[name])
        yield AttackCase(id=f"{name}_missed_{at}", tries="meet it by a sign", sample=sample, options={"mode": "strict"})
    for at, (name, response) in enumerate(_COUNTED_RIGHT):
        yield AttackCase(id=f"honest_{name}_met_{at}", sample=_sample(response, _COUNTED[name]), honest=True)
    for name, response, constraint in _HONEST:
        yield AttackCase(id=f"honest_{name}", sample=_sample(response, constraint), honest=True)


def _sample(response: str, constraint: _Asked) -> Sample:
    kind, args = constraint
    return Sample(
        prompt="Describe the harbour.", response=response, reference={"constraints": [{"kind": kind, "args": args}]}
    )
