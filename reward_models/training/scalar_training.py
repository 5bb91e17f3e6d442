"""Training a scalar reward model on preferences or ratings, and measuring it on prompts it never saw.

The folder that comes out is a checkpoint (`adjudge.engines.reward_checkpoint`) with a model card and `report.json`; it
is whole when the report is there.

Not covered: gating heads, and choosing among checkpoints by the held-out examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adjudge.engines.checkpoint_notes import CheckpointNotes, Normalizer, template_digest
from adjudge.reward_models.training.held_out import (
    Judged,
    Numbers,
    category_measures,
    preference_measures,
    rated_measures,
    training_means,
)
from adjudge.reward_models.training.report import Measures, TrainingReport, scalar_use
from adjudge.reward_models.training.rows import FinishedChats, padded
from adjudge.reward_models.training.run_setup import RunSetup, finished, output_of, require, run_training
from adjudge.reward_models.training.scalar_config import ScalarTraining
from adjudge.reward_models.training.scalar_data import Batches, Encoded, SplitData, encode, split_data, texts_of
from adjudge.training.backbones import NGRAMS, Opened

if TYPE_CHECKING:
    from adjudge.engines.reward_network import RewardNetwork
    from adjudge.reward_models.training.loop import Progress
    from adjudge.reward_models.training.objective import TrainedNetwork


def train_scalar(
    config: ScalarTraining, *, resume: bool = False, progress: Callable[[Progress], None] | None = None
) -> TrainingReport:
    """Train a scalar reward model.

    Args:
        config: what, from what, and how.
        resume: go on with an interrupted training; one that has finished is not repeated.
        progress: told after every step.

    Returns:
        The report, which also stands in the output folder.

    Raises:
        ValueError: the configuration, the data or the model cannot be used; the message says which, and what to do.
    """
    if done := finished(config, resume=resume):
        return done
    data = split_data(config)
    if config.model.name == NGRAMS:
        from adjudge.reward_models.training.ngram_training import train_ngrams

        return train_ngrams(config, data, output_of(config))
    return run_training(config, lambda run: _Training(run, data).report(), resume=resume, progress=progress)


@dataclass(frozen=True)
class _Training:
    run: RunSetup[ScalarTraining]
    data: SplitData

    @property
    def config(self) -> ScalarTraining:
        return self.run.config

    def report(self) -> TrainingReport:
        """Train, save and measure."""
        config, run = self.config, self.run
        opened = run.opened("causal" if "text" in config.regularizers else "body", texts_of(self.data.train))
        limit = run.limit(opened)
        chats = FinishedChats(opened.tokenizer, model=opened.name, max_length=limit, reasoning=config.data.reasoning)
        train, dropped = encode(self.data.train, chats, paraphrases="consistency" in config.regularizers)
        held, lost = encode(self.data.held, chats, paraphrases=False)
        require(train, dropped, "training")
        require(held, lost, "held-out")
        clusters = dict(zip(map(id, self.data.held), self.data.clusters, strict=True))
        model = self._network(opened)
        batches = Batches(
            units=train,
            budget=run.budget,
            lists=config.loss.name == "plackett_luce",
            text="text" in config.regularizers,
            members=config.head.members if config.loss.bootstrap else 1,
            seed=config.seed,
        )

        def judged(network: RewardNetwork) -> list[Judged]:
            return self._judged(network, model, held, clusters)

        result = run.train(
            model,
            [unit.length for unit in train],
            batches,
            opened,
            same=("loss", "regularizers", "head"),
            data=self.data.digest,
            measured=lambda: self._measures(judged(model.network)),
        )
        network = self._plain(model)
        measured = judged(network)
        counts = self._counts(train, held, dropped, lost, limit)
        if (tie := model.objective.tie_value) is not None:
            counts["learnt_tie_parameter"] = tie
        report = run.report("scalar", result, self._final_measures(measured), counts, chats.warnings)
        return self._saved(opened, network, measured, report, limit)

    def _network(self, opened: Opened) -> TrainedNetwork:
        from adjudge.engines.reward_checkpoint import head_of
        from adjudge.engines.reward_network import RewardNetwork
        from adjudge.reward_models.training.objective import Objective, TrainedNetwork

        config = self.config
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
        network.backbone = self.run.trainable(opened.body)
        objective = Objective(config.loss, config.head, config.regularizers)
        return TrainedNetwork(network, objective, bf16=self.run.bf16, language_head=language_head)

    def _judged(
        self, network: RewardNetwork, model: TrainedNetwork, held: Sequence[Encoded], clusters: Mapping[int, str]
    ) -> list[Judged]:
        import torch

        run = self.run
        rows = [row for unit in held for row in unit.rows]

        def read(places: Sequence[int], device: Any) -> Any:
            batch = padded([rows[at].tolist() for at in places])
            with torch.autocast(torch.device(device).type, dtype=torch.bfloat16, enabled=run.bf16):
                return network(*(value.to(device) for value in batch.values()))

        raw = iter(run.said(network, [len(row) for row in rows], read))
        found = []
        for unit in held:
            rewards = _predictions(model, torch.from_numpy(np.stack([next(raw) for _ in unit.rows])))
            sizes = [len(row) - start for row, start in zip(unit.rows, unit.starts, strict=True)]
            found.append(
                Judged(
                    example=unit.example,
                    rewards=rewards,
                    lengths=np.array(sizes, dtype=float),
                    cluster=clusters[id(unit.example)],
                )
            )
        return found

    def _measures(self, judged: Sequence[Judged]) -> Measures:
        if not self.config.loss.rated:
            return preference_measures(judged)
        if self.config.loss.name == "multi_label":
            return category_measures(judged, self.data.attributes)
        return rated_measures(
            judged,
            labels=self.config.loss.name == "bce",
            means=training_means(self.data.train),
            attributes=self.data.attributes,
        )

    def _counts(
        self,
        train: Sequence[Encoded],
        held: Sequence[Encoded],
        dropped: Mapping[str, int],
        lost: Mapping[str, int],
        limit: int,
    ) -> dict[str, Any]:
        return {
            **self.data.counts,
            "trained_on": len(train),
            "held_out": len(held),
            "left_out_of_training": dict(dropped),
            "left_out_of_held_out": dict(lost),
            "max_length": limit,
            "training_tokens": int(sum(len(row) for unit in train for row in unit.rows)),
            "digest": self.data.digest,
        }

    def _final_measures(self, judged: Sequence[Judged]) -> Measures:
        """What the model reaches, beside the n-gram model if that is asked for."""
        metrics, rules = self._measures(judged)
        if self.config.baselines and not self.config.loss.rated:
            from adjudge.reward_models.training.ngram_training import ngram_baseline

            held = [one.example for one in judged]  # without those that were too long
            rules = {**rules, **ngram_baseline(self.config, self.data, held, [one.cluster for one in judged])}
        return metrics, rules

    def _saved(
        self,
        opened: Opened,
        network: RewardNetwork,
        judged: Sequence[Judged],
        report: TrainingReport,
        limit: int,
    ) -> TrainingReport:
        rewards = np.concatenate([one.rewards.mean(axis=1) for one in judged])
        spread = float(rewards.std())
        one_scale = self.config.loss.name != "multi_label"  # log-odds of different labels have no common mean
        labels = self.data.attributes if len(self.data.attributes) == self.config.head.outputs else ()
        notes = CheckpointNotes(
            what="scalar",
            head=network.head.config,
            normalizer=Normalizer(float(rewards.mean()), spread) if spread > 0 and one_scale else None,
            labels=labels,
            max_length=limit,
            template=template_digest(opened.tokenizer.chat_template),
            trained=report.facts(),
        )
        run = self.run
        return run.saved(
            report,
            lambda: network.save(run.output, opened.tokenizer, notes),
            lambda: scalar_use(run.output),
        )

    def _plain(self, model: TrainedNetwork) -> RewardNetwork:
        """The network that is saved: factors merged in, and without the head that explained length."""
        import torch

        from adjudge.engines.reward_network import RewardNetwork

        network = model.network
        body = self.run.merged(network.backbone)
        if "length" not in self.config.regularizers:
            return RewardNetwork(body, network.head).eval()
        plain = RewardNetwork.on(body, self.config.head)
        with torch.no_grad():
            plain.head.score.weight.copy_(network.head.score.weight[:1])
        return plain.eval()


def _predictions(model: TrainedNetwork, raw: Any) -> Numbers:
    """Rewards, (rows, members), of raw numbers; for ratings the predicted attributes, (rows, outputs)."""
    head, name = model.objective.head, model.objective.loss.name
    if name in ("regression", "gaussian_nll"):
        found: Numbers = raw[:, : head.outputs].numpy()
    elif name == "pinball":
        found = raw.reshape(len(raw), head.outputs, head.levels).mean(dim=2).numpy()
    else:
        found = model.objective.rewards(raw).numpy()
    return found
