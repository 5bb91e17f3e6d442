"""The reward function for OpenRLHF, as it calls it; `tests/frameworks/open_rlhf` runs it in OpenRLHF itself."""

from __future__ import annotations

import importlib.util
import math
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.rl_integration.server.conftest import served

from adjudge.openrlhf import OpenRlhfReward
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.failures import WINDOW, StopRun
from adjudge.rl_integration.server.base.config import ServerConfig

BROKEN = "\\frac{1}{"
END = "<|im_end|>"


class Seen:
    """Keeps what it was given, and scores the length of the response."""

    name = "seen"
    fingerprint = "seen:1"
    groupwise = False

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.samples += samples
        return [self._one(str(sample.response)) for sample in samples]

    def _one(self, text: str) -> Score:
        if "abstain" in text:
            return Score.abstained("out_of_scope")
        return Score(value=float(len(text)), parts={"taste": Score.scored(0.5)})


class Pairs(Seen):
    """Compares the answers to a prompt."""

    groupwise = True


def response_seen(query: str, prompt: str, **options: Any) -> Sample:
    seen = Seen()
    OpenRlhfReward(seen, **options)([query], [prompt], ["x"])
    return seen.samples[0]


def test_one_and_many_are_tensors_of_as_many_numbers_with_the_same_keys() -> None:
    reward = OpenRlhfReward("math", fallback=-1)
    one = reward(["q\\boxed{2}"], ["q"], ["2"])
    many = reward(["q\\boxed{2}", "q\\boxed{3}", "q\\boxed{2}"], ["q"] * 3, ["2", "2", BROKEN])
    none = reward([], [], [])
    for found, count in ((one, 1), (many, 3), (none, 0)):
        assert set(found) == {"rewards", "scores", "extra_logs"}
        assert set(found["extra_logs"]) == {"reward_valid", "reward_failed", "reward_abstained"}
        numbers = [found["rewards"], found["scores"], *found["extra_logs"].values()]
        assert all(value.shape == (count,) and value.dtype == torch.float32 for value in numbers)
    assert many["rewards"].tolist() == many["scores"].tolist() == [1.0, 0.0, -1.0]
    assert many["extra_logs"]["reward_valid"].tolist() == [1.0, 1.0, 0.0]
    assert many["rewards"] is not many["scores"], "OpenRLHF changes rewards in place"


def test_columns_of_other_lengths_end_the_run_by_name() -> None:
    with pytest.raises(StopRun, match="OpenRLHF gave 1 of 'labels' and 2 of 'queries'"):
        OpenRlhfReward(Seen())(["pa", "pb"], ["p", "p"], ["x"])


def test_parts_are_logged_and_what_is_unknown_is_no_number() -> None:
    reward = OpenRlhfReward(Seen(), fallback=0, parts=["taste", "style"])
    logs = reward(["pab", "pabstain"], ["p"] * 2, [None] * 2)["extra_logs"]
    assert logs["part_taste"].tolist()[0] == 0.5
    assert all(math.isnan(value) for value in [logs["part_taste"][1], *logs["part_style"]])
    assert logs["reward_abstained"].tolist() == [0.0, 1.0]


def test_nothing_that_goes_wrong_is_an_ordinary_exception() -> None:
    assert not issubclass(StopRun, Exception), "OpenRLHF catches those, and goes on without a reward"
    with pytest.raises(StopRun, match=r"adjudge: a sample failed \(gold_unparsable\).*OpenRLHF wants a number"):
        OpenRlhfReward("math")(["q\\boxed{2}"], ["q"], [BROKEN])
    with pytest.raises(StopRun, match="gave 1 of 'prompts' and 2 of 'queries'"):
        OpenRlhfReward("math")(["q", "q"], ["q"], ["2"])
    with pytest.raises(StopRun, match="refused the request"), served({"m": "math"}, ServerConfig(port=0)) as address:
        OpenRlhfReward("other", server=address)(["q"], ["q"], ["2"])


def test_a_fallback_does_not_hide_that_all_fails() -> None:
    reward = OpenRlhfReward("math", fallback=-1)
    half = WINDOW // 2
    assert reward(["q"] * half, ["q"] * half, [BROKEN] * half)["rewards"].tolist() == [-1.0] * half
    with pytest.raises(StopRun, match="33 of the latest 64 samples could not be judged"):
        reward(["q"], ["q"], [BROKEN])


def test_the_response_is_what_follows_the_prompt() -> None:
    prompt = "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n"
    assert response_seen(prompt + "two", prompt).response == "two"
    assert response_seen(" a b  c two", "a  b c").response == " two", "a tokenizer that is free with spaces"
    assert response_seen("caf\u00e9 o\u0301", "cafe\u0301").response == " o\u0301", "a tokenizer that composes"
    assert response_seen("\u03a9m two", "\u2126\u217f").response == " two", "and one that maps what looks alike"
    assert response_seen("two", "").response == "two"
    assert response_seen(prompt, prompt).response == ""
    for query, told in (("1+1?two", "the query with '1\\+1"), ("", "the query with ''"), ("<|im_start|>u", "im_start")):
        with pytest.raises(StopRun, match=rf"a query does not begin with its prompt.*{told}"):
            response_seen(query, prompt)


@given(st.text(), st.text())
def test_any_prompt_is_found_in_its_own_query(prompt: str, response: str) -> None:
    assert response_seen(prompt + response, prompt).response == response


def test_end_tokens_are_removed_and_tell_what_was_cut_off() -> None:
    ended = response_seen(f"p two{END}{END}", "p", end_tokens=[END])
    assert (ended.response, ended.finish_reason) == (" two", "stop")
    cut = response_seen(f"p two{END} more", "p", end_tokens=[END])
    assert (cut.response, cut.finish_reason) == (f" two{END} more", "length")
    assert response_seen(f"p two{END}", "p").finish_reason is None
    template = response_seen(f"p two{END}\n", "p", end_tokens=[END])
    assert (template.response, template.finish_reason) == (" two", "stop")
    seen = Seen()
    OpenRlhfReward(seen)(["p1", "p2", "p3"], ["p"] * 3, ["a", "a", "b"])
    first, second, third = (sample.group for sample in seen.samples)
    assert first == second != third, "another label is another row"
    assert OpenRlhfReward("math", end_tokens=[END])(["p\\boxed{2}"], ["p"], ["2"])["rewards"].tolist() == [0.0]


def test_labels_that_are_json_objects_are_references_of_fields() -> None:
    seen = Seen()
    OpenRlhfReward(seen)(["p", "p", "p"], ["p"] * 3, ['{"tests": ["x"]}', "{1}", None])
    assert [sample.reference for sample in seen.samples] == [{"tests": ["x"]}, "{1}", None]


def test_a_group_is_the_answers_to_one_prompt() -> None:
    groups = [response_seen(prompt + "a", prompt).group for prompt in ("p", "p", "q", "\ud800")]
    assert groups[0] == groups[1]
    assert len(set(groups)) == 3


def test_it_can_be_sent_to_another_process() -> None:
    reward = pickle.loads(pickle.dumps(OpenRlhfReward("math", fallback=-1, end_tokens=[END])))
    assert reward([f"p\\boxed{{2}}{END}"], ["p"], ["2"])["rewards"].tolist() == [1.0]


def test_many_threads_may_call_it_at_once() -> None:
    reward = OpenRlhfReward("math")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: reward([f"q\\boxed{{{n % 2}}}"], ["q"], ["1"])["rewards"].item(), range(64)))
    assert found == [float(n % 2) for n in range(64)]


def test_a_file_of_three_lines_is_enough(tmp_path: Path) -> None:
    """Loaded as OpenRLHF loads it."""
    with served({"math": "math"}, ServerConfig(port=0)) as address:
        line = "from adjudge.openrlhf import OpenRlhfReward"
        text = f"{line}\n\nreward_func = OpenRlhfReward(server={address!r})\n"
        (tmp_path / "reward.py").write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("reward_func", tmp_path / "reward.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.reward_func(["q\\boxed{2}"], ["q"], ["2"])["rewards"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scorer": "maths"}, "maths"),
        ({"scorer": None}, "None"),
        ({"scorer": "math", "fallback": math.inf}, "fallback=inf"),
        ({"scorer": "math", "max_failed": -1}, "max_failed=-1"),
        ({"scorer": "math", "end_tokens": END}, "end_tokens='<|im_end|>'; it must be a list"),
        ({"scorer": "math", "end_tokens": [""]}, r"end_tokens=\[''\]"),
        ({"scorer": "math", "parts": [1]}, r"parts=\[1\]"),
        ({"scorer": Pairs()}, "compares the answers to a prompt"),
    ],
)
def test_mistakes_are_named_when_the_file_is_loaded(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        OpenRlhfReward(**options)
