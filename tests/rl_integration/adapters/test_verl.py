"""The reward function for verl, as verl calls it; `tests/frameworks/verl` runs it in verl itself."""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rl_integration.server.conftest import served

from adjudge.io.values import plain, reference_of
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.failures import WINDOW, NotScored, TooManyFailures
from adjudge.rl_integration.adapters.verl_scores import VerlOptions
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.verl import compute_score, compute_score_batch

BROKEN = "\\frac{1}{"
KEYS = {"score", "acc", "reward_valid", "reward_failed", "reward_abstained"}


class Seen:
    """Keeps what it was given; every third sample it cannot judge, every third it declines."""

    name = "seen"
    fingerprint = "seen:1"

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.samples += samples
        return [self._one(len(str(sample.response)) % 3) for sample in samples]

    def _one(self, kind: int) -> Score:
        if kind == 0:
            return Score.failed("engine_timeout")
        if kind == 1:
            return Score.abstained("out_of_scope")
        return Score(value=0.25, parts={"taste": Score.scored(0.5), "style": Score.abstained("out_of_scope")})


class Heavy(Seen):
    """Takes half a second to load, or less if another one is loaded at the same time."""

    loaded = 0
    meeting = threading.Barrier(2)

    def __init__(self) -> None:
        super().__init__()
        type(self).loaded += 1
        with suppress(threading.BrokenBarrierError):
            self.meeting.wait(0.5)


class Pairs(Seen):
    """Compares the answers to a prompt."""

    groupwise = True


def scored(text: str = "\\boxed{2}", truth: Any = "2", info: Any = None, **options: Any) -> dict[str, float]:
    return asyncio.run(compute_score("gsm8k", text, truth, info, **options))


def test_verl_sees_a_coroutine_function() -> None:
    assert inspect.iscoroutinefunction(compute_score), "verl would take its coroutine for a score"


def test_a_number_and_always_the_same_keys() -> None:
    right, wrong = scored(scorer="math"), scored("\\boxed{3}", scorer="math")
    assert (right["score"], wrong["score"]) == (1.0, 0.0)
    seen = Seen()
    answers = [scored("a" * n, scorer=seen, fallback=-1, parts=["taste", "style", "none"]) for n in (1, 2, 3)]
    parts = {"part_taste", "part_style", "part_none"}
    assert {frozenset(answer) for answer in answers} == {frozenset(KEYS | parts)}
    assert all(type(value) is float for answer in answers for value in answer.values())
    declined, judged, failed = answers
    assert [declined["score"], judged["score"], failed["score"]] == [-1.0, 0.25, -1.0]
    assert [declined["reward_abstained"], judged["reward_valid"], failed["reward_failed"]] == [1.0, 1.0, 1.0]
    assert [sum(answer[key] for key in KEYS - {"score", "acc"}) for answer in answers] == [1.0] * 3
    assert judged["part_taste"] == 0.5
    assert math.isnan(judged["part_style"]), "what is unknown is not a number"
    assert math.isnan(failed["part_taste"])


def test_what_has_no_score_stops_the_run_unless_told_otherwise() -> None:
    with pytest.raises(NotScored, match=r"gold_unparsable.*verl wants a number.*fallback=NUMBER"):
        scored(truth=BROKEN, scorer="math")
    assert scored(truth=BROKEN, scorer="math", fallback=0)["reward_failed"] == 1.0


def test_a_fallback_does_not_hide_that_all_fails() -> None:
    options: dict[str, Any] = {"scorer": "math", "fallback": 0.125, "max_failed": 0.25}
    for _ in range(WINDOW // 4):
        assert scored(truth=BROKEN, **options)["score"] == 0.125
    with pytest.raises(TooManyFailures, match=r"17 of the latest 64 samples.*gold_unparsable.*more than 25%"):
        scored(truth=BROKEN, **options)


def test_a_scorer_is_loaded_once_for_all_threads_and_loops() -> None:
    barrier = threading.Barrier(4)

    def run(_: int) -> float:
        barrier.wait(30)
        return scored("aa", scorer=f"{__name__}:Heavy")["score"]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == [0.25] * 4
    assert scored("aa", scorer=f"{__name__}:Heavy")["score"] == 0.25
    assert Heavy.loaded == 1


def test_columns_and_prompt_come_from_extra_info_which_is_left_alone() -> None:
    seen = Seen()
    turns = np.array([{"role": "user", "content": "1+1?"}], dtype=object)
    info = MappingProxyType({"question": turns, "level": np.int64(3), "uid": "u", "finish_reason": "length"})
    scored("aa", np.array(["2", "two"], dtype=object), info, scorer=seen, prompt="question", columns=["level"])
    (sample,) = seen.samples
    assert sample.prompt == [{"role": "user", "content": "1+1?"}]
    assert sample.reference == ["2", "two"]
    assert sample.extra == {"level": 3}
    assert sample.finish_reason == "length"
    assert type(sample.extra["level"]) is int
    with pytest.raises(ValueError, match="extra_info has no 'problem'; it has question, level, uid, finish_reason"):
        scored("aa", "2", info, scorer=seen, prompt="problem")
    with pytest.raises(ValueError, match="extra_info has no 'x'; it has nothing"):
        scored("aa", "2", None, scorer=seen, columns=["x"])


def test_a_cell_of_nan_is_a_missing_one() -> None:
    seen, info = Seen(), {"num_turns": math.nan, "question": math.nan, "uid": np.float64("nan")}
    scored("aa", "2", info, scorer=seen, prompt="question", group="uid")
    (sample,) = seen.samples
    assert (sample.prompt, sample.group) == ("", "")


def test_text_of_tools_is_not_graded_unless_that_is_accepted() -> None:
    """verl's naive manager counts a question and its answer as two turns, and puts the count there."""
    assert scored(info={"num_turns": np.int32(2)}, scorer="math")["score"] == 1.0
    assert scored(info={"num_turns": None}, scorer="math")["score"] == 1.0
    with pytest.raises(ValueError, match=r"a trajectory has 4 turns.*tool_text=grade"):
        scored(info={"num_turns": 4}, scorer="math")
    assert scored(info={"num_turns": 4}, scorer="math", tool_text="grade")["score"] == 1.0


def test_each_data_source_has_its_scorer() -> None:
    def of(source: str, **options: Any) -> float:
        return asyncio.run(compute_score(source, "\\boxed{2}", "2", {}, **options))["score"]

    table = {"gsm8k": "math", "talk": "repetition"}
    assert [of("gsm8k", scorers=table), of("talk", scorers=table)] == [1.0, 0.0]
    assert of("other", scorers={"talk": "repetition"}, scorer="math") == 1.0
    with pytest.raises(ValueError, match=r"data_source 'other' has no scorer; .* names gsm8k, talk"):
        of("other", scorers=table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no scorer is named: set `scorer`"),
        ({"scorer": "maths"}, "maths"),
        ({"scorers": {"gsm8k": "math", "talk": "maths"}}, "maths"),
        ({"scorers": "math"}, "scorers='math'; it must be a mapping"),
        ({"scorer": "math", "fallback": math.nan}, "fallback=nan"),
        ({"scorer": "math", "fallback": "0"}, "fallback='0'"),
        ({"scorer": "math", "max_failed": 2}, "max_failed=2"),
        ({"scorer": "math", "parts": "taste"}, "parts='taste'; it must be a list"),
        (
            {"scorer": "math", "scorrer": "math"},
            "reward_kwargs has no option 'scorrer'; its options are: scorer, scorers, server",
        ),
        ({"scorer": "math", "tool_text": "drop"}, "tool_text='drop'"),
        ({"server": {"url": "http://x", "concurency": 8}}, r"reward_kwargs.server has no option 'concurency'"),
        ({"server": {"concurrency": 8}}, "reward_kwargs.server needs the option 'url'"),
        ({"server": {"url": "http://x", "concurrency": 0}}, "client option concurrency=0"),
        ({"scorer": Pairs()}, "compares the answers to a prompt"),
        ({"scorer": "math", "parts": ["taste"]}, "the score has no parts"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scored(**options)


def test_scores_come_from_a_server_too() -> None:
    with served({"math": "math"}, ServerConfig(port=0)) as address:
        assert scored(server=address)["score"] == 1.0
        assert scored(server={"url": address, "concurrency": 2})["score"] == 1.0
        assert scored("\\boxed{3}", server=address, scorer="math")["score"] == 0.0
        with pytest.raises(ValueError, match="refused the request"):
            scored(server=address, scorer="maths")


def test_the_batch_function_keeps_the_order_and_knows_groups() -> None:
    pairs = Pairs()
    sources = ["a", "b", "a", "b"]
    infos = [{"uid": number // 2} for number in range(4)]
    found = compute_score_batch(
        sources, ["xx", "\\boxed{2}", "xxxxx", "\\boxed{3}"], ["2"] * 4, infos,
        scorers={"a": pairs, "b": "math"}, group="uid",
    )  # fmt: skip
    assert [one["score"] for one in found] == [0.25, 1.0, 0.25, 0.0]
    assert [sample.group for sample in pairs.samples] == ["0", "1"]
    assert compute_score_batch([], [], [], [], scorer="math") == []
    with pytest.raises(ValueError, match="verl gave 1 of 'data_sources' and 2 of 'solution_strs'"):
        compute_score_batch(["a"], ["x", "y"], ["2"], [{}], scorer="math")


def test_text_that_is_a_json_object_is_a_reference_of_fields() -> None:
    assert reference_of('{"tests": ["assert f(1) == 2"]}') == {"tests": ["assert f(1) == 2"]}
    assert reference_of("{1, 2}") == "{1, 2}"
    deep = '{"a":' * 100_000
    assert reference_of(deep) == deep
    assert reference_of("[1]") == "[1]"
    assert reference_of(np.str_("42")) == "42"


@given(st.recursive(st.integers() | st.text() | st.none(), lambda inner: st.lists(inner) | st.tuples(inner, inner)))
def test_plain_data_stays_itself(value: Any) -> None:
    assert plain(value) == value


def test_arrays_and_their_scalars_become_pythons_own() -> None:
    rows = {"a": np.array([[1, 2]]), "b": np.float32(0.5), "c": MappingProxyType({"d": np.array([None, {"e": 1}])})}
    found = plain(rows)
    assert found == {"a": [[1, 2]], "b": 0.5, "c": {"d": [None, {"e": 1}]}}
    assert type(found["b"]) is float
    assert VerlOptions(scorer="math") == VerlOptions(scorer="math")
