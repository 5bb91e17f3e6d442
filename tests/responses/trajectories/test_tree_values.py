"""Values of trees of trajectories equal their formulas, counted out prefix by prefix."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.responses.trajectories.tree_values import node_values, prefix_paths, sibling_scores, z_scores

GROUPS = st.lists(st.tuples(st.text("ab", max_size=4), st.sampled_from([0.0, 0.25, 1.0])), min_size=1, max_size=6)


def value(prefix: str, group: list[tuple[str, float]], discount: float) -> float:
    below = [discount ** (len(text) - len(prefix)) * reward for text, reward in group if text.startswith(prefix)]
    return sum(below) / len(below)


@settings(max_examples=100)
@given(group=GROUPS, discount=st.sampled_from([1.0, 0.5]))
def test_a_node_is_worth_the_discounted_mean_of_the_leaves_below(
    group: list[tuple[str, float]], discount: float
) -> None:
    texts, rewards = [text for text, _ in group], [reward for _, reward in group]
    paths = prefix_paths(texts, ["p"] * len(texts))
    values = node_values(paths, rewards, discount)
    scores = sibling_scores(paths, values)
    for text, path in zip(texts, paths, strict=True):
        for depth, node in enumerate(path):
            assert values[node] == pytest.approx(value(text[:depth], group, discount))
            if depth:
                known = {
                    other[:depth] for other in texts if other.startswith(text[: depth - 1]) and len(other) >= depth
                }
                worths = [value(prefix, group, discount) for prefix in sorted(known)]
                spread = statistics.stdev(worths) if len(worths) > 1 else 0.0
                own = value(text[:depth], group, discount) - statistics.mean(worths)
                assert scores[node] == pytest.approx(own / (spread + 1e-6), abs=1e-6)


def test_paths_share_nodes_as_far_as_they_are_the_same_and_have_one_root() -> None:
    assert prefix_paths(["ab", "ac", "b", ""], ["p"] * 4) == [[0, 1, 2], [0, 1, 3], [0, 4], [0]]
    assert prefix_paths(["a", "a"], ["p", "q"]) == [[0, 1], [2, 3]]
    assert prefix_paths([], []) == []


def test_equal_and_lonely_values_stand_out_from_nothing() -> None:
    assert z_scores([]) == []
    assert z_scores([3.0]) == [0.0]
    assert z_scores([0.1, 0.1, 0.1]) == [0.0, 0.0, 0.0]
    assert z_scores([0.1, 0.1 + 1e-17, 0.3 - 0.2]) == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)
    assert z_scores([0.0, 1.0]) == pytest.approx([-(0.5**0.5), 0.5**0.5], abs=1e-5)
