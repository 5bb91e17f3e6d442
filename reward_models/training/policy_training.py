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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from adjudge.engines.shared_prefixes import common
from adjudge.reward_models.training.held_out import Numbers, Rewarded, RewardedPairs, pair_measures
from adjudge.reward_models.training.policy_config import PolicyTraining
from adjudge.reward_models.training.report import Measures, TrainingReport
from adjudge.reward_models.training.rows import Batches, FinishedChats, Span, Unit, response_tokens, units_of
from adjudge.reward_models.training.scalar_config import LossChoice, ScalarTraining
from adjudge.reward_models.training.scalar_data import split_data, texts_of
from adjudge.reward_models.training.training import Split, Training, run_training
from adjudge.statistics.intervals import clustered_mean
from adjudge.training.examples import Pair

if TYPE_CHECKING:
    from adjudge.reward_models.training.loop import Progress
    from adjudge.reward_models.training.policy_objective import PolicyObjective


def train_policy(
    config: PolicyTraining, *, resume: bool = False, progress: Callable[[Progress], None] | None = None
) -> TrainingReport:
    """Train a policy on pairs; arguments, report and errors are as of `train_scalar`."""
    return run_training(config, lambda: _pairs(config), _PolicyTraining, resume=resume, progress=progress)


def _pairs(config: PolicyTraining) -> Split[Pair]:
    """What a pair must have is the same as for a reward model with such a loss, and so is the split."""
    loss = LossChoice(name="margin" if config.reads_margins else "bt")
    data = split_data(
        ScalarTraining(model=config.model, data=config.data, output=config.output, loss=loss, seed=config.seed)
    )
    train, held = ([one for one in part if isinstance(one, Pair)] for part in (data.train, data.held_out))
    if odd := len(data.train) + len(data.held_out) - len(train) - len(held):
        raise ValueError(f"{odd} rows of the data are lists or ratings; a policy is trained on pairs")
    return Split(train=train, held_out=held, facts=data.facts, digest=data.digest)


def pair_spans(chats: FinishedChats, pair: Pair, *, whole: bool) -> Sequence[Span] | str:
    """Return both responses as rows, or in a few words why there are none.

    Where they are not whole, nothing says that a step is the last one, and a row begins where the two differ.
    """
    responses = [pair.chosen, pair.rejected]
    spans = chats.rows(pair.prompt, responses) if whole else chats.open_rows(pair.prompt, responses)
    if not isinstance(spans, str) and min(span.start for span in spans) < 1:
        return "the chat template does not begin a chat as it goes on"
    if isinstance(spans, str) or whole:
        return spans
    one, other = (tuple(span.tokens[:-1]) for span in spans)  # a token of each is left
    shared = common(one, other)
    return [replace(span, start=max(span.start, shared)) for span in spans]


class _PolicyTraining(Training[PolicyTraining, Pair]):
    what = "policy"
    same = ("loss", "scaling", "likelihood", "reference", "reference_model", "whole")
    measured_on = "held_out"

    def texts(self) -> list[str]:
        return texts_of(self.data.train)

    def prepare(self) -> None:
        self.chats = self.finished_chats(self.config.data.reasoning)

    def units(self, examples: Sequence[Pair], *, training: bool) -> tuple[list[Unit[Pair]], Counter[str]]:
        return units_of(examples, lambda pair: pair_spans(self.chats, pair, whole=self.config.whole))

    def model(self) -> PolicyObjective:
        from adjudge.reward_models.training.policy_objective import PolicyObjective

        config, start = self.config, self.opened.language_model
        model = PolicyObjective(
            start, config.loss, scaling=config.scaling, likelihood=config.likelihood, bf16=self.bf16
        )
        reference = self._reference() if config.reference_model else model if config.reference else None
        self.before = [
            np.zeros((len(units), 2)) if reference is None else self._said(reference, units)
            for units in (self.train, self.held)
        ]
        model.model = self.trainable(start)
        return model

    def _reference(self) -> PolicyObjective:
        """Another model than the start to compare with; it need not stay in memory."""
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from adjudge.reward_models.training.policy_objective import PolicyObjective

        name = self.config.reference_model
        try:
            tokenizer = AutoTokenizer.from_pretrained(name)
            model = AutoModelForCausalLM.from_pretrained(name)
        except (OSError, ValueError) as error:
            raise ValueError(f"reference_model is {name!r}, which cannot be loaded: {error}") from error
        if tokenizer.get_vocab() != self.opened.tokenizer.get_vocab():
            raise ValueError(f"reference_model is {name!r}, which has other tokens than the model that is trained")
        return PolicyObjective(model, self.config.loss, bf16=self.bf16)

    def _said(self, model: PolicyObjective, units: Sequence[Unit[Pair]]) -> Numbers:
        """Log-probabilities of responses, (pairs, 2): chosen and rejected."""
        return self.logprobs(model, [span for unit in units for span in unit.spans]).reshape(-1, 2)

    def batches(self) -> _PairBatches:
        return _PairBatches(units=self.train, budget=self.budget, reference=self.before[0])

    def merge(self, model: PolicyObjective) -> PolicyObjective:
        model.model = self.merged(model.model)
        return model

    def measures(self, model: PolicyObjective) -> Measures:
        moved = self._said(model, self.held) - self.before[1]
        sizes = np.array([[span.size for span in unit.spans] for unit in self.held], float)
        clusters = [unit.cluster for unit in self.held]
        rewards = moved / sizes if self.config.loss.per_token else self.config.loss.beta * moved
        rewarded = [
            Rewarded(example=unit.example, rewards=two[:, None], lengths=lengths, cluster=unit.cluster)
            for unit, two, lengths in zip(self.held, rewards, sizes, strict=True)
        ]
        reached, rules = pair_measures(RewardedPairs.of(rewarded))
        more = {
            f"{side}_moved_per_token": clustered_mean(moved[:, at] / sizes[:, at], clusters)
            for at, side in enumerate(("chosen", "rejected"))
        }
        return {**reached, **more}, rules

    def counts(self) -> dict[str, Any]:
        return {"digest": self.data.digest}

    def save(self, model: PolicyObjective, report: TrainingReport) -> None:
        model.model.config.use_cache = True
        self.save_plain(model.model, self.output)

    def use(self) -> Mapping[str, str]:
        return {"Use": "An ordinary causal language model with its chat template."}


@dataclass(frozen=True, kw_only=True)
class _PairBatches(Batches[Pair]):
    reference: Numbers

    def step(self, units: Sequence[Unit[Pair]], places: Sequence[int]) -> Callable[[list[int]], dict[str, Any]]:
        import torch

        total = sum(unit.example.weight for unit in units) or 1.0

        def tensors(chosen: list[int]) -> dict[str, Any]:
            mine = [units[at] for at in chosen]
            reference = self.reference[[places[at] for at in chosen]].reshape(-1)
            margins = [math.nan if unit.example.margin is None else unit.example.margin for unit in mine]
            spans = [span for unit in mine for span in unit.spans]
            return {
                "tokens": response_tokens(spans),
                "sizes": torch.tensor([span.size for span in spans]),
                "reference": torch.tensor(reference, dtype=torch.float32),
                "margins": torch.tensor(margins),
                "weights": torch.tensor([unit.example.weight / total for unit in mine]),
            }

        return tensors
