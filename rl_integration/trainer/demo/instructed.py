"""Tasks for a model that was trained to follow instructions: sums in a box, and sentences with constraints."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.arithmetic import divided

_TOP: Final = 9
_SUBJECTS: Final = (
    "the sea, a bicycle, winter, a dog, bread, the moon, a library, rain, a train, coffee, a garden, music, "
    "a mountain, a river, the sun, a school, a forest, tea, a boat, snow, an island, a kitchen, a market, a bridge"
).split(", ")
_CONSTRAINTS: Final[dict[str, dict[str, Any]]] = {
    "Use lower case letters alone.": {"kind": "change_case:english_lowercase"},
    "USE CAPITAL LETTERS ALONE.": {"kind": "change_case:english_capital"},
    "Use no comma.": {"kind": "punctuation:no_comma"},
    "Use fewer than 15 words.": {
        "kind": "length_constraints:number_words",
        "args": {"relation": "less than", "num_words": 15},
    },
    "Put all of it in double quotation marks.": {"kind": "startend:quotation"},
    "Begin with a title in double angular brackets, such as <<title>>.": {"kind": "detectable_format:title"},
}
_TOGETHER: Final = ((0, 2), (1, 3), (3, 4))
"""Which of them are asked for at once, too."""

_SIX: Final = {"kind": "length_constraints:number_words", "args": {"relation": "at least", "num_words": 6}}
"""Without it, and a look for the subject, the policy wrote `"without a comma."` to every request within 60 steps."""

_ASKED: Final = "What is {}? Write \\boxed{{}} around the number."
_SHOWN: Final[list[dict[str, Any]]] = [
    {"role": "user", "content": _ASKED.format("1 + 1")},
    {"role": "assistant", "content": "1 + 1 = \\boxed{2}"},
]
"""Without a worked example the model wrote no box in 32 draws, so a group's rewards were all alike; with it, in 25."""

SUM: Final = "sum"
WORDS: Final = "words"

REWARD: Final[dict[str, Any]] = {
    "by_kind": {
        SUM: {
            "weighted": [
                {"scorer": {"numeric": {"where": "boxed"}}, "weight": 0.8},
                {"scorer": {"regex": {"pattern": r"\\boxed\{\d+\}", "mode": "search"}}, "weight": 0.2},
            ]
        },
        WORDS: {"instructions": {"credit": "fraction", "vacuous": "unmet", "truncated": "zero"}},
    }
}
"""A box alone is worth something, since the model writes few by itself; and so is each constraint of several."""

TRUTH: Final[dict[str, Any]] = {
    "by_kind": {
        SUM: {"numeric": {"where": "boxed"}},
        WORDS: {"instructions": {"vacuous": "unmet", "truncated": "zero"}},
    }
}


def instructed(*, held_out: float, seed: int) -> tuple[list[Task], list[Task]]:
    """Return tasks to train on, and a share held out to measure on."""
    return divided([*_sums(), *_sentences()], held_out, seed=seed)


def _sums() -> list[Task]:
    tasks = []
    for first, second in itertools.product(range(1, _TOP + 1), repeat=2):
        for asked, right in ((f"{first} + {second}", first + second), (f"{first + second} - {second}", first)):
            tasks.append(_task(asked, _ASKED.format(asked), reference=str(right), kind=SUM, before=_SHOWN))
    return tasks


def _sentences() -> list[Task]:
    names = list(_CONSTRAINTS)
    asked = [[name] for name in names] + [[names[one] for one in some] for some in _TOGETHER]
    return [
        _task(
            f"{subject}: {' '.join(some)}",
            f"Write a sentence of six words or more about {subject}. {' '.join(some)}",
            reference={"constraints": [_SIX, _names(subject), *(_CONSTRAINTS[name] for name in some)]},
            kind=WORDS,
        )
        for subject, some in itertools.product(_SUBJECTS, asked)
    ]


def _names(subject: str) -> dict[str, Any]:
    return {"kind": "keywords:existence", "args": {"keywords": [subject.split()[-1]]}}


def _task(name: str, prompt: str, *, reference: Any, kind: str, before: Sequence[Mapping[str, Any]] = ()) -> Task:
    messages = [*before, {"role": "user", "content": prompt}]
    return Task(id=name, prompt=messages, reference=reference, extra={"kind": kind})
