"""Step data as others publish it: one reader for each format, row by row.

| format | published by | a row |
|---|---|---|
| `plain` | this project | `prompt`, `steps`, `labels` (numbers in [0, 1], true, false, null), `outcome`, `group` |
| `trl` | TRL's stepwise data | `prompt`, `completions`, `labels` (true, false) |
| `prm800k` | PRM800K, raw | `question.problem`, `label.steps[].completions[]` with `text` and `rating` in -1, 0, 1 |
| `math_shepherd` | Math-Shepherd | `input` with a tag after each step, `label` with "+" or "-" in its place |
| `omega_flat` | OmegaPRM, flat | `question`, `reasoning_steps[]` with `solution_prefix` and `mc_value` |
| `omega_tree` | OmegaPRM, as a tree | `question`, `reasoning_steps` with `text`, `mc_value` and `children` |
| `rlhflow` | RLHFlow | `conversations`: a user's turn is a step, the assistant's turn "+" or "-" |
| `processbench` | ProcessBench | `problem`, `steps`, `label` (first error, -1 for none), `final_answer_correct` |
| `prmbench` | PRMBench | `modified_question`, `modified_process`, `error_steps` (counted from 1) |

A reader returns the examples of a row or raises `ValueError` saying what is wrong with it.

Not covered: what follows the first error in ProcessBench is unknown by its protocol, and stays so unless the option
`after_error` is "bad"; PRMBench's `original_process`, whose steps nobody labelled one by one.

OmegaPRM's data are prefixes of solutions with the share of rollouts from each that reached the right answer.  The flat
form lists prefixes, each from the problem on; one that begins with another is its continuation, and the value of one
that is listed several times is the mean.  Both forms are trees, and every way from the problem to a leaf is a solution;
the share of the problem itself belongs to no step.  A step that several solutions share counts once unless an option
says otherwise: a tree of sixteen leaves would repeat its first step sixteen times.  Steps lose their outer blanks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from adjudge.protocol import content_text
from adjudge.training.step_data import Label, StepExample, StepOptions, error_labels

Row = Mapping[str, Any]


def text_of(row: Row, *names: str) -> str:
    """Return the first of these fields that is there, which must be text, or raise `ValueError`."""
    for name in names:
        if row.get(name) is not None:
            if not isinstance(row[name], str):
                raise ValueError(f"the field {name!r} is a {type(row[name]).__name__}; it must be text")
            return str(row[name])
    raise ValueError(f"there is no field {' or '.join(map(repr, names))}")


def _prompt_of(row: Row) -> str:
    """A prompt: text, or a chat of one user's turn; a text cannot stand for other turns."""
    value = row.get("prompt")
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) == 1 and isinstance(value[0], Mapping) and value[0].get("role") == "user":
            return content_text(value[0].get("content"))
        raise ValueError("the field 'prompt' is a chat; only one of a single user's turn can be read")
    return text_of(row, "prompt")


def list_of(row: Row, name: str) -> list[Any]:
    """Return a field that must be a list, or raise `ValueError`."""
    value = row.get(name)
    if not isinstance(value, list | tuple):
        raise ValueError(f"the field {name!r} is {'missing' if value is None else 'no list'}")
    return list(value)


def object_of(row: Row, name: str) -> Row:
    """Return a field that must be an object, or raise `ValueError`."""
    value = row.get(name)
    if not isinstance(value, Mapping):
        raise ValueError(f"the field {name!r} is {'missing' if value is None else 'no object'}")
    return value


def texts_of(row: Row, name: str) -> tuple[str, ...]:
    """Return a field that must be a list of texts, or raise `ValueError`."""
    texts = list_of(row, name)
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"item {at} of {name!r} is a {type(text).__name__}; it must be text")
    return tuple(texts)


def label_of(value: Any, what: str) -> Label:
    """Return a label (true, false, a number in [0, 1], or null for one that is unknown), or raise `ValueError`."""
    if value is None:
        return None
    if isinstance(value, int | float) and 0 <= value <= 1:
        return float(value)
    raise ValueError(f"{what} is {value!r}; it must be true, false, a number in [0, 1], or null")


def _labels_of(row: Row) -> tuple[Label, ...]:
    return tuple(label_of(value, f"label {at}") for at, value in enumerate(list_of(row, "labels")))


def place_of(value: Any, what: str) -> int:
    """Return a whole number, or raise `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{what} is {value!r}; it must be a whole number")
    return value


_DEPTH = 200  # each level takes two of the 1000 frames that Python has


@dataclass(slots=True)
class _Node:
    text: str
    value: float
    children: list[_Node] = field(default_factory=list)
    seen: bool = False


def omega_tree(row: Row, options: StepOptions) -> list[StepExample]:
    """Read a row whose `reasoning_steps` is a tree; its root holds the problem."""
    root = _tree(object_of(row, "reasoning_steps"), 0)
    return _solutions(text_of(row, "question"), root, options, "omega_tree")


def omega_flat(row: Row, options: StepOptions) -> list[StepExample]:
    """Read a row whose `reasoning_steps` is a list of prefixes."""
    question = text_of(row, "question")
    shares: dict[str, list[float]] = {}
    for item in list_of(row, "reasoning_steps"):
        if not isinstance(item, Mapping):
            raise ValueError("an item of reasoning_steps is not an object")
        shares.setdefault(text_of(item, "solution_prefix"), []).append(_share(item))
    # The search met some prefixes twice, with other rollouts each time.
    values = {prefix: math.fsum(several) / len(several) for prefix, several in shares.items()}
    root = _Node(question, values.pop(question, 1.0))
    open_nodes = [(question, root)]
    # Sorted, a prefix comes right before everything that begins with it.
    for prefix in sorted(values):
        if not prefix.startswith(question):
            raise ValueError(f"the prefix {prefix[:60]!r} does not begin with the problem")
        while not prefix.startswith(open_nodes[-1][0]):
            open_nodes.pop()
        above, parent = open_nodes[-1]
        node = _Node(prefix[len(above) :].strip(), values[prefix])
        if not node.text:
            continue  # the same prefix with another blank behind it
        parent.children.append(node)
        open_nodes.append((prefix, node))
    return _solutions(question, root, options, "omega_flat")


def _tree(item: Mapping[str, Any], depth: int) -> _Node:
    if depth > _DEPTH:
        raise ValueError(f"the tree is deeper than {_DEPTH} steps")
    children = list_of(item, "children")
    for child in children:
        if not isinstance(child, Mapping):
            raise ValueError("a child is not an object")
    return _Node(text_of(item, "text").strip(), _share(item), [_tree(child, depth + 1) for child in children])


def _share(item: Mapping[str, Any]) -> float:
    value = label_of(item.get("mc_value"), "mc_value")
    if value is None:
        raise ValueError("there is no field 'mc_value'")
    return value


def _solutions(question: str, root: _Node, options: StepOptions, source: str) -> list[StepExample]:
    if not root.children:
        raise ValueError("the tree holds nothing but the problem")
    solutions = []
    for way in _ways(root):
        full = StepExample(
            prompt=question,
            steps=tuple(node.text for node in way),
            labels=tuple(node.value for node in way),
            source=source,
        )
        labels = options.applied(full).labels  # before shared steps are masked: what follows an error must be found
        if options.shared == "once":
            labels = tuple(None if node.seen else label for node, label in zip(way, labels, strict=True))
        for node in way:
            node.seen = True
        solutions.append(replace(full, labels=labels))
    return solutions


def _ways(root: _Node) -> Iterator[list[_Node]]:
    """Every way from below the root to a leaf, leftmost first."""
    waiting = [[child] for child in reversed(root.children)]
    while waiting:
        way = waiting.pop()
        if way[-1].children:
            waiting += [[*way, child] for child in reversed(way[-1].children)]
        else:
            yield way


Reader = Callable[[Row, StepOptions], list[StepExample]]

_TAG = "ки"  # Cyrillic; Math-Shepherd's mark of a step's end
_SIGNS: Mapping[str, float] = {"+": 1.0, "-": 0.0}
_FIRST_STEP = re.compile(r"Step 1\s*:")


def plain(row: Row, options: StepOptions) -> list[StepExample]:
    """Read a row of this project's own form."""
    named = {name: text_of(row, name) for name in ("source", "group") if row.get(name) is not None}
    outcome = label_of(row.get("outcome"), "the outcome")
    steps, labels = texts_of(row, "steps"), _labels_of(row)
    return [options.applied(StepExample(prompt=_prompt_of(row), steps=steps, labels=labels, outcome=outcome, **named))]


def trl(row: Row, options: StepOptions) -> list[StepExample]:
    """Read a row of TRL's stepwise supervision."""
    steps, labels = texts_of(row, "completions"), _labels_of(row)
    return [options.applied(StepExample(prompt=_prompt_of(row), steps=steps, labels=labels, source="trl"))]


@dataclass(frozen=True, slots=True)
class _Rated:
    """A step that PRM800K's raters saw."""

    text: str
    label: Label
    wrong: bool = False


def prm800k(row: Row, options: StepOptions) -> list[StepExample]:
    """Read a raw row of PRM800K: the solution the rater followed, and the rated steps beside it.

    The solution goes on with the step that was chosen, or with the one the rater wrote (which has no rating, so its
    label is unknown); where neither is there it ends with the first that was offered.
    """
    question, label = object_of(row, "question"), object_of(row, "label")
    finish = label.get("finish_reason")
    if finish == "bad_problem":
        raise ValueError("the rater marked the problem as bad")
    prompt = text_of(question, "problem")
    main: list[_Rated] = []
    beside: list[tuple[int, _Rated]] = []
    for at, step in enumerate(list_of(label, "steps")):
        offered = [_rated(item, at, options) for item in list_of({"completions": [], **_full(step)}, "completions")]
        chosen = step.get("chosen_completion")
        written = step.get("human_completion")
        if chosen is not None:
            place = place_of(chosen, f"chosen_completion of step {at}")
            if not 0 <= place < len(offered):
                raise ValueError(f"step {at} chose completion {place} of {len(offered)}")
        else:
            place = -1 if written is not None else 0
        if place >= 0 and not offered:
            break  # the rater gave up here
        beside += [(at, item) for number, item in enumerate(offered) if number != place and item.label is not None]
        main.append(
            offered[place] if place >= 0 else _Rated(text_of(object_of(step, "human_completion"), "text"), None)
        )
        if chosen is None and written is None:
            break
    solved = finish == "solution" and not any(step.wrong for step in main)
    lines = [
        options.applied(
            StepExample(
                prompt=prompt,
                steps=tuple(step.text for step in main),
                labels=tuple(step.label for step in main),
                outcome=1.0 if solved else None,  # an abandoned solution has no final answer
                source="prm800k",
            )
        )
    ]
    if options.alternatives:
        lines += [
            options.applied(
                StepExample(
                    prompt=prompt,
                    steps=(*[step.text for step in main[:at]], item.text),
                    labels=(*[None] * at, item.label),
                    source="prm800k, beside the chosen step",
                )
            )
            for at, item in beside
        ]
    return lines


def _full(step: Any) -> dict[str, Any]:
    """A step of PRM800K without the fields that are null."""
    if not isinstance(step, Mapping):
        raise ValueError("a step is not an object")
    return {name: value for name, value in step.items() if value is not None}


def _rated(item: Any, at: int, options: StepOptions) -> _Rated:
    if not isinstance(item, Mapping):
        raise ValueError(f"a completion of step {at} is not an object")
    rating = item.get("rating")
    if rating not in (-1, 0, 1, None):
        raise ValueError(f"a completion of step {at} is rated {rating!r}; ratings are -1, 0 and 1")
    neutral = {"good": 1.0, "masked": None, "bad": 0.0}[options.neutral]
    label = {-1: 0.0, 0: neutral, 1: 1.0, None: None}[rating]
    return _Rated(text_of(item, "text"), label, rating == -1)


def math_shepherd(row: Row, options: StepOptions) -> list[StepExample]:
    """Read a row of Math-Shepherd; a step's label must stand exactly where its tag stands."""
    pieces = text_of(row, "input").split(_TAG)
    signs, tail = _signs(text_of(row, "label"), pieces)
    if tail.strip():
        raise ValueError("there is text behind the last step's tag")
    prompt, first = _cut_at_first_step(pieces[0])
    labels = tuple(_SIGNS[sign] for sign in signs)
    example = StepExample(
        prompt=prompt.strip(),
        steps=tuple(text.strip() for text in (first, *pieces[1:-1])),
        labels=labels,
        outcome=labels[-1],  # the last prefix is the whole solution
        source=f"math_shepherd {row.get('task', '')}".strip(),
    )
    return [options.applied(example)]


def _signs(label: str, pieces: Sequence[str]) -> tuple[list[str], str]:
    """The signs that stand in `label` where the tags stood between the pieces, and the text behind the last one."""
    if len(pieces) < 2:
        raise ValueError(f"the input holds no tag {_TAG!r}")
    signs: list[str] = []
    at = 0
    for number, piece in enumerate(pieces):
        if not label.startswith(piece, at):
            raise ValueError(f"the label's text differs from the input's in piece {number}")
        at += len(piece)
        if number == len(pieces) - 1:
            break
        sign = label[at : at + 1]
        if sign not in _SIGNS:
            raise ValueError(f"the label has {sign!r} where step {number} has its tag; it must be '+' or '-'")
        signs.append(sign)
        at += 1
    return signs, pieces[-1] + label[at:]


def _cut_at_first_step(text: str) -> tuple[str, str]:
    """The problem, and the first step behind it."""
    starts = [match.start() for match in _FIRST_STEP.finditer(text)]
    if not starts:
        raise ValueError(
            "the problem and the first step cannot be told apart: there is no 'Step 1:', and no field 'problem' that "
            "the row begins with"
        )
    return text[: starts[-1]], text[starts[-1] :]


def rlhflow(row: Row, options: StepOptions) -> list[StepExample]:
    """Read a row of RLHFlow: user's turns are steps, the assistant's turns their signs.

    The first turn holds the problem and the first step.  They are told apart by a field with the problem (`problem`,
    `question` or `prompt`), or by "Step 1:".
    """
    turns = list_of(row, "conversations" if "conversations" in row else "messages")
    said = [_turn(turn) for turn in turns]
    steps = [text for role, text in said if role == "user"]
    signs = [text.strip() for role, text in said if role == "assistant"]
    if [role for role, _ in said] != ["user", "assistant"] * len(steps) or not steps:
        raise ValueError("the turns are not steps and signs by turns, beginning with a step")
    for at, sign in enumerate(signs):
        if sign not in _SIGNS:
            raise ValueError(f"the assistant's turn {at} is {sign[:20]!r}; it must be '+' or '-'")
    problem = next((row[name] for name in ("problem", "question", "prompt") if isinstance(row.get(name), str)), "")
    if problem and steps[0].startswith(problem):
        prompt, first = problem, steps[0][len(problem) :]
    else:
        prompt, first = _cut_at_first_step(steps[0])
    example = StepExample(
        prompt=prompt.strip(),
        steps=tuple(text.strip() for text in (first, *steps[1:])),
        labels=tuple(_SIGNS[sign] for sign in signs),
        source="rlhflow",
    )
    return [options.applied(example)]


def _turn(turn: Any) -> tuple[str, str]:
    if not isinstance(turn, Mapping):
        raise ValueError("a turn is not an object")
    role = {"human": "user", "gpt": "assistant"}.get(str(turn.get("from")), turn.get("role"))
    return str(role), text_of(turn, "content", "value")


def processbench(row: Row, options: StepOptions) -> list[StepExample]:
    """Read a row of ProcessBench."""
    steps = texts_of(row, "steps")
    correct = row.get("final_answer_correct")
    example = StepExample(
        prompt=text_of(row, "problem"),
        steps=steps,
        labels=error_labels(len(steps), place_of(row.get("label"), "the label")),
        outcome=label_of(correct, "final_answer_correct"),
        source=f"processbench {row.get('id', '')}".strip(),
    )
    return [options.applied(example)]


def prmbench(row: Row, options: StepOptions) -> list[StepExample]:
    """Read a row of PRMBench; rows made of one original question are one group."""
    steps = texts_of(row, "modified_process")
    wrong = {place_of(value, "an item of error_steps") for value in list_of(row, "error_steps")}
    if beyond := sorted(place for place in wrong if not 1 <= place <= len(steps)):
        raise ValueError(f"error_steps names step {beyond[0]}, and there are {len(steps)}, counted from 1")
    example = StepExample(
        prompt=text_of(row, "modified_question"),
        steps=steps,
        labels=tuple(float(place not in wrong) for place in range(1, len(steps) + 1)),
        source=f"prmbench {row.get('classification', '')} {row.get('idx', '')}".strip(),
        group=" ".join(text_of(row, "original_question", "question").split()),
    )
    return [options.applied(example)]


STEP_READERS: Final[Mapping[str, Reader]] = {
    "plain": plain,
    "trl": trl,
    "prm800k": prm800k,
    "math_shepherd": math_shepherd,
    "omega_flat": omega_flat,
    "omega_tree": omega_tree,
    "rlhflow": rlhflow,
    "processbench": processbench,
    "prmbench": prmbench,
}
"""The readers by the name of their format."""


def step_format_of(row: Row) -> str:
    """Return the name of the format whose fields a row has, or raise `ValueError`."""
    fields = set(row)
    if {"modified_process", "error_steps"} <= fields:
        return "prmbench"
    if {"problem", "steps", "label"} <= fields:
        return "processbench"
    if {"prompt", "steps", "labels"} <= fields:
        return "plain"
    if {"completions", "labels"} <= fields:
        return "trl"
    if {"question", "label"} <= fields and isinstance(row["label"], Mapping):
        return "prm800k"
    if {"input", "label"} <= fields and isinstance(row["label"], str):
        return "math_shepherd"
    if "reasoning_steps" in fields:
        return "omega_tree" if isinstance(row["reasoning_steps"], Mapping) else "omega_flat"
    if fields & {"conversations", "messages"}:
        return "rlhflow"
    raise ValueError(
        f"no format of step data has the fields {', '.join(sorted(map(str, fields))[:12])}; the formats are "
        f"{', '.join(STEP_READERS)}"
    )
