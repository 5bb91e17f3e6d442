"""The page of a run shows its numbers and answers, and runs nothing that a model wrote."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.rl_integration.trainer.small_runs import TASKS, small_config, small_run

from adjudge.pages.markup import visible
from adjudge.rl_integration.trainer.loop.report import _PANELS, write_report
from adjudge.rl_integration.trainer.loop.run_logger import SAMPLES, STEPS, Journal, read_journal


class Reader(HTMLParser):
    """Collects the tags and the texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.curves = 0
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.curves += ("class", "curves") in attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def test_a_run_can_be_looked_at(tmp_path: Path) -> None:
    small_run(tmp_path, small_config(steps=3, eval_steps=1), held_out=TASKS[:2]).train()
    page = read(write_report(tmp_path, title="Digits", facts={"steps": 3}))
    titles = {text for text in page.texts if text in _PANELS}
    assert {"Reward", "Advantages", "Entropy, nats", "Length of the gradient", "Seconds of a step"} <= titles
    assert not titles & {"Parts of the reward", "Failures by reason", "Reward and gold scorer"}
    assert page.curves == page.tags.count("figure") == len(titles), "a panel for each kind of number it has"
    assert sum("step 3:" in text for text in page.texts) == 2
    assert "held out" in page.texts


def test_each_part_of_the_reward_has_its_curve(tmp_path: Path) -> None:
    journal = Journal(tmp_path, STEPS, step=0)
    odd = "$\\frac{ <b>"
    for step in (1, 2):
        journal.write(
            {"step": step, "seconds": 1.0, "parts/math": 0.5, f"parts/{odd}": 0.1, "failed/engine_timeout": 0.1}
        )
    page = read(write_report(tmp_path, title="Parts", facts={}))
    assert {"Parts of the reward", "math", odd, "Failures by reason", "engine timeout"} <= set(page.texts)
    assert "b" not in page.tags
    assert page.curves == page.tags.count("figure") == 3


def test_a_page_of_a_long_run_stays_small(tmp_path: Path) -> None:
    lines = [{"step": step, "seconds": 1.0, "reward": step % 7} for step in range(1, 20_001)]
    (tmp_path / STEPS).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert write_report(tmp_path, title="Long", facts={}).stat().st_size < 100_000


def test_what_a_model_wrote_is_text(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)></pre><script>alert(1)</script>\"'\u202e\x1b[31m"
    Journal(tmp_path, STEPS, step=0).write({"step": 1, "seconds": 1.0, "reward": 0.5, f"parts/{evil}": 0.5})
    record = {"prompt": evil, "response": evil, "finish_reason": "stop", "value": None}
    Journal(tmp_path, SAMPLES, step=0).write({"step": 1, **record, "status": "failed", "reason": evil})
    page = read(write_report(tmp_path, title=evil, facts={"name": evil}, stopped=evil))
    assert page.tags.count("script") == 1, "the page's own"
    assert "img" not in page.tags
    assert sum(visible(evil) in text for text in page.texts) >= 6


def test_a_folder_without_steps_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no steps"):
        write_report(tmp_path, title="", facts={})


def test_lines_of_steps_to_come_are_dropped_and_a_torn_one_is_not_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path, STEPS, step=0)
    for step in (1, 2, 3):
        journal.write({"step": step, "reward": float("nan"), "text": "\u2028"})
    with (tmp_path / STEPS).open("a", encoding="utf-8") as file:
        file.write('{"step": 4, "rew')
    assert [line["step"] for line in read_journal(tmp_path, STEPS)] == [1, 2, 3]
    assert "reward" not in read_journal(tmp_path, STEPS)[0]
    Journal(tmp_path, STEPS, step=2).write({"step": 3})
    assert [line["step"] for line in read_journal(tmp_path, STEPS)] == [1, 2, 3]
