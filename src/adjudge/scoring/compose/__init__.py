"""Scorers made of scorers: mix them, gate them, ask them in turn, reduce, transform or calibrate them.

Every composite is a `Scorer`, so composites nest.  Not covered: names and specs; see `adjudge.scoring.registry`.
"""

from __future__ import annotations

from adjudge.scoring.compose.by_kind import ByKind
from adjudge.scoring.compose.calibration import Calibrated, Calibration
from adjudge.scoring.compose.cascade import Cascade
from adjudge.scoring.compose.composite import Composite, Part
from adjudge.scoring.compose.ensemble import Ensemble
from adjudge.scoring.compose.gate import Gate
from adjudge.scoring.compose.transform import Affine, Clip, Rank, Step, Transform, ZScore
from adjudge.scoring.compose.weighted import Weighted

__all__ = [
    "Affine",
    "ByKind",
    "Calibrated",
    "Calibration",
    "Cascade",
    "Clip",
    "Composite",
    "Ensemble",
    "Gate",
    "Part",
    "Rank",
    "Step",
    "Transform",
    "Weighted",
    "ZScore",
]
