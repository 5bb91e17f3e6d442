"""A small shop as a database of each engine; PostgreSQL is a real server, started here from the system's packages."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from adjudge.protocol import Sample
from adjudge.verifiers.sql.attacks import SHOP, make_shop


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The shop as a SQLite file."""
    return make_shop(tmp_path_factory.mktemp("shop") / "shop ?#%.sqlite")  # what a URI would take apart


@pytest.fixture(scope="session")
def duckdb_shop(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The shop as a DuckDB file."""
    duckdb = pytest.importorskip("duckdb", reason="pip install 'adjudge[sql]'")
    path = tmp_path_factory.mktemp("duck") / "shop.duckdb"
    connection = duckdb.connect(str(path))
    connection.execute(SHOP)
    connection.close()
    return str(path)


def _postgres_programs() -> Path | None:
    found = shutil.which("initdb")
    if found:
        return Path(os.path.realpath(found)).parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return versions[-1].parent if versions else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[Callable[[str], str]]:
    """A function from a role's name to a connection string; the roles are "owner", a superuser, and "reader"."""
    programs = _postgres_programs()
    if programs is None:
        pytest.skip("there is no PostgreSQL server; apt-get install postgresql")
    psycopg = pytest.importorskip("psycopg", reason="pip install 'adjudge[sql]'")
    folder = tempfile.mkdtemp(prefix="pg")  # short: a socket's path has at most 107 bytes
    user: dict[str, Any] = {}
    if os.getuid() == 0:  # the server refuses to run as root
        account = pwd.getpwnam("nobody")
        user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        os.chown(folder, account.pw_uid, account.pw_gid)

    def call(*command: str) -> None:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200, **user)
        assert done.returncode == 0, done.stdout + done.stderr

    data = f"{folder}/data"
    call(str(programs / "initdb"), "-D", data, "-U", "owner", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
    options = f"-k {folder} -c listen_addresses= -c fsync=off -c shared_buffers=16MB"
    call(str(programs / "pg_ctl"), "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")

    def dsn(role: str) -> str:
        return f"postgresql:///postgres?host={folder}&user={role}"

    try:
        with psycopg.connect(dsn("owner"), autocommit=True) as connection:
            connection.execute(SHOP.encode())
            connection.execute("CREATE ROLE reader LOGIN")
            connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        yield dsn
    finally:
        call(str(programs / "pg_ctl"), "-D", data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture
def ask(shop: str) -> Callable[..., Sample]:
    """A function from a response and an accepted query to a sample on the SQLite shop."""

    def sample(response: str, sql: Any = "SELECT name FROM customer WHERE country = 'France'", **more: Any) -> Sample:
        finish_reason = more.pop("finish_reason", None)
        reference: Mapping[str, Any] = {"sql": sql, "database": shop, **more}
        return Sample(prompt="Which?", response=response, reference=reference, finish_reason=finish_reason)

    return sample
