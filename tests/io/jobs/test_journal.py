"""The journal: what is committed stays, what is not is cut off, and nothing of another job is mixed in."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from adjudge.data_pipelines.label.bench import Written
from adjudge.data_pipelines.label.report import Tally
from adjudge.io.errors import JobError
from adjudge.io.jobs.journal import Journal, partial_of
from adjudge.io.row import Cursor, Place

IDENTITY: dict[str, Any] = {"input": {"bytes": 3}, "scorer": {"fingerprint": "a:1"}}
SCORE = Written("", 0.1, "scored", "", "a")


@contextmanager
def opened(output: Path, identity: dict[str, Any] | None = None, **options: Any) -> Iterator[Journal[Tally]]:
    with closing(Journal(output, identity or IDENTITY, Tally(), **options)) as journal:
        yield journal


def add(journal: Journal[Tally], row: int) -> None:
    after = Cursor(row + 1, 0, Place(row + 1, 6 * (row + 1), row + 1), row + 1, "g")
    journal.tally.rows += 1
    journal.tally.add(SCORE)
    journal.append(b"row %d\n" % row, after)


def test_a_job_in_one_go(tmp_path: Path) -> None:
    output = tmp_path / "new" / "out.jsonl"
    with opened(output) as journal:
        add(journal, 0)
        assert not output.exists()
        journal.commit(done=True)
        journal.finish(None)
    assert output.read_bytes() == b"row 0\n"
    assert [path.name for path in output.parent.iterdir()] == ["out.jsonl"]


def test_what_was_not_committed_is_cut_off(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    with opened(output, commit_seconds=1e9) as journal:
        add(journal, 0)
        add(journal, 1)
        journal.commit()
        add(journal, 2)
    data = partial_of(output) / "data.jsonl"
    assert data.read_bytes() == b"row 0\nrow 1\nrow 2\n"
    with opened(output) as journal:
        assert data.read_bytes() == b"row 0\nrow 1\n"
        assert journal.cursor == Cursor(2, 0, Place(2, 12, 2), 2, "g")
        assert (journal.resumed_rows, journal.safe_rows, journal.tally.rows) == (2, 2, 2)
        assert journal.tally.total == 0.1 + 0.1
        assert journal.tally.counts == {("a", "scored", ""): 2}
        add(journal, 2)
        journal.commit(done=True)
        journal.finish(None)
    assert output.read_bytes() == b"row 0\nrow 1\nrow 2\n"


def test_rest_commits_what_came_since_the_last_commit_and_nothing_twice(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    manifest = partial_of(output) / "manifest.json"
    with opened(output, commit_seconds=1e9) as journal:
        journal.rest()
        assert not manifest.exists()
        add(journal, 0)
        journal.rest()
        assert json.loads(manifest.read_bytes())["tally"]["rows"] == 1
        written = manifest.stat().st_ino
        journal.rest()
        assert manifest.stat().st_ino == written
    with opened(output, commit_seconds=1e9) as journal:
        assert journal.resumed_rows == 1
        written = manifest.stat().st_ino
        journal.rest()
        assert manifest.stat().st_ino == written


def test_save_commits_what_there_is_and_leaves_nothing_behind_where_there_is_none(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    with opened(output, commit_seconds=1e9) as journal:
        journal.save()
    assert list(tmp_path.iterdir()) == []
    with opened(output, commit_seconds=1e9) as journal:
        add(journal, 0)
        journal.save()
    with opened(output) as journal:
        assert journal.resumed_rows == 1


def test_another_job_is_refused_with_what_differs_and_restart_begins_anew(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    with opened(output, commit_seconds=0) as journal:
        add(journal, 0)
    other = {"input": {"bytes": 4}, "scorer": {"fingerprint": "a:2"}}
    told = r"holds 1 rows .*input\.bytes was 3 and is 4; scorer\.fingerprint was 'a:1' and is 'a:2'.*--restart"
    with pytest.raises(ValueError, match=told):
        Journal(output, other, Tally())
    assert (partial_of(output) / "data.jsonl").read_bytes() == b"row 0\n"
    with opened(output, other, restart=True) as journal:
        assert journal.cursor == Cursor()
        add(journal, 0)
        journal.commit(done=True)
        journal.finish(None)
    assert output.read_bytes() == b"row 0\n"


def test_an_input_that_changed_is_said_by_its_name(tmp_path: Path) -> None:
    def of(**files: int) -> dict[str, Any]:
        return {"input": {"files": {f"{name}.jsonl": {"bytes": size} for name, size in files.items()}}}

    with opened(tmp_path / "out.jsonl", of(a=1, b=2), commit_seconds=0) as journal:
        add(journal, 0)
    with pytest.raises(
        ValueError, match=r"not this one: a\.jsonl has changed since; b\.jsonl is gone; c\.jsonl is new\. "
    ):
        Journal(tmp_path / "out.jsonl", of(a=2, c=2), Tally())


def test_an_output_that_exists_is_kept(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text("precious")
    with pytest.raises(ValueError, match=r"out\.jsonl exists already.*--overwrite"):
        Journal(output, IDENTITY, Tally())
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    with opened(output, overwrite=True, commit_seconds=0) as journal:
        add(journal, 0)
        assert output.read_text() == "precious"
    with pytest.raises(ValueError, match="--overwrite"):
        Journal(output, IDENTITY, Tally(), restart=True)
    with opened(output, overwrite=True) as journal:
        assert journal.resumed_rows == 1
        journal.commit(done=True)
        journal.finish(None)
    assert output.read_bytes() == b"row 0\n"


def test_a_finished_job_whose_output_was_taken_away_begins_anew(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    with opened(output) as journal:
        add(journal, 0)
        journal.commit(done=True)
    (partial_of(output) / "data.jsonl").replace(output)  # killed right here
    with opened(output) as journal:
        assert journal.done
        journal.finish(None)
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]

    with opened(tmp_path / "b.jsonl") as journal:
        add(journal, 0)
        journal.commit(done=True)
    (partial_of(tmp_path / "b.jsonl") / "data.jsonl").unlink()
    with opened(tmp_path / "b.jsonl") as journal:
        assert not journal.done
        assert journal.cursor == Cursor()


def test_conversion_is_done_again_after_a_kill(tmp_path: Path) -> None:
    output = tmp_path / "out.upper"

    def die(source: Path, target: Path) -> None:
        target.write_text("half")
        raise KeyboardInterrupt

    with opened(output) as journal:
        add(journal, 0)
        journal.commit(done=True)
        with pytest.raises(KeyboardInterrupt):
            journal.finish(die)
    assert not output.exists()
    with opened(output) as journal:
        assert journal.done
        journal.finish(lambda source, target: bool(target.write_bytes(source.read_bytes().upper())))  # type: ignore[arg-type]
    assert output.read_bytes() == b"ROW 0\n"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("manifest.json", b"{", "is damaged"),
        ("manifest.json", b'{"format": 99}', "another version of adjudge"),
        ("data.jsonl", b"ro", "holds 2 bytes, and 6 were committed"),
    ],
)
def test_damage_is_named_and_restart_helps(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    output = tmp_path / "out.jsonl"
    with opened(output, commit_seconds=0) as journal:
        add(journal, 0)
    (partial_of(output) / name).write_bytes(content)
    with pytest.raises((JobError, ValueError), match=rf"{told}.*--restart"):
        Journal(output, IDENTITY, Tally())
    with opened(output, restart=True) as journal:
        assert journal.cursor == Cursor()


def test_one_job_at_a_time_from_threads_and_processes(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    code = (
        "import sys; from pathlib import Path; from adjudge.io.jobs.journal import Journal; "
        "from adjudge.data_pipelines.label.report import Tally; "
        "from adjudge.io.errors import JobError\n"
        "try: Journal(Path(sys.argv[1]), {}, Tally())\n"
        "except JobError as error: print(error)\n"
        "else: print('got it')"
    )
    command = [sys.executable, "-c", code, str(output)]
    with opened(output):
        with pytest.raises(JobError, match="another thread of this process"):
            Journal(output, IDENTITY, Tally())
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "out.jsonl.partial is in use by process" in told
        assert "wait until that job has finished" in told
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "got it\n"


def test_a_tally_of_lines_that_a_full_disk_refused_is_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refuses:
        """A file on a disk that is full for one write; then somebody makes room."""

        def __init__(self, file: Any) -> None:
            self._file = file

        def write(self, lines: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

    output = tmp_path / "out.jsonl"
    with opened(output, commit_seconds=1e9) as journal:
        add(journal, 0)
        journal.commit()
        add(journal, 1)
        monkeypatch.setattr(journal, "_data", Refuses(journal._data))
        with pytest.raises(JobError, match="the disk is full"):
            add(journal, 2)
        journal.save()
    with opened(output) as journal:
        assert (journal.cursor.row, journal.tally.rows) == (1, 1)


def test_a_full_disk_says_so_and_costs_only_what_was_not_committed(tmp_path: Path) -> None:
    code = """
import json, resource, sys
from pathlib import Path
from adjudge.io.errors import JobError
from adjudge.io.jobs.journal import Journal
from adjudge.data_pipelines.label.report import Tally
from adjudge.data_pipelines.label.bench import Written
from adjudge.io.row import Cursor
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
journal = Journal(Path(sys.argv[1]), {}, Tally(), commit_seconds=0)
try:
    for row in range(100):
        journal.tally.rows += 1
        journal.append(b"%04d" % row * 250, Cursor(row + 1))
except JobError as error:
    print(json.dumps([str(error), journal.safe_rows]))
journal.save()
journal.close()
"""
    output = tmp_path / "out.jsonl"
    ran = subprocess.run([sys.executable, "-c", code, str(output)], capture_output=True, text=True, check=True)
    told, safe = json.loads(ran.stdout)
    assert told.startswith("the disk is full (File too large) while writing")
    assert "Make room and make the same call again" in told
    assert safe == 20
    with closing(Journal(output, {}, Tally())) as journal:
        assert (journal.cursor, journal.tally.rows) == (Cursor(20), 20)
    assert (partial_of(output) / "data.jsonl").stat().st_size == 20_000
