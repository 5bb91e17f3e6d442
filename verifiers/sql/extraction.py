"""The query that a response commits to.

Where it is looked for, in this order: the last `<answer>` or `<sql>` element; in it, or in the whole text, the last
code block that is SQL, one that does not just ask (tables, rows, an index, a fragment, a plan) left aside where
others do; without a code block, the text
itself from a line that begins with SELECT, WITH or VALUES, or with a label such as `Final answer:` before them, up to a
semicolon or a blank line; without such a line, the last query between backticks.

Not covered: queries put together from several blocks.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from adjudge.verifiers.sql.databases.statement import LOOKS, OTHERS, QUERIES, Dialect, Statement, first_word

Blocks: TypeAlias = Literal["last", "same"]

MAX_QUERY: Final = 50_000  # characters; the longest query of the corpora has 5,000

_LANGUAGES: Final = frozenset(
    ("", "sql", "sqlite", "sqlite3", "postgres", "postgresql", "pgsql", "psql", "duckdb", "mysql", "tsql", "plsql")
)
_FENCE: Final = re.compile(r"^[ \t>]{0,8}(?P<marks>`{3,}|~{3,})[ \t]*(?P<language>[^\s`]*)[^\n`]*$", re.MULTILINE)
_TAG: Final = re.compile(r"<(?P<close>/?)(?P<name>answer|sql)>", re.IGNORECASE)
_START: Final = re.compile(
    r"^[ \t>*`]{0,8}(?:(?:the )?(?:final |correct )?(?:answer|sql|query|sql query)[ \t*]{0,4}:[ \t*]{0,4})?"
    r"(?P<query>(?:SELECT|WITH|VALUES)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_INLINE: Final = re.compile(r"(?P<marks>`{1,3})(?:sql\s)?\s*(?P<sql>[^`]+?)\s*(?P=marks)")
_BLANK: Final = re.compile(r"\n[ \t]*\n")
_CODE_WORD: Final = QUERIES | OTHERS | LOOKS


class ResponseQuery(NamedTuple):
    """A query in a response, without the semicolon at its end, or why there is none.

    `problem` is then the reason code: "no_answer", "several_answers" or "too_complex".
    """

    sql: str = ""
    problem: str = ""


def find_query(text: str, dialect: Dialect, blocks: Blocks = "last") -> ResponseQuery:
    """Return the query of a response.

    Args:
        text: the graded part of the response.
        dialect: by whose rules comments and strings are read.
        blocks: of several different SQL blocks the last counts ("last"), or they commit to none ("same").
    """
    offers, outside = _code_blocks(_tagged(text), dialect)
    if not offers:
        bare = _bare(outside, dialect)
        offers = [bare] if bare else _inline(outside)
    if not offers:
        return ResponseQuery(problem="no_answer")
    if blocks == "same" and len({" ".join(offer.split()).rstrip("; ") for offer in offers}) > 1:
        return ResponseQuery(problem="several_answers")
    if len(offers[-1]) > MAX_QUERY:
        return ResponseQuery(problem="too_complex")
    statement = Statement(offers[-1], dialect)
    return ResponseQuery(statement.trimmed) if statement.parts else ResponseQuery(problem="no_answer")


def _tagged(text: str) -> str:
    """Return the content of the last element, or the text where there is none."""
    marks = list(_TAG.finditer(text))
    opened = [mark for mark in marks if not mark["close"]]
    if not opened:
        return text
    last = opened[-1]
    ends = [mark.start() for mark in marks if mark["close"] and mark.start() >= last.end()]
    # A stop string often swallows the closing tag, so an open element reaches to the end.
    return text[last.end() : ends[0] if ends else len(text)].strip()


def _code_blocks(text: str, dialect: Dialect) -> tuple[list[str], str]:
    """Return the blocks that say they are SQL, or begin like it without a name, and the text outside all blocks."""
    blocks: list[str] = []
    outside: list[str] = []
    at = 0
    while (opening := _FENCE.search(text, at)) is not None:
        outside.append(text[at : opening.start()])
        end = _closing(opening["marks"]).search(text, opening.end())
        content = text[opening.end() : end.start() if end else len(text)].strip()
        language = opening["language"].lower()
        if content and language in _LANGUAGES and (language or _looks_like_sql(content)):
            blocks.append(content)
        at = end.end() if end else len(text)
    outside.append(text[at:])
    if len(blocks) > 1:
        blocks = [block for block in blocks if Statement(block[:MAX_QUERY], dialect).asks] or blocks
    line = text.strip()
    if not blocks and len(line) < MAX_QUERY and "\n" not in line and (inline := _INLINE.fullmatch(line)) is not None:
        blocks.append(inline["sql"])
    return blocks, "\n\n".join(outside)


@lru_cache(maxsize=8)
def _closing(marks: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t>]{{0,8}}{re.escape(marks)}[ \t]*$", re.MULTILINE)


def _looks_like_sql(content: str) -> bool:
    parts = Statement(content[:2000], "sqlite").parts
    return bool(parts) and first_word(parts[0]) in _CODE_WORD


def _inline(text: str) -> list[str]:
    """Return the queries that stand between backticks in prose; a lone word such as `SELECT` is none."""
    asked = [inline["sql"] for inline in _INLINE.finditer(text[-MAX_QUERY:]) if _looks_like_sql(inline["sql"])]
    return [sql for sql in asked if len(sql.split()) > 1]


def _bare(text: str, dialect: Dialect) -> str:
    """Return a query that stands in the text without a code block: from the last line that begins one."""
    whole = text.strip()
    if len(whole) <= MAX_QUERY and _looks_like_sql(whole) and not _BLANK.search(whole):
        return _first_statement(whole, dialect)
    starts = list(_START.finditer(text))
    if not starts:
        return ""
    at = starts[-1].start("query")
    # `SELECT` on a line of its own inside a longer query: go back while no blank line or semicolon lies between.
    for start in reversed(starts[:-1]):
        between = text[start.start("query") : at]
        if _BLANK.search(between) or ";" in between:
            break
        at = start.start("query")
    if (inline := next((inline for inline in _INLINE.finditer(text) if inline.start("sql") == at), None)) is not None:
        return _first_statement(inline["sql"], dialect)
    rest = text[at : at + MAX_QUERY + 1]
    blank = _BLANK.search(rest)
    return _first_statement(rest[: blank.start()] if blank else rest, dialect)


def _first_statement(text: str, dialect: Dialect) -> str:
    """Return the text up to its first semicolon when what follows is prose, else all of it."""
    statement = Statement(text, dialect)
    for token in statement.tokens:
        if token.kind == "sign" and token.text == ";":
            rest = Statement(text[token.end :], dialect).parts
            prose = not any(first_word(part) in _CODE_WORD for part in rest)
            return text[: token.start] if prose else text
    return text
