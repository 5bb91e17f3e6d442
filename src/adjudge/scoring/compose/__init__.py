"""Scorers made of scorers: mix them, gate them, ask them in turn, reduce, transform or calibrate them.

Every composite is a `Scorer`, so composites nest.  Not covered: names and specs; see `adjudge.scoring.registry`.
"""

from __future__ import annotations

from adjudge.scoring.compose.auto import ByKind
from adjudge.scoring.compose.calibration import Calibrated, Calibration
from adjudge.scoring.compose.composite import Composite, Part
from adjudge.scoring.compose.mixtures import Cascade, Ensemble, Gate, Weighted
from adjudge.scoring.compose.transform import Affine, Clip, Rank, Step, Transform, ZScore

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
