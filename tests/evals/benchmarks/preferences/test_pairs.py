from __future__ import annotations

import random
from typing import Any

import pytest

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.pairs import Pairs
from adjudge.io.preferences import PreferenceColumns, better_of
from adjudge.statistics.intervals import NO_DRAWS, Draws

Row = dict[str, Any]


def labelled(seed: int) -> list[Row]:
    draw = random.Random(seed)
    return [
        {
            "prompt": f"prompt {draw.randrange(30)}",
            "response_a": "a",
            "response_b": "b",
            "winner": draw.choice(["model_a", "model_b", "tie"]),
            "score_a": draw.choice([0, 1, None]),
            "score_b": draw.choice([0, 1]),
            "part": draw.choice(["x", "y"]),
        }
        for _ in range(150)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_rates_are_those_of_a_plain_count(outcomes: Any, numbers: Any, seed: int) -> None:
    rows = labelled(seed)
    benchmark = Pairs(part_column="part")
    made = outcomes(benchmark, rows)
    found = numbers(benchmark.measures(made, Draws(rounds=30)))
    said = []
    for row in rows:
        one, other = row["score_a"], row["score_b"]
        said.append(None if one is None else "model_a" if one > other else "model_b" if one < other else "tie")
    decided = [at for at, row in enumerate(rows) if row["winner"] != "tie"]
    right = [said[at] == rows[at]["winner"] for at in decided]
    half = sum(0.5 for at in decided if said[at] == "tie")
    assert found["accuracy", ""] == pytest.approx(sum(right) / len(decided))
    assert found["accuracy, ties as half", ""] == pytest.approx((sum(right) + half) / len(decided))
    agreed = [one == row["winner"] for one, row in zip(said, rows, strict=True)]
    assert found["agreement, ties included", ""] == pytest.approx(sum(agreed) / 150)
    assert found["ties", ""] == pytest.approx(said.count("tie") / 150)
    assert found["no verdict", ""] == pytest.approx(said.count(None) / 150)
    own = [hit for hit, at in zip(right, decided, strict=True) if rows[at]["part"] == "x"]
    assert found["accuracy", "x"] == pytest.approx(sum(own) / len(own))
    for one, row, spoken in zip(made, rows, said, strict=True):
        undecided = spoken is None or row["winner"] == "tie"
        assert benchmark.credit(one) == (None if undecided else float(spoken == row["winner"]))
    assert "first" in benchmark.baselines(made)


def test_chosen_and_rejected_need_no_label_and_no_place_gives_them_away(outcomes: Any, numbers: Any) -> None:
    rows = [
        {"question": "q", "chosen": "long enough", "rejected": "no", "chosen_score": 2, "rejected_score": 1},
        {"question": "q", "chosen": "no", "rejected": "long enough", "chosen_score": 1, "rejected_score": 1},
    ]
    benchmark = Pairs()
    made = outcomes(benchmark, rows)
    found = numbers(benchmark.measures(made, NO_DRAWS))
    assert (found["accuracy", ""], found["accuracy, ties as half", ""], found["ties", ""]) == (0.5, 0.75, 0.5)
    assert ("agreement, ties included", "") not in found, "no gold is a tie"
    trivial = benchmark.baselines(made)
    assert set(trivial) == {"longer", "shorter", "random"}
    assert numbers(benchmark.measures(trivial["longer"], NO_DRAWS))["accuracy", ""] == 0.5
    assert len({one.cluster for one in made}) == 1, "one prompt"


def test_every_column_can_be_named(outcomes: Any) -> None:
    row = {
        "meta": {"ask": "q", "who": 7}, "x": "one", "y": [{"role": "assistant", "content": "two"}], "verdict": 1,
        "rx": 0.5, "ry": None, "kind": "k", "family": "f",
    }  # fmt: skip
    benchmark = Pairs(
        prompt_column="meta.ask",
        id_column="meta.who",
        first_column="x",
        second_column="y",
        label_column="verdict",
        first_label=("0",),
        second_label=("1",),
        score_column=("rx", "ry"),
        part_column="kind",
        cluster_column="family",
    )
    (case,) = benchmark.cases(row, RowPlace(number=0))
    assert (case.id, case.part, case.cluster, case.gold) == ("7", "k", "f", {"better": 1})
    assert [sample.response for sample in case.samples] == ["one", "two"]
    assert [one.value for one in case.stored] == [0.5, None]


def test_transcripts_are_cut_where_they_part() -> None:
    start = "\n\nHuman: hi\n\nAssistant: hello\n\nHuman: how?\n\nAssistant:"
    row = {"chosen": f"{start} Like this.", "rejected": f"{start} Like that, and so on."}
    (case,) = Pairs().cases(row, RowPlace(number=0))
    assert case.samples[0].prompt == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "how?"},
    ]
    assert [sample.response for sample in case.samples] == ["Like this.", "Like that, and so on."]
    early = {"chosen": f"{start} Like this.", "rejected": "\n\nHuman: hi\n\nAssistant: bye\n\nHuman: what?"}
    (case,) = Pairs().cases(early, RowPlace(number=0))
    assert case.samples[0].prompt == [{"role": "user", "content": "hi"}]
    assert case.samples[1].response == [{"role": "assistant", "content": "bye"}, {"role": "user", "content": "what?"}]
    (case,) = Pairs().cases({"chosen": start, "rejected": start}, RowPlace(number=0))
    assert [sample.response for sample in case.samples] == ["", ""], "the same twice"


def test_texts_without_a_prompt_are_cut_where_they_part_or_refused() -> None:
    (case,) = Pairs().cases({"chosen": "Why? Because.", "rejected": "Why? No."}, RowPlace(number=0))
    assert (case.samples[0].prompt, [one.response for one in case.samples]) == ("Why?", ["Because.", "No."])
    with pytest.raises(ValueError, match="no common beginning, and there is no prompt"):
        list(Pairs().cases({"chosen": "a", "rejected": "b"}, RowPlace(number=0)))


def test_a_ranked_list_counts_as_all_its_pairs() -> None:
    answers = [{"answer": "b", "rank": 2.0}, {"answer": "a", "rank": 1.0}, {"answer": "c", "rank": 2.0}]
    cases = list(Pairs().cases({"prompt": "\n\nHuman: q\n\nAssistant: ", "answers": answers}, RowPlace(number=4)))
    assert [(case.id, case.gold["better"]) for case in cases] == [("4:1-0", 0), ("4:1-2", 0)]
    assert [[sample.response for sample in case.samples] for case in cases] == [["a", "b"], ["a", "c"]]
    assert all(case.samples[0].prompt == [{"role": "user", "content": "q"}] for case in cases)


@pytest.mark.parametrize(
    ("labels", "label", "better"),
    [
        (PreferenceColumns(), "A", 0),
        (PreferenceColumns(), " model_B ", 1),
        (PreferenceColumns(), "tie (bothbad)", None),
        (PreferenceColumns(first_label=("0",), second_label=("1",), tie_label=("2",)), 0, 0),
        (PreferenceColumns(first_label=("0",), second_label=("1",), tie_label=("2",)), 1.0, 1),
        (PreferenceColumns(first_label=("0",), second_label=("1",), tie_label=("2",)), "2", None),
        (PreferenceColumns(first_label=("true",), second_label=("false",)), False, 1),
        (PreferenceColumns(first_label=("better", "much better"), second_label=("worse",)), "Much Better", 0),
    ],
)
def test_labels(labels: PreferenceColumns, label: Any, better: int | None) -> None:
    assert better_of(label, "", labels) == better


@pytest.mark.parametrize(
    ("labels", "label"),
    [
        (PreferenceColumns(), 0),
        (PreferenceColumns(), 1),
        (PreferenceColumns(), ""),
        (PreferenceColumns(), {"a": 1}),
        (PreferenceColumns(), float("nan")),
        (PreferenceColumns(first_label=("x",), second_label=("y",)), "A"),
        (PreferenceColumns(first_label=("x",), second_label=("y",)), "tie"),
    ],
)
def test_a_number_says_nothing_until_its_meaning_is_given(labels: PreferenceColumns, label: Any) -> None:
    with pytest.raises(ValueError, match="say what labels mean with --first-label"):
        better_of(label, "", labels)


@pytest.mark.parametrize(
    ("options", "row", "message"),
    [
        ({}, {}, "none of the columns chosen, "),
        ({}, {"chosen": "a"}, "name it with --rejected-column"),
        ({"chosen_column": "c"}, {"c": "a"}, "none of the columns rejected"),
        ({"chosen_column": "c", "rejected_column": "r"}, {"r": "b"}, "the column 'c' is missing"),
        ({}, {"response_a": "a", "response_b": "b"}, "name it with --label-column"),
        ({}, {"response_a": "a", "response_b": "b", "label": 3}, "the label 3 is none of"),
        ({"part_column": "p"}, {"prompt": "q", "chosen": "a", "rejected": "b"}, "the column 'p' is missing"),
        ({"id_column": "i"}, {"prompt": "", "chosen": "a", "rejected": "b", "i": 1.5}, "must be a name"),
        (
            {},
            {"prompt": "", "chosen": "a", "rejected": "b", "score_chosen": "x", "score_rejected": 1},
            "a score must be",
        ),
        ({}, {"chosen": b"a", "rejected": "b"}, "a bytes; it must be text or chat turns"),
        ({"first_column": "x"}, {"x": "a"}, "name the other one too"),
    ],
)
def test_a_row_that_does_not_fit_says_why(options: dict[str, Any], row: Row, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(Pairs(**options).cases(row, RowPlace(number=0)))


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="names 1 columns"):
        Pairs(score_column=("a",))
    with pytest.raises(ValueError, match="both kinds are given"):
        Pairs(chosen_column="a", first_column="b")


def test_text_that_looks_like_a_format_or_markup_stays_text(outcomes: Any) -> None:
    hostile = "{0} %s [bold]x[/bold] <script>\ud800\x00"
    benchmark = Pairs()
    (case,) = benchmark.cases({"prompt": hostile, "chosen": hostile, "rejected": hostile}, RowPlace(number=0))
    assert [sample.response for sample in case.samples] == [hostile, hostile]
    with pytest.raises(ValueError, match="is none of"):
        list(benchmark.cases({"response_a": hostile, "response_b": "b", "label": hostile}, RowPlace(number=0)))
