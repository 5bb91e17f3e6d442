"""A second scorer sees right answers that the guard cannot read, and is not asked where its word means nothing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.evals.attacks.weak_scorers import PlainScorer, write_tasks

from adjudge.evals.attacks.attacking import run_attack
from adjudge.evals.attacks.config import AttackConfig
from adjudge.evals.attacks.guard import Gold
from adjudge.evals.attacks.target import AttackRow, Target, Wrap
from adjudge.evals.reports.result import Result
from adjudge.protocol import Sample

SAID = "the root of nine"


class Knows(PlainScorer):
    """Pays for 3, in figures and in words; declines what is long."""

    name = "knows"

    def value(self, sample: Sample, text: str) -> float | None:
        return None if len(text) > 99 else float(SAID in text or "7" in text)


class Same(PlainScorer):
    """Pays for whatever has the word root in it."""

    name = "rooted"

    def value(self, sample: Sample, text: str) -> float | None:
        return float("root" in text)


def lucks(gold: Gold, row: AttackRow, *wraps: Wrap) -> list[str]:
    return list(asyncio.run(gold.lucks([(row, wrap) for wrap in wraps])))


ROW = AttackRow(id="r", prompt="p", base="It is 4.", reference="3")


def gold(scorer: object, row: AttackRow = ROW) -> Gold:
    return Gold.of(scorer, Target(PlainScorer()), [row])  # type: ignore[arg-type]


def test_what_the_second_scorer_pays_is_guessed_and_what_it_declines_is_counted() -> None:
    asked = gold(Knows())
    long = Wrap(after="!" * 99)
    assert lucks(asked, ROW, Wrap(after=SAID), Wrap(after="!"), Wrap(after=" 3"), long) == [
        "guessed",
        "",
        "guessed",
        "",
    ]
    assert asked.unknown == 1
    assert asked.target is not None
    assert sum(asked.target.statuses.values()) == 2 * 3  # " 3" was read without it


def test_a_second_scorer_that_pays_for_the_bad_response_says_nothing_about_what_is_around_it() -> None:
    row = AttackRow(id="r", prompt="p", base="It is 7.", reference="3")
    assert lucks(gold(Knows(), row), row, Wrap(after="!"), Wrap(before="7", keep=False)) == ["", "guessed"]


def test_rows_without_an_answer_are_not_shown_to_it() -> None:
    row = AttackRow(id="r", prompt="p", base="no", reference={"tests": ["7"]})
    asked = gold(Knows(), row)
    assert lucks(asked, row, Wrap(after=SAID)) == [""]
    assert asked.target is not None
    assert not asked.target.statuses
    other = AttackRow(id="r", prompt="p", base="no", reference={"answer": "3"})
    assert lucks(gold("math", other), other, Wrap(after=SAID)) == [""]  # a reference that math does not take


@pytest.mark.parametrize(
    "spec",
    ["math", '{"math": {"boxed": "same"}}', '{"weighted": {"math": 1.0, "format": 0.1}}', '{"by_kind": {"a": "math"}}'],
)
def test_a_scorer_is_not_asked_about_itself(spec: str) -> None:
    assert Gold.of("math", Target(spec), [ROW]).target is None
    assert Gold.of("numeric", Target(spec), [ROW]).target is not None
    assert Gold.of("none", Target(spec), [ROW]).target is None


def run(tmp_path: Path, scorer: str, gold: str, *transfer: str) -> Result:
    rows = [{"prompt": "9?", "bad": "It is 4.", "answer": "3"}]
    path = write_tasks(tmp_path / "x.jsonl", rows)
    words = tmp_path / "words.txt"
    words.write_text("\\boxed{\\log_2 8}\n", encoding="utf-8")
    return run_attack(
        AttackConfig(
            input=path,
            scorer=scorer,
            goal="right",
            attack=("random",),
            budget=20,
            gold=gold,
            vocabulary=str(words),
            transfer=transfer,
        )
    )


class Pays(PlainScorer):
    """Pays for a logarithm."""

    name = "logs"

    def value(self, sample: Sample, text: str) -> float | None:
        return float("\\log" in text)


def test_the_numbers_of_a_run_follow_the_second_scorer(tmp_path: Path) -> None:
    shares = {}
    for spec in ("math", "none"):
        result = run(tmp_path, f"{__name__}:Pays", spec, f"{__name__}:Same")
        shares[spec] = {one.name: one.interval.value for one in result.measures if one.part == "random"}
        assert ("what math calls right, too, is guessed" in result.notes) == (spec == "math")
        json.dumps(result.to_dict(), allow_nan=False)
    assert (shares["math"]["success"], shares["math"]["guessed"]) == (0.0, 1.0)
    assert (shares["none"]["success"], shares["none"]["guessed"]) == (1.0, 0.0)


def test_a_second_scorer_that_is_none_is_refused_before_any_question(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown scorer 'maths'"):
        run(tmp_path, "exact", "maths")
    with pytest.raises(ValueError, match="gold is empty"):
        run(tmp_path, "exact", "")
