"""verl: a sampler that ends a run which nothing can be learnt from.

    trainer.v1.sampler.custom_sampler.path=pkg://adjudge.verl
    trainer.v1.sampler.custom_sampler.name=sampler

verl's default trainer leaves out an answer whose reward raises, and goes on.  That is right for one answer, and wrong
for most of them.  The sampler runs in the trainer, so that what it raises ends the run.

Tried with verl 0.9.1, of whose trainer it uses what is not public: the sampler's `refill_fn` is its method.
"""

from __future__ import annotations

import functools
import logging
from collections import deque
from collections.abc import Mapping
from typing import Any

from adjudge.io.values import plain
from adjudge.options import options_of
from adjudge.rl_integration.adapters.failures import WINDOW, TooManyFailures
from adjudge.rl_integration.adapters.verl_scores import verl_options, verl_scores

_LOG = logging.getLogger("adjudge.rewards")
_OURS = "adjudge.verl"
_OF_FUNCTIONS = ("prompt", "group")  # options of `compute_score` alone


def sampler(*, refill_fn: Any, sampler_kwargs: Mapping[str, Any], **others: Any) -> Any:
    """Return the sampler that verl would have made, which ends the run when too many answers have no reward.

    Args:
        refill_fn: a method of verl's trainer.
        sampler_kwargs: of `trainer.v1.sampler.sampler_kwargs`: `max_failed`, the share of the latest 64 answers that
            may lack a reward (0.5); 1 for any.
        others: what else verl gives a sampler; it is given to its own.

    Raises:
        ValueError: an option is wrong, here or in the `reward_kwargs` of our reward.
    """
    trainer = refill_fn.__self__
    settings = options_of(plain(sampler_kwargs or {}), ["max_failed"], inside="trainer.v1.sampler.sampler_kwargs")
    most = settings.get("max_failed", 0.5)
    if isinstance(most, bool) or not isinstance(most, int | float) or not 0 <= most <= 1:
        raise ValueError(f"trainer.v1.sampler.sampler_kwargs.max_failed={most!r}; it must be a share from 0 to 1")
    check_reward(trainer.config)
    custom = trainer.config.trainer.v1.sampler.custom_sampler
    path, custom.path = custom.path, None  # its own sampler is given more than another would be, such as DAPO's filter
    try:
        buffer = trainer._build_replay_buffer()
    finally:
        custom.path = path
    _Missing(buffer, trainer.config.actor_rollout_ref.rollout, float(most)).watch()
    return buffer


def check_reward(config: Any) -> None:
    """Make sure that the reward which a configuration of verl names can be made, if it is ours.

    Raises:
        ValueError: it cannot.
    """
    function = config.reward.get("custom_reward_function") or {}
    if _OURS in str(function.get("path") or "") or str(function.get("path") or "").endswith("adjudge/verl.py"):
        given = {name: value for name, value in _given(function).items() if name not in _OF_FUNCTIONS}
        verl_scores(verl_options(given), alone=function.get("name") != "compute_score_batch")
    elif _OURS in str((config.reward.get("reward_manager") or {}).get("module", {}).get("path") or ""):
        verl_scores(verl_options(_given(config.reward)))


def _given(section: Any) -> dict[str, Any]:
    return dict(plain(section.get("reward_kwargs") or {}))


class _Missing:
    """Counts the answers that verl's workers gave up, in what the sampler reads of its queue."""

    def __init__(self, buffer: Any, rollout: Any, most: float) -> None:
        self._buffer = buffer
        self._answers = {"train": int(rollout.n), "val": int(rollout.val_kwargs.n)}
        self._most = most
        self._counted: set[str] = set()
        self._latest: deque[bool] = deque(maxlen=WINDOW)

    def watch(self) -> None:
        """Look at the queue each time that the sampler does."""
        read = self._buffer._sync_metadata_from_transfer_queue

        @functools.wraps(read)
        def counted() -> None:
            read()
            self.count()

        self._buffer._sync_metadata_from_transfer_queue = counted

    def count(self) -> None:
        """Take note of the groups that ended since."""
        for partition, answers in self._answers.items():
            failed, finished = self._buffer.failure_keys[partition], self._buffer.finished_keys[partition]
            came = {tuple(key.split("_")[:2]) for key in self._buffer.partitions[partition]}
            for uid in sorted((failed | finished) - self._counted):
                there = sum(of == uid for of, _ in came)
                missing = max(0, answers - there) if uid in failed else 0
                if missing:
                    _LOG.warning("%d of the %d answers of group %s have no reward", missing, answers, uid)
                self._take([True] * missing + [False] * there)
            self._counted |= failed | finished  # a group that was sampled never returns

    def _take(self, lacking: list[bool]) -> None:
        """Count answers, of which some lack a reward; `TooManyFailures` if too many of the latest do."""
        self._latest.extend(lacking)
        gone = sum(self._latest)
        if gone > self._most * WINDOW:
            raise TooManyFailures(
                f"{gone} of the latest {WINDOW} answers have no reward; more than {self._most:.0%} may not "
                "(trainer.v1.sampler.sampler_kwargs.max_failed), since training on what is left would be training on "
                "chance. verl logged each reason after `Error in _run_prompt`"
            )
