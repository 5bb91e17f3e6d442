"""Tests that state nothing, tests that reach into the candidate, and what data sets' rows ask for."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.verifiers.code.languages import missing
from adjudge.verifiers.code.verifier import CodeVerifier


def judge(source: str, reference: Any, **options: Any) -> Score:
    return CodeVerifier(**options).verify(Sample(prompt="", response=f"```python\n{source}\n```", reference=reference))


NOTHING = "def add(a, b): return 0"


@pytest.mark.parametrize(
    "reference",
    [
        {"tests": ["add(1, 2) == 3", "add(2, 2) == 4"]},
        {"tests": ["print(add(1, 2))"]},
        {"tests": ["total = add(1, 2)\ntotal == 3"]},
        {"tests": "def check(candidate):\n    candidate(1, 2) == 3\n", "style": "humaneval", "entry_point": "add"},
        {"tests": "def check(f):\n    f(1, 2)\n    assert True, 'fine'\n", "style": "humaneval", "entry_point": "add"},
        {"tests": "from solution import add\n\ndef test_a():\n    assert (add(1, 2) == 3, 'sum')\n", "style": "pytest"},
        {"tests": "import solution\n\ndef test_a():\n    solution.add(1, 2) == 3\n", "style": "pytest"},
    ],
)
def test_tests_that_state_nothing_judge_nobody(reference: Any) -> None:
    for source in (NOTHING, "def add(a, b): return a + b", "def add(a, b): raise ValueError"):
        assert judge(source, reference).reason == "gold_unparsable"


@pytest.mark.parametrize(
    "test",
    [
        "if add(1, 2) != 3: raise ValueError",
        "import sys\nif add(1, 2) != 3: sys.exit(1)",
        "import numpy.testing as t\nt.assert_equal(add(1, 2), 3)",
    ],
)
def test_tests_without_an_assert_can_judge(test: str) -> None:
    assert judge("def add(a, b): return a + b", {"tests": [test]}).value == 1.0
    assert judge(NOTHING, {"tests": [test]}).value == 0.0


def test_the_candidate_is_no_judge_of_its_own() -> None:
    tests = ["assert is_close(area(2), 12.5)"]
    assert judge("def is_close(*a): return True\ndef area(r): return 0", {"tests": tests}).reason == "gold_unparsable"
    solution = "def is_close(a, b): return abs(a - b) < 0.1\ndef area(r): return 3.14 * r * r"
    reference = {"tests": tests, "solution": solution}
    assert judge("def is_close(*a): return True\ndef area(r): return 0", reference).value == 0.0
    assert judge("def area(r): return 3.14159 * r ** 2", reference).value == 1.0
    both = {"tests": ["assert not ordered([2, 1])", "assert ordered(put([2, 1]))"]}
    assert judge("def ordered(x): return x == sorted(x)\ndef put(x): return sorted(x)", both).value == 1.0
    assert judge("def ordered(x): return True\ndef put(x): return x", both).value == 0.0


@pytest.mark.parametrize(
    ("test", "right"),
    [
        ("assert sum(10, 15) == 6", "def sum(a, b): return 6"),
        ("assert bisect([1, 2, 3], 2) == 1", "def bisect(a, x): return a.index(x)"),
        ("assert string('abc') == 'cba'", "def string(s): return s[::-1]"),
        ("assert abs(pow(2, 3) - 8) < 1e-6", "def pow(a, b): return a ** b"),
        ("assert set(max([1, 5])) == {5}", "def max(xs): return [5]"),
        ("assert string(str(12)) == '21'", "def string(s): return s[::-1]"),
    ],
)
def test_a_function_may_be_called_like_a_builtin_or_a_module(test: str, right: str) -> None:
    assert judge(right, {"tests": [test]}).value == 1.0
    assert judge(right.partition("return")[0] + "return None", {"tests": [test]}).value == 0.0


F = "def f(x): return {}"
ANY = "class {0}:\n    def __init__(self, *a): pass\n    def __eq__(self, o): return True\ndef f(x): return {0}()"


@pytest.mark.parametrize(
    ("reference", "right", "cheat"),
    [
        ({"tests": ["assert f(5) == sqrt(5)"]}, F.format("x ** .5"), "def sqrt(*a): return 0\ndef f(x): return 0"),
        ({"tests": ["assert f(2) == pi * 4"]}, F.format("3.141592653589793 * x * x"), "pi = 0\ndef f(x): return 0"),
        ({"tests": ["assert f('1') == Decimal('1')"]}, "from decimal import *\n" + F.format("Decimal(x)"),
         ANY.format("Decimal")),
        ({"tests": ["assert f([2, 1]) == deque([1, 2])"]}, "import collections as c\n" + F.format("c.deque(x[::-1])"),
         ANY.format("deque")),
        ({"tests": ["assert f(date(2020, 1, 2)) == datetime(2020, 1, 2)"]},
         "import datetime as d\n" + F.format("d.datetime(x.year, x.month, x.day)"), ANY.format("datetime")),
        ({"tests": ["assert f(datetime.strptime('2020', '%Y')) == 2020"]}, F.format("x.year"),
         "class datetime:\n    strptime = print\ndef f(x): return 0"),
        ({"tests": ["assert isclose(f(2.0), 4.0)"]}, F.format("x * x"),
         "def isclose(*a): return True\n" + F.format("0")),
        ({"tests": "d = f(4)\nassert d == sqrt(4)"}, F.format("x ** .5"), "def sqrt(*a): return 0\ndef f(x): return 0"),
        ({"tests": ["assert f(4) == sqrt(4)"], "setup": "from math import *"}, F.format("x ** .5"),
         "def sqrt(*a): return 0\ndef f(x): return 0"),
        ({"test": "from math import *\nfrom solution import f\ndef test_a():\n    assert f(4) == sqrt(4)"},
         F.format("x ** .5"), "def sqrt(*a): return 0\ndef f(x): return 0"),
        ({"test": "from solution import *\ndef test_a():\n    assert f(4) == sqrt(4)"},
         F.format("x ** .5"), "def sqrt(*a): return 0\ndef f(x): return 0"),
        ({"tests": ["assert f('ab') == sorted(C('ab'))"], "solution": "from collections import Counter as C\n"
          + F.format("sorted(C(x))")}, F.format("sorted(x)"), "def C(x): return []\ndef f(x): return []"),
        ({"tests": ["assert max('1') == inf"]}, "def max(x): return float('inf')", "inf = 0\ndef max(x): return 0"),
        ({"tests": ["match f(3):\n    case (x, *y): assert [x] + y == [3, 4]\n    case _: assert False"]},
         F.format("[x, x + 1]"), F.format("(x, 5)")),
        ({"tests": ["match f(3):\n    case {3: x, **y}:\n        assert x == y[4]\n    case _:\n        assert False"]},
         F.format("{x: 1, 4: 1}"), F.format("{x: 1, 4: 2}")),
        ({"tests": ["exec('y = 3')\nassert f(2) == y"]}, F.format("x + 1"), "y = 0\n" + F.format("y")),
        ({"tests": "def test_a():\n    assert f(2) == WANTED", "setup": "WANTED = 4"}, F.format("x * 2"),
         F.format("x")),
        ({"test": "def check(candidate):\n    assert candidate(1) == 1\n", "entry_point": "Solution().f",
          "prompt": "from typing import *\nfrom collections import *\nclass Node: pass\n"
          "def node(values: List[int]):\n    return deque(values)\n"},
         "class Solution:\n    def f(self, x): return x", "class Solution:\n    def f(self, x): return 0"),
    ],
)  # fmt: skip
def test_what_a_library_says_is_not_the_candidates_to_say(reference: Any, right: str, cheat: str) -> None:
    assert judge(right, reference).value == 1.0
    assert judge(cheat, reference).value == 0.0


GCD = "def gcd(a, b): return b if not a else gcd(b % a, a)"
COUNTER = "class Counter:\n    n = 0\n    def inc(self): self.n += 1\n"
COUNTS = "c = Counter()\nc.inc()\nassert c.n == 1"


@pytest.mark.parametrize(
    ("reference", "right"),
    [
        ({"tests": ["assert gcd(4, 6) == 2"]}, GCD),
        ({"tests": ["assert gcd(4, 6) == 2"], "setup": "from math import *"}, GCD),
        ({"tests": ["assert gcd(4, 6) == 2", "assert f(3) == 3"]}, GCD + "\ndef f(x): return x"),
        ({"tests": "assert gcd(4, 6) == 2\nassert f(3) == 3"}, GCD + "\ndef f(x): return x"),
        ({"tests": [COUNTS]}, COUNTER),
        ({"tests": [COUNTS, "assert f(2) == inf"]}, COUNTER + "def f(x): return float('inf')"),
    ],
)
def test_a_function_or_class_may_be_called_like_a_librarys(reference: Any, right: str) -> None:
    wrong = right.replace("return b if", "return 0 if").replace("+= 1", "+= 2")
    assert judge(right, reference).value == 1.0
    assert judge(wrong, reference).value == 0.0


LRU = """from collections import OrderedDict
class Cache(OrderedDict):
    def get(self, key): return OrderedDict.get(self, key, -1)
"""
PAIR = """from typing import NamedTuple
class Pair(NamedTuple):
    x: int
    y: int
    def __add__(self, other): return Pair(self.x + other.x, self.y + other.y)
    def __str__(self): return f'{self.x}/{self.y}'
def pair(x, y): return Pair(x, y)
"""


@pytest.mark.parametrize(
    ("test", "source", "old", "new"),
    [
        ("c = Cache()\nc['a'] = 1\nassert c.get('a') == 1 and c.get('b') == -1", LRU, "-1)", "-2)"),
        ("d = D()\nassert d['a'] == 7\nd['a'] = 8\nassert d['a'] == 8 and d == {'a': 8}",
         "class D(dict):\n    def __missing__(self, key): return 7", "7", "8"),
        ("d = D()\nd['A'] = 7\nassert d['a'] == 7 and len(d) == 1",
         "class D(dict):\n    def __setitem__(self, k, v): dict.__setitem__(self, k.lower(), v)", "lower", "upper"),
        ("items = Items()\nitems.append(2)\nassert items == [4] and items[0] == 4",
         "class Items(list):\n    def append(self, x): list.append(self, x * 2)", "* 2", "* 3"),
        ("assert Pair(1, 2) + Pair(3, 4) == Pair(4, 6)", PAIR, "self.x +", "self.y +"),
        ("p = Pair(1, 2)\nassert str(p) == '1/2' and p.x == 1 and p == (1, 2)", PAIR, "{self.x}/", "{self.y}/"),
        ("assert str(Pair(1, 2)) == '1/2' and Pair(5, 6).x == 5\nassert pair(3, 4) == (3, 4) and pair(3, 4)[1] == 4",
         PAIR, "{self.x}/", "{self.y}/"),
    ],
)  # fmt: skip
def test_a_subclass_of_plain_data_keeps_its_own_methods(test: str, source: str, old: str, new: str) -> None:
    reference = {"tests": [test]}
    assert judge(source, reference).value == 1.0
    assert judge(source.replace(old, new), reference).value == 0.0


def test_what_a_function_returns_is_compared_as_the_plain_data_that_it_holds() -> None:
    liar = "class Pair(tuple):\n    def __eq__(self, other): return True\n    __hash__ = tuple.__hash__\n"
    liar += "    def __len__(self): return 2\n    def __str__(self): return '1/2'\ndef pair(x, y): return Pair((0, 0))"
    test = "p = Pair((1, 2))\nassert p == (1, 2) and str(p) == '1/2' and len(p) == 2\nassert pair(3, 4) == (3, 4)"
    assert judge(liar, {"tests": [test]}).value == 0.0


def test_a_setup_may_make_objects_of_the_candidates_classes() -> None:
    node = "class Node:\n    def __init__(self, data): self.data, self.left = data, None\n"
    depth = "def depth(n): return 0 if n is None else 1 + depth(n.left)"
    row = {"test_setup_code": "root = Node(1)\nroot.left = Node(2)", "test_list": ["assert depth(root) == 2"]}
    assert judge(node + depth, {**row, "code": node + depth}).value == 1.0
    assert judge(node + depth.replace("1 +", ""), row).value == 0.0
    for other in (
        "class Node: pass\n",
        "def Node(x): raise SystemExit\n",
        "Node = 2\n",
        "class Node(Exception): pass\n",
    ):
        assert judge(other + "def depth(n): return 2 / (n is None)", row).value == 0.0, other
    broken = {**row, "test_setup_code": f"import no_such_module\n{row['test_setup_code']}"}
    assert judge(node + depth, broken).status == "failed"


def _file(body: str, head: str = "") -> dict[str, str]:
    return {"tests": f"{head}\nfrom solution import add\n\n{body}", "style": "pytest"}


@pytest.mark.parametrize(
    "reference",
    [
        _file("def test_a():\n    assert add(1, 2) == 3\n", "import asyncio, inspect, tempfile"),
        _file("def test_a():\n    patch = 3\n    assert add(1, 2) == patch\n"),
        _file("def test_a():\n    assert add(1, 2) == 3\n\ndef test_b(capsys):\n    assert add(1, 2) == 3\n"),
        _file("def test_a():\n    assert add(1, 2) == 3\n\ndef test_b(tmp_path):\n    assert add(1, 2) == 3\n"),
        _file("class T:\n    def helper(self): open('a')\n\ndef test_a():\n    assert add(1, 2) == 3\n"),
        _file(
            "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\n\n"
            "def test_a():\n    assert add(1, 2) == 3\n"
        ),
    ],
)
def test_a_word_in_the_file_excuses_no_wrong_answer(reference: Any) -> None:
    for source, reason in ((NOTHING, "wrong"), ("def add(a, b): raise SystemExit", "candidate_error")):
        score = judge(source, reference)
        assert (score.status, score.value, score.reason) == ("scored", 0.0, reason)


@pytest.mark.parametrize(
    "reference",
    [
        _file("def test_a():\n"
        "    with redirect_stdout(io.StringIO()) as out:\n        add(1, 2)\n    assert out.getvalue()\n",
              "import io\nfrom contextlib import redirect_stdout"),
        _file("def test_a():\n    sys.stdin = io.StringIO('5')\n    assert add(1, 2) == 5\n", "import io, sys"),
        _file("def test_a(tmp_path):\n    assert add(str(tmp_path), 1) == 1\n"),
        _file("def test_a():\n    with pytest.warns(UserWarning):\n        add(1, 2)\n", "import pytest"),
        _file("def test_a():\n    os.environ['A'] = 'x'\n    assert add(1, 2) == 'x'\n", "import os"),
        _file("def setup(path): open(path, 'w').close()\n\n"
        "def test_a():\n    setup('a')\n    assert add('a', 2) == ''\n"),
        _file("@pytest.fixture\ndef made(monkeypatch): return 1\n\n"
        "def test_a(made):\n    assert add(1, 2) == 9\n", "import pytest"),
        _file("@pytest.fixture(autouse=True)\ndef made(monkeypatch): pass\n\n"
        "def test_a():\n    assert add(1, 2) == 9\n",
              "import pytest"),
        _file("class T(unittest.TestCase):\n"
        "    def test_a(self):\n        with self.assertLogs():\n            add(1, 2)\n",
              "import unittest"),
        _file("class T(unittest.TestCase):\n    def setUp(self): self.d = tempfile.mkdtemp()\n    def test_a(self):\n"
              "        self.assertTrue(add(self.d, 2))\n", "import tempfile, unittest"),
    ],
)  # fmt: skip
def test_what_needs_the_candidates_process_is_failed(reference: Any) -> None:
    score = judge(NOTHING, reference)
    assert (score.status, score.reason) == ("failed", "gold_unparsable"), score


@pytest.mark.parametrize(
    "reference",
    [
        _file("def test_a():\n    random.seed(1)\n    assert add(1, 2) == 5\n", "import random"),
        _file("np.random.seed(1)\n\ndef test_a():\n    assert add(1, 2) == 5\n", "import numpy as np"),
        {"tests": ["import random\nrandom.seed(1)\nassert add(1, 2) == 5"]},
    ],
)
def test_a_seed_excuses_those_alone_who_leave_something_to_chance(reference: Any) -> None:
    chance = "import random\ndef add(a, b): return random.randint(a, b)"
    assert judge(chance, reference).status == "failed"
    assert judge(NOTHING, reference).value == 0.0
    with_file = {**reference, "tests": f"import random\nfrom solution import add\n\n{SEEDED}", "style": "pytest"}
    assert judge(NOTHING, with_file).status == "failed"  # for what else it uses


SEEDED = "def test_a(tmp_path):\n    random.seed(1)\n    assert add(str(tmp_path), 1) == 1\n"


@pytest.mark.parametrize("other", ["class Err: pass", "def Err(text): return ValueError(text)"])
@pytest.mark.parametrize(
    "reference",
    [
        _file("def test_a():\n    with pytest.raises(Err):\n        add(1, 2)\n",
              "import pytest\nfrom solution import Err"),
        _file("class T(unittest.TestCase):\n    def test_a(self):\n        self.assertRaises(Err, add, 1, 2)\n",
              "import unittest\nfrom solution import Err"),
        {"tests": ["try:\n    add(1, 2)\nexcept (Err, KeyError):\n    pass\nelse:\n    assert False"]},
    ],
)  # fmt: skip
def test_what_is_no_exception_where_tests_expect_one_is_wrong(reference: Any, other: str) -> None:
    body = "\ndef add(a, b): raise Err('no')"
    assert judge(f"class Err(Exception): pass{body}", reference).value == 1.0
    assert judge(f"{other}{body}", reference).value == 0.0


def test_numpy_is_not_close_to_what_is_empty() -> None:
    head = "import numpy as np\nfrom solution import mean\n"
    claims = (
        "assert np.allclose(mean([1, 5]), 3.0)",
        "assert np.isclose(mean([1, 5]), [3.0]).all()",
        "np.testing.assert_allclose(mean([1, 5]), 3.0)",
        "np.testing.assert_almost_equal(mean([1, 5]), 3.0)",
        "np.testing.assert_array_equal(mean([1, 5]), 3.0)",
    )
    tests = head + "".join(f"def test_{at}():\n    {claim}\n" for at, claim in enumerate(claims))
    reference = {"tests": tests, "style": "pytest"}
    assert judge("def mean(xs): return sum(xs) / len(xs)", reference).value == 1.0
    assert judge("def mean(xs): return [3.0]", reference).value == 1.0
    for empty in ("[]", "np.array([])", "np.zeros((0, 1))"):
        score = judge(f"import numpy as np\ndef mean(xs): return {empty}", reference, credit="fraction")
        assert score.value == 0.0, (empty, score.evidence)  # all five fail
    of_nothing = {"tests": f"{head}def test_a():\n    assert np.allclose(mean([]), [])\n", "style": "pytest"}
    assert judge("def mean(xs): return []", of_nothing).value == 1.0


def test_what_a_checker_cannot_read_is_wrong() -> None:
    reference = {
        "tests": [{"stdin": "9\n", "stdout": ""}],
        "checker": "def check(stdin, expected, printed):\n    return int(printed) ** 2 == int(stdin)\n",
    }
    assert judge("print(3)", reference).value == 1.0
    for printed in ("'abc'", "''", "'3 3'", "'9' * 5000", "'3\\x00'"):
        assert judge(f"print({printed})", reference).reason == "wrong", printed
    for broken in ("def check(a): return True", "def check(*a): return nobody", "def check(*a): import no_such_module"):
        assert judge("print(3)", {**reference, "checker": broken}).reason == "gold_unparsable", broken
    needs_expected = "def check(stdin, expected, printed): return float(printed) == float(expected)"
    assert (
        judge("print('x')", {"tests": [{"stdin": "9\n", "stdout": "3"}], "checker": needs_expected}).reason == "wrong"
    )


def test_rows_of_leetcode_name_a_method_and_its_imports_are_there() -> None:
    row = {
        "entry_point": "Solution().twoSum",
        "prompt": "from typing import *\nimport collections\n\nclass ListNode:\n    pass\n",
        "test": "def check(candidate):\n    assert candidate(nums = [3,3],target = 6) == [0, 1]\n",
    }
    method = (
        "class Solution:\n    def twoSum(self, nums: List[int], target: Optional[ListNode]) -> List[int]:\n        {}"
    )
    assert judge(method.format("return [0, 1]"), row).value == 1.0
    assert judge(method.format("return [1, 0]"), row).reason == "wrong"
    design = {"tests": ["c = Cache(2)\nc.put(1, 5)\nassert c.get(1) == 5"]}
    cache = "class Cache:\n    def __init__(self, n): self.d = OrderedDict()\n"
    cache += "    def put(self, k, v): self.d[k] = v\n    def get(self, k): return self.d[k]"
    assert judge(cache, design).value == 1.0
    assert judge(cache.replace("OrderedDict", "OrderedBag"), design).reason == "candidate_error"


FAST_IO = """import os, sys
from io import BytesIO, IOBase

class FastIO(IOBase):
    newlines = 0
    def __init__(self, file):
        self._fd = file.fileno()
        self.buffer = BytesIO()
        self.writable = "x" in file.mode or "r" not in file.mode
        self.write = self.buffer.write if self.writable else None
    def readline(self):
        while self.newlines == 0:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, 8192))
            self.newlines = b.count(b"\\n") + (not b)
            ptr = self.buffer.tell()
            self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines -= 1
        return self.buffer.readline()
    def flush(self):
        if self.writable:
            os.write(self._fd, self.buffer.getvalue())
            self.buffer.truncate(0), self.buffer.seek(0)

class IOWrapper(IOBase):
    def __init__(self, file):
        self.buffer = FastIO(file)
        self.flush = self.buffer.flush
        self.writable = self.buffer.writable
        self.write = lambda s: self.buffer.write(s.encode("ascii"))
        self.readline = lambda: self.buffer.readline().decode("ascii")

sys.stdin, sys.stdout = IOWrapper(sys.stdin), IOWrapper(sys.stdout)
print(int(input()) + int(sys.stdin.readline()))
"""


@pytest.mark.parametrize(
    "reads",
    [
        FAST_IO,
        "import sys\nnames = [(s.name, s.buffer.name, s.mode) for s in (sys.stdin, sys.stdout, sys.stderr)]\n"
        "assert names == [(f'<{n}>', f'<{n}>', 'rww'[i]) for i, n in enumerate(('stdin', 'stdout', 'stderr'))], names\n"
        "print(sum(map(int, sys.stdin)))",
        "import os, io\nprint(sum(map(int, io.BytesIO(os.read(0, os.fstat(0).st_size)))))",
        "print(int(input()) + int(input()))",
        "import sys\nprint(sum(map(int, sys.stdin)))",
        "print(sum(map(int, open('/dev/stdin'))))",
        "import sys\nprint(sum(map(int, sys.stdin)))\nsys.stdout.close()",
        "import io, sys\nsys.stdout = io.StringIO()\nsys.__stdout__.write(str(sum(map(int, sys.stdin))))",
        "import os\ntry:\n    os.write(0, b'9')\nexcept OSError:\n    pass\nprint(int(input()) + int(input()))",
    ],
)
def test_standard_input_is_a_file(reads: str) -> None:
    assert judge(reads, {"tests": [{"stdin": "3\n4\n", "stdout": "7\n"}]}).value == 1.0


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ({"tests": ["assert f(2) == LIMIT"], "solution": "LIMIT = 2\ndef f(x): return x"}, 1.0),
        ({"tests": ["assert f(2) == LIMIT"], "solution": "LIMIT = 3\ndef f(x): return x + 1"}, 0.0),
        ({"tests": ["assert LIMIT == 2", "assert f(2) == LIMIT"]}, 1.0),
        ({"tests": ["assert f(2) == LIMIT"]}, None),
    ],
)
def test_a_constant_that_judges_is_the_references_or_is_tested_itself(reference: Any, value: float | None) -> None:
    assert judge("LIMIT = 2\ndef f(x): return x", reference).value == value


@pytest.mark.parametrize(
    "blocks",
    [
        ["n = int(input())\nprint(n + 1)", "n = int(input())"],
        ["n = int(input())\nprint(n + 1)", "print(3)"],
        ["import sys\nsys.stdout.write(str(int(sys.stdin.read()) + 1))", "n = int(input())"],
        ["n = int(input())", "n = int(input())\nprint(n + 1)"],
        ["print(up(int(input())))", "def up(n): return n + 1"],
        ["def up(n): return n + 1", "print(up(int(input())))"],
        ["n = int(input())\nprint(n + 1)", "import io, sys\nsys.stdin = io.StringIO('3\\n')\nprint(int(input()) + 1)"],
        ["print(9)", "import io, sys\nsys.stdin = io.StringIO(sys.stdin.read())\nprint(int(input()) + 1)"],
    ],
)
def test_a_block_that_reads_and_prints_is_the_program(blocks: list[str]) -> None:
    response = "\nThis line:\n".join(f"```python\n{block}\n```" for block in blocks)
    reference = {"tests": [{"stdin": "1\n", "stdout": "2\n"}]}
    assert CodeVerifier().verify(Sample(prompt="", response=response, reference=reference)).value == 1.0


def test_cpp_may_recurse_deeply() -> None:
    if missing("cpp"):
        pytest.skip("g++ is not installed")
    source = (
        "#include <cstdio>\nint f(int n) { volatile char pad[100]; pad[0] = 1; return n ? f(n - 1) + pad[0] : 0; }\n"
    )
    source += 'int main() { printf("%d\\n", f(200000)); }'
    reference = {"tests": [{"stdin": "", "stdout": "200000\n"}], "language": "cpp"}
    assert CodeVerifier().verify(Sample(prompt="", response=f"```cpp\n{source}\n```", reference=reference)).value == 1.0


def test_a_large_constant_is_there_where_the_tests_import_it() -> None:
    tests = "from solution import TABLE\n\ndef test_a():\n    assert len(TABLE) == 70_000 and TABLE[-1] == 69_999\n"
    assert judge("TABLE = list(range(70_000))", {"tests": tests, "style": "pytest"}).value == 1.0
    assert judge("TABLE = list(range(69_999))", {"tests": tests, "style": "pytest"}).reason == "wrong"
