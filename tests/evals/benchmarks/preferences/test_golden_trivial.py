"""Trivial scorers on real pairs get what is known of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.evals.benchmarks.benchmark import Benchmark, BenchmarkConfig
from adjudge.evals.benchmarks.pairs import Pairs
from adjudge.evals.benchmarks.rm_bench import Rmb, RmBench
from adjudge.evals.benchmarks.run import run_benchmark

AUTO_J = Pairs(
    first_column="response 1",
    second_column="response 2",
    label_column="label",
    first_label=("0",),
    second_label=("1",),
    tie_label=("2",),
    part_column="scenario",
)
HHH = Pairs(chosen_column="chosen_instruction", rejected_column="rejected_instruction", part_column="source")


@pytest.mark.parametrize(
    ("benchmark", "path", "longer"),
    [
        (Pairs(), "hh_rlhf/harmless-base_test.jsonl.gz", {("accuracy", ""): (2_312, 0.443)}),
        (
            AUTO_J,
            "prometheus/autoj_pairwise.jsonl.gz",
            {("accuracy", ""): (1_019, 0.713), ("agreement, ties included", ""): (1_392, 0.529)},
        ),
        (HHH, "prometheus/hhh_alignment_eval.jsonl.gz", {("accuracy", "helpful"): (59, 0.695)}),
        (RmBench(), "rm_bench", {("hard", "chat"): (129, 0.026), ("hard", "code"): (228, 0.254)}),
        (
            Rmb(),
            "rmb",
            {
                ("accuracy", "Helpfulness, pairs"): (2_819, 0.639),
                ("accuracy", "Harmlessness, pairs"): (2_029, 0.538),
            },
        ),
    ],
)
def test_the_longer_response(
    corpora: Path, benchmark: Benchmark, path: str, longer: dict[tuple[str, str], tuple[int, float]]
) -> None:
    config = BenchmarkConfig(input=str(corpora / path), scorer="{length: {unit: words}}", resamples=0)
    result = run_benchmark(config, benchmark)
    found = {(one.name, one.part): one for one in result.measures}
    shown = {key: (found[key].interval.n, round(found[key].baselines["longer"] or 0.0, 3)) for key in longer}
    assert shown == longer
    assert result.counts.unreadable == 0
    assert result.counts.failed == 0
