"""The spec files of examples/judges that use panels and tournaments load, with the weights they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.judges.dawid_skene import DawidSkene
from adjudge.judges.panel import Panel
from adjudge.judges.tournament import Tournament
from adjudge.scoring import registry

EXAMPLES = Path(__file__).parents[3] / "examples" / "judges"


def test_the_panels() -> None:
    plain, learnt = (registry.load(str(EXAMPLES / name)) for name in ("panel.yaml", "panel_learnt.yaml"))
    assert isinstance(plain, Panel)
    assert isinstance(learnt, Panel)
    assert (plain.vote, plain.quorum, learnt.quorum) == ("majority", None, 2)
    assert isinstance(learnt.weights, DawidSkene)
    assert learnt.weights.accuracy("qwen") == pytest.approx(0.45 * 0.93 + 0.55 * 0.92)
    assert len({part.scorer.fingerprint for part in plain.parts}) == 3
    assert plain.fingerprint != learnt.fingerprint


def test_the_tournament() -> None:
    scorer = registry.load(str(EXAMPLES / "tournament.yaml"))
    assert isinstance(scorer, Tournament)
    assert (scorer.format, scorer.ranking, scorer.groupwise) == ("swiss", "bradley_terry", True)
