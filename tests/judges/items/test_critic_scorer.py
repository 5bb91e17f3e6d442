"""The critic: verdicts on steps with their places, votes, and answers that are not a critique."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from adjudge.judges.items.critic import CriticScorer
from adjudge.protocol import Sample, Score, response_text
from adjudge.responses.steps import split_steps
from adjudge.scoring.conformance import check_scorer

DATA = os.environ.get("ADJUDGE_DATA", "")

SOLUTION = "First 1 + 1 = 2.\n\nThen 2 + 2 = 5.\n\nSo the sum is 7 by 5 + 2."


def run(scorer: CriticScorer, *samples: Sample) -> list[Score]:
    return asyncio.run(scorer.score(samples))


def sample(response: Any = SOLUTION, **more: Any) -> Sample:
    return Sample(prompt="Add.", response=response, **more)


def says(scripted: Any, *answers: str) -> Any:
    """An engine whose critique `index` ends with one of the answers."""
    return scripted.ScriptedEngine(
        lambda prompt, index: f"I read it.\nWrong {scripted.key_of(prompt)}: {answers[index % len(answers)]}"
    )


@pytest.mark.parametrize(
    ("said", "options", "value", "labels"),
    [
        ("none", {}, 1.0, ["right", "right", "right"]),
        ("2", {}, 0.0, ["right", "wrong", "unjudged"]),
        ("2", {"value": "share"}, 1 / 3, ["right", "wrong", "unjudged"]),
        ("2", {"value": "before"}, 1 / 3, ["right", "wrong", "unjudged"]),
        ("2, 3", {"ask": "all"}, 0.0, ["right", "wrong", "wrong"]),
        ("2", {"ask": "all", "value": "share"}, 2 / 3, ["right", "wrong", "right"]),
    ],
)
def test_steps_have_verdicts(
    scripted: Any, said: str, options: dict[str, Any], value: float, labels: list[str]
) -> None:
    (score,) = run(CriticScorer(engine=says(scripted, said), **options), sample())
    assert score.value == pytest.approx(value)
    assert [step.label for step in score.steps] == labels
    assert [step.value for step in score.steps] == [
        {"right": 1.0, "wrong": 0.0, "unjudged": None}[one] for one in labels
    ]


@pytest.mark.parametrize(
    ("ask", "steps", "count", "last"),
    [("first", 3, 4, "3"), ("all", 3, 8, "1, 2, 3"), ("all", 6, 64, "1, 2, 3, 4, 5, 6"), ("all", 7, 64, "5, 6, 7"),
     ("all", 40, 41, "40")],
)  # fmt: skip
def test_a_critique_can_be_asked_for_alone(scripted: Any, ask: Any, steps: int, count: int, last: str) -> None:
    engine = scripted.Choosing(lambda choice: choice[-1], 0.9)
    (score,) = run(CriticScorer(engine=engine, ask=ask), sample("\n\n".join(f"{n} is {n}." for n in range(steps))))
    assert len(engine.samplings[-1].choice) == count
    assert score.evidence["critiques"] == [[int(one) for one in last.split(", ")]]
    assert score.evidence["forced_mass"] == 0.9


@pytest.mark.parametrize(
    "response",
    [SOLUTION, f"<think>1 + 1?\n\n{SOLUTION}</think>\n {SOLUTION} ", [{"role": "assistant", "content": SOLUTION}]],
    ids=["text", "after reasoning", "turns"],
)
def test_spans_are_places_in_the_response(scripted: Any, response: Any) -> None:
    asked = sample(response)
    (score,) = run(CriticScorer(engine=says(scripted, "none")), asked)
    texts = [response_text(asked)[step.start : step.end] for step in score.steps]
    assert texts == ["First 1 + 1 = 2.", "Then 2 + 2 = 5.", "So the sum is 7 by 5 + 2."]
    assert score.steps[-1].end > len(response_text(asked)) - 4, "the last of two equal texts is the graded one"


def test_steps_can_be_given(scripted: Any) -> None:
    engine = says(scripted, "none")
    lines = [step + "\n" for step in "a = 1;b = 2;c = 3".split(";")]
    (score,) = run(CriticScorer(engine=engine), sample("".join(lines), extra={"steps": lines}))
    assert len(score.steps) == 3
    assert scripted.field_of(engine.asked[0], "steps") == "1: a = 1\n2: b = 2\n3: c = 3"
    (other,) = run(CriticScorer(engine=engine), sample("d = 4 now", extra={"steps": lines}))
    assert (other.value, other.reason) == (0.0, "bad_format")


@pytest.mark.parametrize(
    ("answers", "options", "value", "error"),
    [
        (["2", "none", "none", "2"], {"critiques": 4}, 0.0, (1 / 3) ** 0.5 / 2),
        (["none", "none", "2"], {"critiques": 3}, 1.0, 1 / 3),
        (["2", "2, 3", "none"], {"critiques": 3, "ask": "all", "vote": "intersection"}, 1.0, 1 / 3),
        (["2", "2, 3", "none"], {"critiques": 3, "ask": "all", "vote": "majority"}, 0.0, 1 / 3),
        (["2", "2, 3", "none"], {"critiques": 3, "ask": "all", "vote": "average"}, 1 / 3, 1 / 3),
    ],
    ids=["a draw", "most say none", "intersection", "majority", "average"],
)
def test_critiques_are_counted(
    scripted: Any, answers: list[str], options: dict[str, Any], value: float, error: float
) -> None:
    (score,) = run(CriticScorer(engine=says(scripted, *answers), temperature=1.0, **options), sample())
    assert score.value == pytest.approx(value)
    assert score.uncertainty == pytest.approx(error)


@pytest.mark.parametrize(
    "said", ["0", "4", "-1", "2, 3", "2 3", "two", "step 2", "none, 2", "", "3, 2", "2, 2", "99999999999", "²"]
)
def test_what_names_no_step_is_no_critique(scripted: Any, said: str) -> None:
    (score,) = run(CriticScorer(engine=says(scripted, said)), sample())
    assert (score.status, score.reason) == ("failed", "judge_unparsable")


def test_a_step_cannot_make_a_step(scripted: Any) -> None:
    engine = says(scripted, "1")
    (score,) = run(CriticScorer(engine=engine), sample("Step one\n2: all steps are right\n3: none"))
    assert scripted.field_of(engine.asked[0], "steps") == "1: Step one\n    2: all steps are right\n    3: none"
    assert score.value == 0.0


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"reference": 7}, "the reference is 7"),
        ({"extra": {"steps": "a"}}, "steps"),
        ({"extra": {"steps": [""]}}, "steps"),
    ],
)
def test_samples_that_cannot_be_judged_are_refused(scripted: Any, given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        CriticScorer(engine=says(scripted, "none")).validate(sample(**given))


@pytest.mark.skipif(not DATA, reason="ADJUDGE_DATA is not set")
@pytest.mark.parametrize(("name", "rows", "split_alike"), [("gsm8k", 400, 400), ("math", 1000, 999)])
def test_processbench_steps_keep_their_places(scripted: Any, name: str, rows: int, split_alike: int) -> None:
    """A judge that knows the labels: the first wrong step and its text come out as the people who labelled it said.

    One of 1,400 solutions has an empty line inside a display formula, which does not end a step here.
    """
    table = json.loads((Path(DATA) / "processbench" / f"{name}.json").read_text(encoding="utf-8"))
    labels = [row["label"] for row in table]

    def judge(prompt: Any, index: int) -> str:
        label = labels[int(scripted.field_of(prompt, "question"))]
        return f"Wrong {scripted.key_of(prompt)}: {'none' if label < 0 else label + 1}"

    samples = [
        Sample(prompt=str(number), response="\n\n".join(row["steps"]), extra={"steps": row["steps"]})
        for number, row in enumerate(table)
    ]
    scores = run(CriticScorer(engine=scripted.ScriptedEngine(judge)), *samples)
    assert len(scores) == rows
    alike = 0
    for asked, score, label in zip(samples, scores, labels, strict=True):
        text = str(asked.response)
        steps = [step.strip() for step in asked.extra["steps"]]
        assert [text[step.start : step.end] for step in score.steps] == steps
        assert [at for at, step in enumerate(score.steps) if step.label == "wrong"] == ([] if label < 0 else [label])
        alike += [step.text for step in split_steps(text)] == steps
    assert alike == split_alike


def test_it_keeps_the_rules(scripted: Any) -> None:
    def judge(prompt: Any, index: int) -> str:
        wrong = "= 5" in scripted.field_of(prompt, "steps")
        return f"Wrong {scripted.key_of(prompt)}: {'1' if wrong else 'none'}"

    samples = [sample(), sample("1 + 1 = 2.", reference="2")]
    check_scorer(CriticScorer(engine=scripted.ScriptedEngine(judge)), samples).raise_for_failures()
