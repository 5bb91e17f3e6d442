r"""Other spellings of an answer, rewritten to the one that is read: `\Rightarrow 42`, `]0,1[`, `3{,}5`, `8{:}30`.

Not covered: anything that would need to be understood; what does not match as a whole stays as it is.
"""

from __future__ import annotations

import re
from typing import Final

_LEADS: Final = re.compile(
    r"(?:\\(?:Rightarrow|Longrightarrow|implies|therefore)(?![A-Za-z])|[⇒∴→]|=>?(?!=)|\\text\s*\{\s*(?:so\s+)?(?:the\s+)?(?:final\s+)?"
    r"answer(?:\s+is)?\s*[:=]?\s*\})\s*"
)
_ABOUT: Final = re.compile(r"\s*(?:\\approx(?![A-Za-z])|≈)\s*(?=\S)")
_TRAILS: Final = re.compile(
    r"(?:\s|~|\\(?:checkmark|blacksquare|square|qed|space|hfill)(?![A-Za-z])|[✓✔✅☑🎉■□∎\ufe0f])+\Z"
)
_TRAIL_ENDS: Final = frozenset("✓✔✅☑🎉■□∎\ufe0fkedl~")
_LEAD_STARTS: Final = frozenset("\\=⇒∴→")
_OPEN_ENDS: Final = re.compile(r"(?:\\left)?\s*([\[\]])([^\[\]]+?)(?:\\right)?\s*([\[\]])")
_DECIMAL: Final = re.compile(r"(-?\d+)\{,\}(\d{1,2})")
_ALIGNED: Final = re.compile(r"\\begin\{((?:aligned|align|gathered|split)\*?)\}(.*)\\end\{\1\}", re.DOTALL)
_CONTINUED: Final = re.compile(r"(?:\\\\\s*)(?=&?\s*=)|&|(?:\\\\\s*)\Z")
_MODULUS: Final = re.compile(r"\\mod(?![A-Za-z])\s*(?:\{(\w+)\}|(\w+))")


def respelled(text: str) -> tuple[str, bool]:
    """Return an answer as it is usually spelled, and whether it is only said to be about that."""
    if text[-1:] in _TRAIL_ENDS:
        text = _TRAILS.sub("", text)
    if text[:1] in _LEAD_STARTS and (lead := _LEADS.match(text)):
        text = text[lead.end() :]
    about = _ABOUT.match(text) if text[:1] in "\\≈" else None
    if about:
        text = text[about.end() :]
    if "{:}" in text or "{,}" in text:
        text = text.replace("{:}", ":")
        number = _DECIMAL.fullmatch(text)
        text = f"{number[1]}.{number[2]}" if number else text
    if text.startswith("\\begin{") and (aligned := _ALIGNED.fullmatch(text)):
        text = _CONTINUED.sub(" ", aligned[2]).strip()
    ends = _OPEN_ENDS.fullmatch(text) if text.startswith(("]", "\\left]")) or text[-1:] == "[" else None
    if ends and (ends[1] == "]" or ends[3] == "["):
        text = f"{'(' if ends[1] == ']' else '['}{ends[2]}{')' if ends[3] == '[' else ']'}"
    if "\\mod" in text:
        text = _MODULUS.sub(lambda found: rf"\pmod{{{found[1] or found[2]}}}", text)
    return text, bool(about)
