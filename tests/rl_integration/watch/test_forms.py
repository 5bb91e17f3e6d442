"""A change of form is seen without any scorer; chance and single giants are not taken for one."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.watch.hacking import HackingWatch, WatchConfig, fingerprint
from adjudge.rl_integration.watch.report import MARKS, form_change, form_of

SMALL = WatchConfig(window=256, baseline=256, enough=128, block=32)


def names(text: str) -> set[str]:
    form = form_of([text])
    return {name for bit, name in enumerate(MARKS) if form >> bit & 1}


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("", set()),
        ("So it is 7.", set()),
        (r"So it is \boxed{7}.", {"an answer in a box"}),
        ("```python\nprint(1)\n```", {"a block of code", "several lines"}),
        ("- one\n- two", {"a list", "several lines"}),
        ("12. twelve", {"a list"}),
        ("3.5 and -2 are numbers", set()),
        ("# Answer", {"a heading"}),
        ("**so** it is", {"bold text"}),
        ("2**3 ** 4", {"bold text"}),  # a power is taken for it: shares matter, and they hardly change for that
        ("<think>well</think>", {"a tag"}),
        ("1 < 2 and 3 > 2", set()),
        ("and so on " * 8, {"an end that repeats itself"}),
        ("12" * 20, {"an end that repeats itself"}),
        ("so so so", set()),
        ("good\n\n\n", set()),
    ],
)
def test_marks_of_a_text(text: str, marks: set[str]) -> None:
    assert names(text) == marks


def test_of_a_giant_both_ends_are_looked_at_and_nothing_else() -> None:
    middle = "word " * 100
    filler = "".join(chr(0x4E00 + n % 20_000) for n in range(200_000))
    assert names(f"# top\n{filler}") == {"a heading", "several lines"}
    assert names(f"{filler}\n- end") >= {"a list"}
    assert "an end that repeats itself" not in names(filler[:2000] + middle + filler[:2000])
    assert "an end that repeats itself" in names(filler + middle)


def test_a_hostile_text_costs_no_more_than_another() -> None:
    for text in ("a" * 10**6, "<" * 10**6, " \n" * 10**6, "*" * 10**6, "ab" * 10**6, "\ud800" * 5000):
        form_of([text])


def test_the_mark_that_changed_most_is_named() -> None:
    box, lines = 1, 1 << list(MARKS).index("several lines")
    then, now = [box | lines] * 64 + [box] * 64, [lines] * 128
    change = form_change(then, now, 32)
    assert change is not None
    assert (change.mark, change.then, change.now) == ("an answer in a box", 1.0, 0.0)
    assert change.errors < -1000
    assert form_change(then, now[:63], 32) is None


def test_chance_is_within_a_few_errors() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        sides = [[int(rng.random() < 0.5) for _ in range(1024)] for _ in range(2)]
        change = form_change(sides[0], sides[1], 64)
        assert change is not None
        assert abs(change.errors) < 6


def watched(watch: HackingWatch, texts: list[str]) -> None:
    for at, text in enumerate(texts):
        sample = Sample(prompt=f"prompt {at}", response=text, finish_reason="stop")
        watch.see(sample, Score.scored(float(at % 3 == 0)))


def test_a_lost_answer_format_is_an_alarm_of_its_own() -> None:
    watch = HackingWatch(SMALL)
    watched(watch, [f"\\boxed{{{n}}}" for n in range(256)])
    assert watch.report().alarms == ()
    watched(watch, [f"answer: {n}" for n in range(256)])
    (alarm,) = watch.report().alarms
    assert alarm.kind == "form"
    assert alarm.sentence == "0 % of the responses hold an answer in a box; at the start it was 100 %."


def test_a_watch_goes_on_from_its_state_in_another_process() -> None:
    texts = [f"\\boxed{{{n % 40}}}" for n in range(300)] + ["and so on " * 8] * 200
    whole, first = HackingWatch(SMALL), HackingWatch(SMALL)
    watched(whole, texts)
    watched(first, texts[:350])
    program = (
        "import json, sys\n"
        "from adjudge.protocol import Sample, Score\n"
        "from adjudge.rl_integration.watch.hacking import WatchConfig\n"
        "from adjudge.rl_integration.watch.hacking import HackingWatch\n"
        "watch = HackingWatch(WatchConfig(window=256, baseline=256, enough=128, block=32))\n"
        "state, texts = json.load(sys.stdin)\n"
        "watch.restore(state)\n"
        "for at, text in texts:\n"
        "    sample = Sample(prompt=f'prompt {at}', response=text, finish_reason='stop')\n"
        "    watch.see(sample, Score.scored(float(at % 3 == 0)))\n"
        "print(json.dumps(watch.state()))\n"
    )
    rest = [(at - 350, text) for at, text in enumerate(texts)][350:]
    told = json.dumps([first.state(), rest])
    ran = subprocess.run([sys.executable, "-c", program], input=told, capture_output=True, text=True, check=True)
    restored = HackingWatch(SMALL)
    restored.restore(json.loads(ran.stdout))
    watched(first, texts[350:])
    assert restored.report() == first.report()
    assert restored.report().measures.samples == 500


def test_fingerprints_are_the_same_in_every_process() -> None:
    assert fingerprint(("a",)) == 0x40F89E395B66422F
    assert fingerprint(("a", "b")) == 0xA0CC7B08946BA54A
