"""The rules of ReST-MCTS* and ReST-RL go where their released codes go, written again here from those codes."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.evals.best_of_n.decoding.test_searches import growing, tools, worth
from tests.evals.best_of_n.decoding.tree_engine import TreeEngine, letters_of

from adjudge.data_pipelines.steps.growth import GROWTHS, Growth, Rule
from adjudge.data_pipelines.steps.tree_search import Tree, tree

DEPTH, ROUNDS = 19, 14


@dataclass
class ByHand:
    """A tree of letters, as the released codes keep it; `asked` are the prefixes in the order of their values."""

    text: str = ""
    parent: ByHand | None = None
    value: float = 0.0
    visits: int = 0
    total: float = 0.0
    visible: bool = True
    children: list[ByHand] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    drawn: Counter[str] = field(default_factory=Counter)

    def draw(self, text: str, n: int) -> list[str]:
        letters = ["abc"[(self.drawn[text] + at) % 3] for at in range(n)]
        self.drawn[text] += n
        return letters

    def worth(self, text: str) -> float:
        if text not in self.asked:
            self.asked.append(text)
        return worth(text)

    def grow(self, node: ByHand, n: int) -> list[str]:
        letters = self.draw(node.text, n)
        for letter in dict.fromkeys(letters):
            text = node.text + letter
            node.children.append(ByHand(text=text, parent=node, value=self.worth(text)))
        return letters


def rest_mcts(rounds: int, growth: Growth) -> list[str]:
    """`MCTS/mcts.py` of THUDM/ReST-MCTS at 643d63b, with greedy rollouts of one branch."""

    def best_child(node: ByHand) -> ByHand:
        def merit(child: ByHand) -> float:
            if not child.visits:
                return child.value + 1.0
            return child.value + growth.c * math.sqrt(2 * math.log(node.visits) / child.visits)

        return max(node.children, key=merit)

    root = ByHand()
    for _ in range(rounds):
        node = root
        while node.children:
            node = best_child(node)
        root.grow(node, growth.expand)
        rolled = best_child(node)
        highest, text = 0.0, rolled.text
        for _ in range(growth.roll_steps):
            text += root.draw(text, 1)[0]
            highest = max(highest, root.worth(text))
        rolled.value = rolled.value * (1 - growth.roll_weight) + highest * growth.roll_weight
        rolled.visits += 1
        up: ByHand | None = node
        while up is not None:
            up.visits += 1
            visits = sum(child.visits for child in up.children)
            if visits:
                up.value = sum(child.value * child.visits for child in up.children) / visits
            up = up.parent
    return root.asked


def vm_mcts(rounds: int, growth: Growth) -> list[str]:
    """`algorithms/MCTS/mcts.py` of THUDM/ReST-RL at e03a987, with a process model."""
    root = ByHand()
    for _ in range(rounds):
        node = root
        while node.children:
            parent = node
            seen = [child for child in parent.children if child.visible]
            node = max(
                seen,
                key=lambda child: (
                    child.total / child.visits
                    + growth.c * math.sqrt((1 + math.log(parent.visits)) / (0.1 + child.visits))
                ),
            )
        letters = root.grow(node, growth.expand)
        for child in node.children:
            child.visits = letters.count(child.text[-1])
            child.total = child.visits * child.value
        for child in sorted(node.children, key=lambda one: -one.value)[growth.keep :]:
            child.visible = False
        visits, total = sum(child.visits for child in node.children), sum(child.total for child in node.children)
        up: ByHand | None = node
        while up is not None:
            up.visits += visits
            up.total += total
            up = up.parent
    return root.asked


def best_first(rounds: int, growth: Growth) -> list[str]:
    """What is drawn behind is what has the largest value of all that was not drawn behind yet (a priority queue)."""
    root = ByHand()
    waiting: list[tuple[float, ByHand]] = [(0.0, root)]
    for _ in range(rounds):
        place = max(range(len(waiting)), key=lambda at: waiting[at][0])
        _, node = waiting.pop(place)
        root.grow(node, growth.expand)
        waiting += [(child.value, child) for child in node.children]
    return root.asked


BY_HAND = {"uct": rest_mcts, "vm_mcts": vm_mcts, "best_first": best_first}
CASES = {
    "published": ("uct", {}),
    "no look ahead": ("uct", {"roll_weight": 0.0}),
    "look far": ("uct", {"roll_steps": 5, "roll_weight": 0.9, "c": 0.1}),
    "wander": ("uct", {"c": 4.0}),
    "vm published": ("vm_mcts", {}),
    "vm narrow": ("vm_mcts", {"keep": 1, "c": 1.0}),
    "vm close": ("vm_mcts", {"keep": 3, "c": 0.7, "expand": 5}),
    "vm wander": ("vm_mcts", {"keep": 2, "c": 4.0, "expand": 4}),
    "best first": ("best_first", {}),
    "best first of two": ("best_first", {"expand": 2}),
}


@pytest.mark.parametrize(("rule", "numbers"), CASES.values(), ids=CASES)
def test_a_tree_goes_where_the_released_code_goes(rule: Rule, numbers: dict[str, Any]) -> None:
    asked: list[str] = []

    def value(letters: str) -> float:
        asked.append(letters)
        return worth(letters)

    growth = growing(rule, **numbers)
    writer, guide = tools(TreeEngine(DEPTH, cycle=True), value, budget=10_000)
    asyncio.run(rounds_of(Tree(writer=writer, guide=guide, growth=growth), ROUNDS))
    assert max(map(len, asked)) < DEPTH, "nothing has ended, where ours goes on otherwise"
    assert asked == BY_HAND[rule](ROUNDS, growth)


async def rounds_of(grown: Tree, count: int) -> Sequence[object]:
    return [await grown.round() for _ in range(count)]


def test_published_numbers() -> None:
    """Defaults of `MCTS_Task` in both codes; ReST-RL's 0.1 is its `eps`, ReST-MCTS*'s 1 its `inf`."""
    assert GROWTHS["uct"] == Growth(rule="uct", c=0.7, expand=3, keep=0, roll_steps=3, roll_weight=0.5, stop_at=None)
    vm_mcts = Growth(rule="vm_mcts", c=0.2, expand=5, keep=3, roll_steps=0, roll_weight=0.5, stop_at=None)
    assert GROWTHS["vm_mcts"] == vm_mcts


def test_a_solution_that_is_good_enough_ends_the_search() -> None:
    spent = []
    for stop in (None, 0.9, 1.1):
        writer, guide = tools(TreeEngine(3, cycle=True), lambda text: text.count("a") / 3, budget=90)
        found = asyncio.run(tree(writer, guide, growing("uct", stop_at=stop)))
        assert any(letters_of(one.path.text) == "aaa" for one in found)
        spent.append(writer.account.tokens)
    assert spent[1] < spent[0] == spent[2]


def test_rounds_end_a_search_before_the_budget() -> None:
    writer, guide = tools(TreeEngine(4, cycle=True), worth, budget=10_000)
    asyncio.run(tree(writer, guide, growing("puct"), rounds=5))
    assert writer.account.draws == 5 * 4
