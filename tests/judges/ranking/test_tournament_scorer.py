from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.engines.scripted import ScriptedEngine, field_of, key_of

from adjudge import check_scorer
from adjudge.engines.interface import Prompt
from adjudge.judges.pairwise import PairwiseJudge
from adjudge.judges.tournament import Tournament
from adjudge.protocol import Cost, Sample, Score, response_text
from adjudge.scoring.registry import load


class Pairwise:
    """Prefers what is worth more; says nothing where a text asks for silence, and counts the games."""

    name = "pairwise"
    fingerprint = "pairwise:1"

    def __init__(self, sharpness: float = math.inf) -> None:
        self.sharpness = sharpness
        self.games: list[tuple[str, str]] = []
        self.calls = 0

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.calls += 1
        return [self._one(response_text(sample), str(sample.reference)) for sample in samples]

    def _one(self, first: str, second: str) -> Score:
        self.games.append((first, second))
        if "silence" in first or "silence" in second:
            return Score.failed("judge_unparsable")
        ahead = worth(first) - worth(second)
        share = 0.5 if ahead == 0 else float(ahead > 0)
        if self.sharpness != math.inf:
            share = 1 / (1 + math.exp(-max(min(ahead * self.sharpness, 50), -50)))
        return Score(value=share, cost=Cost(prompt_tokens=10))


def worth(text: str) -> float:
    found = re.match(r"worth (\d+)", text)
    return float(found[1]) if found else -1.0


def group(*responses: str, name: str = "g", prompt: str = "p") -> list[Sample]:
    return [Sample(prompt=prompt, response=text, group=name) for text in responses]


def played(samples: Sequence[Sample], judge: Pairwise | None = None, **options: Any) -> tuple[list[Score], Pairwise]:
    judge = judge or Pairwise()
    return asyncio.run(Tournament(judge=judge, **options).score(samples)), judge


def values(scores: Sequence[Score]) -> list[float | None]:
    return [score.value for score in scores]


FIELD = [f"worth {n}" for n in (4, 0, 7, 2, 5, 1, 6, 3)]
FORMATS = ["round_robin", "swiss", "knock_out"]


def test_a_round_robin_gives_everybody_its_share() -> None:
    scores, judge = played(group(*FIELD), format="round_robin")
    assert values(scores) == pytest.approx([worth(text) / 7 for text in FIELD])
    assert len(judge.games) == 28


@pytest.mark.parametrize(("format", "games", "calls"), [("swiss", 16, 4), ("knock_out", 7, 3)])
def test_fewer_games_find_the_best(format: str, games: int, calls: int) -> None:
    scores, judge = played(group(*FIELD), format=format)
    found = [value for value in values(scores) if value is not None]
    assert len(found) == 8
    assert found[FIELD.index("worth 7")] == max(found) == 1.0
    assert found[FIELD.index("worth 0")] == min(found) == 0.0
    assert (len(judge.games), judge.calls) == (games, calls), "the games of a round go to the judge in one call"


def test_strengths_from_soft_outcomes_order_the_field() -> None:
    scores, _ = played(group(*FIELD), Pairwise(sharpness=0.5), format="swiss", ranking="bradley_terry", ridge=0.01)
    ranked = sorted(range(8), key=lambda place: scores[place].value or 0)
    assert [FIELD[place] for place in ranked] == sorted(FIELD)
    for score, text in zip(scores, FIELD, strict=True):
        others = [worth(other) for other in FIELD if other != text]
        expected = sum(1 / (1 + math.exp(0.5 * (other - worth(text)))) for other in others) / 7
        assert score.value == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("format", FORMATS)
def test_the_order_of_the_samples_and_other_groups_change_nothing(format: str) -> None:
    alone, _ = played(group(*FIELD), format=format)
    mixed, _ = played([*group(*FIELD[::-1]), *group("worth 1", "worth 2", name="h")], format=format)
    assert values(mixed[:8]) == values(alone)[::-1]
    assert values(mixed[8:]) == [0.0, 1.0]


def test_groups_play_at_the_same_time() -> None:
    """The first call of one group's round comes back only when the other group has called too."""

    class Meets(Pairwise):
        met: asyncio.Event | None = None

        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            if self.met is None:
                self.met = asyncio.Event()
                await asyncio.wait_for(self.met.wait(), timeout=1200)
            self.met.set()
            return await super().score(samples)

    scores, _ = played([*group("worth 1", "worth 2"), *group("worth 4", "worth 3", name="h")], Meets())
    assert values(scores) == [0.0, 1.0, 1.0, 0.0]


def test_a_seed_changes_who_meets_whom() -> None:
    games = {tuple(played(group(*FIELD), format="knock_out", seed=seed)[1].games) for seed in range(4)}
    assert len(games) > 1


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (group("worth 1", "worth 1"), [0.5, 0.5]),
        (group("worth 1", "", " \n"), [1.0, 0.0, 0.0]),
        (group("", ""), [0.0, 0.0]),
        (group("worth 1"), ["group_too_small"]),
        ([Sample(prompt="p", response="worth 1"), Sample(prompt="p", response="worth 2")], ["bad_sample"] * 2),
        ([*group("worth 1"), *group("worth 2", prompt="q")], ["bad_sample"] * 2),
        (
            [*group("worth 1"), Sample(prompt="p", response=[{"role": "assistant", "content": 5}], group="g")],
            [1.0, 0.0],
        ),
        (group("worth 1", "<think>worth 2", "Solution"), [1.0, 0.0, 0.0]),
        (group("worth 1", "worth 2" + " and more" * 9000), [1.0, 0.0]),
    ],
    ids=[
        "copies",
        "unopposed",
        "nobody answers",
        "alone",
        "no group",
        "two prompts",
        "unreadable",
        "hollow",
        "too long",
    ],
)
def test_groups_that_are_no_contest(samples: list[Sample], expected: list[float | str]) -> None:
    scores, judge = played(samples)
    assert [score.value if score.status == "scored" else score.reason for score in scores] == expected
    assert judge.games == []


def test_only_the_answer_plays() -> None:
    thought = "<think>worth 9</think>worth 2"
    assert values(played(group(thought, "worth 3"))[0]) == [0.0, 1.0]
    assert values(played(group("worth 9 <think>", "worth 3"), reasoning="keep")[0]) == [1.0, 0.0]


def test_a_good_answer_goes_on_to_the_judge() -> None:
    class Sees(Pairwise):
        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            assert [sample.reference for sample in samples] == [
                {"response": samples[0].reference["response"], "answer": "5"}
            ]
            assert samples[0].reference["response"] != samples[0].response
            return [Score(value=0.25)]

    samples = [replace(sample, reference="5") for sample in group("worth 1", "worth 2")]
    assert sorted(str(score.value) for score in played(samples, Sees())[0]) == ["0.25", "0.75"]


def test_copies_play_once_and_share_their_standing() -> None:
    scores, judge = played(group("worth 1", "worth 2", "worth 1", "worth 0"), format="round_robin")
    assert values(scores) == [0.5, 1.0, 0.5, 0.0]
    assert len(judge.games) == 3
    assert sum(score.cost.prompt_tokens for score in scores) == 30, "a game is paid for once"


@pytest.mark.parametrize("format", FORMATS)
def test_whoever_silences_the_judge_gets_no_number(format: str) -> None:
    scores, _ = played(group("worth 9 silence", *FIELD), format=format)
    assert (scores[0].status, scores[0].reason) == ("failed", "part_failed")
    judged = [value for value in values(scores[1:]) if value is not None]
    assert len(judged) >= 7
    if format != "knock_out":
        assert scores[1 + FIELD.index("worth 7")].value == 1.0


def test_games_that_do_not_connect_the_field_give_no_strengths() -> None:
    class Cliques(Pairwise):
        def _one(self, first: str, second: str) -> Score:
            apart = (worth(first) > 3) != (worth(second) > 3)
            return Score.failed("engine_timeout") if apart else super()._one(first, second)

    scores, _ = played(group(*FIELD), Cliques(), format="round_robin", ranking="bradley_terry")
    assert {(score.status, score.reason) for score in scores} == {("failed", "engine_timeout")}


def test_a_judge_on_another_scale_is_a_fault_of_the_judge() -> None:
    class Ten(Pairwise):
        def _one(self, first: str, second: str) -> Score:
            return Score(value=7.0)

    with pytest.raises(ValueError, match=r"gave 7\.0; a pairwise judge returns"):
        played(group("worth 1", "worth 2"), Ten())


@pytest.mark.parametrize("format", FORMATS)
def test_a_tournament_conforms(format: str) -> None:
    samples = [*group("worth 1", "worth 2", "worth 4"), *group("worth 3", "worth 0", name="h")]
    check_scorer(Tournament(judge=Pairwise(), format=format), samples).raise_for_failures()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "cup"}, "format='cup'"),
        ({"ranking": "place"}, "a swiss has points or bradley_terry"),
        ({"format": "knock_out", "ranking": "bradley_terry"}, "a knock_out has place"),
        ({"format": "round_robin", "rounds": 3}, "only a Swiss"),
        ({"rounds": 0}, "at least 1"),
        ({"ridge": 0.0}, "ridge=0.0"),
    ],
    ids=str,
)
def test_mistakes_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Tournament(judge=Pairwise(), **options)


@pytest.mark.parametrize("spec", [{"rm_r1": {}}, {"pairwise_judge": {"output": "signed"}}])
def test_a_judge_whose_zero_is_a_tie_is_refused_before_it_is_paid(spec: dict[str, dict[str, Any]]) -> None:
    ((name, options),) = spec.items()
    with pytest.raises(ValueError, match=r"gives values from -1 on.*output: unit"):
        load({"tournament": {"judge": {name: {**options, "engine": ScriptedEngine()}}}})
    load({"tournament": {"judge": {name: {"engine": ScriptedEngine(), "output": "unit"}}}})


def test_a_tournament_of_a_tournament_is_refused() -> None:
    with pytest.raises(ValueError, match="compares groups by itself"):
        Tournament(judge=Tournament(judge=Pairwise()))


def test_a_sample_without_a_group_is_named_before_any_work() -> None:
    with pytest.raises(ValueError, match=r"sample 's1' has none; set Sample\.group"):
        Tournament(judge=Pairwise()).validate(Sample(prompt="p", response="r", id="s1"))


def test_specs() -> None:
    name = "adjudge.judges.tournament:Tournament"
    scorer = load({name: {"judge": "exact", "format": "round_robin", "min_words": 1}})
    scores = asyncio.run(scorer.score(group("a", "b")))
    assert sorted(str(score.value) for score in scores) == ["0.0", "1.0"]  # one game, and its first player is not equal
    with pytest.raises(ValueError, match="needs the option 'judge'"):
        load({name: {"format": "swiss"}})


def test_a_language_model_plays_referee() -> None:
    """With the judge of this package: both orders of each game, and a good answer that reaches the prompt."""

    def referee(prompt: Prompt, index: int) -> str:
        assert "worth 5" in field_of(prompt, "reference")
        ahead = worth(field_of(prompt, "response_a")) - worth(field_of(prompt, "response_b"))
        return f"Compared.\nVerdict {key_of(prompt)}: {'A' if ahead > 0 else 'B'}"

    def first(prompt: Prompt, index: int) -> str:
        return f"Verdict {key_of(prompt)}: A"

    samples = [replace(sample, reference="worth 5") for sample in group(*FIELD[:4])]
    honest = ScriptedEngine(referee)
    judge: Any = PairwiseJudge(engine=honest)
    scores = asyncio.run(Tournament(judge=judge, format="round_robin").score(samples))
    assert values(scores) == pytest.approx([2 / 3, 0, 1, 1 / 3])
    assert len(honest.asked) == 2 * 6
    assert sum(score.cost.prompt_tokens for score in scores) == 10 * 12
    places = ScriptedEngine(first)
    judge = PairwiseJudge(engine=places)
    scores = asyncio.run(Tournament(judge=judge, format="round_robin").score(samples))
    assert values(scores) == [0.5] * 4
