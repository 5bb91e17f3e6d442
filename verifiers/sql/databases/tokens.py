"""The tokens of a SQL text, as the engine itself will read them.

Rules of SQLite (www.sqlite.org/lang_keywords.html, lang_comment.html) or of PostgreSQL (manual, 4.1 "Lexical
Structure"), which DuckDB's parser shares: escape strings, dollar quotes, nested comments.  Where a text could be read
in two ways, the guards must not see less than the engine does, so what is not closed is one token of the kind "bad".

Not covered: grammar.  Linear in the length of the text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

Dialect: TypeAlias = Literal["sqlite", "duckdb", "postgres"]
Kind: TypeAlias = Literal["word", "quoted", "string", "number", "sign", "bad"]

_WORD = r"(?P<word>[^\W\d][\w$]*)"
_NUMBER = r"(?P<number>(?:\d[\w.]*|\.\d[\w.]*))"
_SIGN = r"(?P<sign>\|\||[^\s\w])"
_STRING = r"'[^']*(?:''[^']*)*'"
_QUOTED = r'"[^"]*(?:""[^"]*)*"'

_SQLITE: Final = re.compile(
    r"(?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))"
    rf"|(?P<string>[xX]?{_STRING})"
    rf"|(?P<quoted>{_QUOTED}|`[^`]*(?:``[^`]*)*`|\[[^\]]*\])"
    r"|(?P<bad>[xX]?['\"`\[].*)"
    rf"|{_WORD}|{_NUMBER}|{_SIGN}",
    re.DOTALL,
)
_POSTGRES: Final = re.compile(
    r"(?P<space>\s+|--[^\r\n]*)"
    r"|(?P<comment>/\*)"
    r"|(?P<string>[eE]'(?:[^'\\]|\\.|'')*'(?!')"
    rf"|(?:[bBxXnN]|[uU]&)?{_STRING}"
    r"|\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$)"
    rf"|(?P<quoted>(?:[uU]&)?{_QUOTED})"
    r"|(?P<bad>(?:[eEbBxXnN]|[uU]&)?['\"].*|\$(?:[^\W\d]\w*)?\$.*)"
    rf"|{_WORD}|{_NUMBER}|{_SIGN}",
    re.DOTALL,
)
_COMMENT_MARK: Final = re.compile(r"/\*|\*/")


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: "word" (a keyword or a plain name), "quoted" (a quoted name), "string", "number", "sign", or "bad".
        text: as written.
        start: its first character in the text.
    """

    kind: Kind
    text: str
    start: int

    @property
    def upper(self) -> str:
        """The text in capitals for a plain word, else ""."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def name(self) -> str:
        """The lower-case name that a word or a quoted name stands for, else ""."""
        if self.kind == "word":
            return self.text.lower()
        if self.kind == "quoted":
            return self.text[1:-1].replace(self.text[-1] * 2, self.text[-1]).lower()
        return ""

    @property
    def end(self) -> int:
        """One past its last character."""
        return self.start + len(self.text)


@lru_cache(maxsize=64)  # a response's query is looked at four times on its way
def tokens(sql: str, dialect: Dialect) -> tuple[Token, ...]:
    """Return the tokens of a text, comments and blanks left out."""
    pattern = _SQLITE if dialect == "sqlite" else _POSTGRES
    read: list[Token] = []
    at = 0
    while at < len(sql):
        match = pattern.match(sql, at)
        if match is None:
            at += 1
            continue
        kind = match.lastgroup
        if kind == "tag":
            kind = "string"
        if kind == "comment":
            at = _after_comment(sql, at)
            if at < 0:
                read.append(Token("bad", sql[match.start() :], match.start()))
                break
            continue
        if kind != "space":
            read.append(Token(kind, match[0], match.start()))  # type: ignore[arg-type]
        at = match.end()
    return tuple(read)


def _after_comment(sql: str, start: int) -> int:
    depth = 0
    for mark in _COMMENT_MARK.finditer(sql, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return -1
