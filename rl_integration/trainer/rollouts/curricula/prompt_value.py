"""PCL's value of a prompt (arXiv 2510.01135): the pass rate that is expected of it before anything is written.

    V(x) = w . h(x) + b, cut to [0, 1];  after a batch, for each prompt with the observed pass rate p,
    (w, b) += rate * (p - V(x)) * (h(x), 1) / (1 + |h(x)|^2)

h(x) is what a model makes of the prompt, such as the last hidden state of its last token.  The step is normalised by
its length, so that it needs no tuning to the scale of h, and follows the policy as that changes.

The paper trains a whole model as V beside the policy; this is its linear head alone, over the policy's own states.

Not covered: where h comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Floats, floats, same_shape
from adjudge.rl_integration.trainer.contract.options import check_between


class PromptValue:
    """A linear value of prompts; see the module.

    Args:
        rate: the share of the error that one observation takes away, in [0, 1].
        prior: the value before anything was observed, in [0, 1].
    """

    def __init__(self, *, rate: float = 0.5, prior: float = 0.5) -> None:
        check_between("rate", rate, 0.0, 1.0)
        check_between("prior", prior, 0.0, 1.0)
        self._rate = rate
        self._bias = prior
        self._weights: Floats | None = None

    def __call__(self, states: Floats) -> Floats:
        """Return (n,) values of (n, d) states.

        Raises:
            ValueError: the states are not finite, or of another width than those before.
        """
        states = self._checked(states)
        return np.clip(self._raw(states), 0.0, 1.0)

    def observe(self, states: Floats, rates: Floats) -> None:
        """Learn from observed pass rates, one after the other.

        Args:
            states: (n, d).
            rates: (n,) in [0, 1].

        Raises:
            ValueError: as above, or the numbers of both differ.
        """
        states = self._checked(states)
        same_shape("rates", np.shape(rates), (len(states),))
        if self._weights is None:
            self._weights = np.zeros(states.shape[1])
        for state, rate in zip(states, rates, strict=True):
            step = self._rate * (rate - self._raw(state[None])[0]) / (1 + state @ state)
            self._weights = self._weights + step * state
            self._bias += float(step)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, for a checkpoint."""
        return {"bias": self._bias, "weights": None if self._weights is None else self._weights.tolist()}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Go on from what `to_dict` returned."""
        self._bias = float(data["bias"])
        self._weights = None if data["weights"] is None else np.array(data["weights"], dtype=np.float64)

    def _raw(self, states: Floats) -> Floats:
        """Values that are not cut, so that an error beyond the cut is still an error."""
        found: Floats = np.full(len(states), self._bias)
        return found if self._weights is None else found + states @ self._weights

    def _checked(self, states: Floats) -> Floats:
        states = floats("states", states)
        if states.ndim != 2 or (self._weights is not None and states.shape[1] != len(self._weights)):
            width = "d" if self._weights is None else len(self._weights)
            raise ValueError(f"the states of prompts have the shape {states.shape}; it must be (n, {width})")
        if not np.isfinite(states).all():
            raise ValueError("a prompt's state is not finite; look at the policy's weights")
        return states
