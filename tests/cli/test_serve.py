"""`adjudge serve`: what cannot be meant is told before a scorer is loaded."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adjudge.cli import exits

Adjudge = Callable[..., Any]


def test_a_port_that_is_taken(adjudge: Adjudge) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = adjudge("serve", "no_such_scorer", "--port", str(port))
    assert ran.code == exits.USER
    assert ran.err == (
        f"adjudge: port {port} of 127.0.0.1 cannot be listened on: address already in use; give another port, or 0 for "
        "any that is free\n"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("prot: 1\n", "unknown option 'prot' (did you mean 'port'?)"),
        ("body_seconds: soon\n", "body_seconds is 'soon'; it must be a number"),
        ("ray: {replica: 2}\n", "unknown option 'ray.replica' (did you mean 'ray.replicas'?)"),
        ("scorers: {math: {scorer: math, bach: 2}}\n", "unknown option 'scorers.math.bach' (did you mean"),
        ("scorers: [math]\n", "scorers is ['math']; it must be a mapping of names to specs"),
        ("- math\n", "holds no mapping"),
    ],
)
def test_a_file_that_cannot_be_meant(adjudge: Adjudge, tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "serve.yaml").write_text(text, encoding="utf-8")
    ran = adjudge("serve", "math", "--config", str(tmp_path / "serve.yaml"), "--port", "0")
    assert ran.code == exits.USER
    assert why in ran.err
    assert ran.err.count("\n") == 1
