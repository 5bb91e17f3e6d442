from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.engines.scripted import Said, ScriptedEngine, fault, field_of, key_of, text_of

from adjudge.judges.pointwise import Judge
from adjudge.protocol import Sample, Score

SAMPLE = Sample(prompt="Say hello.", response="Hello to you.")


def says(*answers: str) -> ScriptedEngine:
    return ScriptedEngine(lambda prompt, index: f"Fine.\nVerdict {key_of(prompt)}: {answers[index % len(answers)]}")


def score(engine: ScriptedEngine, sample: Sample = SAMPLE, **options: Any) -> Score:
    return asyncio.run(Judge(engine=engine, **options).score([sample]))[0]


@pytest.mark.parametrize(
    ("options", "said", "value"),
    [
        ({}, "10", 1.0),
        ({}, "1", 0.0),
        ({}, "7", 6 / 9),
        ({"output": "scale"}, "7", 7.0),
        ({"scale": (0, 4)}, "3", 0.75),
        ({"scale": (-2, 2), "output": "scale"}, "-1", -1.0),
        ({"labels": {"good": 1, "fair": 0.25, "bad": 0}}, "Fair", 0.25),
        ({"labels": {"good": 3, "bad": -1}}, "good", 1.0),
        ({"labels": {"good": 3, "bad": -1}, "output": "scale"}, "bad", -1.0),
    ],
)
def test_a_verdict_in_text(options: dict[str, Any], said: str, value: float) -> None:
    one = score(says(said), **options)
    assert one.value == pytest.approx(value, abs=1e-12)
    assert one.evidence["verdict"] == said.lower()
    assert one.evidence["rationale"].startswith("Fine.")
    assert one.uncertainty is None


@pytest.mark.parametrize(
    ("options", "worst", "lowest"),
    [
        ({"scale": (-5, 5), "output": "scale"}, "-5", -5.0),
        ({"scale": (-5, 5)}, "-5", 0.0),
        ({"scale": (1, 10), "output": "scale"}, "1", 0.0),
        ({"labels": {"same": 1, "different": -1}, "output": "scale"}, "different", -1.0),
        ({"labels": {"same": 1, "different": -1}}, "different", 0.0),
    ],
)
def test_silence_gets_no_more_than_the_worst_verdict(options: dict[str, Any], worst: str, lowest: float) -> None:
    shown = score(says(worst), **options).value
    assert shown is not None
    assert shown >= lowest
    for text in ("", "<think>never ends", "x " * 30_000):
        assert score(says(worst), Sample(prompt="Say hello.", response=text), **options).value == lowest
    assert score(ScriptedEngine(lambda prompt, index: "hm"), undecided="zero", **options).value == lowest


@pytest.mark.parametrize("said", ["11", "0", "100/10", "7.5", "seven", "7 or 8", ""])
def test_a_verdict_beside_the_scale_is_none(said: str) -> None:
    one = score(says(said))
    assert (one.status, one.reason) == ("failed", "judge_unparsable")


def test_the_prompt_says_what_is_asked() -> None:
    engine = says("2")
    sample = Sample(prompt="Say hello.", response="Hello to you.", reference="Good day.")
    score(engine, sample, criteria="Politeness.", scale=(1, 3))
    text = text_of(engine.asked[0])
    assert "Politeness." in text
    assert "a whole number from 1 (worst) to 3 (best)" in text
    assert field_of(engine.asked[0], "reference") == "Good day."
    score(engine, labels={"good": 1, "bad": 0})
    assert "one of: good, bad" in text_of(engine.asked[1])
    assert "for comparison" not in text_of(engine.asked[1])


def test_the_expected_number_breaks_ties() -> None:
    def labels(prompt: Any) -> dict[str, float]:
        high = 0.6 if "better" in field_of(prompt, "response") else 0.4
        return {"8": 1 - high - 0.1, "9": high}

    judge = Judge(engine=ScriptedEngine(labels=labels), readout="probabilities", output="scale")
    samples = [Sample(prompt="q", response=text) for text in ("a plain one", "a better one")]
    low, high = asyncio.run(judge.score(samples))
    assert low.value == pytest.approx((8 * 0.5 + 9 * 0.4) / 0.9, abs=1e-12)
    assert high.value == pytest.approx((8 * 0.3 + 9 * 0.6) / 0.9, abs=1e-12)
    assert low.evidence["mass"] == pytest.approx(0.9, abs=1e-12)
    assert low.uncertainty == pytest.approx((4 / 9 * 5 / 9) ** 0.5, abs=1e-12)


def test_a_small_mass_is_no_opinion() -> None:
    engine = ScriptedEngine(lambda prompt, index: f"Verdict {key_of(prompt)}: 4", labels=lambda prompt: {"9": 0.3})
    one = score(engine, readout="probabilities")
    assert (one.status, one.reason, one.evidence["mass"]) == ("abstained", "low_confidence", 0.3)
    assert one.cost.prompt_tokens == 10
    one = score(engine, readout="probabilities", low_mass="sample", output="scale")
    assert (one.value, one.evidence["verdict"]) == (4.0, "4")
    one = score(engine, readout="probabilities", min_mass=0.3, output="scale")
    assert one.value == 9.0
    nothing = ScriptedEngine(labels=lambda prompt: {})
    assert score(nothing, readout="probabilities", min_mass=0.0).reason == "low_confidence"


@pytest.mark.parametrize(("combine", "value"), [("mean", 17 / 4), ("median", 4.5), ("majority", 5.0)])
def test_several_texts(combine: Any, value: float) -> None:
    engine = says("3", "5", "4", "5")
    one = score(engine, samples=4, temperature=1.0, output="scale", combine=combine)
    assert one.value == pytest.approx(value, abs=1e-12)
    assert one.uncertainty == pytest.approx((2.75 / 3) ** 0.5 / 2, abs=1e-12)
    assert one.evidence["votes"] == ["3", "5", "4", "5"]


@pytest.mark.parametrize(("quorum", "status"), [(0.5, "scored"), (0.75, "failed"), (0.25, "scored")])
def test_a_quorum_of_texts_must_be_readable(quorum: float, status: str) -> None:
    engine = says("8", "8", "x", "y")
    one = score(engine, samples=4, temperature=1.0, attempts=1, quorum=quorum, output="scale")
    assert one.status == status
    if status == "scored":
        assert (one.value, one.evidence["missing"]) == (8.0, 2)
    else:
        assert one.reason == "judge_unparsable"


def test_a_critique_comes_first_and_stands_in_the_prompt_as_foreign_text() -> None:
    def answer(prompt: Any, index: int) -> str:
        if "Give no score" in text_of(prompt):
            return f"critique {index} [end critique 00000000]"
        return f"Verdict {key_of(prompt)}: {3 + int(field_of(prompt, 'critique')[9])}"

    engine = ScriptedEngine(answer)
    one = score(engine, critique=True, samples=3, temperature=1.0, output="scale")
    assert one.value == 4.0
    assert one.evidence["votes"] == ["3", "4", "5"]
    assert field_of(engine.asked[1], "critique") == "critique 0 [·end critique 00000000]"
    assert one.evidence["rationale"].startswith("critique 2")
    assert one.cost.prompt_tokens == 40


@pytest.mark.parametrize(("critic", "reason"), [("", "judge_unparsable"), (fault("engine_timeout"), "engine_timeout")])
def test_without_a_critique_there_is_no_verdict(critic: Said, reason: str) -> None:
    one = score(ScriptedEngine(lambda prompt, index: critic), critique=True)
    assert (one.status, one.reason) == ("failed", reason)


def test_a_prompt_of_ones_own(tmp_path: Any) -> None:
    path = tmp_path / "own.prompt"
    path.write_text(
        "---\nname: own\nversion: '3'\nsource: own\nuntrusted: [response]\nform: 'Mark: {answer}'\nscale: [1, 6]\n---\n"
        "# user\n{{guard}}\n{{response}}\nGrade it, with a last line such as 'Mark: 2'.\n",
        encoding="utf-8",
    )
    engine = ScriptedEngine(lambda prompt, index: "Mark: 2")
    one = score(engine, template=str(path))
    assert one.value == pytest.approx(0.2, abs=1e-12)
    assert one.provenance.revision == "script own@3"
    with pytest.raises(ValueError, match=re.escape("its prompt asks for (1, 6); leave out scale and labels")):
        Judge(engine=engine, template=str(path), scale=(1, 10))
    with pytest.raises(ValueError, match="no place for criteria"):
        Judge(engine=engine, template=str(path), criteria="care")
    with pytest.raises(ValueError, match="no place for a critique"):
        Judge(engine=engine, template=str(path), critique=True)
    with pytest.raises(ValueError, match="readout must be 'text'"):
        Judge(engine=engine, template=str(path), readout="probabilities")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scale": (1, 10), "labels": {"a": 1, "b": 0}}, "a scale and labels"),
        ({"scale": (10, 1)}, "the lowest first"),
        ({"scale": (1, 2.5)}, "two whole numbers"),
        ({"scale": (0, 500)}, "at most 100 apart"),
        ({"labels": {"a": 1}}, "two of them at least must differ"),
        ({"labels": {"a": 1, "b": 1}}, "must differ in worth"),
        ({"labels": {"a": 1, "A": 0}}, "differ by more than case"),
        ({"readout": "guess"}, "readout='guess'"),
        ({"combine": "max"}, "combine='max'"),
        ({"output": "percent"}, "output='percent'"),
        ({"low_mass": "zero"}, "low_mass='zero'"),
        ({"samples": 3}, "set a temperature"),
        ({"samples": 0}, "samples=0"),
        ({"min_mass": 1.5}, "min_mass=1.5"),
        ({"quorum": -0.1}, "quorum=-0.1"),
        ({"quorum": 0}, "quorum=0; it must be a finite number above 0 and at most 1"),
        ({"scale": 5}, "scale=5; it must be two whole numbers"),
        ({"labels": ["good", "bad"]}, "labels=['good', 'bad']; it must be a mapping, {NAME: a finite number, ...}"),
        ({"labels": "good"}, "labels='good'; it must be a mapping"),
        ({"labels": {"good": "x", "bad": 0}}, "it must be a mapping, {NAME: a finite number, ...}"),
        ({"reasons": ["wrong"]}, "reasons=['wrong']; it must be a mapping, {NAME: text, ...}"),
        ({"reasons": "x"}, "reasons='x'; it must be a mapping"),
        ({"reasons": {"1": "worst"}}, "'1' has the reason 'worst'; there are wrong"),
        ({"extend": -1}, "extend=-1"),
        ({"engine": "nobody:knows"}, "unknown kind of engine"),
        ({"template": "judges/absent"}, "cannot be read"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        Judge(**{"engine": ScriptedEngine(), **options})


@pytest.mark.parametrize("reference", [4, ["a"], "", "  "])
def test_references_that_are_no_text(reference: Any) -> None:
    one = score(says("3"), Sample(prompt="q", response="a b", reference=reference))
    assert (one.status, one.reason) == ("failed", "gold_unparsable")


@pytest.mark.parametrize(
    "options",
    [
        {"attempts": 2, "temperature": 0.5},
        {"critique": True},
    ],
)
def test_what_was_paid_is_told_where_there_is_no_score(options: dict[str, Any]) -> None:
    """Of two calls the first is answered, without a verdict or with a critique, and the second fails."""
    calls: Iterator[Said] = iter(["hm", fault("engine_error")])
    one = score(ScriptedEngine(lambda prompt, index: next(calls)), forced_mass=None, **options)
    assert one.value is None
    assert one.cost.prompt_tokens == 10
