"""What is written: whole files, the same bytes each time, and drawings equal to numbers worked out by hand."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from tests.evals.reports.conftest import CURVES, PROBES, RELIABILITY, case, full

from adjudge.evals.reports import page as page_module
from adjudge.evals.reports.measures import bars_table, checks_said
from adjudge.evals.reports.page import grid_table, page, write_report
from adjudge.evals.reports.result import Counts, Measure, Result
from adjudge.pages.curves import curves_drawing
from adjudge.pages.document import BASE
from adjudge.pages.figures import Bar, Bars, Curves, Series
from adjudge.pages.markup import plain
from adjudge.pages.scale import best_trivial, chance, number, percent, plural, trivial
from adjudge.statistics.intervals import Interval


def test_the_same_result_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (write_report(full(), tmp_path / name) for name in ("one", "two/three"))
    assert first == tmp_path / "one" / "report.html"
    assert first.read_bytes() == second.read_bytes()
    assert sorted(file.name for file in first.parent.iterdir()) == ["report.html", "result.json"]
    assert first.with_name("result.json").read_bytes() == second.with_name("result.json").read_bytes()


def test_several_results_are_one_file_each(tmp_path: Path) -> None:
    results = [full(), full(title="Other")]
    write_report(results, tmp_path)
    data = json.loads((tmp_path / "result.json").read_text())
    assert data["schema"] == 1
    assert [one["title"] for one in data["results"]] == ["JudgeBench", "Other"]


def test_folders_that_cannot_be_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    with pytest.raises(ValueError, match="file' is a file; a report needs a folder"):
        write_report(full(), tmp_path / "file")
    with pytest.raises(ValueError, match="give at least one"):
        write_report([], tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_report_that_breaks_off_leaves_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = write_report(full(), tmp_path).read_bytes()

    def broken(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(OSError, match="No space"):
        write_report(full(title="Other"), tmp_path)
    assert (tmp_path / "report.html").read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["report.html", "result.json"]


def test_an_empty_result_is_a_page(tmp_path: Path) -> None:
    text = write_report(Result(kind="labels", title="Nothing"), tmp_path).read_text()
    assert "<h1>Nothing</h1>" in text
    assert "<table class" not in text


def test_numbers_that_are_not_finite_are_told_and_nothing_is_lost(tmp_path: Path) -> None:
    odd = (Measure(name="accuracy", interval=Interval(value=math.nan, low=0.1, high=math.inf)),)
    text = write_report(full(measures=odd), tmp_path).read_text()
    data = json.loads((tmp_path / "result.json").read_text(), parse_constant=pytest.fail)
    said = "Not finite, and shown as unknown: measures[0].value is nan, measures[0].high is inf."
    assert data["measures"][0]["value"] is None
    assert data["notes"] == ["Pairs are few.", said]
    assert said in text


def test_whatever_options_hold_becomes_plain_data() -> None:
    lost: list[str] = []
    odd = {
        "path": Path("a"),
        "count": np.int64(3),
        "share": np.float32(0.5),
        "many": {"b", "a"},
        1: (True, None, np.inf),
    }
    found = plain(odd, lost)
    assert found == {"path": "a", "count": 3, "share": 0.5, "many": ["a", "b"], "1": [True, None, None]}
    assert lost == ["1[2] is inf"]
    json.dumps(found)


def test_the_policy_names_every_script_and_style_of_the_page() -> None:
    text = page([full()])
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    rules = policy[1].replace("&#x27;", "'")
    inline = re.findall(r'<(?:style|script type="module")>(.*?)</(?:style|script)>', text, re.DOTALL)
    assert len(inline) == 4
    for content in inline:
        assert f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'" in rules
    assert rules.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in rules
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/", "")


@pytest.mark.parametrize(
    "file", [*page_module._STATIC.iterdir(), *BASE.parent.glob("*.[cj]s*")], ids=lambda file: file.name
)
def test_static_files_can_stand_inline(file: Path) -> None:
    text = file.read_text()
    assert "</" not in text
    assert "<!--" not in text
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(", text)


def numbers(attribute: str, markup: str, kind: str) -> list[float]:
    """An attribute of all elements of a class, per cent without their sign."""
    tags = re.findall(rf'<[^>]*class="{kind}"[^>]*>', markup)
    return [float(found[1]) for tag in tags if (found := re.search(rf' {attribute}="([-\d.]+)%?"', tag))]


def test_bars_begin_at_zero_and_end_at_their_number() -> None:
    bars = Bars(
        title="t",
        unit="rank correlation",
        bars=(
            Bar(name="up", interval=Interval(value=0.5, low=0.25, high=0.75, n=4), baselines={"a": 0.0, "b": None}),
            Bar(name="down", interval=Interval(value=-0.5), baselines={}),
            Bar(name="unknown", interval=Interval(value=None), baselines={"a": -1.0}),
        ),
    )
    markup = bars_table(bars, better="none")
    assert numbers("x", markup, "length") == [50, 25]
    assert numbers("width", markup, "length") == [25, 25]
    assert numbers("x1", markup, "whisker") == [62.5, 62.5, 87.5]
    assert numbers("x1", markup, "mark") == [50, 0]
    assert markup.count('<svg class="bar"') == 3


def test_the_best_trivial_scorer_is_a_diamond() -> None:
    bar = Bar(name="one", interval=Interval(value=0.9), baselines={"longer": 0.6, "first": 0.3, "none": None})
    for better, best in (("high", "longer 0.600"), ("low", "first 0.300"), ("none", "0.300 to 0.600")):
        markup = bars_table(Bars(title="t", unit="", bars=(bar,)), better=better)
        assert f">{best}</td>" in markup
        assert markup.count('class="best"') == (better != "none")


def test_a_path_goes_through_its_points_and_leaves_gaps() -> None:
    markup = curves_drawing(CURVES)
    paths = re.findall(r'<path class="(line|band) kind\d" d="([^"]*)"', markup)
    assert paths == [
        ("band", "M0.0 1000.0L500.0 750.0L1000.0 250.0L1000.0 0.0L500.0 250.0L0.0 750.0Z"),
        ("line", "M0.0 1000.0L500.0 500.0L1000.0 0.0"),
        ("line", "M0.0 750.0M1000.0 500.0"),
    ]
    assert markup.count('class="dot') == 3 + 2 + 2  # of the lines, and of the legend


def test_points_have_their_bounds_and_the_diagonal_its_ends() -> None:
    markup = curves_drawing(RELIABILITY)
    assert numbers("x1", markup, "reach kind0") == [25, 75]
    assert numbers("y1", markup, "reach kind0") == [75, 75]
    assert numbers("y2", markup, "reach kind0") == [25, 0]
    diagonal = re.search(r'<path class="diagonal" d="M([\d. ]+)L.*?L([\d. ]+)"', markup)
    assert diagonal
    assert diagonal.groups() == ("0.0 1000.0", "1000.0 0.0")


def test_places_that_have_no_logarithm_are_told() -> None:
    series = Series(name="s", x=(-1.0, 0.0, 1.0, 2.0), y=(1.0, 2.0, 3.0, 4.0))
    markup = curves_drawing(Curves(title="t", x_axis="n", y_axis="y", series=(series,), log_x=True))
    assert "Not drawn: 2 places at or below 0, or not finite." in markup
    assert '<path class="line kind0" d="M0.0 ' in markup


def test_a_curve_without_numbers_is_a_drawing() -> None:
    for series in ((), (Series(name="s", x=(), y=()),), (Series(name="s", x=(1.0,), y=(None,)),)):
        for log in (False, True):
            markup = curves_drawing(Curves(title="t", x_axis="x", y_axis="y", series=series, log_x=log, diagonal=True))
            assert "nan" not in markup


def test_giant_curves_stay_small() -> None:
    count = 100_000
    x = tuple(float(at) for at in range(count))
    points = Series(name="p", x=x, y=x, points=True)
    markup = curves_drawing(Curves(title="t", x_axis="x", y_axis="y", series=(points,)))
    assert markup.count('class="dot') == 2_001
    assert "Of 100,000 points of p, 2,000 are drawn." in markup
    assert "stand in the file beside" in markup


def test_shades_follow_the_number_and_which_end_is_good() -> None:
    def shades(better: str) -> list[str]:
        return re.findall(r'<td class="(\w+)"', grid_table(dataclasses.replace(PROBES, better=better)))

    assert shades("low") == ["shade10", "shade0", "shade5", "unknown"]
    assert shades("high") == ["shade0", "shade10", "shade5", "unknown"]


def test_a_measure_that_is_no_better_than_a_trivial_one_says_so() -> None:
    def said(better: str, trivial: float) -> list[str]:
        interval = Interval(value=0.5, low=0.4, high=0.6, n=9)
        measure = Measure(name="m", interval=interval, baselines={"longer": trivial}, better=better, published=True)
        return re.findall("That is better|do not tell it apart", page([full(measures=(measure,))]))

    near, worse = ["do not tell it apart"], ["That is better"]
    assert [said("high", value) for value in (0.39, 0.4, 0.6, 0.61)] == [[], near, near, worse]
    assert [said("low", value) for value in (0.39, 0.4, 0.6, 0.61)] == [worse, near, near, []]
    assert not said("none", 0.5)


def test_measures_of_parts_are_put_into_as_few_tables_as_can_be() -> None:
    def titles(names: str, parts: str) -> list[str]:
        some = Interval(value=0.5)
        measures = tuple(Measure(name=name, part=part, interval=some) for name in names for part in parts)
        return re.findall("<h3>(.*?)</h3>", page([full(measures=measures)]))

    assert titles("ab", "xyz") == ["a by part", "b by part"]
    assert titles("abc", "xy") == ["x, higher is better", "y, higher is better"]


def test_samples_that_are_in_no_count_are_shown() -> None:
    markup = page([full(counts=Counts(cases=2, samples=10, scored=6))])
    assert 'aria-label="Samples: 6 scored, 0 abstained, 0 failed, 4 not counted"' in markup


def test_numbers_in_words() -> None:
    assert [number(value) for value in (None, 0.0, 0.12345, -0.5, 1.0, 12.5, 1234.5, 1e-9, 3e9, math.inf)] == [
        *("–", "0.000", "0.123", "−0.500", "1.000", "12.500", "1,234.5", "1.0e−09", "3.0e+09", "–")
    ]
    assert number(1234, whole=True) == "1,234"
    assert [chance(value) for value in (None, 0.0, 0.0009, 0.0123, 1.0)] == [
        "–",
        "< 0.001",
        "< 0.001",
        "0.012",
        "1.000",
    ]
    assert [percent(value).replace("\xa0", " ") for value in (0, 0.004, 0.5, 0.997, 1)] == [
        *("0 %", "0.4 %", "50 %", "99.7 %", "100 %")
    ]
    assert [plural(1, "case"), plural(1_000, "case")] == ["1 case", "1,000 cases"]
    assert trivial({"random": 0.5}, "none") == "random 0.500"
    assert best_trivial({"a": None, "b": math.nan}, "high") is None
    assert checks_said(full().checks) == "1 broken, 1 not tried, 1 holds"


def test_ten_thousand_cases_are_data_and_no_markup() -> None:
    few, many = (page([full(worst=tuple(case(at) for at in range(count)))]) for count in (1, 2_000))
    assert few.count("<tr") == many.count("<tr")
