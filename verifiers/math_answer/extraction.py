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
from adjudge.verifiers.math_answer.clauses import withdrawn
from adjudge.verifiers.math_answer.markers import after_answer, after_final, after_hashes
from adjudge.verifiers.math_answer.opening import opened, with_unit
from adjudge.verifiers.math_answer.sentences import FORMULA, NUMBER, clean, without_hope, wordy
from adjudge.verifiers.math_answer.standing import standing

TAGGED: Final = 60_000  # where `<answer>` tags are looked for
TAIL: Final = 20_000  # where weaker markers than a box are looked for: the end of a response

LEAST: Final = 5  # characters behind a value that can take it back
MOST: Final = 4000  # characters behind it that are read for that

Marker = Literal["tag", "boxed", "####", "final answer", "answer", "whole", "bold", "formula", "number"]
Policy = Literal["last", "same"]

_BOLD = re.compile(r"(?:\b(?:is|are|be|equals|was|gives|gets?)|[=:：])\s*\*\*([^*\n]{0,60}\d[^*\n]{0,60})\*\*")
_STOP = re.compile(r"<\|(?:im_start|im_end|endoftext|eot_id|end_of_text|end)\|>|</s>")


class Extraction(NamedTuple):
    """What was found.

    Attributes:
        text: the answer as written, without its marker.
        marker: how it was found.
        others: answers of the same marker that this one replaced.
        parts: what each of several joined boxes holds, repeats included.
    """

    text: str
    marker: Marker
    others: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


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
    if final := after_final(tail):
        answer = Extraction(final, "final answer")
    elif found:
        return _from_boxes(text, found, boxes)
    elif line := after_hashes(tail):
        answer = Extraction(line, "####")
    elif line := after_answer(tail):
        answer = Extraction(line, "answer")
    else:
        return _unmarked(tail)
    return None if _taken_back(tail, tail.rfind(answer.text) + len(answer.text), answer.text) else answer


def _taken_back(text: str, stop: int, value: str) -> bool:
    """Whether what follows a value takes it back."""
    return len(text) - stop > LEAST and withdrawn(text[stop : stop + MOST], value)


def _tagged(text: str, policy: Policy) -> Extraction | None:
    """Return what the `<answer>` tags hold; tags that differ are several answers."""
    closed = text[-TAGGED:].split("</answer>")[:-1]
    bodies = [part.rpartition("<answer>")[2].strip() for part in closed if "<answer>" in part]
    if not bodies:
        return None
    if len(set(bodies)) > 1:
        return Extraction(bodies[-1], "tag", tuple(bodies[:-1]))
    found = extract(bodies[0].replace("</answer>", " "), boxes=policy)
    return Extraction(found.text if found else bodies[0], "tag", found.others if found else ())


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
    if answer is None or _taken_back(text, boxes[-1].stop, boxes[-1].text):
        return None
    others = earlier_boxes(text[: boxes[0].start]) if policy == "same" else ()
    if len(boxes) == 1 or stands == "part":
        return Extraction(answer, "boxed", others)
    return Extraction(answer, "boxed", others, tuple(box.text.strip() for box in boxes))


def _unmarked(text: str) -> Extraction | None:
    """Return a text that is nothing but an answer, or the last number or formula of the last line."""
    text = without_hope(text)
    whole = clean(text)
    if whole and "\n" not in whole and len(whole) <= 200 and not wordy(whole):
        return Extraction(whole, "whole")
    bold = next(reversed(list(_BOLD.finditer(text, max(text.rstrip().rfind("\n"), 0)))), None)
    if bold and not wordy(bold[1]) and standing(text, *bold.span(1), marked=True) == "alone":
        return Extraction(clean(bold[1]), "bold")
    formula = None
    for found in FORMULA.finditer(text):
        formula = found
    after = formula.end() if formula else 0
    numbers = list(NUMBER.finditer(text, max(after, text.rstrip().rfind("\n"), 0)))
    if numbers:
        number = numbers[-1]
        alone = standing(text, *number.span(), marked=False) == "alone"
        return Extraction(number[0], "number") if alone else None
    if formula:
        denied = standing(text, *formula.span(), marked=True) == "denied"
        return None if denied else Extraction(clean(formula[formula.lastgroup or 0]), "formula")
    return Extraction(whole, "whole") if whole and len(whole) <= 100 and "\n" not in whole else None
