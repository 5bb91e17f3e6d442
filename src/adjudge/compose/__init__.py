"""Scorers made of scorers: mix them, gate them, ask them in turn, reduce, transform or calibrate them.

Every composite is a `Scorer`, so composites nest.  Not covered: names and specs; see `adjudge.registry`.
"""

from __future__ import annotations

from adjudge.compose.by_kind import ByKind
from adjudge.compose.calibrated import Calibrated
from adjudge.compose.calibration import Calibration
from adjudge.compose.cascade import Cascade
from adjudge.compose.composite import Composite
from adjudge.compose.ensemble import Ensemble
from adjudge.compose.gate import Gate
from adjudge.compose.part import Part
from adjudge.compose.steps import Affine, Clip, Rank, Step, ZScore
from adjudge.compose.transform import Transform
from adjudge.compose.weighted import Weighted

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
