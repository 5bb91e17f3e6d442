"""MT-Bench's agreement against plain loops over votes, and the rule of two games."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evals.benchmarks.judging.made import cases, numbers, outcomes, run, written
from tests.evals.benchmarks.preferences.conftest import outcome_of

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.people import MtBench, judged, vote_of
from adjudge.statistics.intervals import NO_DRAWS

MODELS = ("alpha", "beta", "gamma")
WINNER = st.sampled_from(["model_a", "model_b", "tie"])
VOTE = st.tuples(
    st.integers(1, 2),
    st.integers(1, 2),
    st.sampled_from([("alpha", "beta"), ("beta", "alpha"), ("gamma", "alpha")]),
    WINNER,
)


def vote(question: int, turn: int, models: tuple[str, str], winner: str, judge: Any = "expert_1") -> dict[str, Any]:
    names = {"model_a": models[0], "model_b": models[1]}
    return {"question_id": question, "turn": turn, **names, "winner": winner, "judge": judge}


def games(question: int, turn: int, models: tuple[str, str], first: str, second: str) -> dict[str, Any]:
    names = {"model_1": models[0], "model_2": models[1]}
    return {"question_id": question, "turn": turn, **names, "g1_winner": first, "g2_winner": second}


def named(row: dict[str, Any]) -> str:
    """The winning model's name, or tie."""
    return str(row.get(row["winner"], "tie"))


def agreement(judge: dict[Any, str | None], votes: list[dict[str, Any]], skip: str) -> float | None:
    """Agreement of one judge with people, counted pair by pair."""
    right = count = 0
    for row in votes:
        said = judge[key_of(row)]
        if skip in (said, named(row)):
            continue
        count += 1
        right += said == named(row)
    return right / count if count else None


def among_people(votes: list[dict[str, Any]], skip: str) -> float | None:
    right = count = 0
    for at, one in enumerate(votes):
        for other in votes[:at]:
            if key_of(one) == key_of(other) and skip not in (named(one), named(other)):
                count += 1
                right += named(one) == named(other)
    return right / count if count else None


def key_of(row: dict[str, Any]) -> Any:
    return row["question_id"], row["turn"], *sorted((row["model_a"], row["model_b"]))


@given(st.lists(VOTE, min_size=1, max_size=25), st.data())
def test_agreement_equals_plain_loops(rows: list[Any], data: st.DataObject) -> None:
    votes = [vote(*row) for row in rows]
    judge: dict[Any, str | None] = {}
    made = []
    for row, case in zip(votes, cases(MtBench(), votes), strict=True):
        pair = sorted((row["model_a"], row["model_b"]))
        if key_of(row) not in judge:
            judge[key_of(row)] = data.draw(st.sampled_from([*pair, "tie", None]))
        said = judge[key_of(row)]
        first = 0.5 if said == "tie" else float(said == row["model_a"])
        made.append(outcome_of(case, (None, None) if said is None else (first, 1 - first), compared=True))
    found = numbers(MtBench().measures(made, NO_DRAWS))
    assert found["agreement S1", ""] == pytest.approx(agreement(judge, votes, "nothing"))
    assert found["people S1", ""] == same(among_people(votes, "nothing"))
    assert found["agreement S2", ""] == same(agreement(judge, votes, "tie"))
    assert found["people S2", ""] == same(among_people(votes, "tie"))
    for turn in {row["turn"] for row in votes}:
        if len({row["turn"] for row in votes}) > 1:
            own = [row for row in votes if row["turn"] == turn]
            assert found["agreement S1", f"turn {turn}"] == pytest.approx(agreement(judge, own, "nothing"))
            assert found["people S2", f"turn {turn}"] == same(among_people(own, "tie"))
    for model in {model for row in votes for model in (row["model_a"], row["model_b"])}:
        verdicts = [one for key, one in judge.items() if model in key and one is not None]
        won, tied, n = verdicts.count(model), verdicts.count("tie"), len(verdicts)
        assert found["win rate", model] == same(won / n if n else None)
        assert found["adjusted win rate", model] == same((won + tied / 2) / n if n else None)
        assert found["loss rate", model] == same((n - won - tied) / n if n else None)


def same(value: float | None) -> Any:
    return None if value is None else pytest.approx(value)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("model_1", "model_1", 1),
        ("model_2", "model_2", -1),
        ("model_1", "model_2", 0),
        ("tie", "model_1", 0),
        ("model_2", "tie", 0),
        ("tie", "tie", 0),
        ("error", "model_1", None),
        ("model_1", "error", None),
    ],
)
def test_a_win_needs_both_games(first: str, second: str, said: int | None) -> None:
    (outcome,) = outcomes(MtBench(), [games(81, 1, ("alpha", "beta"), first, second)])
    assert judged(outcome) == said
    # the same games as a vote on (beta, alpha) would have them: the other way round
    turned = vote_of(games(81, 1, ("alpha", "beta"), first, second)).stored("beta")
    (case,) = MtBench().cases(vote(81, 1, ("beta", "alpha"), "tie"), RowPlace(number=0))
    assert judged(outcome_of(case, [one.value for one in turned], compared=True)) == (None if said is None else -said)


def test_a_game_counts_for_the_model_it_shows_first() -> None:
    stored = vote_of(games(81, 1, ("alpha", "beta"), "model_1", "tie"))
    assert [one.value for one in stored.stored("alpha")] == [1.0, 0.5]
    assert [one.value for one in stored.stored("beta")] == [0.5, 1.0]


def test_win_rates_of_a_judges_games(tmp_path: Path) -> None:
    rows = [
        games(1, 1, ("alpha", "beta"), "model_1", "model_1"),
        games(2, 1, ("beta", "alpha"), "model_1", "model_2"),
        games(3, 2, ("alpha", "beta"), "error", "model_1"),
        games(4, 2, ("gamma", "alpha"), "model_1", "model_1"),
    ]
    result = run(MtBench(), written(tmp_path / "games.json", rows))
    found = numbers(result.measures)
    assert found["adjusted win rate", "alpha"] == pytest.approx(1.5 / 3)
    assert found["win rate", "gamma"] == 1.0
    assert (found["win rate", "beta"], found["adjusted win rate", "beta"]) == (0.0, 0.25)
    assert ("agreement S1", "") not in found
    assert result.counts.failed == 1


def test_judgments_are_joined_whichever_model_is_named_first(tmp_path: Path) -> None:
    people = [
        vote(1, 1, ("alpha", "beta"), "model_a"),
        vote(1, 1, ("alpha", "beta"), "tie (inconsistent)", "expert_2"),
        vote(1, 2, ("alpha", "beta"), "model_b", "author_1"),
        vote(2, 1, ("alpha", "beta"), "model_b"),
        vote(3, 1, ("alpha", "beta"), "model_b"),
    ]
    theirs = [games(1, 1, ("beta", "alpha"), "model_2", "model_2"), vote(2, 1, ("beta", "alpha"), "model_a", ["gpt-4"])]
    judgments = written(tmp_path / "j.json", theirs)
    result = run(MtBench(judgments=judgments), written(tmp_path / "h.json", people))
    found = numbers(result.measures)
    assert found["agreement S1", ""] == pytest.approx(2 / 4)  # question 3 has no judgment, and agrees with nobody
    assert found["agreement S2", ""] == pytest.approx(2 / 3)
    assert found["no verdict", ""] == pytest.approx(1 / 4)
    assert "1 rows are not part" in result.notes[0]
    everybody = numbers(run(MtBench(judgments=judgments, people="all"), str(tmp_path / "h.json")).measures)
    assert everybody["agreement S1", "turn 2"] == 0.0
    with pytest.raises(ValueError, match="second one for"):
        MtBench(judgments=written(tmp_path / "twice.json", [theirs[0], theirs[0]]))
    with pytest.raises(ValueError, match="people='experts'"):
        MtBench(people="experts")  # type: ignore[arg-type]


def test_a_scorer_sees_the_conversation_up_to_the_turn(tmp_path: Path) -> None:
    def talk(*answers: str) -> list[dict[str, str]]:
        return [
            {"role": role, "content": text}
            for at, answer in enumerate(answers)
            for role, text in (("user", f"ask {at}"), ("assistant", answer))
        ]

    row = {
        **vote(1, 1, ("alpha", "beta"), "model_a"),
        "conversation_a": talk("LOUD", "quiet"),
        "conversation_b": talk("quiet", "LOUD"),
    }
    later = {**row, "turn": 2, "winner": "model_b"}
    result = run(MtBench(), written(tmp_path / "h.json", [row, later]), "tests.evals.benchmarks.judging.made:Shouts")
    assert numbers(result.measures)["agreement S1", ""] == 1.0
    assert result.counts.failed == 0
    short = {**later, "conversation_b": talk("quiet")}
    with pytest.raises(ValueError, match="'conversation_b' holds"):
        MtBench().cases(short, RowPlace(number=0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_b": "alpha"}, "both models are 'alpha'"),
        ({"model_a": None}, "the column 'model_a' is missing"),
        ({"turn": "second"}, "must be a whole number"),
        ({"question_id": None}, "the column 'question_id' is missing"),
        ({"conversation_a": "text"}, "'conversation_a' holds"),
        ({"conversation_a": [{"role": "user"}, 3]}, "give role and content"),
    ],
)
def test_rows_that_are_none_say_what_is_wrong(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MtBench().cases({**vote(1, 1, ("alpha", "beta"), "tie"), **change}, RowPlace(number=0))
