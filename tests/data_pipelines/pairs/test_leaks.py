"""Planted leaks are found, clean data pass, and the numbers are those of a count by hand."""

from __future__ import annotations

import json
import random
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from adjudge.data_pipelines.pairs.config import LeaksConfig
from adjudge.data_pipelines.pairs.leaks import Check, LeakReport, auc, clustered_share, find_leaks, leaks_between

WORDS = "apple river stone cloud engine paper silver garden window mountain pencil shadow bridge candle forest".split()


def pairs(count: int, seed: int) -> list[dict[str, Any]]:
    """Pairs about different things, balanced in place and length."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        prompt = f"Question {seed}-{number}: " + " ".join(draw.choices(WORDS, k=20))
        long, short = " ".join(draw.choices(WORDS, k=30)), " ".join(draw.choices(WORDS, k=10))
        chosen, rejected = (long, short) if number % 2 else (short, long)
        found.append({"prompt": prompt, "chosen": chosen, "rejected": rejected, "first": number % 4 < 2})
    return found


def checked(train: Sequence[Mapping[str, Any]], test: Sequence[Mapping[str, Any]], **options: Any) -> LeakReport:
    return leaks_between(train, test, LeaksConfig(train="train", test="test", **options))


def check(report: LeakReport, name: str) -> Check:
    (found,) = [one for one in report.checks if one.name == name]
    return found


def test_clean_data_pass() -> None:
    report = checked(pairs(200, 1), pairs(100, 2), first_column="first")
    assert not report.found, report.lines()
    assert check(report, "position_train").numbers["value"] == 0.5
    assert check(report, "length_test").numbers["value"] == 0.5
    assert report.lines()[-1] == "nothing was found"


def test_a_prompt_in_another_dress_is_found() -> None:
    train, test = pairs(50, 1), pairs(50, 2)
    train[7]["prompt"] = "  " + test[3]["prompt"].upper().replace(" ", ",  ") + " !"
    train[8]["prompt"] = [{"role": "system", "content": "x"}, {"role": "user", "content": test[4]["prompt"]}]
    report = checked(train, test)
    assert (check(report, "prompts").found, check(report, "prompts").numbers["exact"]) == (True, 2)
    assert check(report, "near_prompts").numbers["near"] == 0
    assert report.found


def test_a_near_duplicate_is_found_and_shown() -> None:
    train, test = pairs(50, 1), pairs(50, 2)
    train[7]["prompt"] = test[3]["prompt"] + " please"
    report = checked(train, test)
    assert check(report, "prompts").numbers["exact"] == 0
    assert check(report, "near_prompts").numbers["near"] == 1
    assert check(report, "prompts").numbers["examples"] == [
        {"test": test[3]["prompt"], "train": train[7]["prompt"], "similarity": pytest.approx(19 / 20, abs=0.03)}
    ]
    assert not checked(train, test, threshold=0.99).found


def test_contradictions_are_found_within_a_file_and_between_the_two() -> None:
    train, test = pairs(20, 1), pairs(20, 2)
    one = train[3]
    train.append({**one, "chosen": one["rejected"], "rejected": one["chosen"]})
    assert check(checked(train, test), "contradictions").numbers["reversed"] == 2
    other = test[5]
    train[-1] = {**other, "chosen": other["rejected"], "rejected": other["chosen"]}
    assert check(checked(train, test), "contradictions").numbers["reversed"] == 2
    train[-1] = other
    assert check(checked(train, test), "contradictions").found is False
    assert check(checked(train, test), "pairs").numbers["common"] == 1
    assert check(checked([*train, train[0]], test), "repeated").numbers["repeated"] == 2


def test_other_questions_of_the_same_words_contradict_nothing() -> None:
    sums = {"prompt": "What is 2 + 2?", "chosen": "4", "rejected": "0"}
    differences = {"prompt": "What is 2 - 2?", "chosen": "0", "rejected": "4"}
    report = checked([sums, {**sums, "prompt": " What is  2 + 2?"}], [differences])
    assert check(report, "contradictions").numbers["reversed"] == 0
    assert check(report, "repeated").numbers["repeated"] == 1


def test_a_column_of_places_that_nobody_has_is_refused() -> None:
    with pytest.raises(ValueError, match="--first-column 'frist'"):
        checked(pairs(10, 1), pairs(10, 2), first_column="frist")


def test_place_and_length_that_give_the_label_away_are_found() -> None:
    train = [{**pair, "first": number % 10 > 0} for number, pair in enumerate(pairs(300, 1))]
    test = [
        {**pair, "chosen": max(pair["chosen"], pair["rejected"], key=len), "rejected": "no"} for pair in pairs(100, 2)
    ]
    report = checked(train, test, first_column="first")
    assert check(report, "position_train").found
    assert check(report, "position_train").numbers["value"] == pytest.approx(0.9)
    assert check(report, "length_test").found
    assert not check(report, "length_train").found
    assert check(checked(train, test), "position_train").found is None  # nobody said which column tells


def test_a_few_pairs_are_no_evidence() -> None:
    few = [{"prompt": f"p{n}", "chosen": "long answer", "rejected": "short"} for n in range(3)]
    assert not check(checked(few, pairs(10, 2)), "length_train").found
    one_prompt = [{"prompt": "p", "chosen": "long answer", "rejected": f"no {n}"} for n in range(500)]
    assert not check(checked(one_prompt, pairs(10, 2)), "length_train").found  # 500 pairs of one prompt are one


def test_rated_answers_are_checked_too() -> None:
    rated = [{"prompt": f"p{n}", "response": "x" * (20 + 10 * (n % 2)), "label": n % 2} for n in range(200)]
    report = checked(rated, pairs(50, 2))
    assert check(report, "length_train").found
    assert check(report, "length_train").numbers["value"] == 1.0
    assert check(report, "labels_train").found is False
    ones = [{**row, "label": True} for row in rated]
    assert check(checked(ones, pairs(50, 2)), "labels_train").found


def test_what_cannot_be_used_is_counted_and_an_empty_side_refused() -> None:
    train: list[Any] = [*pairs(10, 1), {"prompt": "p"}, {"chosen": "a", "rejected": "b"}, None]
    train.append({"prompt": "p", "chosen": {"x": 7}, "rejected": "b"})
    train.append({"prompt": "p", "chosen": [{"role": "assistant", "content": [1]}], "rejected": "b"})
    report = checked(train, pairs(10, 2))
    assert report.unusable["train"] == {
        "the response is null; it must be text or chat turns with a role": 1,
        "the two texts have no common beginning, and there is no prompt": 1,
        "unreadable": 1,
        "the response is an object with the fields x; it must be text or chat turns with a role": 1,
        "a turn of the response has the content a list; it must be text or parts": 1,
    }
    assert any("could not be used" in line for line in report.lines())
    with pytest.raises(ValueError, match="test holds neither pairs"):
        checked(pairs(10, 1), [])
    with pytest.raises(ValueError, match="train holds neither pairs"):
        checked([{"text": "x"}], pairs(10, 2))


def test_conversations_that_begin_alike_have_their_beginning_for_a_prompt() -> None:
    def row(question: str) -> dict[str, Any]:
        turn = {"role": "user", "content": question}
        answers = ([turn, {"role": "assistant", "content": text}] for text in ("yes, of course", "no"))
        return dict(zip(("chosen", "rejected"), answers, strict=True))

    report = checked([row("same?")], [row("same?"), row("other?")])
    assert check(report, "prompts").numbers["exact"] == 1
    assert check(report, "pairs").numbers["common"] == 1


def test_files_are_read_and_the_report_is_plain_json(tmp_path: Path) -> None:
    names = []
    for name, seed in (("train", 1), ("test", 2)):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in pairs(30, seed)) + "not json\n", encoding="utf-8")
        names.append(str(path))
    report = find_leaks(LeaksConfig(train=names[0], test=names[1]))
    data = json.loads(json.dumps(report.to_dict()))
    assert data["found"] is False
    assert data["unusable"]["train"] == {"unreadable": 1}
    assert data["checks"]["prompts"]["prompts"] == 30


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"threshold": 0.0}, "--threshold"),
        ({"ngram": 0}, "--ngram"),
        ({"balance": 0.5}, "--balance"),
        ({"max_row_mb": 0}, "--max-row-mb"),
    ],
)
def test_an_option_out_of_range_is_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        LeaksConfig(train="a", test="b", **options)


def test_the_area_under_the_curve_is_that_of_mann_and_whitney() -> None:
    draw = np.random.default_rng(0)
    good, bad = draw.integers(0, 20, 300).astype(float), draw.integers(0, 15, 200).astype(float)
    found = auc(array("d", good), array("d", bad))
    assert found.value == pytest.approx(mannwhitneyu(good, bad).statistic / (300 * 200))
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.known < found.high


def test_clusters_widen_the_interval_as_a_bootstrap_over_clusters_does() -> None:
    draw = np.random.default_rng(0)
    owners = np.repeat(np.arange(100), 8)
    values = (draw.random(100)[owners] < 0.6).astype(float)  # the eight pairs of a prompt agree
    found = clustered_share(array("d", values), array("Q", owners.tolist()))
    drawn = [values.reshape(100, 8)[draw.integers(100, size=100)].mean() for _ in range(2000)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert found.low == pytest.approx(low, abs=0.02)
    assert found.high == pytest.approx(high, abs=0.02)
    alone = clustered_share(array("d", values), array("Q", range(800)))
    assert alone.low is not None
    assert alone.low > low + 0.04
