"""What the file of a run holds: the run's own options, and the model, the data and the folder that it is about.

Not covered: reading it (`adjudge.training.config_file`).
"""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.rl_integration.trainer.loop.config import RunConfig
from adjudge.rl_integration.trainer.loop.records.logs import LogName
from adjudge.rl_integration.trainer.rollouts.tasks.task_files import TaskFiles
from adjudge.training.backbones import NGRAMS, ModelChoice


@dataclass(frozen=True, kw_only=True)
class RunFile(RunConfig):
    """A run, with what it is about.

    Attributes:
        model: the policy's start, which is also what divergences are measured from.
        data: prompts.
        output: the folder of the run: checkpoints, logs, the report, and at the end the policy in `policy`.
        report_to: where its numbers go besides `steps.jsonl`: tensorboard, wandb.
    """

    model: ModelChoice
    data: TaskFiles
    output: str
    report_to: tuple[LogName, ...] = ()

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        super().__post_init__()
        if not self.output.strip():
            raise ValueError("output is empty; name the folder of the run")
        if self.model.name == NGRAMS:
            raise ValueError("model is ngrams, which writes nothing; give from_scratch: tiny, or a language model")
        if len(set(self.report_to)) < len(self.report_to):
            raise ValueError(f"report_to is {', '.join(self.report_to)}; name each once")
