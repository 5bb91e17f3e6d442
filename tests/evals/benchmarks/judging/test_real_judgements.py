"""PandaLM and RewardMATH: how far people agree, lists with ties, and a preference for the first place."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.statistics.plain_agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha

from adjudge.evals.benchmarks.pairs import ranked
from adjudge.evals.trust.bias import Judgement, preference
from adjudge.statistics.intervals import Draws


@pytest.fixture(scope="module")
def pandalm(corpora: Any) -> list[list[str]]:
    """Three annotators' labels of each item: "1" or "2" wins, "0" is a tie."""
    rows = corpora.whole("pandalm/testset-v1.json")
    return [[str(row[f"annotator{number}"]) for number in (1, 2, 3)] for row in rows]


def test_pandalm_annotators_agree(pandalm: list[list[str]]) -> None:
    columns = list(zip(*pandalm, strict=True))
    pairs = [cohen_kappa(columns[i], columns[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert pairs == pytest.approx([0.852, 0.879, 0.862], abs=5e-4), "the first is the one that PandaLM prints"
    fleiss = fleiss_kappa([Counter(labels) for labels in pandalm])
    alpha = krippendorff_alpha(pandalm)
    assert [fleiss, alpha] == pytest.approx([0.8642, 0.8642], abs=1e-4)


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [
        ("ArmoRM", 92.84),
        ("Eurus-RM", 60.85),
        ("GRM-Llama3-8B", 91.50),
        ("GRM_Gemma_2B", 93.06),
        ("Skywork-Llama-3.1-8B", 96.87),
        ("beaver", 51.45),
        ("internlm2-20b", 95.08),
        ("internlm2", 92.84),
        ("oasst-rm", 60.40),
    ],
)
def test_rewardbench_math_pairs(corpora: Any, name: str, accuracy: float) -> None:
    found = [ranked(row["score"], [0]).alone for row in corpora.rows(f"rewardmath/rewardbench_{name}.jsonl.gz")]
    assert (len(found), round(100 * sum(found) / len(found), 2)) == (447, accuracy)


@pytest.mark.parametrize(
    ("name", "first", "unjudged"),
    [("gpt4o_pairwise", 0.530, 4), ("llama3_70B_pairwise", 0.582, 5), ("llama3_8B_pairwise", 0.597, 621)],
)
def test_position_bias_on_rewardmath_pairs(corpora: Any, name: str, first: float, unjudged: int) -> None:
    judgements = [
        Judgement(
            pair=f"{index}",
            first="A",
            second="B",
            share=None if verdict is None else float(verdict == "A"),
            gold=float(place == "A"),
        )
        for index, row in enumerate(corpora.rows(f"rewardmath/{name}_reward.jsonl.gz"))
        for verdict, place in zip(row["score"], row["chosen_position"], strict=True)
    ]
    assert len(judgements) == 4_347
    assert sum(one.share is None for one in judgements) == unjudged
    assert round(sum(one.share == 1 for one in judgements) / 4_347, 3) == first
    found = preference(judgements, "first", Draws(rounds=100))
    assert found.gold.value == pytest.approx(0.5, abs=0.03)
    assert found.excess.low is not None
    assert found.excess.low > 0, "every one of them prefers the first place"
