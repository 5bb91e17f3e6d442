"""Training a model that writes a critique of an answer and then scores it, and measuring it on prompts it never saw.

The folder that comes out is a causal language model with a head beside it (`adjudge.engines.reward_checkpoint`): the
engine's `generate` writes the critique of a chat that ends with the question for one, and its `classify` scores the
chat with the critique in it.

Not covered: critiques drawn from the model while it is trained (CLoud's second stage); write them with the trained
model, put them into the data, and train again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adjudge.engines.checkpoint_notes import CheckpointNotes, Normalizer, template_digest
from adjudge.engines.head_config import HeadConfig
from adjudge.reward_models.training.critique_data import (
    CritiquePair,
    CritiqueSplit,
    CritiqueTraining,
    asked_turns,
    critique_row,
    read_critiques,
)
from adjudge.reward_models.training.held_out import JudgedPairs, Numbers, pair_measures
from adjudge.reward_models.training.report import Measures, TrainingReport
from adjudge.reward_models.training.rows import FinishedChats, Span, micro_batches, padded
from adjudge.reward_models.training.run_setup import RunSetup, finished, require, run_training
from adjudge.training.backbones import Opened

if TYPE_CHECKING:
    from adjudge.reward_models.training.critique_objective import CritiqueObjective, CritiqueRow
    from adjudge.reward_models.training.loop import Progress
    from adjudge.statistics.intervals import Interval

_TOLD = (
    "the accuracy with given critiques says little about scoring: whoever wrote them knew which answer they preferred; "
    "look at the one with own critiques"
)


def train_critique(
    config: CritiqueTraining, *, resume: bool = False, progress: Callable[[Progress], None] | None = None
) -> TrainingReport:
    """Train a model that critiques and scores.

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
    data = read_critiques(config.data, seed=config.seed)
    return run_training(config, lambda run: _Training(run, data).report(), resume=resume, progress=progress)


@dataclass(frozen=True)
class _Training:
    run: RunSetup[CritiqueTraining]
    data: CritiqueSplit

    @property
    def config(self) -> CritiqueTraining:
        return self.run.config

    def report(self) -> TrainingReport:
        """Train, save and measure."""
        from adjudge.reward_models.training.critique_objective import CritiqueBatches

        run = self.run
        texts = [self.config.ask, *(text for item in self.data.train for text in _texts(item))]
        start = run.opened("causal", texts)
        limit = run.limit(start)
        chats = FinishedChats(start.tokenizer, model=start.name, max_length=limit)
        train, dropped = self._rows(self.data.train, chats)
        held, lost = self._rows(self.data.held, chats)
        require([row for row in train if row], dropped, "training")
        require([row for row in held if row], lost, "held-out")
        rows = [row for row in train if row is not None]
        model = self._model(start)
        result = run.train(
            model,
            [row.length for row in rows],
            CritiqueBatches(rows, pad=0, budget=run.budget),
            start,
            same=("ask", "language", "ties", "centering"),
            data=self.data.facts["digest"],
            measured=lambda: self._given(model, held),
        )
        model.network.backbone = run.merged(model.network.backbone)
        metrics, rules = self._given(model, held)
        counts = {
            **self.data.facts,
            "trained_on": len(rows),
            "measured_on": sum(row is not None for row in held),
            "left_out_of_training": dict(dropped),
            "left_out_of_held_out": dict(lost),
            "max_length": limit,
        }
        measures = ({**metrics, **self._own(model, start, chats, held)}, rules)
        report = run.report("critique", result, measures, counts, (*chats.warnings, _TOLD))
        return self._saved(start, model, held, report, limit)

    def _rows(
        self, items: Sequence[CritiquePair], chats: FinishedChats
    ) -> tuple[list[CritiqueRow | None], Counter[str]]:
        """A row for each pair; None where there is none, and why."""
        from adjudge.reward_models.training.critique_objective import CritiqueRow

        rows: list[CritiqueRow | None] = []
        dropped: Counter[str] = Counter()
        for item in items:
            found = [critique_row(chats, item, side, self.config.ask) for side in (0, 1)]
            problem = next((row for row in found if isinstance(row, str)), "")
            if problem:
                dropped[problem] += 1
                rows.append(None)
                continue
            better, worse = (row for row in found if isinstance(row, Span))
            first, second = (critique is not None for critique in item.critiques)
            rows.append(
                CritiqueRow(chats=(better, worse), written=(first, second), tie=item.pair.tie, weight=item.pair.weight)
            )
        return rows, dropped

    def _model(self, opened: Opened) -> CritiqueObjective:
        from adjudge.engines.reward_network import RewardNetwork
        from adjudge.reward_models.training.critique_objective import CritiqueObjective

        config = self.config
        network = RewardNetwork.on(opened.body, HeadConfig())
        network.backbone = self.run.trainable(opened.body)
        return CritiqueObjective(
            network,
            opened.language_model.get_output_embeddings(),
            language=config.language,
            ties=config.ties,
            centering=config.centering,
            bf16=self.run.bf16,
        )

    def _given(self, model: CritiqueObjective, held: Sequence[CritiqueRow | None]) -> Measures:
        """What rewards are worth after the critiques that the data hold."""
        kept = [(row, place) for place, row in enumerate(held) if row is not None]
        rewards = self._rewards(model, [chat.tokens for row, _ in kept for chat in row.chats])
        found, rules = pair_measures(self._pairs(rewards.reshape(-1, 2), [place for _, place in kept]))
        told = {f"{name}_with_given_critiques": found[name] for name in ("accuracy", "equal_rewards") if name in found}
        return told, rules

    def _own(
        self, model: CritiqueObjective, opened: Opened, chats: FinishedChats, held: Sequence[CritiqueRow | None]
    ) -> dict[str, Interval]:
        """What rewards are worth after critiques that the model writes."""
        room = opened.window - self.config.critique_tokens  # what the model writes must fit behind the question
        fitting = [
            at for at, row in enumerate(held) if row is not None and max(chat.start for chat in row.chats) <= room
        ]
        places = fitting[: self.config.own_critiques]
        if not places:
            return {}
        sides = [(at, side) for at in places for side in (0, 1)]
        begun = [
            held_row.chats[side].tokens[: held_row.chats[side].start] for at, side in sides if (held_row := held[at])
        ]
        written = self._critiques(model, opened, begun)
        rows: dict[tuple[int, int], tuple[int, ...]] = {}
        for (at, side), critique in zip(sides, written, strict=True):
            pair = self.data.held[at].pair
            response = pair.chosen if side == 0 else pair.rejected
            found = chats.rows(asked_turns(pair.prompt, response, self.config.ask), [critique])
            if not isinstance(found, str):
                rows[at, side] = found[0].tokens
        whole = [at for at in places if (at, 0) in rows and (at, 1) in rows]
        if not whole:
            return {}
        rewards = self._rewards(model, [rows[at, side] for at in whole for side in (0, 1)])
        return pair_measures(self._pairs(rewards.reshape(-1, 2), whole))[0]

    def _critiques(self, model: CritiqueObjective, opened: Opened, rows: Sequence[Sequence[int]]) -> list[str]:
        """The likeliest critiques, one for each chat."""
        import torch

        model.eval().to(self.run.state.device)
        tokenizer, found = opened.tokenizer, [""] * len(rows)
        ends = [token for token in (tokenizer.eos_token_id,) if token is not None]
        more = [[at] for at in range(len(rows))]
        lengths = [len(row) + self.config.critique_tokens for row in rows]
        for chosen in micro_batches(lengths, more, self.run.budget):
            width = max(len(rows[at]) for at in chosen)
            ids = torch.zeros(len(chosen), width, dtype=torch.long)
            mask = torch.zeros_like(ids)
            for line, at in enumerate(chosen):  # on the left: text is written behind
                ids[line, width - len(rows[at]) :] = torch.tensor(rows[at])
                mask[line, width - len(rows[at]) :] = 1
            with torch.no_grad():
                written = opened.language_model.generate(
                    input_ids=ids.to(self.run.state.device),
                    attention_mask=mask.to(self.run.state.device),
                    max_new_tokens=self.config.critique_tokens,
                    do_sample=False,
                    use_cache=True,
                    pad_token_id=ends[0] if ends else 0,
                )
            for line, at in enumerate(chosen):
                found[at] = tokenizer.decode(written[line, width:], skip_special_tokens=True).strip()
        return found

    def _rewards(self, model: CritiqueObjective, rows: Sequence[Sequence[int]]) -> Numbers:
        def read(places: Sequence[int], device: Any) -> Any:
            batch = padded([rows[at] for at in places])
            return model.rewards(**{name: value.to(device) for name, value in batch.items()})

        return np.array(self.run.said(model, [len(row) for row in rows], read))

    def _pairs(self, rewards: Numbers, places: Sequence[int]) -> JudgedPairs:
        pairs = [self.data.held[at].pair for at in places]
        return JudgedPairs(
            better=rewards[:, 0],
            worse=rewards[:, 1],
            better_length=np.array([len(pair.chosen) for pair in pairs], dtype=float),
            worse_length=np.array([len(pair.rejected) for pair in pairs], dtype=float),
            clusters=[self.data.clusters[at] for at in places],
            probability=np.array([0.5 if pair.tie else 1.0 for pair in pairs]),
        )

    def _saved(
        self,
        opened: Opened,
        model: CritiqueObjective,
        held: Sequence[CritiqueRow | None],
        report: TrainingReport,
        limit: int,
    ) -> TrainingReport:
        rewards = self._rewards(model, [chat.tokens for row in held if row is not None for chat in row.chats])
        spread = float(rewards.std())
        notes = CheckpointNotes(
            what="critique",
            head=model.network.head.config,
            normalizer=Normalizer(float(rewards.mean()), spread) if spread > 0 else None,
            max_length=limit,
            template=template_digest(opened.tokenizer.chat_template),
            trained={**report.facts(), "ask": self.config.ask, "critique_tokens": self.config.critique_tokens},
        )

        def save() -> None:
            opened.language_model.config.use_cache = True
            model.network.save(self.run.output, opened.tokenizer, notes, language_model=opened.language_model)

        return self.run.saved(report, save, lambda: {"Use": _USE})


_USE = """1. Ask the model, as a causal language model, with the chat of prompt and answer and one more user's turn: the
   text `trained.ask` of `adjudge.json`. What it writes is the critique.
2. Score the finished chat with the critique as its last turn: the head stands in `adjudge_head.safetensors` and reads
   the last token (`adjudge.engines`: `generate`, then `classify`)."""


def _texts(item: CritiquePair) -> list[str]:
    prompt = item.pair.prompt
    said = [prompt] if isinstance(prompt, str) else [str(turn.get("content") or "") for turn in prompt]
    return [*said, item.pair.chosen, item.pair.rejected, *(critique for critique in item.critiques if critique)]
