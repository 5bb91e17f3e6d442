"""Columns whose texts have a form: made databases keep it, so that queries which rest on it stay right."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from adjudge.protocol import Sample
from adjudge.verifiers.sql.databases.column_draw import form_of
from adjudge.verifiers.sql.verifier import SqlVerifier

SCHEMA = """CREATE TABLE flight (
    id INTEGER PRIMARY KEY, us TEXT, eu DATE, short TEXT, slash TEXT, month TEXT, ymd INTEGER, clock TEXT, hm TEXT,
    moment TEXT, named TEXT, email TEXT, pilot TEXT, lap TEXT, zip TEXT
)"""


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> str:
    path, chooser = tmp_path_factory.mktemp("forms") / "flights.sqlite", random.Random(3)
    rows = []
    for number in range(1, 71):
        year, month, day = chooser.randint(2018, 2022), chooser.randint(1, 12), chooser.randint(1, 28)
        hour, minute, second = chooser.randint(6, 21), chooser.randint(0, 59), chooser.randint(0, 59)
        row = (
            number,
            f"{month:02d}/{day:02d}/{year}",
            f"{day:02d}.{month:02d}.{year}",
            f"{month}/{day}/{year}",
            f"{year}/{month:02d}/{day:02d}",
            f"{chooser.randint(2012, 2014)}{month:02d}",
            year * 10_000 + month * 100 + day,
            f"{hour:02d}:{minute:02d}:{second:02d}",
            f"{hour:02d}:{minute:02d}",
            f"{month}/{day}/{year} {hour}:{minute:02d}",
            f"{chooser.choice(('May', 'June', 'July'))} {day}, {year}",
            f"{chooser.choice(('ann', 'cy.d'))}{number}@{chooser.choice(('gmail.com', 'yahoo.com', 'uni.ac.uk'))}",
            f"{chooser.choice(('Ann', 'Bob', 'Cy'))} {chooser.choice(('Fox', 'Hay', 'Kim', 'Lee'))}",
            f"{chooser.randint(1, 2)}:{second:02d}.{chooser.randint(0, 999):03d}",
            str(chooser.randint(10_000, 99_999)),
        )
        rows.append(row)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(SCHEMA)
        connection.executemany(f"INSERT INTO flight VALUES ({', '.join('?' * 15)})", rows)
    return str(path)


def value(where: str, gold: str, file: str) -> float | None:
    count = "SELECT COUNT(*) FROM flight WHERE "
    reference = {"sql": count + gold, "database": file}
    return SqlVerifier().verify(Sample(prompt="", response=f"```sql\n{count}{where}\n```", reference=reference)).value


# A condition, others that mean the same of such texts, and others that do not.
CASES: list[tuple[str, list[str], list[str]]] = [
    (
        "substr(us, 7, 4) = '2021'",
        ["us LIKE '%/2021'", "substr(us, -4) = '2021'", "us LIKE '%2021'", "us LIKE '__/__/2021'"],
        ["us LIKE '%202%'", "substr(us, -4) >= '2021'"],
    ),
    (
        "us LIKE '03/%/2021'",
        ["substr(us, 1, 2) = '03' AND substr(us, 7) = '2021'", "CAST(us AS INTEGER) = 3 AND us LIKE '%2021'"],
        ["us LIKE '%/2021'", "us LIKE '03%'"],
    ),
    (
        "substr(us, 1, 2) = '03'",
        ["us LIKE '03/%'", "substr(us, 1, instr(us, '/') - 1) = '03'", "us BETWEEN '03/01/' AND '03/32/'"],
        ["us LIKE '%03%'", "us LIKE '%/03/%'", "substr(us, 4, 2) = '03'"],
    ),
    (
        "substr(eu, 4, 2) = '03'",
        ["eu LIKE '%.03.%'", "eu LIKE '__.03%'", "substr(eu, instr(eu, '.') + 1, 2) = '03'"],
        ["eu LIKE '%03%'", "substr(eu, 1, 2) = '03'"],
    ),
    ("short LIKE '3/%'", ["CAST(short AS INTEGER) = 3", "substr(short, 1, 2) = '3/'"], ["short LIKE '%3/%'"]),
    (
        "substr(slash, 1, 4) = '2021'",
        ["slash LIKE '2021/%'", "slash BETWEEN '2021/01/01' AND '2021/12/31'", "slash >= '2021' AND slash < '2022'"],
        ["slash >= '2021'", "slash >= '2021/01/01' AND slash < '2021/12/31'"],
    ),
    (
        "month BETWEEN '201301' AND '201312'",
        ["substr(month, 1, 4) = '2013'", "month LIKE '2013%'", "month > '201212' AND month < '2014'"],
        ["month BETWEEN '201301' AND '201311'", "month BETWEEN '201302' AND '201312'", "month >= '2013'"],
    ),
    (
        "ymd BETWEEN 20210101 AND 20211231",
        ["ymd / 10000 = 2021", "ymd LIKE '2021%'", "substr(ymd, 1, 4) = '2021'", "ymd > 20201231 AND ymd < 20220101"],
        ["ymd BETWEEN 20210101 AND 20211230", "ymd BETWEEN 20210102 AND 20211231", "ymd >= 20210101"],
    ),
    ("ymd / 100 % 100 = 3", ["substr(ymd, 5, 2) = '03'"], ["ymd LIKE '%03%'", "ymd % 100 = 3"]),
    (
        "clock < '13:00:00'",
        ["strftime('%H', clock) < '13'", "CAST(substr(clock, 1, 2) AS INTEGER) < 13", "time(clock) < '13:00:00'"],
        ["clock <= '13:00:00'", "clock < '12:59:00'", "substr(clock, 1, 2) <= '13'", "clock < '13:01:00'"],
    ),
    (
        "hm >= '09:00' AND hm < '10:00'",
        ["hm LIKE '09:%'", "substr(hm, 1, 2) = '09'", "hm BETWEEN '09:00' AND '09:59'", "strftime('%H', hm) = '09'"],
        ["hm LIKE '%09%'", "hm BETWEEN '09:00' AND '10:00'", "hm BETWEEN '09:01' AND '09:59'"],
    ),
    ("moment LIKE '%/2021 %'", ["moment LIKE '%/2021%'", "substr(moment, instr(moment, ' ') - 4, 4) = '2021'"],
     ["moment LIKE '%202%'"]),
    ("named LIKE 'May%2021'", ["named LIKE 'May %' AND substr(named, -4) = '2021'", "named LIKE 'May %, 2021'"],
     ["named LIKE '%2021'", "named LIKE 'May%'"]),
    (
        "email LIKE '%@gmail.com'",
        ["substr(email, instr(email, '@') + 1) = 'gmail.com'", "email LIKE '%_@gmail.com'"],
        ["email LIKE '%gmail%'", "email LIKE 'a%gmail.com'", "email LIKE '%.com'"],
    ),
    (
        "pilot LIKE '% Fox'",
        ["substr(pilot, instr(pilot, ' ') + 1) = 'Fox'"],
        ["pilot LIKE '%Fox'", "pilot LIKE '%F%'", "pilot LIKE '%ox'"],
    ),
    ("substr(pilot, 1, instr(pilot, ' ') - 1) = 'Ann'", ["pilot LIKE 'Ann %'"],
     ["pilot LIKE 'A%'", "pilot LIKE '%nn%'"]),
    ("lap < '1:30'", ["CAST(lap AS INTEGER) * 60 + CAST(substr(lap, 3) AS REAL) < 90"],
     ["lap < '1:29'", "lap < '1:31'"]),
    ("zip LIKE '9%'", ["CAST(zip AS INTEGER) >= 90000", "substr(zip, 1, 1) = '9'"],
     ["zip LIKE '%9%'", "zip >= '91000'"]),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "same", "wrong"), CASES, ids=[case[0] for case in CASES])
def test_a_query_may_rest_on_the_form_of_texts(gold: str, same: list[str], wrong: list[str], flights: str) -> None:
    assert [where for where in (gold, *same) if value(where, gold, flights) != 1.0] == []
    assert [where for where in wrong if value(where, gold, flights) != 0.0] == []


@pytest.mark.parametrize(
    ("values", "fitting", "others"),
    [
        (["01/15/2020", "02/28/2021", "12/01/2020", "03/30/2021"], ["02/29/2020"], ["02/29/2021", "13/01/2020"]),
        (["9:05 AM", "10:30 PM", "1:00 AM", "12:59 PM"], ["8:15 PM"], ["13:00 PM", "08:15 PM", "0:15 AM"]),
        (["05 Mar 2020", "17 May 2021", "30 Jan 2020", "01 Dec 2021"], ["29 Feb 2020"], ["30 Feb 2020", "5 Mar 2020"]),
        ([20200115, 20210228, 20201201, 20210330], ["20200229"], ["20210229", "20201301", "30200115"]),
        (["202001", "202112", "202006", "202107"], ["202010"], ["202013", "2020", "120206"]),
        (["1:02.345", "1:59.001", "2:17.640", "1:33.333"], ["1:00.999"], ["1:60.000", "1:2.345", "102.345"]),
        (["Team 1", "Team 2", "Team 8", "Team 9"], ["Team 3", "Team 11"], ["Team", "Team 111", "Team 01", "1 Team"]),
        (["A-1001", "A-1002", "A-1007", "A-2000"], ["A-9999"], ["A-99", "B-1001", "A-10010"]),
        (["a@b.c", "dd@e.fg", "h.i@j.k", "l@m"], ["x@y", "x.y@z"], ["x", "@y", "x@", "x@y@z"]),
        (["Fox, Ann", "Hay, Bob", "Lee, Cy", "Kim, Di"], ["Xu, Ed"], ["Xu", "Xu Ed", ", Ed"]),
    ],
    ids=lambda given: str(given[0]),
)  # fmt: skip
def test_a_form_is_found(values: Sequence[Any], fitting: list[str], others: list[str]) -> None:
    form = form_of(values)
    assert form is not None
    assert [text for text in (*map(str, values), *fitting) if not form.fits(text)] == []
    assert [text for text in others if form.fits(text)] == []


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(["one", "two", "three", "four"], id="words"),
        pytest.param(["01/15/2020", "02/28/2021"], id="too-few"),
        pytest.param(["01/15/2020", "n/a", "soon", "12/01/2020"], id="some-only"),
        pytest.param([20200115, "20210228", 20201201, 20210330], id="mixed"),
        pytest.param([120, 45, 300, 7], id="numbers"),
        pytest.param([20200115, 20210228, 20201299, 20210330], id="numbers-that-are-no-dates"),
        pytest.param([1.5, 2.5, 3.5, 4.5], id="reals"),
        pytest.param(["x", "", "y", "z"], id="an-empty-one"),
    ],
)
def test_where_values_share_none_there_is_none(values: Sequence[Any]) -> None:
    assert form_of(values) is None
