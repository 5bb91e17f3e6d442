"""Which query of a response counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.verifiers.sql.extraction import MAX_QUERY, find_query

A, B = "SELECT a FROM t", "SELECT b FROM t"

FOUND: dict[str, tuple[str, str]] = {
    "block": (f"Here:\n```sql\n{A}\n```", A),
    "block, semicolon": (f"```sql\n{A};\n```", A),
    "block without a name": (f"```\n{A}\n```", A),
    "block of a result": (f"{A}\n```\n1 | 2\n```", A),
    "block, tildes": (f"~~~SQL\n{A}\n~~~", A),
    "block, never closed": (f"```sql\n{A}", A),
    "block, indented": (f"  ```sql\n  {A}\n  ```", A),
    "block in a quotation": (f"> ```sql\n{A}\n> ```", A),
    "longer fence around a shorter": (f"````sql\n{A} -- ```\n````", A),
    "last of two blocks": (f"```sql\n{B}\n```\nor\n```sql\n{A}\n```", A),
    "Python is not SQL": (f"```sql\n{A}\n```\n```python\nx = 1\n```", A),
    "inline code": (f"`{A}`", A),
    "inline code after a label": (f"**Answer:** `{A};`", A),
    "inline code in a sentence": (f"So we ask `{A}` and are done.", A),
    "inline code at the start of a line": (f"`{A}` is the answer.", A),
    "last of two inline": (f"Not `{B}`, but `{A}`, with `COUNT` nowhere.", A),
    "quoted names are not inline code": ("SELECT `a` FROM `t`", "SELECT `a` FROM `t`"),
    "label": (f"Final answer: {A};", A),
    "bold label": (f"I think so.\n**SQL:** {A}", A),
    "tables behind": (f"```sql\n{A}\n```\n```\nCREATE TABLE t (a, b)\n```", A),
    "tables and rows behind": (f"```sql\n{A}\n```\n```sql\nCREATE TABLE t (a); INSERT INTO t VALUES (1)\n```", A),
    "an index behind": (f"```sql\n{A}\n```\nFaster with\n```sql\nCREATE INDEX i ON t (a);\n```", A),
    "a fragment behind": (
        f"```sql\n{A} WHERE b = 1\n```\nHere\n```sql\nWHERE b = 1\n```\ndoes it.",
        f"{A} WHERE b = 1",
    ),
    "a plan behind": (f"```sql\n{A}\n```\n```sql\nEXPLAIN QUERY PLAN {A}\n```", A),
    "two queries behind": (f"```sql\n{A}\n```\n```sql\n{A};\n{B}\n```", f"{A};\n{B}"),
    "a query that writes behind": (
        f"```sql\n{A}\n```\n```sql\nWITH x AS ({A}) DELETE FROM t\n```",
        f"WITH x AS ({A}) DELETE FROM t",
    ),
    "nothing that asks": ("```sql\nSELECT a FROM t;\nDROP TABLE t\n```", "SELECT a FROM t;\nDROP TABLE t"),
    "nothing but tables": ("```sql\nCREATE TABLE t (a)\n```", "CREATE TABLE t (a)"),
    "tag": (f"<answer>{A}</answer>", A),
    "sql tag": (f"<sql>{A}</sql>", A),
    "tag, never closed": (f"<answer>{A}", A),
    "block in a tag": (f"```sql\n{B}\n```\n<answer>\n```sql\n{A}\n```\n</answer>", A),
    "last tag": (f"<answer>{B}</answer> no: <answer>{A}</answer>", A),
    "whole text": (A, A),
    "whole text, prose behind": (f"{A}; This lists all of them.", A),
    "whole text, two statements": (f"{A}; {B}", f"{A}; {B}"),
    "text after prose": (f"The query is:\n{A}\n\nIt lists all.", A),
    "several lines": (
        "So:\nSELECT a\nFROM t\nWHERE a IN (\nSELECT b FROM u)\n\nDone.",
        "SELECT a\nFROM t\nWHERE a IN (\nSELECT b FROM u)",
    ),
    "a blank line behind WITH": (
        f"<answer>WITH a AS ({A})\n\nSELECT b FROM a</answer>",
        f"WITH a AS ({A})\n\nSELECT b FROM a",
    ),
    "blank lines around UNION": (f"Final SQL:\n{A}\n\nUNION ALL\n\n{B}\n\nDone.", f"{A}\n\nUNION ALL\n\n{B}"),
    "a blank line before EXCEPT": (f"{A}\n\nEXCEPT\n\n{B}", f"{A}\n\nEXCEPT\n\n{B}"),
    "a blank line before WHERE": (f"<sql>{A}\n\nWHERE a > 1;</sql>", f"{A}\n\nWHERE a > 1"),
    "a blank line before HAVING": (f"{A} GROUP BY a\n\nHAVING COUNT(*) > 3", f"{A} GROUP BY a\n\nHAVING COUNT(*) > 3"),
    "a blank line before LIMIT": (f"{A}\n\nLIMIT 2;\n\nIt's short.", f"{A}\n\nLIMIT 2"),
    "a blank line in small letters": ("select a from t\n\nwhere a > 1", "select a from t\n\nwhere a > 1"),
    "blank lines between columns": ("SELECT a,\n\n  b\n\nFROM t\n\nThat's it.", "SELECT a,\n\n  b\n\nFROM t"),
    "blank lines within brackets": (f"SELECT * FROM (\n\n{A}\n\n)\n\nDone", f"SELECT * FROM (\n\n{A}\n\n)"),
    "prose that begins like a part": (f"{A}\n\nFrom this, where a is 1, we see it.", A),
    "prose that begins like a part, small": (f"{A}\n\nwhere a is the key.", A),
    "two queries, a blank line between": (f"{B}\n\n{A}", A),
    "two queries, or": (f"{B}\n\nor\n\n{A}", A),
    "two queries, an apostrophe": (f"{B} -- Tom's\n\nIt's wrong, so\n\n{A}", A),
    "Use, and inline code": (f"Use `{A}`.", A),
    "Update, and inline code": (f"Update: `{A}`", A),
    "With, and inline code": (f"With `{A}` you see all.", A),
    "Select, and inline code": (f"Select the rows: `{A}`", A),
    "Use, and a line": (f"Use this:\n{A}", A),
    "Explain, and a line": (f"Explain first what we need.\n{A};\nWith this we are done.", A),
    "a keyword like a sentence": ("Select a From t", "Select a From t"),
    "small letters, statements that do": (f"drop table t; {A}", f"drop table t; {A}"),
    "closed on the last line": (f"```sql\n{A};```", A),
    "closed on the last line, text": (f"```sql\n{A}``` lists all.", A),
    "closed on the last line, two": (f"```sql\n{B}```\nNo:\n```sql\n{A};```\n", A),
    "text behind the closing fence": (f"```sql\n{A}\n``` This lists all.\nDone.", A),
    "an end token behind the fence": (f"```sql\n{A}\n```<|im_end|>", A),
    "closed by the next block": (f"```sql\n{B}\n```sql\n{A}\n```", A),
    "a block named query": (f"```query\n{A}\n```", A),
    "bold": (f"**{A}**", A),
    "bold, all columns": ("**SQL:** SELECT a, COUNT(*) FROM t", "SELECT a, COUNT(*) FROM t"),
    "the query is": (f"The SQL query is: {A}", A),
    "LangChain's label": (f"SQLQuery: {A}", A),
    "another label": (f"Here is the final SQL query: {A}", A),
    "JSON": (f'{{"sql": "{A}"}}', A),
    "JSON, a draft before": (f'```sql\n{B}\n```\nFinal:\n```json\n{{"thought": "b?", "sql_query": "{A};"}}\n```', A),
    "JSON in a tag, lines and quotes": ('<answer>{"query": "SELECT \\"a\\"\nFROM t"}</answer>', 'SELECT "a"\nFROM t'),
    "JSON of a tool before the query": (f'I ran {{"query": "{B} LIMIT 5"}}.\n\nFinal SQL:\n{A}', A),
    "JSON that only says something": (f'```sql\n{A}\n```\n{{"answer": "With this, we are done."}}', A),
    "box": (f"So it is $\\boxed{{{A}}}$.", A),
    "box, TeX": (r"\boxed{\texttt{SELECT a\_b FROM t WHERE c = '}'}}", "SELECT a_b FROM t WHERE c = '}'"),
    "box around a block": (f"```sql\n{B}\n```\n\\boxed{{\n```sql\n{A}\n```\n}}", A),
    "box of a number": (f"```sql\n{A}\n```\nIt gives \\boxed{{42}}.", A),
    "solution tag": (f"<sql>{B}</sql><observation>1</observation><solution>{A}</solution>", A),
    "final_answer tag": (f"<FINAL_ANSWER>\n{A}\n</FINAL_ANSWER>", A),
    "block of text": (f"```text\n{A}\n```", A),
    "no-break spaces": (
        "```sql\nSELECT\u00a0a\n\u00a0\u3000FROM t WHERE a = '\u00a0'\n```",
        "SELECT a\n FROM t WHERE a = '\u00a0'",
    ),
    "zero-width and the end of a turn": (f"\ufeff{A}\u200b<|im_end|>", A),
    "a sentence on the next line": (f"{A}\nThis lists all of them.", A),
    "comments stay inside": (
        "```sql\n-- first\nSELECT a -- why\nFROM t\n-- last\n```",
        "SELECT a -- why\nFROM t",
    ),
    "a semicolon in a text": ("```sql\nSELECT ';' FROM t;\n```", "SELECT ';' FROM t"),
    "a forbidden statement is found, not skipped": ("```sql\nDROP TABLE t\n```", "DROP TABLE t"),
}


@pytest.mark.parametrize(("text", "sql"), FOUND.values(), ids=FOUND.keys())
def test_the_query_is_found(text: str, sql: str) -> None:
    assert find_query(text, "sqlite") == (sql, "")


PROBLEMS: dict[str, tuple[str, str]] = {
    "empty": ("", "no_answer"),
    "prose": ("I cannot say.", "no_answer"),
    "prose that selects": ("We select all the rows with care.", "no_answer"),
    "empty tag": (f"{A}\n<answer></answer>", "no_answer"),
    "empty tag, a query behind": (f"<answer></answer>\n{A}", "no_answer"),
    "empty tag, a block behind": (f"<sql>\n</sql>\n```sql\n{A}\n```", "no_answer"),
    "a lone word between backticks": ("Write `SELECT` here.", "no_answer"),
    "empty block": ("```sql\n```", "no_answer"),
    "only comments": ("```sql\n-- x\n```", "no_answer"),
    "inside a program, a fence": (f'```python\np = """```sql\n{A}```"""\n```', "no_answer"),
    "inside a program": (f'```python\nrun("""\n{A}\n""")\n```', "no_answer"),
    "only a semicolon": ("```sql\n;\n```", "no_answer"),
    "too long": (f"```sql\n{A}{' ' * MAX_QUERY}x\n```", "too_complex"),
}


@pytest.mark.parametrize(("text", "problem"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_what_is_no_query(text: str, problem: str) -> None:
    assert find_query(text, "sqlite").problem == problem


def test_blocks_that_must_agree() -> None:
    same = f"```sql\n{A}\n```\nthat is\n```sql\n{A} ;\n```"
    assert find_query(same, "sqlite", "same").sql == A
    assert find_query(f"```sql\n{A}\n```\n```sql\n{B}\n```", "sqlite", "same").problem == "several_answers"


@given(st.text(alphabet="`~\n <>answersqlSELECT;'\"-/*()", max_size=80))
def test_any_text_is_survived(text: str) -> None:
    for dialect in ("sqlite", "postgres"):
        find_query(text, dialect)


@pytest.mark.parametrize(
    "piece",
    [
        "```sql\n",
        "<answer>",
        "SELECT ",
        "`",
        "/*",
        "'",
        "(",
        "SELECT 1\n",
        "SELECT 1;\n",
        "SELECT [\n\n",
        "SELECT '\n\nLIMIT ",
        "```sql\nx```",
    ],
    ids=repr,
)
def test_long_hostile_texts_take_linear_work(piece: str) -> None:
    """Quadratic work on these would take minutes; the pool's limit is some seconds."""
    find_query(piece * (400_000 // len(piece)), "sqlite")
