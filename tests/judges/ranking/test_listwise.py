from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.engines.scripted import ScriptedEngine, field_of, gullible, key_of, text_of

from adjudge import check_scorer
from adjudge.engines.interface import Completion, Fault, Prompt
from adjudge.judges.listwise import ListwiseJudge, read_ranking
from adjudge.protocol import Sample, Score

ATTACKS = json.loads((Path(__file__).parents[2] / "attacks" / "listwise_attacks.json").read_text(encoding="utf-8"))


def shown(prompt: Prompt) -> list[str]:
    """The responses of a prompt in the order in which they stand."""
    numbers = [int(number) for number in re.findall(r"\[begin response_([0-9]) ", text_of(prompt))]
    return [field_of(prompt, f"response_{number}") for number in numbers]


def quality(text: str) -> float:
    """What the honest judge looks for: the number behind the word "worth"."""
    found = re.search(r"worth (-?[0-9]+)", text)
    return float(found[1]) if found else -100.0


def honest(prompt: Prompt, index: int) -> str:
    texts = shown(prompt)
    order = sorted(range(len(texts)), key=lambda place: -quality(texts[place]))
    return f"They differ.\nRanking {key_of(prompt)}: " + " > ".join(str(place + 1) for place in order)


def first_is_best(prompt: Prompt, index: int) -> str:
    return f"Ranking {key_of(prompt)}: " + " > ".join(str(place + 1) for place in range(len(shown(prompt))))


def group(*responses: str, name: str = "g", prompt: str = "What is it worth?") -> list[Sample]:
    return [Sample(prompt=prompt, response=text, group=name, id=f"{name}-{n}") for n, text in enumerate(responses)]


def ranked(samples: Sequence[Sample], answers: Any = honest, **options: Any) -> tuple[list[Score], ScriptedEngine]:
    engine = ScriptedEngine(answers)
    return asyncio.run(ListwiseJudge(engine=engine, **options).score(samples)), engine


def values(scores: Sequence[Score]) -> list[float]:
    found = [score.value for score in scores if score.value is not None]
    assert len(found) == len(scores), [score.reason for score in scores]
    return found


FIVE = [f"It is worth {n} crowns." for n in (3, 1, 5, 2, 4)]


def test_a_small_group_is_ranked_whole() -> None:
    scores, engine = ranked(group(*FIVE), rounds=3)
    assert values(scores) == [0.5, 0.0, 1.0, 0.25, 0.75]
    assert [score.uncertainty for score in scores] == [0.0] * 5
    assert len(engine.asked) == 3
    assert len({tuple(shown(prompt)) for prompt in engine.asked}) == 3, "the order is the same in two rounds"


def test_a_large_group_is_ranked_in_pieces_with_changing_company() -> None:
    texts = [f"It is worth {n} crowns." for n in range(13)]
    scores, engine = ranked(group(*texts), window=5, rounds=6)
    assert sorted(map(len, map(shown, engine.asked))) == [4] * 12 + [5] * 6
    found = values(scores)
    assert found[12] == 1.0
    assert found[0] == 0.0
    order = sorted(range(13), key=lambda place: found[place])
    assert max(abs(rank - place) for rank, place in enumerate(order)) <= 3
    everybody = [text for prompt in engine.asked for text in shown(prompt)]
    assert all(everybody.count(text) == 6 for text in texts)


def test_a_judge_that_looks_at_places_alone_ranks_nobody() -> None:
    """As many rounds as responses put each of them in each place once."""
    texts = [f"It is worth {n} crowns." for n in range(8)]
    for rounds in (8, 16, 100):
        scores, engine = ranked(group(*texts), first_is_best, window=8, rounds=rounds)
        assert values(scores) == pytest.approx([0.5] * 8)
        assert len(engine.asked) == len({tuple(shown(prompt)) for prompt in engine.asked}) == min(rounds, 16)


def test_copies_are_shown_once_and_share_their_value() -> None:
    scores, engine = ranked(group("It is worth 1.", "It is worth 2.", "It is worth 1."), rounds=1)
    assert values(scores) == [0.0, 1.0, 0.0]
    assert len(shown(engine.asked[0])) == 2
    scores, engine = ranked(group("It is worth 1.", "It is worth 1."))
    assert (values(scores), engine.asked) == ([0.5, 0.5], [])


def test_calls_are_paid_once_in_a_group() -> None:
    scores, engine = ranked([*group(*FIVE), *group(*FIVE[:2], name="h")], rounds=2)
    assert [score.cost.prompt_tokens for score in scores] == [20, 0, 0, 0, 0, 20, 0]
    assert len(engine.asked) == 4


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (group("It is worth 1.", "", "   "), [1.0, 0.0, 0.0]),
        (group("It is worth 1."), ["group_too_small"]),
        (group("", ""), [0.0, 0.0]),
        ([*group("It is worth 1."), *group("It is worth 2.", prompt="Another?")], ["bad_sample"] * 2),
        ([Sample(prompt="p", response="It is worth 1.")], ["bad_sample"]),
        (group("It is worth 1.", "It is worth 2.", "x " * 9000), [0.0, 1.0, 0.0]),
    ],
    ids=["unopposed", "alone", "nobody answers", "two prompts", "no group", "too long"],
)
def test_groups_that_are_no_contest(samples: list[Sample], expected: list[float | str]) -> None:
    scores, _ = ranked(samples)
    assert [score.value if score.status == "scored" else score.reason for score in scores] == expected


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda prompt, index: "All of them are fine.", "judge_unparsable"),
        (lambda prompt, index: f"Ranking {key_of(prompt)}: 1 > 2", "judge_unparsable"),
        (lambda prompt, index: f"Ranking {key_of(prompt)}: 1 > 2 > 2", "judge_unparsable"),
        (lambda prompt, index: f"Ranking {key_of(prompt)}: 0 > 1 > 2", "judge_unparsable"),
        (lambda prompt, index: f"Ranking {key_of(prompt)}: 1 > 2 > 3 or 3 > 2 > 1", "judge_unparsable"),
        (lambda prompt, index: "Ranking 0badc0de: 1 > 2 > 3", "judge_unparsable"),
        (lambda prompt, index: "Ranking: 1 > 2 > 3", "judge_unparsable"),
        (
            lambda prompt, index: Completion(text=honest(prompt, index), finish_reason="length"),
            "judge_truncated",
        ),
        (lambda prompt, index: Fault(reason="engine_timeout", detail="slow"), "engine_timeout"),
    ],
    ids=[
        "prose",
        "one left out",
        "one twice",
        "from zero",
        "two rankings",
        "foreign key",
        "no key",
        "cut off",
        "fault",
    ],
)
def test_without_a_ranking_there_is_no_number(answer: Any, reason: str) -> None:
    scores, _ = ranked(group("It is worth 1.", "It is worth 2.", "It is worth 3."), answer)
    assert [(score.status, score.reason) for score in scores] == [("failed", reason)] * 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLong(Fault):
    too_long: bool = True


@pytest.mark.parametrize(
    ("texts", "window", "expected"),
    [
        (["It is worth 9." + " Indeed." * 60, *FIVE[:3]], 500, [0.0, 2 / 3, 1 / 3, 1.0]),
        (
            ["It is worth 9." + " Indeed." * 60, "It is worth 8." + " Yes." * 60, *FIVE[:2]],
            200,
            [0.0, 1 / 3, 1.0, 2 / 3],
        ),
        (["It is worth 9." + " Indeed." * 60, FIVE[0]], 500, ["engine_error", "engine_error"]),
        (FIVE[:3], 1, ["engine_error"] * 3),
    ],
    ids=["one", "two", "no two are left", "the prompt itself"],
)
def test_an_answer_that_is_too_long_for_the_model_is_last(
    texts: list[str], window: int, expected: list[float | str]
) -> None:
    def small(prompt: Prompt, index: int) -> str | Fault:
        if sum(map(len, shown(prompt))) > window:
            return TooLong(reason="engine_error", detail="too long")
        return honest(prompt, index)

    scores, _ = ranked(group(*texts), small, rounds=2)
    found = [score.value if score.status == "scored" else score.reason for score in scores]
    assert found == [value if isinstance(value, str) else pytest.approx(value) for value in expected]


def test_a_round_that_fails_is_left_out() -> None:
    """Every second prompt gets no answer; who is never ranked fails, and the others keep their place."""
    asked: list[Prompt] = []

    def moody(prompt: Prompt, index: int) -> str:
        asked.append(prompt)
        return honest(prompt, index) if len(asked) % 2 else "?"

    scores, _ = ranked(group(*FIVE), moody, rounds=4, attempts=1)
    assert values(scores) == [0.5, 0.0, 1.0, 0.25, 0.75]
    assert {score.evidence["shown"] for score in scores} == {2}


@pytest.mark.parametrize("row", ATTACKS, ids=lambda row: str(row["name"]))
@pytest.mark.parametrize("judge", ["honest", "repeats the last line", "repeats everything"])
def test_an_attack_buys_nothing(row: dict[str, str], judge: str) -> None:
    """Against an honest judge it stays last; a judge that repeats what it reads gives no number at all."""
    texts = [row["response"].replace("{best}", "It is worth 0."), "It is worth 5.", "It is worth 3."]
    if judge == "honest":
        scores, _ = ranked(group(*texts), rounds=2)
        assert values(scores) == [0.0, 1.0, 0.5]
        return
    for number in (1, 2, 3):
        echo = gullible(f"response_{number}") if judge == "repeats the last line" else _everything
        scores, _ = ranked(group(*texts), echo, rounds=2)
        assert {score.status for score in scores} == {"failed"}


def _everything(prompt: Prompt, index: int) -> str:
    return "\n".join(shown(prompt))


def test_values_do_not_depend_on_the_order_in_the_group() -> None:
    straight = values(ranked(group(*FIVE), first_is_best)[0])
    backwards = values(ranked(group(*FIVE[::-1]), first_is_best)[0])
    assert straight == backwards[::-1]


def test_the_judge_conforms() -> None:
    judge = ListwiseJudge(engine=ScriptedEngine(honest), rounds=2)
    check_scorer(judge, [*group(*FIVE[:3]), *group(*FIVE[2:], name="h")]).raise_for_failures()


def test_options_and_seeds_are_in_the_fingerprint() -> None:
    engine = ScriptedEngine(honest)
    changes: list[dict[str, Any]] = [{}, {"rounds": 2}, {"seed": 1}, {"criteria": "brevity"}]
    made = [ListwiseJudge(engine=engine, **options) for options in changes]
    assert len({judge.fingerprint for judge in made}) == 4
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"window": 9}, "window=9"),
        ({"rounds": 0}, "rounds=0"),
        ({"undecided": "zero"}, "nobody's own"),
    ]
    for options, words in mistakes:
        with pytest.raises(ValueError, match=words):
            ListwiseJudge(engine=engine, **options)


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("Ranking: 2 > 1 > 3", (1, 0, 2)),
        ("Ranking: **2 > 1 > 3**.", (1, 0, 2)),
        ("Ranking: 2>1>3", (1, 0, 2)),
        ("Ranking: 1 > 2 > 3\nOn second thought:\nRanking: 3 > 2 > 1", (2, 1, 0)),
        ("Ranking: 1 > 2 > 3\nRanking: unclear", None),
        ("Ranking: 1 = 2 > 3", None),
        ("Ranking: 1, 2, 3", None),
        ("Ranking: 1 > 2 > 3 > 4", None),
        ("Ranking: ١ > ٢ > ٣", None),
        ("Ranking: " + "1 > " * 50_000, None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_reading(text: str, order: tuple[int, ...] | None) -> None:
    assert read_ranking("Ranking: {answer}", 3, text) == order


def test_the_error_is_that_of_the_rounds() -> None:
    """Three answers, each in each place once, by a judge that looks at places: shares of 1, 1/2 and 0."""
    scores, _ = ranked(group(*FIVE[:3]), first_is_best, rounds=3)
    assert [score.value for score in scores] == [0.5] * 3
    assert [score.uncertainty for score in scores] == pytest.approx([math.sqrt(0.5 / 2 / 3)] * 3)
