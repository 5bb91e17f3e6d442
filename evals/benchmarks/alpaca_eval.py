"""AlpacaEval 2: how often a model's output is preferred to a baseline's, as a judge sees it.

It measures the model that wrote the outputs.  To measure the judge, see `annotators`.

| input | scorer |
|---|---|
| annotations: `instruction`, `output_1` (baseline), `output_2` (model), `preference` from 1 to 2 | `stored`, or any |
| outputs: `instruction`, `output`, with `baseline` naming a file of the baseline's outputs | any |

A preference is a number from 1 (the baseline's output is better) to 2 (the model's); 1.5 is a draw, and so is the 0
that old annotations use for one.  The win rate is the mean share of the model's outputs; annotations without a
preference are in none of the numbers, as there, and are counted beside.

The length-controlled win rate is what it would be if both outputs were equally long.  A logistic model of the
preference for the model's output on instruction i:

    logit P = theta + phi * tanh((len_baseline - len_model) / std) + gamma * difficulty_i

`std` is the standard deviation (n - 1) of the difference in characters over the model's annotations.  The win rate is
the mean of P with the length term at 0; it has no bounds.  `difficulty_i` is a number that the authors fitted once for
each of the 805 instructions.  To keep theta from being bought with length, annotations of "gamed" baselines (the
baseline asked to be concise, and to be verbose) enter the fit with the theta column at 0.  All is fitted with an L1
penalty whose strength is chosen by 5-fold cross-validation.  Without the authors' difficulties and gamed baselines the
number is not the leaderboard's, and its name says so.

Source: Dubois et al. 2024, arXiv 2404.04475, and AlpacaEval's `length_controlled_v1`.  Fitting needs scikit-learn
(`pip install "adjudge[data]"`); predicting from given weights needs nothing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import case_of, field, keyed_rows, shown, text_of
from adjudge.evals.benchmarks.pairs import EVEN, sides
from adjudge.evals.reports.result import Measure, Sought, measures_of_sums
from adjudge.extras import install_hint
from adjudge.statistics.arrays import Bools, Floats, Ints, np
from adjudge.statistics.confusion import ratio
from adjudge.statistics.intervals import Draws, Interval
from adjudge.statistics.logistic import sigmoid


def share_of(preference: float | None) -> float | None:
    """Return a preference as the model's share, from 0 to 1; None for a missing one."""
    if preference is None or math.isnan(preference):
        return None
    if preference == 0:
        return 0.5
    if not 1 <= preference <= 2:
        raise ValueError(
            f"the preference is {preference!r}; it must be from 1 (baseline) to 2 (model), or 0 for a draw"
        )
    return preference - 1


GAMED_WEIGHT = 0.1
"""Weight of one gamed annotation: the published 0.2, shared by the two gamed baselines."""

_STRENGTHS = tuple(10 ** (-4 + 8 * step / 9) for step in range(10))  # scikit-learn's grid for 10 values of C
_FOLDS = 5
_SEED = 123


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One instruction on which a judge compared a model with the baseline.

    Attributes:
        share: how far the model's output is preferred, in [0, 1].
        shorter: `tanh` of how much shorter the model's output is than the baseline's, in standard deviations.
        difficulty: of the instruction; 0 where none is known.
        gamed: whether the "model" is the baseline itself, asked to be concise or verbose.
    """

    share: float
    shorter: float
    difficulty: float = 0.0
    gamed: bool = False


@dataclass(frozen=True, kw_only=True)
class LengthControl:
    """A fitted model.

    Attributes:
        theta: how much better than the baseline the model is, in log-odds; AlpacaEval's `not_gamed_baseline`.
        strength: the C that cross-validation chose; 0 where the weights were given.
    """

    theta: float
    phi: float
    gamma: float
    strength: float = 0.0

    def win_rate(self, difficulties: Sequence[float]) -> float:
        """Return the length-controlled win rate over instructions of these difficulties, in percent."""
        if not difficulties:
            raise ValueError("there are no instructions; give the difficulty of each, or 0 where it is unknown")
        shares = [sigmoid(self.theta + self.gamma * difficulty) for difficulty in difficulties]
        return 100 * math.fsum(shares) / len(shares)


def annotations_of(
    shares: Sequence[float], lengths: Sequence[int], baseline_lengths: Sequence[int], difficulties: Sequence[float]
) -> list[Annotation]:
    """Return annotations of one model from its outputs' lengths in characters and the baseline's."""
    if not len(shares) == len(lengths) == len(baseline_lengths) == len(difficulties) or len(shares) < 2:
        raise ValueError(
            f"{len(shares)} shares, {len(lengths)} and {len(baseline_lengths)} lengths and {len(difficulties)} "
            "difficulties; give as many of each, two or more"
        )
    differences = [base - own for own, base in zip(lengths, baseline_lengths, strict=True)]
    mean = math.fsum(differences) / len(differences)
    std = math.sqrt(math.fsum((one - mean) ** 2 for one in differences) / (len(differences) - 1))
    if std == 0:
        raise ValueError(
            "the two outputs differ in length by the same number everywhere, so length has no effect to fit"
        )
    return [
        Annotation(share=share, shorter=math.tanh(difference / std), difficulty=difficulty)
        for share, difference, difficulty in zip(shares, differences, difficulties, strict=True)
    ]


def fit_length_control(annotations: Sequence[Annotation], gamed: Sequence[Annotation] = ()) -> LengthControl:
    """Fit the model of one model's annotations.

    Args:
        annotations: of the model, at least 10.
        gamed: of the gamed baselines; each weighs 0.1.

    Raises:
        ValueError: there are too few annotations, a share is out of range, or the fit does not settle.
        ImportError: scikit-learn is not installed.
    """
    if len(annotations) < 2 * _FOLDS:
        raise ValueError(f"{len(annotations)} annotations; {_FOLDS}-fold cross-validation needs {2 * _FOLDS} or more")
    rows = [*gamed, *annotations]
    for row in rows:
        if not 0 <= row.share <= 1:
            raise ValueError(f"an annotation has the share {row.share!r}; it must be in [0, 1]")
    try:
        from sklearn.model_selection import GroupKFold
    except ImportError as error:
        raise ImportError(f"fitting length control needs scikit-learn; {install_hint('data')}") from error
    design = np.array([[row.shorter, row.difficulty, float(not row.gamed)] for row in rows])
    shares = np.array([row.share for row in rows])
    weights = np.array([GAMED_WEIGHT if row.gamed else 1.0 for row in rows])
    # Each row is there twice: as preferred with the chance `share`, and as not preferred with the rest.
    design, weights, preferred = (
        np.vstack([design, design]),
        np.r_[weights, weights],
        np.arange(2 * len(rows)) < len(rows),
    )
    shares = np.r_[shares, shares]
    chances = np.where(preferred, shares, 1 - shares)

    def fitted(some: Ints, strength: float, *, final: bool = False) -> Floats:
        return _fitted(design[some], preferred[some], (chances * weights)[some], strength, final=final)

    def loss(some: Ints, coefficients: Floats) -> float:
        z = design[some] @ coefficients
        return float(weights[some] @ (np.logaddexp(0, z) - shares[some] * z)) / len(some)

    groups = np.tile(np.arange(len(rows)), 2)  # the two copies of a row are never on both sides
    folds = list(GroupKFold(n_splits=_FOLDS).split(design, groups=groups))
    losses = [sum(loss(held, fitted(train, strength)) for train, held in folds) / _FOLDS for strength in _STRENGTHS]
    strength = _STRENGTHS[losses.index(min(losses))]
    phi, gamma, theta = fitted(np.arange(len(design)), strength, final=True).tolist()
    return LengthControl(theta=theta, phi=phi, gamma=gamma, strength=strength)


def _fitted(design: Floats, preferred: Bools, weights: Floats, strength: float, *, final: bool) -> Floats:
    """Return the coefficients of an L1-penalised fit.

    Of the fits that only choose a strength, one that does not settle is judged by its loss like the others.
    """
    from sklearn import __version__
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    # 1.8 has another name for an L1 penalty; before it, `l1_ratio` was ignored without a word.
    renamed = tuple(int(part) for part in __version__.split(".")[:2]) >= (1, 8)
    penalty: dict[str, Any] = {"l1_ratio": 1} if renamed else {"penalty": "l1"}
    model: Any = LogisticRegression(C=strength, solver="liblinear", fit_intercept=False, random_state=_SEED, **penalty)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if final else "ignore", ConvergenceWarning)
        try:
            model.fit(design, preferred, sample_weight=weights)
        except ConvergenceWarning as error:
            raise ValueError(
                f"the fit does not settle at the strength {strength:g}: length or difficulty tells nearly all "
                "preferences apart, so there is no length-controlled win rate"
            ) from error
    coefficients: Floats = model.coef_[0]
    return coefficients


_NAMES: Final = ("win rate", "standard error", "discrete win rate", "wins", "losses", "draws")


@dataclass(frozen=True, kw_only=True)
class AlpacaEval(Benchmark):
    """Win rates of a model against a baseline, in [0, 1]."""

    name: ClassVar[str] = "alpaca_eval"
    title: ClassVar[str] = "AlpacaEval"
    source: ClassVar[str] = "arXiv 2404.04475; tatsu-lab/alpaca_eval, src/alpaca_eval/metrics"
    columns: ClassVar[str] = "instruction, output_1, output_2, preference; or instruction, output"
    of_scorer: ClassVar[bool] = False
    places: ClassVar[bool | None] = False  # the baseline's output always comes first

    baseline: str = ""
    """A file of the baseline's outputs, where the input holds one model's outputs."""

    length_control: bool = False
    """Whether the length-controlled win rate is fitted too; needs scikit-learn."""

    difficulties: str = ""
    """A file of the instructions' difficulties: instruction, difficulty."""

    gamed: str = ""
    """A file of annotations of the baseline asked to be concise, and to be verbose."""

    def cases(self, row: Mapping[str, Any], place: RowPlace) -> Iterable[Case]:
        """Return the pair of a row: the baseline's output, then the model's."""
        instruction = text_of(row, "instruction")
        stored: tuple[Stored, ...] = ()
        if "preference" in row:
            share = _share(row)
            shares = (None, None) if share is None else (1 - share, share)
            stored = tuple(Stored(value=one, reason="no preference" if one is None else "") for one in shares)
        if "output" in row and "output_2" not in row:
            outputs = (self._baseline_of(instruction), text_of(row, "output"))
        else:
            outputs = (text_of(row, "output_1"), text_of(row, "output_2"))
        model = row.get("generator") or row.get("generator_2") or ""
        return [
            case_of(
                id=f"{place.number}",
                prompt=instruction,
                responses=outputs,
                gold={"model": str(model), "difficulty": self._difficulty_of(instruction)},
                stored=stored,
                compared=bool(stored),
            )
        ]

    def credit(self, outcome: Outcome) -> float | None:
        """Return the share of the model's output."""
        return share_of_model(outcome)

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return whose outputs the two are."""
        model = outcome.gold["model"] or "model"
        return f"neither is right or wrong; wrong here means that {model} loses", ("baseline", model)

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the win rates, their standard error, the counts as shares, and what is without a preference."""
        shares = [share_of_model(outcome) for outcome in outcomes]
        clusters = [outcome.cluster for outcome in outcomes]
        known = sum(share is not None for share in shares)
        sought = [Sought(name, better="none", published=True, n=known) for name in _NAMES]
        missing = [share is None for share in shares]
        return [
            *measures_of_sums(sought, clusters, _columns(shares), _numbers, draws),
            Measure.mean("no preference", missing, clusters, draws, better="low"),
            *(self._controlled(outcomes, shares) if self.length_control else []),
        ]

    def _controlled(self, outcomes: Sequence[Outcome], shares: Sequence[float | None]) -> list[Measure]:
        rows = [(one, share) for one, share in zip(outcomes, shares, strict=True) if share is not None]
        full = bool(self.difficulties and self.gamed)
        name = "LC win rate" if full else "LC win rate, these annotations alone"
        levels = [one.gold["difficulty"] or 0.0 for one, _ in rows]
        try:
            own, base = [one.sizes[1] for one, _ in rows], [one.sizes[0] for one, _ in rows]
            made = annotations_of([share for _, share in rows], own, base, levels)
            value = fit_length_control(made, self._gamed).win_rate(levels) / 100
        except ValueError:  # too few annotations, or outputs that never differ in length: there is no such number
            value = None
        return [Measure(name=name, interval=Interval(value=value, n=len(rows)), better="none", published=full)]

    def _baseline_of(self, instruction: str) -> str:
        if not self.baseline:
            raise ValueError("the row holds one output; name the file of the baseline's outputs with --baseline")
        if instruction not in self._baseline:
            raise ValueError(f"the baseline has no output for the instruction {shown(instruction)}")
        return text_of(self._baseline[instruction][0], "output")

    def _difficulty_of(self, instruction: str) -> float | None:
        if not self.difficulties:
            return None
        if instruction not in self._difficulties:
            raise ValueError(f"there is no difficulty of the instruction {shown(instruction)}")
        cell = field(self._difficulties[instruction][0], "difficulty", "instruction_difficulty")
        if isinstance(cell, int | float | str) and not isinstance(cell, bool):  # text in a CSV
            return float(cell)
        raise ValueError(f"the difficulty of the instruction {shown(instruction)} is {shown(cell)}; give a number")

    @cached_property
    def _baseline(self) -> dict[str, list[dict[str, Any]]]:
        return keyed_rows(self.baseline, lambda row: text_of(row, "instruction"))

    @cached_property
    def _difficulties(self) -> dict[str, list[dict[str, Any]]]:
        return keyed_rows(self.difficulties, lambda row: text_of(row, "instruction"))

    @cached_property
    def _gamed(self) -> list[Annotation]:
        """The gamed baselines' annotations, each with the spread of its own outputs' lengths."""
        gamed = []
        for rows in keyed_rows(self.gamed, lambda row: str(row.get("generator_2", "")), several=True).values():
            known = [(row, share) for row in rows if (share := _share(row)) is not None]
            made = annotations_of(
                [share for _, share in known],
                [len(text_of(row, "output_2")) for row, _ in known],
                [len(text_of(row, "output_1")) for row, _ in known],
                [self._difficulty_of(text_of(row, "instruction")) or 0.0 for row, _ in known],
            )
            gamed += [replace(one, gamed=True) for one in made]
        return gamed


def share_of_model(outcome: Outcome) -> float | None:
    """Return how far the second output of a pair is preferred, from 0 to 1.

    Of shares in two orders, the mean, or the one that is there; of scores, 1 for the higher one and a half for a tie.
    """
    if outcome.compared:
        first, second = outcome.values
        known = [share for share in (None if first is None else 2 * EVEN - first, second) if share is not None]
        return sum(known) / len(known) if known else None
    sign, _ = sides(outcome)
    return None if sign is None else EVEN - sign / 2


def _share(row: Mapping[str, Any]) -> float | None:
    preference = row.get("preference")
    if isinstance(preference, bool) or not (preference is None or isinstance(preference, int | float)):
        raise ValueError(f"the column 'preference' holds {shown(preference)}; it must be a number from 1 to 2, or null")
    return share_of(preference)


def _columns(shares: Sequence[float | None]) -> Floats:
    """Whether there is a preference, the share, its square, and win, loss or draw."""
    return np.array(
        [
            [0.0] * 6
            if share is None
            else [1.0, share, share * share, float(share > EVEN), float(share < EVEN), float(share == EVEN)]
            for share in shares
        ]
    )


def _numbers(sums: Floats) -> Floats:
    count, total, squares, wins, losses, ties = (sums[:, at] for at in range(6))
    mean = ratio(total, count)
    variance = np.maximum(ratio(squares - count * mean**2, count - 1), 0.0)
    error = np.sqrt(ratio(variance, count))
    rates = [ratio(part, count) for part in (wins + ties / 2, wins, losses, ties)]
    return np.column_stack([mean, error, *rates])
