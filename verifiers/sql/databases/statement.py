"""What a SQL text is, before it runs: its tokens, and whether it is one query, several statements, or something else.

The tokens are those that the engine itself will read: by the rules of SQLite (www.sqlite.org/lang_keywords.html,
lang_comment.html) or of PostgreSQL (manual, 4.1 "Lexical Structure"), which DuckDB's parser shares: escape strings,
dollar quotes, nested comments.  Where a text could be read in two ways, the guards must not see less than the engine
does, so what is not closed is one token of the kind "bad".

Not covered: grammar and validity, which the engine tells.  Linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
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
    return tuple(read_tokens(sql, dialect, 0, len(sql)))


def read_tokens(sql: str, dialect: Dialect, at: int, end: int) -> Iterator[Token]:
    """Yield the tokens of a part of a text, one by one, for those who stop at some."""
    pattern = _SQLITE if dialect == "sqlite" else _POSTGRES
    while at < end:
        match = pattern.match(sql, at, end)
        if match is None:
            at += 1
            continue
        kind = match.lastgroup
        if kind == "tag":
            kind = "string"
        if kind == "comment":
            at = _after_comment(sql, at, end)
            if at < 0:
                yield Token("bad", sql[match.start() : end], match.start())
                break
            continue
        if kind != "space":
            yield Token(kind, match[0], match.start())  # type: ignore[arg-type]
        at = match.end()


def _after_comment(sql: str, start: int, end: int) -> int:
    depth = 0
    for mark in _COMMENT_MARK.finditer(sql, start, end):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return -1


QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES"})
SHORT_QUERIES: Final = frozenset({"TABLE", "FROM"})
"""First words of queries that PostgreSQL and DuckDB, or DuckDB alone, take as well."""
OTHERS: Final = frozenset(
    "INSERT UPDATE DELETE REPLACE MERGE UPSERT DROP ALTER CREATE TRUNCATE ATTACH DETACH PRAGMA VACUUM REINDEX ANALYZE "
    "BEGIN START COMMIT END ROLLBACK SAVEPOINT RELEASE ABORT LOCK GRANT REVOKE COPY CALL DO EXECUTE PREPARE DEALLOCATE "
    "DECLARE FETCH MOVE CLOSE LISTEN NOTIFY UNLISTEN SET RESET DISCARD LOAD INSTALL IMPORT EXPORT USE CHECKPOINT "
    "REFRESH COMMENT SECURITY CLUSTER FORCE".split()
)
"""First words of statements that do something."""
LOOKS: Final = frozenset({"EXPLAIN", "SHOW", "DESCRIBE", "DESC", "SUMMARIZE"})
"""First words of statements that tell about a query or a schema."""


@dataclass(frozen=True)
class Statement:
    """A text that should be one query."""

    text: str
    dialect: Dialect

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """All tokens of the text."""
        return tokens(self.text, self.dialect)

    @cached_property
    def parts(self) -> list[list[Token]]:
        """The tokens of each statement in the text; empty statements are left out."""
        parts: list[list[Token]] = [[]]
        for token in self.tokens:
            if token.kind == "sign" and token.text == ";":
                parts.append([])
            else:
                parts[-1].append(token)
        return [part for part in parts if part]

    @property
    def trimmed(self) -> str:
        """The text without a semicolon at its end, which DuckDB and PostgreSQL read as the start of a statement."""
        return self.text[self.parts[0][0].start : self.parts[0][-1].end] if len(self.parts) == 1 else self.text

    @property
    def is_query(self) -> bool:
        """Whether the text is exactly one statement and begins like a query."""
        return len(self.parts) == 1 and self.asks

    @property
    def asks(self) -> bool:
        """Whether the text has statements, and all of them begin like queries."""
        known = QUERIES if self.dialect == "sqlite" else QUERIES | SHORT_QUERIES
        return bool(self.parts) and all(first_word(part) in known for part in self.parts)

    @property
    def intruder(self) -> str:
        """The first word of a statement that does something, "" when there is none."""
        for part in self.parts:
            if (word := first_word(part)) in OTHERS:
                return word
        return ""

    @property
    def sorts(self) -> bool:
        """Whether the outermost query has an ORDER BY."""
        depth = 0
        before = ""
        for token in self.tokens:
            if token.kind == "sign":
                depth += (token.text == "(") - (token.text == ")")
            if depth == 0 and before == "ORDER" and token.upper == "BY":
                return True
            before = token.upper if depth == 0 else ""
        return False

    @property
    def mentions_order(self) -> bool:
        """Whether ORDER BY stands anywhere in it, be it in a subquery or a window."""
        words = [token.upper for token in self.tokens]
        return any(pair == ("ORDER", "BY") for pair in pairwise(words))

    def calls(self) -> set[str]:
        """Return the lower-case names that stand before an opening bracket, quoted or not."""
        pairs = zip(self.tokens, self.tokens[1:], strict=False)
        return {one.name for one, two in pairs if two.text == "(" and two.kind == "sign" and one.name}

    def without_distinct(self) -> str:
        """Return the text without the word DISTINCT, where dropping it leaves a query.

        `IS DISTINCT FROM` and `DISTINCT ON (...)` stay.
        """
        pieces, at, before = [], 0, ""
        for index, token in enumerate(self.tokens):
            after = self.tokens[index + 1].upper if index + 1 < len(self.tokens) else ""
            if token.upper == "DISTINCT" and before not in ("IS", "NOT") and after not in ("ON", "FROM"):
                pieces.append(self.text[at : token.start])
                at = token.end
            before = token.upper
        return "".join(pieces) + self.text[at:]


def first_word(part: Sequence[Token]) -> str:
    """Return the first word of a statement in capitals, opening brackets skipped."""
    for token in part:
        if token.text != "(":
            return token.upper
    return ""
