"""Containers that tests and a candidate both hold: programs do what they would do in one process."""

from __future__ import annotations

import random
import re
import socket
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from adjudge.sandbox import aliases, codec, frames
from adjudge.sandbox.aliases import SHARED, Aliases
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
            elif hasattr(x, "append"): x.append(value)
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
    for x in everything:
        if hasattr(x, "clear"): x.clear()
def clear_and_fail(x):
    x.clear()
    raise ValueError("no")
class Key:
    def __init__(self, name): self.name = name
    def __hash__(self): return hash(self.name)
    def __eq__(self, other): return isinstance(other, Key) and other.name == self.name
    def __repr__(self): return f"Key({self.name!r})"
keys = {}
def keyed(name, value):
    keys[Key(name)] = value
    return keys
def grid(rows): return [[0] * 2 for _ in range(rows)]
def one_row(rows): return [[0] * 2] * rows
def shallow(x): return list(x) if isinstance(x, list) else x
def around(x, call):
    if isinstance(x, list): x.append(1)
    seen = call(x)
    if isinstance(x, list): x.append(2)
    return seen
def of(owner): return owner.items
def into(owner, value): owner.items.append(value)
def pair(x): return x, {"x": x}
class Once:
    def __init__(self, x): self.x = x
    def take(self):
        x, self.x = self.x, None
        if isinstance(x, list): x.append(8)
        return x
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
x = Counter("ab")
x = defaultdict(list)
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
x = grid(2)
x = keyed(KEY, X)
if type(X) is dict: show(sorted(map(str, X)))
x = one_row(3)
x = shallow(X)
if type(X) is list and X and type(X[0]) is list: X[0].append(VALUE)
if type(X) is list: X.append(Y if Y is not X and type(Y) is not list else VALUE)
x = X[0] if type(X) is list and X else []
x = pair(X)[0]
x = pair(X)[1]["x"]
show(around(X, lambda got: (repr(X), got is X, put(X, VALUE), put(Y, VALUE))[:2]))
owner.items = [X] if type(X) is not list else X
into(owner, VALUE)
x = of(owner)
put(owner.items, VALUE)
x = Once(X).take()
if type(X) is list: show([Y is item for item in X])
show(X is Y)
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
        {
            **names,
            "owner": SimpleNamespace(items=[]),
            "put": put,
            "failed": failed,
            "deque": deque,
            "Counter": Counter,
            "defaultdict": defaultdict,
            "show": lambda *values: seen.append(repr(values)),
        },
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
        peer = Peer(near, serves_everything, lambda module: False)
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
        assert not peer.aliases._held


def test_beyond_the_bounds_a_container_is_followed_during_a_call_only(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "class Bag:\n    def __init__(self, x): self.x = x\n    def add(self, n): self.x.append(n)\n"
    with candidate(source + "def push(x, n): x.append(n)") as (names, peer):
        large = list(range(100_000))
        bag = names["Bag"](large)
        bag.add(1)
        assert len(large) == 100_000
        names["push"](large, 1)
        assert len(large) == 100_001
        monkeypatch.setattr(aliases, "_MAX_HELD", 100)
        many: list[list[int]] = [[] for _ in range(150)]
        bags = [names["Bag"](one) for one in many]
        assert len(peer.aliases._held) <= 101
        for one in bags:
            one.add(3)
        assert sum(one == [3] for one in many[-100:]) == 100
        assert sum(one == [3] for one in many[:49]) == 0
        rows: list[Any] = [[number] for number in range(6_000)]  # too many: copies, but for the outermost
        names["push"](rows, 7)
        assert rows[-1] == 7
        assert rows[0] == [0]
        monkeypatch.setattr(aliases, "_MAX_LOOKED_AT", 0)
        bags[-1].add(4)
        assert many[-1] == [3]
        names["push"](many[-1], 6)
        assert many[-1] == [3, 6]
        monkeypatch.undo()
        peer.renew()  # another test
        bag = names["Bag"](many[-1])
        bag.add(7)
        assert many[-1] == [3, 6, 7]


def test_all_of_an_argument_is_followed_during_its_call() -> None:
    source = "def reverse(rows):\n    for row in rows: row.reverse()\ndef add(table): table['new'] = []"
    with candidate(source) as (names, _):
        rows = [[number, 0] for number in range(3_000)]
        names["reverse"](rows)
        assert rows == [[0, number] for number in range(3_000)]
        table: dict[str, list[int]] = {str(number): [] for number in range(1_500)}
        names["add"](table)
        assert table["new"] == []


def test_nothing_changes_while_it_is_compared() -> None:
    source = """
class Key:
    def __init__(self, table): self.table = table
    def __hash__(self):
        self.table.clear()
        return 1
def made():
    table = {}
    table.update(one=Key(table), two=2)
    return table
def other(): pass
"""
    with candidate(source) as (names, _):
        table = names["made"]()
        hash(table["one"])
        assert len(table) == 2
        names["other"]()
        assert table == {}


def test_threads_of_the_program_wait_until_the_tests_listen() -> None:
    source = """
import queue, threading
class Workers:
    def __init__(self):
        self.tasks = queue.Queue()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()
    def work(self):
        while (task := self.tasks.get()) is not None: task[0](task[1])
    def submit(self, call, value): self.tasks.put((call, value))
    def join(self):
        self.tasks.put(None)
        self.thread.join()
"""
    for _ in range(5):
        with candidate(source) as (names, _):
            got: list[int] = []
            workers = names["Workers"]()
            for number in range(30):
                workers.submit(got.append, number)
            workers.join()
            assert got == [*range(30)]


BODY = [1]


@pytest.mark.parametrize(
    "notes",
    [
        (), ({},), ({}, {}), ([], []), ({0: None}, []), ({"x": BODY}, []), ({-1: "text"}, []), ({-1: (1,)}, []), 1,
        ({-1: (BODY, [1], [1])}, []), ({-1: ({}, [1], [])}, []), ({-1: ({}, [[]], [1])}, []), ({}, [0] * 9_000),
        ({-number: BODY for number in range(1, 9_000)}, []), ({-1: [codec.Handle(-2, SHARED)]}, []),
        ({-1: [codec.Handle(5, SHARED)]}, []), ({-1: (1, [2])}, []), ({1: (1, [[]])}, []), ({-1: (1, 2)}, []),
    ],
    ids=lambda notes: repr(notes)[:40],
)  # fmt: skip
def test_notes_that_are_none_are_the_candidates_fault(notes: Any) -> None:
    far, near = socket.socketpair()
    with closing(near), closing(far):
        peer = Peer(near, serves_nothing, lambda module: False)
        stand_in = peer.stand_in(Peer(far, serves_everything, trusting=True).keep(len), "solution", None)
        sender = threading.Thread(target=frames.send, args=(far, codec.dumps(("done", 1, [1], notes), _as_it_is)))
        sender.start()
        with pytest.raises(PeerLostError):
            stand_in([])
        sender.join()


def _as_it_is(value: Any) -> codec.Handle:
    assert isinstance(value, codec.Handle)
    return value


def test_what_the_tests_do_not_share_cannot_be_named() -> None:
    """Numbers that this end gave and follows no longer, and contents of another type, change nothing."""
    held: list[Any] = [1, [2]]
    ours = Aliases(1, lambda value: codec.dumps(value, _as_it_is))
    (handle,), (table, gone) = ours.pack([held])
    assert table == {1: [1, codec.Handle(2, SHARED)], 2: [2]}
    assert not gone
    ours.take({1: {2}, 99: [3]}, lambda body: body)
    assert held == [1, [2]]
    assert ours.get(codec.Handle(99, SHARED)) is None
    assert ours.get(handle) is held


def test_a_value_that_cannot_be_sent_leaves_nothing_behind() -> None:
    ours = Aliases(1, lambda value: codec.dumps(value, _as_it_is))
    changed, inner = [1], [object()]
    ours.pack([changed])
    changed.append(2)
    with pytest.raises(AssertionError):
        ours.pack([[inner]])
    _, (table, _) = ours.pack([])
    assert table == {1: (1, [2])}  # what was added
