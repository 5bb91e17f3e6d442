"""What a pairwise judge says, labelled in one job, becomes pairs in the next, without conversion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.engines.scripted import ScriptedEngine, field_of, key_of

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.data_pipelines.pairs.config import PairsConfig
from adjudge.data_pipelines.pairs.maker import build_pairs
from adjudge.engines.interface import Prompt
from adjudge.judges.pairwise import PairwiseJudge


def verdict(prompt: Prompt, index: int) -> str:
    """The longer one wins; of two that are as long, whoever is shown first; of "mute", nothing can be read."""
    first, second = field_of(prompt, "response_a"), field_of(prompt, "response_b")
    if "mute" in first + second:
        return "I would rather not say."
    return f"Verdict {key_of(prompt)}: {'A' if len(first) >= len(second) else 'B'}"


def test_verdicts_in_both_orders_become_pairs(tmp_path: Path) -> None:
    games = [
        ("It is short.", "It is rather long."),
        ("It is one.", "It is two."),
        ("It is long enough.", "It is brief."),
        ("It is mute.", "It is loud."),
    ]
    rows = [{"prompt": f"Say {number}.", "response": one, "other": two} for number, (one, two) in enumerate(games)]
    given, labelled, output = (tmp_path / name for name in ("in.jsonl", "labelled.jsonl", "pairs.jsonl"))
    given.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    config = LabelConfig(
        input=str(given), output=str(labelled), scorer="judge", reference_column="other", keep_columns=True
    )
    judge: Any = PairwiseJudge(engine=ScriptedEngine(verdict))
    run_label(config, scorer=judge)
    report = build_pairs(PairsConfig(input=str(labelled), output=str(output), rule="both_orders"))
    pairs = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    found = [(pair["prompt"], pair["chosen"], pair["rejected"], pair["margin"]) for pair in pairs]
    assert found == [
        ("Say 0.", "It is rather long.", "It is short.", 1.0),
        ("Say 2.", "It is long enough.", "It is brief.", 1.0),
    ]
    assert dict(report.dropped) == {"failed": 1, "one_answer": 2}  # the judge said nothing; it preferred a place
