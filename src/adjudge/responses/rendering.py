r"""A response as Markdown, HTML and TeX show it: its source less what is never shown, and the words that are read.

| what | `without_hidden` | `as_read` |
|---|---|---|
| comments, link definitions, front matter, elements that no page or style shows | out | out |
| phantoms, definitions, labels and settings of TeX | out | out |
| tags with their attributes, targets and titles of links, pictures, languages of code fences | stays | out |
| entities, commands of TeX in formulas | stay | what they stand for |
| code, in a fence or between backticks | stays | stays |

A style hides a text unless each of its declarations is known to do no harm, and a colour does unless it is known to
differ from the page.  What is not closed hides all that follows, as it does on a page.

Not covered: style sheets, and what a reader does not look at although it is shown.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, TypeAlias

_NEVER_SHOWN: Final = frozenset(
    "script style template noscript title head iframe object embed datalist select option video audio canvas map meta "
    "noframes noembed rp param applet xml annotation".split()
)
_VOID: Final = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_BLOCKS: Final = frozenset(
    "address article aside blockquote br caption center dd details dialog div dl dt fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table tbody td tfoot th thead tr ul".split()
)
_COLOURS: Final = frozenset(
    "black red green blue purple orange brown gray grey navy teal maroon olive darkred darkgreen darkblue crimson "
    "magenta violet indigo orangered darkorange tomato steelblue royalblue forestgreen seagreen firebrick".split()
)
_HARMLESS: Final = re.compile(
    r"(?:font-(?:weight|style|family)|text-(?:align|decoration)|margin(?:-\w+)?|padding(?:-\w+)?|border(?:-\w+)*"
    r"|list-style(?:-type)?|line-height|max-width)\s*:[^-(]*\Z|(?:font-size)\s*:\s*(?:[1-9]\d|large|medium|small)[a-z-]*\Z"
)
_HIDING_CLASS: Final = re.compile(r"\b(?:hidden|sr-only|visually-hidden|d-none|invisible|collapse)\b")
_ATTRIBUTE: Final = re.compile(r"""([^\s"'<>/=]+)(?:\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)'|([^\s"'<>`=]+)))?""")

_ARGUMENTS: Final = {
    name: count
    for count, names in {
        1: "phantom hphantom vphantom label ref eqref pageref autoref cref Cref cite citep citet nocite index glossary "
        "usepackage documentclass input include includegraphics bibliography bibliographystyle hypersetup pdfinfo "
        "hspace vspace hide special typeout message href hypertarget hyperlink cssId class htmlId htmlClass htmlData",
        2: "newcommand renewcommand providecommand DeclareMathOperator newtheorem setlength addtolength setcounter",
        3: "newenvironment renewenvironment",
    }.items()
    for name in names.split()
}
"""Commands of TeX, each with how many of its arguments, from the first on, are not shown."""

_HIDING_NAMES: Final = sorted(
    {*_ARGUMENTS, *"iffalse if0 color textcolor transparent texttransparent opacity def gdef edef xdef".split()}
)
HIDING: Final = (
    r"\\(?:begin\s{0,3}\{comment(?=\})|"
    + "|".join(  # by the first letter, which is twice as fast
        f"{first}(?:{'|'.join(name[1:] for name in names)})"
        for first, names in itertools.groupby(_HIDING_NAMES, key=lambda name: name[0])
    )
    + ")(?![A-Za-z])"
)
"""A command of TeX that hides what stands behind it."""

_SCAN: Final = re.compile(
    r"""(?P<escape>\\[\\`<])
    |(?P<fence>^[ >]{0,9}(?P<rail>`{3,}|~{3,})(?P<info>[^\n`]*)$)
    |(?P<code>`+)
    |(?P<title><<[^<>\n]+>>)
    |(?P<comment><!--)
    |(?P<other><!\[CDATA\[|<[?!](?=\w))
    |(?P<tag><(?P<slash>/?)(?P<name>[A-Za-z][\w:-]{0,60})(?P<given>(?=[\s/>])(?:[^"'<>]|"[^"]*+"|'[^']*+'){0,2000}+)>)
    |(?P<open>^[ ]{0,3}</?(?:p|div|table|section|ul|li|h[1-6]|details)(?=\s)[^<>]*+\Z)
    |(?P<tex>"""
    + HIDING
    + r""")
    |(?P<conceal>\x1b\[(?:\d+;){0,9}8m)""",
    re.MULTILINE | re.VERBOSE,
)
_MARKUP: Final = re.compile(r"[<`~\x1b]|\\[A-Za-z]")
_FRONT: Final = re.compile(r"\A---[ \t]*\n(?:[ \t]*(?:#.*|- .*|[\w-]+:.*|)\n){1,200}?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_TITLE: Final = r"""(?:[ \t]+(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\)))?"""
_DEFINITION: Final = re.compile(
    rf"^ {{0,3}}\[(?!\^)([^\[\]\n]+)\]:[ \t]*(?:<[^<>\n]*>|[^\s<]\S*){_TITLE}[ \t]*$", re.MULTILINE
)
"""A line that names a link of Markdown: nobody sees it, whatever stands in the title."""

LINK: Final = re.compile(
    r"(!?)\[((?:[^\[\]\n]|\n(?!\s*\n)){0,500})\]\([ \t]{0,9}"
    r"(?:<[^<>\n]{0,2000}>|(?:[^\s()<>]|\([^\s()]{0,500}\)){0,2000}+)"
    + r"""(?:\s{1,9}(?:"[^"]{0,500}"|'[^']{0,500}'|\([^()]{0,500}\)))?[ \t]{0,9}\)"""
)
_REFERENCE: Final = re.compile(r"(!?)\[([^\[\]\n]{1,500})\]\[([^\[\]\n]{0,500})\]")
_FORMULA: Final = re.compile(
    r"\$\$[^$]{1,2000}\$\$|\$(?=[^$]{0,2000}\\)[^$]{1,2000}\$"
    r"|\\\((?:[^\\]|\\(?!\))){1,2000}\\\)|\\\[(?:[^\\]|\\(?!\])){1,2000}\\\]"
)
_COMMAND: Final = re.compile(r"\\[A-Za-z]+\*?|(?<!\\)%[^\n]*|\\[,;:! ]")

_BRACE: Final = re.compile(r"\\.|[{}$]|\n[ \t]*\n", re.DOTALL)
_PARAMETERS: Final = re.compile(r"\s{0,9}\\(?:[A-Za-z@]+|.)[^{}]{0,2000}\{", re.DOTALL)
_BEFORE_ARGUMENT: Final = re.compile(r"\*?(?:\s{0,9}\[[^\[\]]{0,2000}\]){0,9}\s{0,9}")
_NAME: Final = re.compile(r"\\[A-Za-z@]+")
_SHOWN_AGAIN: Final = re.compile(r"\x1b\[(?:\d+;){0,9}(?:0|28)?m")
_SUMMARY: Final = re.compile(r"<summary[^<>]*>([^<]*)", re.IGNORECASE)
_TEX_END: Final = {"iffalse": r"\fi", "if0": r"\fi", "comment": r"\end{comment}"}


def without_hidden(text: str) -> str:
    """Return the source of a text less what is never shown.  Linear in its length."""
    if text.startswith("---"):
        text = _FRONT.sub("", text)
    if _MARKUP.search(text):
        text = "".join(part for part, _ in _Scan(text, source=True).parts())
    return _DEFINITION.sub("", text) if "]:" in text else text


def as_read(text: str) -> str:
    """Return the words of a text that `without_hidden` has left: without tags, targets of links and the like."""
    if _MARKUP.search(text):
        parts = _Scan(text, source=False).parts()
        return "".join(part if code else _read(part) for part, code in _joined(parts))
    return _read(text)


def _read(text: str) -> str:
    if "](" in text or "][" in text:
        for _ in range(2):  # a picture inside a link
            text = LINK.sub(link_text, text)
        text = _REFERENCE.sub(link_text, text)
    if "\\" in text or "$$" in text:
        text = _FORMULA.sub(lambda match: _COMMAND.sub(" ", match[0]), text)
    return html.unescape(text) if "&" in text else text


def link_text(match: re.Match[str]) -> str:
    """Return what a link shows; of a picture, nothing."""
    return "" if match[1] else match[2]


def _joined(parts: Iterator[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """Yield the parts with those side by side that are not code as one."""
    plain: list[str] = []
    for part, code in parts:
        if code:
            yield "".join(plain), False
            plain = []
            yield part, True
        else:
            plain.append(part)
    yield "".join(plain), False


_Shown: TypeAlias = tuple[str, int, bool]
"""What is shown of a find, where the text goes on, and whether it is code."""


class _Scan:
    def __init__(self, text: str, *, source: bool) -> None:
        """Hold a text, and whether marks of what is shown stay as they are written."""
        self._text, self._source = text, source
        self._last_comment = text.rfind("-->")

    def parts(self) -> Iterator[tuple[str, bool]]:
        """Yield the parts of the text that are shown, each with whether it is code."""
        at = 0
        while match := _SCAN.search(self._text, at):
            yield self._text[at : match.start()], False
            shown, at, code = _KINDS[str(match.lastgroup)](self, match)
            yield shown, code
        yield self._text[at:], False

    def as_is(self, match: re.Match[str]) -> _Shown:
        return match[0], match.end(), False

    def escape(self, match: re.Match[str]) -> _Shown:
        return match[0], match.end(), not self._source

    def fence(self, match: re.Match[str]) -> _Shown:
        closing = _closing_rail(match["rail"][0], len(match["rail"])).search(self._text, match.end())
        inside, end = (closing.start(), closing.end()) if closing else (len(self._text), len(self._text))
        return self._text[match.start() : end] if self._source else self._text[match.end() : inside], end, True

    def code(self, match: re.Match[str]) -> _Shown:
        marks, text = match[0], self._text
        at = text.find(marks, match.end())
        while at >= 0 and text[at + len(marks) : at + len(marks) + 1] == "`":
            while text[at : at + 1] == "`":
                at += 1
            at = text.find(marks, at)
        if at < 0 or "\n\n" in text[match.end() : at]:
            return marks, match.end(), False
        end = at + len(marks)
        return text[match.start() : end] if self._source else text[match.end() : at], end, True

    def comment(self, match: re.Match[str]) -> _Shown:
        """Take a comment out; one that is never closed hides what follows where it begins a line."""
        if match.start() + 2 <= self._last_comment:
            return self.up_to("-->", match.start() + 2)
        begins = not self._text[max(0, match.start() - 4) : match.start()].rpartition("\n")[2].strip(" ")
        begins = begins and (match.start() < 4 or "\n" in self._text[match.start() - 4 : match.start()])
        return ("", len(self._text), False) if begins else self.as_is(match)

    def up_to(self, end: str, start: int) -> _Shown:
        at = self._text.find(end, start)
        return "", at + len(end) if at >= 0 else len(self._text), False

    def tag(self, match: re.Match[str]) -> _Shown:
        name, given = match["name"].lower(), match["given"]
        if not match["slash"] and not given.endswith("/") and name not in _VOID:
            folded = name in ("details", "dialog") and not re.search(r"\bopen\b", given)
            if folded or name in _NEVER_SHOWN or (given.strip() and _hides(given)):
                end = self._element_end(name, match.end())
                summary = _SUMMARY.search(self._text, match.end(), end) if folded else None
                return summary[1] if summary else "", end, False
        return match[0] if self._source else " " if name in _BLOCKS else "", match.end(), False

    def _element_end(self, name: str, start: int) -> int:
        depth = 1
        for mark in _marks(name).finditer(self._text, start):
            depth += -1 if mark[1] else 1
            if not depth:
                return mark.end()
        return len(self._text)

    def tex(self, match: re.Match[str]) -> _Shown:
        command, at, text = match[0].strip("\\"), match.end(), self._text
        for name, end in _TEX_END.items():
            if name in command:
                return self.up_to(end, at)
        if command.endswith("def"):
            head = _PARAMETERS.match(text, at)
            return ("", self._group_end(head.end()), False) if head else self.as_is(match)
        if command in _ARGUMENTS:
            behind = self._arguments_end(at, _ARGUMENTS[command])
            return ("", behind, False) if behind > at else self.as_is(match)
        if command.endswith("color"):
            if text[at : at + 1] != "{" or (closed := text.find("}", at, at + 40)) < 0:
                return self.as_is(match)
            if _is_shown_colour(text[at + 1 : closed]):
                return self.as_is(match)
            at = closed + 1
        blank = len(text[at : at + 9]) - len(text[at : at + 9].lstrip())
        if text[at + blank : at + blank + 1] == "{":
            return "", self._group_end(at + blank + 1), False
        return "", max(at, self._group_end(at, "$") - 1), False

    def _arguments_end(self, start: int, count: int) -> int:
        """Return where so many arguments end, or those that are there; one before the last may be a bare command."""
        end = start
        for left in range(count, 0, -1):
            before = _BEFORE_ARGUMENT.match(self._text, end)
            assert before
            if self._text[before.end() : before.end() + 1] == "{":
                end = self._group_end(before.end() + 1)
            elif left > 1 and (name := _NAME.match(self._text, before.end())):
                end = name.end()
            else:
                return end
        return end

    def _group_end(self, start: int, stop: str = "") -> int:
        """Return where a group of TeX ends that begins before `start`; a paragraph ends it too."""
        depth = 1
        for sign in _BRACE.finditer(self._text, start):
            depth += {"{": 1, "}": -1}.get(sign[0], 0)
            if not depth or sign[0] == stop or sign[0][0] == "\n":
                return sign.end()
        return len(self._text)

    def conceal(self, match: re.Match[str]) -> _Shown:
        shown = _SHOWN_AGAIN.search(self._text, match.end())
        return "", shown.end() if shown else len(self._text), False


_KINDS: Final[dict[str, Callable[[_Scan, re.Match[str]], _Shown]]] = {
    "escape": _Scan.escape,
    "fence": _Scan.fence,
    "code": _Scan.code,
    "title": _Scan.as_is,
    "comment": _Scan.comment,
    "other": lambda scan, match: scan.up_to(">", match.end()),
    "tag": _Scan.tag,
    "open": lambda scan, match: ("", match.end(), False),
    "tex": _Scan.tex,
    "conceal": _Scan.conceal,
}


@cache
def _closing_rail(sign: str, length: int) -> re.Pattern[str]:
    return re.compile(rf"^[ >]{{0,9}}{re.escape(sign)}{{{length},}}[ \t]*$", re.MULTILINE)


@cache
def _marks(name: str) -> re.Pattern[str]:
    return re.compile(rf"<(/?){re.escape(name)}\b[^<>]*>", re.IGNORECASE)


def _hides(given: str) -> bool:
    for attribute in _ATTRIBUTE.finditer(given):
        key, value = attribute[1].lower(), html.unescape(attribute[2] or attribute[3] or attribute[4] or "").lower()
        if key == "hidden" or (key == "class" and _HIDING_CLASS.search(value)):
            return True
        if key == "color" and not _is_shown_colour(value):
            return True
        if key == "style" and not all(map(_is_harmless, filter(str.strip, value.split(";")))):
            return True
    return False


def _is_harmless(declaration: str) -> bool:
    declaration = declaration.strip()
    key, _, value = declaration.partition(":")
    return _is_shown_colour(value) if key.strip() == "color" else bool(_HARMLESS.match(declaration))


def _is_shown_colour(value: str) -> bool:
    """Return whether a colour is known and surely darker than a white page."""
    value = value.strip().lower().removesuffix("!important").strip()
    if match := re.fullmatch(r"#?([0-9a-f])([0-9a-f])([0-9a-f])|#?([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})", value):
        return min(int(part * 2 if len(part) == 1 else part, 16) for part in match.groups() if part) < 0xB0
    return value in _COLOURS
