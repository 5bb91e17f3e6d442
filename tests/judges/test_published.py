"""The published judges: their forms, formulas and defaults, each on texts as its own judge would write them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.engines.scripted import ScriptedEngine, field_of, text_of

from adjudge.engines.interface import Fault, Prompt
from adjudge.judges.group_ratings import DeepSeekGrmJudge
from adjudge.judges.pointwise import GeneralReasonerJudge, count_tokens, extracted_answer, last_tokens
from adjudge.protocol import Sample, Score
from adjudge.scoring.presets import preset

RUBRIC = {"criteria": "Is it polite?", **{str(level): f"level {level}" for level in range(1, 6)}}
MINE = "the response"


def says(*texts: str) -> ScriptedEngine:
    return ScriptedEngine(lambda prompt, index: texts[index % len(texts)])


def pairwise(first: str, second: str) -> ScriptedEngine:
    """What is said when the response is shown first, and when it is shown second."""
    return ScriptedEngine(lambda prompt, index: first if field_of(prompt, "response_a") == MINE else second)


def run(judge: Any, **fields: Any) -> Score:
    sample = Sample(**{"prompt": "Say hello.", "response": MINE, **fields})
    return asyncio.run(judge.score([sample]))[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("make", "texts", "value"),
    [
        (preset("mt_bench"), ["It is fine. Rating: [[7]]"], 7.0),
        (preset("mt_bench"), ["It is fine. Rating: [[7.5]]"], None),
        (preset("j1_score"), ["I think.\n<score>0</score>"], 0.0),
        (preset("self_rewarding"), ["So.\nScore: 3", "So.\nScore: 4", "So.\nScore: 5"], 4.0),
        (preset("prometheus"), ["Feedback: kind. [RESULT] 4"], 4.0),
        (preset("prometheus"), ["Feedback: kind. [RESULT] 9", "hm", "Feedback: kind. [RESULT] 2"], 2.0),
    ],
)
def test_ratings(make: Callable[..., Any], texts: list[str], value: float | None) -> None:
    assert run(make(engine=says(*texts)), extra={"rubric": RUBRIC}).value == value


@pytest.mark.parametrize(
    ("make", "first", "second", "value"),
    [
        (preset("mt_bench_pair"), "[[A]]", "[[B]]", 1.0),
        (preset("mt_bench_pair"), "[[A]]", "[[A]]", 0.5),
        (preset("mt_bench_pair"), "[[A]]", "[[C]]", 0.5),
        (preset("mt_bench_pair"), "[[B]]", "[[A]]", 0.0),
        (preset("arena_hard"), "My answer ... [[A>>B]]", "[[B>A]]", 1.0),
        (preset("arena_hard"), "[[A>>B]]", "[[A>B]]", 0.75),
        (preset("arena_hard"), "[[A=B]]", "[[A>>B]]", 0.5 / 4),
        (preset("rm_r1"), "<eval>..</eval><answer>[[A]]</answer>", "<answer>[[B]]</answer>", 1.0),
        (preset("rm_r1"), "<answer>[[B]]</answer>", "<answer>[[A]]</answer>", -1.0),
        (preset("rm_r1"), "<answer>[[A]]</answer>", "<answer>[[A]]</answer>", 0.0),
        (preset("rm_r1"), "<answer>[[A]]</answer> or <answer>[[B]]</answer>", "<answer>[[B]]</answer>", None),
        (preset("rm_r1"), "<answer>[[A]]</answer>" + " that is all" * 10, "<answer>[[B]]</answer>", 1.0),
        (preset("j1_pair"), "<answer>A</answer>", "<answer>B</answer>", 1.0),
        (preset("j1_pair"), "<answer>tie</answer>", "<answer>B</answer>", None),
        (preset("prometheus_pair"), "Feedback: .. [RESULT] A", "Feedback: .. [RESULT] B", 1.0),
    ],
)
def test_comparisons(make: Callable[..., Any], first: str, second: str, value: float | None) -> None:
    one = run(make(engine=pairwise(first, second)), reference="the other", extra={"rubric": RUBRIC})
    assert one.value == pytest.approx(value, abs=1e-12)


def test_arena_hard_asks_once_more_for_the_label() -> None:
    def answer(prompt: Prompt, index: int) -> str:
        return "[[A=B]]" if "exactly one of the five" in text_of(prompt) else "Let me think about both."

    engine = ScriptedEngine(answer)
    one = run(preset("arena_hard")(engine=engine), reference="the other")
    assert (one.value, len(engine.asked)) == (0.5, 4)
    assert [game["attempts"] for game in one.evidence["orders"]] == [2, 2]


def test_prometheus_needs_a_rubric_and_takes_that_of_the_sample_first() -> None:
    engine = says("[RESULT] 3")
    with pytest.raises(ValueError, match="judges by a rubric"):
        preset("prometheus")(engine=engine).validate(Sample(prompt="q", response="a b"))
    with pytest.raises(ValueError, match="judges by a rubric"):
        preset("prometheus")(engine=engine, rubric={"criteria": "x", "1": "y"}).validate(
            Sample(prompt="q", response="a b")
        )
    named = {"criteria": "c", **{f"score{level}_description": f"d{level}" for level in range(1, 6)}}
    run(preset("prometheus")(engine=engine, rubric="ours"), extra={"rubric": named})
    run(preset("prometheus")(engine=engine, rubric="ours"))
    assert [field_of(prompt, "rubric") for prompt in engine.asked] == [
        "[c]\nScore 1: d1\nScore 2: d2\nScore 3: d3\nScore 4: d4\nScore 5: d5",
        "ours",
    ]


def test_g_eval_writes_its_steps_and_takes_the_expected_number() -> None:
    engine = ScriptedEngine(lambda prompt, index: "1. Read it.", labels=lambda prompt: {"1": 0.1, "4": 0.5, "5": 0.2})
    one = run(preset("g_eval")(engine=engine, criteria="Coherence."))
    assert one.value == pytest.approx((0.1 + 4 * 0.5 + 5 * 0.2) / 0.8, abs=1e-12)
    assert one.evidence["steps"] == "1. Read it."
    assert field_of(engine.asked[1], "steps") == "1. Read it."
    assert one.cost.prompt_tokens == 20
    given = ScriptedEngine(labels=lambda prompt: {"4": 0.9})
    assert run(preset("g_eval")(engine=given, criteria="Coherence.", steps="Look.")).value == 4.0
    assert len(given.asked) == 1


def test_g_eval_takes_twenty_texts_where_the_numbers_are_not_likely() -> None:
    engine = ScriptedEngine(
        lambda prompt, index: "Look." if "Write the steps" in text_of(prompt) else str(index % 5 + 1),
        labels=lambda prompt: {"1": 0.1},
    )
    one = run(preset("g_eval")(engine=engine, criteria="Coherence."))
    assert (one.value, len(one.evidence["votes"])) == (3.0, 20)
    silent = ScriptedEngine(lambda prompt, index: "", labels=lambda prompt: {"1": 1.0})
    assert run(preset("g_eval")(engine=silent, criteria="Coherence.")).reason == "judge_unparsable"
    with pytest.raises(ValueError, match="criteria is empty"):
        preset("g_eval")(engine=engine)


@pytest.mark.parametrize(("grade", "value", "reason"), [("A", 1.0, ""), ("B", 0.0, "wrong"), ("C", 0.0, "no_answer")])
def test_compass_verifier(grade: str, value: float, reason: str) -> None:
    one = run(preset("compass_verifier")(engine=says(f"It is so: [[{grade}]]")), reference="4")
    assert (one.value, one.reason) == (value, reason)


YES, NO = "They agree.\nFinal Decision: Yes", "They differ.\nFinal Decision: No"


@pytest.mark.parametrize(
    ("response", "said", "value", "reason"),
    [
        (r"So \boxed{4}.", YES, 1.0, ""),
        (r"So \boxed{the number 4}.", YES, 0.9, ""),
        (r"So \boxed{" + "very " * 40 + "4}.", YES, 0.5, ""),
        (r"So \boxed{5}.", NO, 0.0, "wrong"),
        ("The answer is 4.", YES, 1.0, ""),
        ("Final answer: 4", YES, 1.0, ""),
        ("I do not know.", YES, -0.5, "no_answer"),
        (r"\boxed{}", YES, -0.5, "no_answer"),
        ("", YES, -0.5, "no_answer"),
        (r"\boxed{4}" + " and so on" * 400, YES, -0.5, "no_answer"),
        (r"So \boxed{4}.", "Yes, the same.", None, "judge_unparsable"),
        (r"So \boxed{4}.", "Final Decision: No, not Yes", None, "judge_unparsable"),
    ],
)
def test_general_reasoner(response: str, said: str, value: float | None, reason: str) -> None:
    one = run(GeneralReasonerJudge(engine=says(said)), response=response, reference="4")
    assert one.value == pytest.approx(value, abs=1e-12)
    assert one.reason == reason


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (r"\boxed{1} then \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{1} then \boxed{2", None),
        ("the answer is: x = 2.\nThe answer is y", "y"),
        ("Answer：四", "四"),
        ("no more", None),
    ],
)
def test_extracted_answers(response: str, answer: str | None) -> None:
    assert extracted_answer(response) == answer


def test_tokens_are_words_and_signs() -> None:
    assert count_tokens(r"\frac{1}{2} is 0.5") == 12
    assert last_tokens("a b, c", 2) == ", c"
    assert last_tokens("a b", 2) == "a b"


def ratings(prompt: Prompt, index: int) -> str:
    """Rates each response by its length, with a bonus of 1 for the one that is shown first."""
    lines = field_of(prompt, "responses").split("[response_")[1:]
    numbers = [min(10, len(line.split("\n")[1]) + (place == 0)) for place, line in enumerate(lines)]
    return f"Principles: length.\nScores: [{', '.join(map(str, numbers))}]"


def group(*responses: str, name: str = "g") -> list[Sample]:
    return [Sample(prompt="q", response=response, group=name) for response in responses]


def test_deepseek_grm_sums_shuffled_ratings() -> None:
    judge = DeepSeekGrmJudge(engine=ScriptedEngine(ratings), samples=8)
    samples = [*group("a b", "a b c", "a b c d"), *group("x y", name="h")]
    scores = asyncio.run(judge.score(samples))
    bonus = sum(
        one.value - 8 * len(str(sample.response)) for one, sample in zip(scores[:3], samples, strict=False) if one.value
    )
    assert bonus == 8, "in every sample one of the three stood first"
    assert all(len(one.evidence["ratings"]) == 8 for one in scores)
    assert scores[3].value == 8 * 4, "a group of one is rated alone"
    orders = {tuple(one.evidence["ratings"]) for one in scores[:3]}
    assert len(orders) == 3
    assert sum(one.cost.prompt_tokens for one in scores) == 160
    back = asyncio.run(judge.score(samples[::-1]))
    assert [one.value for one in back[::-1]] == [one.value for one in scores]


def test_deepseek_grm_on_the_unit_scale_and_with_copies() -> None:
    judge = DeepSeekGrmJudge(engine=says("Scores: [1, 10]"), samples=1, output="unit")
    scores = asyncio.run(judge.score(group("a b", "c d", "a b")))
    assert {one.value for one in scores} == {0.0, 1.0}
    assert scores[0].value == scores[2].value


def test_deepseek_grm_counts_only_ratings_of_everybody() -> None:
    engine = says("Scores: [4, 4]", "Scores: [4]", "Scores: [4, 5, 6]", "Scores: [4, 11]")
    judge = DeepSeekGrmJudge(engine=engine, samples=4, attempts=1)
    (one, _) = asyncio.run(judge.score(group("a b", "c d")))
    assert (one.status, one.reason) == ("failed", "judge_unparsable")
    judge = DeepSeekGrmJudge(engine=engine, samples=4, attempts=1, quorum=0.25)
    (one, _) = asyncio.run(judge.score(group("a b", "c d")))
    assert (one.value, one.evidence["missing"]) == (16.0, 3)


@pytest.mark.parametrize(
    ("fits", "expected"),
    [
        (lambda shown: "e f" not in shown, [40.0, 40.0, 0.0, 40.0]),
        (lambda shown: "\n-" in shown, [0.0, 0.0, 0.0, 0.0]),
        (lambda shown: False, [None] * 4),
    ],
    ids=["one long answer costs itself alone", "each is too long alone", "the question is too long"],
)
def test_deepseek_grm_leaves_out_what_does_not_fit(fits: Callable[[str], bool], expected: list[float | None]) -> None:
    def windowed(prompt: Prompt, index: int) -> str | Fault:
        shown = field_of(prompt, "responses")
        if not fits(shown):
            return Fault(reason="engine_error", detail="12 tokens, and 10 fit", too_long=True)
        return f"Scores: [{', '.join(['10'] * shown.count('[response_'))}]"

    judge = DeepSeekGrmJudge(engine=ScriptedEngine(windowed), samples=4)
    scores = asyncio.run(judge.score(group("a b", "c d", "e f " * 40, "g h")))
    assert [one.value for one in scores] == expected
    reasons = {"0.0": "too_complex", "None": "engine_error", "40.0": ""}
    assert all(one.reason == reasons[str(one.value)] for one in scores)


def test_deepseek_grm_refuses_groups_that_are_none() -> None:
    judge = DeepSeekGrmJudge(engine=ScriptedEngine(ratings), max_group=2)
    assert [one.reason for one in asyncio.run(judge.score(group("a b", "c d", "e f")))] == ["bad_sample"] * 3
    mixed = [*group("a b"), Sample(prompt="another", response="c d", group="g")]
    assert [one.reason for one in asyncio.run(judge.score(mixed))] == ["bad_sample"] * 2
    with pytest.raises(ValueError, match=r"set Sample\.group"):
        judge.validate(Sample(prompt="q", response="a b"))
    assert math.isclose(asyncio.run(judge.score(group("a b", "", "c")))[0].value or 0, 16.0)
