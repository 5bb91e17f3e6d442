"""The reward models of `probe_table`: two linear ones fitted on public data, and random transformers.

The random ones show what the harness says of a model that knows nothing; nobody would use them.

Not covered: published checkpoints, which need downloads.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.preference_sets import load, rows
from benchmarks.probe_scorers import Probed
from tests.engines.tiny_models import tiny_tokenizer, write_model
from tests.reward_models.process.step_models import step_classifier

from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine
from adjudge.protocol import Scorer
from adjudge.reward_models.baselines.preference_model import PreferenceModel
from adjudge.reward_models.baselines.step_model import StepModel
from adjudge.reward_models.generative.reference_probability import ReferenceProbability
from adjudge.reward_models.process.likelihood import ImplicitRewardScorer
from adjudge.reward_models.process.step_scorer import ProcessRewardScorer
from adjudge.reward_models.scalar.ensemble import RewardEnsemble
from adjudge.reward_models.scalar.pair_model import PairModel
from adjudge.reward_models.scalar.scorer import RewardModelScorer
from adjudge.scoring.registry import as_scorer
from adjudge.training.step_data import StepExample


def preference_model() -> Scorer:
    """Fitted on the harmless pairs of HH-RLHF and the pairs of RM-Bench."""
    return as_scorer(PreferenceModel.fit([*load("hh_rlhf").pairs, *load("rm_bench").pairs]))


def step_model() -> Scorer:
    """Fitted on ProcessBench's solutions of GSM8K: right before the first error, wrong at it."""
    examples = []
    for row in rows("processbench/gsm8k.json"):
        steps, error = tuple(row["steps"]), row["label"]
        labels = [1.0 if error < 0 or at < error else 0.0 if at == error else None for at in range(len(steps))]
        if all(step.strip() for step in steps):
            examples.append(StepExample(prompt=row["problem"], steps=steps, labels=tuple(labels)))
    return as_scorer(StepModel.fit(examples))


def reward_models(folder: Path) -> list[Probed]:
    """Return the reward models; the random ones are written to a folder."""

    def reward() -> Scorer:
        return as_scorer(RewardModelScorer(model=_classifier(folder / "reward", 0)))

    def ensemble() -> Scorer:
        members = tuple(_classifier(folder / f"member {seed}", seed) for seed in (0, 1, 2))
        return as_scorer(RewardEnsemble(members=members))

    def pair() -> Scorer:
        return as_scorer(PairModel(engine=_language_model(folder / "pair", 0)))

    def process() -> Scorer:
        path = step_classifier(folder / "steps", 2)
        engine = TransformersEngine(TransformersConfig(model=str(path), device="cpu"))
        return as_scorer(ProcessRewardScorer(engine=engine, format="qwen_math_prm"))

    def implicit() -> Scorer:
        policy, first = (_language_model(folder / f"policy {seed}", seed) for seed in (0, 1))
        return as_scorer(ImplicitRewardScorer(engine=policy, reference_engine=first, floor=-1000.0))

    def probability() -> Scorer:
        engine = _language_model(folder / "probability", 0)
        return as_scorer(ReferenceProbability(engine=engine, place="boxed"))

    made: list[tuple[str, Callable[[], Scorer], str]] = [
        ("preference_model", preference_model, "pairs"),
        ("step_model", step_model, "math"),
        ("reward_model (random)", reward, "pairs"),
        ("reward_ensemble (random)", ensemble, "pairs"),
        ("pair_model (random)", pair, "pairs"),
        ("process_reward (random)", process, "math"),
        ("implicit_reward (random)", implicit, "math"),
        ("reference_probability (random)", probability, "math"),
    ]
    return [Probed(name=name, make=make, rows=rows) for name, make, rows in made]


def _classifier(folder: Path, seed: int) -> str:
    return str(write_model(folder, task="classify", seed=seed, tokenizer=tiny_tokenizer(pad="<|end|>")))


def _language_model(folder: Path, seed: int) -> TransformersEngine:
    path = write_model(folder, seed=seed, max_position_embeddings=4096)
    return TransformersEngine(TransformersConfig(model=str(path), device="cpu", dtype="float32"))
