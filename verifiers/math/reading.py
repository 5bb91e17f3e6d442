"""One answer, read once: its text, the number it may plainly be, and its syntax tree."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache
from typing import Final, Literal

from adjudge.responses.number_words import NUMBER_WORD, NUMBER_WORDS
from adjudge.verifiers.math import vocabulary as known
from adjudge.verifiers.math.boxes import MAX_ANSWER, unescape
from adjudge.verifiers.math.clauses import denied_before
from adjudge.verifiers.math.extraction import extract
from adjudge.verifiers.math.families import declared
from adjudge.verifiers.math.nodes import (
    Collection,
    MisleadingMathError,
    Node,
    NotMathError,
    Number,
    Operation,
    Relation,
    Words,
)
from adjudge.verifiers.math.numerals import rational
from adjudge.verifiers.math.parser import parse
from adjudge.verifiers.math.sentences import FORMULA, ROUGHLY, without_remark
from adjudge.verifiers.math.units import is_unit
from adjudge.verifiers.math.vocabulary import PHRASES, meaning, words

_LEADS: Final = re.compile(
    r"(?:\\(?:Rightarrow|Longrightarrow|implies|therefore)(?![A-Za-z])|[⇒∴→]|=>?(?!=)|\\text\s*\{\s*(?:so\s+)?(?:the\s+)?(?:final\s+)?"
    r"[Aa]nswer(?:\s+is)?\s*[:=]?\s*\}\s*:?)\s*"
)
_ABOUT: Final = re.compile(r"\s*(?:\\approx(?![A-Za-z])|≈)\s*(?=\S)")
_TRAILS: Final = re.compile(
    r"(?:\s|~|\\(?:checkmark|blacksquare|square|qed|space|hfill)(?![A-Za-z])|[✓✔✅☑🎉■□∎\ufe0f])+\Z"
)
_TRAIL_ENDS: Final = frozenset("✓✔✅☑🎉■□∎\ufe0fkedl~")
_SIGN_WORD: Final = re.compile(
    r"(?:\\text\s*\{\s*)?(?P<minus>negative|minus|positive)\s*\}?[\s~$]*(?=\$?(?:\d|\.\d|\\[dt]?frac|\\sqrt))",
    re.IGNORECASE,
)
_LEAD_STARTS: Final = frozenset("\\=⇒∴→")
_OPEN_ENDS: Final = re.compile(r"(?:\\left)?\s*([\[\]])([^\[\]]+?)(?:\\right)?\s*([\[\]])")
_DECIMAL: Final = re.compile(r"(-?\d+)\{,\}(\d{1,2})")
_ALIGNED: Final = re.compile(r"\\begin\{((?:aligned|align|gathered|split)\*?)\}(.*)\\end\{\1\}", re.DOTALL)
_CONTINUED: Final = re.compile(r"(?:\\\\\s*)(?=&?\s*=)|&|(?:\\\\\s*)\Z")
_SET: Final = r"\\(?:text|mathrm)\s*\{[\s~]*"
_UNITS: Final = tuple(  # as they are set, and as the parser knows them
    (re.compile(written), known_as)
    for written, known_as in (
        (rf"{_SET}([kMm])(?:\s*(?:\\Omega|Ω)\s*\}}|\}}\s*(?:\\Omega(?![A-Za-z])|Ω))", r"\\text{ \1Omega}"),
        (r"(?<=\d)((?:\s|~|\\[,;: ])*)(?:\\mu\s*|[μµ])([mgsFCALVW])\s*\Z", r"\1\\mu\\text{\2}"),
        (rf"(?:{_SET}([MLR])\s*\}}|([MLR]))\s*_\s*\{{?\s*(?:\\odot|☉|⊙)\s*\}}?", r"\\text{ \1\2sun}"),
        (r"\\\\\[\d+(?:\.\d+)?(?:pt|em|ex|mm)\]", r"\\\\\\\\"),
        (rf"{_SET}degrees?\s+([CF])(?:elsius|ahrenheit)?\s*\}}", r"^\\circ\\text{\1}"),
        (r"\A(\d+)(?:\s*\\text\{\s*to\s*\}\s*|\s+to\s+)(\d+)\Z", r"\1:\2"),
        (r"\A(-?[\d.,]+)\s*(?:''|″|\^\s*\{\s*\\prime\s*\\prime\s*\})\s*\Z", r"\1\\text{ ''}"),
    )
)
_POWER: Final = re.compile(rf"{_SET}([A-Za-z]+(?:[\s~/·]+[A-Za-z]+)+)\s*\}}\s*\^\s*\{{?\s*(-?\d)\s*\}}?")
_TIMES: Final = re.compile(r"(?<=\d)(\s?)[xX]\1(?=10\s?(?:\^|\*\*|[⁻⁰¹²³⁴-⁹]))")
_LONG: Final = 300  # characters of an answer beside which its approximation may stand
_SHARE: Final = re.compile(
    r"([^()%]*\d[^()%]*?)\s*\(\s*=?\s*(\d+(?:\.\d+)?)\s*\\?%\s*\)|(\d+(?:\.\d+)?)\s*\\?%\s*\((\d+/\d+)\)"
)
_MODULUS: Final = re.compile(
    r"\\mod(?![A-Za-z])\s*(?:\{(\w+)\}|(\w+))|\(?\s*\\(?:text|mathrm)\s*\{\s*\(?mod[\s~]*\}?\s*(\w+)\s*\}?\)?(?:\s*\})?"
    r"|(?<=\d)\s*\(\s*mod\s+(\w+)\s*\)"
)


def _last_power(units: re.Match[str]) -> str:
    r"""Return units with the power behind them at the last: `\text{m/s}^2` is what `\text{m/s^2}` is."""
    known_all = all(is_unit(name, upright=True) for name in re.findall("[A-Za-z]+", units[1]))
    return rf"\text{{ {units[1]}^{units[2]}}}" if known_all else units[0]


def respelled(text: str) -> tuple[str, bool]:
    """Return an answer as it is usually spelled, and whether it is only said to be about that."""
    if text[-1:] in _TRAIL_ENDS:
        text = _TRAILS.sub("", text)
    if text[:1] in _LEAD_STARTS and (lead := _LEADS.match(text)):
        text = text[lead.end() :]
    if text[:1] in "nNmMpP\\" and (sign := _SIGN_WORD.match(text)):
        text = ("" if sign["minus"].lower() == "positive" else "-") + text[sign.end() :]
    about = _ABOUT.match(text) if text[:1] in "\\≈" else None
    if about:
        text = text[about.end() :]
    if "{:}" in text or "{,}" in text:
        text = text.replace("{:}", ":")
        number = _DECIMAL.fullmatch(text)
        text = f"{number[1]}.{number[2]}" if number else text
    if text.startswith("\\begin{") and (aligned := _ALIGNED.fullmatch(text)):
        text = _CONTINUED.sub(" ", aligned[2]).strip()
    ends = _OPEN_ENDS.fullmatch(text) if text.startswith(("]", "\\left]")) or text[-1:] == "[" else None
    if ends and (ends[1] == "]" or ends[3] == "["):
        text = f"{'(' if ends[1] == ']' else '['}{ends[2]}{')' if ends[3] == '[' else ']'}"
    text = _TIMES.sub(r"\\times ", text) if "10" in text else text
    if "\\" in text or "'" in text or " to " in text or not text.isascii():
        for written, known_as in _UNITS:
            text = written.sub(known_as, text)
        text = _POWER.sub(_last_power, text)
    if len(text) <= _LONG and ("%" in text or "a" in text or "roughly" in text):
        if roughly := ROUGHLY.fullmatch(text):
            text = f"{roughly[1]} \\approx {roughly[2]}"
        elif share := _SHARE.fullmatch(text):
            text = f"{share[1] or share[4]} \\approx {Decimal(share[2] or share[3]).scaleb(-2):f}"
    if "mod" in text:
        text = text.replace("\\bmod", "\\mod") if "\\equiv" in text else text
        text = _MODULUS.sub(lambda modulus: rf"\pmod{{{next(filter(None, modulus.groups()))}}}", text)
    return text, bool(about)


MAX_KEPT: Final = 100  # characters; 4096 trees of such answers take at most 40 MiB

_LAYOUT: Final = re.compile(r"(?:\\(?:left|right|displaystyle)(?![A-Za-z])|\\[,;:! ]|\$|\s|~)+")
_EDGES: Final = re.compile(  # what only sets the whole
    r"\A(?:\\(?:(?:(?:display|text)style|large|Large|q?quad)(?![A-Za-z])|[,;:!>])\s*|\\\s+|~)+|(?:\s*\\(?:q?quad|[,;:!>]))+\Z"
)
_SINGLE: Final = re.compile(r"(?<=[\^_])\{(\w|\\[A-Za-z]+)\}(?!\w)")
_WRAPPED: Final = re.compile(r"\\(?:text|mathrm|textbf|mathbf|mbox|textit|textrm|bf|rm)\s*\{([^{}]*)\}[.,]?")
_NOUN: Final = re.compile(r"(.*\d)\s*\(([A-Za-z][A-Za-z .-]*)\)")
_TIME: Final = re.compile(r"(\d{1,2}:\d{2}(?::\d{2})?)\s*([ap])\.?\s?m\.?", re.IGNORECASE)
_DATE: Final = re.compile(r"(?=.*\d{4})\d{1,4}([-/.])\d{1,2}\1\d{1,4}")
_STATEMENTS: Final = re.compile(r"(?:\(\d{1,2}\)\s*){3,}")
_OPTION: Final = re.compile(
    r"[(\s{*]*(?:\\(?:text|textbf|mathrm|mathbf|textrm|bf|rm)\s*\{?\s*)?(?:\(\s*(?:\\(?:text|textbf|mathrm|mathbf)\{)?([A-J])\}?\s*\)|([A-J])(?=[).:}]|\Z))"
    r"\s?[).:}*]{0,3}(?:\s|~|\\[,;: ]|\\q?quad(?![A-Za-z])|[.:])*((?![\^_+*/=!<>]).*)",
    re.DOTALL,
)
_OPTION_BEHIND: Final = re.compile(r"([^A-Za-z(]*\d[^A-Za-z(]*?)\s*\((?:(?:option|choice)\s+)?([A-J])\)")
_NAME: Final = re.compile(
    r"(\s*(?:\\text\{\s*[A-Z][A-Za-z ]{1,40}\}?(?=:)|[A-Z][A-Za-z ]{2,40}(?=:)"
    r"|(?=[^\d\s])(?:[^=(\[{}\])]|(?<=\\)[{}]|\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\]|\{(?:[^{}]|\{[^{}]*\})*\}){1,80}?(?==)))"
    r"[:=]\s*\}?(.+)",
    re.DOTALL,
)
_BRACKETED: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\\begin\{.*\\end\{[a-z]+\}", re.DOTALL)
_NO_NAME: Final = re.compile(  # a list, a bound, a statement: more than a name
    r"[,;<>≤≥≠≈$\n]|!=|\\(?:le|leq|ge|geq|ne|neq|lt|gt|approx|in|to|pm|mp|boxed|def|frac\{\d)(?![A-Za-z])"
    r"|\b(?:or|and|not|no|if|then|so|but|is|are|than|between|maybe|either)\b",
    re.IGNORECASE,
)
_NOT_NAMED: Final = re.compile(  # what is done with a name, or said against it: `! = 5`, `half the area = 5`
    r"[!%&@?+*/^~]|(?<![^\W\d_])-|-(?![^\W\d_])|\\(?:neg|lnot|sqrt|ln|log|exp|[dt]?frac)(?![A-Za-z])"
    r"|\b(?:half|twice|thrice|double|triple|third|quarter|wrong|incorrect|false|bound|guess|plus|minus|times)\b"
    r"|\A[\W\d_]*\Z",
    re.IGNORECASE,
)
_LETTERS: Final = re.compile(r"[^\W\d_]{3,}")  # a word or a name; two letters are a product
_SPACED_NUMBER: Final = re.compile(r"-?[1-9]\d{0,2}(?: \d{3})+")
_RANGE: Final = re.compile(r"\d\s*[–—]\s*\d")
_CLOCK_MARKUP: Final = re.compile(r"\\[,;:! ]|\\text|\\mathrm|[{}\\$~]")
_TEXT_ONLY: Final = re.compile(r"\\(?:text|mathrm|textbf|mbox)\{([^{}\\]*)\}")
_MEASURED: Final = re.compile(r"(-?[\d.,]{1,50}) ?\\(?:text|mathrm)\{\s*([^\W\d_]{2,})\s*\}")
_FRACTIONS: Final = re.compile(r"\\[dtc]frac(?![A-Za-z])")


class Reading:
    """A text with the forms that the tiers of the verifier compare, each made when first asked for."""

    __slots__ = (
        "_literal",
        "_number",
        "_tree",
        "about",
        "misleading",
        "parameter",
        "problem",
        "text",
        "typeset",
        "whole",
    )

    def __init__(self, text: str) -> None:
        """Strip what surrounds the answer; the text is kept otherwise as written."""
        text = text.strip()
        self.typeset = text[:1] in "$\\"  # as a formula, in which blanks mean nothing
        if "\\" in text:
            text = _EDGES.sub("", text)
        if text[:1] in "$\\" or text[-1:] in "$])\\":
            text = _unwrap(text)
        self.about = False
        if not text.isalnum():
            text, self.about = respelled(text)
        self.text = text
        self._number: Number | Literal[False] | None = False
        self.problem = ""
        self.misleading = False
        self.parameter = ""  # a letter that the text says to be any integer
        self.whole = ""  # the literal form of the solution that the answer was taken from, if it was
        self._literal: str | None = None
        self._tree: Node | None = None

    @property
    def number(self) -> Number | None:
        """The value of a text that is one plain number, else None."""
        if self._number is False:
            spaced = _SPACED_NUMBER.fullmatch(self.text)  # "1 234" alone is one number
            self._number = rational(self.text.replace(" ", "") if spaced else self.text)
        return self._number

    @property
    def bare(self) -> Number | None:
        r"""The value of a plain number with a unit behind it, such as `18\text{ feet}`, without the unit; else None."""
        match = _MEASURED.fullmatch(self.text) if self.text[-1:] == "}" else None
        return rational(match[1]) if match and is_unit(match[2], upright=True) else None

    @property
    def literal(self) -> str:
        """The text without layout: what two spellings of the same answer share."""
        if self._literal is None:
            text = _TEXT_ONLY.sub(r"\1", _FRACTIONS.sub(r"\\frac", self.text))
            text = _LAYOUT.sub(_gap, text)
            self._literal = _SINGLE.sub(r"\1", text).rstrip(".")
        return self._literal

    @property
    def tree(self) -> Node | None:
        """The syntax tree, or None with `problem` saying why there is none."""
        if self._tree is None and not self.problem:
            if self.number is not None:
                self._tree = self.number
                return self._tree
            if len(self.text) > MAX_ANSWER:
                self.problem = f"longer than {MAX_ANSWER} characters"
                return None
            self._tree = _named_form(self.text)
            if self._tree is None:
                self.parse()
        return self._tree

    @property
    def option(self) -> tuple[str, str] | None:
        r"""The letter and the text of an option, as in `(B)`, `\textbf{(B)}\ 12` or `B. 12`; None for anything else."""
        match = _OPTION.fullmatch(self.text)
        if match is None and len(self.text) <= MAX_KEPT and (behind := _OPTION_BEHIND.fullmatch(self.text)):
            return behind[2], behind[1]
        return ((match[1] or match[2]), match[3].strip()) if match else None

    @property
    def is_list(self) -> bool:
        """Whether the text is a bare list."""
        return isinstance(self.tree, Collection) and self.tree.kind == "list"

    @property
    def reasoned(self) -> bool:
        """Whether the text is a word with its reason ("No, because it is hot"), which is a part of a reference."""
        return isinstance(self.tree, Words) and without_remark(self.text) != self.text

    def parse(self) -> None:
        """Read the text as mathematics, and as words where it is none."""
        try:
            if _RANGE.search(self.text):
                raise NotMathError("a range written with a dash")
            if _STATEMENTS.fullmatch(self.text):
                raise NotMathError("a list of numbered statements")
            noun = _NOUN.fullmatch(self.text) if self.text.endswith(")") else None
            text, self.parameter = declared(f"{noun[1]}\\text{{ {noun[2]}}}" if noun else self.text)
            self._tree = parse(text)
        except NotMathError as error:
            self.misleading = isinstance(error, MisleadingMathError)
            if (ion := _ion(self.text)) is not None:
                self._tree, self.misleading = ion, False
                return
            if not self.misleading and (said := without_remark(self.text)) != self.text:
                inner = Reading(said)
                self._tree, self.problem, self.parameter = inner.tree, inner.problem, inner.parameter
                return
            if not self.misleading and (stated := _stated(self.text)) is not None:
                self._tree = stated
                return
            phrase = words(self.text)
            if phrase is None:
                self.problem = str(error)
            else:
                self._tree = meaning(phrase)


_MONTHS: Final = "january february march april may june july august september october november december".split()
_MONTH: Final = rf"(?P<month>{'|'.join(f'{month[:3]}(?:t|{month[3:]})?' for month in _MONTHS)})\.?"
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DATED: Final = tuple(
    re.compile(rf"(?:the\s+)?{written}(?:[\s,]+(?P<year>\d{{4}}))?\.?", re.IGNORECASE)
    for written in (rf"{_MONTH}\s+(?:the\s+)?{_DAY}", rf"{_DAY}\s+(?:of\s+)?{_MONTH}")
)
_SET_UPRIGHT: Final = re.compile(r"\\(?:text|mathrm|ce|rm|mathsf)(?![A-Za-z])|\\[,;! ]|[{}~]")
_ION: Final = re.compile(
    r"(?P<formula>(?:[A-Z][a-z]?\d*|\((?:[A-Z][a-z]?\d*)+\)\d*)+)(?:\^(?P<charge>\d*))?(?P<sign>[+-])"
)


def _date(text: str) -> Words | None:
    """Return a date with the name of its month, in one spelling; None for anything else."""
    plain = " ".join(_SET_UPRIGHT.sub(" ", text).split())
    date = next(filter(None, (pattern.fullmatch(plain) for pattern in _DATED)), None)
    return date and Words(" ".join(filter(None, (date["day"].lstrip("0"), date["month"][:3].lower(), date["year"]))))


def _ion(text: str) -> Words | None:
    r"""Return the formula of an ion (`SO_4^{2-}`) in one spelling; None for anything else."""
    plain = unicodedata.normalize("NFKC", re.sub("[⁰¹²³⁴-⁹]*[⁺⁻]", r"^\g<0>", text[:MAX_KEPT])).replace("−", "-")
    ion = _ION.fullmatch(re.sub(r"[\s_]", "", _SET_UPRIGHT.sub(" ", plain)))
    if ion is None or ion["formula"] in "CNQRZ":
        return None  # `R^+` is a set
    formula, charge = ion["formula"], ion["charge"]
    if charge is None and (simple := re.fullmatch(r"([A-Z][a-z]?)(\d)", formula)):
        formula, charge = simple[1], simple[2]  # Fe3+
    return Words(f"{formula}^{(charge or '').removeprefix('1')}{ion['sign']}")


def _stated(text: str) -> Node | None:
    r"""Return `name = value` where only the name cannot be read: `\text{Area} = 5`, `P(A|B) = 0.5`, `Answer: 5`."""
    match = _NAME.match(text)
    name = "" if match is None else _BRACKETED.sub("", match[1])
    if match is None or _NO_NAME.search(name) or _NOT_NAMED.search(name) or denied_before(match[1], marked=True):
        return None
    try:
        value = parse(match[2])
    except NotMathError:
        return None
    named = Operation("opaque", (Words(" ".join(match[1].split())),))
    if isinstance(value, Relation):
        return Relation(("=", *value.operators), (named, *value.sides)) if set(value.operators) <= {"=", "~"} else None
    return Relation(("=",), (named, value))


def _gap(layout: re.Match[str]) -> str:
    """Return what stands for layout: nothing, or a space where two digits would run together."""
    text, start, end = layout.string, layout.start(), layout.end()
    return " " if text[start - 1 : start].isdigit() and text[end : end + 1].isdigit() else ""


def _named_form(text: str) -> Node | None:
    """Return a time of day, a date, or a short word as words: none of them is arithmetic."""
    if len(text) > 60:
        return None
    if text.strip(" .").lower() in PHRASES or (_LETTERS.fullmatch(text) and not known.names(text)):
        phrase = words(text)
        return meaning(phrase) if phrase is not None else None
    clock = _TIME.fullmatch(" ".join(_CLOCK_MARKUP.sub(" ", text).replace(" : ", ":").split()))
    if clock:
        return Words(f"{clock[1].lstrip('0')} {clock[2].lower()}m")
    return Words(text) if _DATE.fullmatch(text) else _date(text)


_PLAIN_UNITS: Final = re.compile(
    r"(-?\d[\d.,/]*(?:\s?(?:\\times|\\cdot|×|\*)\s?10\^\{?-?\d+\}?)?)\s+([A-Za-z][A-Za-z\d\s/^{}·*-]*)"
)
_UNIT_BEHIND: Final = (
    r"(?<=\d)(?:\s|~|\\[,;: ])+[A-Za-z]+(?:/[A-Za-z]+)?(?:\^\{?-?\d\}?)?(?=\s*(?:[,.;=]|\\[)\]]|\$|\Z))"
)
_UPRIGHT: Final = re.compile(rf"\\(?:text|mathrm|mbox|operatorname)\s*\{{[^{{}}]*\}}|{_UNIT_BEHIND}")


def in_units(gold: Reading, prompt: str) -> Reading | None:
    """Return a gold such as `20 m/s` as a quantity; None where it is none, or a formula in letters of the prompt."""
    match = None if gold.typeset or gold.text[:1] not in _NUMBER_STARTS else _PLAIN_UNITS.fullmatch(gold.text)
    names = re.findall(r"[A-Za-z]+", match[2]) if match else []
    letters = [name for name in names if len(name) == 1]
    if not match or not letters or not all(is_unit(name, upright=True) for name in names):
        return None
    asked = _UPRIGHT.sub(" ", prompt)
    formulas = " ".join(formula[0] for formula in FORMULA.finditer(asked))
    if all(
        re.search(rf"(?<![A-Za-z\\]){name}(?![A-Za-z])", formulas)
        or re.search(rf"\b(?:terms\s+of|let|for)\s+{name}\b|(?<![A-Za-z]){name}\s?[-+=^*]|[-+=^*]\s?\d*{name}\b", asked)
        for name in letters
    ):
        return None
    return read_gold(f"{match[1]}\\text{{ {re.sub('[{}]', '', match[2])}}}")


_IN_BASE: Final = re.compile(rf"\b(?:in|to|into|as)\s+(?:an?\s+)?base[-\s]*\$?(\d+|{NUMBER_WORD})\b")
_BASED: Final = re.compile(r"\(?(\d+)\)?\s*_\s*\{?(\d+)\}?")
_CELSIUS: Final = re.compile(r"(.*\d\s*(?:\^\{?\\circ\}?|°))(?:\s|\\[,;: ])*(?:\\(?:text|mathrm)\{\s*)?[CF]\}?")


def left_out(gold: Reading, answer: Reading, prompt: str) -> Reading | None:
    """Return a gold without what the question says already: the base that it asks for, or the scale of degrees."""
    bare, based = (gold, answer) if gold.number else (answer, gold)
    if bare.number and (number := _BASED.fullmatch(based.text)):
        asked = {str(NUMBER_WORDS.get(base, base)) for base in _IN_BASE.findall(prompt)}
        return answer if number[1] == bare.text and number[2] in asked else None
    scale = _CELSIUS.fullmatch(gold.text)
    return read_gold(scale[1]) if scale else None


_NUMBER_STARTS: Final = frozenset("-0123456789")
_PAIRS: Final = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"))


def _unwrap(text: str) -> str:
    """Return the text without the delimiters around it; a lone dollar sign is money and stays."""
    for opener, closer in _PAIRS:
        if text.startswith(opener) and text.endswith(closer) and len(text) > len(opener) + len(closer):
            inner = text[len(opener) : -len(closer)].strip()
            if "$" not in inner:
                text = inner
    if text.endswith(("\\)", "\\]")) and text.count("\\" + text[-1]) > text.count(
        "\\" + {")": "(", "]": "["}[text[-1]]
    ):
        text = text[:-2].rstrip()
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped:
        text = wrapped[1]
    return text.strip().removesuffix("\\").rstrip() if not text.endswith("\\\\") else text.strip()


def read_answer(text: str) -> Reading:
    """Return the reading of a response's answer; short ones are kept, since responses to one prompt repeat them."""
    return _read_short(text) if len(text) <= MAX_KEPT else Reading(text)


@lru_cache(maxsize=4096)
def _read_short(text: str) -> Reading:
    return Reading(text)


@lru_cache(maxsize=4096)
def read_gold(text: str) -> Reading:
    r"""Return the reading of a gold answer: what is in its last `\boxed`, after its `####`, or all of it."""
    if "boxed" in text:
        extraction = extract(text)
        if extraction is not None and extraction.marker in ("boxed", "final answer"):
            return Reading(extraction.text)
    if "####" in text:
        return Reading(text.rpartition("####")[2])
    reading = Reading(unescape(text))  # parsed only where that matters here: most answers are the gold's very text
    if (len(text) > 80 or "\n" in text.strip()) and reading.tree is None:
        # a whole solution given as the gold; a loose formula in it would be a part of the answer
        extraction = extract(text)
        if extraction is not None and extraction.marker in ("final answer", "answer"):
            inner = Reading(extraction.text)
            if inner.tree is not None:
                inner.whole = reading.literal
                return inner
    if "=" in text and not _NO_NAME.search(reading.text) and reading.tree is None:
        value = Reading(reading.text.rpartition("=")[2])  # the left side names the value in a way that is not read here
        if value.number is not None:
            return value
    return reading
