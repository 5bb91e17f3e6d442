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
from collections.abc import Callable, Collection, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from threading import Lock
from typing import Any, overload

from adjudge.io.columns import Column
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.failures import is_out_of_scope
from adjudge.rl_integration.adapters.row import check_aligned, named, row_name, size_of, token_ids
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
        num_generations_eval: TRL's, where evaluations have another number.
        fallback: the number that stands for a completion that could not be judged; None to tell TRL so.
        name: what the reward is called in TRL's metrics; the scorer's name, if it is a text, otherwise.
        end_token: the id of the token that ends a completion, or several.  With it, completions that end in none are
            scored as cut off; TRL does not say so itself.
        trainer_state: whether samples have the columns `step` and `progress`, from TRL's object of that name; columns
            of the data set go before them.

    The others are those of `RowReward`.
    """

    framework = "TRL"
    numbers_only = False
    remedy = ""
    num_generations: int | None = None
    name: str = ""
    num_generations_eval: int | None = None
    end_token: int | Collection[int] | None = None
    trainer_state: bool = False

    def __post_init__(self) -> None:
        """Load the scorers, and reject what cannot be meant."""
        super().__post_init__()
        for option, least in (("num_generations", 2), ("num_generations_eval", 1)):
            number = getattr(self, option)
            if number is not None and (type(number) is not int or number < least):
                raise ValueError(f"{option}={number!r}; it must be {least} or more, as in TRL's configuration")
        if self.num_generations is None and self.num_generations_eval is not None:
            raise ValueError("num_generations_eval is for evaluation beside num_generations; set that, too")
        if self.num_generations is not None and self.group != "":
            raise ValueError("group and num_generations both say which completions are a group; leave one of them out")
        self._ends = frozenset() if self.end_token is None else token_ids("end_token", self.end_token)
        self.__name__ = metric_name(self.scorer, self.name)
        # TRL asks `func.__call__` whether it may await, and then calls `func`, which Python looks up in the class.
        self.__dict__["__call__"] = self._awaited

    def __call__(
        self,
        completions: Sequence[Any],
        *,
        prompts: Sequence[Any] | None = None,
        completion_ids: Sequence[Sequence[int]] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        **columns: Any,
    ) -> Rewards:
        """Return a number or None for each completion, in order, to be awaited or read as a list; called by TRL.

        TRL gives all by name, and ms-swift the completions by place; prompts must be named, as swapped places would be
        zeros.

        Raises:
            ValueError: a column is missing or of another length, or a scorer that compares the completions of a prompt
                may not have all of them.
            TooManyFailures: too many completions could not be judged; raised when it is awaited or read.
        """
        count = len(completions)
        self._check_columns(completions, prompts, completion_ids, columns)
        told = {name: list(cells) for name, cells in columns.items() if size_of(cells) == count}
        known = _state(columns.get("trainer_state")) if self.trainer_state else {}
        rows = [{**known, **{name: cells[place] for name, cells in told.items()}} for place in range(count)]
        ends = [self._end(ids) for ids in completion_ids] if completion_ids is not None else [None] * count
        if prompts is None:  # ms-swift gives the chats instead, each with its completion, and says how it ended
            prompts = [_asked(row.pop("messages", None)) for row in rows]
            ends = [row.pop("finish_reason", None) for row in rows]
        elif completion_ids is None and self._ends:
            raise ValueError(
                f"end_token={self.end_token!r}, and no completion_ids came, so that nothing says which completions "
                "end in it. Give them, as TRL does, or leave the option out"
            )
        samples = [
            self.made_sample(row, prompt, completion, group=self._prompt_id(row), finish_reason=end)
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

    def _check_columns(self, completions: Any, prompts: Any, completion_ids: Any, columns: Mapping[str, Any]) -> None:
        """Raise `ValueError` if a column that is read has not one cell for each completion."""
        given = {"prompts": prompts, "completion_ids": completion_ids}
        read = {name: cells for name, cells in given.items() if cells is not None}
        for place in (self.reference, self.group, self.data_source if self.scorers else ""):
            if isinstance(place, str) and place:
                read |= {top: columns[top] for top in Column(place).tops(columns) if top in columns}
        check_aligned(self.framework, completions=completions, **read)

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
            for name, value in _metrics(scores, parts=_names_are_gathered()).items():
                log_metric(f"{self.__name__}/{name}", value)
        if log_extra is not None:
            log_extra(f"{self.__name__}_reason", [f"{score.status} {score.reason}".rstrip() for score in scores])
        return [
            self.fallback if score.value is None and not is_out_of_scope(score) else score.value for score in scores
        ]

    def _numbered(self, names: Sequence[str], samples: Sequence[Sample]) -> list[str]:
        """Return names that tell equal prompts apart; raise `ValueError` if this process has a part of a group."""
        broken: list[tuple[int, int]] = []
        for number in filter(None, (self.num_generations, self.num_generations_eval)):
            runs = {first: names[first : first + number] for first in range(0, len(names), number)}
            first = next((at for at, run in runs.items() if len(run) < number or len(set(run)) > 1), None)
            if first is None:
                return [f"{name} {place // number}" for place, name in enumerate(names)]
            broken.append((number, first))
        number, first = broken[0]
        came = names[first : first + number].count(names[first])
        raise ValueError(
            f"num_generations={number}, and from completion {first} on {came} of "
            f"{str(samples[first].prompt)[:60]!r} came: this process has a part of a group. Make "
            f"per_device_train_batch_size times steps_per_generation a multiple of {number}, or leave the option out "
            "and let a reward server gather them (`cohort`). If this is an evaluation with another number, set "
            "num_generations_eval"
        )

    def _prompt_id(self, row: Mapping[str, Any]) -> str:
        """ms-swift's name for the completions of a prompt; TRL's own number says it better."""
        return "" if self.num_generations is not None else named(row.get("prompt_id"))

    def _end(self, ids: Sequence[int]) -> str | None:
        if not self._ends or not len(ids):
            return None
        return "stop" if int(ids[-1]) in self._ends else "length"


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

    def __add__(self, other: Sequence[float | None]) -> list[float | None]:
        return [*self, *other]

    def __radd__(self, other: Sequence[float | None]) -> list[float | None]:
        return [*other, *self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (self._values,)  # a copy in another process is what was computed here

    def __eq__(self, other: object) -> bool:
        return self._values == list(other) if isinstance(other, list | tuple | Rewards) else NotImplemented

    __hash__ = object.__hash__  # asyncio wants it of what is awaited

    def __repr__(self) -> str:
        return repr(self._values)


def _names_are_gathered() -> bool:
    """Whether processes may log metrics of different names.

    Before 1.16, TRL gathers the metrics that it has by name, and waits for ever for those that another process lacks.
    """
    if int(os.environ.get("WORLD_SIZE") or 1) == 1:
        return True
    try:
        major, minor = version("trl").split(".")[:2]
    except PackageNotFoundError:  # somebody else's trainer
        return False
    return (int(major), int(minor)) >= (1, 16)


def _metrics(scores: Sequence[Score], *, parts: bool) -> dict[str, float]:
    """The shares of what has no number, and the means of the parts of what has one."""
    foreign = sum(map(is_out_of_scope, scores))
    counts = {status: sum(score.status == status for score in scores) for status in ("failed", "abstained")}
    counts["abstained"] -= foreign
    shares = {name: count / max(1, len(scores)) for name, count in {**counts, "out_of_scope": foreign}.items()}
    values: dict[str, list[float]] = {}
    for score in scores if parts else ():
        for name, part in score.parts.items():
            if part.value is not None:
                values.setdefault(f"part_{name}", []).append(part.value)
    return {**shares, **{name: sum(known) / len(known) for name, known in values.items()}}


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
