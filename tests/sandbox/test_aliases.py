"""Containers that tests and a candidate both hold: programs do what they would do in one process."""

from __future__ import annotations

import random
import re
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from adjudge.sandbox import aliases, codec, frames
from adjudge.sandbox.aliases import RESULT, Aliases
from adjudge.sandbox.peer import Peer, PeerLostError, serves_everything, serves_nothing

CANDIDATE = """
everything = []
class Box:
    def __init__(self, a, b=None):
        self.a, self.b, self.held = a, b, {}
    def keep(self, name, x): self.held[name] = x
    def get(self, name): return self.held.get(name)
    def forget(self): self.held.clear()
    def swap(self): self.a, self.b = self.b, self.a
    def both(self): return self.a, self.b
    def push(self, value):
        for x in (self.a, self.b, *self.held.values()):
            if isinstance(x, dict): x[value] = len(x)
            elif isinstance(x, set): x.add(value)
            elif x is not None: x.append(value)
    def __getitem__(self, name): return self.held[name]
    def __enter__(self): return self.a
    def __exit__(self, *_): self.push(0)
def twice(value, *, into):
    into.extend([value, value])
    return into
def drain(x):
    while x: yield x.pop(0)
def register(x):
    everything.append(x)
    return len(everything)
def clear_all():
    for x in everything: x.clear()
def clear_and_fail(x):
    x.clear()
    raise ValueError("no")
"""


def put(x: Any, value: int) -> None:
    """Change something in place, if it is a container."""
    if isinstance(x, list):
        x.append(value)
    elif isinstance(x, dict):
        x[value] = 0
    elif isinstance(x, set):
        x.add(value)
    elif isinstance(x, deque):
        x.appendleft(value)


STEPS = """
x = []
x = [1, 2]
x = {'a': 1}
x = {3}
x = deque([1])
x = [[1], [2]]
x = BOX.get(KEY)
x = BOX.a
x = BOX.b
box = Box(X, Y)
box = Box(b=X, a=Y)
steps = drain(X) if type(X) is list else iter([])
BOX.keep(KEY, X)
BOX.push(VALUE)
BOX.swap()
BOX.a = X
BOX.forget()
put(X, VALUE)
put(BOX.b, VALUE)
with BOX as inner: put(inner, VALUE)
show(next(STEPS, 0))
if type(X) is list: show(twice(VALUE, into=X) is X)
if X is not None: show(register(X))
clear_all()
if KEY in BOX.held: put(BOX[KEY], VALUE)
show(failed(X))
""".strip().splitlines()


def program(seed: int, length: int = 40) -> str:
    """Statements that make containers, hand them to objects, get them back, and change them on either side."""
    draw = random.Random(seed)
    names = {"x": ["x0"], "box": ["box0"], "steps": ["steps0"]}
    lines = ["x0 = [1]", "box0 = Box(x0)", "steps0 = iter([])"]
    for number in range(1, length):
        line = draw.choice(STEPS)
        for word, options in (("X", "x"), ("Y", "x"), ("BOX", "box"), ("STEPS", "steps")):
            line = re.sub(rf"\b{word}\b", draw.choice(names[options]), line)
        line = line.replace("KEY", draw.choice(["'k'", "'l'"])).replace("VALUE", draw.choice("567"))
        made = line.partition(" = ")[0]
        if made in names:
            line = f"{made}{number}{line.removeprefix(made)}"
            names[made].append(f"{made}{number}")
        lines += [line, f"show({', '.join(names['x'][-5:])}, {draw.choice(names['box'])}.both())"]
    return "\n".join(lines)


def shown(names: dict[str, Any], source: str) -> list[str]:
    """Return what a program shows, with the given names."""
    seen: list[str] = []

    def failed(x: Any) -> str:
        try:
            return f"{names['clear_and_fail'](x)}"
        except (ValueError, AttributeError) as error:
            return type(error).__name__

    exec(
        source,
        {**names, "put": put, "failed": failed, "deque": deque, "show": lambda *values: seen.append(repr(values))},
    )
    return seen


@contextmanager
def candidate(source: str = CANDIDATE) -> Iterator[tuple[dict[str, Any], Peer]]:
    """Yield what tests see of a program that is served at the other end of a socket, and their end."""
    far, near = socket.socketpair()
    with closing(near), closing(far):
        served = Peer(far, serves_everything, trusting=True)
        names: dict[str, Any] = {}
        exec(source, names)
        handles = {name: served.keep(value) for name, value in names.items() if callable(value)}
        thread = threading.Thread(target=served.serve)
        thread.start()
        peer = Peer(near, serves_nothing, lambda module: False)
        uses = {"Box": frozenset[str]()}
        yield {name: peer.stand_in(handle, "solution", uses.get(name)) for name, handle in handles.items()}, peer
        near.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("seed", range(40))
def test_a_random_program_does_what_it_does_in_one_process(seed: int) -> None:
    source = program(seed)
    whole: dict[str, Any] = {}
    exec(CANDIDATE, whole)
    with candidate() as (names, _):
        assert shown(names, source) == shown(whole, source), source


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """All that either end sends."""
    seen: list[bytes] = []
    send: Callable[..., None] = frames.send

    def noting(connection: Any, frame: bytes, *deadline: Any) -> None:
        seen.append(frame)
        send(connection, frame, *deadline)

    monkeypatch.setattr(frames, "send", noting)
    return seen


def test_what_the_candidate_does_not_hold_is_not_sent(sent: list[bytes]) -> None:
    with candidate("def last(x): return x[-1]\ndef fresh(): return [1]\ndef other(): pass") as (names, _):
        given: list[Any] = [1, 2]
        assert names["last"](given) == 2
        got = names["fresh"]()
        given.append("a secret")
        got.append("a secret")
        names["other"]()
    assert not any(b"a secret" in frame for frame in sent)


def test_what_either_end_lets_go_of_is_sent_no_more(sent: list[bytes]) -> None:
    source = "held = []\ndef keep(x): held[:] = [x]\ndef drop(): held.clear()\ndef write(n): held[0].append(n)"
    with candidate(source) as (names, peer):
        given: list[Any] = ["first"]
        names["keep"](given)
        names["write"](1)
        assert given == ["first", 1]
        names["drop"]()
        given.append("a secret")
        names["drop"]()
        names["drop"]()
        assert not any(b"a secret" in frame for frame in sent)
        names["keep"](["temporary"])
        names["write"](1)
        sent.clear()
        names["write"](2)
        assert not any(b"temporary" in frame for frame in sent)
        assert not peer._aliases._aliases


def test_the_time_for_it_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bounds a container is a copy, as it is for what is not followed at all."""
    source = "class Bag:\n    def __init__(self, x): self.x = x\n    def add(self, n): self.x.append(n)"
    with candidate(source) as (names, _):
        large = list(range(100_000))
        names["Bag"](large).add(1)
        assert len(large) == 100_000
        small: list[Any] = []
        bag = names["Bag"](small)
        bag.add(1)
        monkeypatch.setattr(aliases, "_MAX_LOOKED_AT", 0)
        bag.add(2)
        assert small == [1]
        many: list[list[int]] = [[] for _ in range(100)]
        monkeypatch.undo()
        bags = [names["Bag"](one) for one in many]
        for one in bags:
            one.add(3)
        assert many[:36] == [[]] * 36
        assert many[36:] == [[3]] * 64


@pytest.mark.parametrize(
    "notes", [(), ({},), ({}, []), ([], {}), ({0: None}, {}), ({9: 1}, {}), ({RESULT: []}, {}), 1, ({"x": 1}, {})]
)
def test_notes_that_are_none_are_the_candidates_fault(notes: Any) -> None:
    far, near = socket.socketpair()
    with closing(near), closing(far):
        peer = Peer(near, serves_nothing, lambda module: False)
        stand_in = peer.stand_in(Peer(far, serves_everything, trusting=True).keep(len), "solution", None)
        frames.send(far, codec.dumps(("done", 1, {}, notes, [1])))
        with pytest.raises(PeerLostError):
            stand_in([])


def test_a_candidate_names_what_it_never_had() -> None:
    """Numbers and names that the tests did not follow change nothing, nor do contents of another type."""
    held: list[int] = [1]
    both = Aliases(lambda value: b"")
    number = both.add(held)
    both.take({number: {2}, 99: [3], "name": [4], (1,): [5]})
    assert held == [1]
    both.take({number: [2]})
    assert held == [2]
