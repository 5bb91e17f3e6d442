"""Trees of responses: every rule equals its formula, by walking through prefixes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rl_integration.trainer.algorithms.objectives.batches import batches, mean, spread

from adjudge.rl_integration.trainer.algorithms.credit.tree import (
    Tree,
    softmax_values,
    tempo,
    tree_grpo,
    tree_po,
    tree_rl,
)
from adjudge.rl_integration.trainer.algorithms.objectives.advantages import GroupRelative
from adjudge.rl_integration.trainer.rewards.groups import Groups

UNIT = st.sampled_from([0.0, 0.5, 1.0])


@st.composite
def forests(draw: st.DrawFn) -> tuple[Groups, list[str]]:
    """Groups, and responses over two letters, which share beginnings often; some are empty."""
    groups = draw(batches(UNIT))
    return groups, [draw(st.text("ab", max_size=4)) for _ in range(len(groups))]


class Walk:
    """Values of prefixes, counted out."""

    def __init__(self, groups: Groups, texts: list[str]) -> None:
        self.groups, self.texts = groups, texts

    def members(self, row: int, prefix: str = "") -> list[int]:
        return [
            other
            for other in range(len(self.texts))
            if self.groups.valid[other]
            and self.groups.ids[other] == self.groups.ids[row]
            and self.texts[other].startswith(prefix)
        ]

    def taken(self, row: int) -> bool:
        return bool(self.groups.valid[row]) and len(self.members(row)) > 1

    def rewards(self, rows: list[int]) -> list[float]:
        return [float(self.groups.rewards[row]) for row in rows]

    def value(self, row: int, prefix: str) -> float:
        return mean(self.rewards(self.members(row, prefix)))


def sizes(texts: list[str]) -> list[list[int]]:
    """A node of "a" has one token, of "b" three."""
    return [[1 if letter == "a" else 3 for letter in text] for text in texts]


@settings(max_examples=60)
@given(case=forests())
def test_tempo_and_gains(case: tuple[Groups, list[str]]) -> None:
    groups, texts = case
    walk = Walk(groups, texts)
    tree = Tree.of(texts, groups)
    for row, (advantages, gains) in enumerate(zip(tempo(tree), tree.gains(), strict=True)):
        text = texts[row]
        wanted, steps = [0.0] * len(text), [0.0] * len(text)
        if walk.taken(row):
            rewards = walk.rewards(walk.members(row))
            below = spread(rewards) + 1e-4
            steps = [walk.value(row, text[: t + 1]) - walk.value(row, text[:t]) for t in range(len(text))]
            wanted = [(groups.rewards[row] - mean(rewards) + step) / below for step in steps]
        np.testing.assert_allclose(gains, steps, atol=1e-12)
        np.testing.assert_allclose(advantages, wanted, atol=1e-7)


@settings(max_examples=60)
@given(case=forests())
def test_softmax_values(case: tuple[Groups, list[str]]) -> None:
    """From the ends of answers up, as a recursion over texts; "a" surprises less than other letters."""
    groups, texts = case
    walk, tree = Walk(groups, texts), Tree.of(texts, groups)
    surprises = np.zeros(len(tree.sizes))
    for path, text in zip(tree.paths, texts, strict=True):
        surprises[path[1:]] = [0.5 if letter == "a" else 1.5 for letter in text]
    found = softmax_values(tree, surprises)
    for row, text in enumerate(texts):
        if not walk.taken(row):
            assert not found[row].any()
            continue
        same = walk.members(row)
        rewards = walk.rewards(same)
        units = {one: (groups.rewards[one] - mean(rewards)) / (float(np.std(rewards)) + 1e-6) for one in same}
        np.testing.assert_allclose(
            found[row], [worth(texts, units, text[: t + 1]) for t in range(len(text))], atol=1e-7
        )


def worth(texts: list[str], units: dict[int, float], beginning: str) -> float:
    """The mean of what ends here and of what goes on from here."""
    parts = [(1.0, unit) for one, unit in units.items() if texts[one] == beginning]
    longer = {texts[one][: len(beginning) + 1] for one in units if texts[one].startswith(beginning)} - {beginning}
    parts += [(math.exp(0.5 if one[-1] == "a" else 1.5), worth(texts, units, one)) for one in longer]
    return math.fsum(share * value for share, value in parts) / math.fsum(share for share, _ in parts)


@settings(max_examples=60)
@given(case=forests())
def test_tree_rl(case: tuple[Groups, list[str]]) -> None:
    groups, texts = case
    walk = Walk(groups, texts)
    found = tree_rl(Tree.of(texts, groups, sizes=sizes(texts)))
    for row, text in enumerate(texts):
        if not walk.taken(row):
            assert not found[row].any()
            continue
        same = walk.members(row)
        lead = {
            one: groups.rewards[one] - mean(walk.rewards([other for other in same if other != one])) for one in same
        }
        nodes = sorted({texts[one][: t + 1] for one in same for t in range(len(texts[one]))})
        weigh = {node: 1 if node[-1] == "a" else 3 for node in nodes}
        sums = {node: math.fsum(lead[one] for one in walk.members(row, node)) for node in nodes}
        counts = {node: len(walk.members(row, node)) for node in nodes}
        total = math.fsum(weigh[node] * counts[node] for node in nodes)
        mu = math.fsum(weigh[node] * sums[node] for node in nodes) / total if nodes else 0.0
        path = [text[: t + 1] for t in range(len(text))]
        wanted = [(sums[node] - mu * counts[node]) / math.sqrt(counts[node]) for node in path]
        np.testing.assert_allclose(found[row], wanted, atol=1e-9)


@pytest.mark.parametrize("skip", [False, True])
@settings(max_examples=60)
@given(case=forests())
def test_tree_po(skip: bool, case: tuple[Groups, list[str]]) -> None:
    groups, texts = case
    texts = [text + "$" + str(row) for row, text in enumerate(texts)]  # each ends in a leaf of its own
    walk = Walk(groups, texts)
    keys = [[*text.split("$")[0], text.split("$")[1]] for text in texts]
    tree = Tree.of(keys, groups, sizes=[[2] * len(row) for row in keys])
    raw: dict[int, float] = {}
    for row, text in enumerate(texts):
        if not walk.taken(row):
            continue
        terms = []
        for depth in range(len(keys[row])):
            peers = walk.rewards(walk.members(row, text[:depth]))
            if depth == 0 or (len(peers) > 1 and not (skip and len(set(peers)) == 1)):
                terms.append((len(peers), groups.rewards[row] - mean(peers)))
        raw[row] = math.fsum(n * worth for n, worth in terms) / sum(n for n, _ in terms)
    tokens = [raw[row] for row in raw for _ in range(2 * len(keys[row]))]
    below = math.sqrt(spread(tokens) ** 2 + 1e-8) if tokens else 1.0
    wanted = [(raw[row] - mean(tokens)) / below if row in raw else 0.0 for row in range(len(texts))]
    np.testing.assert_allclose(tree_po(tree, skip_uniform=skip), wanted, atol=1e-6)


@settings(max_examples=40)
@given(groups=batches(UNIT))
def test_tree_grpo(groups: Groups) -> None:
    trees = np.arange(len(groups)) % 2
    found = tree_grpo(groups, trees)
    for row in range(len(groups)):
        same = [r for r in range(len(groups)) if groups.valid[r] and groups.ids[r] == groups.ids[row]]
        wanted = 0.0
        for peers in (same, [r for r in same if trees[r] == trees[row]]):
            rewards = [float(groups.rewards[r]) for r in peers]
            if row in peers and len(peers) > 1:
                wanted += (groups.rewards[row] - mean(rewards)) / (spread(rewards) + 1e-6)
        assert math.isclose(found[row], wanted, abs_tol=1e-6)


def test_tempo_is_grpo_where_paths_never_part() -> None:
    groups = Groups.of([1.0, 0.0, 0.0], ["q", "q", "q"])
    found = tempo(Tree.of(["axx", "byy", "czz"], groups))
    whole = GroupRelative()(groups)
    for row in range(3):
        np.testing.assert_allclose(found[row][1:], whole[row])
        assert abs(found[row][0]) > abs(whole[row])


def test_prompts_share_no_node_and_lost_responses_leave_no_trace() -> None:
    groups = Groups.of([1.0, 0.0, None, 1.0, 1.0], ["q", "q", "q", "r", "r"])
    tree = Tree.of(["ab", "ac", "ab", "ab", "ac"], groups)
    assert len(set(tree.paths[0].tolist()) & set(tree.paths[3].tolist())) == 0
    assert tree.counts()[tree.paths[2]].tolist() == [2, 2, 1]
    assert tree.values()[tree.paths[2]].tolist() == [0.5, 0.5, 1]
    assert not tempo(tree)[2].any()
    assert not tree_po(tree)[2]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Tree.of(["a"], Groups.of([], [])), "keys has the shape"),
        (lambda: Tree.of(["ab"], Groups.of([1.0], ["q"]), sizes=[[1]]), "sizes of response 0 has the shape"),
        (
            lambda: Tree.of(["a", "a"], Groups.of([1.0, 0.0], ["q", "q"]), sizes=[[1], [2]]),
            "response 1 has a node of 2 tokens that has 1 in another",
        ),
        (lambda: tree_grpo(Groups.of([1.0], ["q"]), np.zeros(2, dtype=np.int64)), "trees has the shape"),
    ],
)
def test_mistakes_name_the_value(made: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made()
