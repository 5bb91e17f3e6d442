"""Training an implicit process reward model: labels of answers alone, and a language model that learns them.

The reward of a response is β times the log-ratio of the model to its frozen start; cut at the ends of steps, its sums
score every step without a label for one (arXiv 2412.01981).  What comes out is an ordinary causal language model; the
start is needed beside it to score, so a new one is kept in the folder `reference`.

Not covered: adding the likelihood of right responses to the loss, and updating the model while a policy is trained
(PRIME, arXiv 2502.01456).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from adjudge.engines.interface import Fault, Prompt
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.prompts.escaping import escape
from adjudge.reward_models.process.formats.chat_pieces import chat_before
from adjudge.reward_models.process.formats.step_format import problem_text
from adjudge.reward_models.process.row_tokens import RowTokens
from adjudge.reward_models.training.batch_plan import micro_batches
from adjudge.reward_models.training.held_out import Numbers, label_measures
from adjudge.reward_models.training.model_folders import REFERENCE, implicit_scorer, use
from adjudge.reward_models.training.policy_spans import Span, logprobs_of, span_tensors
from adjudge.reward_models.training.preference_data import families
from adjudge.reward_models.training.process_config import ProcessTraining
from adjudge.reward_models.training.process_rows import StepSplit, require_difference, texts_of
from adjudge.reward_models.training.report import Measures, TrainingReport
from adjudge.reward_models.training.run_setup import RunSetup, require
from adjudge.reward_models.training.step_data import StepExample
from adjudge.training.backbones import Opened
from adjudge.training.config_file import plain_config

if TYPE_CHECKING:
    from adjudge.reward_models.training.process_objective import ImplicitObjective

Run = RunSetup[ProcessTraining]

SAME = ("objective", "loss", "normalise", "outcome", "beta", "head", "layout", "too_long")
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
    if run.state.is_main_process:
        model.model.save_pretrained(run.output)
        opened.tokenizer.save_pretrained(run.output)
        report = replace(report, sections=_use(run))
        report.write(run.output)
    run.state.wait_for_everyone()
    return report


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


def _use(run: Run) -> dict[str, str]:
    config = plain_config(run.config)
    text = (
        "Both are ordinary causal language models; steps were separated by "
        f"{run.config.layout.separator!r} in training."
    )
    return use(implicit_scorer(run.output, run.config.model.name or run.output / REFERENCE, config), text)
