"""How a score is shown to people: as lines, as a table of rich, and as HTML in a notebook.

Everything that a response can reach (evidence, names of parts) is text here, never markup, and is cut where it is long.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from adjudge import wire
from adjudge.reasons import describe

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH = 400  # characters of a value that are shown
_CUT = " ... "
_NO_MATH = "tex2jax_ignore mathjax_ignore"  # notebooks typeset what stands between dollar signs
_TONES = {"scored": "#2a864c", "abstained": "#a46907", "failed": "#d73d30"}  # contrast >= 4.5 on white and on black


def visible(text: str, width: int = 0) -> str:
    """Return text as one printable line: control characters and direction marks become escapes.

    Args:
        text: any text, of any length.
        width: characters to keep; the middle of a longer text is left out.  0 keeps all.
    """
    if width and len(text) > width:
        head = (width - len(_CUT)) // 3  # the answer tends to stand at the end
        text = text[:head] + _CUT + text[len(text) - (width - len(_CUT) - head) :]
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


def plain(value: Any, width: int = 0) -> str:
    """Return a value of a report as one line: a number without needless digits, text, or JSON."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return visible(value, width)
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys that are not text, integers of more than 4,300 digits
        text = json.dumps(wire.encode(value), ensure_ascii=False)
    return visible(text, width)


def brief(score: Any) -> str:
    """Return "0.5", "0 (wrong)" or "failed (judge_unparsable)"."""
    value = score.status if score.value is None else f"{score.value:.6g}"
    return f"{value} ({score.reason})" if score.reason else value


def fields(score: Any) -> dict[str, Any]:
    """Return what there is to say of a score, by name; parts stand as `brief` has them."""
    head = {
        "value": score.value,
        "status": score.status,
        "reason": f"{score.reason}: {describe(score.reason)}" if score.reason else "",
        "uncertainty": "" if score.uncertainty is None else score.uncertainty,
    }
    tail = {
        **{f"part {name}": brief(part) for name, part in score.parts.items()},
        "steps": [f"{plain(step.value)} {step.label}" if step.label else step.value for step in score.steps],
        "scorer": score.provenance.fingerprint or score.provenance.scorer,
        "seconds": score.cost.seconds,
        "prompt tokens": score.cost.prompt_tokens or "",
        "completion tokens": score.cost.completion_tokens or "",
    }
    taken = head.keys() | tail.keys()
    evidence = {
        f"evidence {name}" if name in taken else name: value
        for name, value in score.evidence.items()
        if value is not None
    }
    return head | evidence | tail


def _lines(score: Any) -> Iterator[tuple[str, Any]]:
    """Names and values; a part's value is the part itself."""
    for name, value in fields(score).items():
        part = score.parts.get(name.removeprefix("part ")) if name.startswith("part ") else None
        if part is not None:
            yield name, part
        elif value not in ("", (), {}, [], None):
            yield name, plain(value, _WIDTH)


def rich_table(score: Any) -> Table:
    """Return a table of names and values, with those of the parts inside."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for _ in range(2):
        table.add_column(overflow="fold")  # not "ellipsis", which hides the end of a long word
    for name, value in _lines(score):
        tone = _TONES[score.status] if name == "status" else ""
        table.add_row(
            Text(visible(name, _WIDTH), style="dim"),
            Text(value, style=tone) if isinstance(value, str) else rich_table(value),
        )
    return table


def html_table(score: Any) -> str:
    """Return the same as HTML; the parts unfold."""
    rows = []
    for name, value in _lines(score):
        if not isinstance(value, str):
            inside = f"<details><summary>{html.escape(brief(value))}</summary>{html_table(value)}</details>"
        else:
            style = f' style="color:{_TONES[score.status]}"' if name == "status" else ""
            inside = f"<span{style}>{html.escape(value)}</span>"
        head, cell = (f'<{tag} style="text-align:left;overflow-wrap:anywhere">' for tag in ("th", "td"))
        rows.append(f"<tr>{head}{html.escape(visible(name, _WIDTH))}</th>{cell}{inside}</td></tr>")
    return f'<table class="{_NO_MATH}">{"".join(rows)}</table>'
