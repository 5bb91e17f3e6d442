"""AlpacaEval's leaderboard rows out of the stored annotations and weights.

For the length-controlled ones the corpus has the fitted weights
of 199 models and their win rates, and lacks the authors' difficulty of each instruction.  But a win rate depends only
on how difficulties are distributed, and that distribution can be found from the rows of every second model: it then
gives the other rows' win rates, in the median to 0.0003 points of 100.  So the formula is right, and two rows
(dbrx-instruct, off by 0.19, and NullModel, by 0.13) were printed from other weights than those stored.
"""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pytest

from adjudge.evals.benchmarks.alpaca_eval import (
    LengthControl,
    annotations_of,
    fit_length_control,
    share_of,
)
from adjudge.evals.trust.bias import Judgement, preference
from adjudge.statistics.intervals import Draws


def annotated(corpora: Any, model: str) -> list[dict[str, Any]]:
    return corpora.rows(f"alpaca_eval/weighted_annotations_{model}.jsonl.gz")  # type: ignore[no-any-return]


def test_the_table_agrees_with_itself_about_discrete_win_rates(corpora: Any) -> None:
    """The annotations of NullModel (76.9198) and the others are not in the corpus; their counts are."""
    table = corpora.table("alpaca_eval/leaderboard_weighted.csv")
    assert round(float(table["NullModel"]["win_rate"]), 4) == 76.9198
    odd = []
    for name, row in table.items():
        wins, losses, draws, total = (int(float(row[n])) for n in ("n_wins", "n_wins_base", "n_draws", "n_total"))
        assert wins + losses + draws == total
        if abs(100 * (wins + draws / 2) / total - float(row["discrete_win_rate"])) > 1e-6:
            odd.append(name)
    assert len(table) == 223
    assert odd == ["aligner-2b_gpt-4-turbo-2024-04-09"], "its row says 40.19, and its own counts 47.14"


def weighted(corpora: Any) -> dict[str, tuple[LengthControl, float]]:
    """Each model's stored weights with its printed win rate."""
    weights = corpora.table("alpaca_eval/lc_weights_baseline_gpt4_1106_preview.csv")
    printed = corpora.table("alpaca_eval/leaderboard_weighted.csv")
    found = {}
    for name, row in weights.items():
        if name in printed and printed[name]["length_controlled_winrate"]:
            phi, gamma, theta = (float(row[column]) for column in list(row)[1:])
            control = LengthControl(theta=theta, phi=phi, gamma=gamma)
            found[name] = control, float(printed[name]["length_controlled_winrate"])
    return found


def difficulties(rows: list[tuple[LengthControl, float]]) -> list[float]:
    """805 difficulties with which the stored weights of some models give their printed win rates."""
    from sklearn.linear_model import LinearRegression

    grid = np.linspace(-8, 8, 161)
    table = np.array([[control.win_rate([float(d)]) for d in grid] for control, _ in rows])
    printed = np.array([value for _, value in rows])
    fit: Any = LinearRegression(positive=True, fit_intercept=False)
    fit.fit(np.vstack([table, np.full(len(grid), 1e3)]), np.append(printed, 1e3))  # the last row: shares sum to 1
    many = 100_000
    return [float(d) for d, share in zip(grid, fit.coef_, strict=True) for _ in range(round(many * share))]


def test_length_controlled_win_rates_follow_from_the_stored_weights(corpora: Any) -> None:
    models = weighted(corpora)
    assert len(models) == 199
    names = list(models)
    levels = np.array(difficulties([models[name] for name in names[::2]]))

    def predicted(control: LengthControl) -> float:
        return float(100 * np.mean(1 / (1 + np.exp(-(control.theta + control.gamma * levels)))))

    gaps = {name: abs(predicted(models[name][0]) - models[name][1]) for name in names[1::2]}
    assert statistics.median(gaps.values()) < 3e-4
    assert {name for name, gap in gaps.items() if gap > 0.05} == {"dbrx-instruct", "NullModel"}
    assert sum(gap > 0.005 for gap in gaps.values()) <= 5
    without = [abs(100 / (1 + math.exp(-models[name][0].theta)) - models[name][1]) for name in names]
    assert statistics.median(without) > 3, "difficulty is not a detail"


def test_the_printed_row_of_alpaca_7b(corpora: Any) -> None:
    """5.87 from its weights and the difficulties that all other rows imply, odd ones included."""
    models = weighted(corpora)
    control, printed = models["alpaca-7b"]
    found = control.win_rate(difficulties([row for name, row in models.items() if name != "alpaca-7b"]))
    assert found == pytest.approx(printed, abs=2e-3)
    assert round(printed, 4) == 5.8755


def test_the_baseline_wins_half_by_construction(corpora: Any) -> None:
    control, printed = weighted(corpora)["gpt4_1106_preview"]
    assert (control, printed) == (LengthControl(theta=0.0, phi=0.0, gamma=0.0), 50.0)
    assert control.win_rate([-3.0, 0.0, 5.0]) == 50.0


@pytest.mark.parametrize(("model", "alone"), [("alpaca-7b", 19.58), ("text_davinci_003", 10.10)])
def test_what_is_missing_without_the_authors_tables(corpora: Any, model: str, alone: float) -> None:
    """A fit to the annotations alone, without difficulties and gamed baselines, is not the table's number.

    Both models are shorter than the baseline nearly always, so a fit is free to blame it on length: 19.6 for 5.9.
    """
    rows = annotated(corpora, model)
    shares = [share for row in rows if (share := share_of(row["preference"])) is not None]
    lengths = [[len(row[side]) for row in rows] for side in ("output_2", "output_1")]
    fitted = fit_length_control(annotations_of(shares, lengths[0], lengths[1], [0.0] * len(rows)))
    assert fitted.win_rate([0.0]) == pytest.approx(alone, abs=0.01)
    assert fitted.gamma == 0.0


def test_this_judge_prefers_longer_answers(corpora: Any) -> None:
    """The baseline is longer nearly always and wins nearly always, so the two cannot be told apart by counting."""
    judged = [
        Judgement(pair=str(index), first=row["output_1"], second=row["output_2"], share=2 - row["preference"])
        for index, row in enumerate(annotated(corpora, "text_davinci_003"))
    ]
    longer = preference(judged, "longer", Draws(rounds=50)).judge.value
    assert longer is not None
    assert longer > 0.9
