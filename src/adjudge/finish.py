"""Why a response ended: the words of engines and APIs for a cut at the token limit are one word, "length".

Not covered: other ends ("stop", "end_turn", "content_filter", ...); they stay as they are, and `finished` knows those
of a model that was through.
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
_NOISE: Final = re.compile(r"^(?:finish|stop)_?reason[._]?|[^a-z]")  # of an enumeration: FinishReason.MAX_TOKENS


def plain_finish(reason: str) -> str:
    """Return "length" for any engine's word for a cut at the token limit, and any other reason as it is."""
    return "length" if _NOISE.sub("", reason.lower()) in _CUT else reason


def finished(reason: str) -> bool:
    """Return whether the model ended its text by itself: no cut, filter, refusal or call did, and it is said so."""
    return _NOISE.sub("", reason.lower()) in _STOPPED
