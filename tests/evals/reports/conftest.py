"""Results that hold everything a page can show, and the browser of the dashboard's tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from tests.rl_integration.server.dashboard.conftest import browser, chromium, log_of, requests_of

from adjudge.evals.reports.page import write_report
from adjudge.evals.reports.result import Check, Comparison, Counts, Measure, ReadCase, ReadResponse, Result
from adjudge.pages.figures import Bar, Bars, Curves, Grid, Series
from adjudge.protocol import Cost
from adjudge.statistics.intervals import Interval

__all__ = ["browser", "chromium"]  # fixtures

CURVES = Curves(
    title="Best of n",
    x_axis="n",
    y_axis="reward",
    log_x=True,
    series=(
        Series(name="proxy", x=(1, 4, 16), y=(0.0, 0.5, 1.0), low=(0.0, 0.25, 0.75), high=(0.25, 0.75, 1.0)),
        Series(name="gold", x=(1, 4, 16), y=(0.25, None, 0.5)),
    ),
)
RELIABILITY = Curves(
    title="Reliability",
    x_axis="probability that was said",
    y_axis="share that is right",
    diagonal=True,
    series=(
        Series(name="measured", x=(0.25, 0.75), y=(0.5, 0.5), low=(0.25, 0.25), high=(0.75, 1.0), points=True),
        Series(name="fitted", x=(0.0, 1.0), y=(0.4, 0.6)),
    ),
)
CONFUSION = Grid(
    title="Gold and verdict",
    rows=("A", "B"),
    columns=("A", "B", "tie"),
    values=((40, 8, 0), (10, 20, None)),
    row_axis="gold",
    column_axis="verdict",
)
PROBES = Grid(
    title="Probes", rows=("echo", "empty"), columns=("math", "chat"), values=((0.0, 1.0), (0.5, None)), better="low"
)
POSITIONS = Bars(
    title="By position",
    unit="share",
    bars=(Bar(name="first", interval=Interval(value=0.25, low=0.1, high=0.5, n=8), baselines={"random": 0.5}),),
)


def case(number: int, **changed: Any) -> ReadCase:
    """A case; numbers make them differ."""
    facts: dict[str, Any] = {
        "id": f"case-{number}",
        "part": ("math", "chat", "code")[number % 3],
        "verdict": ("wrong", "tied")[number % 2],
        "weight": float(100 - number),
        "prompt": f"prompt of {number}",
        "gold": "the first one",
        "responses": (
            ReadResponse(text=f"good {number}", said=f"0.{number:03}", value=number / 1000, note="chosen"),
            ReadResponse(text=f"bad {number}", said="0.900", value=0.9, note="rejected"),
        ),
    }
    return ReadCase(**{**facts, **changed})


def full(**changed: Any) -> Result:
    """A result with something of every kind."""
    share = Interval(value=0.75, low=0.5, high=0.9, n=80)
    facts: dict[str, Any] = {
        "kind": "judge_bench",
        "title": "JudgeBench",
        "scorer": {"name": "a model", "fingerprint": "model:0123"},
        "source": {"name": "pairs.jsonl", "rows": 81, "digest": "sha256:beef", "date": "2026-01-02"},
        "measures": (
            Measure(name="accuracy", interval=share, baselines={"longer": 0.6, "random": 0.4}, published=True),
            Measure(name="rank correlation", interval=Interval(value=-0.25, n=80), better="none", published=True),
            Measure(name="ties", interval=Interval(value=0.125, n=80), better="low"),
            Measure(name="accuracy", part="math", interval=Interval(value=0.2, low=0.1, high=0.3, n=30)),
            Measure(name="accuracy", part="chat", interval=Interval(value=1.0, low=0.8, high=1.0, n=50)),
            Measure(name="accuracy", part="none judged", interval=Interval(value=None, n=0)),
        ),
        "counts": Counts(
            cases=80, samples=160, scored=120, abstained=30, failed=10, cut_off=5, tied=3, unreadable=1,
            reasons={"engine_timeout": 10, "judge_declined": 30},
        ),
        "checks": (
            Check(name="a rule that holds", passed=True, detail="0 of 80."),
            Check(name="a rule that is broken", passed=False, detail="12 of 80."),
            Check(name="a rule not tried", passed=None, detail="There are no pairs."),
        ),
        "comparisons": (
            Comparison(
                name="accuracy", test="McNemar, exact", first=0.75, second=0.7, p=0.0004, p_adjusted=0.0008,
                difference=Interval(value=0.05, low=0.01, high=0.09, n=80), other="another model",
            ),
            Comparison(
                name="accuracy", part="math", test="McNemar, exact", first=0.2, second=0.3, p=None,
                difference=Interval(value=-0.1, n=30), other="another model",
            ),
        ),
        "figures": (CONFUSION, CURVES, RELIABILITY, PROBES, POSITIONS),
        "worst": tuple(map(case, range(8))),
        "notes": ("Pairs are few.",),
        "options": {"level": 0.95, "seed": 0},
        "seconds": 1.5,
        "cost": Cost(seconds=1.0, prompt_tokens=1234),
    }  # fmt: skip
    return Result(**{**facts, **changed})


class Page:
    """A written report as a person reads it."""

    def __init__(self, browser: webdriver.Chrome, results: Result | Sequence[Result], folder: Path) -> None:
        self.browser = browser
        self.address = write_report(results, folder).as_uri()
        browser.get(self.address)

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """What is written in every such element that is shown."""
        script = (
            "return [...document.querySelectorAll(arguments[0])].filter((one) => one.checkVisibility())"
            ".map((one) => one.textContent.trim().replace(/\\s+/g, ' '))"
        )
        return list(self.browser.execute_script(script, selector))

    def until(self, condition: Callable[[], Any]) -> None:
        WebDriverWait(self.browser, 20, poll_frequency=0.02).until(lambda _: bool(condition()))

    def quiet(self) -> bool:
        """Whether nothing was complained of, and nothing but the page was asked for."""
        assert log_of(self.browser, "browser") == []
        asked = [url for url in requests_of(self.browser) if not url.startswith(("data:", "about:"))]
        assert [url.partition("#")[0] for url in asked] == [self.address]
        return True


@pytest.fixture
def read(browser: webdriver.Chrome, tmp_path: Path) -> Callable[[Result | Sequence[Result]], Page]:
    """Write a report and open it."""
    return lambda results: Page(browser, results, tmp_path)


# The contrast of every visible text with what lies behind it, as WCAG defines it; what is translucent lets the next one
# through.
CONTRAST = """
const parsed = (colour) => {
  const [red, green, blue, alpha = 1] = colour.match(/[\\d.]+/g).map(Number);
  return { parts: [red, green, blue], alpha };
};
const light = (parts) => {
  const [red, green, blue] = parts.map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const behind = (element) => {
  if (!element) return [255, 255, 255];
  const { parts, alpha } = parsed(getComputedStyle(element).backgroundColor);
  if (alpha === 1) return parts;
  const next = behind(element.parentElement);
  return parts.map((part, at) => alpha * part + (1 - alpha) * next[at]);
};
const written = (element) => {
  const style = getComputedStyle(element);
  return parsed(element instanceof SVGElement ? style.fill : style.color).parts;
};
const texts = [...document.querySelectorAll('body *')].filter((element) =>
  element.checkVisibility() && !element.closest('title') &&
  [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
return texts.map((element) => {
  const pair = [light(written(element)), light(behind(element))].sort((first, second) => second - first);
  return [element.textContent.trim().slice(0, 40), (pair[0] + 0.05) / (pair[1] + 0.05)];
});
"""
