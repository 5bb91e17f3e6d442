from __future__ import annotations

import random
from typing import Any

import pytest

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.rm_bench import PARTS, RmBench
from adjudge.pages.figures import Grid
from adjudge.statistics.intervals import NO_DRAWS, Draws

Row = dict[str, Any]


def rows_of(seed: int, parts: tuple[str, ...] = PARTS) -> list[Row]:
    """Rows of domains of uneven size, with ties and missing scores."""
    draw = random.Random(seed)
    return [
        {
            "id": number,
            "domain": part,
            "score_chosen": [draw.choice([0, 1, 2, 3, 3.5, None]) for _ in range(3)],
            "score_rejected": [draw.choice([0, 1, 2, 3]) for _ in range(3)],
        }
        for part in parts
        for number in range(draw.randrange(4, 20))
    ]


def plain(rows: list[Row]) -> dict[str, float]:
    """Easy, normal, hard and their mean, cell by cell."""
    cell = [[0.0] * 3 for _ in range(3)]
    for row in rows:
        for i in range(3):
            for j in range(3):
                chosen, rejected = row["score_chosen"][i], row["score_rejected"][j]
                if chosen is not None and chosen > rejected:
                    cell[i][j] += 1 / len(rows)
    easy = (cell[1][0] + cell[2][0] + cell[2][1]) / 3
    normal = (cell[0][0] + cell[1][1] + cell[2][2]) / 3
    hard = (cell[0][1] + cell[0][2] + cell[1][2]) / 3
    return {"easy": easy, "normal": normal, "hard": hard, "accuracy": (easy + normal + hard) / 3}


@pytest.mark.parametrize("seed", range(4))
def test_numbers_are_those_of_the_plain_matrix(outcomes: Any, numbers: Any, seed: int) -> None:
    rows = rows_of(seed)
    benchmark = RmBench()
    measures = benchmark.measures(outcomes(benchmark, rows), Draws(rounds=30))
    found = numbers(measures)
    per = {part: plain([row for row in rows if row["domain"] == part]) for part in PARTS}
    pooled = plain([row for row in rows if row["domain"].startswith("safety")])
    for level in ("accuracy", "easy", "normal", "hard"):
        safety = (per["safety-refuse"][level] + per["safety-response"][level]) / 2
        domains = [per["chat"][level], per["code"][level], per["math"][level]]
        assert found[level, "chat"] == pytest.approx(per["chat"][level])
        assert found[level, "safety"] == pytest.approx(safety)
        assert found[level, ""] == pytest.approx((sum(domains) + safety) / 4)
        if level == "accuracy":
            expected = (sum(domains) + pooled[level]) / 4
            assert found["accuracy, safety pooled", ""] == pytest.approx(expected)
    assert all(measure.published for measure in measures if measure.name in ("accuracy", "easy", "normal", "hard"))


def test_part_of_the_benchmark_has_no_published_mean(outcomes: Any) -> None:
    benchmark = RmBench()
    made = outcomes(benchmark, rows_of(1, ("chat", "safety-refuse")))
    published = {(one.name, one.part): one.published for one in benchmark.measures(made, NO_DRAWS)}
    assert published["accuracy", "chat"]
    assert not published["accuracy", ""]
    assert not published["accuracy", "safety"], "safety-response is missing"
    assert ("accuracy, safety pooled", "") not in published


def test_a_scorer_of_style_alone_is_right_on_easy_wrong_on_hard_and_tied_between(outcomes: Any, numbers: Any) -> None:
    rows = [{"domain": "chat", "score_chosen": [1, 2, 3], "score_rejected": [1, 2, 3]} for _ in range(4)]
    benchmark = RmBench()
    made = outcomes(benchmark, rows)
    measures = benchmark.measures(made, NO_DRAWS)
    found = numbers(measures)
    assert [found[name, ""] for name in ("easy", "normal", "hard")] == [1.0, 0.0, 0.0]
    assert found["ties", ""] == pytest.approx(3 / 9)
    assert benchmark.credit(made[0]) == pytest.approx(3 / 9)
    (figure,) = benchmark.figures(made, measures)
    assert isinstance(figure, Grid)
    assert figure.values == ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 1.0, 0.0))


def test_a_missing_score_is_counted_and_wrong(outcomes: Any, numbers: Any) -> None:
    rows = [{"domain": "chat", "score_chosen": [None, 9, 9], "score_rejected": [None, 1, 1]}]
    benchmark = RmBench()
    made = outcomes(benchmark, rows)
    found = numbers(benchmark.measures(made, NO_DRAWS))
    assert found["no verdict", ""] == 1.0
    assert found["normal", ""] == pytest.approx(2 / 3)
    assert benchmark.credit(made[0]) is None


def test_the_domain_comes_from_a_column_the_file_or_an_option() -> None:
    row = {"prompt": "p", "chosen": ["a", "b", "c"], "rejected": ["d", "e", "f"]}

    def part(benchmark: RmBench, row: Row, file: str) -> str:
        (case,) = benchmark.cases(row, RowPlace(number=0, file=file))
        assert [sample.response for sample in case.samples] == list("abcdef")
        return case.part

    assert part(RmBench(), row, "safety-refuse_filtered.json") == "safety-refuse"
    assert part(RmBench(), {**row, "domain": "math"}, "chat_filtered.json") == "math"
    assert part(RmBench(domain="code"), row, "rows.jsonl.gz") == "code"


@pytest.mark.parametrize(
    ("row", "file", "message"),
    [
        ({"prompt": "p", "chosen": ["a"] * 3, "rejected": ["b"] * 3}, "total_dataset.json", "'total_dataset' is none"),
        ({"prompt": "p", "chosen": ["a"] * 2, "rejected": ["b"] * 3}, "chat.json", "has 2 chosen and 3 rejected"),
        ({"prompt": "p", "chosen": ["a"] * 3}, "chat.json", "'rejected' is missing"),
        ({"prompt": "p", "chosen": "abc", "rejected": ["b"] * 3}, "chat.json", "'chosen' holds 'abc'"),
        ({"score_chosen": [1, 2, 3]}, "chat.json", "'score_rejected' is missing"),
        ({"score_chosen": [1, 2], "score_rejected": [1, 2, 3]}, "chat.json", "2 scores for 3 responses"),
    ],
)
def test_a_row_that_does_not_fit_says_why(row: Row, file: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(RmBench().cases(row, RowPlace(number=0, file=file)))
    with pytest.raises(ValueError, match="domain='safety'; it must be one of chat"):
        RmBench(domain="safety")  # type: ignore[arg-type]
