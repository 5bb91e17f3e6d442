"""Numbers of turns by a program, in the place of hashed words: the latent rewards of LaRe (`thu-rllab/LaRe`).

A language model writes the program, `factors(prompt, turns)`, which returns a list of numbers for each turn, such as
"how much of what was asked for is now known"; the regression of `turn_labeller` is the decoder that makes rewards of
them which sum to the final one.  LaRe asks several times, joins the answers and tries the program before it is used;
here it is tried on the first rows, and the error says what to tell the model.  It runs in a sandbox.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from adjudge.sandbox import codec, frames
from adjudge.sandbox.peer import PeerLostError, Raised
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.warm_python import shared
from adjudge.sandbox.zygote import ZygoteLostError
from adjudge.verifiers.code.python_candidate import NotLoadedError, answer_of

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

    def __call__(self, prompt: str, turns: Sequence[str]) -> npt.NDArray[np.float64]:
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
