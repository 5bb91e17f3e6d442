"""What Lean says of a file of ours, and a server that says it in the shapes of Kimina Lean Server."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from adjudge.protocol import Sample, Score
from adjudge.verifiers.proofs.lean_server import LeanServerScorer


def told(severity: str, text: str, line: int = 1) -> dict[str, Any]:
    end = {"line": line, "column": 9}
    return {"severity": severity, "pos": {"line": line, "column": 0}, "endPos": end, "data": text}


def answers(source: str, *, of_response: list[dict[str, Any]] | None = None, axioms: str = "[propext]") -> list[Any]:
    """What Lean says of a file of ours: of the pinned statement, of the response, and of the check."""
    (key,) = set(re.findall(r"#print axioms pinned_(\w+)", source))
    said = [
        told("warning", "declaration uses 'sorry'"),
        told("info", f"'pinned_{key}' depends on axioms: [sorryAx]"),
        *(of_response or []),
    ]
    if f"checked_{key}" in source:
        on = f"depends on axioms: {axioms}" if axioms else "does not depend on any axioms"
        said.append(told("info", f"'checked_{key}' {on}"))
    return said


Reply = Callable[[str, dict[str, Any]], tuple[int, Any]]


@contextmanager
def server(reply: Reply) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that answers as recorded; yields its address, and what it was sent."""
    seen: list[dict[str, Any]] = []

    class Recorded(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append({"path": self.path, "key": self.headers.get("Authorization"), **body})
            status, answer = reply(self.path, body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Recorded) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{made.server_port}", seen
        finally:
            made.shutdown()
            thread.join()


def kimina(judge: Callable[[str], dict[str, Any]]) -> Reply:
    """Kimina's two shapes around what a judge says of a file."""

    def reply(path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if path == "/api/check":
            (one,) = body["snippets"]
            return 200, {"results": [{"id": one["id"], "time": 0.1, **judge(one["code"])}]}
        (one,) = body["codes"]
        return 200, {"results": [{"custom_id": one["custom_id"], **judge(one["proof"])}]}

    return reply


REFERENCE = {"header": "import Init\nopen Nat", "statement": "theorem t (n : Nat) : n + 0 = n := by sorry"}


def honest(source: str) -> dict[str, Any]:
    wrong = [told("error", "unsolved goals", 12)] if "wrong" in source else None
    return {"response": {"env": 1, "messages": answers(source, of_response=wrong), "sorries": []}}


def asked(url: str, *responses: str, **options: Any) -> list[Score]:
    samples = [Sample(prompt="", response=one, reference=REFERENCE) for one in responses]
    settings: dict[str, Any] = {"seconds": 5, "attempts": 1, **options}
    return asyncio.run(LeanServerScorer(url=url, **settings).score(samples))
