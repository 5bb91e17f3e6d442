"""verl: a reward manager, which tells the scorer what a reward function is not told.

    reward.reward_manager.source=importlib reward.reward_manager.name=AdjudgeRewardManager
    reward.reward_manager.module.path=pkg://adjudge.verl
    +reward.reward_kwargs.scorer=helpful

The scorer gets the prompt's messages, the group (`uid`), whether the response was cut off, and, where verl says which
tokens the model wrote, the model's turns and the tools' apart.

Tried with verl 0.9.1.  Not covered: images and sounds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module
from itertools import groupby
from typing import Any

from adjudge.io.values import plain
from adjudge.protocol import Message, Sample
from adjudge.rl_integration.adapters.row import named, read_reference
from adjudge.rl_integration.adapters.verl_scores import check_turns, extra_of, verl_options, verl_scores

_Base: Any = import_module("verl.experimental.reward_loop.reward_manager.base").RewardManagerBase


class AdjudgeRewardManager(_Base):  # type: ignore[misc]
    """Scores one trajectory at a time.  Its options are the fields of `VerlOptions`, under `reward.reward_kwargs`.

    Args:
        config: verl's whole configuration.
        tokenizer: of the policy.
        compute_score: verl's own reward function; not used.
        reward_router_address: of verl's own reward model; not used.
        reward_model_tokenizer: of verl's own reward model; not used.

    Raises:
        ValueError: an option is wrong, a scorer is unknown, or a custom reward function is configured besides.
    """

    def __init__(
        self,
        config: Any,
        tokenizer: Any,
        compute_score: Any,
        reward_router_address: str | None = None,
        reward_model_tokenizer: Any = None,
    ) -> None:
        super().__init__(config, tokenizer, compute_score)
        function = config.reward.get("custom_reward_function") or {}
        if function.get("path"):
            raise ValueError(
                f"both AdjudgeRewardManager and the reward function {function['path']!r} are configured; verl would "
                "ask the manager alone. Remove reward.custom_reward_function.path, or reward.reward_manager"
            )
        self._options = verl_options(config.reward.get("reward_kwargs") or {})
        self._scores = verl_scores(self._options)
        self._longest = int(config.actor_rollout_ref.rollout.response_length)

    async def run_single(self, data: Any) -> dict[str, Any]:
        """Return verl's `reward_score` and `reward_extra_info` for the last sequence of a `DataProto`.

        Raises:
            ValueError: a row lacks what the options name, or holds tools' text that cannot be told from the model's.
            NotScored: there is no score and no fallback.
            TooManyFailures: there is a fallback, but it would stand for too many.
        """
        row = data[-1:][0]
        sample = await asyncio.to_thread(self._sample, row.batch, row.non_tensor_batch)
        (numbers,) = await self._scores.ask([str(row.non_tensor_batch["data_source"])], [sample])
        return {"reward_score": numbers["score"], "reward_extra_info": numbers}

    def _sample(self, tensors: Any, columns: Mapping[str, Any]) -> Sample:
        prompt_ids, ids, written = _tokens(tensors, columns)
        if written is None:
            check_turns(columns.get("__num_turns__"), self._options)
        truth = columns.get("reward_model") or {}
        return Sample(
            prompt=plain(columns["raw_prompt"]) if "raw_prompt" in columns else self._text(prompt_ids),
            response=self._response(ids, written),
            reference=read_reference(truth.get("ground_truth")),
            group=named(columns.get("uid")),
            finish_reason=self._end(ids),
            extra=extra_of(str(columns["data_source"]), columns.get("extra_info"), self._options),
        )

    def _response(self, ids: list[int], written: list[int] | None) -> str | list[Message]:
        if written is None or all(written):
            return self._text(ids)
        turns: list[Message] = []
        for own, run in groupby(zip(written, ids, strict=True), key=lambda pair: bool(pair[0])):
            turns.append({"role": "assistant" if own else "tool", "content": self._text([token for _, token in run])})
        return turns

    def _text(self, ids: list[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def _end(self, ids: list[int]) -> str | None:
        if ids and ids[-1] == self.tokenizer.eos_token_id:
            return "stop"
        return "length" if len(ids) >= self._longest else None


def _tokens(tensors: Any, columns: Mapping[str, Any]) -> tuple[list[int], list[int], list[int] | None]:
    """The ids of the prompt and of the response, without padding, and which of the latter the model wrote, if known."""
    prompts, responses, attention = (tensors[name].tolist() for name in ("prompts", "responses", "attention_mask"))
    if "response_len" in columns:  # while generating, rows are padded at the end, prompts too, and lengths are given
        prompt, length = prompts[: int(columns["prompt_len"])], int(columns["response_len"])
    else:
        prompt = [token for token, real in zip(prompts, attention, strict=False) if real]
        length = sum(attention[len(prompts) :])
    mask = tensors.get("response_mask", None)
    return prompt, responses[:length], None if mask is None else mask.tolist()[:length]
