"""What the adapters for frameworks with one call per sample share."""

from __future__ import annotations

import asyncio
import math
import pickle
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from tests.rl_integration.adapters.scripted_scorer import Scripted
from tests.rl_integration.server.conftest import served

from adjudge.protocol import Sample
from adjudge.rl_integration.adapters.failures import WINDOW, NotScored, TooManyFailures
from adjudge.rl_integration.adapters.one_by_one import OneByOne
from adjudge.rl_integration.adapters.row import (
    answer_in,
    check_aligned,
    checked_place,
    extra_in,
    name_in,
    reference_in,
    words,
)
from adjudge.rl_integration.client.client import ClientConfig
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.scoring import registry


def asked(scorer: Any = "math", **options: Any) -> OneByOne:
    return OneByOne("Framework", **{"server": None, "fallback": None, "max_failed": 0.5, "scorer": scorer, **options})


def sample(response: str, reference: Any = "2") -> Sample:
    return Sample(prompt="1+1?", response=response, reference=reference)


def test_scores_come_from_threads_and_from_inside_a_running_loop() -> None:
    math = asked()

    async def inside() -> float | None:
        return math.scores_blocking([sample("\\boxed{2}")])[0].value

    async def awaited() -> float | None:
        return (await math.scores([sample("\\boxed{3}")]))[0].value

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda n: math.scores_blocking([sample(f"\\boxed{{{n % 3}}}")])[0].value, range(24)))
    assert found == [0.0, 0.0, 1.0] * 8
    assert asyncio.run(inside()) == 1.0
    assert asyncio.run(awaited()) == 0.0


def test_a_scorer_is_loaded_once_however_many_threads_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    specs: list[Any] = []
    really = registry.load

    def load(spec: Any) -> Any:
        specs.append(spec)
        return really(spec)

    monkeypatch.setattr(registry, "load", load)
    math = asked()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: math.scores_blocking([sample("\\boxed{2}")]), range(8)))
    assert specs.count("math") == 1


def test_a_copy_sent_to_another_process_has_the_same_options() -> None:
    copy = pickle.loads(pickle.dumps(asked(fallback=-1.0, max_failed=1)))
    good, bad = copy.scores_blocking([sample("\\boxed{2}"), sample("x", "\\frac{1}{")])
    assert (copy.number(good), copy.number(bad)) == (1.0, -1.0)
    strict = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(asked(max_failed=0)))))
    with pytest.raises(TooManyFailures, match="more than 0% may not"):
        strict.scores_blocking([sample("x", "\\frac{1}{")])


def test_a_failed_score_is_an_error_or_the_fallback_and_never_a_zero() -> None:
    (failed,) = asked().scores_blocking([sample("\\boxed{2}", "\\frac{1}{")])
    with pytest.raises(NotScored, match=r"failed \(gold_unparsable\).*Framework wants a number.*fallback=NUMBER"):
        asked().number(failed)
    assert asked(fallback=-0.5).number(failed) == -0.5
    (declined,) = asked(Scripted()).scores_blocking([sample("decline")])
    with pytest.raises(NotScored, match=r"abstained \(out_of_scope\)"):
        asked().number(declined)


def test_scores_come_from_a_server_too_and_a_dead_one_is_no_zero() -> None:
    with served({"math": "math"}, ServerConfig(port=0)) as address:
        remote = pickle.loads(pickle.dumps(asked("math", server=address)))
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda n: remote.scores_blocking([sample(f"\\boxed{{{n}}}")])[0].value, range(4)))
        assert found == [0.0, 0.0, 1.0, 0.0]
        with pytest.raises(ValueError, match="refused the request"):
            asked("maths", server=address).scores_blocking([sample("x")])
    dead = asked("math", server=ClientConfig(url=address, deadline=0.2, attempts=1))
    (score,) = dead.scores_blocking([sample("\\boxed{2}")])
    with pytest.raises(NotScored, match="engine_unavailable"):
        dead.number(score)


@pytest.mark.parametrize("lost", [None, math.nan])
def test_a_response_that_was_lost_fails_alone_here_and_at_a_server(lost: Any) -> None:
    samples = [sample("\\boxed{2}"), sample(lost), sample(""), sample("\\boxed{3}")]
    with served({"math": "math"}, ServerConfig(port=0)) as address:
        for one in (asked(), asked("math", server=address)):
            scores = one.scores_blocking(samples)
            assert [score.value for score in scores] == [1.0, None, 0.0, 0.0]
            assert (scores[1].status, scores[1].reason) == ("failed", "bad_sample")


def test_a_part_that_no_scorer_has_is_told_at_once() -> None:
    mix = {"weighted": {"math": 1.0, "exact": 0.1}}
    for options in ({"scorer": mix}, {"scorer": {"gate": {"gate": "math", "main": "exact"}}, "scorers": {"a": mix}}):
        asked(**options).check_parts(["math", "exact"])
        with pytest.raises(ValueError, match="parts names 'maths', and the parts of the scorer are exact, "):
            asked(**options).check_parts(["math", "maths"])
    for unsaid in (asked(), asked(mix, server="http://127.0.0.1:9"), asked(mix, scorers={"a": Scripted()})):
        unsaid.check_parts(["maths"])


def test_columns_of_other_lengths_are_named() -> None:
    check_aligned("it", first=[1, 2], second=(1, 2), third=np.array([1, 2]))
    for columns, told in (
        ({"first": [1, 2], "second": [1]}, "it gave 1 of 'second' and 2 of 'first'; there must be as many of each"),
        ({"first": [1], "second": [1, 2]}, "it gave 2 of 'second' and 1 of 'first'"),
        ({"first": [1, 2], "second": "ab"}, "it gave text as 'second'; it must be a list"),
        ({"first": [1, 2], "second": {"a": 1, "b": 2}}, "it gave an object with the fields a, b as 'second'"),
        ({"first": [1, 2], "second": None}, "it gave null as 'second'"),
        ({"first": "ab", "second": "ab"}, "it gave text as 'first'"),
    ):
        with pytest.raises(ValueError, match=told):
            check_aligned("it", **columns)


def test_a_run_whose_samples_mostly_fail_is_stopped_and_declining_is_no_failure() -> None:
    one = asked(Scripted(), fallback=0.0, max_failed=0.25)
    for _ in range(WINDOW):
        one.scores_blocking([sample("decline")])
    for _ in range(WINDOW // 4):
        one.scores_blocking([sample("fail")])
    with pytest.raises(TooManyFailures, match=f"{WINDOW // 4 + 1} of the latest {WINDOW}.*engine_timeout"):
        one.scores_blocking([sample("fail")])


def test_a_row_without_its_reference_or_with_another_scorers_is_no_failure() -> None:
    math, code = asked(max_failed=0), asked("code", max_failed=0)
    tests = {"tests": ["assert f(1) == 2"]}
    scores = [*math.scores_blocking([sample("2", None), sample("2", tests)]), *code.scores_blocking([sample("2")])]
    assert [(score.status, score.reason) for score in scores] == [("abstained", "out_of_scope")] * 3
    with pytest.raises(NotScored, match=r"\(out_of_scope\).*The scorer 'code' is not for it.*scorer=\"auto\""):
        code.number(scores[2])
    assert math.scores_blocking([sample("\\boxed{2}")])[0].value == 1.0


def test_a_scorer_that_is_for_no_row_is_told_once() -> None:
    foreign = [sample("x", {"tests": ["assert f(1) == 2"]}) for _ in range(255)]
    math = asked()
    math.scores_blocking(foreign)
    with pytest.warns(UserWarning, match=r"'math' was for none of the first 256 samples.*assert f"):
        math.scores_blocking(foreign[:1])
    math.scores_blocking(foreign)
    once = asked()
    once.scores_blocking([sample("x"), *foreign, *foreign])


def test_each_data_source_has_its_scorer_and_its_count_of_failures() -> None:
    routed = asked(None, scorers={"sums": "math", "talk": Scripted()}, max_failed=0.25)
    copy = pickle.loads(pickle.dumps(routed))
    samples = [sample("0.5"), sample("\\boxed{2}"), sample("fail")]
    for one in (routed, copy):
        scores = one.scores_blocking(samples, ["talk", "sums", "talk"])
        assert [score.value for score in scores] == [0.5, 1.0, None]
    for _ in range(WINDOW):
        routed.scores_blocking([samples[1]], ["sums"])
    with pytest.raises(TooManyFailures, match="17 of the latest 64"):
        routed.scores_blocking([samples[2]] * 16, ["talk"] * 16)
    with pytest.raises(ValueError, match=r"data_source 'code' has no scorer; `scorers` names sums, talk"):
        routed.scores_blocking(samples[:1], ["code"])


def test_options_that_cannot_be_meant_are_told_at_once() -> None:
    for options, message in (
        ({"scorer": "maths"}, "maths"),
        ({"fallback": float("nan")}, "fallback=nan"),
        ({"fallback": "0"}, "fallback='0'"),
        ({"max_failed": 2}, "max_failed=2"),
        ({"server": "ftp://there"}, "ftp://there"),
    ):
        with pytest.raises(ValueError, match=message):
            asked(**options)
    with pytest.raises(ValueError, match=r"Framework gives them one by one.*cohort.*group=COLUMN"):
        asked(Scripted(groupwise=True)).check_alone()
    with pytest.raises(ValueError, match=r"one by one; ask its author"):
        asked(Scripted(groupwise=True)).check_alone("ask its author")


@pytest.mark.parametrize("response", ["\ud800 \\boxed{2}", "\x00\\boxed{2}", "\\boxed{2}\u202e", "", "x" * 300_000])
def test_hostile_responses_are_scored(response: str) -> None:
    (score,) = asked().scores_blocking([sample(response)])
    assert score.status == "scored"


ROW: Mapping[str, Any] = MappingProxyType(
    {
        "answer": "2",
        "dotted.name": 5,
        "deep": {"spec": {"gold": ["a", "b"]}},
        "tests": '{"tests": ["assert f(1) == 2"]}',
        "broken": '{"tests": [',
        "array": np.array([1, 2]),
        "nothing": None,
    }
)


def test_a_reference_is_found_by_name_by_path_or_by_a_function() -> None:
    found = {
        place: reference_in(ROW, place, "Framework")
        for place in ("answer", "dotted.name", "deep.spec.gold", "tests", "broken", "array", "nothing", "")
    }
    assert found == {
        "answer": "2",
        "dotted.name": 5,
        "deep.spec.gold": ["a", "b"],
        "tests": {"tests": ["assert f(1) == 2"]},
        "broken": '{"tests": [',
        "array": [1, 2],
        "nothing": None,
        "": None,
    }
    assert reference_in(ROW, lambda row: [row["answer"], *row["deep"]["spec"]["gold"]], "Framework") == ["2", "a", "b"]


def test_a_scorer_cannot_change_the_row_through_its_reference() -> None:
    found = reference_in(ROW, "deep.spec.gold", "Framework")
    found.append("c")
    reference_in(ROW, lambda row: row["deep"], "Framework")["spec"]["gold"].append("c")
    assert ROW["deep"] == {"spec": {"gold": ["a", "b"]}}


@pytest.mark.parametrize("place", ["gold", "deep.spec.silver", "answer.gold"])
def test_a_missing_reference_is_named_with_the_remedy(place: str) -> None:
    with pytest.raises(
        ValueError, match=rf"a row of Framework has no '{place}'.*it has answer, array.*reference=COLUMN"
    ):
        reference_in(ROW, place, "Framework")


def test_a_place_is_a_name_or_a_function() -> None:
    assert checked_place("reference", "answer") == "answer"
    with pytest.raises(ValueError, match="group=7"):
        checked_place("group", 7)


def test_a_group_is_found_as_a_reference_is_and_is_text() -> None:
    assert name_in(ROW, "dotted.name", "group", "Framework") == "5"
    assert name_in(ROW, lambda row: row["array"][1], "group", "Framework") == "2"
    assert name_in(ROW, "", "group", "Framework") == name_in(ROW, "nothing", "group", "Framework") == ""
    with pytest.raises(ValueError, match=r"no 'uid' with the group.*group=COLUMN"):
        name_in(ROW, "uid", "group", "Framework")


def test_a_decimal_keeps_its_digits() -> None:
    assert reference_in({"a": Decimal("0.10")}, "a", "TRL") == "0.10"
    assert reference_in({"a": {"answer": Decimal("1E+2")}}, "a", "TRL") == {"answer": "100"}


@pytest.mark.parametrize("empty", [None, math.nan, np.float64("nan"), "nan", "<NA>", ""], ids=repr)
def test_an_empty_cell_names_no_group(empty: Any) -> None:
    assert name_in({"g": empty}, "g", "group", "TRL") == ""


def test_names_of_data_sources_may_be_numbers() -> None:
    asked = OneByOne("it", scorer="exact", scorers={1: "math"}, server=None, fallback=None, max_failed=1.0)  # type: ignore[dict-item]
    sources = [name_in({"source": source}, "source", "data_source", "it") for source in (1, np.int64(1), 1.0, "1", 2)]
    rows = [Sample(prompt="?", response="\\boxed{x+1}", reference="1+x")] * 5
    assert [score.value for score in asked.scores_blocking(rows, sources)] == [1, 1, 1, 1, 0]
    only = OneByOne("it", scorer=None, scorers={1: "math"}, server=None, fallback=None, max_failed=1.0)  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="data_source '2' has no scorer; `scorers` names 1"):
        only.scores_blocking(rows[:1], ["2"])


def test_what_arrow_fills_in_is_no_part_of_a_reference() -> None:
    tests = [{"args": [None], "expected": None, "stdin": None}, {"args": None, "stdin": "1", "stdout": "2"}]
    row = {
        "ref": {"answer": None, "tests": tests},
        "empty": {"answer": None, "tests": None},
        "unanswerable": {"answer": None},
        "null": None,
        "text": "",
    }
    assert reference_in(row, "ref", "Framework") == {
        "tests": [{"args": [None], "expected": None}, {"stdin": "1", "stdout": "2"}]
    }
    assert [reference_in(row, name, "Framework") for name in ("empty", "null", "null.deeper", "text")] == [None] * 4
    assert reference_in(row, "unanswerable", "Framework") == {"answer": None}


def test_columns_of_plain_data_become_extra_and_others_do_not() -> None:
    import torch

    row: dict[Any, Any] = {
        **ROW, "level": np.int64(3), "tokens": torch.tensor([1, 2]), "image": object(), "log": print, 1: {"a": (1, 2)}
    }  # fmt: skip
    found = extra_in(row, "answer")
    assert set(found) == {*ROW, "level", "1"} - {"answer"}
    assert (found["level"], type(found["level"]), found["array"], found["1"]) == (3, int, [1, 2], {"a": (1, 2)})


def test_texts_and_messages_pass_and_anything_else_is_named() -> None:
    turns = [{"role": "assistant", "content": "hi"}]
    assert words("text", "it") == "text"
    assert (words(None, "it"), answer_in(None, "it")) == ("", None), "of a prompt, and of a response"
    assert (answer_in("", "it"), answer_in([], "it"), answer_in(turns, "it")) == ("", [], turns)
    assert words(turns, "it") == turns
    assert words(np.array(turns, dtype=object), "it") == turns
    assert words([], "it") == []
    for wrong in (b"bytes", ["text"], {"text": "user"}):
        with pytest.raises(ValueError, match=r"it is an? .*; it must be text or chat turns"):
            words(wrong, "it")
