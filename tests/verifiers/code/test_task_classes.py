"""Which names the tests' text shows to be classes, and what it does with their instances."""

from __future__ import annotations

import pytest

from adjudge.verifiers.code.task_classes import idle_methods, stated_classes, task_classes


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
        (
            "@pytest.fixture\ndef bag():\n    yield Bag()\ndef test(bag): assert 1 in bag",
            {"Bag": ("__contains__",)},
        ),
        (
            "@pytest.mark.parametrize('cls', [Bag, Box])\ndef test(cls):\n    b = cls()\n    assert b.x and 2 in b",
            {"Bag": ("__contains__", "x"), "Box": ("__contains__", "x")},
        ),
        (
            "@pytest.mark.parametrize('b, n', [(Bag(), 1), pytest.param(Bag(), 2)])\ndef test(b, n): assert b == n",
            {"Bag": ("__eq__",)},
        ),
        ("for b, n in [(Bag(), 1)]:\n    assert n in b", {"Bag": ("__contains__",)}),
        ("bags = [Bag()]\nfor b in bags:\n    assert b == 1\nassert 1 in bags[0]", {"Bag": ("__contains__", "__eq__")}),
        ("def holds(b, n): assert n in b\nholds(Bag(), 1)", {"Bag": ("__contains__",)}),
        ("def make(): return Bag()\nassert 1 in make()", {"Bag": ("__contains__",)}),
        (
            "@pytest.fixture\ndef bags(): return {'a': Bag()}\ndef test(bags): assert 1 in bags['a']",
            {"Bag": ("__contains__",)},
        ),
        ("from dataclasses import asdict\nassert asdict(Point(1)) == {'x': 1}", {"Point": ()}),
        ("match f():\n    case Point(a): pass", {"Point": ()}),
        ("b = Bloom(9)\nb.add('x')\nassert 'x' in b", {"Bloom": ("__contains__", "add")}),
        ("c = Cache(2)\nc['a'] = 1\nassert 'b' not in c", {"Cache": ("__contains__", "__getitem__")}),
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
        "assert Split('ab').replace(Join('a'), '') == 'b'",
        "r = Copy([1])\nr.append(2)\nassert r == [1, 2]",
        "r = Copy([1])\nr[0] = 2\nassertEqual([2], r)",
        "s = Unique([1])\ns.add(2)\nassert s.issuperset({1, 2})",
        "r = copy([1])\nr.append(2)\nassert 2 in r",
    ],
)
def test_a_capital_letter_alone_is_no_class(source: str) -> None:
    assert not task_classes((source,), "solution")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("assert 5 in Interval(1, 5)", {"Interval": ("__contains__",)}),
        ("import solution\nassert solution.ring_list([1])[4] == 1", {"ring_list": ("__getitem__",)}),
        ("def check(candidate):\n    assert 5 in candidate(1, 5)\ncheck(Interval)", {"Interval": ("__contains__",)}),
        ("assert f(5).count(1) == 1", {}),
    ],
)
def test_a_class_of_the_solution_that_the_tests_name_is_one(source: str, found: dict[str, tuple[str, ...]]) -> None:
    stated = stated_classes("", "class Interval: pass\nclass ring_list(list): pass\ndef f(n): return [n]")
    assert stated == ("Interval", "ring_list")
    assert dict(task_classes((source,), "solution", stated)) == found


def test_a_prompt_in_prose_states_no_class() -> None:
    assert stated_classes("Your program failed:\nclass Average(Liar):\n    pass\nTry again.") == ()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("assert f() is None and type(b) is Bag", None),
        ("b.add(1)\nb.add(2).add(3)\nassert b.add(4) is b", ("add",)),
        ("assert b.add(4) is b\nassert b.add(5) == [5]", ()),
        ("assert b.add(4) is b\nassert getattr(b, 'add')(5) == [5]", ()),
        ("b.add(1)\nself.assertIs(a.next, b)", ("add", "assertIs")),
    ],
)
def test_idle_methods(source: str, found: tuple[str, ...] | None) -> None:
    assert idle_methods((source,)) == found
