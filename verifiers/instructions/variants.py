"""The variants of a response of which IFEval's loose check takes the best.

A first line may say "Sure, here it is:", a last one "Let me know ...", and stars may be Markdown.  So a constraint is
met when the response meets it as it is, or without its first line, its last, or both; each also without stars.

So the loose check is for numbers beside published ones: a response of any kind with a last line of one word meets what
that word meets.

Not covered: the rest of a polite frame, such as two lines of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from adjudge.instructions.text import Text


def variants(response: str, *, shown: bool = True) -> Iterator[tuple[str, Text]]:
    """Yield the name and the text of each variant that has text and was not there before, the response first."""
    lines = response.split("\n")
    cuts = (
        ("as it is", response),
        ("without the first line", "\n".join(lines[1:]).strip()),
        ("without the last line", "\n".join(lines[:-1]).strip()),
        ("without both lines", "\n".join(lines[1:-1]).strip()),
    )
    seen = set()
    for stars in (True, False):
        for name, text in cuts:
            variant = text if stars else text.replace("*", "")
            if variant not in seen and variant.strip():
                seen.add(variant)
                yield (name if stars else f"{name}, without stars"), Text(variant, shown=shown)
