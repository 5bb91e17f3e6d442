"""Rules that compare steps: of solutions that begin alike, or of the nodes of a search tree.

| form of a solution | steps | labels |
|---|---|---|
| step data of this project, TRL's | a list of texts | a list of numbers, true, false or null in another column |
| output of `adjudge label` | a list of `{value, start, end}`, spans of the response | their values |

- `first_bad_step` (RL on Incorrect Synthetic Data): of a solution that ends wrong, the first step whose label says so
  is rejected, with what follows; chosen is another solution of the group that begins with the same steps, goes on
  otherwise, and ends right.
- `sibling_error` (BFS-Prover): a step on the way to the proof against one from the same state that raised an error.
- `step_apo` (CPL; its form is from memory): the score of a node is its value.  For two steps from one node the
  difference of advantages is the difference of values: that is the margin.

Texts of pairs begin with the steps before; `adjudge train policy` with `whole: false` reads them as they are, and what
both begin with cancels.  In a tree, each row names itself and the node it goes on from.  What goes on from a node that
has a response and cannot be used, because its score failed or it was not drawn, say, has no path.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Literal

from adjudge.data_pipelines.pairs.answers import Answer, Pair, ScoredGroup, number_of, squeezed, value_in
from adjudge.data_pipelines.pairs.rule import Needs, Rule
from adjudge.io.jobs.maker import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A solution cut into steps.

    Attributes:
        answer: where it comes from.
        text: all of it.
        starts: the first character of each step in the text.
        ends: one past the last.
        labels: the chance that a step is right, in the data's own units; None where nobody knows.
    """

    answer: Answer
    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    labels: tuple[float | None, ...]

    def openings(self) -> tuple[bytes, ...]:
        """Return 16 bytes for the first k steps, k from 0 to all: equal for solutions that begin alike.

        White space makes no difference.
        """
        found = [b""]
        for start, end in zip(self.starts, self.ends, strict=True):
            step = squeezed(self.text[start:end]).encode("utf-8", "surrogatepass")
            found.append(hashlib.blake2b(found[-1] + step, digest_size=16).digest())
        return tuple(found)

    def before(self, step: int) -> str:
        """Return the text up to a step, with what stands between."""
        return self.text[: self.starts[step]]

    def through(self, step: int) -> str:
        """Return the text up to the end of a step."""
        return self.text[: self.ends[step]]


def solution_of(answer: Answer, *, steps: str, labels: str) -> Solution | None:
    """Return a solution, or None where a row holds no steps, or labels that do not fit them."""
    found = answer.value(steps)
    if not isinstance(found, Sequence) or isinstance(found, str) or not found:
        return None
    if all(isinstance(step, Mapping) for step in found):
        return _spans(answer, found)
    given = answer.value(labels)
    if not all(isinstance(step, str) and step.strip() for step in found):
        return None
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != len(found):
        return None
    starts, ends, end = [], [], 0
    for step in found:
        start = answer.text.find(step, end)
        if start < 0:
            return None
        end = start + len(step)
        starts.append(start)
        ends.append(end)
    numbers = tuple(number_of(label) for label in given)
    return Solution(answer=answer, text=answer.text, starts=tuple(starts), ends=tuple(ends), labels=numbers)


def _spans(answer: Answer, steps: Sequence[Mapping[str, Any]]) -> Solution | None:
    starts, ends = [], []
    last = 0
    for step in steps:
        start, end = step.get("start"), step.get("end")
        if not (isinstance(start, int) and isinstance(end, int) and last <= start < end <= len(answer.text)):
            return None
        starts.append(start)
        ends.append(end)
        last = end
    labels = tuple(number_of(step.get("value")) for step in steps)
    return Solution(answer=answer, text=answer.text, starts=tuple(starts), ends=tuple(ends), labels=labels)


_DEPTH = 10_000  # of a path; longer ones are taken for damage


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The nodes of one group.

    Attributes:
        nodes: by their names; a name that two rows have names nobody.
        parents: name of the node each goes on from; "" for the first step.
        lost: names of rows with a response that are no nodes.
    """

    nodes: dict[str, Answer]
    parents: dict[str, str]
    lost: frozenset[str]

    @classmethod
    def of(cls, group: ScoredGroup, *, node: str, parent: str) -> Tree:
        """Return the tree of a group's rows."""
        named: defaultdict[str, list[Answer]] = defaultdict(list)
        for answer in group.answers:
            if name := name_of(answer.value(node)):
                named[name].append(answer)
        nodes = {name: answers[0] for name, answers in named.items() if len(answers) == 1}
        written = {name_of(item) for row in group.rows for item in _items(value_in(row, node))}
        return cls(
            nodes=nodes,
            parents={name: name_of(answer.value(parent)) for name, answer in nodes.items()},
            lost=frozenset((named.keys() | written) - nodes.keys() - {""}),
        )

    def families(self) -> Iterator[tuple[str, list[Answer]]]:
        """Yield each parent's name with the nodes that go on from it, by name."""
        found: defaultdict[str, list[Answer]] = defaultdict(list)
        for name in sorted(self.nodes):
            found[self.parents[name]].append(self.nodes[name])
        yield from sorted(found.items())

    def path(self, name: str) -> list[Answer] | None:
        """Return the nodes from the first step to this one, itself included; None where a node of the path is lost.

        A node whose parent has no row of its own, or one without a response, begins at that parent, which is the root.
        """
        found: list[Answer] = []
        seen: set[str] = set()
        while name in self.nodes:
            if name in seen or len(found) > _DEPTH:
                return None
            seen.add(name)
            found.append(self.nodes[name])
            name = self.parents[name]
        return None if name in self.lost else found[::-1]


def name_of(value: object) -> str:
    """Return a node's name as text; "" for none."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _items(value: object) -> list[object]:
    """What a column holds of one answer, or of each where a row lists several."""
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True, kw_only=True)
class FirstBadStep(Rule):
    """A solution that ends right wins over one that ends wrong, from the first step that is bad.

    The margin is the difference of the two steps' labels, that is of their advantages, since both go on from one
    place.  Where the better step has no label, its solution's score stands in: it is what one rollout from it came to.
    A solution with a step of unknown label before the first bad one is left out.

    Attributes:
        steps: column of the steps: texts, or spans of the response with values.
        labels: column of their labels, where the steps do not hold them.
        bad: a step is bad if its label is at most this.
        right: the score from which a solution ends right; below it, it ends wrong.
        rest: whether what follows the step belongs to the texts; false for the one step.
    """

    name: ClassVar[str] = "first_bad_step"

    steps: str = "steps"
    labels: str = "labels"
    bad: float = 0.0
    right: float = 1.0
    rest: bool = True

    @property
    def needs(self) -> Needs:
        """The steps."""
        return Needs(merged=False, stepped=True, columns=(self.steps,))

    @property
    def columns(self) -> Mapping[str, Kind]:
        """What both texts begin with, and the number of the step in which they part, from 0."""
        return {"prefix": "text", "step": "whole"}

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        right: defaultdict[bytes, list[tuple[Solution, bytes]]] = defaultdict(list)
        wrong: list[Solution] = []
        for answer, score in group.ranked():
            solution = solution_of(answer, steps=self.steps, labels=self.labels)
            if solution is None:
                continue
            if score < self.right:
                wrong.append(solution)
            else:
                for before, after in itertools.pairwise(solution.openings()):
                    right[before].append((solution, after))
        for solution in wrong:
            step = self._first_bad(solution)
            if step is not None:
                before, bad = solution.openings()[step : step + 2]
                for better, after in right[before]:
                    if after != bad:
                        yield self._pair(better, solution, step)

    def _first_bad(self, solution: Solution) -> int | None:
        for step, label in enumerate(solution.labels):
            if label is None:
                return None
            if label <= self.bad:
                return step
        return None

    def _pair(self, better: Solution, worse: Solution, step: int) -> Pair:
        prefix = worse.before(step)
        label = better.labels[step]
        value = better.answer.score if label is None else label
        bad = worse.labels[step]
        # Both begin with the very same characters, though their own white space may have differed.
        chosen, rejected = (
            prefix + (text.text if self.rest else text.through(step))[text.starts[step] :] for text in (better, worse)
        )
        return Pair(
            chosen=better.answer,
            rejected=worse.answer,
            margin=None if value is None or bad is None else value - bad,
            chosen_text=chosen,
            rejected_text=rejected,
            more={"prefix": prefix, "step": step},
        )


@dataclass(frozen=True, kw_only=True)
class SiblingError(Rule):
    """Each node on the way wins over its siblings that raised an error; there is no margin.

    Attributes:
        node: column of a node's name.
        parent: column of the name of the node it goes on from; empty for a first step.
        on_path: column that is true for nodes on the way to the proof.
        error: column of the error; empty, null or false where there was none.
        state: column of the state that a step was tried in: it is then the prompt, and the step alone the response.
            "" for none: then the steps before it stand before both texts.
        separator: what stands between steps.
    """

    name: ClassVar[str] = "sibling_error"

    node: str = "node"
    parent: str = "parent"
    on_path: str = "on_path"
    error: str = "error"
    state: str = ""
    separator: str = "\n"

    @property
    def needs(self) -> Needs:
        """The tree's columns."""
        columns = (self.node, self.parent, self.on_path, self.error, self.state)
        return Needs(score=False, merged=False, columns=tuple(name for name in columns if name))

    @property
    def columns(self) -> Mapping[str, Kind]:
        """What both texts begin with, and the number of the step, from 0; None where steps before it are lost."""
        return {"prefix": "text", "step": "whole"}

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        tree = Tree.of(group, node=self.node, parent=self.parent)
        for _, siblings in tree.families():
            good = [one for one in siblings if _said(one.value(self.on_path))]
            bad = [one for one in siblings if _said(one.value(self.error)) and not _said(one.value(self.on_path))]
            for better in good if bad else ():
                path = tree.path(name_of(better.value(self.node)))
                state = better.value(self.state) if self.state else ""
                if not isinstance(state, str) or (not state.strip() if self.state else path is None):
                    continue
                prefix = "".join(one.text + self.separator for one in path[:-1]) if path and not self.state else ""
                for worse in bad:
                    if not self.state or worse.value(self.state) == state:
                        yield Pair(
                            chosen=better,
                            rejected=worse,
                            margin=None,
                            chosen_text=prefix + better.text,
                            rejected_text=prefix + worse.text,
                            prompt=state,
                            more={"prefix": prefix, "step": len(path) - 1 if path else None},
                        )


def _said(value: Any) -> bool:
    """Whether a column says yes, or says anything: CSV spells false as text."""
    if isinstance(value, str):
        return value.strip().lower() not in ("", "0", "false", "no", "none", "null")
    return bool(value)


@dataclass(frozen=True, kw_only=True)
class StepApo(Rule):
    """Of the steps from one node, the one with the higher value wins.

    Attributes:
        node: column of a node's name.
        parent: column of the name of the node it goes on from; empty for a first step.
        siblings: "extremes" pairs the best with the worst of each node, "all" any two.
        separator: what stands between steps.
    """

    name: ClassVar[str] = "step_apo"

    node: str = "node"
    parent: str = "parent"
    siblings: Literal["extremes", "all"] = "extremes"
    separator: str = "\n\n"

    @property
    def needs(self) -> Needs:
        """The tree's columns."""
        return Needs(merged=False, columns=(self.node, self.parent))

    @property
    def columns(self) -> Mapping[str, Kind]:
        """What both texts begin with, and the number of the step, from 0."""
        return {"prefix": "text", "step": "whole"}

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        tree = Tree.of(group, node=self.node, parent=self.parent)
        for _, family in tree.families():
            ranked = [(one, score) for one in family if (score := one.score) is not None]
            ranked.sort(key=lambda one: (-one[1], group.draw(one[0].text)))
            if self.siblings == "extremes":
                ranked = [ranked[0], ranked[-1]] if len(ranked) > 1 else []
            path = tree.path(name_of(family[0].value(self.node)))
            if path is None:
                continue
            prefix = "".join(one.text + self.separator for one in path[:-1])
            for (better, high), (worse, low) in combinations(ranked, 2):
                if high > low:
                    yield _pair(better, worse, high - low, prefix, len(path) - 1)


def _pair(better: Answer, worse: Answer, margin: float, prefix: str, step: int) -> Pair:
    return Pair(
        chosen=better,
        rejected=worse,
        margin=margin,
        chosen_text=prefix + better.text,
        rejected_text=prefix + worse.text,
        more={"prefix": prefix, "step": step},
    )
