"""Is the answer the same text as the reference?

Both sides go through the same normalisation, each step an option.  A step that would leave nothing of a text
("!!" with the punctuation stripped) is skipped for that text, so two different texts never become equal by both
becoming empty.

Not covered: meaning.  "two" is not "2", and "U.S." is not "US"; list the accepted alternatives in the reference.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from adjudge.protocol import Score
from adjudge.responses.answer_span import Span, shorten
from adjudge.responses.markup import invisible, plain_quotes, unwrap, visible_answer, without_tex
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.reference_fields import shown
from adjudge.verifiers.text.answer_verifier import AnswerVerifier, alternatives

_NAME = re.compile(r"__(?:[a-z][a-z0-9_]*|[A-Z][A-Z0-9_]+)__")  # of a program: __init__, __FILE__
_EXPLAINED = re.compile(
    r"(?P<mark>\*\*|__|[*_`])(?P<said>[^\n]{1,200})(?P=mark)[.:!]?(?=[ \t]*\n[ \t]*\n)"
    r"|(?P<reasoned>[^\n.,;]{1,200}),?\s(?:because|since)\s(?=[^\n]*\w)"
)
_SENTENCE = 5  # words; a last line of fewer may be another answer
_ENDING = " \t\r\n.,;:!?。，；：！？、…"

# Capital and small letters of Cyrillic and Greek that most fonts draw like a Latin letter.
_CYRILLIC = ("АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝ", "ABESIJKMHOPCTYXaesijopcyxhdqw")
_GREEK = ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοϲ", "ABEZHIKMNOPTYXoc")
_LOOKALIKES = str.maketrans(_CYRILLIC[0] + _GREEK[0], _CYRILLIC[1] + _GREEK[1])


@dataclass(frozen=True, kw_only=True)
class ExactVerifier(AnswerVerifier[frozenset[str]]):
    r"""1 when the answer equals the reference after normalisation, else 0.

    The reference is a text, or a list of accepted texts.

    Attributes:
        unicode_form: "NFC" makes composed and decomposed accents equal; "NFKC" also makes full-width letters,
            ligatures and superscripts equal to plain ones (so "x²" equals "x2"); with both, typographic quotes,
            apostrophes and short dashes are those of a keyboard; "none" compares code points.
        ignore_invisible: drop zero-width and other format characters, soft hyphens and control characters.
        ignore_case: compare with Unicode case folding.
        whitespace: "collapse" makes every run of whitespace one space, "remove" drops it, "keep" compares it; the
            ends are always trimmed.
        strip_markup, strip_punctuation: take off what wraps the whole answer (quotes, `**`, backticks, `$`), and text
            commands and escapes of TeX (`\text{50\%}`); and sentence punctuation at its end.  A reference such as
            `__init__` is a name, and not bold.
        homoglyphs: read Cyrillic and Greek letters that look like Latin ones as those.  Off, because a look-alike
            letter is another text; switch it on when the model copies from mixed-script sources.
    """

    name: ClassVar[str] = "exact"
    version: ClassVar[str] = "9"

    unicode_form: Literal["none", "NFC", "NFKC"] = "NFC"
    ignore_invisible: bool = True
    ignore_case: bool = False
    whitespace: Literal["collapse", "remove", "keep"] = "collapse"
    strip_markup: bool = True
    strip_punctuation: bool = True
    homoglyphs: bool = False

    def read_reference(self, reference: Any) -> frozenset[str]:
        """Return the accepted texts, normalised."""
        accepted = set()
        for value in alternatives(reference, "a text, or a list of accepted texts"):
            if not isinstance(value, str):
                raise ReferenceFormError(
                    f"the reference holds a {type(value).__name__} ({shown(value)}), and exact compares "
                    "texts; write it as a text, or use the numeric scorer for numbers"
                )
            normal = self.normal(value, keep=_NAME)
            if not normal:
                raise BadReferenceError("the reference is empty, so an empty answer would be right")
            accepted.add(normal)
        return frozenset(accepted)

    def shown(self, text: str, gold: frozenset[str]) -> str:
        """Return the text as its reader sees it, unless an accepted text holds what a reader does not see."""
        return text if any(visible_answer(accepted) != accepted for accepted in gold) else visible_answer(text)

    def is_whole(self, text: str, gold: frozenset[str]) -> bool:
        """Return whether a text is an accepted one from beginning to end."""
        return self._offered(text, gold) in gold

    def judge(self, spans: Sequence[Span], gold: frozenset[str]) -> Score:
        """Return 1 when the one answer offered is among the accepted texts."""
        span = self._explained(spans[0], gold)
        offered = {self._offered(text, gold) for text in span.texts}
        evidence = {"answer": shorten(" | ".join(span.texts)), "where": span.where}
        if len(offered) > 1:
            return Score.scored(0.0, "several_answers", **evidence)
        if offered <= gold:
            if fault := self.taken_back(span):
                return Score.scored(0.0, fault, **evidence)
            return Score.scored(1.0, **evidence)
        return Score.scored(0.0, "wrong" if any(offered) else "no_answer", **evidence)

    def _explained(self, span: Span, gold: frozenset[str]) -> Span:
        """Return an accepted text alone that is in bold above its explanation, or has the reason behind it."""
        text = span.texts[0]
        answer = _EXPLAINED.match(text) if len(span.texts) == 1 and self._offered(text, gold) not in gold else None
        if answer is None or self._offered(answer["said"] or answer["reasoned"], gold) not in gold:
            return span
        behind = f"{text[answer.end() :]}\n{span.after}"
        *above, last = behind.rstrip().split("\n")
        other = above and len(last.split()) < _SENTENCE and self._offered(last, gold) not in gold
        return span if other else replace(span, texts=(answer["said"] or answer["reasoned"],), after=behind)

    def _offered(self, text: str, gold: frozenset[str]) -> str:
        """Return the form of an answer that is compared: a name between underscores only where one is accepted."""
        named = self.normal(text, keep=_NAME)
        return named if named in gold or "__" not in text else self.normal(text)

    def normal(self, text: str, keep: re.Pattern[str] | None = None) -> str:
        """Return the form of a text that is compared; markup that makes a text of the form `keep` is none."""
        if self.ignore_invisible and not text.isprintable():
            text = invisible(text)
        if self.unicode_form != "none" and not text.isascii():
            text = plain_quotes(unicodedata.normalize(self.unicode_form, text))
        if self.homoglyphs and not text.isascii():
            text = text.translate(_LOOKALIKES)
        text = text.strip()
        if self.strip_markup:
            text = unwrap(without_tex(unwrap(text, keep)), keep)
        if self.strip_punctuation:
            text = text.rstrip(_ENDING) or text
            if self.strip_markup:
                text = unwrap(text, keep)
        if self.ignore_case:
            text = text.casefold()
        if self.whitespace == "collapse":
            return " ".join(text.split())
        return re.sub(r"\s+", "", text) if self.whitespace == "remove" else text
