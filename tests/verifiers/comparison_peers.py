"""Verifiers for `test_comparison`, each of which judges in a way of its own."""

from __future__ import annotations

import os
import time

from benchmarks.verifier_peers import Judging, Peer

from adjudge.protocol import Sample, response_text


def _says(sample: Sample) -> bool | None:
    text = response_text(sample)
    if text == "raise":
        raise SystemExit("no")
    if text == "leave":
        os._exit(3)
    while text == "hang":
        time.sleep(1)
    if text == "print":
        print("accepts", flush=True)
    return None if text == "abstain" else text == "right"


def _lacking() -> Judging:
    raise ModuleNotFoundError("No module named 'other'")


def _writes(sample: Sample) -> bool:
    try:
        with open("/etc/adjudge-was-here", "w"):
            return True
    except OSError:
        return False


PEERS = {
    "any": {
        "says": Peer(name="says", make=lambda: _says, package="adjudge", needs="asked"),
        "lacking": Peer(name="lacking", make=_lacking),
        "absent": Peer(name="absent", make=lambda: _says, package="no-such-package"),
        "writes": Peer(name="writes", make=lambda: _writes),
    }
}
