"""Rules that compare steps: of solutions that begin alike, or of the nodes of a search tree.

The steps of a solution are a list of texts, with their labels (numbers, true, false or null) in another column, or what
`adjudge label` writes: a list of `{value, start, end}`, spans of the response.

- `first_bad_step` (RL on Incorrect Synthetic Data): of a solution that ends wrong, the first step whose label says so
  is rejected, with what follows; chosen is another solution of the group that begins with the same steps, goes on
  otherwise, and ends right.
- `sibling_error` (BFS-Prover): a step on the way to the proof against one from the same state that raised an error.
- `step_apo` (CPL, keesh0410/CPL-Reasoning at 46f1e2f): the score of a node is its value.  For two steps from one node
  the difference of advantages is the difference of values: that is the margin.  The nodes may be rows, or the
  beginnings of solutions in steps with the value of each, which `adjudge data steps --method mcts` writes.

Texts of pairs begin with the steps before; `adjudge train policy` with `whole: false` learns from where they differ.
What goes on from a node that has a response and cannot be used has no path.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Final, Literal, Self, TypeVar

from adjudge.data_pipelines.pairs.rule import Answer, Needs, Pair, Rule, ScoredGroup, squeezed
from adjudge.io.columns import Column
from adjudge.io.jobs.maker import Kind
from adjudge.io.values import name_of, number_of
from adjudge.training.step_data import first_error


@dataclass(frozen=True, slots=True, kw_only=True)
class SteppedAnswer:
    """An answer cut into steps.

    Attributes:
        answer: where it comes from.
        spans: the first character of each step in the text, and one past the last.
        labels: the chance that a step is right, in the data's own units; None where nobody knows.
    """

    answer: Answer
    spans: tuple[tuple[int, int], ...]
    labels: tuple[float | None, ...]

    def openings(self) -> tuple[bytes, ...]:
        """Return 16 bytes for the first k steps, k from 0 to all: equal for answers that begin alike but for blanks."""
        digests = [b""]
        for start, end in self.spans:
            step = squeezed(self.answer.text[start:end]).encode("utf-8", "surrogatepass")
            digests.append(hashlib.blake2b(digests[-1] + step, digest_size=16).digest())
        return tuple(digests)

    @classmethod
    def of(cls, answer: Answer, *, steps: str, labels: str) -> Self | None:
        """Return an answer in steps, or None where a row holds no steps, or labels that do not fit them."""
        given, rated = answer.value(steps), answer.value(labels)
        if not isinstance(given, Sequence) or isinstance(given, str) or not given:
            return None
        if all(isinstance(step, Mapping) for step in given):
            rated = [step.get("value") for step in given]
            spans = [(step.get("start"), step.get("end")) for step in given]
        elif all(isinstance(step, str) and step.strip() for step in given):
            spans, end = [], 0
            for step in given:
                start = answer.text.find(step, end)
                end = start + len(step)
                spans.append((start, end))
                if start < 0:
                    return None
        else:
            return None
        if not isinstance(rated, Sequence) or isinstance(rated, str) or len(rated) != len(given):
            return None
        last = 0
        for start, end in spans:
            if not (isinstance(start, int) and isinstance(end, int) and last <= start < end <= len(answer.text)):
                return None
            last = end
        return cls(answer=answer, spans=tuple(spans), labels=tuple(map(number_of, rated)))


_T = TypeVar("_T")

_PARTED: Final[Mapping[str, Kind]] = {"prefix": "text", "step": "whole"}
"""What both texts begin with, and the number of the step in which they part, from 0; None where steps are lost."""

_DEPTH = 10_000  # of a path; longer ones are taken for damage


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The nodes of one group, each row naming itself and the node it goes on from.

    Attributes:
        nodes: by their names; a name that two rows have names nobody.
        parents: name of the node each goes on from; "" for the first step.
        lost: names of rows with a response that are not nodes.
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
        values = [Column(node).of(row) for row in group.rows]  # of one answer, or of each where a row lists several
        written = {name_of(one) for value in values for one in (value if isinstance(value, list) else [value])}
        return cls(
            nodes=nodes,
            parents={name: name_of(answer.value(parent)) for name, answer in nodes.items()},
            lost=frozenset((named.keys() | written) - nodes.keys() - {""}),
        )

    def families(self) -> Iterator[tuple[str, list[Answer]]]:
        """Yield each parent's name with the nodes that go on from it, by name."""
        families: defaultdict[str, list[Answer]] = defaultdict(list)
        for name in sorted(self.nodes):
            families[self.parents[name]].append(self.nodes[name])
        yield from sorted(families.items())

    def path(self, name: str) -> list[Answer] | None:
        """Return the nodes from the first step to this one, itself included; None where a node of the path is lost.

        A node whose parent has no row, or one without a response, begins at that parent, which is the root.
        """
        path: dict[str, Answer] = {}
        while name in self.nodes:
            if name in path or len(path) > _DEPTH:
                return None
            path[name] = self.nodes[name]
            name = self.parents[name]
        return None if name in self.lost else list(path.values())[::-1]


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
    asks = Needs(merged=False, stepped=True)
    reads = ("steps",)
    adds = _PARTED

    steps: str = "steps"
    labels: str = "labels"
    bad: float = 0.0
    right: float = 1.0
    rest: bool = True

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        right: defaultdict[bytes, list[tuple[SteppedAnswer, bytes]]] = defaultdict(list)
        wrong: list[SteppedAnswer] = []
        for answer, score in group.ranked():
            solution = SteppedAnswer.of(answer, steps=self.steps, labels=self.labels)
            if solution is None:
                continue
            if score < self.right:
                wrong.append(solution)
            else:
                for before, after in itertools.pairwise(solution.openings()):
                    right[before].append((solution, after))
        for solution in wrong:
            step = first_error(solution.labels, threshold=self.bad)
            if step is not None and step >= 0:
                before, bad = solution.openings()[step : step + 2]
                for better, after in right[before]:
                    if after != bad:
                        yield self._pair(better, solution, step)

    def _pair(self, better: SteppedAnswer, worse: SteppedAnswer, step: int) -> Pair:
        label = better.labels[step]
        value = better.answer.score if label is None else label
        bad = worse.labels[step]
        margin = None if value is None or bad is None else value - bad
        # Both begin with the very same characters, though their own white space may have differed.
        prefix = worse.answer.text[: worse.spans[step][0]]
        ends = [
            one.answer.text[one.spans[step][0] : None if self.rest else one.spans[step][1]] for one in (better, worse)
        ]
        return _pair(better.answer, worse.answer, margin, prefix, step, texts=ends)


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
    asks = Needs(score=False, merged=False)
    reads = ("node", "parent", "on_path", "error", "state")
    adds = _PARTED

    node: str = "node"
    parent: str = "parent"
    on_path: str = "on_path"
    error: str = "error"
    state: str = ""
    separator: str = "\n"

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
                        step = len(path) - 1 if path else None
                        yield _pair(better, worse, None, prefix, step, prompt=state)


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
        middle: a value that the better step must be above and the worse one below, in CPL's code 0, of values from -1
            to 1; None for none.
        separator: what stands between steps.
        steps: column of the steps of whole solutions, where rows are these and not nodes; "" for nodes.
        values: column of the value of each of these steps.
    """

    name: ClassVar[str] = "step_apo"
    asks = Needs(merged=False)
    reads = ("node", "parent")
    adds = _PARTED

    node: str = "node"
    parent: str = "parent"
    siblings: Literal["extremes", "all"] = "extremes"
    middle: float | None = None
    separator: str = "\n\n"
    steps: str = ""
    values: str = "values"

    @property
    def needs(self) -> Needs:
        """What it asks of the answers."""
        if not self.steps:
            return super().needs
        return Needs(score=False, merged=False, stepped=True, columns=(self.steps, self.values))

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        if self.steps:
            yield from self._of_solutions(group)
            return
        tree = Tree.of(group, node=self.node, parent=self.parent)
        for _, family in tree.families():
            ranked = [(one, score) for one in family if (score := one.score) is not None]
            ranked.sort(key=lambda one: (-one[1], group.draw(one[0].text)))
            ranked = self._compared(ranked)
            path = tree.path(name_of(family[0].value(self.node)))
            if path is None:
                continue
            prefix = "".join(one.text + self.separator for one in path[:-1])
            for (better, high), (worse, low) in combinations(ranked, 2):
                if self._apart(high, low):
                    yield _pair(better, worse, high - low, prefix, len(path) - 1)

    def _compared(self, ranked: list[_T]) -> list[_T]:
        """Those of a node's steps that are compared, best first."""
        return [ranked[0], ranked[-1]] if self.siblings == "extremes" and len(ranked) > 1 else ranked

    def _apart(self, high: float, low: float) -> bool:
        return high > low if self.middle is None else high > self.middle > low

    def _of_solutions(self, group: ScoredGroup) -> Iterator[Pair]:
        """The pairs of steps that go on from the same beginning in different ways."""
        families: defaultdict[bytes, dict[bytes, tuple[SteppedAnswer, int, float]]] = defaultdict(dict)
        for answer in sorted(group.answers, key=lambda one: group.draw(one.text)):
            solution = SteppedAnswer.of(answer, steps=self.steps, labels=self.values)
            if solution is None:
                continue
            for step, (before, after) in enumerate(itertools.pairwise(solution.openings())):
                value = solution.labels[step]
                if value is not None:
                    families[before].setdefault(after, (solution, step, value))
        for _, family in sorted(families.items()):
            ranked = sorted(family.values(), key=lambda one: -one[2])
            for (better, step, high), (worse, _, low) in combinations(self._compared(ranked), 2):
                if self._apart(high, low):
                    texts = [one.answer.text[slice(*one.spans[step])] for one in (better, worse)]
                    prefix = worse.answer.text[: worse.spans[step][0]]
                    yield _pair(better.answer, worse.answer, high - low, prefix, step, texts=texts)


def _pair(
    better: Answer,
    worse: Answer,
    margin: float | None,
    prefix: str,
    step: int | None,
    *,
    texts: Sequence[str] = (),
    prompt: str = "",
) -> Pair:
    """Return a pair of two texts with a common beginning; the answers' own are what follows it where none are given."""
    chosen, rejected = texts or (better.text, worse.text)
    return Pair(
        chosen=better,
        rejected=worse,
        margin=margin,
        chosen_text=prefix + chosen,
        rejected_text=prefix + rejected,
        prompt=prompt,
        more={"prefix": prefix, "step": step},
    )
