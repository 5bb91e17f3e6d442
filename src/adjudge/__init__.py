"""adjudge: is this answer good?  Verifiers, reward models and LLM judges behind one scoring protocol.

Public names load on first use, so `import adjudge` stays under 0.1 s and never imports torch or sympy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from adjudge.protocol import Cost as Cost
    from adjudge.protocol import Limits as Limits
    from adjudge.protocol import Message as Message
    from adjudge.protocol import Provenance as Provenance
    from adjudge.protocol import Sample as Sample
    from adjudge.protocol import Score as Score
    from adjudge.protocol import Scorer as Scorer
    from adjudge.protocol import StepScore as StepScore
    from adjudge.protocol import Verifier as Verifier
    from adjudge.protocol import response_text as response_text
    from adjudge.rl_integration.client.client import AsyncClient as AsyncClient
    from adjudge.rl_integration.client.client import Client as Client
    from adjudge.rl_integration.client.client import ClientConfig as ClientConfig
    from adjudge.rl_integration.service.config import LaneConfig as LaneConfig
    from adjudge.rl_integration.service.service import RewardService as RewardService
    from adjudge.runtime.cache import CachedScorer as CachedScorer
    from adjudge.runtime.cache import ScoreCache as ScoreCache
    from adjudge.runtime.contract import BrokenScorer as BrokenScorer
    from adjudge.runtime.pool import Pool as Pool
    from adjudge.runtime.verifying import VerifierScorer as VerifierScorer
    from adjudge.scoring.api import ascore as ascore
    from adjudge.scoring.api import ascore_batch as ascore_batch
    from adjudge.scoring.api import load as load
    from adjudge.scoring.api import score as score
    from adjudge.scoring.api import score_batch as score_batch
    from adjudge.scoring.compose import Affine as Affine
    from adjudge.scoring.compose import ByKind as ByKind
    from adjudge.scoring.compose import Calibrated as Calibrated
    from adjudge.scoring.compose import Calibration as Calibration
    from adjudge.scoring.compose import Cascade as Cascade
    from adjudge.scoring.compose import Clip as Clip
    from adjudge.scoring.compose import Ensemble as Ensemble
    from adjudge.scoring.compose import Gate as Gate
    from adjudge.scoring.compose import Part as Part
    from adjudge.scoring.compose import Rank as Rank
    from adjudge.scoring.compose import Transform as Transform
    from adjudge.scoring.compose import Weighted as Weighted
    from adjudge.scoring.compose import ZScore as ZScore
    from adjudge.scoring.compose.auto import auto_scorer as auto_scorer
    from adjudge.scoring.conformance import Report as Report
    from adjudge.scoring.conformance import check_scorer as check_scorer
    from adjudge.verifiers.code.verifier import CodeVerifier as CodeVerifier
    from adjudge.verifiers.math.verifier import MathVerifier as MathVerifier
    from adjudge.verifiers.sql.verifier import SqlVerifier as SqlVerifier
    from adjudge.verifiers.text.choice import ChoiceVerifier as ChoiceVerifier
    from adjudge.verifiers.text.exact import ExactVerifier as ExactVerifier
    from adjudge.verifiers.text.length import LengthPenalty as LengthPenalty
    from adjudge.verifiers.text.numeric import NumericVerifier as NumericVerifier
    from adjudge.verifiers.text.regex import RegexVerifier as RegexVerifier
    from adjudge.verifiers.text.repetition import RepetitionPenalty as RepetitionPenalty
    from adjudge.verifiers.text.tag_format import FormatVerifier as FormatVerifier
    from adjudge.verifiers.text.token_f1 import TokenF1Verifier as TokenF1Verifier
    from adjudge.verifiers.verilog.verifier import VerilogVerifier as VerilogVerifier

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

if not TYPE_CHECKING:  # type checkers take the names that are imported as themselves above
    __all__ = [*_HOME, "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'adjudge' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
