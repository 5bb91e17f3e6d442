r"""Text to tokens, for LaTeX and for mathematics typed as plain text.

One pass with one regular expression that cannot backtrack; layout commands vanish, Unicode signs become their
ASCII or LaTeX names.  Not covered: user macros (`\\def`, `\\newcommand`), which raise `NotMathError`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from adjudge.verifiers.math.nodes import NotMathError
from adjudge.verifiers.math.numerals import is_list

MAX_TOKENS = 4000  # the longest gold of the public sets has about 700; a longer answer is not an answer

Kind = Literal["number", "name", "command", "text", "sign", "end"]


@dataclass(slots=True)
class Token:
    """A token; `spaced` says that white space stood before it."""

    kind: Kind
    value: str
    spaced: bool = False


# Removed with their argument, or alone.  The order of the two lists does not matter.
_DROPPED = frozenset(
    "left right displaystyle textstyle scriptstyle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm "
    "limits nolimits quad qquad enspace thinspace rm bf it cal noindent nonumber hfill normalsize large Large huge "
    "mathstrut strut allowbreak break newline hline".split()
)
_DROPPED_WITH_ARGUMENT = frozenset("hspace vspace phantom hphantom vphantom tag label color kern mspace".split())
_TRANSPARENT = frozenset("boxed fbox underline bm boldsymbol mathord mathbin displaylines ensuremath".split())
_TEXT = frozenset(
    "text mathrm textbf textit textrm mbox hbox operatorname textsf texttt mathbf mathit mathsf mathtt textnormal "
    "bold emph mathnormal vec hat bar tilde overrightarrow overline mathbb mathcal mathscr mathfrak widehat dot "
    "ddot".split()
)

_UNICODE = str.maketrans(
    {
        "−": "-", "–": "-", "—": "-", "﹣": "-", "－": "-", "‐": "-", "‑": "-", "＋": "+", "×": "*", "·": "*",
        "⋅": "*", "∙": "*", "•": "*", "∗": "*", "✕": "*", "÷": "/", "∕": "/", "⁄": "/", "／": "/", "√": "\\sqrt ",
        "∛": "\\cbrt ", "π": "\\pi ", "Π": "\\Pi ", "∞": "\\infty ", "≤": "\\le ", "≥": "\\ge ", "⩽": "\\le ",
        "⩾": "\\ge ", "≦": "\\le ", "≧": "\\ge ", "≠": "\\ne ", "≈": "\\approx ", "≃": "\\approx ", "±": "\\pm ",
        "∓": "\\mp ", "∪": "\\cup ", "∩": "\\cap ", "∈": "\\in ", "∉": "\\notin ", "∅": "\\emptyset ",
        "ø": "\\emptyset ", "ℝ": "\\mathbb{R}", "ℤ": "\\mathbb{Z}", "ℕ": "\\mathbb{N}", "ℚ": "\\mathbb{Q}",
        "ℂ": "\\mathbb{C}", "°": "\\degree ", "º": "\\degree ", "′": "'", "’": "'", "″": "''", "…": "\\ldots ",
        "⋯": "\\ldots ", "¬": "\\neg ", "∧": "\\wedge ", "∨": "\\vee ", "⟨": "\\langle ", "⟩": "\\rangle ",
        "⌊": "\\lfloor ", "⌋": "\\rfloor ", "⌈": "\\lceil ", "⌉": "\\rceil ", "（": "(", "）": ")", "，": ", ",
        "、": ", ", "；": "; ", "：": ":", "。": ". ", "［": "[", "］": "]", "｛": "\\{", "｝": "\\}", "＝": "=",
        "＜": "<", "＞": ">", "％": "%", "＄": "$", "∣": "|", "｜": "|", "‖": "\\|", "¢": " cents", "€": "\\euro ",
        "£": "\\pounds ", "¥": "\\yen ", "₹": "\\rupee ", "∖": "\\setminus ", "→": "\\to ", "\u00a0": "~",
        "\u202f": "~", "\u2009": "~", "\u2002": " ", "\u2003": " ", "\u3000": " ", "\u200b": "", "\u200c": "",
        "\u200d": "", "\ufeff": "", "\u2060": "", "\u2061": "", "\u2062": "*", "ⅈ": "i", "ⅇ": "e", "ℯ": "e",
        "∆": "\\Delta ",
    }
)  # fmt: skip
_GREEK = {
    chr(code): f"\\{name} "
    for code, name in zip(
        range(0x3B1, 0x3CA),
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho varsigma sigma tau "
        "upsilon phi chi psi omega".split(),
        strict=True,
    )
} | {
    "Γ": "\\Gamma ",
    "Δ": "\\Delta ",
    "Θ": "\\Theta ",
    "Λ": "\\Lambda ",
    "Σ": "\\Sigma ",
    "Φ": "\\Phi ",
    "Ω": "\\Omega ",
}
_GREEK_TABLE = str.maketrans(_GREEK)
_GREEK_INDEX = re.compile(f"([{''.join(_GREEK)}])(?<!π)(\\d+)(?![.\\d])")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ", "0123456789+-=()ni")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙₓ", "0123456789+-=()nx")
_SUPERSCRIPT_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ]+")
_SUBSCRIPT_RUN = re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙₓ]+")
_VULGAR = re.compile("[¼½¾⅐-⅞↉]")


def plain(text: str) -> str:
    """Return the text with Unicode mathematics spelt in ASCII and LaTeX."""
    if text.isascii():
        return text
    text = _GREEK_INDEX.sub(r"\1_{\2}", text).translate(_UNICODE).translate(_GREEK_TABLE)
    text = _SUPERSCRIPT_RUN.sub(lambda run: "^{" + run[0].translate(_SUPERSCRIPTS) + "}", text)
    text = _SUBSCRIPT_RUN.sub(lambda run: "_{" + run[0].translate(_SUBSCRIPTS) + "}", text)
    text = _VULGAR.sub(lambda sign: _vulgar(sign[0]), text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return text


def _vulgar(sign: str) -> str:
    above, _, below = unicodedata.normalize("NFKC", sign).partition("\u2044")
    return f"\\frac{{{above}}}{{{below}}}"


_TOKEN = re.compile(
    r"(?P<space>(?:\s|~|\\[,;:!]|\\\s)+)"
    r"|(?P<repeating>\d+\.(?:\d*\\(?:overline|bar|dot)\s*(?:\{\d+\}|\d)|\(\d+\)))"
    r"|(?P<number>(?:\d+(?:\.\d+|\.(?=[/*^+)-]))?|\.\d+)(?:[eE][+-]?\d+(?![\w.]))?)"
    r"|(?P<command>\\(?:[A-Za-z]+\*?|.))"
    r"|(?P<name>[^\W\d_]+)"
    r"|(?P<sign>\*\*|<=|>=|!=|=>|:=|==|\.\.\.|[^\s\w]|_)",
    re.DOTALL,
)
_THOUSANDS = re.compile(r"(?:(?:,\\! ?|,|\{,\}|\\!?,|~|\\ )\d{3})+(?![\d])")
_IN_LIST = re.compile(r"\d,\Z")
_NOT_DIGITS = re.compile(r"\D+")
_AMBIGUOUS = re.compile(r"\d\.\d+\(\d+\)")
_DOTS = re.compile(r"\s*(?:\\[lc]?dots[bc]?(?![A-Za-z])|\.\.\.)")
_PERIODIC = re.compile(r"(\d+\.\d*?)(?:(\d)\2{2,}|(\d{2,}?)\3+)")
_REPEATING = re.compile(r"\\(?:overline|bar|dot)\s*\{?|\(")
_FRACTION_PART = re.compile(r"\.\d+")
_BRACE = re.compile(r"[{}]")
_TEXT_MARKUP = re.compile(r"\\(?:mathrm|text|operatorname|mathbf|,|;|:|!| )|[~$]")
_TEXT_BRACES = re.compile(r"(?<=\^)\s*\{|(?<=\d)\}|[{}]")
_SPACING = re.compile(r"q?quad(?=[a-zA-Z])")
_RENAMED = {"lbrace": "{", "rbrace": "}", "tfrac": "frac", "dfrac": "frac", "cfrac": "frac"}
_MACROS = frozenset("def newcommand renewcommand let input include write csname expandafter edef gdef".split())


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a text, ending with one of kind "end".

    Raises:
        NotMathError: a character or command has no meaning here, or there are more than `MAX_TOKENS` tokens.
    """
    text = plain(text)
    if _AMBIGUOUS.search(text):
        raise NotMathError("a repeating decimal or a product, as in 0.1(6)")
    tokens: list[Token] = []
    at, depth, spaced, length = 0, 0, False, len(text)
    while at < length:
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotMathError(f"the character {text[at]!r} at {at} has no mathematical meaning")
        kind, value, at = match.lastgroup, match[0], match.end()
        if kind == "space":
            spaced = True
            continue
        if len(tokens) >= MAX_TOKENS:
            raise NotMathError(f"more than {MAX_TOKENS} tokens")
        if kind == "number":
            # "1,234" is one number, but inside brackets and in lists ("27,54,108", "108,135,189") a comma separates
            if "." not in value and "e" not in value.lower() and len(value) <= 3:
                group = _THOUSANDS.match(text, at)
                if group and value[0] != "0" and not _separates(text, match.start(), value + group[0], depth):
                    value += _NOT_DIGITS.sub("", group[0])
                    at = group.end()
                    fraction = _FRACTION_PART.match(text, at)
                    if fraction:
                        value += fraction[0]
                        at = fraction.end()
            elif "." in value and (going := _DOTS.match(text, at)) and (period := _PERIODIC.fullmatch(value)):
                value, at = f"{period[1]}r{period[2] or period[3]}", going.end()
            tokens.append(Token("number", value, spaced))
        elif kind == "repeating":
            tokens.append(Token("number", _REPEATING.sub("r", value).rstrip("})"), spaced))
        elif kind == "command":
            at, depth = _command(text, at, value, tokens, spaced, depth)
        elif kind == "name":
            tokens.append(Token("name", value, spaced))
        else:
            if value == "$":
                spaced = _dollar(text, at, tokens, spaced)
                continue
            depth += (value in "([") - (value in ")]")
            tokens.append(Token("sign", value, spaced))
        spaced = False
    tokens.append(Token("end", "", spaced))
    return tokens


def _separates(text: str, start: int, grouped: str, depth: int) -> bool:
    """Whether the commas of a number in groups of three digits separate the numbers of a list."""
    if "," not in grouped.replace("\\,", "").replace("{,}", ""):
        return False
    return bool(depth or _IN_LIST.search(text, 0, start) or is_list(grouped))


def _dollar(text: str, at: int, tokens: list[Token], spaced: bool) -> bool:
    """Keep a dollar that stands for money (`$5`, with no partner), drop one that delimits mathematics."""
    if text.count("$") % 2 and text.count("\\$") == 0 and at < len(text) and text[at].isdigit():
        tokens.append(Token("command", "$", spaced))
        return False
    return True


def _command(text: str, at: int, value: str, tokens: list[Token], spaced: bool, depth: int) -> tuple[int, int]:
    name = value[1:].rstrip("*")
    name = _RENAMED.get(name, name)
    spacing = _SPACING.match(name)
    if spacing:
        return at - (len(name) - spacing.end()), depth  # "\\quadx" is a space and an x
    if name in _DROPPED:
        if name in ("left", "right") and text.startswith(".", at):
            at += 1
        return at, depth
    if name in _DROPPED_WITH_ARGUMENT:
        return _argument(text, at)[1], depth
    if name in ("(", ")", "[", "]") or name in _TRANSPARENT:
        return at, depth
    if name in _TEXT:
        body, at = _argument(text, at)
        if "\\" in body or "^" in body or "_" in body:
            body = _TEXT_MARKUP.sub(" ", _TEXT_BRACES.sub("", body)).replace("\\AA", "Å")
        spaced = spaced or body[:1] in (" ", "~")
        body = body.replace("~", " ").strip()
        if body.startswith((",", ";")):
            tokens.append(Token("sign", body[0], spaced))
            body = body[1:]
        if body.strip(" ,;") or not body:
            tokens.append(Token("text", f"{name}:{body}", spaced))
        if body.endswith((",", ";")):
            tokens.append(Token("sign", body[-1]))
        return at, depth
    if name == "AA":
        tokens.append(Token("name", "Å", spaced))
        return at, depth
    if name == "textcolor":
        return _argument(text, at)[1], depth
    if name in _MACROS:
        raise NotMathError(f"\\{name} defines macros or reads files")
    if name == "begin" or name == "end":
        body, at = _argument(text, at)
        body = body.strip().rstrip("*")
        if name == "begin" and body == "array":
            at = _argument(text, at)[1]
        tokens.append(Token("command", f"{name}:{body}", spaced))
        return at, depth
    depth += (name == "{") - (name == "}")
    tokens.append(Token("command", name, spaced))
    return at, depth


def _argument(text: str, at: int) -> tuple[str, int]:
    """Return the braced argument that starts at `at` (or the next single character) and where it ends."""
    while at < len(text) and text[at] in " \t\n":
        at += 1
    if at >= len(text):
        raise NotMathError("a command at the end lacks its argument")
    if text[at] == "\\":
        match = _TOKEN.match(text, at)
        assert match is not None
        return match[0], match.end()
    if text[at] != "{":
        return text[at], at + 1
    level, start = 0, at
    for brace in _BRACE.finditer(text, at):
        level += 1 if brace[0] == "{" else -1
        if level == 0:
            return text[start + 1 : brace.start()], brace.end()
    raise NotMathError("a brace is never closed")
