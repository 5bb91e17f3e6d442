"""TRL: a reward function for `GRPOTrainer` and `RLOOTrainer`, and for what builds on TRL (Unsloth, axolotl, ms-swift).

    from adjudge.trl import Reward

    trainer = GRPOTrainer(reward_funcs=[Reward("math", reference="answer")], ...)

A score without a number becomes None, TRL's word for "this reward does not apply"; the shares of failed, abstained and
out-of-scope ones are logged as metrics.  Whoever calls it may await what it returns, as TRL does from 1.14 on, so that
several rewards work at the same time, or read it as a list, as TRL did before.  It can be pickled, as
`AsyncGRPOTrainer` demands.

Tried with TRL 0.24, 1.8 and 1.16, and in the rollout worker of AsyncGRPO 1.16.  Not covered: reward models given as
such (`reward_funcs="FOLDER"`); TRL runs those itself, and gives the same numbers as our scorer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, overload

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.failures import is_out_of_scope
from adjudge.rl_integration.adapters.row import row_name
from adjudge.rl_integration.adapters.row_reward import RowReward, metric_name
from adjudge.runtime.loop import run_blocking


@dataclass(eq=False, kw_only=True)
class Reward(RowReward):
    """Scores completions.

    Attributes:
        group: where the name is that the completions of one prompt share; "" for those of equal prompts, images and
            references, and ms-swift's `prompt_id`.
        num_generations: TRL's: completions of one prompt.  With it, each run of so many is a group, also where two rows
            are equal.  A scorer that compares them needs it in a run on several processes, where TRL divides a group
            if a process takes less than a whole one; such a batch is refused.
        fallback: the number that stands for a completion that could not be judged; None to tell TRL so.
        name: what the reward is called in TRL's metrics; the scorer's name, if it is a text, otherwise.
        end_token: the id of the token that ends a completion.  With it, completions that do not end in it are scored as
            cut off; TRL does not say so itself.
        trainer_state: whether samples have the columns `step` and `progress`, from TRL's object of that name; columns
            of the data set go before them.

    The others are those of `RowReward`.
    """

    framework = "TRL"
    numbers_only = False
    remedy = ""
    num_generations: int | None = None
    name: str = ""
    end_token: int | None = None
    trainer_state: bool = False

    def __post_init__(self) -> None:
        """Load the scorers, and reject what cannot be meant."""
        super().__post_init__()
        number = self.num_generations
        if number is not None and (type(number) is not int or number < 2):
            raise ValueError(f"num_generations={number!r}; it must be 2 or more, as in TRL's configuration")
        self.__name__ = metric_name(self.scorer, self.name)
        # TRL asks `func.__call__` whether it may await, and then calls `func`, which Python looks up in the class.
        self.__dict__["__call__"] = self._awaited

    def __call__(
        self,
        completions: Sequence[Any],
        prompts: Sequence[Any] | None = None,
        *,
        completion_ids: Sequence[Sequence[int]] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        **columns: Any,
    ) -> Rewards:
        """Return a number or None for each completion, in order, to be awaited or read as a list; called by TRL.

        Raises:
            ValueError: the dataset lacks a column, or a scorer that compares the completions of a prompt may not have
                all of them.
            TooManyFailures: too many completions could not be judged; raised when it is awaited or read.
        """
        count = len(completions)
        told = {name: cells for name, cells in columns.items() if isinstance(cells, list) and len(cells) == count}
        known = _state(columns.get("trainer_state")) if self.trainer_state else {}
        rows = [{**known, **{name: cells[place] for name, cells in told.items()}} for place in range(count)]
        ends = [self._end(ids) for ids in completion_ids] if completion_ids is not None else [None] * count
        if prompts is None:  # ms-swift gives the chats instead, each with its completion, and says how it ended
            prompts = [_asked(row.pop("messages", None)) for row in rows]
            ends = [row.pop("finish_reason", None) for row in rows]
        samples = [
            self.made_sample(row, prompt, completion, group=str(row.get("prompt_id") or ""), finish_reason=end)
            for row, prompt, completion, end in zip(rows, prompts, completions, ends, strict=True)
        ]
        names = [
            row_name(prompt, row.get("image"), row.get("images"), sample.reference)
            for row, prompt, sample in zip(rows, prompts, samples, strict=True)
        ]
        if self.num_generations is not None:
            names = self._numbered(names, samples)
        elif self._asked.groupwise and int(os.environ.get("WORLD_SIZE") or 1) > 1:
            raise ValueError(
                "the scorer compares the completions of a prompt, and with several processes TRL may divide them; set "
                "Reward(num_generations=...) to TRL's own, so that this can be seen"
            )
        samples = [
            sample if sample.group else replace(sample, group=name) for sample, name in zip(samples, names, strict=True)
        ]
        return Rewards(partial(self._rewards, rows, samples, log_metric, log_extra))

    async def _awaited(self, *completions: Any, **columns: Any) -> list[float | None]:
        return await self(*completions, **columns)

    async def _rewards(
        self,
        rows: Sequence[Mapping[str, Any]],
        samples: Sequence[Sample],
        log_metric: Callable[[str, float], None] | None,
        log_extra: Callable[[str, list[Any]], None] | None,
    ) -> list[float | None]:
        scores = await self.scores(rows, samples)
        if log_metric is not None:
            for name, value in _metrics(scores).items():
                log_metric(f"{self.__name__}/{name}", value)
        if log_extra is not None:
            log_extra(f"{self.__name__}_reason", [f"{score.status} {score.reason}".rstrip() for score in scores])
        return [
            self.fallback if score.value is None and not is_out_of_scope(score) else score.value for score in scores
        ]

    def _numbered(self, names: Sequence[str], samples: Sequence[Sample]) -> list[str]:
        """Return names that tell equal prompts apart; raise `ValueError` if this process has a part of a group."""
        number = self.num_generations or 1
        for first in range(0, len(names), number):
            run = names[first : first + number]
            if len(run) < number or len(set(run)) > 1:
                raise ValueError(
                    f"num_generations={number}, and from completion {first} on {run.count(run[0])} of "
                    f"{str(samples[first].prompt)[:60]!r} came: this process has a part of a group. Make "
                    f"per_device_train_batch_size times gradient_accumulation_steps a multiple of {number}, or leave "
                    "the option out and let a reward server gather them (`cohort`)"
                )
        return [f"{name} {place // number}" for place, name in enumerate(names)]

    def _end(self, ids: Sequence[int]) -> str | None:
        if self.end_token is None or not len(ids):
            return None
        return "stop" if int(ids[-1]) == self.end_token else "length"


TrlReward = Reward


class Rewards(Sequence[float | None]):
    """Rewards of completions, scored when they are awaited or first read.

    Args:
        ask: gets them.
    """

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, list[float | None]]]) -> None:
        self._ask = ask
        self._lock = Lock()  # of its own: before Python 3.12, `cached_property` has one for all instances
        self._known: list[float | None] | None = None

    def __await__(self) -> Generator[Any, None, list[float | None]]:
        return self._ask().__await__()

    @property
    def _values(self) -> list[float | None]:
        with self._lock:
            if self._known is None:
                self._known = run_blocking(self._ask())
            return self._known

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, place: int) -> float | None: ...
    @overload
    def __getitem__(self, place: slice) -> list[float | None]: ...
    def __getitem__(self, place: int | slice) -> float | list[float | None] | None:
        return self._values[place]

    def __repr__(self) -> str:
        return repr(self._values)


def _metrics(scores: Sequence[Score]) -> dict[str, float]:
    """The shares of what has no number, and the means of the parts of what has one."""
    foreign = sum(map(is_out_of_scope, scores))
    counts = {status: sum(score.status == status for score in scores) for status in ("failed", "abstained")}
    counts["abstained"] -= foreign
    shares = {name: count / max(1, len(scores)) for name, count in {**counts, "out_of_scope": foreign}.items()}
    parts: dict[str, list[float]] = {}
    for score in scores:
        for name, part in score.parts.items():
            if part.value is not None:
                parts.setdefault(f"part_{name}", []).append(part.value)
    return {**shares, **{name: sum(values) / len(values) for name, values in parts.items()}}


def _state(state: Any) -> dict[str, float]:
    """How far TRL's training is."""
    if state is None:
        raise ValueError(
            "Reward option trainer_state=True, and TRL gave none; use TRL 0.24 or newer, or leave the option out"
        )
    step, steps = state.global_step, state.max_steps
    return {"step": step, "progress": min(1.0, step / steps)} if steps > 0 else {"step": step}


def _asked(chat: Any) -> list[Any]:
    """The turns of a chat before its last answer."""
    turns = list(chat or ())
    return turns[:-1] if turns and turns[-1]["role"] == "assistant" else turns
