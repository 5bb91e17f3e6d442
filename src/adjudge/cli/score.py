"""`adjudge score`: one response, one verdict, and why."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from adjudge.cli import exits
from adjudge.cli.console import JsonFlag, print_fields, print_json
from adjudge.protocol import Score
from adjudge.score_view import fields


@dataclass(frozen=True, kw_only=True)
class ScoreCommand:
    r"""Score one response and say why it got that score.

    adjudge score --response "so it is \boxed{0.5}" --reference "1/2"

    Exit code: 0 it was judged, whatever its score, 1 it could not be judged,
    2 the call is wrong.
    """

    response: str
    """The response; - reads it from standard input."""

    reference: str = ""
    """What the response is checked against, as text."""

    reference_json: str = ""
    """The same as JSON, for a list of accepted answers or an object."""

    prompt: str = ""
    """The prompt that was answered, for scorers that look at it."""

    finish_reason: str = ""
    """Why the response ended; "length" says that it was cut off at the token limit."""

    scorer: str = "auto"
    """A name, module:object, ./file.py:object, a reward model's folder or hub name,
    a spec as YAML or JSON text, or a .yaml or .json file.
    "auto" chooses by the reference."""

    as_json: JsonFlag = False

    def run(self) -> int:
        """Score, print, and return the exit code."""
        from adjudge.scoring.api import score

        response = sys.stdin.read() if self.response == "-" else self.response
        finish_reason = self.finish_reason or None
        verdict = score(self.prompt, response, self._reference(), scorer=self.scorer, finish_reason=finish_reason)
        if self.as_json:
            print_json(verdict.to_dict())
        else:
            print_score(verdict)
        return exits.FINE if verdict.status == "scored" else exits.FOUND

    def _reference(self) -> Any:
        import json

        if not self.reference_json:
            return self.reference or None
        if self.reference:
            raise ValueError("--reference and --reference-json were both given; give one of them")
        try:
            return json.loads(self.reference_json)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"--reference-json {self.reference_json!r} is not JSON ({error}); plain text goes to --reference"
            ) from error


def print_score(score: Score) -> None:
    """Print a score for a person to read."""
    print_fields(fields(score))
