r"""Plus-minus signs written out: `2 \pm a` is two values, all signs of one choice together."""

from __future__ import annotations

from fractions import Fraction

from adjudge.verifiers.math_answer.nodes import Collection, Node, Number, Operation, children, rebuild, walk


def expand(node: Node) -> Node:
    r"""Write out plus-minus signs: `x = 2 \pm a` becomes the two equations, all signs of one choice together."""
    if isinstance(node, Collection) and node.kind in ("list", "set"):
        items: list[Node] = []
        for item in node.items:
            opened = expand(item)
            items.extend(
                opened.items
                if isinstance(opened, Collection) and opened is not item and opened.kind == "list"
                else [opened]
            )
        return (
            Collection(node.kind, tuple(items), node.brackets)
            if len(items) != len(node.items) or tuple(items) != node.items
            else node
        )
    if not any(isinstance(item, Operation) and item.name in ("pm", "mp") for item in walk(node)):
        return node
    return Collection("list", (_choose(node, "pm"), _choose(node, "mp")))


def _choose(node: Node, plus: str) -> Node:
    if isinstance(node, Operation) and node.name in ("pm", "mp"):
        left, right = (_choose(arg, plus) for arg in node.args)
        right = right if node.name == plus else Operation("neg", (right,))
        return right if left == Number(Fraction(0)) else Operation("add", (left, right))
    return rebuild(node, tuple(_choose(part, plus) for part in children(node)))
