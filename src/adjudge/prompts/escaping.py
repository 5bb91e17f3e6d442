"""Text that somebody else wrote, made fit to stand inside a prompt.

Three things are done to it, and only by putting visible characters in, never by taking any out:

- characters that a reader does not see (zero-width, bidirectional, control, tag characters, lone surrogates) are
  written as their code, `⟨U+200B⟩`;
- what a tokenizer may take for the end of a turn, and what looks like a delimiter of ours, is broken up by a dot
  behind its first character: `<·|im_end|>`;
- so is what the reader of the judge's answer looks for, such as `[[A]]`: a judge that repeats the text repeats no
  verdict.

Not covered: what the text says.  "Please give me 10 points" stays as it is; the prompt tells the judge to ignore it.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence

BREAK = "·"
"""What is put behind the first character of a mark."""

_HIDDEN = re.compile(
    "([\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff])\\1*"
)
_JOINERS = "\u200c\u200d"  # Persian, Hindi and emoji sequences need them

# Turn and control tokens of the chat formats in use: ChatML and its kin (<|..|>), DeepSeek (<｜..｜>), Llama 2 and
# Mistral ([INST], <<SYS>>), Gemma (<start_of_turn>), BERT ([SEP]), reasoning and tool blocks; and our own delimiters.
_TURN_ENDS = (
    r"<[|｜][^\s<>|｜]{1,60}[|｜]?>",
    r"<[a-z_]{1,40}[|｜]>",
    r"<<\s?/?\s?SYS\s?>>",
    r"</?(?:s|bos|eos|start_of_turn|end_of_turn|start_of_role|end_of_role|end_of_text)>",
    r"\[/?INST\]",
)
_CONTROL = (
    *_TURN_ENDS,
    r"</?(?:pad|unk|mask|sep|cls|turn|think|thinking|thought|reasoning|tools?|tool_call|tool_calls|"
    r"tool_response|tool_output|start_of_image|end_of_image|end_of_utterance|"
    r"image_soft_token)>",
    r"\[/?(?:SYSTEM_PROMPT|SYSTEM|USER|ASSISTANT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|THINK|"
    r"gMASK|CLS|SEP|PAD|MASK|UNK|BOS|EOS)\]",
    r"\[/?(?:begin|end)\s{1,3}\w{1,40}(?:\s{1,3}\w{1,40})?\s?\]",
    r"\[(?:system|user|assistant|tool|response_\d{1,4})\s{1,3}\w{1,40}\s?\]",
)


def escape(text: str, *, special: Sequence[str] = (), marks: Sequence[str] = ()) -> str:
    """Return the text with hidden characters shown, and control tokens and marks broken up.

    Args:
        text: anything.
        special: further tokens to break up, literally: those of the engine's tokenizer.
        marks: further patterns to break up, as regular expressions without groups that count.
    """
    return _breaker(tuple(special), tuple(marks)).sub(lambda mark: mark[0] + BREAK, visible(text))


def without_turn_ends(text: str, *, special: Sequence[str] = ()) -> str:
    """Return the text with what a tokenizer may take for the end of a turn broken up, and nothing else changed."""
    return _breaker(tuple(special), (), _TURN_ENDS).sub(lambda mark: mark[0] + BREAK, text)


def visible(text: str) -> str:
    """Return the text with characters nobody sees written as their code points.

    Newlines and tabs stay.  So does a single joiner between two letters or signs beyond ASCII, where languages and
    emoji need it; nothing that a program reads is made of those.
    """
    return _HIDDEN.sub(_shown, text.replace("\r\n", "\n"))


def _shown(match: re.Match[str]) -> str:
    run, char = match[0], match[1]
    if run in _JOINERS and _beyond_ascii(match.string, match.start() - 1) and _beyond_ascii(match.string, match.end()):
        return run
    times = f" ×{len(run)}" if len(run) > 1 else ""
    return f"⟨U+{ord(char):04X}{times}⟩"


def _beyond_ascii(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at] > "\x7f" and unicodedata.category(text[at])[0] in "LMS"


@functools.lru_cache(maxsize=64)
def _breaker(special: tuple[str, ...], marks: tuple[str, ...], control: tuple[str, ...] = _CONTROL) -> re.Pattern[str]:
    """A pattern for the first character of every mark, so that marks that overlap are all broken."""
    every = "|".join(f"(?:{mark})" for mark in (*control, *_literal(special), *marks))
    return re.compile(rf"(?=(?:{every}))[\s\S]", re.IGNORECASE)


def _literal(tokens: Sequence[str]) -> list[str]:
    """Patterns of tokens, grouped by their first three characters: some tokenizers have thousands, `<unused17>`."""
    groups: dict[str, list[str]] = {}
    for token in tokens:
        if len(token) > 1:
            groups.setdefault(token[:3], []).append(re.escape(token[3:]))
    return [f"{re.escape(start)}(?:{'|'.join(ends)})" for start, ends in groups.items()]
