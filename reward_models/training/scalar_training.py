"""Training a scalar reward model on preferences or ratings, and measuring it on prompts it never saw.

The folder that comes out is a checkpoint (`adjudge.engines.reward_network`) with a model card and `report.json`; it
is whole when the report is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from adjudge.engines.checkpoint_notes import CheckpointNotes
from adjudge.reward_models.training.held_out import (
    Numbers,
    Rewarded,
    preference_measures,
    rated_measures,
    training_means,
)
from adjudge.reward_models.training.report import Measures, TrainingReport, scalar_use
from adjudge.reward_models.training.rows import Unit
from adjudge.reward_models.training.scalar_config import ScalarTraining
from adjudge.reward_models.training.scalar_data import PreferenceBatches, encode, split_data, texts_of
from adjudge.reward_models.training.training import Split, Training, output_of, run_training
from adjudge.training.backbones import NGRAMS
from adjudge.training.examples import Example

if TYPE_CHECKING:
    from torch import Tensor

    from adjudge.engines.reward_network import RewardNetwork
    from adjudge.reward_models.training.loop import Progress
    from adjudge.reward_models.training.objective import TrainedNetwork


def train_scalar(
    config: ScalarTraining, *, resume: bool = False, progress: Callable[[Progress], None] | None = None
) -> TrainingReport:
    """Train a scalar reward model; return the report, which also stands in the output folder.

    Args:
        config: what, from what, and how.
        resume: go on with an interrupted training; one that has finished is not repeated.
        progress: told after every step.

    Raises:
        ValueError: the configuration, the data or the model cannot be used; the message says which, and what to do.
    """

    def ngrams(data: Split[Example]) -> TrainingReport:
        from adjudge.reward_models.training.ngram_training import train_ngrams

        return train_ngrams(config, data, output_of(config))

    return run_training(
        config,
        lambda: split_data(config),
        _ScalarTraining,
        resume=resume,
        progress=progress,
        ngrams=ngrams if config.model.name == NGRAMS else None,
    )


class _ScalarTraining(Training[ScalarTraining, Example]):
    what = "scalar"
    same = ("loss", "regularizers", "head")
    measured_on = "held_out"

    def texts(self) -> list[str]:
        return texts_of(self.data.train)

    def kind(self) -> Literal["body", "causal"]:
        return "causal" if "text" in self.config.regularizers else "body"

    def prepare(self) -> None:
        self.chats = self.finished_chats(self.config.data.reasoning)

    def units(self, examples: Sequence[Example], *, training: bool) -> tuple[list[Unit[Example]], Counter[str]]:
        return encode(examples, self.chats, paraphrases=training and "consistency" in self.config.regularizers)

    def model(self) -> TrainedNetwork:
        from adjudge.engines.reward_network import RewardNetwork, head_of
        from adjudge.reward_models.training.objective import Objective, TrainedNetwork

        config, opened = self.config, self.opened
        head = replace(config.head, outputs=2) if "length" in config.regularizers else config.head
        network = RewardNetwork.on(opened.body, head)
        home = Path(config.model.name).expanduser()
        before = CheckpointNotes.read(home) if config.model.name else None
        if before is not None and before.what == "scalar" and before.head == head:  # a model of ours, trained further
            network.head.load_state_dict(head_of(home, before, network.head.width).state_dict())
        language_head = None
        if opened.language_model is not None:
            language_head = opened.language_model.get_output_embeddings()
            own = {id(value) for value in opened.body.parameters()}
            for value in language_head.parameters():
                value.requires_grad_(id(value) in own)  # a head of its own stays what it was; it is not saved
        network.backbone = self.trainable(opened.body)
        self.objective = Objective(config.loss, config.head, config.regularizers)
        return TrainedNetwork(network, self.objective, bf16=self.bf16, language_head=language_head)

    def batches(self) -> PreferenceBatches:
        config = self.config
        return PreferenceBatches(
            units=self.train,
            budget=self.budget,
            lists=config.loss.name == "plackett_luce",
            text="text" in config.regularizers,
            members=config.loss.members(config.head) if config.loss.bootstrap else 1,
            seed=config.seed,
        )

    def merge(self, model: TrainedNetwork) -> RewardNetwork:
        """Return the network that is saved: factors merged in, and without the head that explained length."""
        import torch

        from adjudge.engines.reward_network import RewardNetwork

        network = model.network
        body = self.merged(network.backbone)
        if "length" not in self.config.regularizers:
            return RewardNetwork(body, network.head).eval()
        plain = RewardNetwork.on(body, self.config.head)
        with torch.no_grad():
            plain.head.score.weight.copy_(network.head.score.weight[:1])
        return plain.eval()

    def measures(self, model: TrainedNetwork | RewardNetwork) -> Measures:
        whole: Any = model
        self.rewarded = self._rewarded(getattr(whole, "network", whole))
        if not self.config.loss.rated:
            return preference_measures(self.rewarded)
        means = training_means(self.data.train)
        return rated_measures(self.rewarded, self.config.loss.name, means, self.data.attributes)

    def _rewarded(self, network: RewardNetwork) -> list[Rewarded]:
        import torch

        def read(input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            with torch.autocast(input_ids.device.type, dtype=torch.bfloat16, enabled=self.bf16):
                raw: Tensor = network(input_ids, attention_mask)
                return raw

        rows = [span.tokens for unit in self.held for span in unit.spans]
        raw = iter(self.said(network, rows, read))
        return [
            Rewarded(
                example=unit.example,
                rewards=self._predictions(torch.from_numpy(np.stack([next(raw) for _ in unit.spans]))),
                lengths=np.array([span.size for span in unit.spans], dtype=float),
                cluster=unit.cluster,
            )
            for unit in self.held
        ]

    def _predictions(self, raw: Tensor) -> Numbers:
        """Rewards, (rows, members), of raw numbers; for ratings the predicted attributes, (rows, outputs)."""
        head, name = self.config.head, self.config.loss.name
        if name in ("regression", "gaussian_nll"):
            predicted = raw[:, : head.outputs]
        elif name == "pinball":
            predicted = raw.reshape(len(raw), head.outputs, head.levels).mean(dim=2)
        else:
            predicted = self.objective.rewards(raw)
        numbers: Numbers = predicted.numpy()
        return numbers

    def final_measures(self, model: RewardNetwork) -> Measures:
        """Return what the model reaches, beside the n-gram model if that is asked for."""
        reached, rules = self.measures(model)
        if self.config.baselines and not self.config.loss.rated:
            from adjudge.reward_models.training.ngram_training import ngram_baseline

            rules = {**rules, **ngram_baseline(self.config, self.data, self.held)}
        return reached, rules

    def counts(self) -> dict[str, Any]:
        tokens = sum(len(span.tokens) for unit in self.train for span in unit.spans)
        counts: dict[str, Any] = {"training_tokens": tokens, "digest": self.data.digest}
        if (tie := self.objective.tie_value) is not None:
            counts["learnt_tie_parameter"] = tie
        return counts

    def save(self, model: RewardNetwork, report: TrainingReport) -> None:
        # Log-odds of different labels have no common mean.
        one_scale = self.config.loss.name != "multi_label"
        rewards = np.concatenate([one.rewards.mean(axis=1) for one in self.rewarded]) if one_scale else None
        labels = self.data.attributes if len(self.data.attributes) == self.config.head.outputs else ()
        notes = self.notes(report, rewards, what="scalar", head=model.head.config, labels=labels)
        model.save(self.output, self.opened.tokenizer, notes)

    def use(self) -> Mapping[str, str]:
        return scalar_use(self.output)
