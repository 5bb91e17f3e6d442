r"""Take the wrapping off a short piece of text: quotes, Markdown emphasis, LaTeX text commands.

Characters that show nothing, and what a page hides or strikes out, are taken out wherever they stand.

Not covered: parsing Markdown or LaTeX.  Only what encloses the whole text is taken off, a bounded number of times.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from adjudge.responses.answer_marks import in_known_marks
from adjudge.responses.rendering import HIDING, LINK, link_text, without_hidden

_PAIRS: tuple[tuple[str, str], ...] = (
    ("$$", "$$"),
    ("$", "$"),
    ("**", "**"),
    ("__", "__"),
    ("*", "*"),
    ("```", "```"),
    ("`", "`"),
    ('"', '"'),
    ("'", "'"),
    ("“", "”"),
    ("‘", "’"),
    ("«", "»"),
    ("「", "」"),
    (r"\(", r"\)"),
    (r"\[", r"\]"),
)
_FIRST = frozenset(opening[0] for opening, _ in _PAIRS)
_TEXT = r"\\(?:text|textbf|textit|textrm|texttt|mathrm|mathbf|mathsf|mathit|mbox|boxed|fbox)\s{0,3}\{"
_COMMAND = re.compile(_TEXT)
_TYPOGRAPHIC = str.maketrans("‘’‚‛ʼ“”„‟‐‑–−", "'" * 5 + '"' * 4 + "-" * 4)
_MAX_LAYERS = 8
_MAX_TEXT = 20_000


def unwrap(text: str, keep: re.Pattern[str] | None = None) -> str:
    r"""Return `text` without the marks that enclose all of it; never empty when `text` is not.

    `"**B**"`, `"$\\text{B}$"` and `"“B”"` all give `"B"`.  At most eight layers are taken off, and none from a text
    longer than 20,000 characters.  What is all of the form `keep` is taken for itself.
    """
    if len(text) > _MAX_TEXT:
        return text
    for _ in range(_MAX_LAYERS):
        if keep is not None and keep.fullmatch(text):
            return text
        inner = _one_layer(text).strip()
        if not inner or len(inner) == len(text):
            return text
        text = inner
    return text


_FENCE = re.compile(r"```[\w+-]{0,20}[ \t]{0,3}\n(?P<inside>.*)```|(?P<mark>`+)(?P<code>[^`]+)(?P=mark)", re.DOTALL)


def unfenced(text: str) -> str:
    """Return a text without the marks of Markdown that make all of it code."""
    fence = _FENCE.fullmatch(text)
    inside = fence[fence.lastgroup or 0].strip() if fence else text
    return text if "```" in inside else inside


def _one_layer(text: str) -> str:
    if text[:1] == "\\" and text[-1:] == "}" and (command := _COMMAND.match(text)):
        inner = text[command.end() : -1]
        return inner if _balanced(inner) else text
    if text[:1] in _FIRST:
        for opening, closing in _PAIRS:
            if len(text) > len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing):
                inner = text[len(opening) : -len(closing)]
                # "x" or "y" is not one quoted text.
                return text if opening in inner or closing in inner else inner
    return text


def plain_quotes(text: str) -> str:
    """Return `text` with the quotes, apostrophes, hyphens and short dashes that a keyboard has."""
    return text if text.isascii() else text.translate(_TYPOGRAPHIC)


def _balanced(text: str) -> bool:
    depth = 0
    for brace in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth < 0:
            return False
    return depth == 0


_TEX = re.compile(
    rf"(?P<quoted>(?<!\w)[bruBRU]{{0,2}}(?:'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"))"
    rf"|{_TEXT}(?P<said>[^{{}}\n]*)\}}|\\(?P<name>[A-Za-z]+) ?|\\(?P<sign>[^A-Za-z\n])"
)
_TEX_NAMES: Final = {
    **dict.fromkeys("to rightarrow longrightarrow Rightarrow Longrightarrow implies mapsto".split(), "→"),
    **dict.fromkeys("leftrightarrow longleftrightarrow".split(), "↔"),
    **dict.fromkeys("quad qquad enspace thinspace".split(), " "),
    **dict.fromkeys("left right displaystyle".split(), ""),
    **dict(zip("leftarrow uparrow downarrow gt succ infty lbrace rbrace".split(), "←↑↓>>∞{}", strict=True)),
}
_TEX_SIGNS: Final = {**dict.fromkeys(" ,;:", " "), "!": "", **{sign: sign for sign in "{}_%$&#"}}
_MAX_NESTED = 3


def without_tex(text: str) -> str:
    r"""Return a list or a mapping written in TeX as one typed in plain text: `\{1 \to 2\}` is `{1 → 2}`.

    Commands of formulas stay, and so does what stands in straight quotes: a program's text may hold `\t`.
    """
    for _ in range(_MAX_NESTED):
        if "\\" not in text:
            break
        text = _TEX.sub(_typed, text)
    return text


def _typed(tex: re.Match[str]) -> str:
    if tex["said"] is not None:
        return tex["said"]
    name, sign = tex["name"], tex["sign"]
    if name in _TEX_NAMES:
        return _TEX_NAMES[name] + " " * tex[0].endswith(" ")
    return _TEX_SIGNS.get(sign, tex[0]) if sign else tex[0]


def invisible(text: str) -> str:
    """Return `text` without characters that show nothing: format and control characters, whitespace kept."""
    dropped = {
        ord(char): None
        for char in set(text)
        if not char.isspace() and (unicodedata.category(char) in ("Cf", "Cc") or char in _FILLERS)
    }
    return text.translate(dropped) if dropped else text


# Letters by category, but drawn as nothing: Hangul fillers, the combining grapheme joiner, variation selectors.
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u034f") | frozenset(map(chr, range(0xFE00, 0xFE10)))


_COMMAND_SIGNS: Final = re.compile(rf"{HIDING}|\\(?:sout|st\s?\{{|cancel|[bx]cancel)")
_TAG: Final = re.compile(r"<(?!/?(?:answer|think)>)[!?A-Za-z]")
_SEQUENCE: Final = re.compile(r"\A\s*<s>(?!.*<s>)(.*)</s>\s*\Z", re.DOTALL)
_STRUCK: Final = re.compile(
    r"(?<![\\~])~~(?=[^\s~])(?:[^\n~]|~(?!~)|\n(?!\s*\n)){1,2000}?(?<=\S)~~(?!~)"
    r"|<(s|del|strike)(?:\s[^<>]{0,200})?>(?:[^<]|<(?!/?\1\b)){0,4000}?</\1\s*>"
    r"|<([a-z]\w{0,20})\s[^<>]{0,200}line-through[^<>]{0,200}>(?:[^<]|<(?!/?\2\b)){0,4000}?</\2\s*>"
    r"|\\(?:sout|st)\s?\{[^{}\n]{0,200}(?:\{[^{}\n]{0,200}\}[^{}\n]{0,200}){0,8}\}"
    r"|\\[bx]?cancel\{[^{}\n]{0,200}\\boxed\{[^{}\n]{0,200}(?:\{[^{}\n]{0,200}\}[^{}\n]{0,200}){0,8}\}[^{}\n]{0,200}\}"
    r"|(?:.\u0336)+",
    re.DOTALL | re.IGNORECASE,
)
_ANSWER: Final = re.compile(r"\\(?:boxed|fbox)|####|answer|答案", re.IGNORECASE)
_ATTRIBUTES: Final = re.compile(
    r"(<(?!answer|think)[a-z][\w-]{0,20})\s(?:[^<>\"']|\"[^\"]*+\"|'[^']*+'){1,2000}+>", re.IGNORECASE
)
_LAST_TOKEN: Final = re.compile(
    r"(?:<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|return|call)\|>|</s>|<end_of_turn>|<eos>"
    r"|<｜end▁of▁sentence｜>)\s*"
)
_REMARK: Final = re.compile(
    r"(?:^|(?<=[.!?,:;])|(?<=[.!?,:;] ))[ \t]*%(?!\d| of\b)[^\n]*|(?<=\s)%[ \t]*\\boxed[^\n]*"
    r"|\[(?://|comment)\]:[ \t]*#[^\n]*",
    re.MULTILINE,
)


def visible_answer(text: str) -> str:
    r"""Return `text` without what its reader does not see or sees struck out, its answers in marks that readers know.

    Out are comments of HTML and TeX, link definitions of Markdown, elements and commands that hide what they hold
    (white, phantom, folded), and `~~struck~~`, `<s>`, `<del>` and `\sout` text.  A percent sign begins a comment of
    TeX only where it cannot stand behind a number.  So are attributes and targets of links that hold an answer, and
    the token at the end of a turn.  Marks are those of `answer_marks`.
    """
    return in_known_marks(_unhidden(text[: text_end(text)]))


def text_end(text: str) -> int:
    """Return where a text ends without the tokens that end a turn, and the blanks before them; `len(text)` if none."""
    end = len(text)
    while (last := text.rfind("<", 0, end)) >= 0 and _LAST_TOKEN.fullmatch(text, last, end):
        end = last
    return len(text) if end == len(text) or "<s>" in text else len(text[:end].rstrip())


def _unhidden(text: str) -> str:
    if "%" in text or "]:" in text:
        text = _REMARK.sub("", text)
    marked = "<" in text and _TAG.search(text)
    signed = ("~" in text and "~~" in text) or "\x1b" in text or "]:" in text or "\u0336" in text
    hides_answer = ("](" in text or (marked and "=" in text)) and _ANSWER.search(text)
    if not (marked or signed or hides_answer or _COMMAND_SIGNS.search(text)):
        return text
    if marked and (whole := _SEQUENCE.match(text)):
        text = whole[1]  # the first and last token of a sequence, not an element that strikes out
    if hides_answer:
        text = _ATTRIBUTES.sub(lambda tag: f"{tag[1]}>" if _ANSWER.search(tag[0]) else tag[0], text)
        text = LINK.sub(lambda link: link_text(link) if _ANSWER.search(link[0]) else link[0], text)
    hidden = without_hidden("\n" + text)[1:]  # a line in front: `---` on the first is a rule, no front matter
    return _STRUCK.sub("", hidden)


# Thai and Lao, Myanmar, Khmer, kana, CJK ideographs with their extensions.
UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Characters of scripts that have no spaces between words, for a class of a regular expression."""

_UNSPACED = re.compile(f"[{UNSPACED}]")


def spaced(text: str) -> str:
    """Return the text with a space on both sides of every character of such a script."""
    return text if text.isascii() else _UNSPACED.sub(r" \g<0> ", text)
