"""The maker of SPA-RL's contributions: final rewards, explained turn by turn; it must see all rows first.

What each turn contributed is found by regression over many trajectories (SPA-RL, arXiv 2505.20732):

    reward of a trajectory = sum over its turns of w . x(turn)

`w` is found by least squares with a small ridge, and w . x is the turn's contribution, its value.  x counts a turn's
words in hashed cells, beside a constant; the paper has the last hidden state of a language model in its place, with the
same sum and loss.  With `factors` x is what a program says of the turn: the latent rewards of LaRe (arXiv 2412.11120,
`thu-rllab/LaRe`).  A language model writes the program, `factors(prompt, turns)`, which returns a list of numbers for
each turn, such as "how much of what was asked for is now known".  LaRe asks several times, joins the answers and tries
the program before it is used; here it is tried on the first rows, and the error says what to tell the model.  It runs
in a sandbox.  Weights that judge a prompt are fitted without it: prompts fall into folds by their text.  The sum of the
values up to a turn is the reward that the trajectory so far lets expect; where all rewards lie in [0, 1] it is the
turn's label, cut off at 0 and 1, and else there is none.

The released data step gives every turn of a trajectory the reward less the mean reward of the prompt's other
trajectories instead.  That is `centred`, which has no labels.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from adjudge.data_pipelines.steps.config import StepsConfig
from adjudge.data_pipelines.steps.rollouts import Spending, StepLabels
from adjudge.data_pipelines.steps.solutions_in_rows import Solution, SolutionReader
from adjudge.data_pipelines.steps.step_labeller import FIELDS, made_of, row_of, steps_fingerprint
from adjudge.io.jobs.maker import Made, Unit
from adjudge.sandbox import codec, frames
from adjudge.sandbox.peer import PeerLostError, Raised
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.warm_python import shared
from adjudge.sandbox.zygote import ZygoteLostError
from adjudge.verifiers.code.python_candidate import NotLoadedError, answer_of

Numbers = npt.NDArray[np.float64]

CELLS = 256  # of hashed words; the normal equations of a fold then take half a MiB
FOLDS = 5
_WORD = re.compile(r"\w+|[^\w\s]")


def features(turn: str) -> Numbers:
    """Return (CELLS + 1,) numbers of a turn: a constant, and log(1 + count) of the words in each cell."""
    counts = np.zeros(CELLS + 1)
    for word in _WORD.findall(turn.casefold()):
        counts[
            1 + int.from_bytes(hashlib.blake2s(word.encode("utf-8", "replace"), digest_size=4).digest()) % CELLS
        ] += 1
    counts = np.log1p(counts)
    counts[0] = 1.0
    return counts


def hashed_words(prompt: str, turns: Sequence[str]) -> Numbers:
    """Return the features of each turn, (turns, CELLS + 1)."""
    return np.array([features(turn) for turn in turns])


def fold_of(prompt: str) -> int:
    """Return the fold of a prompt."""
    return hashlib.blake2s(prompt.encode("utf-8", "replace"), digest_size=4).digest()[0] % FOLDS


class Contributions:
    """The regression; trajectories are added one by one, in any order, and memory does not grow with them.

    Args:
        ridge: added to the diagonal, in units of trajectories; above 0.
        features: the numbers of each turn of a trajectory, (turns, width), of its prompt and turns.
    """

    def __init__(self, ridge: float = 1.0, features: Callable[[str, Sequence[str]], Numbers] = hashed_words):
        if not ridge > 0:
            raise ValueError(f"the ridge is {ridge!r}; it must be above 0, or the weights are not determined")
        self._ridge = ridge
        self._features = features
        self._squares, self._products = np.zeros((FOLDS, 0, 0)), np.zeros((FOLDS, 0))
        self._weights: dict[int, Numbers] = {}
        self.trajectories = 0

    def add(self, prompt: str, turns: Sequence[str], reward: float) -> None:
        """Learn from a trajectory with its final reward."""
        if not turns:
            return
        summed = self._features(prompt, turns).sum(axis=0)
        fold = fold_of(prompt)
        if not self.trajectories:
            self._squares = np.zeros((FOLDS, len(summed), len(summed)))
            self._products = np.zeros((FOLDS, len(summed)))
        self._squares[fold] += np.outer(summed, summed)
        self._products[fold] += reward * summed
        self.trajectories += 1
        self._weights.clear()

    def of(self, prompt: str, turns: Sequence[str]) -> list[float] | None:
        """Return the contribution of each turn; None if all that was learnt is of the prompt's own fold."""
        fold = fold_of(prompt)
        if fold not in self._weights:
            others = [one for one in range(FOLDS) if one != fold]
            squares = self._squares[others].sum(axis=0)
            if not squares.any():
                return None
            squares += self._ridge * np.eye(squares.shape[0])
            self._weights[fold] = np.linalg.solve(squares, self._products[others].sum(axis=0))
        return [float(one) for one in self._features(prompt, turns) @ self._weights[fold]]


class Centred:
    """Rewards less the mean reward of the prompt's other trajectories; one number for each prompt is kept."""

    def __init__(self) -> None:
        self._sums: dict[bytes, tuple[float, int]] = {}

    def add(self, prompt: str, reward: float) -> None:
        """Take a trajectory's final reward."""
        total, count = self._sums.get(_key(prompt), (0.0, 0))
        self._sums[_key(prompt)] = (total + reward, count + 1)

    def of(self, prompt: str, reward: float) -> float | None:
        """Return what every turn of a trajectory gets; None if the prompt has no other one."""
        total, count = self._sums.get(_key(prompt), (0.0, 0))
        return reward - (total - reward) / (count - 1) if count > 1 else None


def _key(prompt: str) -> bytes:
    return hashlib.blake2s(prompt.encode("utf-8", "replace"), digest_size=16).digest()


MOST: Final = 64  # factors of a turn
_LIMITS: Final = RunLimits(seconds=10.0, memory_mb=512, processes=8)


class FactorsError(ValueError):
    """The program gives no numbers for a trajectory."""


class FactorProgram:
    """A file with `factors(prompt, turns)`.

    Raises:
        ValueError: it cannot be read.
    """

    def __init__(self, path: str) -> None:
        try:
            self._source = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"--factors is {path!r}, which cannot be read: {error}") from error
        self.fingerprint = hashlib.sha256(self._source.encode()).hexdigest()
        self._width = 0

    def __call__(self, prompt: str, turns: Sequence[str]) -> Numbers:
        """Return (turns, 1 + factors) numbers: a constant, and what the program says of each turn.

        Raises:
            FactorsError: it raised, ran out of its limits, or gave something else than as many finite numbers for each
                turn as it did before.
            SandboxUnavailableError: there is no sandbox.
        """
        try:
            answer = answer_of(shared("bubblewrap"), self._source, "factors", (prompt, [*turns]), _LIMITS, (False, ()))
        except frames.FrameTimeoutError as error:
            raise FactorsError(f"it took longer than {_LIMITS.seconds:g} s") from error
        except (NotLoadedError, PeerLostError, frames.FrameError, codec.CodecError, ZygoteLostError) as error:
            raise FactorsError(f"{type(error).__name__}: {error}"[:300]) from error
        if isinstance(answer, Raised):
            raise FactorsError(f"it raised {answer.names[0] if answer.names else 'an error'}: {answer.text}"[:300])
        rows = answer if isinstance(answer, list) and all(isinstance(row, list | tuple) for row in answer) else []
        widths = {len(row) for row in rows}
        if len(rows) != len(turns) or len(widths) != 1 or not 1 <= min(widths) <= MOST:
            raise FactorsError(f"it did not return a list of 1 to {MOST} numbers for each of {len(turns)} turns")
        if not all(isinstance(one, bool | int | float) and math.isfinite(one) for row in rows for one in row):
            raise FactorsError("it returned what is not a finite number")
        self._width = self._width or min(widths)
        if widths != {self._width}:
            raise FactorsError(f"it returned {min(widths)} numbers for a turn, and {self._width} before")
        return np.array([[1.0, *row] for row in rows], dtype=np.float64)


class TurnLabeller:
    """See `adjudge.io.jobs.maker.Maker` and `Prepares`."""

    name = "steps"
    grouped = False
    fields = FIELDS

    def __init__(self, config: StepsConfig):
        self._config = config
        self._reader = SolutionReader(config)
        self._factors = FactorProgram(config.factors) if config.factors else None
        self._begin()

    def _begin(self) -> None:
        self._contributions = Contributions(self._config.ridge, self._factors or hashed_words)
        self._centred = Centred()
        self._shares = True  # all rewards so far lie in [0, 1]

    @property
    def fingerprint(self) -> str:
        """The options, and the program; there are no models."""
        return steps_fingerprint(self._config, [self._factors.fingerprint] if self._factors else [])

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Look for the columns, and try the program of factors on the first trajectory."""
        self._reader.check(columns, first)
        units = (Unit(first=at, rows=(row,)) for at, row in enumerate(first))
        known = (one for unit in units for one in self._solutions(unit) if not isinstance(one, str))
        if self._factors is not None and (solution := next(known, None)) is not None:
            try:
                self._factors(solution.problem.text, solution.cut.steps)
            except FactorsError as error:
                raise ValueError(f"--factors is {self._config.factors!r}: {error}; tell whoever wrote it") from error
        return ()

    def prepare(self, units: Iterable[Unit]) -> None:
        """Learn from all trajectories that have a reward."""
        self._begin()
        for unit in units:
            for solution in self._solutions(unit):
                if isinstance(solution, str) or solution.outcome is None:
                    continue
                self._shares = self._shares and 0 <= solution.outcome <= 1
                if self._config.rule == "centred":
                    self._centred.add(solution.problem.text, solution.outcome)
                else:
                    with contextlib.suppress(FactorsError):  # left out, and counted, when it is labelled
                        self._contributions.add(solution.problem.text, solution.cut.steps, solution.outcome)

    async def make(self, unit: Unit) -> Made:
        """Return a row's trajectories with what each turn contributed."""
        spending = Spending()
        rows: list[Mapping[str, Any]] = []
        for solution in self._solutions(unit):
            labels = solution if isinstance(solution, str) else self._labelled(solution)
            if isinstance(solution, str) or isinstance(labels, str):
                spending.drop(str(labels))
                continue
            reward = solution.outcome
            outcome = reward if reward is not None and 0 <= reward <= 1 else None
            rows.append(row_of(solution, labels, outcome=outcome, calls=0, method="spa"))
        return made_of(rows, spending)

    def _solutions(self, unit: Unit) -> Iterable[Solution | str]:
        problem = self._reader.problem(unit.rows[0], unit.first)
        return [problem] if isinstance(problem, str) else self._reader.solutions(unit.rows[0], problem)

    def _labelled(self, solution: Solution) -> StepLabels | str:
        reward, steps, prompt = solution.outcome, solution.cut.steps, solution.problem.text
        if reward is None:
            return "no_reward"
        if self._config.rule == "centred":
            gained = self._centred.of(prompt, reward)
            if gained is None:
                return "alone"
            return StepLabels(labels=(None,) * len(steps), values=(gained,) * len(steps))
        try:
            values = self._contributions.of(prompt, steps)
        except FactorsError:
            return "bad_factors"
        if values is None:
            return "alone"
        progress = itertools.accumulate(values)
        labels = tuple(min(max(one, 0.0), 1.0) if self._shares else None for one in progress)
        return StepLabels(labels=labels, values=tuple(values), start=0.0)
