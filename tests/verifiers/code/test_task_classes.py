"""Which names the tests' text shows to be classes, and what it does with their instances."""

from __future__ import annotations

import pytest

from adjudge.verifiers.code.task_classes import task_classes


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("assert Vector(1, 2) * 3 == Vector(3, 6)", {"Vector": ("&__eq__", "__mul__")}),
        ("v = Vector(1, 2)\nassert 2 - v == v.x", {"Vector": ("__eq__", "__rsub__", "x")}),
        ("assert (Money(5) + 3).amount == 8", {"Money": ("__add__", "amount")}),
        ("import solution as s\nassert s.Point(1) == s.Point(1)", {"Point": ("&__eq__",)}),
        (
            "b = Bag()\nassert str(b) == 'x' and len(b) == 1 and [*map(f, list(b))]",
            {"Bag": ("__iter__", "__len__", "__str__")},
        ),
        ("assert Level.LOW.name == 'LOW'", {"Level": ("name",)}),
        ("assert isinstance(f(1), vector)", {"vector": ()}),
        ("class Square(Shape): pass", {"Shape": ()}),
        ("b = Bag()\nassert b == {'a': 2}", {"Bag": ("__eq__",)}),
        (
            "def test(self):\n    self.v = V(1)\n    self.assertIn(2, self.v)\n    self.v.x = 3",
            {"V": ("__contains__", "x")},
        ),
    ],
)
def test_a_class_is_shown(source: str, found: dict[str, tuple[str, ...]]) -> None:
    assert dict(task_classes((source,), "solution")) == found


@pytest.mark.parametrize(
    "source",
    [
        "assert abs(Average([1, 2]) - 1.5) < 0.001",
        "assert Extract([1]).count(1) == 1",
        "assert average([1]) == average([1, 1])",
        "r = Diff([1], [2])\nr.sort()\nassert r == [1]",
        "assert Split('ab') == ['a', 'b']",
    ],
)
def test_a_capital_letter_alone_is_no_class(source: str) -> None:
    assert not task_classes((source,), "solution")
