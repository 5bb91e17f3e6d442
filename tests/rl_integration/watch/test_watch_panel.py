"""The watches of a service: each scorer its own, the newest samples kept short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.protocol import Cost, Sample, Score
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.watch.panel import WatchPanel, shortened


def told(panel: WatchPanel, name: str, response: Any, score: Score | None = None) -> None:
    panel(name, Sample(prompt="What is 1+1?", response=response), score or Score.scored(1.0))


def test_each_scorer_has_a_watch_of_its_own_and_numbers_rise_over_all() -> None:
    panel = WatchPanel(newest=2)
    for place in range(3):
        told(panel, "a", f"a{place}")
        told(panel, "b", f"b{place}", Score.failed("engine_timeout"))
    assert panel.count("a") == panel.report("b").measures.samples == 3
    newest = panel.newest()
    assert [(one.number, one.response) for one in newest["a"]] == [(5, "a2"), (3, "a1")]
    assert [one.reason for one in newest["b"]] == ["engine_timeout"] * 2
    assert [one.number for one in panel.newest(after=5)["b"]] == [6]
    assert panel.report("nobody").measures.samples == panel.count("nobody") == 0


def test_a_scorer_can_be_begun_anew() -> None:
    panel = WatchPanel()
    told(panel, "a", "x")
    panel.forget("a")
    panel.forget("nobody")
    assert panel.count("a") == 0
    assert panel.newest() == {}


def test_parts_and_costs_are_kept() -> None:
    panel = WatchPanel()
    parts = {"math": Score.scored(1.0), "safety": Score.abstained("out_of_scope")}
    score = Score(value=0.5, parts=parts, cost=Cost(seconds=0.25, prompt_tokens=3, completion_tokens=4))
    told(panel, "a", [{"role": "tool", "content": "secret"}, {"role": "assistant", "content": "x"}], score)
    (one,) = panel.newest()["a"]
    assert {name: (part.value, part.status, part.reason) for name, part in one.parts.items()} == {
        "math": (1.0, "scored", ""),
        "safety": (None, "abstained", "out_of_scope"),
    }
    assert (one.response, one.seconds, one.tokens) == ("x", 0.25, 7)
    many: Mapping[str, Score] = {f"part{place}": Score.scored(0.0) for place in range(1000)}
    told(panel, "a", "x", Score(value=0.0, parts=many))
    assert len(panel.newest()["a"][0].parts) == 24


def test_texts_are_not_kept_where_they_are_not_to_be() -> None:
    panel = WatchPanel(texts=False)
    told(panel, "a", "private")
    (one,) = panel.newest()["a"]
    assert (one.prompt, one.response) == (None, None)
    assert panel.report("a").measures.length == len("private")


def test_long_texts_keep_their_two_ends() -> None:
    assert shortened(("short",)) == "short"
    assert shortened(("a", "b")) == "a\nb"
    assert shortened(()) == ""
    for texts in (("a" * 10**6 + "end",), [*("a" * 100 for _ in range(10_000)), "end"]):
        kept = shortened(texts)
        assert kept.startswith("a" * 100)
        assert kept.endswith("end")
        assert len(kept) < 1300
        assert f"{sum(map(len, texts)) + len(texts) - 1 - 1200:,} characters" in kept


def test_equal_samples_that_are_scored_once_are_all_seen() -> None:
    panel = WatchPanel()
    with RewardService({"exact": "exact"}, watch=panel) as service:
        samples = [Sample(prompt="q", response="a", reference="a", group="g")] * 8
        service.score_blocking("exact", samples)
    assert panel.count("exact") == 8
