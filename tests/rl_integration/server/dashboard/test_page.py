"""The page in a real browser: it lives, it tells, and it takes nothing that a model wrote for anything but text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoAlertPresentException, StaleElementReferenceException, TimeoutException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait
from tests.rl_integration.server.dashboard.conftest import Lengths, Running, Serve, log_of, requests_of

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.dashboard import whole_run
from adjudge.rl_integration.service.tickets import Traffic

TOKEN = "0123456789abcdef"
HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)></svg>{{7*7}}"
    '<a href="javascript:alert(4)">x</a>\N{RIGHT-TO-LEFT OVERRIDE}\ud800</dd></dl><iframe src="//elsewhere.test/">'
)


class Below(Lengths):
    """Scores longer responses lower."""

    def _one(self, text: str) -> Score:
        return Score.scored(-float(len(text)))


class Page:
    """The page as a person uses it.

    Args:
        hurried: let it ask while the test waits, instead of once a second.
    """

    def __init__(self, browser: webdriver.Chrome, running: Running, *, hurried: bool = True) -> None:
        self.browser = browser
        self.running = running
        self.hurried = hurried
        browser.get(f"{running.address}/")

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """What is written there, shown or not; "" where there is nothing yet."""
        script = "return document.querySelector(arguments[0])?.textContent ?? ''"
        return str(self.browser.execute_script(script, selector))

    def until(self, condition: Callable[[], Any], seconds: float = 20) -> None:
        def holds(_: webdriver.Chrome) -> bool:
            if self.hurried:
                self.browser.execute_script("document.dispatchEvent(new Event('visibilitychange'))")
            return bool(condition())

        redrawn = [StaleElementReferenceException]
        WebDriverWait(self.browser, seconds, poll_frequency=0.05, ignored_exceptions=redrawn).until(holds)

    def shows(self, selector: str, text: str) -> None:
        """Wait until a text is written there."""
        try:
            self.until(lambda: text in self.text(selector))
        except TimeoutException:
            pytest.fail(f"{selector} says {self.text(selector)!r}, not {text!r}")

    def open_sample(self) -> None:
        self.until(lambda: self.all(".samples li summary"))
        self.one(".samples li summary").click()
        self.until(lambda: self.all(".samples dd"))

    def quiet(self) -> bool:
        """Whether nothing was complained of, and nothing was asked of anybody else."""
        complaints = [entry for entry in log_of(self.browser, "browser") if entry["level"] in ("SEVERE", "WARNING")]
        assert complaints == []
        asked = requests_of(self.browser)
        assert asked
        assert [url for url in asked if not url.startswith(f"{self.running.address}/")] == []
        return True


def test_numbers_live(browser: webdriver.Chrome, serve: Serve) -> None:
    running = serve()
    page = Page(browser, running, hurried=False)
    page.shows("#headline", "Nothing to tell yet.")
    page.shows(".sentence", "Nothing was scored yet.")
    running.score("a", "bb")
    page.shows(".foot", "2 scores since the start")
    page.shows(".sentence", "2 so far, 62 more are needed")
    running.score("ccc", "")
    page.shows(".foot", "4 scores since the start")
    page.shows(".outcomes", "failed: gold unparsable")
    page.shows(".values", "mean 2")
    page.until(lambda: page.all(".bars rect")[2:])
    assert page.all(".bars rect")[0].accessible_name.startswith("1: 1")
    page.until(lambda: len(page.all(".samples li")) == 4)
    assert page.one(".samples li .value").text == "failed"
    page.until(lambda: len(page.all(".body > .charts path.line[d^='M']")) == 5)
    assert page.quiet()


def test_what_a_model_wrote_is_text(browser: webdriver.Chrome, serve: Serve) -> None:
    running = serve()
    rows = [{"prompt": HOSTILE, "response": HOSTILE, "group": HOSTILE}]
    body = json.dumps({"samples": rows})  # httpx would not escape half a surrogate pair
    headers = {"content-type": "application/json"}
    assert running.client.post("/v1/score", content=body, headers=headers).status_code == 200
    page = Page(browser, running)
    page.open_sample()
    written = "return [...document.querySelectorAll('.samples dd.whole')].map((one) => one.textContent.toWellFormed())"
    assert browser.execute_script(written) == [HOSTILE.replace("\ud800", "\ufffd")] * 2
    page.shows(".samples dd table", "<b>length</b>")
    assert page.all("main :is(img, script, iframe, a, b), .samples svg") == []
    with pytest.raises(NoAlertPresentException):
        _ = browser.switch_to.alert
    assert page.quiet()


def test_the_browser_is_told_to_run_nothing_else(browser: webdriver.Chrome, serve: Serve) -> None:
    """If a text ever became markup, it still would not run: the second line of defence, tried."""
    page = Page(browser, serve())
    page.shows("#headline", "Nothing to tell yet.")
    refused = browser.execute_script(
        "try { document.body.innerHTML = '<img src=x onerror=alert(1)>' } catch (error) { return error.name }"
    )
    assert refused == "TypeError"
    browser.execute_script(
        "window.refused = []; document.addEventListener('securitypolicyviolation', (told) => {"
        " window.refused.push(`${told.disposition} ${told.effectiveDirective}`) });"
        "new Image().src = 'https://elsewhere.test/x.png'; fetch('https://elsewhere.test/').catch(() => 0);"
    )
    page.until(
        lambda: set(browser.execute_script("return window.refused")) >= {"enforce img-src", "enforce connect-src"}
    )


def test_the_whole_run_by_traffic_and_client_and_over_a_restart(
    browser: webdriver.Chrome, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_run, "SHORTEST", 10**7)  # all within one slot
    options: dict[str, Any] = {"history": str(tmp_path / "history.json"), "report": "https://runs.test/1?a=<b>"}
    running = serve(**options)

    def score(*responses: str, client: str, traffic: Traffic = "train") -> None:
        asked = [Sample(prompt=f"prompt {place}", response=text) for place, text in enumerate(responses)]
        running.service.score_blocking("lengths", asked, client=client, traffic=traffic)

    score("a", "bbb", "", "cc", client="run1")
    page = Page(browser, running)
    page.shows(".run .charts", "training 2evaluation –")
    assert not page.one(".run select").is_displayed(), "there is one client"
    score("dddd", client="run1", traffic="eval")
    score("eight888", client=HOSTILE.replace("\ud800", ""))
    page.until(lambda: page.one(".run select").is_displayed())
    assert page.one(".run select").accessible_name == "client"
    names = [chart.accessible_name for chart in page.all(".run [role=img]")]
    assert names == [
        "Mean reward: training 3.5, evaluation 4",
        "Could not be judged: training 20\u00a0%, evaluation 0\u00a0%",
    ]
    assert len(page.all(".run path.line[d^='M']")) == 4
    choice = Select(page.one(".run select"))
    assert [option.text for option in choice.options][::2] == ["all clients", "run1"]
    choice.select_by_visible_text("run1")
    page.shows(".run .charts", "training 2evaluation 4")
    page.shows(".run .charts", "training 25\u00a0%evaluation 0")
    score("", client="other")
    page.until(lambda: len(choice.options) == 4)
    assert choice.first_selected_option.text == "run1", "another client came, and the choice stays"
    page.shows(".run .charts", "training 2evaluation 4")
    link = page.one("#report a")
    assert (link.text, link.get_attribute("href")) == ("the run's report", "https://runs.test/1?a=%3Cb%3E")
    assert page.all("main :is(img, script, iframe, a, b)") == []
    running.stop()
    options["report"] = "/runs/<b>1"
    port = int(running.address.rpartition(":")[2])
    running = serve(port=port, **options)
    page.shows("#report", "the run's report: /runs/<b>1")
    assert not page.one("#report a").is_displayed()
    page.until(lambda: len(Select(page.one(".run select")).options) == 4)
    page.shows(".run .charts", "training 3.5evaluation 4")
    page.shows(".run .charts", "training 33\u00a0%evaluation 0")
    page.shows(".foot", "0 scores since the start")


def test_rewards_below_zero_stand_below_the_line(browser: webdriver.Chrome, serve: Serve) -> None:
    running = serve({"below": Below()})
    running.score("a", "bbb", scorer="below")
    page = Page(browser, running)
    page.shows(".run .top", "-2 to 0")
    line, base = page.one(".run .line0").get_attribute("d"), page.one(".run .base").get_attribute("y1")
    assert line is not None
    assert base is not None
    assert float(line.split()[1].split("h")[0]) == 83, "it is at the bottom"
    assert float(base) == 6.5


def test_length_hacking_raises_the_alarm(browser: webdriver.Chrome, serve: Serve) -> None:
    running = serve()
    page = Page(browser, running)
    for start in range(0, 128, 32):
        running.score(*(f"{start + place} " + "word " * (20 + place % 9) for place in range(32)))
    page.shows("#headline", "The reward is worth a look.")  # the value is the length
    for start in range(0, 256, 32):
        running.score(*(f"{start + place} " + "word " * (80 + place % 30) for place in range(32)))
    page.shows(".sentence", "times as long as at the start")
    page.until(
        lambda: (
            [line.text.split(" (")[0] for line in page.all(".watch .raised th")]
            == [
                "Median length, in characters",
                "Value follows length",
            ]
        )
    )
    assert "rank correlation" in page.text(".alarms")
    assert page.one(".scorer").get_attribute("data-tone") == "look"
    assert browser.title == "The reward is worth a look – adjudge"
    assert page.quiet()


def test_the_token_is_asked_for_and_kept_in_the_tab(browser: webdriver.Chrome, serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.touch(mode=0o600)
    file.write_text(f"run1 {TOKEN}\n")
    page = Page(browser, serve(tokens=str(file)))
    page.until(lambda: page.one("#door").is_displayed())
    assert page.text("#subline") == page.text("main") == ""
    assert browser.switch_to.active_element == page.one("#token")
    assert page.one("#token").accessible_name == "Token"
    page.one("#token").send_keys("n\u00f6t \u4e00 token", Keys.ENTER)
    page.shows("#wrong", "visible ASCII characters")
    page.one("#token").clear()
    page.one("#token").send_keys("not-the-token", Keys.ENTER)
    page.shows("#wrong", "does not know this token")
    page.one("#token").send_keys(TOKEN, Keys.ENTER)
    page.until(lambda: page.all(".scorer"))
    assert not page.one("#door").is_displayed()
    assert browser.execute_script("return [sessionStorage.length, localStorage.length, document.cookie]") == [1, 0, ""]
    browser.refresh()
    page.until(lambda: page.all(".scorer"))
    assert [url for url in requests_of(browser) if TOKEN in url] == []


def test_keys_and_labels_are_enough(browser: webdriver.Chrome, serve: Serve) -> None:
    running = serve()
    running.score("one", "two")
    page = Page(browser, running)
    page.until(lambda: page.all(".samples li"))
    card = page.one(".scorer")
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element == page.one(".scorer > summary")
    assert card.get_attribute("open") is not None
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert card.get_attribute("open") is None
    browser.switch_to.active_element.send_keys(Keys.ENTER, Keys.TAB)
    assert browser.switch_to.active_element.accessible_name == "hold"
    browser.switch_to.active_element.send_keys(Keys.TAB, Keys.ENTER)
    page.until(lambda: page.all(".samples dd"))
    page.shows(".samples h3", "held while you read")
    running.score("three")
    page.shows(".samples h3", "1 newer one")
    assert len(page.all(".samples li")) == 2
    browser.switch_to.active_element.send_keys(Keys.ENTER, Keys.TAB, Keys.TAB, Keys.TAB)
    page.until(lambda: len(page.all(".samples li")) == 3)
    page.until(lambda: "0.00" not in page.one(".chart svg").accessible_name)
    page.until(lambda: page.one(".run").is_displayed())
    names = [element.accessible_name for element in page.all("[role=img]")]
    assert [name.split(":")[0] for name in names[:4]] == [
        "Scores per second",
        "Latency",
        "Waiting samples",
        "Samples per call",
    ]
    assert all(names)
    levels = [int(element.tag_name[1]) for element in page.all("main h2, main h3, h1")]
    assert levels == [1, 2, 3, 3, 3, 3, 3]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_can_be_read(browser: webdriver.Chrome, serve: Serve, scheme: str) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    running = serve({"a" * 64: Lengths()})
    running.score("w" * 5000, "\n".join("x" * 300 for _ in range(4)), scorer="a" * 64)
    page = Page(browser, running)
    page.open_sample()
    assert browser.execute_script("return document.documentElement.scrollWidth") == 390
    contrast = browser.execute_script(CONTRAST)
    assert {text: round(ratio, 1) for text, ratio in contrast if ratio < 4.5} == {}
    assert len(contrast) > 30


# The contrast of every visible text with what lies behind it, as WCAG defines it.
CONTRAST = """
const light = (colour) => {
  const [red, green, blue] = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (!colour.endsWith(', 0)')) return light(colour);
  }
};
const texts = [...document.querySelectorAll('body *')].filter((element) =>
  element.checkVisibility() && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
return texts.map((element) => {
  const pair = [light(getComputedStyle(element).color), behind(element)].sort((first, second) => second - first);
  return [element.textContent.trim().slice(0, 40), (pair[0] + 0.05) / (pair[1] + 0.05)];
});
"""


def test_it_rests_while_nobody_looks(browser: webdriver.Chrome, serve: Serve) -> None:
    running = serve()
    page = Page(browser, running)
    page.until(lambda: page.all(".scorer"))
    hide = "Object.defineProperty(document, 'hidden', {value: arguments[0], configurable: true});"
    browser.execute_script(hide + "document.dispatchEvent(new Event('visibilitychange'))", True)
    count = "return performance.getEntriesByType('resource').filter((one) => one.name.includes('/v1/')).length"
    before = browser.execute_script(count)
    with pytest.raises(TimeoutException):
        page.until(lambda: browser.execute_script(count) > before + 1, seconds=2.5)  # one may have been under way
    running.score("meanwhile")
    browser.execute_script(hide + "document.dispatchEvent(new Event('visibilitychange'))", False)
    page.shows(".foot", "1 score since the start")


def test_a_server_that_went_away_is_told_and_the_next_one_is_shown(browser: webdriver.Chrome, serve: Serve) -> None:
    running = serve()
    running.score("one", "two")
    page = Page(browser, running)
    page.shows(".foot", "2 scores since the start")
    running.stop()
    page.shows("#notice", "No answer from the server since")
    port = int(running.address.rpartition(":")[2])
    again = serve(port=port)
    again.score("other")
    page.shows(".foot", "1 score since the start")
    page.until(lambda: not page.one("#notice").is_displayed())
    assert len(page.all(".samples li")) == 1
    assert len(page.all(".scorer")) == 1


def test_servers_that_answer_in_turn_are_not_mixed_up(browser: webdriver.Chrome, serve: Serve) -> None:
    """As behind a balancer: every other answer is made to look like another server's, with a scorer of its own."""
    page = Page(browser, serve())
    page.until(lambda: page.all(".scorer"))
    browser.execute_script(
        """
        const ask = window.fetch;
        let turn = 0;
        window.fetch = async (...given) => {
          const found = await (await ask(...given)).json();
          if (turn++ % 2 === 0) {
            found.started = 1;
            found.scorers[0].name = "other";
          }
          return new Response(JSON.stringify(found));
        };
        """
    )
    page.shows("#notice", "Several servers answer at this address")
    page.until(lambda: page.text(".name"))
    shown = page.text(".name")
    fetched = "return performance.getEntriesByType('resource').length"
    before = browser.execute_script(fetched)
    page.until(lambda: browser.execute_script(fetched) >= before + 3)
    assert [name.text for name in page.all(".name")] == [shown]
    assert browser.find_element(By.CSS_SELECTOR, "body").get_attribute("class") == ""


def test_texts_can_be_kept_off_the_page(browser: webdriver.Chrome, serve: Serve) -> None:
    running = serve(hide_texts=True)
    running.score("private matter")
    page = Page(browser, running)
    page.open_sample()
    page.shows(".samples dl", "14")
    assert "private" not in browser.page_source
    assert [term.text for term in page.all(".samples dt")] == ["Value", "Parts", "Cost"]
