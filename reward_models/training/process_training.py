"""Training a process reward model on labelled steps, and measuring it on problems it never saw.

The folder that comes out is a checkpoint (`adjudge.engines.reward_checkpoint`) with a model card and `report.json`; it
is whole when the report is there.  Its notes hold the scorers' format that reads steps where training did.

Not covered: models that judge steps in words.

An implicit process model learns labels of answers alone: the reward of a response is β times the log-ratio of the model
to its frozen start; cut at the ends of steps, its sums score every step without a label for one (arXiv 2412.01981).
What comes out is an ordinary causal language model; the start is needed beside it to score, so a new one is kept in the
folder `reference`.  The likelihood of right responses is no part of the loss, and the model is not updated while a
policy is trained (PRIME, arXiv 2502.01456).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adjudge.engines.checkpoint_notes import CheckpointNotes, template_digest
from adjudge.engines.interface import Fault, Prompt
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.prompts.escaping import escape
from adjudge.reward_models.process.rows import RowTokens
from adjudge.reward_models.process.step_format import chat_before, problem_text
from adjudge.reward_models.training.held_out import Numbers, label_measures
from adjudge.reward_models.training.process_config import ProcessTraining, format_record
from adjudge.reward_models.training.process_metrics import Judged, step_measures
from adjudge.reward_models.training.process_rows import (
    StepSplit,
    labelled_rows,
    read_split,
    require_difference,
    texts_of,
)
from adjudge.reward_models.training.report import REFERENCE, Measures, TrainingReport, implicit_scorer, scorer_in, use
from adjudge.reward_models.training.rows import Span, logprobs_of, micro_batches, span_tensors
from adjudge.reward_models.training.run_setup import RunSetup, finished, output_of, require, run_training
from adjudge.training.backbones import NGRAMS, Opened
from adjudge.training.config_file import plain_config
from adjudge.training.data_files import families
from adjudge.training.step_data import StepExample

if TYPE_CHECKING:
    from adjudge.engines.reward_network import RewardNetwork
    from adjudge.reward_models.process.step_format import StepFormat
    from adjudge.reward_models.training.loop import Progress
    from adjudge.reward_models.training.process_objective import ImplicitObjective, StepObjective
    from adjudge.reward_models.training.process_rows import LabelledRow


Run = RunSetup[ProcessTraining]

SAME = ("objective", "loss", "normalize", "outcome", "beta", "head", "layout", "too_long")
"""The options that must be the same when a training of solutions resumes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """A response with the label of its answer.

    Attributes:
        span: the prompt, as a chat that the assistant is about to answer, and the response.
        outcome: the label, in [0, 1].
        cluster: the problem's family.
    """

    span: Span
    outcome: float
    cluster: str


def answer_rows(
    examples: Sequence[StepExample], tokenizer: Any, *, model: str, separator: str, chat: bool, max_length: int
) -> tuple[list[AnswerRow], Counter[str]]:
    """Return the solutions whose answer has a label as rows, and how many were left out, by reason.

    Args:
        examples: the solutions.
        tokenizer: of `transformers`.
        model: its name, for messages.
        separator: what stands between the steps.
        chat: whether the problem stands in a chat, or in a text with a line end behind it.
        max_length: most tokens of a row.
    """
    reader = PromptTokens(tokenizer, model=model, window=max_length)
    known = RowTokens(tokenizer, model=model)
    rows: list[AnswerRow] = []
    dropped: Counter[str] = Counter()
    for example, cluster in zip(examples, families(examples), strict=True):
        if example.outcome is None:
            dropped["the answer has no label"] += 1
            continue
        prompt: Prompt = chat_before(known, example.prompt)
        if not chat:
            prompt = f"{known.begin}{escape(problem_text(example.prompt), special=known.special)}\n"
        (begun,) = reader.read([prompt])
        if isinstance(begun, Fault):
            dropped[begun.detail] += 1
            continue
        text = escape(separator.join(step.strip() for step in example.steps), special=known.special)
        tokens = (*begun, *reader.text(text))
        if len(tokens) > max_length:
            dropped["too long"] += 1
        else:
            span = Span(tokens=tokens, start=len(begun))
            rows.append(AnswerRow(span=span, outcome=example.outcome, cluster=cluster))
    return rows, dropped


def train_implicit(run: Run, data: StepSplit) -> TrainingReport:
    """Train the model of a run whose objective is "implicit"; see `process_training.train_process`."""
    from adjudge.reward_models.training.process_objective import ImplicitObjective

    config = run.config
    opened = run.opened("causal", texts_of(data.train))
    limit = run.limit(opened)
    layout: dict[str, Any] = {
        "model": opened.name,
        "separator": config.layout.separator,
        "chat": config.layout.chat,
        "max_length": limit,
    }
    train, dropped = answer_rows(data.train, opened.tokenizer, **layout)
    held, lost = answer_rows(data.held_out, opened.tokenizer, **layout)
    require(train, dropped, "training")
    require(held, lost, "held-out")
    require_difference((row.outcome for row in train), "answers")
    model = ImplicitObjective(opened.language_model, beta=config.beta, bf16=run.bf16)
    # Before anything is trained, the model is its own reference: one pass, and no second model in memory.
    reference = [_logprobs(model, rows, run) for rows in (train, held)]
    if config.model.from_scratch is not None:
        _keep(run, opened)
    model.model = run.trainable(opened.language_model)

    def measured() -> Measures:
        rewards = config.beta * (_logprobs(model, held, run) - reference[1])
        lengths = np.array([len(row.span.tokens) - row.span.start for row in held], dtype=float)
        labels = np.array([row.outcome for row in held])
        return label_measures(rewards, labels, lengths, [row.cluster for row in held])

    result = run.train(
        model,
        [len(row.span.tokens) for row in train],
        _Batches(train, reference[0], run.budget),
        opened,
        same=SAME,
        data=data.facts["train_digest"],
        measured=measured,
    )
    model.model = run.merged(model.model)
    counts = {
        **data.facts,
        "trained_on": len(train),
        "measured_on": len(held),
        "left_out_of_training": dict(dropped),
        "left_out_of_held_out": dict(lost),
        "max_length": limit,
    }
    report = run.report("process", result, measured(), counts)

    def save() -> None:
        model.model.save_pretrained(run.output)
        opened.tokenizer.save_pretrained(run.output)

    return run.saved(report, save, lambda: _implicit_use(run))


def _logprobs(model: ImplicitObjective, rows: Sequence[AnswerRow], run: Run) -> Numbers:
    return logprobs_of(model, [row.span for row in rows], budget=run.budget, device=run.state.device)


class _Batches:
    """Makes the forward passes of a step."""

    def __init__(self, rows: Sequence[AnswerRow], reference: Any, budget: int) -> None:
        self._rows = rows
        self._reference = reference
        self._budget = budget

    def __call__(self, places: Sequence[int]) -> list[dict[str, Any]]:
        import torch

        found = []
        units = [[at] for at in range(len(places))]
        for chosen in micro_batches([len(self._rows[place].span.tokens) for place in places], units, self._budget):
            mine = [places[at] for at in chosen]
            found.append(
                {
                    **span_tensors([self._rows[place].span for place in mine]),
                    "reference": torch.tensor([self._reference[place] for place in mine], dtype=torch.float32),
                    "outcomes": torch.tensor([self._rows[place].outcome for place in mine]),
                    "outcome_weights": torch.full((len(mine),), 1 / len(places)),
                }
            )
        return found


def _keep(run: Run, opened: Opened) -> None:
    """Keep a new model as it was, since nobody else has it; a training that was killed in here left half of it."""
    if run.state.is_main_process:
        opened.language_model.save_pretrained(run.output / REFERENCE)
        opened.tokenizer.save_pretrained(run.output / REFERENCE)


def _implicit_use(run: Run) -> dict[str, str]:
    config = plain_config(run.config)
    text = (
        "Both are ordinary causal language models; steps were separated by "
        f"{run.config.layout.separator!r} in training."
    )
    return use(implicit_scorer(run.output, run.config.model.name or run.output / REFERENCE, config), text)


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
        from adjudge.reward_models.training.ngram_training import train_ngram_steps

        return train_ngram_steps(config, data, output_of(config))
    train = train_implicit if config.objective == "implicit" else _train_steps
    return run_training(config, lambda run: train(run, data), resume=resume, progress=progress)


def _train_steps(run: Run, data: StepSplit) -> TrainingReport:
    from adjudge.reward_models.training.process_rows import StepBatches

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
        StepBatches(train, pad=pad_id(opened.tokenizer), budget=run.budget, normalize=config.normalize),
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

    from adjudge.reward_models.training.process_rows import step_tensors

    def read(places: Sequence[int], device: Any) -> Any:
        batch = step_tensors([rows[at] for at in places], pad=0)
        del batch["labels"]
        steps, answers = objective.read(**{name: value.to(device) for name, value in batch.items()})
        return torch.sigmoid(torch.cat([steps, answers.unsqueeze(1)], dim=1).double())

    return [
        Judged(
            probabilities=tuple(chances[: len(row.places)].tolist()),
            labels=row.labels,
            cluster=row.cluster,
            outcome=float(chances[-1]) if run.config.outcome else None,
            correct=row.outcome,
        )
        for row, chances in zip(rows, run.said(objective, [len(row.tokens) for row in rows], read), strict=True)
    ]


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
    return run.saved(
        report,
        lambda: network.save(run.output, opened.tokenizer, notes),
        lambda: use(scorer_in(run.output), _USE),
    )


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
