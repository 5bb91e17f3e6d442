"""The policy that learns as an engine, for scorers of its own run (`engine: policy`).

It is the very model: low-rank factors included, in evaluation mode, without gradients, in the arithmetic of rollouts.
Its batches and those that write answers take turns, and a run waits for its scores before the next update
(`Batches`), so an answer is scored by the weights that wrote it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from adjudge.engines.interface import Fault
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine
from adjudge.engines.transformers_jobs import Done, Jobs
from adjudge.engines.transformers_network import Network
from adjudge.engines.transformers_weights import Task
from adjudge.rl_integration.trainer.rollouts.policy import Policy


class PolicyEngine(TransformersEngine):
    """A policy in this process.

    Args:
        policy: asked as it is with each batch; not one in shards.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        super().__init__(TransformersConfig(model=policy.name))

    def _prepared(self) -> PromptTokens:
        return self._policy.tokens

    def _loaded(self) -> Jobs:
        with self._lock:
            if self._jobs is None:
                self._jobs = _PolicyJobs(self._policy, self.config)
            return self._jobs


class _PolicyJobs(Jobs):
    def __init__(self, policy: Policy, config: TransformersConfig) -> None:
        super().__init__(config, str(policy.device), policy.tokens)
        self._policy = policy

    def run(self, job: Hashable, rows: Sequence[Hashable]) -> list[Done | Fault]:
        """Return what each row of a batch got."""
        model = self._policy.model
        with self._policy.busy, self._policy.arithmetic():
            training = model.training
            model.eval()
            try:
                return super().run(job, rows)
            finally:
                model.train(training)
                if "generate" in self._networks:
                    self._networks.pop("generate").release()

    def network(self, task: Task) -> Network:
        """Return the policy, which is a language model."""
        if task != "generate":
            raise ValueError(f"{self._policy.name!r} is a policy, and no classifier; give another engine")
        if task not in self._networks:
            self._networks[task] = Network(self._policy.model, task, packing=False)
        return self._networks[task]
