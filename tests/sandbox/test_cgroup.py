"""Control groups on hosts that are not at hand: the files of both versions, played by a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from adjudge.sandbox.cgroup import Group


def tree(root: Path, own: str, subtree: str) -> Path:
    (root / "user").mkdir(parents=True)
    (root / "user" / "cgroup.subtree_control").write_text(subtree)
    (root / "cgroup.subtree_control").write_text("cpu")
    (root / "user" / "session").mkdir()
    (root / "user" / "session" / "cgroup.subtree_control").write_text("")
    file = root / "own"
    file.write_text(own)
    return file


@pytest.mark.parametrize(
    ("own", "subtree", "made"),
    [
        ("0::/user/session\n", "memory pids", True),
        ("0::/user/session\n", "memory", False),
        ("0::/elsewhere\n", "memory pids", False),
        ("0::/\n", "memory pids", False),
        ("nonsense", "memory pids", False),
    ],
    ids=["granted", "no-pids", "outside", "not-delegated", "unreadable"],
)
def test_version_2_is_used_where_it_is_granted(tmp_path: Path, own: str, subtree: str, made: bool) -> None:
    file = tree(tmp_path / "fs", own, subtree)
    if own == "nonsense":
        file.unlink()
    group = Group.make(tmp_path / "fs", file)
    assert (group is not None) == made
    if group is None:
        return
    (folder,) = (tmp_path / "fs" / "user").glob("adjudge-*")
    group.hold(1 << 20, 5)
    assert (folder / "memory.max").read_text() == str(1 << 20)
    assert (folder / "pids.max").read_text() == "5"
    (folder / "memory.events").write_text("low 0\noom_kill 0\n")
    group.hold(1 << 20, 5)
    assert not group.killed()
    (folder / "memory.events").write_text("low 0\noom_kill 2\n")
    assert group.killed()
    said = subprocess.run([*group.entering(), "echo", "entered"], capture_output=True, text=True, check=True).stdout
    assert ((folder / "cgroup.procs").read_text(), said) == ("0\n", "entered\n")  # 0 is whoever writes it
    assert group.peak_mb() is None
