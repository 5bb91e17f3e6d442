"""Stimuli, and the comparison of what two designs answer to them."""

from __future__ import annotations

import itertools

import pytest

from adjudge.verifiers.verilog.differential import TraceError, compare, known_bits, read_samples
from adjudge.verifiers.verilog.front_end import Interface, Port
from adjudge.verifiers.verilog.stimulus import Stimulus, make_stimulus


def port(name: str, width: int = 1) -> Port:
    return Port(name=name, direction="input", width=width)


OUT = (Port(name="p", direction="output", width=2), Port(name="q", direction="output", width=1))
COUNTER = Interface(ports=(port("clk"), port("rst_n"), port("d", 8), *OUT), clocks=("clk",), resets=(("rst_n", False),))
TWO_CLOCKS = Interface(ports=(port("a"), port("b"), port("d", 4), *OUT), clocks=("a", "b"))


def column(stimulus: Stimulus, name: str) -> list[int]:
    return [int(stimulus.row(at)[name], 16) for at in range(len(stimulus.rows))]


def test_few_bits_are_tried_in_every_combination() -> None:
    shown = make_stimulus(Interface(ports=(port("a", 6), port("b", 6), *OUT)), (), "s", 100)
    assert sorted(set(shown.rows)) == list(range(1 << 12))


def test_constants_and_their_neighbours_are_tried() -> None:
    shown = make_stimulus(Interface(ports=(port("a", 32), port("b", 32), *OUT)), (0xDEAD,), "s", 2000)
    assert {0xDEAC, 0xDEAD, 0xDEAE} <= set(column(shown, "a")) & set(column(shown, "b"))


def test_equal_ports_are_tried() -> None:
    shown = make_stimulus(Interface(ports=(port("a", 32), port("b", 32), *OUT)), (), "s", 2000)
    assert sum(one == other for one, other in zip(column(shown, "a"), column(shown, "b"), strict=True)) > 10


@pytest.mark.parametrize("interface", [COUNTER, TWO_CLOCKS], ids=["one-clock", "two-clocks"])
def test_clocks_and_data_never_change_in_one_row(interface: Interface) -> None:
    shown = make_stimulus(interface, (), "s", 500)
    rows = [shown.row(at) for at in range(len(shown.rows))]
    for before, after in itertools.pairwise(rows):
        changed = {name for name in before if before[name] != after[name]}
        assert not (changed & set(interface.clocks) and changed - set(interface.clocks))


def test_resets_begin_the_run_and_come_again_at_both_levels() -> None:
    shown = make_stimulus(COUNTER, (), "s", 2000)
    resets, clocks = column(shown, "rst_n"), column(shown, "clk")
    assert 0 < shown.settled < 40
    assert resets[shown.settled] == 0
    later = resets[shown.settled :]
    assert sum(one != other for one, other in itertools.pairwise(later)) > 20
    # an asynchronous reset differs from a synchronous one only when it is taken back before the next edge
    pulses = [
        at
        for at in range(2, len(resets))
        if resets[at - 2 : at + 1] == [1, 0, 1] and len(set(clocks[at - 2 : at + 1])) == 1
    ]
    assert pulses


def test_two_clocks_tick_together_apart_and_alone() -> None:
    shown = make_stimulus(TWO_CLOCKS, (), "s", 2000)
    pairs = list(zip(column(shown, "a"), column(shown, "b"), strict=True))
    moves = {(one[0] != other[0], one[1] != other[1]) for one, other in itertools.pairwise(pairs)}
    assert {(True, True), (True, False), (False, True)} <= moves


def test_the_seed_decides() -> None:
    assert make_stimulus(COUNTER, (), "a", 100) == make_stimulus(COUNTER, (), "a", 100)
    assert make_stimulus(COUNTER, (), "a", 100).rows != make_stimulus(COUNTER, (), "b", 100).rows


def test_wide_designs_get_fewer_rows() -> None:
    wide = Interface(ports=(port("a", 60_000), *OUT))
    assert len(make_stimulus(wide, (), "s", 2000).rows) == 100


@pytest.mark.parametrize(
    ("reference", "candidate", "matched", "checked", "first", "differing"),
    [
        pytest.param(["000", "111"], ["000", "111"], 2, 2, -1, (), id="same"),
        pytest.param(["000", "111"], ["000", "110"], 1, 2, 1, ("q",), id="one-bit"),
        pytest.param(["000", "111"], ["100", "110"], 0, 2, 0, ("p", "q"), id="both-ports"),
        pytest.param(["0x0", "1x1"], ["010", "1z1"], 2, 2, -1, (), id="unknown-reference-matches-anything"),
        pytest.param(["xxx", "111"], ["000", "111"], 1, 1, -1, (), id="unknown-row-is-no-check"),
        pytest.param(["000"], ["x00"], 0, 1, 0, ("p",), id="unknown-candidate-is-wrong"),
        pytest.param(["z00"], ["000"], 0, 1, 0, ("p",), id="z-must-be-z"),
        pytest.param(["z00"], ["z00"], 1, 1, -1, (), id="z-is-z"),
    ],
)
def test_traces_are_compared(
    reference: list[str], candidate: list[str], matched: int, checked: int, first: int, differing: tuple[str, ...]
) -> None:
    found = compare(reference, candidate, OUT)
    assert (found.matched, found.checked, found.first, found.differing) == (matched, checked, first, differing)
    assert found.same is (first < 0)


def test_the_share_is_counted_from_stuck_outputs() -> None:
    reference = ["000"] * 8 + ["111"] * 2
    assert compare(reference, ["000"] * 10, OUT).share == 0.0
    assert compare(reference, ["000"] * 9 + ["111"], OUT).share == 0.5
    assert compare(reference, ["111"] * 10, OUT).share == 0.0
    assert compare(reference, reference, OUT).share == 1.0


SHOWN = Stimulus(inputs=(port("a"),), rows=(0, 1))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="nothing"),
        pytest.param(b"", id="empty"),
        pytest.param(b"000\n111\n", id="no-end"),
        pytest.param(b"000\nend\n", id="too-few"),
        pytest.param(b"000\n111\n000\nend\n", id="too-many"),
        pytest.param(b"00\n111\nend\n", id="too-narrow"),
        pytest.param(b"000\n1a1\nend\n", id="no-bit"),
        pytest.param(b"000\n111\nend\n000\n", id="after-the-end"),
    ],
)
def test_damaged_samples_are_refused(data: bytes | None) -> None:
    with pytest.raises(TraceError):
        read_samples(data, SHOWN, 3)


def test_samples_are_read() -> None:
    samples = read_samples(b"0x0\n1z1\nend\n", SHOWN, 3)
    assert samples == ["0x0", "1z1"]
    assert known_bits(samples) == 4
