"""Training a model that writes a critique of an answer and then scores it, and measuring it on prompts it never saw.

The folder that comes out is a causal language model with a head beside it (`adjudge.engines.reward_network`): the
engine's `generate` writes the critique of a chat that ends with the question for one, and its `classify` scores the
chat with the critique in it.

Not covered: critiques drawn from the model while it is trained (CLoud's second stage); write them with the trained
model, put them into the data, and train again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from adjudge.engines.head_config import HeadConfig
from adjudge.protocol import turn_texts
from adjudge.reward_models.training.critique_data import (
    CritiquePair,
    CritiqueTraining,
    critique_spans,
    read_critiques,
)
from adjudge.reward_models.training.held_out import Numbers, Rewarded, preference_measures
from adjudge.reward_models.training.report import Measures, TrainingReport
from adjudge.reward_models.training.rows import Span, Unit, micro_batches, units_of
from adjudge.reward_models.training.training import Training, run_training

if TYPE_CHECKING:
    from adjudge.reward_models.training.critique_objective import CritiqueBatches, CritiqueObjective
    from adjudge.reward_models.training.loop import Progress

_GIVEN = (
    "the accuracy with given critiques says little about scoring: whoever wrote them knew which answer they preferred; "
    "look at the one with own critiques"
)
_USE = """1. Ask the model, as a causal language model, with the chat of prompt and answer and one more user's turn: the
   text `trained.ask` of `adjudge.json`. What it writes is the critique.
2. Score the finished chat with the critique as its last turn: the head stands in `adjudge_head.safetensors` and reads
   the last token (`adjudge.engines`: `generate`, then `classify`)."""


def train_critique(
    config: CritiqueTraining, *, resume: bool = False, progress: Callable[[Progress], None] | None = None
) -> TrainingReport:
    """Train a model that critiques and scores; arguments, report and errors are as of `train_scalar`."""
    return run_training(
        config,
        lambda: read_critiques(config.data, seed=config.seed),
        _CritiqueTraining,
        resume=resume,
        progress=progress,
    )


class _CritiqueTraining(Training[CritiqueTraining, CritiquePair]):
    what = "critique"
    same = ("ask", "language", "ties", "centering")

    def texts(self) -> list[str]:
        texts = [self.config.ask]
        for pair in self.data.train:
            texts += turn_texts(pair.prompt)
            texts += [pair.chosen, pair.rejected, *(critique for critique in pair.critiques if critique)]
        return texts

    def prepare(self) -> None:
        self.warnings = (_GIVEN,)
        self.chats = self.finished_chats()

    def units(
        self, examples: Sequence[CritiquePair], *, training: bool
    ) -> tuple[list[Unit[CritiquePair]], Counter[str]]:
        return units_of(examples, lambda pair: critique_spans(self.chats, pair, pair.critiques, self.config.ask))

    def model(self) -> CritiqueObjective:
        from adjudge.engines.reward_network import RewardNetwork
        from adjudge.reward_models.training.critique_objective import CritiqueObjective

        config, opened = self.config, self.opened
        network = RewardNetwork.on(opened.body, HeadConfig())
        network.backbone = self.trainable(opened.body)
        return CritiqueObjective(
            network,
            opened.language_model.get_output_embeddings(),
            language=config.language,
            ties=config.ties,
            centering=config.centering,
            bf16=self.bf16,
        )

    def batches(self) -> CritiqueBatches:
        from adjudge.reward_models.training.critique_objective import CritiqueBatches

        return CritiqueBatches(units=self.train, budget=self.budget)

    def merge(self, model: CritiqueObjective) -> CritiqueObjective:
        model.network.backbone = self.merged(model.network.backbone)
        return model

    def measures(self, model: CritiqueObjective) -> Measures:
        """Return what rewards are worth after the critiques that the data hold."""
        rewarded = self._rewarded(model, [(unit, unit.spans) for unit in self.held])
        self.rewards = np.concatenate([one.rewards[:, 0] for one in rewarded])
        reached, rules = preference_measures(rewarded)
        names = [name for name in ("accuracy", "equal_rewards") if name in reached]
        return {f"{name}_with_given_critiques": reached[name] for name in names}, rules

    def final_measures(self, model: CritiqueObjective) -> Measures:
        """Return the same, and what rewards are worth after critiques that the model writes."""
        reached, rules = self.measures(model)
        room = self.opened.window - self.config.critique_tokens  # what the model writes must fit behind the question
        units = [unit for unit in self.held if max(span.start for span in unit.spans) <= room]
        units = units[: self.config.own_critiques]
        begun = [span.tokens[: span.start] for unit in units for span in unit.spans]
        written = self._critiques(model, begun)
        rows = []
        for at, unit in enumerate(units):
            spans = critique_spans(self.chats, unit.example, written[2 * at : 2 * at + 2], self.config.ask)
            if not isinstance(spans, str):
                rows.append((unit, spans))
        own = preference_measures(self._rewarded(model, rows))[0] if rows else {}
        return {**reached, **own}, rules

    def _rewarded(
        self, model: CritiqueObjective, rows: Sequence[tuple[Unit[CritiquePair], Sequence[Span]]]
    ) -> list[Rewarded]:
        tokens = [span.tokens for _, spans in rows for span in spans]
        rewards: Numbers = np.array(self.said(model, tokens, model.rewards)).reshape(-1, 2, 1)
        return [
            Rewarded(
                example=unit.example,
                rewards=two,
                lengths=np.array([len(unit.example.chosen), len(unit.example.rejected)], dtype=float),
                cluster=unit.cluster,
            )
            for (unit, _), two in zip(rows, rewards, strict=True)
        ]

    def _critiques(self, model: CritiqueObjective, rows: Sequence[Sequence[int]]) -> list[str]:
        """The likeliest critiques, one for each chat."""
        import torch

        model.eval().to(self.device)
        tokenizer, critiques, most = self.opened.tokenizer, [""] * len(rows), self.config.critique_tokens
        for chosen in micro_batches([len(row) + most for row in rows], [[at] for at in range(len(rows))], self.budget):
            width = max(len(rows[at]) for at in chosen)
            ids = torch.zeros(len(chosen), width, dtype=torch.long)
            mask = torch.zeros_like(ids)
            for line, at in enumerate(chosen):  # on the left: text is written behind
                ids[line, width - len(rows[at]) :] = torch.tensor(rows[at])
                mask[line, width - len(rows[at]) :] = 1
            with torch.no_grad():
                written = self.opened.language_model.generate(
                    input_ids=ids.to(self.device),
                    attention_mask=mask.to(self.device),
                    max_new_tokens=most,
                    do_sample=False,
                    use_cache=True,
                    pad_token_id=tokenizer.eos_token_id or 0,
                )
            for line, at in enumerate(chosen):
                critiques[at] = tokenizer.decode(written[line, width:], skip_special_tokens=True).strip()
        return critiques

    def save(self, model: CritiqueObjective, report: TrainingReport) -> None:
        trained = {**report.facts(), "ask": self.config.ask, "critique_tokens": self.config.critique_tokens}
        notes = self.notes(report, self.rewards, what="critique", head=model.network.head.config, trained=trained)
        language_model = self.opened.language_model
        language_model.config.use_cache = True
        model.network.save(self.output, self.opened.tokenizer, notes, language_model=language_model)

    def use(self) -> Mapping[str, str]:
        return {"Use": _USE}
