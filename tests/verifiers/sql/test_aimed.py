"""Wrong queries that only another order, a rare value or a candidate's own constant gives away, and right ones near."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adjudge.protocol import Sample
from adjudge.verifiers.sql.databases.file_facts import file_facts
from adjudge.verifiers.sql.engine import EngineOptions, QueryLimits, Table
from adjudge.verifiers.sql.variation import LikeFile, varied_engines
from adjudge.verifiers.sql.verifier import SqlVerifier

SCHEMA = """
CREATE TABLE depot (id INTEGER PRIMARY KEY, town TEXT NOT NULL, region TEXT NOT NULL);
CREATE TABLE parcel (
    id INTEGER PRIMARY KEY, depot_id INTEGER NOT NULL REFERENCES depot (id), state TEXT NOT NULL, sent TEXT NOT NULL,
    delay INTEGER, weight REAL NOT NULL, fee REAL NOT NULL
);
CREATE TABLE worker (id INTEGER PRIMARY KEY, name TEXT NOT NULL, pay INTEGER, boss_id INTEGER REFERENCES worker (id));
INSERT INTO depot VALUES (1, 'Bergen', 'west'), (2, 'Oslo', 'east'), (3, 'Tromso', 'north'), (4, 'Hamar', 'east'),
    (5, 'Molde', 'west'), (6, 'Alta', 'north');
INSERT INTO worker VALUES (1, 'Ada', 6200, NULL), (2, 'Bo', 5100, 1), (3, 'Cy', 5100, 1), (4, 'Di', 4300, 2),
    (5, 'Ed', 4700, NULL), (6, 'Flo', 3900, 4), (7, 'Gus', 4300, 5), (8, 'Hal', 3800, 5);
"""


@pytest.fixture(scope="module")
def post(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("aimed") / "post.sqlite"
    chooser = random.Random(4)
    rows = [
        (
            number,
            chooser.randint(1, 6),
            chooser.choice(("sent", "sent", "lost", "held")),
            f"2024-{chooser.randint(1, 12):02d}-{chooser.randint(1, 27):02d} {chooser.randint(6, 21):02d}:15:00",
            chooser.choice((None, 0, 5, 10, 40, 90)),
            round(chooser.uniform(0.5, 30), 1),
            round(chooser.uniform(2, 60), 2),
        )
        for number in range(1, 91)
    ]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCHEMA)
        connection.executemany("INSERT INTO parcel VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    return str(path)


def verdict(sql: str, gold: str, file: str, **options: Any) -> Any:
    sample = Sample(prompt="", response=f"```sql\n{sql}\n```", reference={"sql": gold, "database": file})
    return SqlVerifier(**options).verify(sample)


REGIONS = "SELECT region, COUNT(*) FROM depot GROUP BY region ORDER BY region"
STATES = "SELECT DISTINCT state FROM parcel ORDER BY state"
SENT = "SELECT COUNT(*) FROM parcel WHERE state = 'sent'"
LATE = "SELECT id FROM parcel WHERE delay > 20 AND sent >= '2024-06-01' AND sent < '2024-07-01'"
MAY = "SELECT id FROM parcel WHERE strftime('%Y-%m', sent) = '2024-05'"
HALF = "SELECT COUNT(*) FROM parcel WHERE strftime('%Y', sent) = '2024' AND CAST(strftime('%m', sent) AS INTEGER) < 7"
PAID = "SELECT name FROM worker ORDER BY pay DESC"
EDGE = "SELECT DISTINCT state FROM parcel WHERE fee > 20"
ANY = "SELECT id FROM parcel WHERE state IN ('sent', 'lost', 'held') AND fee > 20"
TOWN = "SELECT id FROM depot WHERE town = 'Oslo'"
HEAVY = "SELECT id, weight FROM parcel WHERE weight > 25 ORDER BY weight"
SUMS = "SELECT depot_id, SUM(fee) AS total FROM parcel GROUP BY depot_id ORDER BY total DESC"
DEPTH = (
    "WITH RECURSIVE d(id, n) AS (SELECT id, 0 FROM worker WHERE boss_id IS NULL UNION ALL "
    "SELECT w.id, d.n + 1 FROM worker w JOIN d ON w.boss_id = d.id) SELECT id, n FROM d"
)
UNDER = (
    "WITH RECURSIVE s(root, id) AS (SELECT boss_id, id FROM worker WHERE boss_id IS NOT NULL UNION "
    "SELECT s.root, w.id FROM s JOIN worker w ON w.boss_id = s.id) "
    "SELECT name, (SELECT COUNT(*) FROM s WHERE root = worker.id) FROM worker"
)
WRONG = [
    (REGIONS, "SELECT region, COUNT(*) FROM depot GROUP BY region"),
    (REGIONS, "SELECT region, COUNT(*) FROM depot GROUP BY 1 HAVING COUNT(*) > 0"),
    (REGIONS, "SELECT region, COUNT(*) FROM depot GROUP BY region ORDER BY substr(region, 1, 1)"),
    (STATES, "SELECT state FROM parcel GROUP BY state"),
    (STATES, "SELECT state FROM parcel UNION SELECT state FROM parcel"),
    (STATES, "SELECT state FROM parcel INTERSECT SELECT state FROM parcel"),
    (STATES, "SELECT DISTINCT state FROM parcel ORDER BY substr(state, 1, 1)"),
    (PAID, "SELECT name FROM worker ORDER BY CAST(pay AS TEXT) DESC"),
    (PAID, "SELECT name FROM worker ORDER BY pay / 100 DESC"),
    (
        SUMS,
        "SELECT depot_id, SUM(fee) AS total FROM parcel GROUP BY depot_id ORDER BY ROUND(total / 50) DESC, total > 0",
    ),
    (SENT, "SELECT COUNT(*) FROM parcel WHERE state LIKE 's%'"),
    (SENT, "SELECT COUNT(*) FROM parcel WHERE state LIKE '%nt'"),
    (SENT, "SELECT COUNT(*) FROM parcel WHERE state > 'm'"),
    (SENT, "SELECT COUNT(*) FROM parcel WHERE state >= 'se'"),
    (SENT, "SELECT COUNT(*) FROM parcel WHERE substr(state, 1, 1) = 's'"),
    (SENT, "SELECT COUNT(*) FROM parcel WHERE length(state) = 4 AND state > 'lp'"),
    (SENT, "SELECT COUNT(*) FROM parcel WHERE state BETWEEN 'r' AND 't'"),
    (SENT, "SELECT COUNT(*) FROM parcel WHERE state = 'sent' AND fee < 1000"),
    (SENT, "SELECT COUNT(*) FROM parcel WHERE state = 'sent' AND sent < '2025-01-01'"),
    (LATE, LATE.replace("> 20", "> 10")),
    (LATE, LATE.replace("> 20", ">= 40")),
    (LATE, LATE.replace("> 20", "> 35")),
    (LATE, LATE.replace("sent >= '2024-06-01' AND sent < '2024-07-01'", "sent BETWEEN '2024-06-01' AND '2024-06-30'")),
    (LATE, LATE.replace("2024-07-01", "2024-06-29")),
    (LATE, LATE.replace("sent >= '2024-06-01' AND sent < '2024-07-01'", "strftime('%m', sent) = '06'")),
    (MAY, "SELECT id FROM parcel WHERE strftime('%m', sent) = '05'"),
    (MAY, "SELECT id FROM parcel WHERE sent BETWEEN '2024-05-01' AND '2024-05-31'"),
    (MAY, "SELECT id FROM parcel WHERE sent LIKE '%-05-%'"),
    (MAY, "SELECT id FROM parcel WHERE sent >= '2024-05-01' AND sent < '2024-05-30'"),
    (HALF, "SELECT COUNT(*) FROM parcel WHERE CAST(strftime('%m', sent) AS INTEGER) < 7"),
    (HALF, "SELECT COUNT(*) FROM parcel WHERE sent < '2024-07-01'"),
    (HALF, "SELECT COUNT(*) FROM parcel WHERE sent BETWEEN '2024-01-01' AND '2024-06-30'"),
    (HALF, "SELECT COUNT(*) FROM parcel WHERE sent LIKE '2024-0%' AND sent < '2024-06-30'"),
    (EDGE, EDGE.replace(">", ">=")),
    (EDGE, EDGE.replace("20", "21")),
    (HEAVY, f"{HEAVY} LIMIT 60"),
    (ANY, "SELECT id FROM parcel WHERE fee > 20"),
    (ANY, "SELECT id FROM parcel WHERE state <> '' AND fee > 20"),
    (
        UNDER,
        "SELECT name, (SELECT COUNT(*) FROM worker x LEFT JOIN worker y ON y.id = x.boss_id LEFT JOIN worker z "
        "ON z.id = y.boss_id WHERE worker.id IN (x.boss_id, y.boss_id, z.boss_id)) FROM worker",
    ),
]
SAME = [
    (REGIONS, "SELECT region, COUNT(id) AS n FROM depot GROUP BY region ORDER BY 1"),
    (REGIONS, "SELECT * FROM (SELECT region, COUNT(*) FROM depot GROUP BY region) ORDER BY region ASC"),
    (REGIONS, "SELECT region, COUNT(*) FROM depot GROUP BY region ORDER BY region, COUNT(*)"),
    (STATES, "SELECT state FROM parcel GROUP BY state ORDER BY state"),
    (STATES, "SELECT state FROM parcel UNION SELECT state FROM parcel ORDER BY 1"),
    (PAID, "SELECT name FROM worker ORDER BY pay DESC, name"),
    (PAID, "SELECT name FROM worker ORDER BY -pay, id DESC"),
    (PAID, "SELECT w.name FROM worker w ORDER BY CAST(w.pay AS REAL) DESC"),
    (HEAVY, "SELECT id, weight FROM parcel WHERE NOT weight <= 25 ORDER BY weight ASC, id DESC"),
    (SUMS, "SELECT depot_id, SUM(fee) FROM parcel GROUP BY depot_id ORDER BY SUM(fee) DESC"),
    (SENT, "SELECT COUNT(*) FROM parcel WHERE state LIKE 'sent'"),
    (SENT, "SELECT COUNT(*) FROM parcel WHERE lower(state) = 'sent'"),
    (SENT, "SELECT COUNT(*) FROM parcel WHERE state NOT IN ('lost', 'held')"),
    (SENT, "SELECT SUM(state = 'sent') FROM parcel WHERE fee > 0"),
    (SENT, "SELECT COUNT(*) FROM parcel WHERE state LIKE '%sent%'"),
    (LATE, LATE.replace("> 20", ">= 21")),
    (LATE, LATE.replace("sent >= '2024-06-01' AND sent < '2024-07-01'", "sent LIKE '2024-06-%'")),
    (LATE, LATE.replace("sent >= '2024-06-01' AND sent < '2024-07-01'", "strftime('%Y-%m', sent) = '2024-06'")),
    (
        LATE,
        LATE.replace("sent >= '2024-06-01' AND sent <", "date(sent) BETWEEN '2024-06-01' AND '2024-06-30' AND sent <"),
    ),
    (MAY, "SELECT id FROM parcel WHERE sent LIKE '2024-05%'"),
    (MAY, "SELECT id FROM parcel WHERE sent >= '2024-05-01' AND sent < '2024-06-01'"),
    (MAY, "SELECT id FROM parcel WHERE date(sent) BETWEEN '2024-05-01' AND '2024-05-31'"),
    (MAY, "SELECT id FROM parcel WHERE substr(sent, 1, 7) = '2024-05'"),
    (HALF, "SELECT COUNT(*) FROM parcel WHERE sent >= '2024-01-01' AND sent < '2024-07-01'"),
    (HALF, "SELECT COUNT(*) FROM parcel WHERE sent LIKE '2024%' AND strftime('%m', sent) <= '06'"),
    (
        DEPTH,
        "WITH RECURSIVE u(id, up) AS (SELECT id, boss_id FROM worker UNION ALL SELECT u.id, w.boss_id FROM u "
        "JOIN worker w ON w.id = u.up) SELECT id, COUNT(up) FROM u GROUP BY id",
    ),
    (UNDER, UNDER.replace("NULL UNION", "NULL UNION ALL")),
    (EDGE, "SELECT state FROM parcel WHERE NOT fee <= 20 GROUP BY state"),
    (TOWN, "SELECT id FROM depot WHERE lower(town) = 'oslo'"),
    (TOWN, f"{TOWN} LIMIT 1"),
    ("SELECT MAX(fee) FROM parcel", "SELECT MAX(fee) FROM parcel LIMIT 1"),
    (ANY, "SELECT id FROM parcel WHERE fee > 20 AND (state = 'held' OR state = 'lost' OR state = 'sent')"),
    (TOWN, "SELECT id FROM depot WHERE town = 'oslo' COLLATE NOCASE"),
]
TIES = [
    (
        "SELECT name, pay AS Pay FROM worker ORDER BY PAY DESC",
        "SELECT name, pay FROM worker ORDER BY pay DESC, id DESC",
    ),
    (
        "SELECT name, pay * 12 AS Yearly FROM worker ORDER BY yearly DESC",
        "SELECT name, 12 * pay FROM worker ORDER BY pay DESC, name DESC",
    ),
    (
        "SELECT name, pay AS p FROM worker ORDER BY p > 5000, CASE WHEN p > 5000 THEN name END",
        "SELECT name, pay FROM worker ORDER BY pay > 5000, CASE WHEN pay > 5000 THEN name END, id DESC",
    ),
    (
        "SELECT DISTINCT town FROM depot ORDER BY length(town)",
        "SELECT town FROM depot GROUP BY town ORDER BY length(town), town DESC",
    ),
    (
        "SELECT name, 'w' AS kind FROM worker UNION ALL SELECT town, 'd' FROM depot ORDER BY kind",
        "SELECT town, 'd' AS kind FROM depot UNION ALL SELECT name, 'w' FROM worker ORDER BY kind, 1 DESC",
    ),
    (
        "SELECT name, pay FROM worker UNION SELECT town, 1 FROM depot ORDER BY 2 DESC",
        "SELECT * FROM (SELECT name, pay FROM worker UNION SELECT town, 1 FROM depot) ORDER BY pay DESC, name DESC",
    ),
    (
        "SELECT region AS r, town FROM depot ORDER BY r COLLATE NOCASE",
        "SELECT region, town FROM depot ORDER BY region, town DESC",
    ),
]


@pytest.mark.parametrize(("gold", "sql"), WRONG, ids=lambda text: text[-60:])
def test_what_the_file_does_not_tell_apart_is_not_paid(gold: str, sql: str, post: str) -> None:
    assert verdict(sql, gold, post, variations=0).value == 1.0
    assert verdict(sql, gold, post).reason == "wrong"


@pytest.mark.parametrize(("gold", "sql"), [*SAME, *TIES], ids=lambda text: text[-60:])
def test_the_same_in_other_words_is_paid(gold: str, sql: str, post: str) -> None:
    assert verdict(gold, gold, post).value == 1.0
    assert verdict(sql, gold, post).value == 1.0


def test_candidates_that_look_at_the_same_share_databases(post: str) -> None:
    first = verdict("SELECT COUNT(*) FROM parcel WHERE state = 'sent' AND fee > 0", SENT, post)
    again = verdict("SELECT COUNT(id) FROM parcel p WHERE p.fee > 0 AND state = 'sent'", SENT, post)
    assert (first.value, again.value) == (1.0, 1.0)
    assert first.evidence["aimed"] == 8
    assert "aimed" not in verdict(SENT, SENT, post).evidence


def test_rows_do_not_depend_on_how_a_process_hashes_names(post: str) -> None:
    like = LikeFile(post, (), ("SELECT name FROM worker",), EngineOptions(moment="2025-01-01 00:00:00"))
    aim = like.aim_at("SELECT name FROM worker WHERE pay > 0 AND boss_id > 0 AND id > 0")
    assert aim is not None
    assert "{'boss_id', 'id', 'pay'}" in aim.seed


@pytest.mark.parametrize(
    ("rows", "depth"),
    [("(1, NULL)", 0), ("(1, NULL), (2, 1)", 1), ("(1, NULL), (2, 1), (3, 2)", 2), ("(1, 1), (2, 1)", None),
     ("(1, 2), (2, 1)", None)],
)  # fmt: skip
def test_a_tree_stays_a_tree(rows: str, depth: int | None, tmp_path: Path) -> None:
    path = tmp_path / "tree.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE part (id INTEGER PRIMARY KEY, part_of INTEGER REFERENCES part (id))")
        connection.execute(f"INSERT INTO part VALUES {rows}")
    assert file_facts(str(path), (1,)).tables["part"].columns[1].depth == depth
    gold = ("SELECT COUNT(*) FROM part",)
    for engine in varied_engines(LikeFile(str(path), (1,), gold, EngineOptions(moment="2025-01-01 00:00:00"))):
        found = engine.run("SELECT id, part_of FROM part", QueryLimits())
        assert isinstance(found, Table)
        above: dict[Any, Any] = dict(found.rows)
        for start in above if depth is not None else ():
            steps, key = 0, start
            while (key := above[key]) is not None:
                steps += 1
                assert steps <= (1 if depth == 1 else len(above))
