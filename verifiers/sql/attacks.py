"""The attack suite of the SQL verifier, against a small shop.

Not covered: the cases for PostgreSQL, unless a server is named; `adjudge check` tries those for SQLite.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from adjudge.scoring.attacks import AttackCase, attack_case, suites_in

_DATA: Final = Path(__file__).with_name("attacks.json")
SHOP: Final = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT, joined DATE);
CREATE TABLE purchase (
    id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer (id), item TEXT, price DECIMAL(10, 2)
);
INSERT INTO customer VALUES
    (1, 'Ada', 'France', '2020-01-05'), (2, 'Bo', 'Spain', '2021-03-01'), (3, 'Cleo', 'France', '2021-03-01'),
    (4, 'Dan', NULL, '2022-07-09'), (5, 'Eve', 'Italy', '2019-11-30');
INSERT INTO purchase VALUES
    (1, 1, 'lamp', 10.5), (2, 1, 'desk', 99.25), (3, 2, 'lamp', 10.5), (4, 3, 'chair', 45), (5, 3, 'lamp', 12),
    (6, 3, 'lamp', 12), (7, 5, 'desk', NULL);
"""
"""The database, in words that SQLite, DuckDB and PostgreSQL share."""

# What never ends uses all the time there is; the rest ends by itself, on a busy machine later than in so short a time.
_ENDLESS: Final[dict[str, Any]] = {"seconds": 0.3}
_POSTGRES: Final[dict[str, Any]] = {"seconds": 10.0, "memory_mb": 64}  # 64 MiB are full after 2 s at most


def make_shop(path: Path) -> str:
    """Make the shop a SQLite file, and return where it is."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SHOP)
    return str(path)


def attack_suite(scorer: Any, folder: Path) -> Iterator[AttackCase]:
    """Yield the cases for SQLite, against the shop in a folder."""
    if scorer.name == "sql":
        yield from cases_of(make_shop(folder / "shop.sqlite"))


def cases_of(database: str, engine: str = "sqlite") -> Iterator[AttackCase]:
    """Yield the cases of one engine."""
    data = suites_in(_DATA)
    for kind in ("attacks", "honest"):
        for case in data[kind]:
            if case.get("engine", "sqlite") == engine:
                told = {**case, "response": _response(case), "options": _limits(case, engine) | case.get("options", {})}
                reference = {"sql": data["golds"][case["gold"]], "database": database}
                yield attack_case(case["id"], told, {"prompt": "Which?"}, reference, honest=kind == "honest")


def _limits(case: Mapping[str, Any], engine: str) -> dict[str, Any]:
    if engine == "postgres":
        return _POSTGRES if "reason" in case else {}
    return _ENDLESS if case.get("reason") == "candidate_timeout" else {}


def _response(case: Mapping[str, Any]) -> str:
    if "repeat" in case:
        before, part, times, after = case["repeat"]
        return str(before + part * times + after)
    return str(case["response"])
