"""Paired comparisons against plain references: SciPy's binomial test, permutations by hand, and known laws."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest
from tests.evals.benchmarks.toys import HOME, Numbers, rows, run, write

from adjudge.evals.benchmarks.case import Outcome
from adjudge.evals.benchmarks.versus import EXCHANGE, MCNEMAR, PERMUTATION, Sides, compared
from adjudge.evals.reports.result import Comparison
from adjudge.statistics.intervals import NO_DRAWS, Draws

DRAWS = Draws(rounds=500, seed=1)


def outcome(index: int, right: float | None, *, cluster: str = "", part: str = "", tied_gold: bool = False) -> Outcome:
    """A pair whose first response is better, and how right the scorer was."""
    values = {1: (1.0, 0.0), 0: (0.0, 1.0), 0.5: (1.0, 1.0), None: (None, 1.0)}[right]
    return Outcome(
        id=str(index), gold="tie" if tied_gold else 0, cluster=cluster or str(index), part=part, values=values,
        statuses=("failed" if right is None else "scored", "scored"), reasons=("", ""), cut_off=(False, False),
        steps=((), ()), sizes=(1, 1), step_counts=(1, 1),
    )  # fmt: skip


class Tied(Numbers):
    """Pairs whose gold may be a tie, which earn nothing."""

    def credit(self, outcome: Outcome) -> float | None:
        return None if outcome.gold == "tie" else super().credit(outcome)


def versus(
    first: Sequence[float | None],
    second: Sequence[float | None],
    *,
    clusters: Sequence[str] = (),
    parts: Sequence[str] = (),
    benchmark: Numbers | None = None,
    draws: Draws = DRAWS,
) -> tuple[Comparison, ...]:
    """Compare two scorers by how right they were."""
    made = [
        [
            outcome(
                index,
                right,
                cluster=clusters[index] if clusters else "",
                part=parts[index] if parts else "",
            )
            for index, right in enumerate(side)
        ]
        for side in (first, second)
    ]
    chosen = benchmark or Numbers()
    sides = Sides(benchmark=chosen, first=made[0], second=made[1], other="other")
    return compared(sides, chosen.measures(made[0], NO_DRAWS), draws)


def test_right_or_wrong_is_mcnemars_exact_test() -> None:
    draw = random.Random(3)
    for _ in range(20):
        first = [float(draw.random() < 0.7) for _ in range(60)]
        second = [float(draw.random() < 0.5) for _ in range(60)]
        (found,) = versus(first, second)
        wins = sum(one > other for one, other in zip(first, second, strict=True))
        losses = sum(one < other for one, other in zip(first, second, strict=True))
        assert found.test == MCNEMAR
        assert found.p == pytest.approx(binomtest(wins, wins + losses).pvalue)
        assert (found.first, found.second) == (sum(first) / 60, sum(second) / 60)
        assert found.difference.known == pytest.approx((wins - losses) / 60)
        assert found.difference.low is not None
        assert found.difference.high is not None
        assert found.difference.low < found.difference.known < found.difference.high


def exact_permutation(differences: Sequence[float], clusters: Sequence[str]) -> float:
    """The share of all ways to flip clusters that leave the sum as large; each way by itself."""
    sums: dict[str, float] = {}
    for difference, cluster in zip(differences, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + difference
    seen = abs(sum(sums.values()))
    ways = list(itertools.product((-1, 1), repeat=len(sums)))
    hits = sum(
        abs(sum(sign * value for sign, value in zip(way, sums.values(), strict=True))) >= seen - 1e-9 for way in ways
    )
    return hits / len(ways)


@pytest.mark.parametrize("ties", [True, False])
def test_ties_and_shared_clusters_are_a_permutation_of_clusters(ties: bool) -> None:
    draw = random.Random(5)
    first = [draw.choice([1, 1, 0.5 if ties else 0]) for _ in range(20)]
    second = [draw.choice([1, 0, 0.5 if ties else 0]) for _ in range(20)]
    clusters = [f"c{index // 2}" for index in range(20)]
    (found,) = versus(first, second, clusters=clusters)
    assert found.test == PERMUTATION
    differences = [one - other for one, other in zip(first, second, strict=True)]
    assert found.p == pytest.approx(exact_permutation(differences, clusters))


def test_a_missing_verdict_is_wrong_and_a_case_without_credit_does_not_count() -> None:
    (found,) = versus([1, None, 1, 0], [0, 1, None, 0])
    assert (found.first, found.second, found.difference.n) == (0.5, 0.25, 4)
    first = [outcome(0, 1), outcome(1, 1, tied_gold=True), outcome(2, None, tied_gold=True)]
    second = [outcome(0, 0), outcome(1, 0, tied_gold=True), outcome(2, 1, tied_gold=True)]
    sides = Sides(benchmark=Tied(), first=first, second=second, other="o")
    (found,) = [one for one in compared(sides, Tied().measures(first, NO_DRAWS), DRAWS) if one.name == "credit"]
    assert (found.first, found.second, found.difference.n) == (0.5, 0.0, 2)


def test_parts_are_tested_too_and_p_is_corrected_for_all() -> None:
    draw = random.Random(7)
    parts = [("x", "y", "z")[index % 3] for index in range(90)]
    first = [float(draw.random() < 0.9) for _ in range(90)]
    second = [float(draw.random() < 0.6) for _ in range(90)]
    found = versus(first, second, parts=parts)
    assert [one.part for one in found] == ["", "x", "y", "z"]
    for place, one in enumerate(found[1:]):
        assert one.first == pytest.approx(sum(first[place::3]) / 30)
        assert one.second == pytest.approx(sum(second[place::3]) / 30)
    ps = [one.p for one in found]
    ordered = sorted(range(4), key=lambda at: ps[at] or 0.0)
    largest = 0.0
    for rank, at in enumerate(ordered):  # Holm, by its definition
        largest = max(largest, min(1.0, (4 - rank) * (ps[at] or 0.0)))
        assert found[at].p_adjusted == pytest.approx(largest)


def test_a_headline_that_is_no_mean_of_credits_is_tested_by_exchange() -> None:
    parts = ["x"] * 4 + ["y"] * 8
    first = [1, 1, 1, 0, *[1, 0] * 4]
    second = [0, 1, 0, 0, *[0, 1, 0, 0] * 2]
    found = versus(first, second, parts=parts, benchmark=Numbers(sections=True), draws=Draws(rounds=4_000, seed=2))
    headline = found[0]
    assert (headline.name, headline.test) == ("mean of parts", EXCHANGE)
    assert headline.first == pytest.approx((3 / 4 + 4 / 8) / 2)
    assert headline.second == pytest.approx((1 / 4 + 2 / 8) / 2)
    weights = [0.5 / 4] * 4 + [0.5 / 8] * 8
    differences = [(one - other) * weight for one, other, weight in zip(first, second, weights, strict=True)]
    exact = exact_permutation(differences, [str(index) for index in range(12)])
    assert headline.p == pytest.approx(exact, abs=0.03)
    assert [one.test for one in found[1:]] == [MCNEMAR] * 3


def test_bounds_of_such_a_headline_are_those_of_its_standard_error() -> None:
    draw = random.Random(11)
    parts = ["x"] * 300 + ["y"] * 300
    first = [float(draw.random() < 0.8) for _ in range(600)]
    second = [float(draw.random() < 0.7) for _ in range(600)]
    headline = versus(first, second, parts=parts, benchmark=Numbers(sections=True))[0]
    if headline.name == "mean of parts":
        raise AssertionError("parts of one size make the mean of parts the mean credit")
    parts = ["x"] * 100 + ["y"] * 500
    headline = versus(first, second, parts=parts, benchmark=Numbers(sections=True))[0]
    assert headline.name == "mean of parts"
    variance = 0.0
    for some in (slice(0, 100), slice(100, 600)):
        differences = [one - other for one, other in zip(first[some], second[some], strict=True)]
        mean = sum(differences) / len(differences)
        variance += 0.25 * sum((one - mean) ** 2 for one in differences) / len(differences) ** 2
    low, high = headline.difference.low, headline.difference.high
    assert low is not None
    assert high is not None
    assert (high - low) / 2 == pytest.approx(1.96 * variance**0.5, rel=0.25)
    assert (high + low) / 2 == pytest.approx(headline.difference.known)


def test_two_equal_scorers_differ_by_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", rows())
    result = run(source, scorer="stored", against=f"{HOME}:Reader")
    assert {one.p for one in result.comparisons} == {1.0}
    assert {one.difference.value for one in result.comparisons} == {0.0}
    assert {one.other for one in result.comparisons} == {"reader"}


def test_against_another_scorer_a_file_or_stored_scores(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", rows())
    file = tmp_path / "scores.jsonl"
    write(
        file,
        [
            {"id": f"{index}/{place}", "value": value}
            for index, row in enumerate(rows())
            for place, value in enumerate(row["stored"])
        ],
    )
    by_scorer, by_file, by_stored = (
        run(source, scorer=f"{HOME}:Opposite", against=other).comparisons
        for other in (f"{HOME}:Reader", str(file), "stored")
    )

    def numbers(some: Sequence[Comparison]) -> list[dict[str, Any]]:
        return [{key: value for key, value in one.to_dict().items() if key != "other"} for one in some]

    assert numbers(by_scorer) == numbers(by_file) == numbers(by_stored)
    assert by_scorer[0].difference.known < 0
    assert by_scorer[0].p is not None
    assert by_scorer[0].p < 0.01


def test_a_note_says_how_many_tests_there_are(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", rows())
    result = run(source, scorer="stored", against=f"{HOME}:Opposite")
    assert any(note.startswith("4 comparisons.") for note in result.notes)


def test_without_resamples_there_are_no_bounds_and_exact_tests_alone() -> None:
    (found,) = versus([1, 0, 1], [0, 0, 1], draws=NO_DRAWS)
    assert (found.difference.low, found.p) == (None, 1.0)


def test_against_the_scores_in_another_input(tmp_path: Path) -> None:
    made = [{**row, "id": f"case {index}"} for index, row in enumerate(rows())]
    source = write(tmp_path / "in.jsonl", made)
    turned = [{**row, "stored": [-value for value in row["stored"]]} for row in made]
    other = write(tmp_path / "other.jsonl", turned[::-1])
    found = run(source, scorer="stored", against_input=other, batch_size=7)
    expected = run(source, scorer="stored", against=f"{HOME}:Opposite")
    assert [one.p for one in found.comparisons] == [one.p for one in expected.comparisons]
    assert [one.second for one in found.comparisons] == [one.second for one in expected.comparisons]
    assert found.comparisons[0].other == other
    with pytest.raises(ValueError, match="does not have the case 'case 39'; give outputs for the same cases"):
        run(source, scorer="stored", against_input=write(tmp_path / "less.jsonl", turned[:-1]))
    longer = [{**turned[0], "responses": ["1", "2", "3"], "stored": [1, 2, 3]}, *turned[1:]]
    with pytest.raises(ValueError, match="has 3 responses in"):
        run(source, scorer="stored", against_input=write(tmp_path / "longer.jsonl", longer))
    elsewhere = [{**turned[0], "cluster": "another prompt"}, *turned[1:]]
    with pytest.raises(ValueError, match="'case 0' has another prompt in"):
        run(source, scorer="stored", against_input=write(tmp_path / "elsewhere.jsonl", elsewhere))
    with pytest.raises(ValueError, match="both given"):
        run(source, scorer="stored", against_input=other, against="stored")
