"""Training a process reward model on labelled steps, and measuring it on problems it never saw.

The folder that comes out is a checkpoint (`adjudge.engines.reward_network`) with a model card and `report.json`; it
is whole when the report is there.  Its notes hold the scorers' format that reads steps where training did.

An implicit process model learns labels of answers alone: the reward of a response is β times the log-ratio of the model
to its frozen start; cut at the ends of steps, its sums score every step without a label for one (arXiv 2412.01981).
What comes out is an ordinary causal language model; the start is needed beside it to score, so a new one is kept in the
folder `reference`.  The likelihood of right responses is not part of the loss, and the model is not updated while a
policy is trained (PRIME, arXiv 2502.01456).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from adjudge.engines.interface import Fault, Prompt
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.prompts.escaping import escape
from adjudge.reward_models.process.rows import RowTokens
from adjudge.reward_models.process.step_format import chat_before, problem_text
from adjudge.reward_models.training.held_out import JudgedSteps, Numbers, label_measures, step_measures
from adjudge.reward_models.training.process_config import ProcessTraining
from adjudge.reward_models.training.process_rows import (
    StepBatches,
    StepUnit,
    labelled,
    labelled_units,
    read_split,
    step_places,
    texts_of,
)
from adjudge.reward_models.training.report import REFERENCE, Measures, TrainingReport, implicit_scorer, scorer_in, use
from adjudge.reward_models.training.rows import Batches, Span, Unit, response_tokens, units_of
from adjudge.reward_models.training.training import Split, Training, output_of, run_training
from adjudge.training.backbones import NGRAMS, Opened
from adjudge.training.config_file import plain_config
from adjudge.training.step_data import StepExample, require_difference

if TYPE_CHECKING:
    from adjudge.reward_models.training.loop import Progress
    from adjudge.reward_models.training.process_objective import ImplicitObjective, StepObjective

_NEW_MARKER = (
    "the marker {!r} is new to the tokenizer, and with LoRA its embedding is not trained; a model without a marker "
    "(layout.marker: '') has no such token"
)
_RANKING = "the loss ranking makes an order and no probabilities: calibration and a threshold of 0.5 mean nothing"
_USE = """`adjudge.json` says where steps are read. Where the head is one linear layer, transformers'
`AutoModelForTokenClassification` and vLLM load the folder too; the softmax over the outputs (or the sigmoid of a single
one) at a step's place is the probability that the step is right."""


def train_process(
    config: ProcessTraining, *, resume: bool = False, progress: Callable[[Progress], None] | None = None
) -> TrainingReport:
    """Train a process reward model; arguments, report and errors are as of `train_scalar`."""

    def ngrams(data: Split[StepExample]) -> TrainingReport:
        from adjudge.reward_models.training.ngram_training import train_ngram_steps

        return train_ngram_steps(config, data, output_of(config))

    return run_training(
        config,
        lambda: read_split(config.data, seed=config.seed),
        _ImplicitTraining if config.objective == "implicit" else _StepTraining,
        resume=resume,
        progress=progress,
        ngrams=ngrams if config.model.name == NGRAMS else None,
    )


class _OfSolutions(Training[ProcessTraining, StepExample]):
    what = "process"
    same = ("objective", "loss", "normalize", "outcome", "beta", "head", "layout", "too_long")

    def texts(self) -> list[str]:
        return texts_of(self.data.train)


class _StepTraining(_OfSolutions):
    def kind(self) -> Literal["body", "causal"]:
        return "body"

    def prepare(self) -> None:
        config, opened = self.config, self.opened
        new_marker = _with_marker(opened, config.layout.marker)
        self.format = config.layout.format(two_class=config.head.two_class)
        self.tokens = RowTokens(opened.tokenizer, model=opened.name)
        self.warnings = (_RANKING,) if config.loss.name == "ranking" else ()
        if new_marker and config.schedule.lora is not None:
            self.warnings = (*self.warnings, _NEW_MARKER.format(config.layout.marker))

    def units(self, examples: Sequence[StepExample], *, training: bool) -> tuple[list[StepUnit], Counter[str]]:
        return labelled_units(
            examples,
            self.tokens,
            self.format,
            max_length=self.limit,
            too_long=self.config.too_long,
            outcome=self.config.outcome > 0,
        )

    def model(self) -> StepObjective:
        from adjudge.engines.reward_network import RewardNetwork
        from adjudge.reward_models.training.process_objective import StepObjective

        config = self.config
        if not config.outcome:
            require_difference((label for unit in self.train for label in unit.example.labels), "steps")
        network = RewardNetwork.on(self.opened.body, config.head.config(outcome=config.outcome > 0))
        network.backbone = self.trainable(self.opened.body)
        error = config.data.labels.threshold
        return StepObjective(network, config.loss, outcome=config.outcome, error=error, bf16=self.bf16)

    def batches(self) -> StepBatches:
        return StepBatches(units=self.train, budget=self.budget, normalize=self.config.normalize)

    def merge(self, model: StepObjective) -> StepObjective:
        model.network.backbone = self.merged(model.network.backbone)
        return model

    def measures(self, model: StepObjective) -> Measures:
        rows = [unit.spans[0].tokens for unit in self.held]
        said = self.said(
            model,
            rows,
            model.chances,
            lambda places: {"places": step_places([self.held[at] for at in places])},
        )
        judged = [
            JudgedSteps(
                probabilities=tuple(chances[: len(unit.places)].tolist()),
                labels=unit.example.labels,
                cluster=unit.cluster,
                outcome=float(chances[-1]) if self.config.outcome else None,
                correct=unit.example.outcome,
            )
            for unit, chances in zip(self.held, said, strict=True)
        ]
        return step_measures(judged, error=self.config.data.labels.threshold)

    def counts(self) -> dict[str, Any]:
        return {
            "labelled_steps": sum(map(labelled, self.train)),
            "training_tokens": sum(unit.length for unit in self.train),
        }

    def save(self, model: StepObjective, report: TrainingReport) -> None:
        """Save the network without the output that learnt answers: programs take all outputs for classes of steps."""
        import torch

        from adjudge.engines.reward_network import RewardNetwork

        config, network = self.config, model.network.eval()
        if config.outcome:
            whole = network.head.state_dict()
            network = RewardNetwork.on(network.backbone, config.head.config(outcome=False)).eval()
            kept = network.head.config.outputs
            with torch.no_grad():
                for name, value in network.head.state_dict().items():
                    value.copy_(whole[name][:kept] if name.startswith("score.") else whole[name])
        record = self.format.record()
        plain: dict[str, Any] = {} if record.get("before", "chat") == "chat" else {"template": ""}
        notes = self.notes(
            report,
            what="process",
            head=network.head.config,
            labels=config.head.labels(outcome=False),
            marker=config.layout.marker,
            trained={**report.facts(), "format": record},
            **plain,
        )
        network.save(self.output, self.opened.tokenizer, notes)

    def use(self) -> Mapping[str, str]:
        return use(scorer_in(self.output), _USE)


def _with_marker(opened: Opened, marker: str) -> bool:
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


class _ImplicitTraining(_OfSolutions):
    def prepare(self) -> None:
        tokenizer, name = self.opened.tokenizer, self.opened.name
        self.reader = PromptTokens(tokenizer, model=name, window=self.limit)
        self.tokens = RowTokens(tokenizer, model=name)

    def units(self, examples: Sequence[StepExample], *, training: bool) -> tuple[list[StepUnit], Counter[str]]:
        return units_of(examples, self._spans)

    def _spans(self, example: StepExample) -> Sequence[Span] | str:
        """The problem, as a chat that the assistant is about to answer or a text with a line end, and the solution."""
        layout, tokens = self.config.layout, self.tokens
        if example.outcome is None:
            return "the answer has no label"
        prompt: Prompt = chat_before(tokens, example.prompt)
        if not layout.chat:
            prompt = f"{tokens.begin}{escape(problem_text(example.prompt), special=tokens.special)}\n"
        (begun,) = self.reader.read([prompt])
        if isinstance(begun, Fault):
            return begun.detail
        text = escape(layout.separator.join(step.strip() for step in example.steps), special=tokens.special)
        whole = (*begun, *self.reader.text(text))
        return "too long" if len(whole) > self.limit else [Span(tokens=whole, start=len(begun))]

    def model(self) -> ImplicitObjective:
        from adjudge.reward_models.training.process_objective import ImplicitObjective

        require_difference((unit.example.outcome for unit in self.train), "answers")
        opened = self.opened
        model = ImplicitObjective(opened.language_model, beta=self.config.beta, bf16=self.bf16)
        # Before anything is trained, the model is its own reference: one pass, and no second model in memory.
        self.before = [self._logprobs(model, units) for units in (self.train, self.held)]
        if self.config.model.from_scratch is not None and self.is_main:
            # Nobody else has a new model; a training that was killed in here left half of it.
            self.save_plain(opened.language_model, self.output / REFERENCE)
        model.model = self.trainable(opened.language_model)
        return model

    def _logprobs(self, model: ImplicitObjective, units: Sequence[StepUnit]) -> Numbers:
        return self.logprobs(model, [unit.spans[0] for unit in units])

    def batches(self) -> _AnswerBatches:
        return _AnswerBatches(units=self.train, budget=self.budget, reference=self.before[0])

    def merge(self, model: ImplicitObjective) -> ImplicitObjective:
        model.model = self.merged(model.model)
        return model

    def measures(self, model: ImplicitObjective) -> Measures:
        rewards = self.config.beta * (self._logprobs(model, self.held) - self.before[1])
        lengths = np.array([unit.spans[0].size for unit in self.held], dtype=float)
        labels = np.array([unit.example.outcome for unit in self.held], dtype=float)
        return label_measures(rewards, labels, lengths, [unit.cluster for unit in self.held])

    def save(self, model: ImplicitObjective, report: TrainingReport) -> None:
        self.save_plain(model.model, self.output)

    def use(self) -> Mapping[str, str]:
        start = self.config.model.name or self.output / REFERENCE
        text = (
            "Both are ordinary causal language models; steps were separated by "
            f"{self.config.layout.separator!r} in training."
        )
        return use(implicit_scorer(self.output, start, plain_config(self.config)), text)


@dataclass(frozen=True, kw_only=True)
class _AnswerBatches(Batches[StepExample]):
    reference: Numbers

    def step(self, units: Sequence[Unit[StepExample]], places: Sequence[int]) -> Callable[[list[int]], dict[str, Any]]:
        import torch

        def tensors(chosen: list[int]) -> dict[str, Any]:
            return {
                "tokens": response_tokens([units[at].spans[0] for at in chosen]),
                "reference": torch.tensor([self.reference[places[at]] for at in chosen], dtype=torch.float32),
                "outcomes": torch.tensor([units[at].example.outcome for at in chosen]),
                "outcome_weights": torch.full((len(chosen),), 1 / len(places)),
            }

        return tensors
