"""The form that RM-R1 asks of its judge: the kind of task, then a solution or a rubric, then an evaluation.

    <type>Reasoning</type> <solution>..</solution> <eval>..</eval> verdict
    <type>Chat</type> <rubric>.. <justify>..</justify></rubric> <eval>..</eval> verdict

Quotes and summaries inside the evaluation are free.  The paper gives no reward for this form; asking for it is an
option.

Not covered: what stands in the sections.
"""

from __future__ import annotations

import re
from itertools import pairwise

_TAG = re.compile(r"<\s{0,3}(/?)\s{0,3}(type|rubric|justify|solution|eval)\b[^<>\n]{0,40}>", re.IGNORECASE)
_ORDERS = {
    "Reasoning": "<type> </type> <solution> </solution> <eval> </eval>".split(),
    "Chat": "<type> </type> <rubric> <justify> </justify> </rubric> <eval> </eval>".split(),
}


def in_sections(text: str) -> bool:
    """Return whether a text before its verdict has the sections in one of the two orders, each once and not empty."""
    tags = list(_TAG.finditer(text))
    written = [tag[0] for tag in tags]
    if written not in _ORDERS.values():
        return False
    kind = text[tags[0].end() : tags[1].start()].strip()
    filled = all(
        any(character.isalnum() for character in text[opening.end() : closing.start()])
        for opening, closing in pairwise(tags)
        if not opening[1] and closing[1]
    )
    return filled and _ORDERS.get(kind) == written
