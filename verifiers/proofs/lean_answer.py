"""The part of a response that is a Lean proof, held to the rules; shared by the two ways to ask Lean.

Not covered: several proofs in one response; the last code block counts.
"""

from __future__ import annotations

from adjudge.protocol import Score
from adjudge.verifiers.proofs.lean_rules import forbidden
from adjudge.verifiers.proofs.lean_source import LeanFile, LeanTheorem, lean_file
from adjudge.verifiers.proofs.toolbox import proof_in

_LABELS = frozenset({"lean", "lean4", "tactics", "lean3"})


def answered(text: str, theorem: LeanTheorem) -> LeanFile | Score:
    """Return the file that Lean is to read, or the score of a response that it need not see."""
    source = proof_in(text, _LABELS)
    if isinstance(source, Score):
        return source
    ready = lean_file(theorem, source)
    word, reason = forbidden(ready.own, theorem.rest)
    return Score.scored(0.0, reason, stage="rules", forbidden=word) if word else ready
