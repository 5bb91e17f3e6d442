r"""Shuffle the options of a multiple-choice question, in the prompt and in the reference.

A model that always says "B" must not do well because the right option often is B.  `shuffle_sample` puts the option
texts in another order, keeps the labels where they are, rewrites the options in the prompt and moves the answer along.
The order depends only on the seed and the sample's id: it is the order of the SHA-256 digests of
"seed | id | position", so it is the same on every machine, version and run.

Options that speak of their neighbours ("all of the above") stay in their place; when an option names others by their
label ("both A and C") or is a label itself, nothing is moved.

Not covered: options in images or typed message parts, and prompts that do not list all the options in the order of
the labels.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adjudge.io.questions import as_question
from adjudge.protocol import Message, Sample
from adjudge.verifiers.text.choice_key import LABELS, ChoiceKey, plain, read_choice_key

_PINNED = re.compile(
    r"\b(?:all|none|any|both|neither|either|some|most|two)\s+(?:of\s+)?(?:the\s+|these\s+|those\s+)?"
    r"(?:above|others?|options?|choices?|answers?|these|those|them)\b|\babove\b|以上|上述|都对|都不对",
    re.IGNORECASE,
)


def shuffle_sample(sample: Sample, *, seed: str = "", labels: str = LABELS) -> tuple[Sample, tuple[int, ...]]:
    """Return the sample with its options in another order, and that order.

    The option now at position i stood at position `order[i]`; `permute_choices(new, inverse(order))` gives the sample
    back.  `ValueError` if the sample has no id or no `{"choices": [...], "answer": ...}`, or its prompt no options.
    """
    if not sample.id:
        raise ValueError("shuffling needs Sample.id, because the order is derived from it; give each question an id")
    sample = replace(sample, reference=as_question(sample.reference))
    key = _key(sample, labels)
    choices = sample.reference["choices"]
    if any(_names_labels(text, key.labels) for text in choices):
        order = tuple(range(len(choices)))
    else:
        pinned = {at for at, text in enumerate(choices) if _PINNED.search(text)}
        order = shuffled_order(len(choices), f"{seed}|{sample.id}", pinned)
    return permute_choices(sample, order, labels=labels), order


def shuffled_order(count: int, seed: str, pinned: set[int] | frozenset[int] = frozenset()) -> tuple[int, ...]:
    """Return a permutation of range(count) that depends on the seed alone and leaves the pinned positions alone."""

    def digest(at: int) -> bytes:
        return hashlib.sha256(f"{seed}|{at}".encode("utf-8", "surrogatepass")).digest()

    moving = iter(sorted((at for at in range(count) if at not in pinned), key=digest))
    return tuple(at if at in pinned else next(moving) for at in range(count))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """Return the permutation that undoes `order`."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def remap_label(label: str, order: Sequence[int], labels: str = LABELS) -> str:
    """Return the label after reordering of the option that had `label`; with `inverse(order)` the one before."""
    return labels[list(order).index(labels.index(label))]


def permute_choices(sample: Sample, order: Sequence[int], *, labels: str = LABELS) -> Sample:
    """Return the sample with the options in the given order: position i gets the option that stood at `order[i]`.

    The answer keeps its form: a label becomes the new label, a position the new position, a text stays.  `ValueError`
    if that cannot be done.
    """
    sample = replace(sample, reference=as_question(sample.reference))
    key = _key(sample, labels)
    reference: Mapping[str, Any] = sample.reference
    choices = list(reference["choices"])
    if sorted(order) != list(range(len(choices))):
        raise ValueError(f"the order {tuple(order)} is not a permutation of {len(choices)} options")
    if list(order) != sorted(order) and any(_names_labels(text, key.labels) for text in choices):
        raise ValueError("an option names options by their labels, so the options cannot be moved")
    answer = reference["answer"]
    moved = remap_label(key.answer, order, labels)
    if isinstance(answer, int):
        answer = labels.index(moved)
    elif len(letter := answer.strip("()[]. \t\n")) == 1 and letter.upper() in labels:
        answer = answer.replace(letter, moved if letter in labels else moved.lower())
    reordered = [choices[at] for at in order]
    return replace(
        sample,
        prompt=_rewrite_prompt(sample.prompt, choices, reordered, key.labels),
        reference={**reference, "choices": reordered, "answer": answer},
    )


def _key(sample: Sample, labels: str) -> ChoiceKey:
    reference = sample.reference
    if not isinstance(reference, Mapping) or not isinstance(reference.get("choices", ()), Sequence):
        raise ValueError('shuffling needs the reference {"choices": [...], "answer": ...}, to move the options in it')
    return read_choice_key(sample.reference, labels)


def _names_labels(text: str, labels: str) -> bool:
    """Tell whether an option is a label itself, or names others by theirs ("both A and C")."""
    named = rf"(?<![A-Za-z0-9])[(\[]?[{labels}][)\]]?(?![A-Za-z0-9])"
    several = rf"{named}\s*(?:and|or|,|&|和|与|或)\s*{named}|\b(?i:options?|choices?)\s+{named}"
    return plain(text).strip("()[]. ").upper() in tuple(labels) or re.search(several, text) is not None


def _rewrite_prompt(
    prompt: str | Sequence[Message], choices: list[str], reordered: list[str], labels: str
) -> str | list[Message]:
    if isinstance(prompt, str):
        if (text := _rewrite(prompt, choices, reordered, labels)) is not None:
            return text
    else:
        turns = list(prompt)
        for at in range(len(turns) - 1, -1, -1):
            content = turns[at].get("content")
            if isinstance(content, str) and (text := _rewrite(content, choices, reordered, labels)) is not None:
                turns[at] = {**turns[at], "content": text}
                return turns
    raise ValueError(
        f"the prompt does not list the {len(choices)} options as '{labels[0]}. ...', '{labels[1]}. ...' in the order "
        "of the reference, so it cannot be rewritten"
    )


def _rewrite(text: str, choices: list[str], reordered: list[str], labels: str) -> str | None:
    """Return the text with the last complete list of the options rewritten, or None when it holds none."""
    options = [
        rf"(?<![A-Za-z0-9])[(\[]?{re.escape(label)}[)\].:、：]{{1,2}}[*_]{{0,2}}\s{{0,4}}({re.escape(choice)})"
        for label, choice in zip(labels, choices, strict=True)
    ]
    lists = list(re.finditer(r"[\s,;•*_-]{1,10}".join(options) + r"(?![A-Za-z0-9])", text))
    if not lists:
        return None
    pieces, at = [], 0
    for group, choice in enumerate(reordered, start=1):
        pieces += [text[at : lists[-1].start(group)], choice]
        at = lists[-1].end(group)
    return "".join([*pieces, text[at:]])
