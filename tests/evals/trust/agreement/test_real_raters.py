"""PandaLM's three annotators through the whole evaluation."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.evals.trust.agreement import run_agreement
from adjudge.evals.trust.verdicts import AgreementConfig


def test_pandalm_annotators_agree_as_published(corpora: Any) -> None:
    raters = ("annotator1", "annotator2", "annotator3")
    config = AgreementConfig(
        input=str(corpora.root / "pandalm/testset-v1.json"), column=raters, scale="nominal", resamples=200
    )
    found = {(one.name, one.part): one.interval for one in run_agreement(config).measures}
    pairs = [found["kappa", f"annotator{i} / annotator{j}"].known for i, j in ((1, 2), (1, 3), (2, 3))]
    assert pairs == pytest.approx([0.852, 0.879, 0.862], abs=5e-4)
    whole = [found[name, ""].known for name in ("Fleiss' kappa", "Krippendorff's alpha")]
    assert whole == pytest.approx([0.8642, 0.8642], abs=1e-4)
    low, high = found["kappa", "annotator1 / annotator2"].low, found["kappa", "annotator1 / annotator2"].high
    assert low is not None
    assert high is not None
    assert 0.81 < low < 0.852 < high < 0.90, "rows of one prompt are drawn together"
