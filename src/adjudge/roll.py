"""ROLL: a reward worker.

    # my_rewards.py
    MathWorker = RollReward(scorer="math", fallback=0.0).worker()

    rewards:                                    # in ROLL's configuration
      math: {worker_cls: my_rewards.MathWorker, tag_included: [...], ...}

ROLL puts the tensors of all its reward workers together, so there is no room for a mark of ours: a sample without a
score stops the run, or gets the `fallback`, and the shares of failed and abstained ones are among the metrics.  The
tensors have 16 bits: 0.1 arrives as 0.09998, and what is above 65504 would arrive as infinite, so it is refused or
clipped before.

Written from ROLL's source (commit 8eb27cc).  Not covered: rewards of single tokens; ROLL is given zeros there, as by
its own rule workers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from adjudge.protocol import Sample
from adjudge.rl_integration.adapters.row import Place, token_ids
from adjudge.rl_integration.adapters.row_reward import RowReward

LARGEST = 65504.0
"""The largest finite number of 16 bits."""


@dataclass(eq=False, kw_only=True)
class RollReward(RowReward):
    """Scores batches; `worker` makes the class that ROLL's configuration names.

    Attributes:
        reference: where the reference is among the batch's columns.
        end_tokens: the ids of the tokens that end a response.  With them, a response without any is scored as cut off.
        out_of_range: what becomes of a score beyond +-65504: "raise", or "clip" to that.

    The others are those of `RowReward`.
    """

    framework = "ROLL"
    reference: Place = "ground_truth"
    end_tokens: int | Collection[int] = ()
    out_of_range: Literal["raise", "clip"] = "raise"

    def __post_init__(self) -> None:
        """Load the scorers, and reject what cannot be meant."""
        if self.out_of_range not in ("raise", "clip"):
            raise ValueError(f'out_of_range={self.out_of_range!r}; it must be "raise" or "clip"')
        self._ends = token_ids("end_tokens", self.end_tokens)
        super().__post_init__()

    def rewards(self, data: Any, tokenizer: Any) -> Any:
        """Return what `compute_rewards` returns for a batch.

        Args:
            data: a `DataProto`: `batch` has `prompts` and `responses` (integers, batch x length, padded), and
                `non_tensor_batch` the columns.
            tokenizer: turns both into text; special tokens are left out.

        Returns:
            A `DataProto` with `scores` and `response_level_rewards` (batch) and `token_level_rewards` (batch x length,
            zeros), of 16 bits, and the shares of failed and abstained samples as metrics.

        Raises:
            NotScored: a sample has no score, and there is no fallback.
            TooManyFailures: too many of the latest samples failed.
            ValueError: the columns lack the reference, or a score does not fit into 16 bits.
        """
        import torch

        columns = data.non_tensor_batch
        rows = [{name: columns[name][place] for name in columns} for place in range(len(data.batch["responses"]))]
        scores = self.scores_blocking(rows, self._samples(rows, data, tokenizer))
        numbers = torch.tensor([self._fitting(self._asked.number(score)) for score in scores], dtype=torch.float64).to(
            torch.float16
        )
        made = type(data).from_dict(
            tensors={
                "token_level_rewards": torch.zeros_like(data.batch["responses"], dtype=torch.float16),
                "response_level_rewards": numbers,
                "scores": numbers.clone(),
            }
        )
        shares = {
            f"adjudge/{status}": sum(score.status == status for score in scores) / max(1, len(scores))
            for status in ("failed", "abstained")
        }
        made.meta_info = {"metrics": shares}
        return made

    def worker(self) -> type[Any]:
        """Return a reward worker class for ROLL's configuration."""
        parent: Any = import_module("roll.distributed.executor.worker").Worker
        decorator: Any = import_module("roll.distributed.scheduler.decorator")
        tokenizer_of: Any = import_module("roll.models.model_providers").default_tokenizer_provider
        register, dispatch = decorator.register, decorator.Dispatch
        reward = self

        class AdjudgeRewardWorker(parent):  # type: ignore[misc]
            def __init__(self, worker_config: Any) -> None:
                super().__init__(worker_config=worker_config)
                self.rank_info.dp_rank = self.rank_info.rank
                self.rank_info.dp_size = self.rank_info.world_size
                self.tokenizer = tokenizer_of(model_args=worker_config.model_args)

            @register(dispatch_mode=dispatch.ONE_TO_ALL)  # type: ignore[untyped-decorator]
            def initialize(self, pipeline_config: Any) -> None:
                pass  # called by ROLL on every worker; there is nothing to set up

            @register(dispatch_mode=dispatch.DP_MP_COMPUTE, clear_cache=False)  # type: ignore[untyped-decorator]
            def compute_rewards(self, data: Any) -> Any:
                return reward.rewards(data, self.tokenizer)

        return AdjudgeRewardWorker

    def _samples(self, rows: Sequence[dict[str, Any]], data: Any, tokenizer: Any) -> list[Sample]:
        prompts = tokenizer.batch_decode(data.batch["prompts"], skip_special_tokens=True)
        responses = tokenizer.batch_decode(data.batch["responses"], skip_special_tokens=True)
        return [
            self.made_sample(row, prompt, response, finish_reason=self._end(ids))
            for prompt, response, row, ids in zip(prompts, responses, rows, data.batch["responses"], strict=True)
        ]

    def _end(self, ids: Any) -> str | None:
        if not self._ends:
            return None
        tokens: Sequence[int] = ids.tolist()
        return "length" if self._ends.isdisjoint(tokens) else "stop"

    def _fitting(self, value: float) -> float:
        if abs(value) <= LARGEST:
            return value
        if self.out_of_range == "clip":
            return LARGEST if value > 0 else -LARGEST
        raise ValueError(
            f"the score {value!r} does not fit into ROLL's 16 bits, whose largest number is {LARGEST:.0f}; bring the "
            'scorer into range with a `transform`, or give out_of_range="clip"'
        )
