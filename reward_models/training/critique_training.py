"""Training a model that writes a critique of an answer and then scores it, and measuring it on prompts it never saw.

The folder that comes out is a causal language model with a head beside it (`adjudge.engines.reward_network`): the
engine's `generate` writes the critique of a chat that ends with the question for one, and its `classify` scores the
chat with the critique in it.

A chat is the prompt, the answer, a user's turn that asks for a critique, and the critique; the reward is read at its
end.

Not covered: writing critiques for data that have none; ask a strong model, and put them into the rows.  So with
critiques drawn from the model while it is trained (CLoud's second stage): write them with the trained model, put them
into the data, and train again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from adjudge.engines.head_config import HeadConfig
from adjudge.protocol import content_text
from adjudge.reward_models.training.held_out import Numbers, Rewarded, preference_measures
from adjudge.reward_models.training.report import Measures, TrainingReport
from adjudge.reward_models.training.rows import Span, Unit, micro_batches, units_of
from adjudge.reward_models.training.training import Training, run_training

if TYPE_CHECKING:
    from adjudge.reward_models.training.critique_objective import CritiqueBatches, CritiqueObjective
    from adjudge.reward_models.training.loop import Progress


import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from adjudge import wire
from adjudge.options import Count, Range
from adjudge.protocol import Message
from adjudge.reward_models.training.rows import FinishedChats
from adjudge.reward_models.training.schedule import FileChoice, TrainingOptions
from adjudge.reward_models.training.training import Split
from adjudge.training.data_files import ReadRows, Row, parsed, rows_of, split_off, usable
from adjudge.training.examples import READERS, Pair, Reading, format_of

ASK = "Critique the answer above: say what is right, what is wrong, and what is missing. Be brief and concrete."


@dataclass(frozen=True, kw_only=True)
class CritiqueChoice(FileChoice):
    """What is learnt from, and what is held out.

    Attributes:
        path: files, folders or data sets of preferences whose rows also have `chosen_critique` and
            `rejected_critique`.
        missing: what becomes of a pair without both critiques: "drop" leaves it out and counts it; "empty" scores an
            empty critique, and writes none.
    """

    missing: Literal["drop", "empty"] = "drop"


@dataclass(frozen=True, kw_only=True)
class CritiqueTraining(TrainingOptions):
    """How a model that critiques and then scores is trained (CLoud, arXiv 2408.11791; MM-RLHF, arXiv 2502.10391).

    Attributes:
        data: what it learns from.
        ask: the user's turn that asks for the critique.
        language: weight of the critiques' negative log-likelihood, a mean over critiques of means over their tokens;
            the loss of rewards has weight 1.
        ties: weight of the squared difference of the rewards of tied pairs.
        centering: weight of the squared sum of the two rewards, which keeps them near 0.
        own_critiques: held-out pairs that are also measured with critiques the trained model wrote itself.  Those that
            people wrote tell which answer they liked, so the accuracy with them says little about scoring.
        critique_tokens: most tokens of a critique that is written.
        max_length: most tokens of a prompt with answer and critique; longer pairs are left out and counted.
    """

    data: CritiqueChoice
    ask: str = ASK
    language: Annotated[float, Range(ge=0)] = 1.0
    ties: Annotated[float, Range(ge=0)] = 1.0
    centering: Annotated[float, Range(ge=0)] = 0.01
    own_critiques: Annotated[int, Range(ge=0)] = 100
    critique_tokens: Count = 256
    max_length: Annotated[int, Range(ge=2, unit="tokens")] = 4096

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_writes()
        if not self.ask.strip():
            raise ValueError("ask is empty; say how the critique is asked for")
        if self.max_length <= self.critique_tokens:
            raise ValueError(
                f"critique_tokens is {self.critique_tokens!r} and max_length {self.max_length!r}; a critique "
                "leaves room for the answer"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CritiquePair(Pair):
    """A preference with what was said about the better answer and about the worse one; None where nobody wrote it."""

    critiques: tuple[str | None, str | None]


def read_critiques(choice: CritiqueChoice, *, seed: int) -> Split[CritiquePair]:
    """Return the pairs that files hold, split by prompt.

    Raises:
        ValueError: a file cannot be read, or nothing is left to train on or to measure on.
    """
    data = _read(choice, choice.path)
    facts, aside = data.counts, None
    if choice.held_out_path:
        other = _read(choice, choice.held_out_path)
        aside, facts["held_out_files"] = other.examples, other.counts
    train, held = split_off(data.examples, aside, choice.held_out, seed=seed)
    if aside is not None:
        facts["prompt_is_held_out"] = len(data.examples) - len(train)
    digest = hashlib.sha256()
    for pair in (*train, *held):
        record = [pair.prompt, pair.chosen, pair.rejected, pair.tie, pair.weight, pair.critiques]
        digest.update(wire.dumps(record).encode("utf-8", "surrogatepass") + b"\n")
    facts |= {"train": len(train), "held_out": len(held), "digest": digest.hexdigest()[:16]}
    return Split(train=train, held_out=held, facts=facts, digest=facts["digest"])


def _read(choice: CritiqueChoice, paths: Sequence[str]) -> ReadRows[CritiquePair]:
    rows = rows_of(paths, split=choice.split, limit=choice.limit)
    return usable(parse_critiques(rows, missing=choice.missing), paths)


def parse_critiques(rows: Iterable[Row], *, missing: str = "drop") -> ReadRows[CritiquePair]:
    """Return the pairs of rows that are at hand."""
    reading = Reading(columns={})

    def pairs_of(row: Mapping[str, Any]) -> list[CritiquePair]:
        pair = READERS[format_of(row, reading)](row, reading)
        if not isinstance(pair, Pair):
            raise ValueError("the row is not a pair")
        if pair.probability is not None:
            raise ValueError("a soft label, which is not learnt from with critiques")
        chosen, rejected = (_critique(row, f"{side}_critique") for side in ("chosen", "rejected"))
        if missing == "drop" and (chosen is None or rejected is None):
            raise ValueError("a critique is missing")
        own = {item.name: getattr(pair, item.name) for item in fields(pair)}
        return [CritiquePair(**own, critiques=(chosen, rejected))]

    return parsed(rows, pairs_of)


def _critique(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"{name} is not text")
    return value.strip() or None


def asked_turns(prompt: str | Sequence[Message], response: str, ask: str) -> list[Message]:
    """Return the chat that a critique answers."""
    turns: list[Message] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    return [*turns, {"role": "assistant", "content": response}, {"role": "user", "content": ask}]


def critique_spans(chats: FinishedChats, pair: Pair, critiques: Sequence[str | None], ask: str) -> Sequence[Span] | str:
    """Return the chats of both answers with critiques, None for an empty one; or in a few words why there are none."""
    spans: list[Span] = []
    for response, critique in zip((pair.chosen, pair.rejected), critiques, strict=True):
        rows = chats.rows(asked_turns(pair.prompt, response, ask), [critique or ""])
        if isinstance(rows, str):
            return rows
        spans += rows
    return spans


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
            prompt = pair.prompt
            texts += [prompt] if isinstance(prompt, str) else [content_text(turn.get("content")) for turn in prompt]
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
