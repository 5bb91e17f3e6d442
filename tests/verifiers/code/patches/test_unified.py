"""Applying unified diffs: what difflib writes, and what git writes about files that come and go."""

from __future__ import annotations

import contextlib
import difflib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.verifiers.code.patches.edits import BadDiffError, apply_diff

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "--- x\n", "@@ y\n"]), max_size=25)


@settings(max_examples=50)
@given(LINES, LINES, st.integers(0, 3))
def test_a_diff_that_difflib_writes_makes_the_one_text_the_other(a: list[str], b: list[str], context: int) -> None:
    if a == b:
        return
    diff = "".join(difflib.unified_diff(a, b, "a/x.py", "b/x.py", n=context))
    assert apply_diff(diff, {"x.py": "".join(a)}) == {"x.py": "".join(b)}


PIECES = [
    "--- a/x", "+++ b/x", "@@ -1 +1 @@", "@@ -1,2 +1 @@", "-a", "+b", " a", "\\ No newline at end of file", "",
    "rename from x", "rename to y",
]  # fmt: skip


@settings(max_examples=50)
@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_any_diff_is_applied_or_refused(lines: list[str]) -> None:
    with contextlib.suppress(BadDiffError):
        assert apply_diff("\n".join(lines), {"x": "a\n"})


def test_new_deleted_and_renamed_files_are_understood() -> None:
    diff = """diff --git a/new.py b/new.py
new file mode 100644
index 0000000..1
--- /dev/null
+++ b/new.py
@@ -0,0 +1,2 @@
+one
+two
\\ No newline at end of file
diff --git a/old.py b/old.py
deleted file mode 100644
--- a/old.py
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/from.py b/to.py
similarity index 50%
rename from from.py
rename to to.py
--- a/from.py
+++ b/to.py
@@ -1,2 +1,2 @@
 same
-x
+y
diff --git a/moved.py b/there.py
similarity index 100%
rename from moved.py
rename to there.py
"""
    files = {"old.py": "gone\n", "from.py": "same\nx\n", "moved.py": "m\n"}
    assert apply_diff(diff, files) == {
        "new.py": "one\ntwo",
        "old.py": None,
        "from.py": None,
        "to.py": "same\ny\n",
        "moved.py": None,
        "there.py": "m\n",
    }


def test_an_empty_file_that_comes_or_goes_is_a_change() -> None:
    """Git writes neither names nor hunks for it, and a package without its `__init__.py` is another one."""
    diff = """diff --git a/p q/__init__.py b/p q/__init__.py
new file mode 100644
index 0000000..e69de29
diff --git a/old.py b/old.py
deleted file mode 100644
index e69de29..0000000
"""
    assert apply_diff(diff, {"old.py": ""}) == {"p q/__init__.py": "", "old.py": None}


def test_the_commits_of_a_series_are_applied_one_after_the_other() -> None:
    one, two = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n b\n+c\n"
    assert apply_diff(one + two, {"x": "a\n"}) == {"x": "b\nc\n"}
    with pytest.raises(BadDiffError, match="does not fit"):
        apply_diff(one + one, {"x": "a\n"})


@pytest.mark.parametrize(
    ("diff", "complaint"),
    [
        ("", "names no file"),
        ("hello", "names no file"),
        ("@@ -1 +1 @@\n-a\n+b", "hunk of no file"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-z\n+b\n", "does not fit 'x' at line 1"),
        ("--- a/x\n+++ b/x\n@@ -2 +2 @@\n-a\n+b\n", "does not fit"),
        ("--- a/x\n+++ b/x\n@@ -1,3 +1 @@\n-a\n+b\n", "more lines than"),
        ("--- a/x\n+++ b/x\n@@ nonsense\n", "not a hunk header"),
        ("--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "not among the files"),
        ('--- "a/\\303"\n+++ b/y\n', "quotes the file name"),
        ("GIT binary patch\n", "cannot be applied"),
        ("--- a/x\n+++ /dev/null\n@@ -1,0 +1,1 @@\n+b\n", "leaves lines"),
    ],
)
def test_a_diff_that_does_not_fit_is_refused(diff: str, complaint: str) -> None:
    with pytest.raises(BadDiffError, match=complaint):
        apply_diff(diff, {"x": "a\n"})
