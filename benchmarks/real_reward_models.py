"""Reward models from SmolLM2-135M-Instruct, on two cores: what training makes of them beside simple rules.

- *scalar*: a preference model from pairs: right against wrong solutions of GSM8K's problems by language models
  (`gsm8k`), preferences (`hh_rlhf`, `rmb`, `rm_bench`), or right against wrong sums by the model itself (`sums`), which
  `benchmarks.over_optimisation --parts draw` writes: `--draws` is its output.
- *process*: a value for each step, from ProcessBench's GSM8K part, whose first errors people marked.
- *critique*: words, then a number, of the same sums: the critique works the sum and compares the answer with it.

Prompts are held out whole.  Each training is `adjudge train rm`, `prm` or `critique` with low-rank factors or, with
`--full`, all weights; its report has the baselines of the same held-out examples: longer wins, and n-grams fitted to
the same training examples.  With `--untrained` eight examples change nothing, and the head stays as it was drawn.

With `--served N`, folders are served by three engines, which must agree: the largest difference of a reward, and how
many pairs change their order.  `language_model` trains nothing: of it the log-probabilities of N answers are compared.
A model whose folder is there is not trained again.

    ADJUDGE_DATA=... python -m benchmarks.real_reward_models --jobs gsm8k hh_rlhf process --output models
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from benchmarks import engines, over_optimisation
from benchmarks.preference_sets import SETS, load

from adjudge import score_batch
from adjudge.engines import smollm2
from adjudge.engines.interface import Fault
from adjudge.engines.loading import engine_of
from adjudge.reward_models.training.critique_data import CritiqueTraining
from adjudge.reward_models.training.critique_training import train_critique
from adjudge.reward_models.training.process_config import ProcessTraining
from adjudge.reward_models.training.process_training import train_process
from adjudge.reward_models.training.report import TrainingReport
from adjudge.reward_models.training.scalar_config import ScalarTraining
from adjudge.reward_models.training.scalar_training import train_scalar
from adjudge.training.config_file import config_of
from adjudge.training.data_files import held_out
from adjudge.training.examples import Pair

_LORA = {"learning_rate": 3e-4, "lora": {"rank": 16}}
_FULL = {"learning_rate": 2e-5}
_NOTHING = {"learning_rate": 1e-12, "lora": {"rank": 1}}
_HELD_OUT = 0.3
_PACE = {"micro_tokens": 1024, "log_steps": 5}

LANGUAGE_MODEL = "language_model"
_SCORERS: Mapping[str, str] = {"process": "process_reward", "critique": "critique_reward"}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is trained.

    Attributes:
        jobs: of "gsm8k", "hh_rlhf", "rmb", "rm_bench", "sums" (pairs), "process", "critique" and "language_model".
        pairs: at most, held-out ones included; 0 for all.
        epochs: of each.
        batch_size: examples a step.
        max_length: tokens; what is longer is left out.
        full: train all weights, and not low-rank factors.
        untrained: leave the head as it is drawn.
        served: pairs whose order is compared between engines; 0 for none.
        draws: folder that has the sums.
        output: folder for the models.
    """

    jobs: tuple[str, ...] = ("gsm8k", "hh_rlhf", "process")
    pairs: int = 250
    epochs: int = 1
    batch_size: int = 8
    max_length: int = 512
    full: bool = False
    untrained: bool = False
    served: int = 0
    draws: Path = Path("over_optimisation")
    output: Path = Path("real_reward_models")


def pairs(options: Options, name: str) -> Iterator[dict[str, Any]]:
    """Yield the pairs of a corpus."""
    for pair in load(name).pairs[: options.pairs or None]:
        yield {"prompt": pair.prompt, "chosen": pair.chosen, "rejected": pair.rejected, "group": pair.group}


def sums(options: Options) -> Iterator[dict[str, Any]]:
    """Yield right and wrong sums with critiques: the sum is worked, and the answer compared with it."""
    rows = over_optimisation.drawn(over_optimisation.Options(output=options.draws), "seen")
    found = over_optimisation.pairs(rows, at_most=8)
    for pair in itertools.islice(found, options.pairs or None):
        worked = f"{pair['group']} = {_value(pair['group'])}, "
        verdicts = {"chosen_critique": "and so says the answer.", "rejected_critique": "and the answer is another."}
        yield {**pair, **{key: worked + verdict for key, verdict in verdicts.items()}}


def _value(text: str) -> int:
    one, sign, other = text.split()
    return int(one) + (int(other) if sign == "+" else -int(other))


def steps(options: Options) -> Iterator[dict[str, Any]]:
    """Yield the solutions whose steps people judged."""
    path = Path(os.environ["ADJUDGE_DATA"]) / "processbench" / "gsm8k.json"
    yield from json.loads(path.read_text(encoding="utf-8"))[: options.pairs or None]


def _written(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def train(options: Options, name: str) -> TrainingReport:
    """Train a model."""
    write, config_class, trained, further = _TRAININGS.get(
        name, (lambda options: pairs(options, name), ScalarTraining, train_scalar, {})
    )
    rows = list(write(options))
    files: dict[str, Any] = {"held_out": _HELD_OUT}
    if options.untrained:
        grouped = [
            Pair(prompt=row.get("prompt") or row["problem"], chosen="a", rejected="b", group=row.get("group", ""))
            for row in rows
        ]
        seen, unseen = held_out(grouped, _HELD_OUT, seed=0)
        files = {"held_out_path": str(_written(options.output / f"{name}_held_out.jsonl", [rows[at] for at in unseen]))}
        rows = [rows[at] for at in seen[:8]]
    files["path"] = str(_written(options.output / f"{name}.jsonl", rows))
    schedule = _NOTHING if options.untrained else _FULL if options.full else _LORA
    config = {
        "model": smollm2.NAME,
        "output": str(options.output / name),
        "max_length": options.max_length,
        "schedule": {**schedule, "epochs": options.epochs, "batch_size": options.batch_size, **_PACE},
        "data": files,
        **further,
    }
    report: TrainingReport = trained(config_of(config_class, config))
    return report


_TRAININGS: Mapping[str, tuple[Callable[[Options], Iterator[dict[str, Any]]], Any, Any, dict[str, Any]]] = {
    # with low-rank factors, the embedding of a new marker would not be trained
    "process": (steps, ProcessTraining, train_process, {"layout": {"marker": ""}}),
    "sums": (sums, ScalarTraining, train_scalar, {}),
    "critique": (sums, CritiqueTraining, train_critique, {"critique_tokens": 32}),
}


def samples(options: Options, name: str) -> list[dict[str, Any]]:
    """Return what is scored, pair by pair: of a corpus, of the sums, or solutions with their steps."""
    if name == "process":
        rows = itertools.islice(steps(options), 2 * options.served)
        return [
            {"prompt": row["problem"], "response": "\n\n".join(row["steps"]), "extra": {"steps": row["steps"]}}
            for row in rows
        ]
    found = sums(options) if name in {"critique", "sums"} else pairs(options, name if name in SETS else "gsm8k")
    return [
        {"prompt": pair["prompt"], "response": pair[side]}
        for pair in itertools.islice(found, options.served)
        for side in ("chosen", "rejected")
    ]


def served(options: Options, name: str) -> None:
    """Compare what the engines say of one model, in 32 bits: in this process, by vLLM here, and by its server."""
    folder = Path(smollm2.smollm2_folder()) if name == LANGUAGE_MODEL else options.output / name
    chosen = samples(options, name)

    def numbers(engine: Any) -> list[float | None]:
        if name == LANGUAGE_MODEL:
            return asyncio.run(_logprobs(engine, chosen))
        scorer = {_SCORERS.get(name, "reward_model"): {"engine": engine}}
        return [one.value for one in score_batch(chosen, scorer=scorer)]

    first = numbers({"transformers": {"model": str(folder), "dtype": "float32"}})
    found = {"vllm": numbers({"vllm": {"model": str(folder), "dtype": "float32"}})}
    if name != "critique":  # which would take two servers, one that writes and one that rates
        runner = () if name == LANGUAGE_MODEL else ("--runner", "pooling")
        with engines.served(folder, "--max-model-len", "2048", *runner) as address:
            server = {"model": str(folder), "base_url": address, "dialect": "vllm"}
            found["its server"] = numbers({"openai": server})
    for engine, second in found.items():
        compare(f"{name}, transformers and {engine}", first, second)


async def _logprobs(engine: Any, chosen: Sequence[Mapping[str, Any]]) -> list[float | None]:
    prompts = [[{"role": "user", "content": one["prompt"]}] for one in chosen]
    said = await engine_of(engine).reference_logprobs(prompts, [one["response"] for one in chosen])
    return [None if isinstance(one, Fault) else sum(one.logprobs) for one in said]


def compare(what: str, first: Sequence[float | None], second: Sequence[float | None]) -> None:
    """Print how far two engines are apart."""
    both = [(one, other) for one, other in zip(first, second, strict=True) if one is not None and other is not None]
    known = [
        ((one, two), (other, another))
        for one, two, other, another in zip(first[::2], first[1::2], second[::2], second[1::2], strict=True)
        if None not in (one, two, other, another)
    ]
    flips = sum((one[0] > one[1]) != (other[0] > other[1]) for one, other in known)  # type: ignore[operator]
    gap = max((abs(one - other) for one, other in both), default=float("nan"))
    unlike = sum((one is None) != (other is None) for one, other in zip(first, second, strict=True))
    print(f"{what}: {flips} of {len(known)} pairs in another order, {len(both)} numbers differ by at most {gap:.2g}")
    print(f"    {unlike} are given by one of them alone", flush=True)


def told(report: TrainingReport, seconds: float) -> None:
    """Print what a training reached."""
    print(f"{Path(report.output).name}: {report.steps} steps, {seconds:.0f} s", flush=True)
    for measures in (report.metrics, report.baselines):
        for name, measure in measures.items():
            print(f"    {name:32} {measure} (n = {measure.n})", flush=True)


def main(options: Options) -> None:
    """Train, and tell."""
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.jobs:
        if name != LANGUAGE_MODEL and not (options.output / name / "report.json").exists():
            began = time.perf_counter()
            told(train(options, name), time.perf_counter() - began)
        if options.served:
            served(options, name)


if __name__ == "__main__":
    main(tyro.cli(Options))
