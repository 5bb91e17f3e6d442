"""The page in a real browser: it shows everything, is sorted, filtered and read, and takes no text for markup."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from tests.evals.reports.conftest import CONTRAST, POSITIONS, Page, case, full

from adjudge.evals.reports.result import Check, Comparison, Counts, Measure, ReadResponse, Result
from adjudge.pages.figures import Bars, Curves, Grid, Series
from adjudge.pages.markup import visible
from adjudge.statistics.intervals import Interval

Read: TypeAlias = Callable[[Result | Sequence[Result]], Page]
HOSTILE = (
    "</script><script>alert(1)</script><!--<script>]]><img src=x onerror=alert(2)><svg onload=alert(3)></svg>&lt;b&gt;"
    "\"' onmouseover='alert(4)' {{7*7}} %s {0} \N{RIGHT-TO-LEFT OVERRIDE}\x00\x00\x1b[31m\ud800\N{ZERO WIDTH SPACE}"
    "\U000e0041</pre></td></table><iframe src='//elsewhere.test/'>\u2028"
)


def test_everything_is_shown(read: Read) -> None:
    page = read(full())
    assert page.texts("h1") == ["JudgeBench"]
    assert page.texts(".about dd") == ["a model", "model:0123", "pairs.jsonl", "sha256:beef", "2026-01-02"]
    sections = "Result Measures Counts Checks Comparisons Figures Cases How"
    assert [title.split()[0] for title in page.texts("h2")] == sections.split()
    assert page.texts(".card .large") == ["0.750", "−0.250"]
    assert page.texts(".card .aside") == [
        "0.500 to 0.900 (95 % bounds) · n = 80",
        "no bounds · n = 80",
    ]
    assert page.texts(".card .near") == ["Best trivial scorer: longer, 0.600. The bounds do not tell it apart."]
    assert page.texts(".measures tbody .value") == ["0.200", "1.000", "–", "0.125"]
    assert page.texts(".counts .legend li") == ["scored 120 (75 %)", "abstained 30 (19 %)", "failed 10 (6 %)"]
    assert page.texts(".counts .beside b") == ["80 cases", "3 tied", "5 cut off", "1 unreadable row"]
    assert page.texts(".reasons tbody tr") == ["judge_declined30", "engine_timeout10"]
    assert page.texts(".checks .state") == ["✗ broken", "– not tried", "✓ holds"]
    assert page.texts(".comparisons tbody tr:first-child td.number") == [
        *("0.750", "0.700", "+0.050", "0.010 to 0.090", "80", "< 0.001", "< 0.001"),
    ]
    assert page.texts("figcaption") == ["Gold and verdict", "Best of n", "Reliability", "Probes", "By position"]
    assert page.texts(".grid td") == ["40", "8", "0", "10", "20", "–", "0.000", "1.000", "0.500", "–"]
    assert page.texts(".notes li") == ["Pairs are few."]
    assert "1,234" in page.texts(".facts td")
    assert page.quiet()


def test_drawings_have_the_sizes_of_their_numbers(read: Read) -> None:
    page = read(full())
    boxes = "return [...document.querySelectorAll(arguments[0])].map((one) => one.getBoundingClientRect().toJSON())"
    plots = page.browser.execute_script(boxes, ".measures svg.bar:has(.length)")
    lengths = page.browser.execute_script(boxes, ".measures svg.bar .length")
    shares = [one["width"] / plot["width"] for one, plot in zip(lengths, plots, strict=True)]
    assert shares == pytest.approx([0.2, 1.0, 0.125], abs=0.01)
    stack = page.browser.execute_script(boxes, ".stack")[0]
    parts = page.browser.execute_script(boxes, ".stack rect")
    assert [one["width"] / stack["width"] for one in parts] == pytest.approx([0.75, 0.1875, 0.0625], abs=0.01)
    assert [(one["x"] - stack["x"]) / stack["width"] for one in parts] == pytest.approx([0, 0.75, 0.9375], abs=0.01)
    drawing = page.browser.execute_script(boxes, "svg.curves")[1]
    dots = page.browser.execute_script(boxes, "figure:nth-child(3) .dot")[1:]  # the first one is in the legend
    middles = [
        ((dot["x"] + dot["width"] / 2 - drawing["x"]) / drawing["width"],
         (drawing["bottom"] - dot["y"] - dot["height"] / 2) / drawing["height"])
        for dot in dots
    ]  # fmt: skip
    assert middles == [pytest.approx((0.25, 0.5), abs=0.01), pytest.approx((0.75, 0.5), abs=0.01)]


def test_cases_are_sorted_by_any_column(read: Read) -> None:
    cases = [case(number) for number in range(8)]
    cases.append(case(8, id="case-10", responses=(ReadResponse(text="", said="failed (x)", value=None),)))
    page = read(full(worst=tuple(cases)))

    def shown() -> list[str]:
        return page.texts(".opener")

    def click(column: str) -> str | None:
        page.one(f"[data-column={column}] button").click()
        return page.one(f"[data-column={column}]").get_attribute("aria-sort")

    assert click("id") == "ascending"
    assert shown() == [*(f"case-{number}" for number in range(8)), "case-10"]
    assert click("id") == "descending"
    assert shown()[:2] == ["case-10", "case-7"]
    assert click("weight") == "descending"
    assert shown()[-1] == "case-10"
    assert click("weight") == "ascending"
    assert shown()[:2] == ["case-10", "case-7"]
    assert click("scores") == "descending"
    assert (shown()[0], shown()[-1]) == ("case-7", "case-10")  # what has no score is last either way
    assert click("scores") == "ascending"
    assert (shown()[0], shown()[-1]) == ("case-0", "case-10")
    click("part")
    assert page.texts(".reading tbody td:nth-child(2)") == ["chat"] * 3 + ["code"] * 3 + ["math"] * 3
    assert len(page.all(".reading [aria-sort]")) == 1


def test_cases_are_filtered_by_text_part_and_verdict(read: Read) -> None:
    page = read(full(worst=(*map(case, range(8)), case(9, part="", prompt="Odd (one) a+b\\ [x]"))))
    search, told = page.one(".search"), ".told"
    assert page.texts(told) == ["9 of 9 shown"]
    page.one("select.part").send_keys("math")
    page.until(lambda: page.texts(".opener") == ["case-0", "case-3", "case-6"])
    page.one("select.verdict").send_keys("tied")
    page.until(lambda: page.texts(".opener") == ["case-3"])
    search.send_keys("good 6")
    page.until(lambda: page.texts(told) == ["No case is like that."])
    for choice in ("part", "verdict"):
        page.browser.execute_script(
            "const one = document.querySelector(arguments[0]); one.value = ''; one.dispatchEvent(new Event('change'))",
            f"select.{choice}",
        )
    page.until(lambda: page.texts(".opener") == ["case-6"])
    search.clear()
    search.send_keys("ODD (ONE) a+b\\ [")
    page.until(lambda: page.texts(".opener") == ["case-9"])
    search.clear()
    search.send_keys(Keys.SPACE)
    page.until(lambda: page.texts(told) == ["9 of 9 shown"])
    assert [option.text for option in page.all("select.part option")][1:3] == ["none (1)", "chat (3)"]
    page.one("select.part").send_keys("none")
    page.until(lambda: page.texts(".opener") == ["case-9"])
    assert page.quiet()


def test_a_case_opens_with_its_responses_side_by_side(read: Read) -> None:
    page = read(full())
    page.all(".line-of-case td:last-child")[2].click()
    assert page.texts(".opened .text") == ["prompt of 2", "the first one", "good 2", "bad 2"]
    assert page.texts(".responses .title") == ["Response 10.002chosen", "Response 20.900rejectedhighest score"]
    first, second = (block.rect for block in page.all(".responses > div"))
    assert first["y"] == second["y"]
    assert first["x"] + first["width"] <= second["x"]
    page.all(".line-of-case td:last-child")[2].click()
    assert page.all(".opened") == []


def test_keys_are_enough(read: Read) -> None:
    page = read(full())
    browser = page.browser
    seen = []
    for _ in range(60):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        found = browser.switch_to.active_element
        seen.append(found.accessible_name)
        outline = browser.execute_script("return getComputedStyle(arguments[0]).outlineStyle", found)
        assert outline != "none", seen[-1]
        if "opener" in (found.get_attribute("class") or ""):
            break
    assert {"Text", "Part", "Verdict", "reward over n: proxy, gold", "part", "check", "weight"} <= set(seen)
    assert all(seen)
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ENTER)
    assert browser.switch_to.active_element.get_attribute("aria-expanded") == "true"
    assert page.texts(".opened .text")[0] == "prompt of 1"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert page.all(".opened") == []


def test_numbers_of_a_curve_are_read_with_the_pointer_and_with_keys(read: Read) -> None:
    page = read(full())
    plot = page.one("div.plot")
    plot.send_keys(Keys.ARROW_RIGHT)
    assert page.texts(".readout")[0] == "1: proxy 0.000 [0.000, 0.250]; gold 0.250"
    plot.send_keys(Keys.ARROW_RIGHT)
    assert page.texts(".readout")[0] == "4: proxy 0.500 [0.250, 0.750]; gold –"
    plot.send_keys(Keys.END, Keys.ARROW_RIGHT)
    assert page.texts(".readout")[0] == "16: proxy 1.000 [0.750, 1.000]; gold 0.500"
    plot.send_keys(Keys.TAB)
    assert page.texts(".readout")[0] == ""
    webdriver.ActionChains(page.browser).move_to_element(plot).perform()
    page.until(lambda: page.texts(".readout")[0].startswith("4: proxy"))
    page.one("details summary").click()
    assert page.texts("details[open] tbody tr") == [
        "10.000 [0.000, 0.250]0.250",
        "40.500 [0.250, 0.750]–",
        "161.000 [0.750, 1.000]0.500",
    ]


def test_parts_are_sorted_and_what_has_no_number_is_last(read: Read) -> None:
    page = read(full())
    name, value = page.all(".measures thead button")[:2]
    value.click()
    assert page.texts(".measures h3:first-of-type + .wide tbody th") == ["chat", "math", "none judged"]
    value.click()
    assert page.texts(".measures h3:first-of-type + .wide tbody th") == ["math", "chat", "none judged"]
    name.click()
    assert page.texts(".measures h3:first-of-type + .wide tbody th") == ["chat", "math", "none judged"]
    assert len(page.all(".measures [aria-sort]")) == 1


def hostile() -> Result:
    """The same text wherever a text can stand."""
    unknown = Interval(value=float("nan"), low=float("-inf"), high=float("inf"), n=3)
    known = Interval(value=0.5, low=0.4, high=0.6, n=3)
    names = {HOSTILE: 0.5}
    return full(
        title=HOSTILE,
        scorer={"name": HOSTILE, "fingerprint": HOSTILE, HOSTILE: [HOSTILE]},
        source={"name": HOSTILE, "digest": HOSTILE},
        measures=(
            Measure(name=HOSTILE, interval=known, baselines=names),
            Measure(name=HOSTILE, part=HOSTILE, interval=unknown, baselines=names),
        ),
        counts=Counts(cases=1, samples=1, failed=1, reasons={HOSTILE: 1}),
        checks=(Check(name=HOSTILE, passed=False, detail=HOSTILE),),
        comparisons=(
            Comparison(
                name=HOSTILE,
                part=HOSTILE,
                test=HOSTILE,
                first=None,
                second=None,
                difference=unknown,
                p=None,
                other=HOSTILE,
            ),
        ),
        figures=(
            Bars(title=HOSTILE, unit=HOSTILE, bars=POSITIONS.bars),
            Grid(title=HOSTILE, rows=(HOSTILE,), columns=(HOSTILE,), values=((0.5,),), row_axis=HOSTILE),
            Curves(title=HOSTILE, x_axis=HOSTILE, y_axis=HOSTILE, series=(Series(name=HOSTILE, x=(1.0,), y=(2.0,)),)),
        ),
        worst=(
            case(
                0,
                id=HOSTILE,
                part=HOSTILE,
                verdict=HOSTILE,
                prompt=HOSTILE,
                gold=HOSTILE,
                responses=(ReadResponse(text=HOSTILE, said=HOSTILE, value=None, note=HOSTILE),),
            ),
        ),
        notes=(HOSTILE,),
        options={HOSTILE: HOSTILE},
    )


def test_what_a_model_wrote_is_text(read: Read) -> None:
    page = read(hostile())
    page.one(".opener").click()
    page.one("div.plot").send_keys(Keys.ARROW_RIGHT)
    shown = visible(HOSTILE).replace("⟨U+0000⟩⟨U+0000⟩", "⟨U+0000 × 2⟩")
    squeezed = " ".join(shown.split())
    assert page.texts(".opened .text") == [squeezed] * 3
    assert page.texts("h1") == [" ".join(visible(HOSTILE).split())]
    assert " ".join(visible(HOSTILE).split()) in page.texts(".readout")[0]
    assert page.all("body :is(img, iframe, b:not(.counts b)), body script:not([type='application/json'])") == []
    assert len(page.all("script")) == 4
    with pytest.raises(NoAlertPresentException):
        _ = page.browser.switch_to.alert
    assert page.quiet()


def test_the_browser_is_told_to_run_nothing_else(read: Read) -> None:
    """If a text ever became markup, it still would not run: the second line of defence, tried."""
    page = read(full())
    refused = page.browser.execute_script(
        "try { document.body.innerHTML = '<img src=x onerror=alert(1)>' } catch (error) { return error.name }"
    )
    assert refused == "TypeError"
    page.browser.execute_script(
        "window.refused = []; document.addEventListener('securitypolicyviolation', (told) => {"
        " window.refused.push(told.effectiveDirective) });"
        "new Image().src = 'https://elsewhere.test/x.png'; fetch('https://elsewhere.test/').catch(() => 0);"
        "document.body.setAttribute('style', 'color: red');"
    )
    wanted = {"img-src", "connect-src", "style-src-attr"}
    page.until(lambda: wanted <= set(page.browser.execute_script("return window.refused")))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_can_be_read(browser: webdriver.Chrome, read: Read, scheme: str) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    wide = Grid(
        title="w" * 300, rows=("r" * 200,), columns=tuple(f"column {at}" for at in range(40)), values=((0.1,) * 40,)
    )
    worst = (case(0, prompt="x" * 30_000, part="p" * 200, id="i" * 300), *map(case, range(1, 6)))
    result = full(worst=worst, figures=(*full().figures, wide), title="t" * 200)
    page = read([result, full(scorer={"name": "s" * 300, "fingerprint": "f" * 300})])
    page.one(".opener").click()
    page.one("div.plot").send_keys(Keys.ARROW_RIGHT)
    assert browser.execute_script("return document.documentElement.scrollWidth") == 390
    contrast = browser.execute_script(CONTRAST)
    assert {text: round(ratio, 1) for text, ratio in contrast if ratio < 4.5} == {}
    assert len(contrast) > 300
    assert page.quiet()


def test_many_cases_and_parts_are_shown_a_few_at_a_time(read: Read) -> None:
    parts = tuple(
        Measure(name="accuracy", part=f"part {at:03}", interval=Interval(value=at / 500, n=9)) for at in range(500)
    )
    page = read(full(measures=parts, worst=tuple(map(case, range(10_000)))))
    assert page.texts(".told") == ["50 of 10,000 shown"]
    page.one(".browser > .more").click()
    assert page.texts(".told") == ["100 of 10,000 shown"]
    assert len(page.all(".line-of-case")) == 100
    assert page.browser.switch_to.active_element.text == "case-50"
    page.one(".search").send_keys("case-9999")
    page.until(lambda: page.texts(".opener") == ["case-9999"])
    assert page.texts(".measures tbody th")[-1] == "part 039"
    page.all(".measures thead button")[1].click()
    assert page.texts(".measures tbody th")[:1] == ["part 499"]
    assert len(page.texts(".measures tbody th")) == 40
    page.one(".measures button.more").click()
    assert len(page.texts(".measures tbody th")) == 500


def test_a_giant_text_is_shown_piece_by_piece(read: Read) -> None:
    text = "x" * 19_999 + "\N{GRINNING FACE}" + "y" * 300_000  # the first piece would end within a character
    page = read(full(worst=(case(0, prompt=text),)))
    page.one(".opener").click()
    assert page.texts(".opened .text")[0] == text[:20_000]
    assert page.texts("button.whole") == ["Show more: 20,001 of 320,001 characters are here"]
    page.one("button.whole").click()
    assert page.texts(".opened .text")[0] == text[:220_000]
    page.one("button.whole").click()
    assert page.texts(".opened .text")[0] == text
    assert page.all("button.whole") == []
    assert page.browser.switch_to.active_element.accessible_name == "Prompt"


def test_a_text_of_hidden_characters_alone_is_shown(read: Read) -> None:
    page = read(full(worst=(case(0, prompt="\x00\u202e" * 50_000, gold="\x01" * 200_000),)))
    page.one(".opener").click()
    for _ in range(2):
        page.one("button.whole").click()
    assert page.texts(".opened .text")[:2] == [
        "⟨U+0000⟩⟨U+202E⟩" * 50_000,
        "⟨U+0001 × 20000⟩⟨U+0001 × 180000⟩",
    ]
    assert page.quiet()


def test_several_results_are_compared_and_linked(read: Read) -> None:
    better = Measure(name="accuracy", interval=Interval(value=0.8, low=0.7, high=0.9, n=80))
    page = read([full(), full(scorer={"name": "another", "fingerprint": "another:1"}, measures=(better,))])
    assert page.texts("h1") == ["JudgeBench: 2 results"]
    assert page.texts(".comparing tbody th") == ["a modelmodel:0123", "anotheranother:1"]
    assert page.texts(".comparing td") == [
        *("0.7500.500 to 0.900", "−0.250", "0.125"),
        *("◆ 0.8000.700 to 0.900", "–", "–"),
    ]
    assert page.texts("article > h2") == ["JudgeBench: a model", "JudgeBench: another"]
    page.one("nav a[href='#r1']").click()
    page.until(
        lambda: page.browser.execute_script("return document.querySelector('#r1').getBoundingClientRect().top") < 40
    )
    ids = [element.get_attribute("id") for element in page.all("[id]")]
    assert len(ids) == len(set(ids))
    page.all(".opener")[8].click()
    assert page.all("article")[1].find_elements(By.CSS_SELECTOR, ".opened")
    assert page.quiet()


def test_headings_and_labels_tell_the_structure(read: Read) -> None:
    page = read(full())
    page.one(".opener").click()
    levels = [int(element.tag_name[1]) for element in page.all("h1, h2, h3, h4, h5")]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    names = [
        element.accessible_name for element in page.all("section, svg[role=img], input, select, .plot[role=group]")
    ]
    assert all(names)
    assert "math: 0.200; bounds 0.100 to 0.300" in names
    assert "Samples: 120 scored, 30 abstained, 10 failed" in names


def test_it_prints_on_white_and_without_controls(browser: webdriver.Chrome, read: Read) -> None:
    page = read(full())
    page.one(".opener").click()
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    try:
        assert not page.one(".controls").is_displayed()
        assert page.one(".opened .text").is_displayed()
        contrast = browser.execute_script(
            "document.documentElement.style.background = 'rgb(255, 255, 255)';" + CONTRAST
        )
        assert {text: round(ratio, 1) for text, ratio in contrast if ratio < 4.5} == {}
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_without_scripts_all_numbers_are_there(browser: webdriver.Chrome, read: Read) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page = read(full())
        assert "0.750" in page.one(".card .large").text
        assert "result.json" in page.one("noscript").text
        assert page.one(".grid td").text == "40"
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_the_data_beside_the_page_are_the_result(tmp_path: Path, read: Read) -> None:
    read(full())
    assert json.loads((tmp_path / "result.json").read_text()) == json.loads(json.dumps(full().to_dict()))
