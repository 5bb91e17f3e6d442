"""What a SQL text is, before it runs: one query, several statements, or an attempt at something else.

Not covered: whether the query is valid; the engine says that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from adjudge.verifiers.sql.databases.tokens import Dialect, Token, tokens

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
