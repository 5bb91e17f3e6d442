"""Why a response ended: the words of engines and APIs for a cut at the token limit are one word, "length".

Not covered: other ends ("stop", "end_turn", "content_filter", ...); they stay as they are, `finished` knows those of a
model that was through, and `given_up` those of a server that was not.
"""

from __future__ import annotations

import re
from typing import Final

_CUT: Final = frozenset(
    # of OpenAI and its Responses, Anthropic, Gemini, Mistral, Inspect, watsonx, llama.cpp and others, without signs
    """length maxlength maxoutputtokens maxcompletiontokens maxtokens maxnewtokens modellength tokenlimit limit
    truncated contextlength contextwindowexceeded modelcontextwindowexceeded contextlengthexceeded""".split()
)
_STOPPED: Final = frozenset("stop eos eostoken endturn endofturn endoftext stopsequence complete completed".split())
_GIVEN_UP: Final = frozenset("abort aborted error cancelled canceled".split())
_NOISE: Final = re.compile(r"^(?:finish|stop)_?reason[._]?|[^a-z]")  # of an enumeration: FinishReason.MAX_TOKENS


def plain_finish(reason: str) -> str:
    """Return "length" for any engine's word for a cut at the token limit, and any other reason as it is."""
    return "length" if _NOISE.sub("", reason.lower()) in _CUT else reason


def given_up(reason: str) -> bool:
    """Return whether a server or its caller ended the text in the middle, which says nothing of the model."""
    return _NOISE.sub("", reason.lower()) in _GIVEN_UP


def finished(reason: str) -> bool:
    """Return whether the model ended its text by itself: no cut, filter, refusal or call did, and it is said so."""
    return _NOISE.sub("", reason.lower()) in _STOPPED
