"""Frames, the board, and the limits of the operating system, each alone."""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import struct
import sys
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.runtime import confine
from adjudge.runtime.board import IDLE, Board, new_page
from adjudge.runtime.channel import Channel, read_frame, read_frame_with_fds, write_frame
from adjudge.runtime.pickling import pack

Pair = tuple[Channel, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    yield channel, theirs
    channel.close()
    theirs.close()


def next_frame(connection: socket.socket) -> bytes:
    frame = read_frame(connection)
    assert frame is not None
    return bytes(frame)


def test_frames_go_both_ways(pair: Pair) -> None:
    channel, other = pair
    assert channel.receive() == []
    for frame in (b"", b"one", b"x" * 5000):
        channel.send(frame)
        assert next_frame(other) == frame
        write_frame(other, frame)
        write_frame(other, frame + b"!")
        assert channel.receive() == [frame, frame + b"!"]


def test_a_frame_larger_than_the_socket_is_sent_bit_by_bit(pair: Pair) -> None:
    channel, other = pair
    told: list[bool] = []
    channel.on_backlog = told.append
    frame = os.urandom(3 << 20)
    channel.send(frame)
    channel.send(b"next")
    assert told == [True]
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.extend([next_frame(other), next_frame(other)]))
    thread.start()
    while told[-1]:
        channel.flush()
    thread.join(10)
    assert got == [frame, b"next"]
    assert told == [True, False]


@given(frames=st.lists(st.binary(max_size=40), max_size=8), cuts=st.lists(st.integers(1, 30), max_size=40))
def test_frames_survive_being_cut_anywhere(frames: list[bytes], cuts: list[int]) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        channel = Channel(ours)
        stream = b"".join(struct.pack("!Q", len(frame)) + frame for frame in frames)
        got: list[bytes] = []
        for cut in [*cuts, len(stream) + 1]:
            theirs.sendall(stream[:cut])
            stream = stream[cut:]
            got += channel.receive()
        assert got == frames
        channel.close()


def test_an_end_is_seen_on_both_sides() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    write_frame(theirs, b"last")
    theirs.close()
    channel.send(b"too late")
    assert channel.receive() == [b"last"]
    channel.receive()
    assert channel.ended
    channel.close()
    ours, theirs = socket.socketpair()
    ours.sendall(struct.pack("!Q", 10) + b"half")
    ours.close()
    with theirs:
        assert read_frame(theirs) is None


def test_descriptors_travel_with_their_frame(pair: Pair) -> None:
    channel, other = pair
    read, write = os.pipe()
    channel.send(b"plain")
    channel.send(b"with", (write,))
    plain, told = read_frame_with_fds(other), read_frame_with_fds(other)
    assert plain is not None
    assert told is not None
    assert (bytes(plain[0]), plain[1]) == (b"plain", [])
    frame, (fd,) = told
    assert bytes(frame) == b"with"
    os.write(fd, b"hello")
    os.close(fd)
    assert os.read(read, 10) == b"hello"
    assert os.read(read, 10) == b""  # the sender keeps no copy
    os.close(read)


def test_a_board_is_shared() -> None:
    fd = new_page()
    one, two = Board(fd), Board(fd)
    os.close(fd)
    assert one.read() == (0, 0, 0.0)
    one.begin_chunk(3, 1.5)
    one.begin(7, 2.5)
    assert two.read() == (3, 7, 2.5)
    one.begin(IDLE, 3.5)
    assert two.read() == (3, IDLE, 3.5)
    one.close()
    two.close()


class Instruction(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_uint16),
        ("yes", ctypes.c_uint8),
        ("no", ctypes.c_uint8),
        ("operand", ctypes.c_uint32),
    ]


def verdict(program: bytes, arch: int, number: int, argument: int) -> int:
    """Run a filter on one system call, as the kernel would."""
    data = struct.pack("=IIQQ", number, arch, 0, argument)
    lines = (Instruction * (len(program) // 8)).from_buffer_copy(program)
    at = loaded = 0
    while True:
        line = lines[at]
        at += 1
        match line.code:
            case 0x20:
                (loaded,) = struct.unpack_from("=I", data, line.operand)
            case 0x15:
                at += line.yes if loaded == line.operand else line.no
            case 0x35:
                at += line.yes if loaded >= line.operand else line.no
            case 0x45:
                at += line.yes if loaded & line.operand else line.no
            case 0x06:
                return int(line.operand)
            case _:
                raise AssertionError(line.code)


ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
X86, ARM = 0xC000003E, 0xC00000B7
THREAD, PROCESS = 0x3D0F00, 0x1200011  # flags that glibc gives clone for a thread and for fork


@pytest.mark.parametrize(
    ("machine", "arch", "number", "argument", "expected"),
    [
        ("x86_64", X86, 0, 0, ALLOW),
        ("x86_64", X86, 56, THREAD, ALLOW),
        ("x86_64", X86, 56, PROCESS, EPERM),
        ("x86_64", X86, 57, 0, EPERM),
        ("x86_64", X86, 58, 0, EPERM),
        ("x86_64", X86, 435, THREAD, ENOSYS),
        ("x86_64", X86, 0x40000000 | 57, 0, EPERM),
        ("x86_64", 0x40000003, 2, 0, EPERM),
        ("aarch64", ARM, 57, 0, ALLOW),  # close
        ("aarch64", ARM, 220, THREAD, ALLOW),
        ("aarch64", ARM, 220, PROCESS, EPERM),
        ("aarch64", ARM, 435, 0, ENOSYS),
        ("aarch64", X86, 0, 0, EPERM),
    ],
)
def test_the_filter_refuses_processes_only(machine: str, arch: int, number: int, argument: int, expected: int) -> None:
    own_arch, _, clone, clone3, always = confine._CALLS[machine]
    assert verdict(confine._filter(own_arch, clone, clone3, always), arch, number, argument) == expected


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() not in confine._CALLS, reason="no filter is known here"
)
def test_the_filter_can_be_installed_here() -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, b"yes" if confine.forbid_processes() else b"no")
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    assert os.read(read, 10) == b"yes"
    os.close(read)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are listed in /proc")
def test_children_are_listed_in_either_way() -> None:
    pid = os.fork()
    if pid == 0:
        threading.Event().wait(60)
        os._exit(0)
    try:
        assert pid in confine.children()
        assert pid in confine._children_by_scan(os.getpid())
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def one() -> int:
    return 1


def test_packing_by_value_changes_nothing_outside() -> None:
    import cloudpickle

    before = cloudpickle.list_registry_pickle_by_value()
    by_name = pack(one)
    by_value = pack(one, [__name__])
    assert len(by_value) > len(by_name)
    assert cloudpickle.list_registry_pickle_by_value() == before
