"""`adjudge eval`: the table of kinds, flags from a benchmark and its run, exit codes, and planted cases end to end."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.evals.benchmarks.toys import HOME, Numbers, numbers_of, rows, run, write

from adjudge.cli import eval as eval_command
from adjudge.cli import exits
from adjudge.cli.config_flags import field_helps, flags_of, options_of
from adjudge.cli.eval import KINDS, benchmark_kind, layout_of
from adjudge.cli.kinds import Kind
from adjudge.cli.main import main
from adjudge.evals.benchmarks.benchmark import BenchmarkConfig
from adjudge.evals.benchmarks.table import PREFERENCES
from adjudge.evals.reports.config import EvalConfig
from adjudge.evals.reports.result import Check, Comparison, Counts, Measure, Result
from adjudge.io.errors import JobStopped
from adjudge.statistics.intervals import Interval

Adjudge = Callable[..., Any]
READER = f"{HOME}:Reader"


@dataclass(frozen=True, kw_only=True)
class RulesConfig(EvalConfig):
    """Look at rules.

    Raises:
        ValueError: an option is out of its range.
    """

    rule: tuple[str, ...] = ("all",)
    """Which rules."""

    scorer: str
    """Whom to look at."""


def run_rules(config: RulesConfig, *, progress: Any = None) -> Result:
    progress.note(f"looking at {', '.join(config.rule)}")
    if config.scorer == "stop":
        raise JobStopped("stopped; go on")
    return Result(
        kind="rules",
        title="Rules \x1b[31m",
        scorer={"name": config.scorer},
        checks=(
            Check(name="holds", passed=True, detail="0 of 10"),
            Check(name="breaks", passed=config.scorer != "bad", detail="3 of 10 [red]"),
            Check(name="skipped", passed=None, detail="no number in any answer"),
        ),
        comparisons=(
            Comparison(
                name="credit", test="McNemar, exact", first=0.5, second=0.25,
                difference=Interval(value=0.25, low=-0.1, high=0.6, n=8), p=0.3, p_adjusted=None, other="it",
            ),
        ),
        measures=(
            Measure(name="rate", interval=Interval(value=None), baselines={"random": 0.5}),
            Measure(name="huge", part="a", interval=Interval(value=12345.678, n=3)),
        ),
        counts=Counts(cases=2, samples=4, scored=1, abstained=2, failed=0, cut_off=1, tied=1, unreadable=3),
        notes=("a note\nof two lines",),
    )  # fmt: skip


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds of the tests, in this module."""
    here = __name__
    monkeypatch.setitem(sys.modules, here, sys.modules[__name__])
    made: Mapping[str, Kind] = {
        "numbers": benchmark_kind(f"{HOME}:Numbers", PREFERENCES, "numbers"),
        "rules": Kind(f"{here}:RulesConfig", f"{here}:run_rules", "rules", PREFERENCES),
        "lost": Kind("adjudge_is_not_here.config:Config", "adjudge_is_not_here:run", "is not there", PREFERENCES),
    }
    monkeypatch.setattr(eval_command, "KINDS", {**KINDS, **made})


@pytest.fixture
def source(tmp_path: Path) -> str:
    return write(tmp_path / "pairs.jsonl", rows())


def test_a_benchmark(adjudge: Adjudge, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    ran = adjudge("eval", "numbers", source, "--scorer", READER, "--resamples", "50")
    result = run(source, scorer=READER)
    whole = result.measures[0].interval
    assert ran.code == exits.FINE
    assert ran.out.startswith(f"Numbers: reader (reader:1), on {source}\n")
    shown = f"{whole.value:.3f} [{whole.low:.3f}, {whole.high:.3f}]"
    assert re.search(rf"accuracy \* +- +{re.escape(shown)} +40 +\d\.\d+ ", ran.out)
    assert re.search(r"measure +part +value +n +longer +shorter +more_steps +fewer_steps +first +last +random", ran.out)
    assert "* as the benchmark's authors define it" in ran.out
    assert "\n40 cases, 80 samples, 80 scored\n" in ran.out
    assert re.search(r"^\d+\.\d s, 320 tokens$", ran.out, re.M)


def test_a_narrow_terminal_shows_the_best_trivial_scorer(
    adjudge: Adjudge, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = adjudge("eval", "numbers", source, "--scorer", READER, "--resamples", "50")
    found = run(source, scorer=READER).measures[0].baselines
    best = max(value for value in found.values() if value is not None)
    assert re.search(r"measure +part +value +n +best trivial scorer\n", ran.out)
    assert re.search(rf"accuracy \* +- +\d\.\d+ \[.*\] +40 +{best:.3f} \w+ *\n", ran.out)


def test_a_narrow_terminal_shows_what_trivial_scorers_get_where_no_end_is_good(
    adjudge: Adjudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"instruction": f"i{n}", "output_1": "a", "output_2": "b" * (n + 2), "preference": 1 + n / 4} for n in range(5)
    ]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "90")
    ran = adjudge("eval", "alpaca_eval", str(tmp_path / "in.jsonl"), "--scorer", "stored")
    assert re.search(r"measure +part +value +n +trivial scorers *\n", ran.out)
    assert re.search(r"win rate \* +- +0\.500 .* 0\.000 to 1\.000", ran.out)
    assert "trivial scorers do better" not in ran.out


def test_json_is_the_result(adjudge: Adjudge, source: str) -> None:
    ran = adjudge("eval", "numbers", source, "--scorer", READER, "--resamples", "50", "--sections", "--json")
    expected = run(source, Numbers(sections=True), scorer=READER).to_dict()
    assert ran.code == exits.FINE
    found = ran.json
    for name in ("seconds",):
        del found[name], expected[name]
    assert found == json.loads(json.dumps(expected))
    assert found["options"]["sections"] is True


def test_a_report_is_written_and_the_same_call_goes_on(adjudge: Adjudge, source: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("eval", "numbers", source, "--scorer", READER, "--resamples", "50", "--output", str(out))
    first = adjudge(*words)
    assert first.code == exits.FINE
    assert f"report: {out}" in first.out
    assert {"result.json", "report.html", "scores.sqlite"} <= {path.name for path in out.iterdir()}
    stored = json.loads((out / "result.json").read_text())
    assert stored["measures"][0]["value"] == numbers_of(run(source, scorer=READER))["accuracy", ""]
    assert adjudge(*words).code == exits.FINE
    ran = adjudge(*words[:-1], source)
    assert (ran.code, "is a file; name a folder for the report" in ran.err) == (exits.USER, True)


def test_samples_out_scores_in(adjudge: Adjudge, source: str, tmp_path: Path) -> None:
    samples, scores = str(tmp_path / "samples.jsonl"), str(tmp_path / "scores.jsonl")
    ran = adjudge("eval", "numbers", source, "--samples", samples)
    assert ran.code == exits.FINE
    assert "note: 80 samples written to" in ran.out
    assert adjudge("label", samples, scores, "--scorer", READER).code == exits.FINE
    ran = adjudge("eval", "numbers", source, "--scores", scores, "--against", f"{HOME}:Opposite", "--json")
    assert ran.json["measures"][0]["value"] == numbers_of(run(source, scorer=READER))["accuracy", ""]
    assert ran.json["comparisons"][0]["other"] == "opposite"


def test_a_sample_that_could_not_be_judged_is_in_the_exit_code(adjudge: Adjudge, tmp_path: Path) -> None:
    made = [*rows(3), {"prompt": "p", "responses": ["fail", "1"], "better": 0}]
    ran = adjudge("eval", "numbers", write(tmp_path / "in.jsonl", made), "--scorer", READER)
    assert ran.code == exits.FOUND
    assert "4 cases, 8 samples, 7 scored, 1 failed" in ran.out
    assert re.search(r"engine_error +1\n", ran.out)


def planted(tmp_path: Path, right: str, wrong: str, reference: Any) -> str:
    lines = [
        {"prompt": f"p{index}", "responses": [right, wrong][:: 1 if index % 3 else -1], "better": int(index % 3 == 0),
         "reference": reference}
        for index in range(9)
    ]  # fmt: skip
    return write(tmp_path / "planted.jsonl", lines)


@pytest.mark.parametrize(
    ("scorer", "right", "wrong"),
    [
        ("exact", "Paris", "Rome"),
        ("math", "So the answer is \\boxed{0.5}.", "So the answer is \\boxed{0.6}."),
        ("{length: {unit: characters, max_length: 40, buffer: 10}}", "brief", "word after word " * 20),
    ],
)
def test_planted_answers_are_told_apart(adjudge: Adjudge, tmp_path: Path, scorer: str, right: str, wrong: str) -> None:
    source = planted(tmp_path, right, wrong, "Paris" if scorer == "exact" else "\\frac{1}{2}")
    ran = adjudge("eval", "numbers", source, "--scorer", scorer, "--resamples", "0", "--json")
    assert (ran.code, ran.json["measures"][0]["value"]) == (exits.FINE, 1.0)
    assert ran.json["measures"][0]["baselines"]["random"] != 1.0


def test_a_kind_of_its_own(adjudge: Adjudge, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    ran = adjudge("eval", "rules", source, "--scorer", "good")
    assert ran.code == exits.FINE
    assert ran.err == "looking at all\n"
    assert ran.out.startswith("Rules \\x1b[31m: good\n")
    assert re.search(r"rate +- +- +0 +0\.500", ran.out)
    assert re.search(r"huge +a +12345\.7 +3 +-", ran.out)
    assert re.search(r"holds +holds +0 of 10", ran.out)
    assert re.search(r"skipped +not tried +no number in any answer", ran.out)
    assert re.search(r"credit +- +0\.500 +0\.250 +0\.250 \[-0\.100, 0\.600\] +0\.3 +- +McNemar, exact", ran.out)
    assert "2 cases, 4 samples, 1 scored, 2 abstained, 1 cut off, 1 cases tied, 3 rows unreadable" in ran.out
    assert "note: a note\\nof two lines\n" in ran.out
    ran = adjudge("eval", "rules", source, "--scorer", "bad", "--rule", "one", "--rule", "two")
    assert (ran.code, ran.err) == (exits.FOUND, "looking at one, two\n")
    assert re.search(r"breaks +BROKEN +3 of 10 \[red\]", ran.out)


def test_a_mistake_is_one_paragraph(adjudge: Adjudge, source: str) -> None:
    for words, said in (
        (["numbers", source], "neither is given; give --scorer SPEC"),
        (["numbers", source, "--scorer", "no_such"], "no_such"),
        (["numbers", "--scorer", READER], "Numbers has no place on the hub"),
        (["numbers", "none.jsonl", "--scorer", READER], "there is no file or folder none.jsonl"),
        (["rules", "", "--scorer", "x"], "there is no input"),
        (["number", source], "unknown kind of adjudge eval 'number' (did you mean 'numbers'?)"),
        (["best-of-n", source], "did you mean 'best_of_n'?"),
        (["lost", source], "needs 'adjudge_is_not_here', which is not here; install what it needs with"),
    ):
        ran = adjudge("eval", *words)
        assert (ran.code, ran.err.count("\n"), ran.out) == (exits.USER, 1, "")
        assert said in ran.err
    assert adjudge("eval", "rules", source, "--scorer", "stop").code == exits.INTERRUPTED


def test_the_list_of_kinds(adjudge: Adjudge) -> None:
    ran = adjudge("eval", "--help")
    assert ran.code == exits.FINE
    listed = [line.split()[0] for line in ran.out.splitlines() if re.match(r"  \w+  ", line)]
    assert {*listed} >= set(KINDS)
    assert len(listed) == len(KINDS) + 3, "no kind is listed twice, and none has a group of its own"
    assert max(map(len, ran.out.splitlines())) <= 80
    assert adjudge("eval").code == exits.USER


def test_the_list_of_kinds_needs_no_kind_to_be_there() -> None:
    code = "import sys; from adjudge.cli.main import main; main(['eval', '--help']); print(sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(re.findall(r"'([\w.]+)'", ran.stdout))
    assert not {"numpy", "tyro", "sqlite3", "adjudge.data_pipelines", "adjudge.protocol"} & loaded


def help_of(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    capsys.readouterr()
    assert main(["eval", *words, "--help"]) == exits.FINE
    return capsys.readouterr().out


def test_the_help_of_a_benchmark(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    told = help_of(capsys, monkeypatch, "numbers")
    assert told.startswith("Which of two numbers is larger.\n\nIts rows hold prompt, responses, better")
    assert "Source: made for the tests." in told
    assert "usage: adjudge eval numbers [-h] [OPTIONS] [INPUT]" in told
    assert told.index("--sections") < told.index("--scorer") < told.index("--resamples"), "its own flags come first"


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_help_for_every_flag(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = KINDS[name].configs()
    for config in configs:
        assert [item.name for item in dataclasses.fields(config) if not field_helps(config).get(item.name)] == []
    names = [item.name for config in configs for item in dataclasses.fields(config)]
    assert len(names) == len(set(names)), "a benchmark has an option that every benchmark has"
    told = help_of(capsys, monkeypatch, name)
    assert max(map(len, told.splitlines())) <= 80
    for item in dataclasses.fields(flags_of(configs, layout_of(configs))):
        if item.name not in ("as_json", "input"):
            negated = "no-" if item.default is True else ""
            assert f"--{negated}{item.name.replace('_', '-')}" in told


def test_no_option_is_lost_between_the_flags_and_the_configurations() -> None:
    configs = (Numbers, BenchmarkConfig)
    given = flags_of(configs, layout_of(configs))(input="a", scorer="b", sections=True)
    assert BenchmarkConfig(**options_of(BenchmarkConfig, given)) == BenchmarkConfig(input="a", scorer="b")
    assert Numbers(**options_of(Numbers, given)) == Numbers(sections=True)


def test_a_light_install_is_told_what_is_missing_before_any_scoring(
    adjudge: Adjudge, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "numpy" else found(name, *more)
    )
    ran = adjudge("eval", "rules", source, "--scorer", "good")
    assert ran.code == exits.USER
    assert "pip install 'adjudge[data]'" in ran.err
    assert "looking" not in ran.err


def test_of_several_raters_each_comparison_names_its_own(
    adjudge: Adjudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    verdicts = [f"{index},{index % 2},{index % 3 % 2},{index // 2 % 2},{index % 2}" for index in range(24)]
    (tmp_path / "in.csv").write_text("\n".join(["id,judge,human 1,third,gold", *verdicts, ""]))
    raters = [part for name in ("judge", "human 1", "third") for part in ("--column", name)]
    ran = adjudge("eval", "agreement", str(tmp_path / "in.csv"), *raters, "--gold-column", "gold")
    rows = [line for line in ran.out.partition("difference in")[2].splitlines() if line.startswith("accuracy")]
    assert [re.split(r"\s{2,}", row)[1] for row in rows] == ["judge", "human 1", "third"]
    assert "against judge" not in ran.out
