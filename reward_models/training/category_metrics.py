"""What a classifier of several labels is worth on held-out rows: F1 of each, and of any of them.

A label nobody gave is no negative: such places are left out of a label's numbers.  Whether
any label is there is known of a row where one is, and where all are known not to be.

Not covered: intervals, which F1 has no simple one for, and thresholds other than a probability of a half.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from adjudge.reward_models.training.held_out import Numbers, auc
from adjudge.statistics.intervals import Interval

Flags = npt.NDArray[np.bool_]


def category_measures(
    logits: Numbers, targets: Numbers, categories: Sequence[str]
) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """Return F1 and AUC of each category and of `any_label`, and the F1 of always saying yes.

    Args:
        logits: (n, a) log-odds.
        targets: (n, a) of 1 and 0; NaN where there is no label.
        categories: names of the columns.
    """
    found: dict[str, Interval] = {}
    rules: dict[str, Interval] = {}
    there, known = targets == 1, ~np.isnan(targets)
    columns = [(name, logits[:, at], there[:, at], known[:, at]) for at, name in enumerate(categories)]
    columns.append(("any_label", logits.max(axis=1), there.any(axis=1), there.any(axis=1) | known.all(axis=1)))
    for name, said, right, told in columns:
        n = int(told.sum())
        if not n:
            continue
        said, right = said[told], right[told]
        found[f"f1_{name}"] = Interval(value=f1(said > 0, right), n=n)
        rules[f"f1_{name} of always yes"] = Interval(value=f1(np.ones(n, dtype=bool), right), n=n)
        if 0 < right.sum() < n:
            found[f"auc_{name}"] = Interval(value=auc(said, right), n=n)
    return found, rules


def f1(said: Flags, right: Flags) -> float | None:
    """Return 2 TP / (2 TP + FP + FN); None where nothing is there and nothing was said."""
    hits = int((said & right).sum())
    total = int(said.sum()) + int(right.sum())
    return 2 * hits / total if total else None
