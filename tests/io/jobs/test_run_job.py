"""The job over rows as a whole: order, counts, faults, resuming, bounds."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest
from tests.io.jobs.toys import Backwards, Careful, Doubler, Sums, Watch, config, jsonl, numbers, records

from adjudge.io.errors import JobError
from adjudge.io.jobs.groups import NumberSource
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.journal import partial_of
from adjudge.io.jobs.maker import Made, Unit
from adjudge.io.jobs.report import JobReport
from adjudge.protocol import Cost

DOUBLED = [{"x": 2 * x, "word": word} for x in range(0, 500, 2) for word in ("a", "b\ud800")]


def test_a_job(tmp_path: Path) -> None:
    watch = Watch()
    out = tmp_path / "new" / "out.jsonl"
    report = run_job(config(numbers(tmp_path / "in.jsonl", 500), out), Doubler(), progress=watch)
    assert records(out) == DOUBLED
    assert report == JobReport(
        output=str(out),
        maker="doubler",
        fingerprint="doubler:1",
        rows=500,
        made=500,
        dropped={"odd": 250},
        counts={"halves": 125.0, "seen": 500},
        cost=Cost(prompt_tokens=750),
        seconds=report.seconds,
        resumed_rows=0,
        notes=("x is doubled",),
    )
    assert not partial_of(out).exists()
    assert watch.notes == ["x is doubled"]
    last = watch.snapshots[-1]
    assert (last.rows, last.made, last.dropped, last.fraction) == (500, 500, {"odd": 250}, 1.0)
    assert [snapshot.rows for snapshot in watch.snapshots] == sorted({snapshot.rows for snapshot in watch.snapshots})


def test_how_many_are_worked_on_at_once_does_not_change_a_byte(tmp_path: Path) -> None:
    source = numbers(tmp_path / "in.jsonl", 500)
    run_job(config(source, tmp_path / "a.jsonl", in_flight=1), Doubler())
    run_job(config(source, tmp_path / "b.jsonl", in_flight=16), Backwards(16))
    run_job(config(source, tmp_path / "c.jsonl", in_flight=200), Backwards(200))
    assert len({(tmp_path / f"{name}.jsonl").read_bytes() for name in "abc"}) == 1


def test_no_more_units_than_asked_for_are_made_at_the_same_time(tmp_path: Path) -> None:
    inside = most = 0

    async def count(unit: Unit) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1

    run_job(config(numbers(tmp_path / "in.jsonl", 300), tmp_path / "out.jsonl", in_flight=7), Careful(count))
    assert most == 7


def test_a_slow_unit_lets_a_bounded_number_of_others_pass(tmp_path: Path) -> None:
    begun: list[int] = []
    all_that_may = asyncio.Event()
    while_it_was_held = 0

    async def hold(unit: Unit) -> None:
        nonlocal while_it_was_held
        begun.append(unit.first)
        if len(begun) == 64:  # units are read 64 at a time, and these are more than four times those in flight
            all_that_may.set()
        if unit.first == 0:
            await asyncio.wait_for(all_that_may.wait(), 60)
            for _ in range(1000):  # turns in which others would begin if nothing held them back
                await asyncio.sleep(0)
            while_it_was_held = len(begun)

    source = numbers(tmp_path / "in.jsonl", 5000)
    run_job(config(source, tmp_path / "out.jsonl", in_flight=4), Careful(hold))
    assert while_it_was_held == 64
    assert len(records(tmp_path / "out.jsonl")) == 5000


def test_rows_nobody_can_read_are_counted_and_stop_nothing(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    good = b'{"x":2}'
    file.write_bytes(b"\n".join([good, b"{", b"[1]", b'{"x":"\xff"}', b"x" * (2 << 20), b"\x00", b"", good]))
    report = run_job(config(str(file), tmp_path / "out.jsonl", max_row_mb=1), Doubler())
    assert (report.rows, report.made, report.dropped) == (7, 4, {"unreadable": 5})


def test_an_empty_input_makes_an_empty_output_without_asking_for_columns(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").touch()
    report = run_job(config(str(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"), Doubler())
    assert (tmp_path / "out.jsonl").read_bytes() == b""
    assert (report.rows, report.made) == (0, 0)
    assert report.notes == (f"{tmp_path / 'in.jsonl'} holds no rows; the output will hold none",)


def test_an_input_of_which_no_row_can_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"PK\x03\x04 not JSON\nnor this\n")
    with pytest.raises(ValueError, match=r"none of the first 2 rows of .* can be read \(line 1: malformed JSON"):
        run_job(config(str(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"), Doubler())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_limit_reads_no_further(tmp_path: Path) -> None:
    source = numbers(tmp_path / "in.jsonl", 500)
    maker = Doubler()
    report = run_job(config(source, tmp_path / "out.jsonl", limit=10), maker)
    assert (report.rows, report.made, max(maker.made)) == (10, 10, 9)


def test_what_the_maker_refuses_costs_no_work(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", [{"y": 1}])
    with pytest.raises(ValueError, match="there is no column 'x' among y"):
        run_job(config(source, tmp_path / "out.jsonl"), Doubler())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


# Groups


def grouped(path: Path) -> str:
    rows: list[Any] = [{"p": "a", "x": 1}, {"p": "a", "x": 2}, {"p": "b", "x": 3}]
    return jsonl(path, [*rows, {"p": None, "x": 100}, {"x": 100}, {"p": "c", "x": 4}])


def test_groups_are_made_as_a_whole_after_a_look_at_all(tmp_path: Path) -> None:
    maker = Sums()
    report = run_job(config(grouped(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"), maker, group_column="p")
    assert [tuple(row.values()) for row in records(tmp_path / "out.jsonl")] == [
        ("a", 0, [1, 2], 0.3),
        ("b", 2, [3], 0.3),
        ("c", 5, [4], 0.4),
    ]
    assert (report.rows, report.made, report.dropped) == (6, 3, {"no_group": 2})
    assert maker.prepared == 1


def test_without_a_group_column_each_row_is_a_unit_without_a_group(tmp_path: Path) -> None:
    run_job(config(grouped(tmp_path / "in.jsonl"), tmp_path / "out.jsonl", limit=3), Sums())
    assert [(row["group"], row["xs"]) for row in records(tmp_path / "out.jsonl")] == [("", [1]), ("", [2]), ("", [3])]


def test_a_group_that_goes_on_after_another_is_refused_before_any_work(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", [{"p": p, "x": 1} for p in "aab" * 2])
    with pytest.raises(ValueError, match="the group 'a' goes on at row 3 after other rows; sort the input by its col"):
        run_job(config(source, tmp_path / "out.jsonl"), Sums(), group_column="p")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_an_unknown_group_column_names_the_nearest(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", [{"prompt": "a", "x": 1}])
    with pytest.raises(ValueError, match=r"the group column 'promt': .* Did you mean 'prompt'\?"):
        run_job(config(source, tmp_path / "out.jsonl"), Sums(), group_column="promt")


def test_a_maker_of_single_rows_takes_no_group_column(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="doubler works on single rows; drop the group column 'x'"):
        run_job(config(numbers(tmp_path / "in.jsonl", 2), tmp_path / "out.jsonl"), Doubler(), group_column="x")


# Faults


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyError, asyncio.CancelledError])
def test_what_a_maker_raises_names_it_and_the_row_and_what_was_made_is_kept(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    source = numbers(tmp_path / "in.jsonl", 500)
    broken = True

    async def fail(unit: Unit) -> None:
        if unit.first == 301 and broken:
            raise kind("no more")

    with pytest.raises(JobError, match=r"doubler failed at row 301: .*what was made before is kept") as raised:
        run_job(config(source, tmp_path / "out.jsonl"), Careful(fail))
    assert kind.__name__ in str(raised.value)
    broken = False
    maker = Careful(fail)
    report = run_job(config(source, tmp_path / "out.jsonl"), maker)
    assert records(tmp_path / "out.jsonl") == DOUBLED
    assert (report.resumed_rows, report.rows, report.counts["seen"]) == (301, 500, 500)
    assert min(maker.made) == 301


def test_however_often_it_stops_the_output_and_the_counts_are_those_of_one_run(tmp_path: Path) -> None:
    chance = random.Random(8)
    lines: list[str] = []
    for group in range(120):
        row = f'{{"p":{group},"x":{chance.randrange(100)}}}'
        lines += chance.choices(["{", row], [1, 5], k=chance.randrange(5))
        lines += chance.choice([[], [], ['{"x":3}']])
    source, out = str(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"
    Path(source).write_text("\n".join(lines))

    class Stops(Sums):
        def __init__(self, at: int) -> None:
            super().__init__()
            self.at = at

        async def make(self, unit: Unit) -> Made:
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            if unit.first <= self.at < unit.first + len(unit.rows):
                raise JobError("rest")
            return await super().make(unit)

    whole = run_job(config(source, tmp_path / "whole.jsonl"), Sums(), group_column="p")
    assert sorted(whole.dropped) == ["no_group", "unreadable"]
    units = [row["first"] for row in records(tmp_path / "whole.jsonl")]
    for at in sorted(chance.sample(units, 12)):
        with pytest.raises(JobError, match="rest"):
            run_job(config(source, out, in_flight=chance.randint(1, 9)), Stops(at), group_column="p")
    report = run_job(config(source, out), Sums(), group_column="p")
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert (report.rows, report.made, report.dropped) == (whole.rows, whole.made, whole.dropped)
    assert report.resumed_rows > 0


def test_a_job_error_of_a_maker_keeps_its_words(tmp_path: Path) -> None:
    async def down(unit: Unit) -> None:
        raise JobError("the server is gone; start it")

    with pytest.raises(JobError, match=r"^the server is gone; start it; what was made before is kept"):
        run_job(config(numbers(tmp_path / "in.jsonl", 5), tmp_path / "out.jsonl"), Careful(down))


def test_an_error_in_prepare_names_the_maker(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", [{"p": "a"}])
    with pytest.raises(JobError, match="sums failed in `prepare`: KeyError: 'x'"):
        run_job(config(source, tmp_path / "out.jsonl"), Sums(), group_column="p")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_an_input_that_breaks_off_costs_nothing_that_was_read_before(tmp_path: Path) -> None:
    import gzip

    whole = gzip.compress(b"".join(b'{"x":%d}\n' % x for x in range(20_000)))
    (tmp_path / "in.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(JobError, match="damaged or cut off"):
        run_job(config(str(tmp_path / "in.jsonl.gz"), tmp_path / "out.jsonl"), Doubler())
    manifest = json.loads((partial_of(tmp_path / "out.jsonl") / "manifest.json").read_bytes())
    written = (partial_of(tmp_path / "out.jsonl") / "data.jsonl").read_bytes()
    assert manifest["tally"]["rows"] > 1000
    assert manifest["tally"]["made"] == written.count(b"\n") == len(written[: manifest["bytes"]].splitlines())


def test_an_input_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    source = numbers(tmp_path / "in.jsonl", 5)

    async def change(unit: Unit) -> None:
        numbers(tmp_path / "in.jsonl", 6)

    with pytest.raises(JobError, match="changed while it was read"):
        run_job(config(source, tmp_path / "out.jsonl"), Careful(change))


def test_another_call_does_not_go_on_with_the_work_of_this_one(tmp_path: Path) -> None:
    source = numbers(tmp_path / "in.jsonl", 500)

    async def fail(unit: Unit) -> None:
        if unit.first == 300:
            raise JobError("stop")

    with pytest.raises(JobError, match="stop"):
        run_job(config(source, tmp_path / "out.jsonl"), Careful(fail))
    other = Doubler()
    other.fingerprint = "doubler:2"
    with pytest.raises(ValueError, match="fingerprint was 'doubler:1' and is 'doubler:2'"):
        run_job(config(source, tmp_path / "out.jsonl"), other)
    report = run_job(config(source, tmp_path / "out.jsonl", restart=True), other)
    assert (report.rows, report.resumed_rows) == (500, 0)


# Closing


class Closes(Doubler):
    """Keeps in which loop it was made and closed."""

    def __init__(self, fail: bool = False) -> None:
        super().__init__()
        self.fail = fail
        self.loops: list[Any] = []
        self.closed = 0

    async def make(self, unit: Unit) -> Made:
        self.loops.append(asyncio.get_running_loop())
        if self.fail:
            raise ValueError("no")
        return await super().make(unit)

    async def aclose(self) -> None:
        self.closed += 1
        self.loops.append(asyncio.get_running_loop())


def test_a_maker_is_closed_once_in_the_loop_it_worked_in(tmp_path: Path) -> None:
    maker = Closes()
    run_job(config(numbers(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl"), maker)
    assert maker.closed == 1
    assert len({id(loop) for loop in maker.loops}) == 1
    failing = Closes(fail=True)
    with pytest.raises(JobError):
        run_job(config(str(tmp_path / "in.jsonl"), tmp_path / "other.jsonl"), failing)
    assert failing.closed == 1
    unused = Closes()
    with pytest.raises(ValueError, match="exists already"):
        run_job(config(str(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"), unused)
    assert unused.closed == 1


def test_a_maker_with_a_plain_close_is_closed_too(tmp_path: Path) -> None:
    class Plain(Doubler):
        closed = False

        def close(self) -> None:
            self.closed = True

    maker = Plain()
    run_job(config(numbers(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl"), maker)
    assert maker.closed


# Other ways in


def test_inside_a_running_loop(tmp_path: Path) -> None:
    async def cell() -> JobReport:
        return run_job(config(numbers(tmp_path / "in.jsonl", 50), tmp_path / "out.jsonl"), Doubler())

    assert asyncio.run(cell()).made == 50


def test_numbers_in_place_of_an_input(tmp_path: Path) -> None:
    class Squares(Doubler):
        async def make(self, unit: Unit) -> Made:
            index = unit.rows[0]["index"]
            if index == 7 and not self.made:
                self.made.append(7)
                raise JobError("rest")
            return Made(rows=({"x": index * index, "word": None},))

        def check(self, columns: Any, first: Any) -> tuple[str, ...]:
            assert (list(columns), first[0]) == (["index"], {"index": 0})
            return ()

    maker, options = Squares(), config("", tmp_path / "out.jsonl")
    with pytest.raises(JobError, match="rest"):
        run_job(options, maker, source=NumberSource(10))
    report = run_job(options, maker, source=NumberSource(10))
    assert [row["x"] for row in records(tmp_path / "out.jsonl")] == [x * x for x in range(10)]
    assert (report.rows, report.resumed_rows) == (10, 7)
    with pytest.raises(ValueError, match="there cannot be -1 rows"):
        NumberSource(-1)


def test_an_output_that_exists_stays(tmp_path: Path) -> None:
    source = numbers(tmp_path / "in.jsonl", 3)
    (tmp_path / "out.jsonl").write_text("precious")
    with pytest.raises(ValueError, match="exists already; choose another output, or replace it with --overwrite"):
        run_job(config(source, tmp_path / "out.jsonl"), Doubler())
    assert (tmp_path / "out.jsonl").read_text() == "precious"
    run_job(config(source, tmp_path / "out.jsonl", overwrite=True), Doubler())
    assert len(records(tmp_path / "out.jsonl")) == 4


def test_the_output_may_not_touch_the_input(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    source = numbers(tmp_path / "data" / "in.jsonl", 3)
    for given, output, problem in (
        (source, source, "is the input"),
        (str(tmp_path / "data"), f"{tmp_path}/data/out.jsonl", "lies inside it"),
        (source, f"{tmp_path}/data", "is a folder that holds other things"),
        (source, f"{tmp_path}/out.csv", r"must end in \.jsonl"),
    ):
        with pytest.raises(ValueError, match=problem):
            run_job(config(given, output, overwrite=True), Doubler())
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["in.jsonl"]


def test_notes_are_logged_where_nobody_watches(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "adjudge"):
        run_job(config(numbers(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl"), Doubler())
    assert "x is doubled" in caplog.messages
