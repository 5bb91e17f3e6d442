"""Training a policy on pairs with DPO and its relatives, and measuring it on prompts it never saw.

The reference is the model's own start: its log-probabilities are taken once, before the first step, so no second model
stays in memory.  What comes out is an ordinary causal language model with a model card and `report.json`.

Not covered: drawing responses while training (that is the trainer in `adjudge.rl_integration`), and answers of several
turns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adjudge.engines.interface import Fault
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.reward_models.scalar.chat import ChatForm
from adjudge.reward_models.training.held_out import JudgedPairs, Numbers, pair_measures
from adjudge.reward_models.training.policy_config import PolicyTraining
from adjudge.reward_models.training.report import Measures, TrainingReport
from adjudge.reward_models.training.rows import FinishedChats, Span, logprobs_of, micro_batches, span_tensors
from adjudge.reward_models.training.run_setup import RunSetup, finished, require, run_training
from adjudge.reward_models.training.scalar_config import LossChoice, ScalarTraining
from adjudge.reward_models.training.scalar_data import SplitData, split_data, texts_of
from adjudge.statistics.intervals import clustered_mean
from adjudge.training.examples import Pair

if TYPE_CHECKING:
    from adjudge.reward_models.training.loop import Progress
    from adjudge.reward_models.training.policy_objective import PolicyObjective


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """A pair as two spans of tokens.

    Attributes:
        chosen: the better response.
        rejected: the worse one.
        margin: of their rewards; not a number where none is told.
        weight: how much the pair counts.
        cluster: the prompt's family.
    """

    chosen: Span
    rejected: Span
    margin: float
    weight: float
    cluster: str

    @property
    def length(self) -> int:
        """Tokens of the longer row."""
        return max(len(self.chosen.tokens), len(self.rejected.tokens))


class PairSpans:
    """Turns pairs into spans.

    Args:
        tokenizer: of `transformers`.
        config: of the training.
        model: the model's name, for messages.
        max_length: most tokens of a row.

    Raises:
        ValueError: the chat template makes chats that cannot be trained on.
    """

    def __init__(self, tokenizer: Any, config: PolicyTraining, *, model: str, max_length: int) -> None:
        self._chats = FinishedChats(tokenizer, model=model, max_length=max_length, reasoning=config.data.reasoning)
        self._reader = PromptTokens(tokenizer, model=model, window=max_length)
        self._form = ChatForm(special=self._reader.special_tokens, reasoning=config.data.reasoning)
        self._whole = config.whole
        self._most = max_length
        self.warnings = self._chats.warnings

    def rows(self, pairs: Sequence[Pair], clusters: Sequence[str]) -> tuple[list[PairRow], Counter[str]]:
        """Return the pairs that can be trained on, and how many cannot, by reason."""
        found: list[PairRow] = []
        dropped: Counter[str] = Counter()
        for pair, cluster in zip(pairs, clusters, strict=True):
            spans = self._finished(pair) if self._whole else self._steps(pair)
            if isinstance(spans, str):
                dropped[spans] += 1
                continue
            margin = math.nan if pair.margin is None else pair.margin
            found.append(
                PairRow(chosen=spans[0], rejected=spans[1], margin=margin, weight=pair.weight, cluster=cluster)
            )
        return found, dropped

    def _finished(self, pair: Pair) -> tuple[Span, Span] | str:
        rows = self._chats.rows(pair.prompt, [pair.chosen, pair.rejected])
        if isinstance(rows, str):
            return rows
        if min(row.start for row in rows) < 1:
            return "the chat template does not begin a chat as it goes on"
        better, worse = (Span(tokens=row.tokens, start=row.start) for row in rows)
        return better, worse

    def _steps(self, pair: Pair) -> tuple[Span, Span] | str:
        """Spans that end with the response's text: nothing says that a step is the last one."""
        (begun,) = self._reader.read([list(self._form.prompt(pair.prompt))])
        if isinstance(begun, Fault):
            return begun.detail
        spans = []
        for text in (pair.chosen, pair.rejected):
            (turn,) = self._form.text_turns(text)
            tokens = (*begun, *self._reader.text(str(turn["content"])))
            if len(tokens) > self._most:
                return "longer than max_length"
            if len(tokens) == len(begun):
                return "a response without text"
            spans.append(Span(tokens=tokens, start=len(begun)))
        return spans[0], spans[1]


def train_policy(
    config: PolicyTraining, *, resume: bool = False, progress: Callable[[Progress], None] | None = None
) -> TrainingReport:
    """Train a policy on pairs.

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
    loss = LossChoice(name="margin" if config.reads_margins else "bt")
    # What a pair must have is the same as for a reward model with such a loss, and so is the split.
    data = split_data(
        ScalarTraining(model=config.model, data=config.data, output=config.output, loss=loss, seed=config.seed)
    )
    if odd := sum(not isinstance(example, Pair) for example in (*data.train, *data.held)):
        raise ValueError(f"{odd} rows of the data are lists or ratings; a policy is trained on pairs")
    return run_training(config, lambda run: _Training(run, data).report(), resume=resume, progress=progress)


@dataclass(frozen=True)
class _Training:
    run: RunSetup[PolicyTraining]
    data: SplitData

    def report(self) -> TrainingReport:
        """Train, save and measure."""
        from adjudge.reward_models.training.policy_objective import PolicyObjective

        config, run = self.run.config, self.run
        start = run.opened("causal", texts_of(self.data.train))
        limit = run.limit(start)
        spans = PairSpans(start.tokenizer, config, model=start.name, max_length=limit)
        pairs = [
            [example for example in side if isinstance(example, Pair)] for side in (self.data.train, self.data.held)
        ]
        train, dropped = spans.rows(pairs[0], [""] * len(pairs[0]))
        held, lost = spans.rows(pairs[1], self.data.clusters)
        require(train, dropped, "training")
        require(held, lost, "held-out")
        model = PolicyObjective(
            start.language_model, config.loss, scaling=config.scaling, likelihood=config.likelihood, bf16=run.bf16
        )
        compared = self._compared(model, start.tokenizer)
        reference, before = (
            (self._said(compared, rows) if compared else np.zeros((len(rows), 2))) for rows in (train, held)
        )
        del compared  # another model than the start need not stay in memory
        model.model = run.trainable(start.language_model)
        result = run.train(
            model,
            [row.length for row in train],
            _Batches(train, reference, run.budget),
            start,
            same=("loss", "scaling", "likelihood", "reference", "reference_model", "whole"),
            data=self.data.digest,
            measured=lambda: self._measures(model, held, before),
        )
        model.model = run.merged(model.model)
        counts = {
            **self.data.counts,
            "trained_on": len(train),
            "held_out": len(held),
            "left_out_of_training": dict(dropped),
            "left_out_of_held_out": dict(lost),
            "max_length": limit,
            "digest": self.data.digest,
        }
        report = run.report("policy", result, self._measures(model, held, before), counts, spans.warnings)

        def save() -> None:
            model.model.config.use_cache = True
            model.model.save_pretrained(run.output)
            start.tokenizer.save_pretrained(run.output)

        return run.saved(report, save, lambda: {"Use": "An ordinary causal language model with its chat template."})

    def _compared(self, model: PolicyObjective, tokenizer: Any) -> PolicyObjective | None:
        """Return what the policy is compared with: the start, another model, or nothing."""
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from adjudge.reward_models.training.policy_objective import PolicyObjective

        config = self.run.config
        if not config.reference or not config.reference_model:
            return model if config.reference else None
        try:
            other = AutoTokenizer.from_pretrained(config.reference_model)
            whole = AutoModelForCausalLM.from_pretrained(config.reference_model)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"reference_model is {config.reference_model!r}, which cannot be loaded: {error}"
            ) from error
        if other.get_vocab() != tokenizer.get_vocab():
            raise ValueError(
                f"reference_model is {config.reference_model!r}, which has other tokens than the model that is trained"
            )
        return PolicyObjective(whole, config.loss, bf16=self.run.bf16)

    def _said(self, model: PolicyObjective, rows: Sequence[PairRow]) -> Numbers:
        """Log-probabilities of responses, (pairs, 2): chosen and rejected."""
        spans = [span for row in rows for span in (row.chosen, row.rejected)]
        run = self.run
        return logprobs_of(model, spans, budget=run.budget, device=run.state.device).reshape(-1, 2)

    def _measures(self, model: PolicyObjective, held: Sequence[PairRow], before: Numbers) -> Measures:
        moved = self._said(model, held) - before
        sizes = np.array(
            [[len(span.tokens) - span.start for span in (row.chosen, row.rejected)] for row in held], float
        )
        clusters = [row.cluster for row in held]
        rewards = self.run.config.loss.beta * moved
        pairs = JudgedPairs(
            better=rewards[:, 0],
            worse=rewards[:, 1],
            better_length=sizes[:, 0],
            worse_length=sizes[:, 1],
            clusters=clusters,
            probability=np.ones(len(held)),
        )
        found, rules = pair_measures(pairs)
        found["chosen_moved_per_token"] = clustered_mean(moved[:, 0] / sizes[:, 0], clusters)
        found["rejected_moved_per_token"] = clustered_mean(moved[:, 1] / sizes[:, 1], clusters)
        return found, rules


class _Batches:
    """Makes the forward passes of a step."""

    def __init__(self, rows: Sequence[PairRow], reference: Numbers, budget: int) -> None:
        self._rows = rows
        self._reference = reference
        self._budget = budget

    def __call__(self, places: Sequence[int]) -> list[Mapping[str, Any]]:
        import torch

        rows = [self._rows[place] for place in places]
        total = sum(row.weight for row in rows) or 1.0
        lengths = [len(span.tokens) for row in rows for span in (row.chosen, row.rejected)]
        found: list[Mapping[str, Any]] = []
        for chosen in micro_batches(lengths, [[2 * at, 2 * at + 1] for at in range(len(rows))], self._budget):
            mine = [rows[at] for at in chosen]
            reference = self._reference[[places[at] for at in chosen]].reshape(-1)
            found.append(
                {
                    **span_tensors([span for row in mine for span in (row.chosen, row.rejected)]),
                    "reference": torch.tensor(reference, dtype=torch.float32),
                    "margins": torch.tensor([row.margin for row in mine]),
                    "weights": torch.tensor([row.weight / total for row in mine]),
                }
            )
        return found
