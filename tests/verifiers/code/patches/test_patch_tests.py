"""A repository's tests run against edits: lists, commands, credit, whose fault a broken test is, what edits reach."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.verifiers.code.patches.responses import written

from adjudge import check_scorer
from adjudge.protocol import Sample, Score
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.code.patches import repository
from adjudge.verifiers.code.patches.task import PROTECTED, Modules, chosen_tests, matches, read_task
from adjudge.verifiers.code.patches.tests_verifier import PatchTestsVerifier, _program

FILES = {
    "src/shop/__init__.py": "from .cart import Cart, EmptyCart\n",
    "src/shop/cart.py": (
        "from pathlib import Path\n\n"
        "RATE = float(Path(__file__).with_name('rate.txt').read_text())\n\n\n"
        "class EmptyCart(ValueError):\n    pass\n\n\n"
        "class Cart:\n"
        "    def __init__(self, prices):\n        self.prices = list(prices)\n\n"
        "    def __eq__(self, other):\n        return self.prices == other.prices\n\n"
        "    def total(self):\n        return sum(self.prices)\n\n"
        "    def dearest(self):\n        return max(self.prices)\n"
    ),
    "src/shop/rate.txt": "1.5",
    "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef prices():\n    return [1, 2]\n",
    "tests/test_old.py": (
        "from shop import Cart\n\n\ndef test_dearest(prices):\n    assert Cart(prices).dearest() == 2\n"
    ),
}
NEW = """import sys
import unittest

import pytest
from shop.cart import RATE, Cart, EmptyCart


def test_taxed(prices):
    assert Cart(prices).taxed() == 4.5


def test_empty():
    with pytest.raises(EmptyCart):
        Cart([]).taxed()


@pytest.mark.skipif(sys.platform != "plan9", reason="elsewhere")
def test_elsewhere():
    raise AssertionError


class TestEqual(unittest.TestCase):
    def test_equal(self):
        assert Cart([1]) == Cart([1])
"""
CART = "src/shop/cart.py"
TOTAL = "    def total(self):\n        return sum(self.prices)"
GUARD = "        if not self.prices:\n            raise EmptyCart\n"
TAXED = "\n\n    def taxed(self):\n"
GOOD = (CART, TOTAL, TOTAL + TAXED + GUARD + "        return self.total() * RATE")
HALF = (CART, TOTAL, TOTAL + TAXED + "        return self.total() * RATE")
TESTS = {"tests/test_new.py": NEW}
LISTS = {
    "FAIL_TO_PASS": json.dumps(["tests/test_new.py::test_taxed", "tests/test_new.py::test_empty"]),
    "PASS_TO_PASS": json.dumps(["tests/test_old.py::test_dearest", "test_equal (tests.test_new.TestEqual.test_equal)"]),
}


def verify(edit: tuple[str, str, str], reference: Mapping[str, Any], **options: Any) -> Score:
    sample = Sample(prompt="", response=written([edit], "x"), reference=reference)
    return PatchTestsVerifier(**{"seconds": 5.0, "memory_mb": 256, **options}).verify(sample)


def test_fixtures_classes_exceptions_data_files_and_marks_work_across_the_two_sandboxes() -> None:
    reference = {"files": FILES, "tests": TESTS, "edits": [dict(zip(("path", "search", "replace"), GOOD, strict=True))]}
    score = verify(GOOD, reference)
    assert (score.value, score.evidence["passed"], score.evidence["total"]) == (1.0, 3, 3), score
    half = verify(HALF, reference)
    assert (half.value, half.reason) == (0.0, "wrong")
    assert half.evidence["first_failure"]["source"] == "tests/test_new.py::test_empty"
    assert verify(HALF, reference, credit="fraction").value == pytest.approx(2 / 3)


def test_the_lists_of_swe_bench_are_what_counts() -> None:
    reference = {"files": FILES, "tests": TESTS, **LISTS}
    assert verify(GOOD, reference).value == 1.0
    assert verify(HALF, reference, credit="fraction").value == 0.5  # of the tests to repair, and nothing is broken
    lost = verify((CART, TOTAL + "\n\n    def dearest(self):", GOOD[2] + "\n\n    def cheapest(self):"), reference)
    assert (lost.value, lost.evidence["fail_to_pass"]["passed"]) == (0.0, 2)


def test_a_command_names_tests_and_is_not_run() -> None:
    reference = {"files": FILES, "tests": TESTS, "command": "python -m unittest -v tests.test_new.TestEqual"}
    same = (CART, TOTAL, f"{TOTAL} + 0")
    score = verify(same, reference)
    assert (score.value, score.evidence["total"]) == (1.0, 1)


def test_a_gold_change_that_does_not_pass_is_the_references_fault() -> None:
    wrong = {"files": FILES, "tests": TESTS, "after": {CART: FILES[CART] + "\n"}}
    score = verify(GOOD, wrong)
    assert (score.status, score.reason) == ("failed", "gold_unparsable")
    assert "the gold change does not pass" in score.evidence["error"]
    assert verify(GOOD, wrong, check_gold=False).status == "scored"


def test_tests_that_break_by_themselves_are_the_references_fault_with_and_without_edits() -> None:
    broken = {"files": FILES, "tests": {"tests/test_new.py": "import not_there\n\n\ndef test_a():\n    pass\n"}}
    assert verify(GOOD, broken).reason == "gold_unparsable"


@pytest.mark.parametrize("name", ["queue", "pluggy"])
def test_a_module_that_the_tests_would_get_from_elsewhere_is_the_references_fault(name: str) -> None:
    tests = {"test_a.py": f"import {name}\n\n\ndef test_a():\n    assert {name}\n"}
    score = verify((f"{name}.py", "x = 1", "x = 2"), {"files": {f"{name}.py": "x = 1\n"}, "tests": tests})
    assert (score.status, score.reason) == ("failed", "gold_unparsable")
    assert name in score.evidence["error"]


def test_a_repositorys_module_does_not_take_the_place_of_a_standard_one_that_others_import() -> None:
    tests = {"test_a.py": "import statistics\nimport a\n\n\ndef test_a():\n    assert statistics.mean([1, 3]) == a.X\n"}
    files = {"a.py": "X = 1\n", "fractions.py": "Fraction = None\n"}  # which statistics imports
    assert verify(("a.py", "X = 1", "X = 2"), {"files": files, "tests": tests}).value == 1.0


def test_the_candidates_program_has_nothing_of_the_hidden_tests() -> None:
    task = read_task({"files": FILES, "tests": TESTS, **LISTS}, "unique", PROTECTED)
    modules = Modules.of(FILES, task.roots)
    program = _program(task, task.files, modules)
    assert "test_dearest" in program  # of the repository's own tests
    for secret in ("test_new", "test_taxed", "4.5", "plan9"):
        assert secret not in program


RATES = "from rates import LIMIT, double\n\nFIRST = double(2)\n\n\ndef test_limit():\n    assert {use} == 4\n"


@pytest.mark.parametrize("use", ["LIMIT + 1", "1 + LIMIT", "{3: 4}[LIMIT]", "int(f'{LIMIT:.0f}') + 1"])
def test_a_function_in_place_of_a_number_is_no_fault_of_the_tests(use: str) -> None:
    """Some uses of it reach the candidate, or are noted; for the others the tests run without the edit tells."""
    files = {"rates.py": "LIMIT = 3\n\n\ndef double(rate):\n    return 2 * rate\n"}
    reference = {"files": files, "tests": {"test_rates.py": RATES.replace("FIRST = double(2)\n", "").format(use=use)}}
    assert verify(("rates.py", "LIMIT = 3", "LIMIT = 2 + 1"), reference).value == 1.0
    score = verify(("rates.py", "LIMIT = 3", "def LIMIT():\n    return 3"), reference)
    assert (score.status, score.value) == ("scored", 0.0)


def test_what_the_edits_shall_make_and_do_not_is_no_fault_of_the_tests() -> None:
    """The tests cannot be imported without it, before the edits and after them."""
    tests = {"test_rates.py": "from rates import halve\n\n\ndef test_halve():\n    assert halve(2) == 1\n"}
    reference = {"files": {"rates.py": "LIMIT = 3\n"}, "tests": tests}
    score = verify(("rates.py", "LIMIT = 3", "LIMIT = 4"), reference)
    assert (score.status, score.value) == ("scored", 0.0)


def test_a_test_file_that_skips_itself_for_want_of_a_module_has_failed_beside_one_that_passes() -> None:
    lost = "import pytest\n\nrates = pytest.importorskip('rates', exc_type=ImportError)\n\n\n"
    lost += "def test_limit():\n    assert rates.LIMIT == 3\n"
    tests = {"test_lost.py": lost, "test_kept.py": "from other import ONE\n\n\ndef test_one():\n    assert ONE == 1\n"}
    reference = {"files": {"rates.py": "LIMIT = 3\n", "other.py": "ONE = 1\n"}, "tests": tests}
    assert verify(("rates.py", "LIMIT = 3", "LIMIT = 2 + 1"), reference).value == 1.0
    assert verify(("rates.py", "LIMIT = 3", "raise ImportError"), reference).value == 0.0


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit(0)"])
def test_who_ends_pytest_while_it_reads_the_tests_has_failed_them(error: str) -> None:
    files = {"rates.py": "LIMIT = 3\n\n\ndef double(rate):\n    return 2 * rate\n"}
    reference = {"files": files, "tests": {"test_rates.py": RATES.format(use="LIMIT + 1")}}
    score = verify(("rates.py", "    return 2 * rate", f"    raise {error}"), reference)
    assert (score.status, score.value, score.reason) == ("scored", 0.0, "wrong")


def test_fewer_tests_than_the_gold_change_passes_are_failures() -> None:
    files = {"rates.py": "RATES = [1, 2]\n\n\ndef double(rate):\n    return 3\n"}
    tests = {
        "test_rates.py": "import pytest\nfrom rates import RATES, double\n\n\n@pytest.mark.parametrize('rate', RATES)\n"
        "def test_double(rate):\n    assert double(rate) == 2 * rate\n"
    }
    gold = {"rates.py": files["rates.py"].replace("return 3", "return 2 * rate")}
    reference = {"files": files, "tests": tests, "after": gold}
    fewer = ("rates.py", "RATES = [1, 2]", "RATES = [1.5]")
    assert verify(fewer, reference, credit="fraction").value == 0.5
    assert verify(("rates.py", "    return 3", "    return 2 * rate"), reference).value == 1.0


def test_edits_of_protected_files_are_left_out_or_cost_everything() -> None:
    reference = {"files": FILES, "tests": TESTS, **LISTS}
    response = written([GOOD, ("tests/test_old.py", "def test_dearest(prices):", "def test_other(prices):")], "x")
    sample = Sample(prompt="", response=response, reference=reference)
    score = PatchTestsVerifier().verify(sample)
    assert (score.value, score.evidence["left_out"]) == (1.0, ["tests/test_old.py"])
    zero = PatchTestsVerifier(touched="zero").verify(sample)
    assert (zero.value, zero.reason) == (0.0, "tampering")
    data = replace(sample, response=written([GOOD, ("src/shop/rate.txt", "1.5", "9")], "x"))
    kept = PatchTestsVerifier(protected=(*PROTECTED, "*/rate.txt"))  # which is read where the candidate runs
    assert (kept.verify(data).value, PatchTestsVerifier().verify(data).value) == (1.0, 0.0)


def test_edits_that_cannot_be_written_are_bad() -> None:
    files = {"a.py": "x = 1\n", "b/c.py": "", "d.bin": b"\xff\xfe"}
    reference = {"files": files, "tests": {"test_a.py": "import a\n\n\ndef test_a():\n    assert a.x\n"}}
    for path in ("a.py/b.py", "b", "d.bin"):
        assert verify((path, "", "x"), reference).reason == "bad_format", path
    assert verify(("big.txt", "", "x" * (17 << 20)), reference).reason == "too_complex"
    many = written([(f"{number}.py", "", "x") for number in range(8000)], "x")
    assert PatchTestsVerifier().verify(Sample(prompt="", response=many, reference=reference)).reason == "too_complex"


def test_a_repository_is_read_from_a_folder_and_from_archives(tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    (folder / "pkg").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("secret", encoding="utf-8")
    (folder / "pkg" / "a.py").write_bytes(b"x = 1\r\n")
    (folder / "link.py").symlink_to("/etc/passwd")
    with tarfile.open(tmp_path / "repo.tar.gz", "w:gz") as archive:
        archive.add(folder, "repo-1.0")
    with zipfile.ZipFile(tmp_path / "repo.zip", "w") as packed:
        packed.write(folder / "pkg" / "a.py", "repo-1.0/pkg/a.py")
    for name in ("repo", "repo.tar.gz", "repo.zip"):
        assert repository.read_repository(str(tmp_path / name)) == {"pkg/a.py": b"x = 1\r\n"}


@pytest.mark.parametrize("name", ["../evil.py", "/etc/evil.py", "a/../../evil.py"])
def test_an_archive_that_leaves_the_repository_is_refused(name: str, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "evil.tar", "w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = 1
        archive.addfile(entry, io.BytesIO(b"x"))
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as packed:
        packed.writestr(name, "x")
    for kind in ("tar", "zip"):
        with pytest.raises(BadReferenceError, match="path"):
            repository.read_repository(str(tmp_path / f"evil.{kind}"))


def test_a_repository_that_is_too_large_or_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "MAX_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.py", "x" * 100_000)
    (tmp_path / "text").write_text("x", encoding="utf-8")
    for value in (str(tmp_path / "bomb.zip"), str(tmp_path / "text"), str(tmp_path / "none"), {}, {"a": "x" * 1001}):
        with pytest.raises(BadReferenceError):
            repository.read_repository(value)


KNOWN = {
    "tests/test_a.py": "class TestA:\n    def test_x(self): ...",
    "tests/sub/test_b.py": "def test_y(): ...",
    "b_test.py": "",
    "x.py": "",
}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest -q tests", ["tests/test_a.py", "tests/sub/test_b.py"]),
        ("python -m pytest", ["b_test.py"]),
        (["pytest", "tests/test_a.py::TestA::test_x"], ["tests/test_a.py::TestA::test_x"]),
        ("python3 -m unittest tests.test_a.TestA.test_x", ["tests/test_a.py::TestA::test_x"]),
        ("python -m unittest tests/test_a.py tests.sub.test_b", ["tests/test_a.py", "tests/sub/test_b.py"]),
        ("python -m unittest discover -s tests -p 'test_b*.py'", ["tests/sub/test_b.py"]),
    ],
)
def test_commands_are_read(command: Any, expected: list[str]) -> None:
    assert chosen_tests({"command": command}, ["b_test.py"], KNOWN) == {"tests": tuple(expected)}


@pytest.mark.parametrize(
    "reference",
    [
        {"command": "make test"},
        {"command": "pytest -k fast"},
        {"command": ""},
        {"command": 3},
        {"command": "pytest tests/test_a.py::test_gone"},
        {"command": "python -m unittest tests.test_gone"},
        {"fail_to_pass": "not json"},
        {"fail_to_pass": [1]},
        {"fail_to_pass": ["tests/test_a.py::TestB"]},
        {"pass_to_pass": ["x.py::test_x"]},
        {},
    ],
)
def test_tests_that_are_not_there_are_the_references_fault(reference: Any) -> None:
    with pytest.raises(BadReferenceError):
        chosen_tests(reference, [], KNOWN)


def test_modules_are_named_from_their_roots() -> None:
    found = Modules.of(["src/p/__init__.py", "src/p/q/r.py", "s.py", "no-name.py", "t.txt"], ["src", ""])
    assert found.packages == {
        "p": True, "p.q": True, "p.q.r": False, "s": False, "src": True, "src.p": True, "src.p.q": True,
        "src.p.q.r": False,
    }  # fmt: skip
    assert (found.places["p.q"], found.paths["p.q.r"]) == ("src/p/q", "src/p/q/r.py")


def test_where_tests_and_their_helpers_are_kept_is_protected() -> None:
    for path in ("tests/a/b.py", "pkg/tests/data.json", "conftest.py", "a/conftest.py", "test_x.py", "a/x_test.py"):
        assert matches(path, PROTECTED), path
    for path in ("pkg/testing.py", "contest.py", "latest/a.py", "pkg/attest_x.py"):
        assert not matches(path, PROTECTED), path


@pytest.mark.parametrize(
    "reference",
    [
        None,
        "text",
        {"tests": TESTS},
        {"files": FILES, "repository": "x", "tests": TESTS},
        {"files": FILES},
        {"files": FILES, "tests": {"notes.txt": "x"}},
        {"files": FILES, "tests": TESTS, "timeout": -1},
        {"files": FILES, "tests": TESTS, "roots": "src"},
        {"files": FILES, "tests": TESTS, "solution": "x"},
        {"files": {"a.py": 1}, "tests": TESTS},
        {"files": FILES, "tests": TESTS, "patch": "", "after": {}},
    ],
)
def test_a_reference_of_the_wrong_shape_is_a_mistake(reference: Any) -> None:
    with pytest.raises(ValueError, match="patch_tests"):
        PatchTestsVerifier().validate(Sample(prompt="", response="", reference=reference, id="s1"))


@pytest.mark.parametrize(
    "change",
    [
        {"tests": {"tests/test_a.py": "def test_a(:"}},
        {"tests": {"test_candidate.py": "def test_a(): pass"}},
        {"tests": {"../test_a.py": "x"}},
        {"roots": ["lib"]},
        {"patch": "nonsense"},
    ],
)
def test_a_reference_that_cannot_be_used_is_unparsable(change: Mapping[str, Any]) -> None:
    sample = Sample(prompt="", response="", reference={"files": FILES, "tests": TESTS, **change})
    PatchTestsVerifier().validate(sample)
    assert PatchTestsVerifier().verify(sample).reason == "gold_unparsable"


@pytest.mark.parametrize(
    "options",
    [
        {"credit": "staged"}, {"touched": "maybe"}, {"isolation": "docker"}, {"seconds": 0}, {"memory_mb": 1},
        {"processes": True}, {"check_gold": 1}, {"protected": 5}, {"thought": "no"},
    ],
)  # fmt: skip
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^patch_tests( option|: )"):
        PatchTestsVerifier(**options)


def test_what_the_gold_change_was_judged_by_has_a_key_of_its_own() -> None:
    keys = {
        read_task({"files": files, "tests": TESTS, "after": {"src/shop/rate.txt": rate}}, "unique", PROTECTED).key
        for files in (FILES, {**FILES, "x.py": ""})
        for rate in ("1", "2")
    }
    assert len(keys) == 4


def test_the_verifier_conforms() -> None:
    """Without runs of tests, for which every worker of the kit would start sandboxes of its own."""
    reference = {"files": {"a.py": "x = 1\n"}, "tests": {"test_a.py": "import a\n\n\ndef test_a():\n    assert a.x\n"}}
    texts = ("", written([("a.py", "x = 3", "x = 2")], "x"), written([("test_a.py", "", "x = 2")], "x"))
    samples = [Sample(prompt="", response=text, reference=reference) for text in texts]
    check_scorer(PatchTestsVerifier(), samples).raise_for_failures()
