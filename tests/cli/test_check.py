from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adjudge.cli import exits
from adjudge.runtime import loop

Adjudge = Callable[..., Any]

ROWS = [
    {"id": "a", "answer": "Paris"},
    {"id": "b", "answer": "17"},
    {"id": "c", "answer": "Oslo"},
    {"id": "d", "answer": "1/2"},
]


@pytest.fixture
def golds(tmp_path: Path) -> str:
    return write(tmp_path / "golds.jsonl", ROWS)


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def outcomes(data: Any) -> dict[str, str]:
    return {check["name"]: check["outcome"] for check in data["checks"]}


def test_a_sound_scorer_passes(adjudge: Adjudge, toys: str, golds: str) -> None:
    ran = adjudge("check", golds, "--scorer", f"{toys}:Toy", "--json")
    assert ran.code == exits.FINE, ran.out
    found = outcomes(ran.json)
    for name in ("references", "golds", "wrong answers", "hostile responses", "time per gold"):
        assert found[name] == "ok", name
    assert found["protocol: any order"] == "ok"
    assert (ran.json["scorer"], ran.json["rows"], ran.json["ok"]) == ("toy", 4, True)


def test_the_table_names_every_check(adjudge: Adjudge, toys: str, golds: str) -> None:
    ran = adjudge("check", golds, "--scorer", f"{toys}:Toy")
    assert ran.code == exits.FINE
    for text in ("scorer toy (toy:1) on 4 references", "wrong answers", "hostile responses", "p50", "0 failed, "):
        assert text in ran.out


def test_probes_are_tried_on_every_kind_of_row_that_fits(adjudge: Adjudge, toys: str, golds: str) -> None:
    ran = adjudge("check", golds, "--scorer", f"{toys}:Toy", "--json")
    found = outcomes(ran.json)
    for name in ("master_keys", "empty", "refusal", "gibberish", "injection", "null_model", "digit"):
        assert found[f"probe: {name}"] == "ok", name
    assert found["probe: cut"] == "skipped"
    table = adjudge("check", golds, "--scorer", f"{toys}:Toy").out
    (line,) = (line for line in table.splitlines() if line.startswith("probes "))
    assert "kinds held; no row fits cut" in line
    assert "probe: " not in table


FOOLED = """
from adjudge.protocol import Score


class Fooled:
    name, fingerprint = "fooled", "fooled:1"

    async def score(self, samples):
        return [
            Score.scored(float(s.response in (s.reference, "Solution") or "[[A]]" in s.response)) for s in samples
        ]
"""


def test_a_constant_and_an_injection_that_pay_are_found(
    adjudge: Adjudge, golds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fooled_scorer.py").write_text(FOOLED)
    monkeypatch.syspath_prepend(tmp_path)
    ran = adjudge("check", golds, "--scorer", "fooled_scorer:Fooled", "--json")
    assert ran.code == exits.FOUND
    failed = {check["name"]: check for check in ran.json["checks"] if check["outcome"] == "failed"}
    assert set(failed) == {"probe: master_keys", "probe: injection"}
    assert {finding["how"] for finding in failed["probe: master_keys"]["findings"]} == {"'Solution'"}
    (example, *_) = failed["probe: injection"]["findings"]
    assert "[[A]]" in example["sample"]["response"]
    assert example["problem"] == "it got 1; as it was, 0"
    table = adjudge("check", golds, "--scorer", "fooled_scorer:Fooled", "--show", "1").out
    assert "probe: master_keys: 4 x 'Solution'" in table


def test_hedging_is_found(adjudge: Adjudge, toys: str, golds: str) -> None:
    ran = adjudge("check", golds, "--scorer", f"{toys}:Lenient", "--json")
    assert ran.code == exits.FOUND
    (wrong,) = (check for check in ran.json["checks"] if check["name"] == "wrong answers")
    assert wrong["outcome"] == "failed"
    found = {(finding["row"], finding["how"]) for finding in wrong["findings"]}
    assert {(row["id"], "two answers") for row in ROWS} <= found
    (example,) = (one for one in wrong["findings"] if (one["row"], one["how"]) == ("a", "two answers"))
    assert example["problem"] == "a wrong answer got 1"
    assert example["sample"]["response"].startswith("Paris or ")
    assert example["score"]["value"] == 1.0


def test_a_gold_that_does_not_pass_is_listed_with_row_and_reason(adjudge: Adjudge, toys: str, golds: str) -> None:
    ran = adjudge("check", golds, "--scorer", f"{toys}:Forgetful")
    assert ran.code == exits.FOUND
    assert "golds: 1 x the gold itself" in ran.out
    (line,) = (line for line in ran.out.splitlines() if line.startswith("b ") and "a right answer got 0" in line)
    assert "17" in line


def test_a_response_that_escapes_its_zero_is_found(adjudge: Adjudge, toys: str, golds: str) -> None:
    ran = adjudge("check", golds, "--scorer", f"{toys}:Coward", "--json")
    assert ran.code == exits.FOUND
    (hostile,) = (check for check in ran.json["checks"] if check["name"] == "hostile responses")
    assert hostile["outcome"] == "failed"
    assert {"a long number"} <= {finding["how"] for finding in hostile["findings"]}
    assert all(finding["score"]["status"] == "failed" for finding in hostile["findings"])


PARTIAL = """
from dataclasses import dataclass
from typing import ClassVar

from adjudge.protocol import Limits, Score, Verifier, response_text


@dataclass(frozen=True, kw_only=True)
class Partial(Verifier):
    name: ClassVar[str] = "partial"
    version: ClassVar[str] = "1"
    limits: ClassVar[Limits] = Limits()

    def verify(self, sample):
        if response_text(sample).strip() == sample.reference:
            return Score.scored(1.0)
        return Score.scored(0.3 if response_text(sample) == "Solution" else 0.0)


class Together:
    name, fingerprint, groupwise = "together", "together:1", True

    async def score(self, samples):
        return [Score.failed("engine_error") if len(s.response) > 9999 else Score.scored(0.5) for s in samples]
"""


@pytest.fixture
def partial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "partial_scorers.py").write_text(PARTIAL)
    monkeypatch.syspath_prepend(tmp_path)
    return "partial_scorers"


@pytest.mark.parametrize(("wrong", "outcome"), [("0.0", "failed"), ("0.3", "ok")])
def test_credit_that_wrong_answers_may_have_is_no_failure_of_a_probe(
    adjudge: Adjudge, golds: str, partial: str, wrong: str, outcome: str
) -> None:
    ran = adjudge("check", golds, "--scorer", f"{partial}:Partial", "--wrong", wrong, "--json")
    assert outcomes(ran.json)["probe: master_keys"] == outcome


def test_a_scorer_without_right_and_wrong_must_survive_what_is_hostile(
    adjudge: Adjudge, golds: str, partial: str
) -> None:
    ran = adjudge("check", golds, "--scorer", f"{partial}:Together", "--json")
    found = {check["name"]: check for check in ran.json["checks"]}
    assert found["probes"]["outcome"] == "skipped"
    assert "a long number" in {finding["how"] for finding in found["hostile responses"]["findings"]}


def test_a_scorer_that_loses_samples_is_an_error(adjudge: Adjudge, toys: str, golds: str) -> None:
    ran = adjudge("check", golds, "--scorer", f"{toys}:Broken")
    assert ran.code == exits.USER
    assert "'broken'" in ran.err


def test_rows_without_a_usable_reference_are_listed(adjudge: Adjudge, toys: str, tmp_path: Path) -> None:
    path = write(tmp_path / "golds.jsonl", [*ROWS, {"id": "e", "answer": 7}, {"id": "f"}])
    ran = adjudge("check", path, "--scorer", f"{toys}:Toy", "--json")
    assert ran.code == exits.FOUND
    references = ran.json["checks"][0]
    assert [finding["row"] for finding in references["findings"]] == ["e"]
    assert "not 7" in references["findings"][0]["problem"]
    assert references["detail"] == "1 failed; 1 rows are not for toy"
    assert outcomes(ran.json)["golds"] == "ok"


def test_show_and_limit(adjudge: Adjudge, toys: str, golds: str) -> None:
    ran = adjudge("check", golds, "--scorer", f"{toys}:Lenient", "--show", "1", "--limit", "3")
    assert "on 3 references" in ran.out
    assert "and 2 more; --show or --json lists them" in ran.out


def test_columns_are_found_or_named(adjudge: Adjudge, toys: str, tmp_path: Path) -> None:
    path = write(tmp_path / "golds.jsonl", [{"key": {"text": "Paris"}}, {"key": {"text": "Oslo"}}])
    ran = adjudge("check", path, "--scorer", f"{toys}:Toy")
    assert ran.code == exits.USER
    assert "--reference-column" in ran.err
    assert "key.text" in ran.err
    assert adjudge("check", path, "--scorer", f"{toys}:Toy", "--reference-column", "key.text").code == exits.FINE


HANGING = """
import asyncio
import threading

class Waits:
    name, fingerprint = "waits", "waits:1"
    async def score(self, samples):
        await asyncio.Event().wait()

class Blocks(Waits):
    async def score(self, samples):
        threading.Event().wait()
"""


@pytest.mark.parametrize("name", ["Waits", "Blocks"])
def test_a_scorer_that_hangs_is_an_error(
    adjudge: Adjudge, golds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / f"hanging_{name.lower()}.py").write_text(HANGING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(loop, "_LOOPS", {})  # the loop that hangs is left behind
    ran = adjudge("check", golds, "--scorer", f"hanging_{name.lower()}:{name}", "--seconds", "0.2")
    assert ran.code == exits.USER
    assert ran.err.startswith("adjudge: the scorer 'waits' did not return within 0.2 s for 3 samples; if it needs")


SHIPPING = """
from dataclasses import dataclass
from typing import ClassVar

from adjudge.protocol import Sample, Score, Verifier, response_text
from adjudge.scoring.attacks import AttackCase


@dataclass(frozen=True, kw_only=True)
class Shipping(Verifier):
    name: ClassVar[str] = "shipping"
    case: bool = True
    whole: bool = True

    def verify(self, sample):
        wanted, text = sample.reference, response_text(sample)
        if not self.case:
            wanted, text = wanted.lower(), text.lower()
        return Score.scored(float(text == wanted if self.whole else wanted in text))

    def attacks(self, folder):
        (folder / "shout").write_text("PARIS")
        shout = (folder / "shout").read_text()
        for name, response, more in (
            ("hedge", "Paris or Rome", {"tries": "name two"}),
            ("shout", shout, {"tries": "shout", "options": {"case": True}}),
            ("plain", "Paris", {"honest": True}),
        ):
            yield AttackCase(id=name, sample=Sample(prompt="Where?", response=response, reference="Paris"), **more)
"""


SIZED = """
from dataclasses import dataclass
from adjudge import Score, Verifier

@dataclass(frozen=True, kw_only=True)
class Sized(Verifier):
    name = "sized"
    needs_reference = True

    def verify(self, sample):
        return Score.scored(float(len(str(sample.response)) == sample.reference["length"]))
"""


@pytest.fixture
def shipping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "shipping_scorer.py").write_text(SHIPPING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "shipping_scorer:Shipping"


def test_attacks_that_a_verifier_ships_are_tried_without_a_file(adjudge: Adjudge, shipping: str) -> None:
    ran = adjudge("check", "--scorer", shipping, "--json")
    assert ran.code == exits.FINE, ran.out
    assert [(check["name"], check["outcome"], check["tried"]) for check in ran.json["checks"]] == [
        ("attacks", "ok", 2),
        ("honest neighbours", "ok", 1),
    ]


def test_an_attack_that_is_paid_is_found(adjudge: Adjudge, shipping: str) -> None:
    spec = f'{{"{shipping}": {{whole: false, case: false}}}}'
    ran = adjudge("check", "--scorer", spec)
    assert ran.code == exits.FOUND
    assert "1 of 2 failed" in ran.out
    (line,) = (line for line in ran.out.splitlines() if line.startswith("hedge "))
    assert "name two" in line
    assert "it got 1" in line


def test_attacks_come_after_the_references_and_can_be_left_out(adjudge: Adjudge, shipping: str, golds: str) -> None:
    whole = adjudge("check", golds, "--scorer", shipping, "--json")
    assert list(outcomes(whole.json))[-2:] == ["attacks", "honest neighbours"]
    assert outcomes(whole.json)["golds"] == "ok"
    assert "attacks" not in outcomes(adjudge("check", golds, "--scorer", shipping, "--skip-attacks", "--json").json)


def test_references_that_hold_no_answer_leave_nothing_known_to_try(
    adjudge: Adjudge, shipping: str, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"prompt": "p", "response": "a", "reference": {"length": 1}}\n')
    (tmp_path / "sized_scorer.py").write_text(SIZED)
    said = "Nothing whose score is known was tried on"
    assert f"{said} 'sized'" in adjudge("check", str(rows), "--scorer", f"{tmp_path}/sized_scorer.py:Sized").out
    rows.write_text('{"prompt": "Where?", "response": "a", "reference": "Paris"}\n')
    assert said not in adjudge("check", str(rows), "--scorer", shipping).out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "there is nothing to check: give a FILE"),
        (("--scorer", "exact"), "'exact' ships no attacks, so without a FILE there is nothing to check"),
        (("--scorer", "sql", "--skip-attacks"), "there is nothing to check: give a FILE"),
    ],
)
def test_nothing_to_check_is_an_error(adjudge: Adjudge, words: tuple[str, ...], says: str) -> None:
    ran = adjudge("check", *words)
    assert ran.code == exits.USER
    assert says in ran.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--seconds", "0"), "--seconds is 0"),
        (("--wrong", "1.0"), "a right answer must score more"),
        (("--limit", "-1"), "--limit"),
        (("--scorer", "maht"), "did you mean 'math'"),
        (("--reference-column", "anwser"), "--reference-column 'anwser': the input has no such column. Did you mean"),
    ],
)
def test_mistakes_are_told(adjudge: Adjudge, golds: str, words: tuple[str, ...], says: str) -> None:
    ran = adjudge("check", golds, *words)
    assert ran.code == exits.USER
    assert says in ran.err


def test_a_file_that_is_not_there(adjudge: Adjudge, tmp_path: Path) -> None:
    ran = adjudge("check", str(tmp_path / "none.jsonl"))
    assert ran.code == exits.USER
    assert "none.jsonl" in ran.err
