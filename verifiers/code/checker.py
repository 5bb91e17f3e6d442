"""A checker that comes with a reference: a Python function that judges printed output where several are right.

It runs in a sandbox of its own, away from the candidate, and gets three texts; it is trusted code that reads
untrusted text.  Not covered: checkers in other languages.
"""

from __future__ import annotations

from adjudge.verifiers.code.python_candidate import Candidate, NotLoadedError
from adjudge.verifiers.execution import codec, frames
from adjudge.verifiers.execution.peer import Peer, PeerLostError, Raised, serves_nothing
from adjudge.verifiers.execution.program import RunLimits
from adjudge.verifiers.execution.warm_python import WarmPython, flavour_of

_BY_TEXT = ("ValueError", "LookupError", "ArithmeticError", "AssertionError", "RecursionError", "StopIteration")


def ask_checker(warm: WarmPython, source: str, texts: tuple[str, str, str], limits: RunLimits) -> bool | str:
    """Return what `check(stdin, expected, printed)` says; where it gives no verdict, what it raised, if a text can.

    A checker that reads numbers raises ValueError for a text without any.  That is no verdict, but it is an answer,
    as a NameError is not, nor the end of the process, for which "" is returned.

    Args:
        warm: the sandboxes.
        source: the checker's source, which defines `check`.
        texts: what the program read, what the reference expects ("" if it does not say) and what was printed.
        limits: what the checker may use.
    """
    try:
        with Candidate(warm, source, limits, flavour_of(source), ["check"]) as checker:
            found = checker.names.get("check")
            if found is None or type(found[1]) is not codec.Handle:
                return ""
            peer = Peer(checker.run.channel, serves_nothing)
            checker.limit.restart(limits.seconds)
            peer.deadline = checker.limit.left
            answer = peer.exchange("call", found[1], texts, {})
    except (NotLoadedError, PeerLostError, frames.FrameError):
        return ""
    if isinstance(answer, Raised):
        return next((name for name in answer.names if name in _BY_TEXT), "")
    return answer if type(answer) is bool else ""
