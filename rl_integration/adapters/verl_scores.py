"""What verl's ways to a reward share: the options, the scorers they name, its numbers; and its sampler."""

from __future__ import annotations

import functools
import json
import logging
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import nan
from typing import Any, Literal

from adjudge.io.values import plain
from adjudge.options import Options, Share, options_of
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.failures import WINDOW, TooManyFailures
from adjudge.rl_integration.adapters.one_by_one import OneByOne
from adjudge.rl_integration.adapters.row import extra_in
from adjudge.rl_integration.client.client import ClientConfig
from adjudge.runtime.loop import run_blocking

_TURNS = 2
"""What verl counts for one question and one answer; more means that tools or an environment spoke."""


@dataclass(frozen=True, kw_only=True)
class VerlOptions(Options, what="reward_kwargs option"):
    """What can be set under `reward_kwargs`.

    Attributes:
        scorer: anything `adjudge.load` takes; with `server`, the scorer's name there, or None where there is one.
        scorers: a scorer of its own for each of some `data_source`s; `scorer` is for the others.
        server: a reward server's address, or the fields of `ClientConfig`; None to score in this process.  Its token is
            ADJUDGE_TOKEN.
        fallback: the number that stands for a sample without a score; None to stop the run.
        max_failed: with a fallback, the share of the latest samples above which the run is stopped; 1 for never.
        parts: names of parts of the score that verl is to log, as `part_NAME`; not-a-number where one is missing.
        columns: keys of `extra_info` that the scorer is given as `Sample.extra`, and no others; None for all of them.
        tool_text: what to do where tools or an environment spoke, and verl does not say which tokens the model wrote:
            "refuse" stops the run, "grade" takes all of it for the model's.
    """

    scorer: Any = None
    scorers: Mapping[str, Any] = field(default_factory=dict)
    server: str | Mapping[str, Any] | None = None
    fallback: float | None = None
    max_failed: Share = 0.5
    parts: Sequence[str] = ()
    columns: Sequence[str] | None = None
    tool_text: Literal["refuse", "grade"] = "refuse"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scorer is None and not self.scorers and self.server is None:
            raise ValueError("no scorer is named: set `scorer` (such as math), `scorers` or `server` in reward_kwargs")
        for name in ("parts", "columns"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, str) or not all(isinstance(item, str) for item in value)):
                raise ValueError(f"{name}={value!r}; it must be a list of names")


def verl_options(settings: Mapping[str, Any]) -> VerlOptions:
    """Return the options that a configuration sets, or raise `ValueError`."""
    known = [item.name for item in fields(VerlOptions)]
    return VerlOptions(**options_of(plain(settings), known, inside="reward_kwargs"))


def picked(extra_info: Mapping[str, Any] | None, names: Sequence[str]) -> dict[str, Any]:
    """Return the named columns of an `extra_info`, as copies, or raise `ValueError`."""
    info = extra_info or {}
    missing = [name for name in names if name not in info]
    if missing:
        raise ValueError(f"extra_info has no {missing[0]!r}; it has {', '.join(map(str, info)) or 'nothing'}")
    return {name: plain(info[name]) for name in names}


def extra_of(data_source: str, extra_info: Mapping[str, Any] | None, options: VerlOptions) -> dict[str, Any]:
    """Return what the scorer is given as `Sample.extra`: `data_source`, and the columns of an `extra_info`.

    Raises:
        ValueError: it lacks one that the options name.
    """
    if options.columns is not None:
        return picked(extra_info, options.columns)
    return {"data_source": data_source, **extra_in(extra_info or {})}


def check_turns(turns: Any, options: VerlOptions) -> None:
    """Make sure that a text is the model's alone.

    Raises:
        ValueError: it is not, and that is to be refused.
    """
    count = 0 if turns is None or turns != turns else int(turns)  # pandas makes NaN of a missing cell
    if count > _TURNS and options.tool_text == "refuse":
        raise ValueError(
            f"a trajectory has {count} turns, and verl does not say which tokens the model wrote, so that a "
            "tool's text would be graded as the model's; let your agent loop score its own trajectories, or accept "
            "that with tool_text=grade in reward_kwargs"
        )


class VerlScores:
    """Scores samples for verl.  One of it serves a process, from any thread and any event loop.

    Raises:
        ValueError: a scorer is unknown, or compares the answers to a prompt and gets them one by one, or has no part
            of a name.
    """

    def __init__(self, options: VerlOptions, *, alone: bool) -> None:
        self._parts = tuple(options.parts)
        self._asked = OneByOne(
            "verl",
            scorer=options.scorer,
            scorers=options.scorers,
            server=_server(options.server),
            fallback=options.fallback,
            max_failed=options.max_failed,
        )
        self._asked.check_parts(self._parts)
        if alone:
            self._asked.check_alone()

    async def ask(self, data_sources: Sequence[str], samples: Sequence[Sample]) -> list[dict[str, float]]:
        """Return what verl is given for each sample, in order; the keys are always the same.

        Raises:
            ValueError: a data source has no scorer, or a scorer has no parts.
            NotScored: a sample has no score, and there is no fallback.
            TooManyFailures: there is one, but it would stand for too many.
        """
        scores = await self._asked.scores(samples, data_sources)
        return [self._numbers(score, self._asked.number(score)) for score in scores]

    def tried(self, data_sources: Sequence[str], samples: Sequence[Sample]) -> list[Score]:
        """Return the scores themselves, of which none counts towards `max_failed`."""
        return run_blocking(self._asked.scores(samples, data_sources, counted=False))

    def _numbers(self, score: Score, value: float) -> dict[str, float]:
        if self._parts and score.status == "scored" and not score.parts:
            raise ValueError(f"parts={list(self._parts)!r}, but the score has no parts; remove them")
        numbers = {"score": value, "acc": value}  # by `acc` DAPO's recipes filter groups, and validation names its mean
        for name, status in _STATUSES.items():
            numbers[f"reward_{name}"] = float(score.status == status)
        for name in self._parts:
            part = score.parts.get(name)
            numbers[f"part_{name}"] = nan if part is None or part.value is None else part.value
        return numbers


def _server(given: str | Mapping[str, Any] | None) -> str | ClientConfig | None:
    if not isinstance(given, Mapping):
        return given
    known = [item.name for item in fields(ClientConfig)]
    return ClientConfig(**options_of(given, known, inside="reward_kwargs.server", required=("url",)))


_STATUSES = {"valid": "scored", "failed": "failed", "abstained": "abstained"}

_MADE: dict[str, VerlScores] = {}
_MAKING = threading.Lock()


def verl_scores(options: VerlOptions, *, alone: bool = True) -> VerlScores:
    """Return the scores of this process for some options: the same ones for the same options, loaded once."""
    settings = {item.name: plain(getattr(options, item.name)) for item in fields(options)}
    # A scorer object is told from others by its identity; what is made keeps it alive.
    key = json.dumps([settings, alone], sort_keys=True, default=lambda value: f"{type(value).__name__} at {id(value)}")
    with _MAKING:
        if key not in _MADE:
            _MADE[key] = VerlScores(options, alone=alone)
        return _MADE[key]


_LOG = logging.getLogger("adjudge.rewards")
_OURS = "adjudge.verl"
_OF_FUNCTIONS = ("prompt", "group")  # options of `compute_score` alone


def sampler(*, refill_fn: Any, sampler_kwargs: Mapping[str, Any], **others: Any) -> Any:
    """Return the sampler that verl would have made, which ends the run when too many answers have no reward.

        trainer.v1.sampler.custom_sampler.path=pkg://adjudge.verl
        trainer.v1.sampler.custom_sampler.name=sampler

    verl's default trainer leaves out an answer whose reward raises, and goes on.  That is right for one answer, and
    wrong for most of them.  The sampler runs in the trainer, so that what it raises ends the run.

    Tried with verl 0.9.1, of whose trainer it uses what is not public: the sampler's `refill_fn` is its method.

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
