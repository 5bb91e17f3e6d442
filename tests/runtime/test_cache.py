from __future__ import annotations

import asyncio
import dataclasses
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.small_disk import needs_small_disk, printed_on_a_small_disk

from adjudge.protocol import Cost, Provenance, Sample, Score
from adjudge.runtime.cache import CachedScorer, ScoreCache, score_key
from adjudge.scoring.registry import load

MIB = 1 << 20


class Counting:
    """Scores by the length of the response and remembers what it was asked."""

    def __init__(self, name: str = "counting", fingerprint: str = "counting:1", groupwise: bool = False) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.groupwise = groupwise
        self.asked: list[Sample] = []

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.asked.extend(samples)
        return [self.one(sample) for sample in samples]

    def one(self, sample: Sample) -> Score:
        who = Provenance(scorer=self.name, fingerprint=self.fingerprint)
        if sample.response == "fail":
            return Score(value=None, status="failed", reason="engine_unavailable", provenance=who)
        if sample.response == "abstain":
            return Score(value=None, status="abstained", reason="out_of_scope", provenance=who)
        return Score(
            value=float(len(sample.response)),
            evidence={"tuple": (1, 2), "text": "\ud800"},
            parts={"inner": Score.scored(1.0)},
            cost=Cost(seconds=0.5),
            provenance=who,
        )


def sample(response: str, **fields: object) -> Sample:
    return Sample.from_dict({"prompt": "p", "response": response, **fields})


def score(scorer: CachedScorer, *samples: Sample) -> list[Score]:
    return asyncio.run(scorer.score(samples))


def test_a_cached_run_equals_an_uncached_one(tmp_path: Path) -> None:
    rng = random.Random(5)
    words = ["a", "bb", "ccc", "fail", "abstain", "\x00", "\ud800"]
    samples = [
        sample(rng.choice(words), id=str(i), reference=rng.choice([None, (1,), [1]]), extra={"n": rng.randrange(2)})
        for i in range(300)
    ]
    plain = asyncio.run(Counting().score(samples))
    with ScoreCache(tmp_path / "c.sqlite") as cache:
        cold, warm = Counting(), Counting()
        assert score(CachedScorer(cold, cache), *samples) == plain
        assert score(CachedScorer(warm, cache), *samples) == plain
    assert len(cold.asked) < 80  # 7 responses x 3 references x 2 extras
    assert {s.response for s in warm.asked} == {"fail"}  # failures are tried again, nothing else is


def test_a_verifier_in_the_pool_is_cached_like_any_scorer(tmp_path: Path) -> None:
    samples = [sample(str(i % 7), reference=str(i % 5), id=str(i)) for i in range(200)]
    plain = asyncio.run(load("math").score(samples))
    with ScoreCache(tmp_path / "c.sqlite") as cache:
        scorer = CachedScorer(load("math"), cache)
        for _ in range(2):
            found = score(scorer, *samples)
            assert [dataclasses.replace(one, cost=Cost()) for one in found] == [
                dataclasses.replace(one, cost=Cost()) for one in plain
            ]
        assert len(cache) == 35


def test_equal_samples_of_one_batch_are_scored_once(tmp_path: Path) -> None:
    inner = Counting()
    with ScoreCache(tmp_path / "c.sqlite") as cache:
        scores = score(CachedScorer(inner, cache), sample("fail", id="a"), sample("x"), sample("fail", id="b"))
    assert [s.status for s in scores] == ["failed", "scored", "failed"]
    assert len(inner.asked) == 2


def test_the_key_holds_what_is_judged_and_nothing_else() -> None:
    base = sample("r", reference="g", id="1", group="a", finish_reason="stop", extra={"k": 1})
    key = score_key("f", base)
    assert score_key("f", dataclasses.replace(base, id="2", group="b")) == key
    others = [
        score_key("F", base),
        *(
            score_key("f", dataclasses.replace(base, **{field: value}))  # type: ignore[arg-type]
            for field, value in [
                ("prompt", "q"),
                ("prompt", [{"role": "user", "content": "p"}]),
                ("response", "s"),
                ("reference", ("g",)),
                ("reference", ["g"]),
                ("reference", None),
                ("finish_reason", "length"),
                ("finish_reason", None),
                ("extra", {"k": 1.0}),
                ("extra", {}),
            ]
        ),
    ]
    assert len({key, *others}) == 12


def test_what_json_cannot_hold_is_scored_every_time(tmp_path: Path) -> None:
    inner = Counting()
    odd = Sample(prompt="p", response="odd", reference=object())
    with ScoreCache(tmp_path / "c.sqlite") as cache:
        scorer = CachedScorer(inner, cache)
        for _ in range(2):
            assert [s.value for s in score(scorer, odd, sample("x"), odd)] == [3.0, 1.0, 3.0]
        assert len(cache) == 1
    assert [s.response for s in inner.asked] == ["odd", "x", "odd", "odd", "odd"]


def test_a_groupwise_scorer_is_never_cached(tmp_path: Path) -> None:
    inner = Counting(groupwise=True)
    with ScoreCache(tmp_path / "c.sqlite") as cache:
        scorer = CachedScorer(inner, cache)
        score(scorer, sample("x"), sample("x"))
        assert scorer.groupwise
        assert len(cache) == 0
    assert len(inner.asked) == 2


def test_an_empty_batch_touches_nothing(tmp_path: Path) -> None:
    with ScoreCache(tmp_path / "c.sqlite") as cache:
        assert score(CachedScorer(Counting(), cache)) == []


def test_failures_are_not_kept(tmp_path: Path) -> None:
    with ScoreCache(tmp_path / "c.sqlite") as cache:
        score(CachedScorer(Counting(), cache), sample("x"), sample("fail"), sample("abstain"))
        assert len(cache) == 2


def big(index: int) -> tuple[bytes, Score]:
    return index.to_bytes(32, "big"), Score.scored(float(index), "", text="x" * 2000)


def test_size_is_bounded_and_the_least_used_go_first(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with ScoreCache(path, max_bytes=MIB) as cache:
        favourite, favourite_score = big(0)
        cache.put({favourite: favourite_score})
        for start in range(1, 2001, 100):
            cache.put(dict(big(index) for index in range(start, start + 100)))
            assert cache.get([favourite]) == {favourite: favourite_score}
            assert path.stat().st_size <= 1.05 * MIB
        newest, oldest = big(2000)[0], big(1)[0]
        assert newest in cache.get([newest])
        assert cache.get([oldest]) == {}
        assert 100 < len(cache) < 520


def test_one_write_larger_than_the_bound_still_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with ScoreCache(path, max_bytes=MIB) as cache:
        huge = Score.scored(1.0, "", text="x" * (MIB // 4))
        cache.put({**dict(big(index) for index in range(2000)), b"h" * 32: huge})
        assert cache.get([b"h" * 32]) == {}
        assert len(cache) > 100
    assert path.stat().st_size <= 1.05 * MIB


def test_many_reads_without_a_write_are_marked_as_use(tmp_path: Path) -> None:
    with ScoreCache(tmp_path / "c.sqlite") as cache:
        keys = [index.to_bytes(32, "big") for index in range(21_000)]
        cache.put(dict.fromkeys(keys, Score.scored(1.0)))
        assert len(cache.get(keys)) == len(keys)
        assert not cache._touched


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, not a cache\n" * 50)
    with pytest.raises(ValueError, match=r"notes\.txt.*delete it"):
        ScoreCache(path)
    assert path.read_text().startswith("these are my notes")


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE t (x)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match="not a score cache"):
        ScoreCache(path)
    assert path.read_bytes() == before


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    ScoreCache(path).close()
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(ValueError, match="schema version 99"):
        ScoreCache(path)


def test_a_damaged_file_is_named_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with ScoreCache(path) as cache:
        cache.put(dict(big(index) for index in range(200)))
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)
    keys = [big(index)[0] for index in range(200)]
    with pytest.raises(ValueError, match=r"damaged.*delete it"), ScoreCache(path) as cache:
        cache.get(keys)


def test_an_unreadable_entry_is_a_miss_and_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    inner = Counting()
    with ScoreCache(path) as cache:
        scorer = CachedScorer(inner, cache)
        (first,) = score(scorer, sample("x"))
        other = sqlite3.connect(path)
        other.execute("UPDATE scores SET score = '{\"value\": 1e999}'")
        other.commit()
        other.close()
        assert score(scorer, sample("x")) == [first]
        assert score(scorer, sample("x")) == [first]
    assert len(inner.asked) == 2


@pytest.mark.parametrize("max_bytes", [0, MIB - 1])
def test_a_bound_that_holds_nothing_is_refused(tmp_path: Path, max_bytes: int) -> None:
    with pytest.raises(ValueError, match="max_bytes"):
        ScoreCache(tmp_path / "c.sqlite", max_bytes=max_bytes)


def test_a_path_that_cannot_be_opened_is_a_user_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="choose another path"):
        ScoreCache(tmp_path)


def test_it_pickles_as_its_path(tmp_path: Path) -> None:
    with ScoreCache(tmp_path / "c.sqlite", max_bytes=2 * MIB) as cache:
        cache.put(dict([big(1)]))
        copy = pickle.loads(pickle.dumps(cache))
        assert copy.max_bytes == 2 * MIB
        assert copy.get([big(1)[0]]) == dict([big(1)])
        copy.close()


def test_threads_share_one_cache(tmp_path: Path) -> None:
    with ScoreCache(tmp_path / "c.sqlite") as cache, ThreadPoolExecutor(8) as threads:

        def work(worker: int) -> bool:
            for step in range(20):
                keys = [big(index)[0] for index in range(step, step + 5)]
                cache.put(dict(big(index) for index in range(step, step + 5)))
                if len(cache.get(keys)) != 5:
                    return False
            return True

        assert all(threads.map(work, range(8)))
        assert len(cache) == 24


def test_processes_create_and_fill_one_cache_together(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import sys
        from adjudge.protocol import Score
        from adjudge.runtime.cache import ScoreCache

        path, worker = sys.argv[1], int(sys.argv[2])
        print("ready", flush=True)
        sys.stdin.readline()
        with ScoreCache(path) as cache:
            for step in range(40):
                numbers = [step, 1000 * (worker + 1) + step]
                rows = {n.to_bytes(32, "big"): Score.scored(float(n)) for n in numbers}
                cache.put(rows)
                assert cache.get(list(rows)) == rows
    """)
    path = tmp_path / "c.sqlite"
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path), str(index)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(6)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    errors = [worker.communicate()[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * len(workers), errors
    with ScoreCache(path) as cache:
        assert len(cache) == 40 + 6 * 40


def test_a_cache_waits_for_another_process_that_is_creating_it(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # SQLite lets others read now, but refuses a change of the journal at once
    with ThreadPoolExecutor(1) as thread:
        opening = thread.submit(ScoreCache, path)
        with pytest.raises(TimeoutError):
            opening.result(timeout=0.2)
        other.execute("COMMIT")
        other.close()
        with opening.result(timeout=1200) as cache:
            assert len(cache) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_parent_and_child_go_on_with_an_open_cache_after_fork(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import os, sys, threading
        from adjudge.protocol import Score
        from adjudge.runtime.cache import ScoreCache

        def key(n):
            return n.to_bytes(32, "big")

        cache = ScoreCache(sys.argv[1])
        cache.put({key(0): Score.scored(0.0)})
        stop = threading.Event()

        def busy():
            n = 10_000
            while not stop.is_set():
                n += 1
                cache.put({key(n): Score.scored(1.0)})
                assert cache.get([key(n)])

        thread = threading.Thread(target=busy)
        thread.start()
        children = []
        for child in range(10):
            pid = os.fork()
            if pid == 0:
                for n in range(20):
                    cache.put({key(1 + 20 * child + n): Score.scored(2.0)})
                ok = len(cache.get([key(1 + 20 * child + n) for n in range(20)])) == 20 and bool(cache.get([key(0)]))
                os._exit(0 if ok else 1)
            children.append(pid)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
        stop.set()
        thread.join()
        assert codes == [0] * 10, codes
        assert len(cache.get([key(n) for n in range(201)])) == 201
        cache.close()
    """)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "c.sqlite")], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    checked = sqlite3.connect(tmp_path / "c.sqlite")
    assert checked.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    checked.close()


def test_a_killed_writer_leaves_a_readable_cache(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import sys
        from adjudge.protocol import Score
        from adjudge.runtime.cache import ScoreCache

        cache = ScoreCache(sys.argv[1], max_bytes=1 << 20)
        step = 0
        while True:
            step += 1
            score = Score.scored(1.0, "", text="y" * 500)
            cache.put({(50 * step + n).to_bytes(32, "big"): score for n in range(50)})
            print(step, flush=True)
    """)
    rng = random.Random(11)
    path = tmp_path / "c.sqlite"
    for _ in range(6):
        writer = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        steps = rng.randrange(1, 40)
        for _ in range(steps):
            last = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        with ScoreCache(path, max_bytes=MIB) as cache:
            keys = [(50 * last + n).to_bytes(32, "big") for n in range(50)]
            assert len(cache.get(keys)) == 50  # what was reported as written is there
            cache.put(dict([big(7)]))
        checked = sqlite3.connect(path)
        assert checked.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        checked.close()


FULL_DISK = """
import asyncio, logging, sys
from pathlib import Path
from adjudge import Sample, load
from adjudge.runtime.cache import CachedScorer, ScoreCache

logging.basicConfig(stream=sys.stdout, format="%(message)s")
disk = Path(sys.argv[1])
scorer = CachedScorer(load("exact"), ScoreCache(disk / "cache.db"))

def scored(name):
    samples = [Sample(prompt="?", response=f"{name} {n}", reference=f"{name} {n}") for n in range(500)]
    return sum(score.value for score in asyncio.run(scorer.score(samples)))

print(scored("empty disk"), len(scorer.cache))
filler = (disk / "filler").open("wb", buffering=0)
try:
    while filler.write(b"x" * 4096):
        pass
except OSError:
    print("full")
print(scored("full disk"), scored("full disk"))
(disk / "filler").unlink()
filler.close()
print(scored("room again"), len(scorer.cache))
"""


@needs_small_disk
def test_a_full_disk_costs_no_score(tmp_path: Path) -> None:
    first, full, warning, during, after = printed_on_a_small_disk(FULL_DISK, tmp_path)
    assert (first, full, during, after) == ("500.0 500", "full", "500.0 500.0", "500.0 1000")
    assert "cannot be used" in warning
