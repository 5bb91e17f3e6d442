"""adjudge: is this answer good?  Verifiers, reward models and LLM judges behind one scoring protocol.

Public names load on first use, so `import adjudge` stays under 0.1 s and never imports torch or sympy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from adjudge.protocol import (
        Cost,
        Limits,
        Message,
        Provenance,
        Sample,
        Score,
        Scorer,
        StepScore,
        Verifier,
        response_text,
    )
    from adjudge.rl_integration.client.client import AsyncClient, Client, ClientConfig
    from adjudge.rl_integration.service.config import LaneConfig
    from adjudge.rl_integration.service.service import RewardService
    from adjudge.runtime.cache import CachedScorer, ScoreCache
    from adjudge.runtime.contract import BrokenScorer
    from adjudge.runtime.pool import Pool
    from adjudge.runtime.verifying import VerifierScorer
    from adjudge.scoring.api import ascore, ascore_batch, load, score, score_batch
    from adjudge.scoring.compose import (
        Affine,
        ByKind,
        Calibrated,
        Calibration,
        Cascade,
        Clip,
        Ensemble,
        Gate,
        Part,
        Rank,
        Transform,
        Weighted,
        ZScore,
    )
    from adjudge.scoring.compose.auto import auto_scorer
    from adjudge.scoring.conformance import Report, check_scorer
    from adjudge.verifiers.code.verifier import CodeVerifier
    from adjudge.verifiers.math.verifier import MathVerifier
    from adjudge.verifiers.sql.verifier import SqlVerifier
    from adjudge.verifiers.text.choice import ChoiceVerifier
    from adjudge.verifiers.text.exact import ExactVerifier
    from adjudge.verifiers.text.length import LengthPenalty
    from adjudge.verifiers.text.numeric import NumericVerifier
    from adjudge.verifiers.text.regex import RegexVerifier
    from adjudge.verifiers.text.repetition import RepetitionPenalty
    from adjudge.verifiers.text.tag_format import FormatVerifier
    from adjudge.verifiers.text.token_f1 import TokenF1Verifier
    from adjudge.verifiers.verilog.verifier import VerilogVerifier

_NAMES_OF: dict[str, list[str]] = {
    home: names.split()
    for home, names in {
        "adjudge.scoring.api": "ascore ascore_batch load score score_batch",
        "adjudge.scoring.compose": (
            "Affine ByKind Calibrated Calibration Cascade Clip Ensemble Gate Part Rank Transform Weighted ZScore"
        ),
        "adjudge.scoring.compose.auto": "auto_scorer",
        "adjudge.scoring.conformance": "Report check_scorer",
        "adjudge.protocol": "Cost Limits Message Provenance Sample Score Scorer StepScore Verifier response_text",
        "adjudge.rl_integration.client.client": "AsyncClient Client ClientConfig",
        "adjudge.rl_integration.service.config": "LaneConfig",
        "adjudge.rl_integration.service.service": "RewardService",
        "adjudge.runtime.cache": "CachedScorer ScoreCache",
        "adjudge.runtime.contract": "BrokenScorer",
        "adjudge.runtime.pool": "Pool",
        "adjudge.runtime.verifying": "VerifierScorer",
        "adjudge.verifiers.code.verifier": "CodeVerifier",
        "adjudge.verifiers.math.verifier": "MathVerifier",
        "adjudge.verifiers.sql.verifier": "SqlVerifier",
        "adjudge.verifiers.text.choice": "ChoiceVerifier",
        "adjudge.verifiers.text.exact": "ExactVerifier",
        "adjudge.verifiers.text.length": "LengthPenalty",
        "adjudge.verifiers.text.numeric": "NumericVerifier",
        "adjudge.verifiers.text.regex": "RegexVerifier",
        "adjudge.verifiers.text.repetition": "RepetitionPenalty",
        "adjudge.verifiers.text.tag_format": "FormatVerifier",
        "adjudge.verifiers.text.token_f1": "TokenF1Verifier",
        "adjudge.verifiers.verilog.verifier": "VerilogVerifier",
    }.items()
}
_HOME: dict[str, str] = {name: module for module, names in _NAMES_OF.items() for name in names}

__all__ = [
    "Affine",
    "AsyncClient",
    "BrokenScorer",
    "ByKind",
    "CachedScorer",
    "Calibrated",
    "Calibration",
    "Cascade",
    "ChoiceVerifier",
    "Client",
    "ClientConfig",
    "Clip",
    "CodeVerifier",
    "Cost",
    "Ensemble",
    "ExactVerifier",
    "FormatVerifier",
    "Gate",
    "LaneConfig",
    "LengthPenalty",
    "Limits",
    "MathVerifier",
    "Message",
    "NumericVerifier",
    "Part",
    "Pool",
    "Provenance",
    "Rank",
    "RegexVerifier",
    "RepetitionPenalty",
    "Report",
    "RewardService",
    "Sample",
    "Score",
    "ScoreCache",
    "Scorer",
    "SqlVerifier",
    "StepScore",
    "TokenF1Verifier",
    "Transform",
    "Verifier",
    "VerifierScorer",
    "VerilogVerifier",
    "Weighted",
    "ZScore",
    "__version__",
    "ascore",
    "ascore_batch",
    "auto_scorer",
    "check_scorer",
    "load",
    "response_text",
    "score",
    "score_batch",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'adjudge' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
