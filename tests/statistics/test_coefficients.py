from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.statistics.plain_agreement import Metric, Weights, cohen_kappa, fleiss_kappa, krippendorff_alpha

labels = st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.sampled_from([1, 2, 3])), min_size=1, max_size=40)


def test_cohen_by_hand() -> None:
    """20 of 50 both yes, 15 both no, 5 and 10 apart: p_o = .7, p_e = .5*.6 + .5*.4 = .5."""
    first = ["y"] * 25 + ["n"] * 25
    second = ["y"] * 20 + ["n"] * 5 + ["y"] * 10 + ["n"] * 15
    assert cohen_kappa(first, second) == pytest.approx(0.4)


@given(labels)
@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
def test_cohen_is_what_scikit_learn_says(weights: Weights, pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import cohen_kappa_score

    first, second = zip(*pairs, strict=True)
    ours = cohen_kappa(first, second, weights=weights, order=[1, 2, 3])
    if len({*first, *second}) == 1:
        assert ours is None
    else:
        theirs = cohen_kappa_score(first, second, labels=[1, 2, 3], weights=None if weights == "none" else weights)
        assert ours == pytest.approx(theirs, abs=1e-9)


def test_fleiss_on_the_table_of_its_textbook_example() -> None:
    """Ten items, 14 raters, five categories (the worked example of Fleiss' kappa): .210."""
    table = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    counts: list[dict[Hashable, int]] = [dict(enumerate(row)) for row in table]
    assert fleiss_kappa(counts) == pytest.approx(0.20993, abs=1e-5)


GAPS = [  # Krippendorff's example of four observers and twelve units
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


@pytest.mark.parametrize(("metric", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_on_krippendorffs_own_example(metric: Metric, alpha: float) -> None:
    items: list[Sequence[float | None]] = [list(item) for item in zip(*GAPS, strict=True)]
    assert krippendorff_alpha(items, metric=metric) == pytest.approx(alpha, abs=5e-4)


@given(labels)
def test_alpha_and_fleiss_agree_up_to_their_sample_correction(pairs: list[tuple[int, int]]) -> None:
    """For two raters without gaps 1 - alpha = (1 - pi) (2n - 1) / 2n, with Scott's pi = Fleiss' kappa."""
    n = 2 * len(pairs)
    alpha, pi = krippendorff_alpha(pairs), fleiss_kappa([Counter[Hashable](pair) for pair in pairs])
    assert (alpha is None) == (pi is None)
    if alpha is not None and pi is not None:
        assert 1 - alpha == pytest.approx((1 - pi) * (n - 1) / n, abs=1e-9)


def test_no_variance_is_no_agreement() -> None:
    """Raters who only ever say one thing agree always, and show nothing by it."""
    assert cohen_kappa(["A"] * 9, ["A"] * 9) is None
    everybody: dict[Hashable, int] = {"A": 3}
    assert fleiss_kappa([everybody] * 9) is None
    assert krippendorff_alpha([["A", "A"]] * 9) is None
    assert krippendorff_alpha([["A", None], [None, "B"]]) is None


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="2 and 1 labels"):
        cohen_kappa([1, 2], [1])
    with pytest.raises(ValueError, match="need `order`"):
        cohen_kappa([1, 2], [1, 2], weights="linear")
    with pytest.raises(ValueError, match="label 3 is not in the order"):
        cohen_kappa([1, 3], [1, 2], order=[1, 2])
    with pytest.raises(ValueError, match="krippendorff_alpha allows gaps"):
        fleiss_kappa([{"A": 2}, {"A": 3}])
    with pytest.raises(ValueError, match="gave 'B'"):
        krippendorff_alpha([[1.0, "B"]], metric="interval")
