"""`adjudge data`: the table of kinds, flags from any configuration, exit codes, and a real job end to end."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.io.jobs.toys import Doubler, Gives, numbers, records

from adjudge.cli import data, exits
from adjudge.cli.config_flags import field_helps, flags_of, options_of
from adjudge.cli.data import KINDS, layout_of
from adjudge.cli.kinds import Kind, imported
from adjudge.cli.main import main
from adjudge.io.errors import JobError, JobStopped
from adjudge.io.jobs.config import JobConfig
from adjudge.io.jobs.groups import NumberSource
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.report import JobProgress, JobReport

Adjudge = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class ToyConfig(JobConfig):
    """Double the even numbers of a file, which a sentence as long as this one says at greater length than it needs.

    Raises:
        ValueError: an option is out of its range.
    """

    times: int = 2
    """How often; one line of help
    and another."""

    words: tuple[str, ...] = ("a", "b")
    """Words that are
    written."""

    mode: Literal["fast", "slow"] = "fast"
    """How fast."""

    share: float | None = None
    """A share; left out, all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.times < 1:
            raise ValueError(f"--times is {self.times}; it must be 1 or more")


@dataclass(frozen=True, kw_only=True)
class NoInputConfig(JobConfig):
    """Make numbers."""

    input: str = ""
    """Nothing."""

    count: int = 3
    """How many."""


@dataclass(frozen=True, kw_only=True)
class CompareConfig:
    """Look at two files."""

    train: str
    """The first file."""

    others: tuple[str, ...]
    """More files."""

    strict: bool = False
    """Find more."""


@dataclass(frozen=True)
class Finding:
    """A report of its own kind."""

    found: bool

    def to_dict(self) -> dict[str, Any]:
        return {"found": self.found}

    def lines(self) -> list[str]:
        return ["looked at it", "\x1b[31mred"]


GIVEN: list[Any] = []


def run_toy(config: ToyConfig, *, progress: JobProgress | None = None) -> JobReport:
    GIVEN.append(config)
    return run_job(config, Doubler(), progress=progress)


def run_numbers(config: NoInputConfig, *, progress: JobProgress | None = None) -> JobReport:
    maker = Gives({"n": "whole"}, [{"n": index} for index in range(config.count)])
    return run_job(config, maker, source=NumberSource(config.count), progress=progress)


def compare(config: CompareConfig, *, progress: JobProgress | None = None) -> Finding:
    GIVEN.append(config)
    return Finding(found=config.strict)


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds of the tests, in this module."""
    GIVEN.clear()
    here = __name__
    monkeypatch.setitem(sys.modules, here, sys.modules[__name__])
    made = {
        "toy": Kind(f"{here}:ToyConfig", f"{here}:run_toy", "a toy"),
        "count": Kind(f"{here}:NoInputConfig", f"{here}:run_numbers", "numbers"),
        "compare": Kind(f"{here}:CompareConfig", f"{here}:compare", "compares"),
        "lost": Kind("adjudge_is_not_here.config:Config", "adjudge_is_not_here:run", "is not there"),
    }
    monkeypatch.setattr(data, "KINDS", {**KINDS, **made})


def test_a_job(adjudge: Adjudge, tmp_path: Path) -> None:
    source, out = numbers(tmp_path / "in.jsonl", 10), tmp_path / "out.jsonl"
    ran = adjudge("data", "toy", source, str(out))
    assert ran.code == exits.FINE
    assert [row["x"] for row in records(out)] == [0, 0, 4, 4, 8, 8, 12, 12, 16, 16]
    assert re.search(r"dropped +times\n.*\n *odd +5\n", ran.out)
    assert re.search(r"halves +2.5\n", ran.out)
    assert re.search(r"^10 rows of 10 in \d+\.\d s, 15 tokens; written to .*out\.jsonl$", ran.out, re.M)
    assert ran.err == "x is doubled\n"


def test_json_and_flags(adjudge: Adjudge, tmp_path: Path) -> None:
    source = numbers(tmp_path / "in.jsonl", 10)
    words = [
        "--times",
        "3",
        "--words",
        "x",
        "--words",
        "y",
        "--mode",
        "slow",
        "--share",
        "0.5",
        "--limit",
        "4",
        "--json",
    ]
    ran = adjudge("data", "toy", source, str(tmp_path / "out.jsonl"), *words)
    assert (ran.code, ran.json["rows"], ran.json["made"], ran.json["dropped"]) == (exits.FINE, 4, 4, {"odd": 2})
    (config,) = GIVEN
    assert (config.times, config.words, config.mode, config.share, config.limit) == (3, ("x", "y"), "slow", 0.5, 4)


def test_what_is_not_given_is_the_default(adjudge: Adjudge, tmp_path: Path) -> None:
    source, out = numbers(tmp_path / "in.jsonl", 2), str(tmp_path / "out.jsonl")
    adjudge("data", "toy", source, out)
    assert [ToyConfig(input=source, output=out)] == GIVEN


def test_a_kind_without_an_input(adjudge: Adjudge, tmp_path: Path) -> None:
    ran = adjudge("data", "count", str(tmp_path / "out.jsonl"), "--count", "4")
    assert ran.code == exits.FINE
    assert records(tmp_path / "out.jsonl") == [{"n": index} for index in range(4)]


def test_rows_nobody_could_read_and_work_that_failed_are_in_the_exit_code(
    adjudge: Adjudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.jsonl").write_text('{"x":1}\n{\n')
    assert adjudge("data", "toy", str(tmp_path / "in.jsonl"), str(tmp_path / "a.jsonl")).code == exits.FOUND

    run = run_numbers

    def failed(config: Any, progress: Any = None) -> JobReport:
        report = run(config, progress=progress)
        return dataclasses.replace(report, dropped={"engine_failed": 1, "odd": 2})

    monkeypatch.setattr(sys.modules[__name__], "run_numbers", failed)
    assert adjudge("data", "count", str(tmp_path / "b.jsonl")).code == exits.FOUND


def test_a_report_of_its_own_kind(adjudge: Adjudge) -> None:
    ran = adjudge("data", "compare", "a", "b", "c", "--strict")
    assert (ran.code, ran.out) == (exits.FOUND, "looked at it\n\\x1b[31mred\n")
    assert [CompareConfig(train="a", others=("b", "c"), strict=True)] == GIVEN
    ran = adjudge("data", "compare", "a", "b", "--json")
    assert (ran.code, ran.json) == (exits.FINE, {"found": False})


def test_a_mistake_is_one_paragraph(adjudge: Adjudge, tmp_path: Path) -> None:
    source, out = numbers(tmp_path / "in.jsonl", 2), str(tmp_path / "out.jsonl")
    for words, said in (
        (["toy", source, out, "--times", "0"], "--times is 0; it must be 1 or more"),
        (["toy", source, out, "--in-flight", "0"], "--in-flight is 0; it must be a whole number, at least 1"),
        (["toy", str(tmp_path / "none.jsonl"), out], "there is no file or folder"),
        (["pears", source, out], "unknown kind of adjudge data 'pears' (did you mean 'pairs'?)"),
        (["unit-tests", source, out], "did you mean 'unit_tests'?"),
        (["lost", source, out], "needs 'adjudge_is_not_here', which is not here; install what it needs with"),
    ):
        ran = adjudge("data", *words)
        assert (ran.code, ran.err.count("\n"), ran.out) == (exits.USER, 1, "")
        assert said in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (JobError("the server is gone; start it"), exits.USER, "adjudge: the server is gone; start it\n"),
        (JobStopped("stopped; go on"), exits.INTERRUPTED, "adjudge: stopped; go on\n"),
    ],
)
def test_how_a_job_ends_early(
    adjudge: Adjudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int, said: str
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(sys.modules[__name__], "run_toy", stop)
    ran = adjudge("data", "toy", numbers(tmp_path / "in.jsonl", 1), str(tmp_path / "out.jsonl"))
    assert (ran.code, ran.err) == (code, said)


def test_the_list_of_kinds(adjudge: Adjudge) -> None:
    ran = adjudge("data", "--help")
    assert ran.code == exits.FINE
    assert [line.split()[0] for line in ran.out.splitlines() if line.startswith("  ")][: len(KINDS)] == list(KINDS)
    assert max(map(len, ran.out.splitlines())) <= 80
    assert adjudge("data").code == exits.USER


def test_the_list_of_kinds_needs_no_kind_to_be_there() -> None:
    # A kind that cannot be imported must not hide the others, and looking at the list must not take a second.
    code = "import sys; from adjudge.cli.main import main; main(['data', '--help']); print(sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "tyro", "adjudge.data_pipelines"} & set(re.findall(r"'([\w.]+)'", ran.stdout))


def help_of(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    capsys.readouterr()
    assert main(["data", *words, "--help"]) == exits.FINE
    return capsys.readouterr().out


def test_the_help_of_a_kind(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    told = help_of(capsys, monkeypatch, "toy")
    assert told.startswith("Double the even numbers of a file, which a sentence as long as this one says at\ngreater")
    assert "Raises" not in told
    assert "usage: adjudge data toy [-h] [OPTIONS] IN OUT" in told
    assert re.search(r"--times INT +How often; one line of help and another. \(default: 2\)", told)
    assert re.search(r"--words STR +Words that are written. \(repeatable, default: a, b\)", told)
    assert re.search(r"--share FLOAT +A share; left out, all. ", told)
    assert told.index("--times") < told.index("--in-flight"), "a kind's own flags come first"
    assert max(map(len, told.splitlines())) <= 80
    told = help_of(capsys, monkeypatch, "count")
    assert "[OPTIONS] OUT" in told
    assert "--subset" not in told


@pytest.mark.parametrize("name", list(KINDS))
def test_every_kind_has_help_for_every_flag(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (config,) = KINDS[name].configs()
    assert callable(imported(KINDS[name].call))
    without = [item.name for item in dataclasses.fields(config) if not field_helps(config).get(item.name)]
    assert without == []
    told = help_of(capsys, monkeypatch, name)
    assert max(map(len, told.splitlines())) <= 80
    for item in dataclasses.fields(flags_of((config,), layout_of((config,)))):
        if item.default is not dataclasses.MISSING and item.name != "as_json":
            negated = "no-" if item.default is True else ""
            assert f"--{negated}{item.name.replace('_', '-')}" in told


def test_no_option_is_lost_between_the_flags_and_the_configuration() -> None:
    given = flags_of((ToyConfig,), layout_of((ToyConfig,)))(input="a", output="b")
    assert options_of(ToyConfig, given).keys() == {item.name for item in dataclasses.fields(ToyConfig)} - {"words"}
    assert ToyConfig(**options_of(ToyConfig, given)) == ToyConfig(input="a", output="b")
