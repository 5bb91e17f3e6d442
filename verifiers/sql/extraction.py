r"""The query that a response commits to.

Where it is looked for, in this order: the last element (`<answer>`, `<sql>`, `<solution>`, `<final_answer>`), and in it
or in the whole text the last \\boxed{} around a query; there, the last code block that is SQL, or the query in JSON,
blocks that do not just ask (tables, rows, an index, a fragment, a plan) left aside where others do; without any, the
text itself from a line that begins with SELECT, WITH or VALUES, or with a label such as `Final answer:` before them, up
to a semicolon, a sentence, or a blank line behind which none of it stands; without such a line, the last query between
backticks. A first word like `Use` or `Select` begins a sentence where something else is a query.

Not covered: queries put together from several blocks, and those in programs.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from adjudge.verifiers.sql.databases.statement import (
    LOOKS,
    OTHERS,
    QUERIES,
    Dialect,
    Statement,
    Token,
    first_word,
    read_tokens,
)

Blocks: TypeAlias = Literal["last", "same"]

MAX_QUERY: Final = 50_000  # characters; the longest query of the corpora has 5,000

_UNNAMED: Final = frozenset(("", *"text txt plaintext plain code json".split()))
"""What a block may be called whatever it holds."""
_LANGUAGES: Final = _UNNAMED.union(
    "sql {sql} sqlite sqlite3 postgres postgresql pgsql psql duckdb mysql tsql plsql bigquery snowflake query".split()
)
_FENCE: Final = re.compile(r"^[ \t>]{0,8}(?P<marks>`{3,}|~{3,})[ \t]*(?P<language>[^\s`]*)[^\n`]*$", re.MULTILINE)
_TAG: Final = re.compile(r"<(?P<close>/?)(?P<name>(?:final_)?(?:answer|sql)(?:_query)?|solution)>", re.IGNORECASE)
_BOX: Final = re.compile(r"\\boxed\s{0,3}\{")
_BOX_END: Final = re.compile(r"'[^'\n]*'|\\.|(?P<brace>[{}])", re.DOTALL)
_TEX: Final = re.compile(r"\\(?:text|texttt|mathtt|mathrm)\s{0,3}\{(?P<inner>.*)\}", re.DOTALL)
_TEX_SIGN: Final = re.compile(r"\\(?=[_%&#$])")
_JSON: Final = re.compile(
    r"\"[\w -]{0,30}(?:sql|query|answer|solution)[\w -]{0,30}\"\s{0,9}:\s{0,9}"
    r"(?P<value>\"\s{0,9}(?:SELECT|WITH|\()(?:[^\"\\]|\\.){1,50000}\")\s{0,9}[,}]",
    re.IGNORECASE | re.DOTALL,
)
_UNSEEN: Final = re.compile(r"[\u200b\u2060\ufeff]|(?:</s>|<\|\w{1,20}\|>)\s*\Z")
_BLANKS: Final = re.compile(r"[^\S\n\r\t ]+")
_START: Final = re.compile(
    r"^[ \t>*`]{0,8}(?:(?:[^\n:`]{0,60}\b)?(?:answer|sql|query|sqlquery|statement)(?: is)?[ \t*]{0,4}:[ \t*]{0,4})?"
    r"(?P<query>(?:SELECT|WITH|VALUES)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_INLINE: Final = re.compile(r"(?P<marks>`{1,3})(?:sql\s)?\s*(?P<sql>[^`]+?)\s*(?P=marks)")
_BLANK: Final = re.compile(r"\n[ \t]*\n|\n(?=[A-Z][a-z']+ (?:[a-z]+ [^\n]{0,300}|[a-z`]+)[.:][ \t]*(?:\n|\Z))")
"""What may end a query: a line without text, or a line that is a sentence."""
_WITHIN: Final = frozenset(
    "FROM WHERE GROUP BY HAVING WINDOW ORDER LIMIT OFFSET UNION ALL EXCEPT INTERSECT JOIN INNER LEFT RIGHT FULL CROSS "
    "NATURAL OUTER ON USING AND OR NOT IN AS DISTINCT CASE WHEN THEN ELSE".split()
)
"""Words that no query begins or ends with."""
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
    offers, outside = _code_blocks(_boxed(_tagged(_UNSEEN.sub("", text))), dialect)
    if not offers:
        bare = _bare(outside, dialect)
        offers = [bare] if bare else _inline(outside) or [_bare(outside, dialect, titled=True)]
    if blocks == "same" and len({" ".join(offer.split()).rstrip("; ") for offer in offers}) > 1:
        return ResponseQuery(problem="several_answers")
    if len(offers[-1]) > MAX_QUERY:
        return ResponseQuery(problem="too_complex")
    statement = Statement(_evenly_spaced(offers[-1], dialect), dialect)
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


def _boxed(text: str) -> str:
    """Return the query in the last box, which may be TeX, or the text where no query is in it."""
    box = next(reversed(list(_BOX.finditer(text))), None)
    if box is None:
        return text
    depth, end = 1, len(text)
    for mark in _BOX_END.finditer(text, box.end()):
        depth += {"{": 1, "}": -1}.get(mark["brace"], 0)
        if depth == 0:
            end = mark.start()
            break
    inside = text[box.end() : end].strip()
    inside = tex["inner"].strip() if (tex := _TEX.fullmatch(inside)) else inside
    if not _looks_like_sql(inside.strip("`")) and _FENCE.match(inside) is None:
        return text
    return inside if "ESCAPE" in inside.upper() else _TEX_SIGN.sub("", inside)


def _in_json(text: str) -> list[str]:
    """Return the queries that are values of JSON, whose lines may be broken."""
    values = []
    for found in _JSON.finditer(text):
        with suppress(ValueError):  # such as that of TeX's "\_"
            values.append(str(json.loads(found["value"], strict=False)).strip())
    return [value for value in values if "SELECT" in value.upper()]


def _evenly_spaced(sql: str, dialect: Dialect) -> str:
    """Return a query with the blanks that engines know; a no-break space is a letter to SQLite."""
    if sql.isascii():
        return sql
    pieces, at = [], 0
    for token in Statement(sql, dialect).tokens:
        pieces += [_BLANKS.sub(" ", sql[at : token.start]), token.text]
        at = token.end
    return "".join(pieces) + sql[at:]


def _code_blocks(text: str, dialect: Dialect) -> tuple[list[str], str]:
    """Return the blocks that say they are SQL, or begin like it without a name, and the text outside all blocks."""
    blocks: list[str] = []
    outside: list[str] = []
    at = 0
    while (opening := _FENCE.search(text, at)) is not None:
        outside.append(text[at : opening.start()])
        language = opening["language"].lower()
        end = _closing(opening["marks"], glued=language in _LANGUAGES).search(text, opening.end())
        content = text[opening.end() : end.start() if end else len(text)].strip()
        if language in _UNNAMED and (held := _in_json(content)):
            blocks += held
        elif content and language in _LANGUAGES and (language not in _UNNAMED or _looks_like_sql(content)):
            blocks.append(content)
        at = end.end() if end else len(text)
    outside.append(text[at:])
    ended = max((found.end() for found in _START.finditer(outside[-1])), default=0)
    blocks += _in_json(outside[-1][ended:])
    if len(blocks) > 1:
        blocks = [block for block in blocks if Statement(block[:MAX_QUERY], dialect).asks] or blocks
    line = text.strip()
    if not blocks and len(line) < MAX_QUERY and "\n" not in line and (inline := _INLINE.fullmatch(line)) is not None:
        blocks.append(inline["sql"])
    return blocks, "\n\n".join(outside)


@lru_cache(maxsize=8)
def _closing(marks: str, *, glued: bool) -> re.Pattern[str]:
    """Return the end of a block, for SQL wherever the marks stand; before a language they open the next block."""
    if glued:
        return re.compile(rf"(?=^[ \t>]{{0,8}}{marks}\w)|(?:^[ \t>]{{0,8}})?{marks}{marks[0]}*", re.MULTILINE)
    return re.compile(rf"^[ \t>]{{0,8}}{marks}[ \t]*$", re.MULTILINE)


def _looks_like_sql(content: str) -> bool:
    parts = Statement(content[:2000], "sqlite").parts
    return bool(parts) and first_word(parts[0]) in _CODE_WORD


def _inline(text: str) -> list[str]:
    """Return the queries that stand between backticks in prose; a lone word such as `SELECT` is none."""
    asked = [inline["sql"] for inline in _INLINE.finditer(text[-MAX_QUERY:]) if _looks_like_sql(inline["sql"])]
    return [sql for sql in asked if len(sql.split()) > 1]


def _bare(text: str, dialect: Dialect, *, titled: bool = False) -> str:
    """Return a query that stands in the text without a code block: from the last line that begins one.

    Keywords are written in one case; those that begin like a sentence count only if `titled`, and then alone.
    """
    whole = text.strip()
    alone = not titled and len(whole) <= MAX_QUERY and not _BLANK.search(whole) and _looks_like_sql(whole)
    if alone and not _titled(Statement(whole, dialect).tokens):
        return _first_statement(whole, dialect)
    inline = {found.start("sql"): found.end("sql") for found in _INLINE.finditer(text)}
    stops = [blank.start() for blank in _BLANK.finditer(text)] + [len(text)]
    query, inside = "", 0
    for start in _START.finditer(text):
        at = start.start("query")
        # `SELECT` may stand on a line of its own inside a longer query.
        if at >= inside and start["query"].istitle() == titled:
            inside, end = (inline[at],) * 2 if at in inline else _extent(text, at, dialect, stops)
            query = text[at : min(end, at + MAX_QUERY + 1)]
            query = query.rstrip(" \t\n*") if text[at - 1 : at] == "*" else query  # bold
    return _first_statement(query, dialect)


def _extent(text: str, at: int, dialect: Dialect, stops: list[int]) -> tuple[int, int]:
    """Return where a query ends, at a semicolon or a blank line, and where the paragraph does.

    What stands behind a blank line belongs to it if the query lacks something before, or if a word that only goes on
    comes next, in the case of the first word: `OR` after `SELECT`, while `or` may lead to another query.
    """
    depth, asks, last, first, end = 0, False, "", "", 0
    for number in range(bisect_left(stops, at), len(stops)):
        lacks = depth > 0 or not asks or last in _WITHIN or last in ("SELECT", ",")
        for place, token in enumerate(read_tokens(text, dialect, at, stops[number])):
            first = first or token.text
            same = (token.text.isupper(), token.text.istitle()) == (first.isupper(), first.istitle())
            goes_on = token.text in (",", ")") or (same and token.upper in _WITHIN)
            if end and place == 0 and not lacks and not goes_on:
                return end, end
            if token.kind == "sign" and token.text == ";":
                return token.start, stops[number]
            depth += (token.text == "(") - (token.text == ")")
            asks = asks or (depth == 0 and token.upper in ("SELECT", "VALUES"))
            last = token.upper or token.text
        at = end = stops[number]
    return end, end


def _titled(part: Sequence[Token]) -> bool:
    """Return whether a text begins like a sentence, as `Use` and `Select` may, and not like a statement."""
    return next((token.text.istitle() for token in part if token.text != "("), False)


def _first_statement(text: str, dialect: Dialect) -> str:
    """Return the text up to its first semicolon when what follows is prose, else all of it."""
    statement = Statement(text, dialect)
    for token in statement.tokens:
        if token.kind == "sign" and token.text == ";":
            rest = Statement(text[token.end :], dialect).parts
            prose = not any(first_word(part) in _CODE_WORD and not _titled(part) for part in rest)
            return text[: token.start] if prose else text
    return text
