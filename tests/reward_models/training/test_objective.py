"""What the objective's minimum is: margins, soft labels and ties move the fit to where the formulas say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from scipy import special

from adjudge.engines.head_config import HeadConfig
from adjudge.reward_models.training.objective import Objective
from adjudge.reward_models.training.scalar_config import LossChoice, LossName

NAN = math.nan


def batch(
    pairs: list[tuple[int, int]],
    *,
    weights: list[float] | None = None,
    margins: list[float] | None = None,
    probabilities: list[float] | None = None,
    tied: list[bool] | None = None,
    members: int = 1,
) -> dict[str, torch.Tensor]:
    count = len(pairs)
    share = torch.tensor(weights or [1.0] * count)
    return {
        "better": torch.tensor([better for better, _ in pairs]),
        "worse": torch.tensor([worse for _, worse in pairs]),
        "weights": (share / share.sum()).unsqueeze(1).expand(count, members),
        "margins": torch.tensor(margins or [NAN] * count),
        "probabilities": torch.tensor(probabilities or [NAN] * count),
        "tied": torch.tensor(tied or [False] * count),
    }


def fitted(
    loss: LossChoice,
    given: Mapping[str, torch.Tensor],
    *,
    rows: int = 2,
    head: HeadConfig | None = None,
    terms: Mapping[str, float] | None = None,
    columns: int = 1,
) -> tuple[torch.Tensor, Objective]:
    """Raw numbers, free for each row, at the minimum of the objective."""
    objective = Objective(loss, head or HeadConfig(), terms or {})
    raw = torch.zeros(rows, columns).add(0.01 * torch.arange(rows).unsqueeze(1)).requires_grad_()
    solver: Any = torch.optim.LBFGS([raw, *objective.parameters()], max_iter=500, line_search_fn="strong_wolfe")

    def closure() -> Any:
        solver.zero_grad()
        value, _ = objective(raw, given)
        value.backward()
        return value

    solver.step(closure)
    return raw.detach(), objective


def gap(*args: Any, **options: Any) -> float:
    raw, _ = fitted(*args, **options)
    return float(raw[0, 0] - raw[1, 0])


@pytest.mark.parametrize("chance", [0.2, 0.5, 0.9])
def test_a_soft_label_is_met_by_its_log_odds(chance: float) -> None:
    assert gap(LossChoice(name="soft"), batch([(0, 1)], probabilities=[chance])) == pytest.approx(
        special.logit(chance), abs=1e-3
    )


def test_smoothing_keeps_plain_labels_finite() -> None:
    """Without it, a pair that nobody contradicts pulls the gap on for ever."""
    assert gap(LossChoice(name="soft", smoothing=0.1), batch([(0, 1)])) == pytest.approx(special.logit(0.9), abs=1e-3)


def test_a_tie_is_a_soft_label_of_a_half() -> None:
    """One win and one tie: p is 0.75 on average."""
    found = gap(LossChoice(name="soft"), batch([(0, 1), (0, 1)], tied=[False, True]))
    assert found == pytest.approx(math.log(3), abs=1e-3)


def test_votes_for_both_sides_are_met_by_their_log_odds() -> None:
    given = batch([(0, 1), (1, 0)], weights=[3.0, 1.0])
    assert gap(LossChoice(), given) == pytest.approx(math.log(3), abs=1e-3)


def test_a_margin_moves_the_fit_by_itself() -> None:
    """With 3 : 1 votes and margin m for the first side, 3 σ(m - Δ) = σ(m + Δ)."""
    given = batch([(0, 1), (1, 0)], weights=[3.0, 1.0], margins=[0.8, 0.8])
    found = gap(LossChoice(name="margin"), given)
    assert 3 * special.expit(0.8 - found) == pytest.approx(special.expit(0.8 + found), abs=1e-4)
    assert found > math.log(3) + 0.1
    assert gap(LossChoice(name="margin", margin=0.8), batch([(0, 1), (1, 0)], weights=[3.0, 1.0])) == pytest.approx(
        found, abs=1e-4
    )


def test_strength_counts_like_votes() -> None:
    given = batch([(0, 1), (1, 0)], margins=[3.0, 1.0])
    assert gap(LossChoice(name="scaled"), given) == pytest.approx(math.log(3), abs=1e-3)


def test_margin_mse_and_hinge_stop_at_the_margin() -> None:
    assert gap(LossChoice(name="margin_mse"), batch([(0, 1)], margins=[1.7])) == pytest.approx(1.7, abs=1e-3)
    assert gap(LossChoice(name="hinge", margin=0.5), batch([(0, 1)])) >= 0.5


def test_a_temperature_stretches_the_fit() -> None:
    given = batch([(0, 1), (1, 0)], weights=[3.0, 1.0])
    assert gap(LossChoice(name="tempered", temperature=2.0), given) == pytest.approx(2 * math.log(3), abs=1e-3)


@pytest.mark.parametrize("name", ["rao_kupper", "davidson"])
def test_ties_pull_rewards_together(name: Any) -> None:
    votes, tied = [(0, 1)] * 5 + [(1, 0)], [False, False, False, True, True, False]
    with_ties = gap(LossChoice(name=name), batch(votes, tied=tied))
    without = gap(LossChoice(name=name), batch([(0, 1)] * 3 + [(1, 0)]))
    assert 0.1 < with_ties < without - 0.1
    only_ties = gap(LossChoice(name=name), batch([(0, 1)] * 2, tied=[True, True]))
    assert only_ties == pytest.approx(0, abs=1e-3)


def test_a_learnt_threshold_meets_the_share_of_ties() -> None:
    """Three parameters, three outcomes: the model's chances are the shares seen, 3 wins, 2 ties, 1 loss of 6."""
    votes, tied = [(0, 1)] * 5 + [(1, 0)], [False, False, False, True, True, False]
    for name in ("rao_kupper", "davidson"):
        raw, objective = fitted(LossChoice(name=name, learn_ties=True), batch(votes, tied=tied))
        found, value = float(raw[0, 0] - raw[1, 0]), objective.tie_value
        assert value is not None
        if name == "rao_kupper":
            win, lose = special.expit(found - value), special.expit(-found - value)
        else:
            shares = special.softmax([found / 2, -found / 2, value])
            win, lose = shares[0], shares[1]
        assert (win, lose) == pytest.approx((3 / 6, 1 / 6), abs=1e-3)


def test_plackett_luce_fits_the_shares_of_first_places() -> None:
    """Two lists: 0 before 1 and 2 twice, 1 before the others once; the last two are unordered."""
    given = {
        "ranks": torch.tensor([[0, 1, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]]),
        "members": torch.tensor([[0, 1, 2]] * 4),
        "weights": torch.full((4, 1), 0.25),
    }
    raw, _ = fitted(LossChoice(name="plackett_luce"), given, rows=3)
    assert torch.softmax(raw[:, 0], 0).tolist() == pytest.approx([0.5, 0.25, 0.25], abs=1e-3)


def test_purm_learns_to_be_unsure_of_what_is_contradicted() -> None:
    given = batch([(0, 1), (1, 0), (2, 3)])
    raw, _ = fitted(
        LossChoice(name="purm"), given, rows=4, head=HeadConfig(kind="gaussian"), columns=2, terms={"l2": 0.01}
    )
    assert float(raw[2, 0] - raw[3, 0]) > 1
    assert abs(float(raw[0, 0] - raw[1, 0])) < 0.05


def test_sampled_rewards_are_drawn_anew_and_average_to_the_loss() -> None:
    objective = Objective(LossChoice(name="sampled_bt"), HeadConfig(kind="gaussian"), {})
    raw = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        drawn = torch.stack([objective(raw, batch([(0, 1)]))[0] for _ in range(4000)])
    noise = torch.randn(400_000, generator=torch.Generator().manual_seed(1)) * math.sqrt(2)
    expected = float(torch.nn.functional.softplus(-(1 + noise)).mean())
    assert float(drawn.mean()) == pytest.approx(expected, abs=0.05)
    assert drawn.std() > 0.1


def test_ratings_are_fitted_where_they_are_known() -> None:
    targets = torch.tensor([[1.0, NAN], [3.0, -2.0]])
    given = {"targets": targets, "weights": torch.full((2, 1), 0.5)}
    raw, _ = fitted(LossChoice(name="regression"), given, head=HeadConfig(outputs=2), columns=2)
    assert raw[0, 0] == pytest.approx(1, abs=1e-3)
    assert raw[1].tolist() == pytest.approx([3, -2], abs=1e-3)
    assert float(raw[0, 1]) == 0.0  # the start: no label, no gradient


def test_centring_puts_the_middle_at_zero_and_l2_shrinks() -> None:
    votes = batch([(0, 1), (1, 0)], weights=[3.0, 1.0])
    raw, _ = fitted(LossChoice(), votes, terms={"centering": 1.0})
    assert float(raw.sum()) == pytest.approx(0, abs=1e-3)
    assert float(raw[0, 0] - raw[1, 0]) == pytest.approx(math.log(3), abs=1e-2)
    assert gap(LossChoice(), votes, terms={"l2": 0.1}) < math.log(3) - 0.2


def test_consistency_pulls_a_paraphrase_to_its_original() -> None:
    given = batch([(0, 1), (1, 0)], weights=[3.0, 1.0]) | {
        "original": torch.tensor([0]),
        "paraphrase": torch.tensor([2]),
        "paraphrase_weights": torch.ones(1, 1),
    }
    raw, _ = fitted(LossChoice(), given, rows=3, terms={"consistency": 1.0})
    assert float(raw[2, 0]) == pytest.approx(float(raw[0, 0]), abs=1e-3)


def test_the_length_head_explains_length_so_that_quality_need_not() -> None:
    """All preferences go to the longer one: alone, the reward would follow length; with ODIN's terms it does less."""
    lengths = torch.tensor([9.0, 1.0, 8.0, 2.0])
    given = batch([(0, 1), (2, 3)]) | {"lengths": lengths}
    raw, _ = fitted(LossChoice(), given, rows=4, columns=2, terms={"length": 5.0, "l2": 0.05})
    quality, length = (torch.corrcoef(torch.stack([raw[:, at], lengths]))[0, 1] for at in (0, 1))
    plain, _ = fitted(LossChoice(), given, rows=4, terms={"l2": 0.05})
    assert torch.corrcoef(torch.stack([plain[:, 0], lengths]))[0, 1] > 0.9
    assert length > 0.9
    assert abs(quality) < 0.3


def test_members_learn_from_their_own_weights() -> None:
    given = batch([(0, 1), (1, 0)], members=2)
    given["weights"] = torch.tensor([[0.75, 0.25], [0.25, 0.75]])
    raw, _ = fitted(LossChoice(bootstrap=True), given, head=HeadConfig(kind="multi", members=2), columns=2)
    assert (raw[0] - raw[1]).tolist() == pytest.approx([math.log(3), -math.log(3)], abs=1e-3)


@pytest.mark.parametrize("name", ["purm", "sampled_bt"])
def test_gaussian_members_have_means_and_deviations_of_their_own(name: LossName) -> None:
    """Three members' loss is the mean of the losses of three heads with one output each (BRME)."""
    means, logs = torch.tensor([[1.0, 0.0, -2.0], [0.5, 2.0, 0.0]]), torch.tensor([[0.1, -1.0, 0.3], [0.0, 0.5, -9.0]])
    loss = LossChoice(name=name)
    if name == "sampled_bt":
        logs = torch.full_like(logs, -10.0)  # hardly any noise, which every head draws for itself
    whole, numbers = Objective(loss, HeadConfig(kind="gaussian", outputs=3), {})(
        torch.cat([means, logs], dim=1), batch([(0, 1)])
    )
    single = Objective(loss, HeadConfig(kind="gaussian"), {})
    alone = [single(torch.stack([means[:, at], logs[:, at]], dim=1), batch([(0, 1)]))[0] for at in range(3)]
    assert float(whole) == pytest.approx(float(sum(alone)) / 3, abs=1e-3)
    assert float(numbers["accuracy"]) == pytest.approx(1 / 3)


def test_a_quantile_head_is_trained_through_its_mean() -> None:
    given = batch([(0, 1), (1, 0)], weights=[3.0, 1.0])
    raw, _ = fitted(LossChoice(), given, head=HeadConfig(kind="quantile", levels=3), columns=3)
    assert float(raw.mean(dim=1)[0] - raw.mean(dim=1)[1]) == pytest.approx(math.log(3), abs=1e-3)


def test_passes_add_up_to_the_step() -> None:
    """The loss of a step cut in two is that of the step at once."""
    objective = Objective(LossChoice(name="focal"), HeadConfig(), {"l2": 0.1})
    raw = torch.tensor([[0.3], [1.0], [-2.0], [0.5]])
    whole, numbers = objective(raw, batch([(0, 1), (2, 3)]))
    parts = []
    for at in (0, 1):
        one = batch([(2 * at, 2 * at + 1)])
        one["weights"] = one["weights"] * 0.5
        parts.append(objective(raw, one))
    assert sum(float(loss) for loss, _ in parts) == pytest.approx(float(whole), rel=1e-6)
    assert sum(float(seen["accuracy"]) for _, seen in parts) == pytest.approx(float(numbers["accuracy"]))
