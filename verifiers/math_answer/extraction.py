r"""Find the answer that a response commits to.

Markers, strongest first: `<answer>` tags; the last `\boxed{...}`, unless a "final answer" follows it; "final
answer"; `#### ...`; a line "A: ..." or "answer: ..." or "the answer is ..."; a response that is nothing but an
answer; a bold value, the last formula or the last number of the last line.  Of equal markers the last wins.

Policies.  *Several tags*: they must agree.  *Several boxed answers*: boxes joined by nothing but "and", "or" and
commas are one list, so a hedge is read as a hedge; otherwise the last box is the answer (`boxed="last"`), or all
must be the same (`boxed="same"`).  *A box that is part of a formula*: the formula is the answer.  *A value that its
clause denies or bounds*: there is no answer.
*Unfinished reasoning*: an answer inside a thinking block that is never closed is none.  *Truncated responses*
are the verifier's option.

Searching costs one pass over the text.  Not covered: an answer spread over several sentences.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from adjudge.verifiers.math_answer.boxes import Box, boxed, earlier_boxes, unescape
from adjudge.verifiers.math_answer.later import Statement, later_statements
from adjudge.verifiers.math_answer.markers import after_answer, after_final, after_hashes
from adjudge.verifiers.math_answer.opening import opened, with_unit
from adjudge.verifiers.math_answer.sentences import (
    NUMBER,
    clean,
    explained_number,
    foreign,
    joined,
    last_formulas,
    lone_number,
    said,
    without_hope,
    wordy,
)
from adjudge.verifiers.math_answer.standing import standing

TAGGED: Final = 60_000  # where `<answer>` tags are looked for
TAIL: Final = 20_000  # where weaker markers than a box are looked for: the end of a response

Marker = Literal["tag", "boxed", "####", "final answer", "answer", "whole", "bold", "formula", "number"]
Policy = Literal["last", "same"]

_BOLD = re.compile(
    r"(?:\b(?:is|are|be|equals|was|gives|gets?)|[=:：])\s*\*\*([^*\n]{0,60}\d[^*\n]{0,60}|true|false|yes|no)\*\*",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:#{1,6}\s+|>\s+(?=[-\d$]))+|(?:(?:so|thus|hence|therefore),?\s+)?(?:it|that)(?:'s|\s+is)\s+", re.IGNORECASE
)
_STOP = re.compile(r"<\|(?:im_start|im_end|endoftext|eot_id|end_of_text|end)\|>|</s>")


class Extraction(NamedTuple):
    """What was found.

    Attributes:
        text: the answer as written, without its marker.
        marker: how it was found.
        others: answers of the same marker that this one replaced.
        parts: what each of several joined boxes holds, repeats included.
        later: what is stated behind the answer; each statement must have a reading that is the same value.
    """

    text: str
    marker: Marker
    others: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    later: tuple[Statement, ...] = ()


def extract(text: str, *, boxes: Policy = "last") -> Extraction | None:
    """Return the answer a text commits to, or None when it gives none.

    Args:
        text: the graded part of a response, reasoning removed.
        boxes: what several boxed answers in different places mean.
    """
    marked = "<" in text  # one character is found ten times faster than two
    if marked and ("<|" in text or "</s>" in text):
        stop = _STOP.search(text, 1)
        text = text[: stop.start()] if stop else text
    found, unclosed = boxed(text)
    if found and text[found[-1].start - 1] == "\\":
        text = unescape(text)
        found, unclosed = boxed(text)
    if marked and "</answer>" in text:
        return _tagged(text, boxes)
    if unclosed:
        return None
    tail = text[max(found[-1].stop if found else 0, len(text) - TAIL) :]
    if (final := after_final(tail)).text:
        return _judged(Extraction(final.text, "final answer"), tail[final.stop :])
    if found:
        return _from_boxes(text, found, boxes)
    if (line := after_hashes(tail)).text:
        return _judged(Extraction(line.text, "####"), tail[line.stop :])
    if (line := after_answer(tail)).text:
        return _judged(Extraction(line.text, "answer"), tail[line.stop :])
    return _unmarked(tail)


def _judged(answer: Extraction, after: str) -> Extraction | None:
    """Return an answer with what is stated behind it, or None where that takes it back."""
    later = later_statements(after, answer.text)
    return None if later is None else answer._replace(later=later) if later else answer


def _tagged(text: str, policy: Policy) -> Extraction | None:
    """Return what the `<answer>` tags hold; tags that differ are several answers."""
    closed = text[-TAGGED:].split("</answer>")[:-1]
    bodies = [part.rpartition("<answer>")[2].strip() for part in closed if "<answer>" in part]
    if not bodies:
        return None
    if len(set(bodies)) > 1:
        return Extraction(bodies[-1], "tag", tuple(bodies[:-1]))
    if standing(text, text.rfind("<answer>"), len(text), marked=True) == "denied":
        return None
    found = extract(bodies[0].replace("</answer>", " "), boxes=policy)
    answer = (
        Extraction(found.text, "tag", found.others, later=found.later)
        if found
        else Extraction(said(clean(bodies[0])), "tag")
    )
    return _judged(answer, text.rpartition("</answer>")[2])


def _from_boxes(text: str, boxes: list[Box], policy: Policy) -> Extraction | None:
    """Return the answer in boxes that are one answer, or the formula that they are a part of."""
    stands = standing(text, boxes[0].start, boxes[-1].stop, marked=True)
    if stands == "denied":
        return None
    if stands == "part":
        answer = opened(text, boxes)
    elif len(boxes) > 1:
        answer = ", ".join(dict.fromkeys(box.text.strip() for box in boxes))
    else:
        answer = with_unit(text, boxes[0]).strip()
    if answer is None:
        return None
    others = earlier_boxes(text[: boxes[0].start]) if policy == "same" else ()
    parts = () if len(boxes) == 1 or stands == "part" else tuple(box.text.strip() for box in boxes)
    return _judged(Extraction(answer, "boxed", others, parts), text[boxes[-1].stop :])


def _unmarked(text: str) -> Extraction | None:
    """Return a text that is nothing but an answer, or the last number or formula of the last line."""
    text = without_hope(text)
    whole = _LEAD.sub("", clean(text), count=1) if _LEAD.match(clean(text)) else clean(text)
    if whole and "\n" not in whole and len(whole) <= 200 and not (wordy(whole) or foreign(whole)):
        return Extraction(whole, "whole")
    bold = next(reversed(list(_BOLD.finditer(text, max(text.rstrip().rfind("\n"), 0)))), None)
    if bold and (bold[1].isalpha() or not wordy(bold[1])) and standing(text, *bold.span(1), marked=True) == "alone":
        return Extraction(clean(bold[1]), "bold")
    formulas = last_formulas(text)
    line = text.rstrip().rfind("\n") + 1
    after = max(formulas[-1].end() if formulas else 0, line)
    numbers = list(NUMBER.finditer(text, after))
    if numbers:
        if explained := explained_number(text[after:]):
            return Extraction(explained, "number")
        return Extraction(numbers[-1][0], "number") if lone_number(text, numbers[-1]) else None
    if formulas:
        denied = standing(text, formulas[0].start(), formulas[-1].end(), marked=True) == "denied"
        return None if denied else Extraction(joined(formulas), "formula")
    return Extraction(whole, "whole") if whole and len(whole) <= 100 and "\n" not in whole else None
