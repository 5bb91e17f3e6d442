"""Training a process reward model on labelled steps, and measuring it on problems it never saw.

The folder that comes out is a checkpoint (`adjudge.engines.reward_checkpoint`) with a model card and `report.json`; it
is whole when the report is there.  Its notes hold the scorers' format that reads steps where training did.

Not covered: models that judge steps in words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adjudge.engines.checkpoint_notes import CheckpointNotes, template_digest
from adjudge.reward_models.process.row_tokens import RowTokens
from adjudge.reward_models.training.batch_plan import micro_batches
from adjudge.reward_models.training.held_out import require_finite
from adjudge.reward_models.training.model_folders import scorer_in, use
from adjudge.reward_models.training.process_config import ProcessTraining
from adjudge.reward_models.training.process_implicit import SAME, Run, train_implicit
from adjudge.reward_models.training.process_layout import format_record
from adjudge.reward_models.training.process_metrics import Judged, step_measures
from adjudge.reward_models.training.process_rows import (
    StepSplit,
    labelled_rows,
    read_split,
    require_difference,
    texts_of,
)
from adjudge.reward_models.training.report import Measures, TrainingReport
from adjudge.reward_models.training.run_setup import finished, output_of, require, run_training
from adjudge.training.backbones import NGRAMS, Opened

if TYPE_CHECKING:
    from adjudge.engines.reward_network import RewardNetwork
    from adjudge.reward_models.process.formats.step_format import StepFormat
    from adjudge.reward_models.training.loop import Progress
    from adjudge.reward_models.training.process_batches import LabelledRow
    from adjudge.reward_models.training.process_objective import StepObjective

_NEW_MARKER = (
    "the marker {!r} is new to the tokenizer, and with LoRA its embedding is not trained; a model without a marker "
    "(layout.marker: '') has no such token"
)
_RANKING = "the loss ranking makes an order and no probabilities: calibration and a threshold of 0.5 mean nothing"


def train_process(
    config: ProcessTraining, *, resume: bool = False, progress: Callable[[Progress], None] | None = None
) -> TrainingReport:
    """Train a process reward model.

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
    data = read_split(config.data, seed=config.seed)
    if config.model.name == NGRAMS:
        from adjudge.reward_models.training.ngram_steps import train_ngram_steps

        return train_ngram_steps(config, data, output_of(config))
    train = train_implicit if config.objective == "implicit" else _train_steps
    return run_training(config, lambda run: train(run, data), resume=resume, progress=progress)


def _train_steps(run: Run, data: StepSplit) -> TrainingReport:
    from adjudge.reward_models.training.process_batches import StepBatches

    config = run.config
    opened = run.opened("body", texts_of(data.train))
    added = with_marker(opened, config.layout.marker)
    limit = run.limit(opened)
    format = config.layout.format(two_class=config.head.two_class)
    tokens = RowTokens(opened.tokenizer, model=opened.name)
    read: dict[str, Any] = {"max_length": limit, "too_long": config.too_long, "outcome": config.outcome > 0}
    train, dropped = labelled_rows(data.train, tokens, format, **read)
    held, lost = labelled_rows(data.held_out, tokens, format, **read)
    require(train, dropped, "training")
    require(held, lost, "held-out")
    if not config.outcome:
        require_difference((label for row in train for label in row.labels), "steps")
    model = _objective(run, opened)

    def measured(objective: StepObjective) -> Measures:
        return step_measures(judged_rows(objective, held, run), error=config.data.labels.threshold)

    result = run.train(
        model,
        [len(row.tokens) for row in train],
        StepBatches(train, pad=pad_id(opened.tokenizer), budget=run.budget, normalise=config.normalise),
        opened,
        same=SAME,
        data=data.facts["train_digest"],
        measured=lambda: measured(model),
    )
    model.network.backbone = run.merged(model.network.backbone)
    counts = {
        **data.facts,
        "trained_on": len(train),
        "measured_on": len(held),
        "labelled_steps": sum(row.labelled for row in train),
        "left_out_of_training": dict(dropped),
        "left_out_of_held_out": dict(lost),
        "max_length": limit,
        "training_tokens": sum(len(row.tokens) for row in train),
    }
    warnings = [_RANKING] if config.loss.name == "ranking" else []
    if added and config.schedule.lora is not None:
        warnings.append(_NEW_MARKER.format(config.layout.marker))
    report = run.report("process", result, measured(model), counts, warnings)
    return _saved(run, opened, model, format, report, limit)


def with_marker(opened: Opened, marker: str) -> bool:
    """Give a model a marker that is one token, and return whether it was new; "" needs none."""
    if not marker or len(opened.tokenizer(marker, add_special_tokens=False)["input_ids"]) == 1:
        return False
    from transformers import AddedToken

    # In transformers' stubs, tokens are texts.
    new: Any = [AddedToken(marker, special=True, normalized=False)]
    opened.tokenizer.add_tokens(new, special_tokens=True)
    rows = opened.body.get_input_embeddings().weight.shape[0]
    if len(opened.tokenizer) > rows:
        opened.body.resize_token_embeddings(len(opened.tokenizer), mean_resizing=False)
    return True


def pad_id(tokenizer: Any) -> int:
    """Return the token that fills rows up; nothing looks at it, so any will do where there is none."""
    found = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    return int(found or 0)


def judged_rows(objective: StepObjective, rows: Sequence[LabelledRow], run: Run) -> list[Judged]:
    """Return what a model says about solutions, in order."""
    import torch

    from adjudge.reward_models.training.process_batches import step_tensors

    was = objective.training
    objective.eval().to(run.state.device)
    found: dict[int, Judged] = {}
    for chosen in micro_batches([len(row.tokens) for row in rows], [[at] for at in range(len(rows))], run.budget):
        batch = step_tensors([rows[at] for at in chosen], pad=0)
        del batch["labels"]
        with torch.no_grad():
            read = objective.read(**{name: value.to(run.state.device) for name, value in batch.items()})
        steps, answers = (require_finite(torch.sigmoid(one.double()).cpu().numpy()).tolist() for one in read)
        for place, said, answer in zip(chosen, steps, answers, strict=True):
            found[place] = Judged(
                probabilities=tuple(said[: len(rows[place].places)]),
                labels=rows[place].labels,
                cluster=rows[place].cluster,
                outcome=answer if run.config.outcome else None,
                correct=rows[place].outcome,
            )
    objective.train(was)
    return [found[at] for at in range(len(rows))]


def _objective(run: Run, opened: Opened) -> StepObjective:
    from adjudge.engines.reward_network import RewardNetwork
    from adjudge.reward_models.training.process_objective import StepObjective

    config, loss = run.config, run.config.loss
    network = RewardNetwork.on(opened.body, config.head.config(outcome=config.outcome > 0))
    network.backbone = run.trainable(opened.body)
    return StepObjective(
        network,
        loss=loss.name,
        good=loss.good,
        bad=loss.bad,
        margin=loss.margin,
        outcome=config.outcome,
        error=config.data.labels.threshold,
        bf16=run.bf16,
    )


def _saved(
    run: Run,
    opened: Opened,
    model: StepObjective,
    format: StepFormat,
    report: TrainingReport,
    limit: int,
) -> TrainingReport:
    config = run.config
    chat = format_record(format).get("before", "chat") == "chat"
    network = _steps_alone(model.network, config)
    notes = CheckpointNotes(
        what="process",
        head=network.head.config,
        labels=config.head.labels(outcome=False),
        marker=config.layout.marker,
        max_length=limit,
        template=template_digest(opened.tokenizer.chat_template) if chat else "",
        trained={**report.facts(), "format": dict(format_record(format))},
    )
    if run.state.is_main_process:
        network.save(run.output, opened.tokenizer, notes)
        report = replace(report, sections=use(scorer_in(run.output), _USE))
        report.write(run.output)
    run.state.wait_for_everyone()
    return report


def _steps_alone(network: RewardNetwork, config: ProcessTraining) -> RewardNetwork:
    """The network without the output that learnt answers: programs take all outputs for classes of steps."""
    import torch

    from adjudge.engines.reward_network import RewardNetwork

    if not config.outcome:
        return network.eval()
    plain = RewardNetwork.on(network.backbone, config.head.config(outcome=False))
    kept = plain.head.config.outputs
    with torch.no_grad():
        for name, value in plain.head.state_dict().items():
            trained = network.head.state_dict()[name]
            value.copy_(trained[:kept] if name.startswith("score.") else trained)
    return plain.eval()


_USE = """`adjudge.json` says where steps are read. Where the head is one linear layer, transformers'
`AutoModelForTokenClassification` and vLLM load the folder too; the softmax over the outputs (or the sigmoid of a single
one) at a step's place is the probability that the step is right."""
