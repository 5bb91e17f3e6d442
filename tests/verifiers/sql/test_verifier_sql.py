"""The SQL verifier: references, stages, policies, engines, and what happens in the pool."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge.protocol import Limits, Sample
from adjudge.runtime.pool import Pool
from adjudge.runtime.verifying import VerifierScorer
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.sql.database import Session, Shelf, session
from adjudge.verifiers.sql.verifier import SqlVerifier

NAMES = "SELECT name FROM customer WHERE country = 'France'"


def block(sql: str) -> str:
    return f"```sql\n{sql}\n```"


def test_the_reference_scores_1_and_the_evidence_says_why(ask: Callable[..., Sample]) -> None:
    score = SqlVerifier().verify(ask(block(NAMES)))
    assert score.value == 1.0
    assert score.evidence == {"stage": "match", "databases": 1, "rows": [2], "made": 6, "accepted": 0, "query": NAMES}


def test_a_wrong_result_says_what_differs(ask: Callable[..., Sample]) -> None:
    score = SqlVerifier().verify(ask(block("SELECT name FROM customer")))
    assert (score.value, score.reason) == (0.0, "wrong")
    assert score.evidence["difference"] == "row_count"
    assert score.evidence["detail"] == "5 rows instead of 2"


def test_any_accepted_query_will_do(ask: Callable[..., Sample]) -> None:
    accepted = ["SELECT id FROM customer WHERE country = 'France'", NAMES + ";"]
    score = SqlVerifier().verify(ask(block(NAMES), accepted))
    assert (score.value, score.evidence["accepted"]) == (1.0, 1)


def test_every_database_must_agree(shop: str, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE customer (id INTEGER, name TEXT, country TEXT)")
        connection.execute("INSERT INTO customer VALUES (1, 'Ada', 'Spain'), (3, 'Cleo', 'France')")
    connection.close()
    sample = Sample(
        prompt="",
        response=block("SELECT name FROM customer WHERE id IN (1, 3)"),
        reference={"sql": NAMES, "database": shop},
    )
    assert SqlVerifier(variations=0).verify(sample).value == 1.0
    both = {"sql": NAMES, "database": [shop, str(other)]}
    score = SqlVerifier().verify(Sample(prompt="", response=sample.response, reference=both))
    assert (score.value, score.evidence["database"]) == (0.0, 1)


ORDER: dict[str, tuple[str, str, dict[str, Any], float]] = {
    "sorted, ties free": (
        "SELECT name, joined FROM customer ORDER BY joined",
        "SELECT name, joined FROM customer ORDER BY joined, name DESC",
        {},
        1.0,
    ),
    "sorted by what is not selected": (
        "SELECT name FROM customer ORDER BY joined",
        "SELECT name FROM customer ORDER BY joined, name DESC",
        {},
        1.0,
    ),
    "sorted by position": (
        "SELECT joined, name FROM customer ORDER BY 1",
        "SELECT joined, name FROM customer ORDER BY joined, name DESC",
        {},
        1.0,
    ),
    "sorted by an alias": (
        "SELECT name, price * 2 AS p FROM customer c JOIN purchase ON customer_id = c.id ORDER BY p",
        "SELECT name, price * 2 FROM purchase p JOIN customer c ON customer_id = c.id ORDER BY price, p.id DESC",
        {},
        1.0,
    ),
    "sorted by an aggregate": (
        "SELECT item FROM purchase GROUP BY item ORDER BY COUNT(*) DESC",
        "SELECT item FROM purchase GROUP BY item ORDER BY COUNT(*) DESC, item DESC",
        {},
        1.0,
    ),
    "sorted, ties strict": (
        "SELECT name, joined FROM customer ORDER BY joined",
        "SELECT name, joined FROM customer ORDER BY joined, name DESC",
        {"comparator": {"ties": "strict"}},
        0.0,
    ),
    "sorted the other way": (
        "SELECT name FROM customer ORDER BY joined",
        "SELECT name FROM customer ORDER BY joined DESC",
        {},
        0.0,
    ),
    "not sorted": ("SELECT name FROM customer ORDER BY joined", "SELECT name FROM customer", {}, 0.0),
    "order does not count": (
        "SELECT name FROM customer ORDER BY joined",
        "SELECT name FROM customer",
        {"ordered": False},
        1.0,
    ),
    "order counts": (
        "SELECT name FROM customer",
        "SELECT name FROM customer ORDER BY name DESC",
        {"ordered": True},
        0.0,
    ),
    "order inside only": (
        "SELECT name FROM (SELECT * FROM customer ORDER BY name DESC)",
        "SELECT name FROM customer",
        {},
        1.0,
    ),
    "order inside, test suite": (
        "SELECT name FROM (SELECT * FROM customer ORDER BY name DESC)",
        "SELECT name FROM customer",
        {"comparator": "test_suite"},
        0.0,
    ),
    "DISTINCT counts": ("SELECT DISTINCT item FROM purchase", "SELECT item FROM purchase", {}, 0.0),
    "DISTINCT dropped, test suite": (
        "SELECT DISTINCT item FROM purchase",
        "SELECT item FROM purchase",
        {"comparator": "test_suite"},
        1.0,
    ),
    "duplicates, BIRD": (
        "SELECT DISTINCT item FROM purchase",
        "SELECT item FROM purchase",
        {"comparator": "bird"},
        1.0,
    ),
}


@pytest.mark.parametrize(("gold", "candidate", "more", "value"), ORDER.values(), ids=ORDER.keys())
def test_order_and_duplicates(
    gold: str, candidate: str, more: dict[str, Any], value: float, ask: Callable[..., Sample]
) -> None:
    assert SqlVerifier().verify(ask(block(candidate), gold, **more)).value == value


BAD_GOLDS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "does not parse": ("SELEC name", {}, "gold_unparsable"),
    "unknown column": ("SELECT nothing FROM customer", {}, "gold_unparsable"),
    "two statements": ("SELECT 1; SELECT 2", {}, "gold_unparsable"),
    "no query": ("DELETE FROM customer", {}, "gold_unparsable"),
    "no rows": ("SELECT name FROM customer WHERE 0", {}, "gold_unparsable"),
    "only NULL": ("SELECT MAX(price) FROM purchase WHERE 0", {}, "gold_unparsable"),
    "one of two has no rows": ([NAMES, "SELECT name FROM customer WHERE 0"], {}, "gold_unparsable"),
    "changes from call to call": ("SELECT name FROM customer ORDER BY random()", {}, "gold_unparsable"),
    "too slow": (
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT MAX(x) FROM c",
        {},
        "gold_timeout",
    ),
    "too long": ("SELECT a.id FROM purchase a, purchase b, purchase c, purchase d", {"rows": 100}, "gold_timeout"),
}


@pytest.mark.parametrize("response", ["", block(NAMES)], ids=["empty response", "some response"])
@pytest.mark.parametrize(("gold", "options", "reason"), BAD_GOLDS.values(), ids=BAD_GOLDS.keys())
def test_a_bad_reference_fails_whatever_the_response(
    gold: Any, options: dict[str, Any], reason: str, response: str, ask: Callable[..., Sample]
) -> None:
    score = SqlVerifier(seconds=0.2, **options).verify(ask(response, gold))
    assert (score.status, score.value, score.reason) == ("failed", None, reason)


def test_an_empty_reference_counts_when_told(ask: Callable[..., Sample]) -> None:
    empty = "SELECT name FROM customer WHERE country = 'Peru'"
    verifier = SqlVerifier(empty="accept", variations=0)
    assert verifier.verify(ask(block("SELECT country FROM customer WHERE id > 9"), empty)).value == 1.0
    assert verifier.verify(ask(block(NAMES), empty)).value == 0.0


MISTAKES: dict[str, tuple[Any, str]] = {
    "text": ("SELECT 1", "give"),
    "no query": ({"database": "x"}, "'sql'"),
    "empty list": ({"sql": [], "database": "x"}, "'sql'"),
    "number": ({"sql": 5, "database": "x"}, "'sql'"),
    "no database": ({"sql": "SELECT 1"}, "'database'"),
    "database without schema": ({"sql": "SELECT 1", "database": {"values": {}}}, "'schema'"),
    "like no file": ({"sql": "SELECT 1", "database": {"like": {"schema": "x"}}}, "'like'"),
    "unknown key": ({"sql": "SELECT 1", "database": "x", "order": True}, "'order'"),
    "bad order": ({"sql": "SELECT 1", "database": "x", "ordered": "yes"}, "'ordered'"),
    "bad comparator": ({"sql": "SELECT 1", "database": "x", "comparator": "nice"}, "nice"),
    "mixed engines": ({"sql": "SELECT 1", "database": ["postgresql://x", {"schema": "x"}]}, "dialect"),
}


@pytest.mark.parametrize(("reference", "named"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_in_the_reference_are_named(reference: Any, named: str) -> None:
    verifier = SqlVerifier()
    sample = Sample(prompt="", response="", reference=reference, id="s7")
    with pytest.raises(ValueError, match=named):
        verifier.validate(sample)
    assert verifier.verify(sample).reason == "gold_unparsable"


def test_a_file_that_is_not_there_fails_its_sample_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no database at all")
    for name in ("nowhere.sqlite", "notes.txt", "a\0b"):
        sample = Sample(prompt="", response=block("SELECT 1"), reference={"sql": "SELECT 1", "database": name})
        verifier = SqlVerifier(folder=str(tmp_path))
        verifier.validate(sample)
        assert verifier.verify(sample).reason == "gold_unparsable"


@pytest.mark.parametrize(
    "options",
    [
        {"comparator": "nice"},
        {"comparator": {"rows": "heap"}},
        {"reward": "gold star"},
        {"blocks": "first"},
        {"seconds": 0},
        {"seconds": float("nan")},
        {"rows": 0},
        {"memory_mb": 1.5},
        {"synthetic": 0},
        {"moment": "today"},
    ],
    ids=str,
)
def test_options_that_mean_nothing(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(options.values())))[:5].strip("{'") or "sql"):
        SqlVerifier(**options)


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    sample = Sample(
        prompt="",
        response=block("SELECT a + 0 FROM t WHERE a = 1"),
        reference={"sql": "SELECT a FROM t", "database": str(path)},
    )
    for content, value in (("(1)", 1.0), ("(1), (2)", 0.0)):
        with sqlite3.connect(path) as connection:
            connection.execute("DROP TABLE IF EXISTS t")
            connection.execute("CREATE TABLE t (a)")
            connection.execute(f"INSERT INTO t VALUES {content}")
        connection.close()
        stamp = 10**18 + int(value)
        os.utime(path, ns=(stamp, stamp))
        assert SqlVerifier().verify(sample).value == value


def test_parts_tell_how_near_a_query_is(ask: Callable[..., Sample]) -> None:
    verifier = SqlVerifier(parts=True)
    assert {name: part.value for name, part in verifier.verify(ask(block(NAMES))).parts.items()} == {
        "schema": 1.0,
        "ngrams": 1.0,
    }
    near = verifier.verify(ask(block("SELECT name FROM customer"))).parts
    assert near["schema"].value == pytest.approx(2 / 3)
    assert 0 < (near["ngrams"].value or 0) < 1
    assert verifier.verify(ask("no")).parts["schema"].value == 0.0


def test_r_ves_prefers_the_cheaper_query(ask: Callable[..., Sample]) -> None:
    gold = "SELECT COUNT(*) FROM customer WHERE country = 'France'"
    dear = "SELECT COUNT(DISTINCT a.id) FROM customer a, purchase b, purchase c WHERE a.country = 'France'"
    for cost in ("steps", "seconds"):
        verifier = SqlVerifier(reward="r_ves", cost=cost, iterations=3)
        assert (verifier.verify(ask(block(dear), gold)).value or 0) < (
            verifier.verify(ask(block(gold), dear)).value or 0
        )
    assert SqlVerifier(reward="r_ves").verify(ask(block(gold), gold)).value == 1.0


def test_duckdb_and_postgres_judge_alike(duckdb_shop: str, postgres: Callable[[str], str]) -> None:
    for database in (duckdb_shop, postgres("reader")):
        reference = {"sql": "SELECT name, joined FROM customer ORDER BY joined", "database": database}
        for response, value, reason in (
            ("SELECT name, joined FROM customer ORDER BY joined, name DESC", 1.0, ""),
            ("SELECT joined, name FROM customer ORDER BY joined", 1.0, ""),
            ("SELECT name, joined FROM customer ORDER BY joined DESC", 0.0, "wrong"),
            ("SELECT * FROM (VALUES ('Eve', DATE '2019-11-30')) AS v(a, b)", 0.0, "tampering"),
            ("SELECT 'Eve', '2019-11-30' FROM pg_class LIMIT 1", 0.0, "tampering"),
            ("SELECT 'Eve', '2019-11-30' FROM information_schema.tables LIMIT 1", 0.0, "tampering"),
            ("SELECT 1; DROP TABLE customer", 0.0, "tampering"),
            ("SELECT name FROM nowhere", 0.0, "candidate_error"),
        ):
            score = SqlVerifier().verify(Sample(prompt="", response=block(response), reference=reference))
            assert (score.value, score.reason) == (value, reason), (database, response, score)


def test_a_server_that_is_down_is_not_the_responses_fault(tmp_path: Path) -> None:
    reference = {"sql": "SELECT 1", "database": f"postgresql:///x?host={tmp_path}"}
    score = SqlVerifier().verify(Sample(prompt="", response=block("SELECT 1"), reference=reference))
    assert (score.status, score.reason) == ("failed", "engine_unavailable")


def test_a_connection_that_was_cut_is_opened_anew(postgres: Callable[[str], str]) -> None:
    import psycopg

    reference = {"sql": "SELECT name FROM customer", "database": postgres("reader")}
    right = Sample(prompt="", response=block("SELECT name FROM customer ORDER BY id"), reference=reference)
    verifier = SqlVerifier()
    for _ in range(2):
        assert verifier.verify(right).value == 1.0
        with psycopg.connect(postgres("owner"), autocommit=True) as connection:
            cut = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'reader'"
            assert connection.execute(cut).fetchall()
    assert SqlVerifier(rows=99).verify(right).value == 1.0  # with the reference's result not kept, too


def test_efficiency_in_steps_needs_sqlite() -> None:
    sample = Sample(prompt="", response="", reference={"sql": "SELECT 1", "database": "postgresql://x"})
    with pytest.raises(ValueError, match="cost='seconds'"):
        SqlVerifier(reward="r_ves").validate(sample)


def test_a_session_is_never_shared_with_a_child() -> None:
    mine = session()
    assert session() is mine
    mine.pid = -1  # as a child finds it
    assert session() is not mine
    assert session().pid == os.getpid()


def test_a_shelf_keeps_what_was_used_last() -> None:
    shelf: Shelf[str] = Shelf(10)
    assert shelf.put("a", "A", 6) == []
    assert shelf.put("b", "B", 4) == []
    assert shelf.get("a") == "A"
    assert shelf.put("c", "C", 4) == ["B"]
    assert shelf.put("a", "A2", 1) == ["A"]
    assert shelf.put("d", "D", 99) == []
    assert [shelf.get(key) for key in "abcd"] == ["A2", None, "C", None]


def test_engines_that_died_are_opened_anew() -> None:
    class Dead:
        alive = False

        def close(self) -> None:
            closed.append(self)

    closed: list[Any] = []
    made = [Dead(), Dead()]
    kept: Any = Session()
    assert kept.engines("k", lambda: (made[0],)) == (made[0],)
    assert kept.engines("k", lambda: (made[1],)) == (made[1],)
    assert closed == [made[0]]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(workers=1) as made:
        yield made


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool kills after a tenth of the time that making databases may take."""
    assert SqlVerifier(seconds=0.2).limits.seconds == pytest.approx(10.4)
    limits = Limits(seconds=2.0, memory_mb=SqlVerifier(memory_mb=64).limits.memory_mb)
    monkeypatch.setattr(SqlVerifier, "limits", limits)


async def scores(verifier: SqlVerifier, samples: list[Sample], pool: Pool) -> list[tuple[float | None, str]]:
    found = await VerifierScorer(verifier, pool).score(samples)
    return [(score.value, score.reason) for score in found]


@pytest.mark.parametrize(
    ("sql", "reasons"),
    [
        # One step of the machine that takes minutes: only killing helps.
        (
            "SELECT COUNT(*) FROM customer WHERE instr(replace(hex(zeroblob(3000000)), '0', 'a'), "
            "replace(hex(zeroblob(1000000)), '0', 'a') || 'b')",
            {"candidate_timeout"},
        ),
        (
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 900) "
            "SELECT x, zeroblob(4000000) || x AS b FROM c ORDER BY b",
            {"candidate_memory", "candidate_output"},
        ),
        (
            "SELECT COUNT(*) FROM (SELECT group_concat(replace(hex(zeroblob(900000)), '0', 'ab')) "
            "FROM purchase a, purchase b GROUP BY a.id)",
            {"candidate_error", "candidate_memory", "wrong"},
        ),
        # A query that takes half a minute to prepare, which the deadline inside SQLite does not see before 3.41.
        (
            "WITH a0 AS (SELECT 1 AS x), "
            + ", ".join(f"a{n} AS (SELECT l.x FROM a{n - 1} l, a{n - 1} r)" for n in range(1, 24))
            + " SELECT * FROM a23",
            {"candidate_timeout", "candidate_memory", "candidate_error"},
        ),
    ],
    ids=["one step", "sorter", "concatenation", "preparation"],
)
@pytest.mark.usefixtures("hasty")
def test_the_pool_stops_what_the_engine_cannot(
    sql: str, reasons: set[str], ask: Callable[..., Sample], pool: Pool
) -> None:
    verifier = SqlVerifier(seconds=0.2, memory_mb=64)
    found = asyncio.run(scores(verifier, [ask(block(sql)), ask(block(NAMES))], pool))
    assert found[0][0] == 0.0
    assert found[0][1] in reasons
    assert found[1] == (1.0, "")


@pytest.mark.usefixtures("hasty")
def test_the_pool_stops_duckdb(duckdb_shop: str, pool: Pool) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT 1 - x FROM c) SELECT COUNT(*) FROM c, customer"
    samples = [
        Sample(prompt="", response=block(sql), reference={"sql": NAMES, "database": duckdb_shop})
        for sql in (endless, NAMES)
    ]
    assert asyncio.run(scores(SqlVerifier(seconds=0.2), samples, pool)) == [(0.0, "candidate_timeout"), (1.0, "")]


def test_a_killed_query_earns_no_more_than_one_that_fails(ask: Callable[..., Sample]) -> None:
    response = f"<think>x</think><answer>{block('SELECT 1 FROM nowhere')}</answer>"
    verifier = SqlVerifier(reward="sql_r1")
    failed = verifier.verify(ask(response))
    assert verifier.killed(ask(response), "candidate_timeout").value == failed.value == -1.0


def test_it_conforms(ask: Callable[..., Sample]) -> None:
    responses = (block(NAMES), block("SELECT name FROM customer"), block("SELECT 1"), "no", "<think>")
    check_scorer(SqlVerifier(), [ask(response) for response in responses]).raise_for_failures()
