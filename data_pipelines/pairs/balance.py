"""What gives the better response away: its place, and its length; and what contradicts itself.

Numbers of rows are collected in arrays of 8 bytes; texts are not kept.

Not covered: style beyond length (`adjudge.reward_models.baselines` has models of it).
"""

from __future__ import annotations

import hashlib
import math
from array import array
from typing import TYPE_CHECKING, Any

from adjudge.data_pipelines.pairs.answers import squeezed
from adjudge.data_pipelines.pairs.leak_rows import Told
from adjudge.data_pipelines.pairs.prompt_overlap import prompt_key
from adjudge.statistics.intervals import UNKNOWN, Interval, wilson

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Balance:
    """Collects what the rows of one file say; whoever wants a number asks for it at the end."""

    def __init__(self) -> None:
        self.rows = 0
        self._prompts = array("Q")
        self._longer = array("d")
        self._placed = array("Q")
        self._first = array("d")
        self.forward = array("Q")
        self.backward = array("Q")
        self._good = array("d")
        self._bad = array("d")

    def add(self, told: Told) -> None:
        """Take one row."""
        self.rows += 1
        if told.chosen is not None and told.rejected is not None:
            prompt, asked = prompt_key(told.prompt), squeezed(told.prompt)
            more = len(told.chosen) - len(told.rejected)
            self._prompts.append(prompt)
            self._longer.append(0.5 if more == 0 else float(more > 0))
            chosen, rejected = squeezed(told.chosen), squeezed(told.rejected)
            # Not the prompt's key, for which "2 + 2" is "2 - 2": there the other answer is no contradiction.
            self.forward.append(_pair_key(asked, chosen, rejected))
            self.backward.append(_pair_key(asked, rejected, chosen))
            if told.first is not None:
                self._placed.append(prompt)
                self._first.append(float(told.first))
        elif told.chosen is not None:
            self._good.append(float(len(told.chosen)))
        elif told.rejected is not None:
            self._bad.append(float(len(told.rejected)))

    @property
    def pairs(self) -> int:
        """How many rows are pairs."""
        return len(self._longer)

    @property
    def placed(self) -> int:
        """Of how many pairs it is known which response came first."""
        return len(self._first)

    def first(self) -> Interval:
        """Return the share of pairs whose better response came first."""
        return clustered_share(self._first, self._placed)

    def longer(self) -> Interval:
        """Return how well "longer wins" tells the better response: the area under the ROC curve.

        Of pairs it is the share that longer ones win, ties half; of rated answers that of all good against all bad.
        """
        return clustered_share(self._longer, self._prompts) if self.pairs else auc(self._good, self._bad)

    def good(self) -> Interval:
        """Return the share of rated answers that are good."""
        return wilson(len(self._good), len(self._good) + len(self._bad))

    def most_of_one_prompt(self) -> float:
        """Return the largest share of the pairs that one prompt has."""
        import numpy as np

        if not self.pairs:
            return 0.0
        return float(np.unique(_numbers(self._prompts), return_counts=True)[1].max()) / self.pairs


def contradictions(*files: Balance) -> tuple[int, int]:
    """Return how many pairs of all files stand there the other way round too, and how many repeat another one."""
    import numpy as np

    forward = np.concatenate([_numbers(one.forward) for one in files])
    backward = np.concatenate([_numbers(one.backward) for one in files])
    return int(np.isin(forward, backward).sum()), len(forward) - len(np.unique(forward))


def common_pairs(one: Balance, other: Balance) -> int:
    """Return how many different pairs two files share."""
    import numpy as np

    return len(np.intersect1d(_numbers(one.forward), _numbers(other.forward)))


def clustered_share(values: array[float], clusters: array[int]) -> Interval:
    """Return a mean of numbers in [0, 1] with Wilson's interval for as many rows as the clusters are worth.

    Rows of one cluster depend on each other, so the variance is that of cluster sums, and the interval that of as many
    independent rows as would have this variance (Korn and Graubard 1998); where all rows are equal, of the clusters.
    """
    import numpy as np

    if not values:
        return UNKNOWN
    numbers = np.frombuffer(values, dtype=np.float64)
    _, owners = np.unique(_numbers(clusters), return_inverse=True)
    mean = float(numbers.mean())
    sums = np.bincount(owners, numbers - mean)
    count, total = len(sums), len(numbers)
    variance = float((sums**2).sum()) * count / max(1, count - 1) / total**2
    worth = mean * (1 - mean) / variance if variance > 0 else count
    rows = max(1, min(total, math.floor(worth)))
    share = wilson(mean * rows, rows)
    return Interval(value=mean, low=share.low, high=share.high, n=total)


def auc(good: array[float], bad: array[float]) -> Interval:
    """Return the chance that a good number is larger than a bad one, ties half (Hanley and McNeil 1982)."""
    import numpy as np

    m, n = len(good), len(bad)
    if not m or not n:
        return UNKNOWN
    together = np.concatenate([np.frombuffer(good), np.frombuffer(bad)])
    _, places, counts = np.unique(together, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    area = (float(ranks[:m].sum()) - m * (m + 1) / 2) / (m * n)
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    variance = (area * (1 - area) + (m - 1) * (q1 - area**2) + (n - 1) * (q2 - area**2)) / (m * n)
    half = 1.959964 * math.sqrt(max(0.0, variance))
    return Interval(value=area, low=max(0.0, area - half), high=min(1.0, area + half), n=m + n)


def _numbers(values: array[Any]) -> npt.NDArray[np.uint64]:
    import numpy as np

    return np.frombuffer(values, dtype=np.uint64) if values else np.zeros(0, dtype=np.uint64)


def _pair_key(*texts: str) -> int:
    digest = hashlib.blake2b(digest_size=8)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data) + data)
    return int.from_bytes(digest.digest())
