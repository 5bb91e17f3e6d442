from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy
import pytest

import adjudge
from adjudge.protocol import Sample, Score
from adjudge.runtime.contract import BrokenScorer
from adjudge.runtime.loop import run_blocking
from adjudge.scoring import api, registry
from adjudge.scoring.compose.auto import CODE_KEYS, Auto, auto_scorer
from adjudge.verifiers.code.layouts import CODE_KEYS as LAYOUT_KEYS
from adjudge.verifiers.math.verifier import MathVerifier


@dataclass
class Equals:
    """Is the response the reference?  Remembers every sample."""

    name: str = "equals"
    fingerprint: str = "equals:1"
    asked: list[Sample] = field(default_factory=list)

    def validate(self, sample: Sample) -> None:
        if sample.reference is None:
            raise ValueError("equals needs a reference")

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.asked.extend(samples)
        await asyncio.sleep(0)
        return [Score.scored(float(sample.response == sample.reference)) for sample in samples]


def test_one_response() -> None:
    scorer = Equals()
    assert api.score("2+2?", "4", "4", scorer=scorer).value == 1.0
    api.score("p", "r", "g", scorer=scorer, finish_reason="length", extra={"level": 3})
    assert scorer.asked[-1] == Sample(
        prompt="p", response="r", reference="g", finish_reason="length", extra={"level": 3}
    )


def test_a_batch_of_samples_and_mappings_keeps_its_order() -> None:
    batch: list[Sample | Mapping[str, Any]] = [
        {"prompt": "p", "response": "a", "reference": "a", "id": "0"},
        Sample(prompt="p", response="b", reference="c"),
        {"prompt": [{"role": "user", "content": "p"}], "response": [{"role": "assistant"}], "reference": "x"},
    ] * 50
    assert [score.value for score in api.score_batch(batch, Equals())] == [1.0, 0.0, 0.0] * 50
    assert api.score_batch([], Equals()) == []
    assert api.score_batch([]) == []


def test_inside_a_running_event_loop() -> None:
    async def notebook_cell() -> tuple[float | None, float | None]:
        blocking = api.score("p", "r", "r", scorer=Equals())
        awaited = await api.ascore("p", "r", "x", scorer=Equals())
        (batched,) = await api.ascore_batch([{"prompt": "p", "response": "r", "reference": "r"}], Equals())
        assert batched.value == 1.0
        return blocking.value, awaited.value

    assert asyncio.run(notebook_cell()) == (1.0, 0.0)


def test_from_many_threads_at_once() -> None:
    start = threading.Barrier(8)

    def work(worker: int) -> list[float | None]:
        start.wait()
        return [api.score("p", str(i % 2), "1", scorer=Equals()).value for i in range(worker, worker + 20)]

    with ThreadPoolExecutor(8) as threads:
        for worker, values in enumerate(threads.map(work, range(8))):
            assert values == [float(i % 2) for i in range(worker, worker + 20)]


def test_a_scorer_that_scores_does_not_wait_for_itself() -> None:
    class Outer(Equals):
        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            return [api.score(s.prompt, s.response, s.reference, scorer=Equals()) for s in samples]

    assert api.score("p", "r", "r", scorer=Outer()).value == 1.0


def test_work_is_cancelled_when_the_caller_is_interrupted() -> None:
    program = textwrap.dedent("""
        import asyncio, signal, sys, threading
        from adjudge.runtime.loop import run_blocking

        cancelled = threading.Event()

        async def work():
            try:
                waiting.set()
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        def interrupt():
            # the main thread is inside `result()` now, or about to be: its wait is what SIGINT must end
            waiting.wait()
            while not any("result" == frame.f_code.co_name for frame in frames(sys._current_frames()[main])):
                pass
            signal.pthread_kill(main, signal.SIGINT)

        def frames(frame):
            while frame is not None:
                yield frame
                frame = frame.f_back

        main = threading.main_thread().ident
        waiting = threading.Event()
        threading.Thread(target=interrupt).start()
        try:
            run_blocking(work())
        except KeyboardInterrupt:
            assert cancelled.wait(30)
            print("cancelled")
    """)
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=1200)
    assert (done.stdout, done.stderr, done.returncode) == ("cancelled\n", "", 0)


FORKING = """
import asyncio, os, sys
from collections.abc import Mapping, Sequence
from adjudge.scoring import api
from adjudge.protocol import Score
from adjudge.runtime import loop


class Equals:
    name = "equals"
    fingerprint = "equals:1"

    async def score(self, samples):
        await asyncio.sleep(0)
        return [Score.scored(float(s.response == s.reference)) for s in samples]


assert api.score("p", "r", "r", scorer=Equals()).value == 1.0
children = []
key = (os.getpid(), "adjudge-loop")
loop._LOOPS[key]._lock.acquire()  # as if another thread were starting the loop at the moment of the fork
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if api.score("p", "r", "r", scorer=Equals()).value == 1.0 else 2
            grandchild = os.fork()
            if grandchild == 0:
                os._exit(0 if api.score("p", "r", "x", scorer=Equals()).value == 0.0 else 2)
            code = code or os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1])
        finally:
            os._exit(code)
    children.append(pid)
loop._LOOPS[key]._lock.release()
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
assert codes == [0, 0, 0], codes
assert api.score("p", "r", "r", scorer=Equals()).value == 1.0
print("done")
"""


def test_after_fork_and_at_exit_nothing_hangs_or_warns() -> None:
    ignore_fork = "ignore:This process:DeprecationWarning"  # Python 3.12 warns of any fork with threads
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", ignore_fork, "-c", FORKING], capture_output=True, text=True, timeout=1200
    )
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


@pytest.mark.parametrize(
    ("samples", "scorer", "complaint"),
    [
        ([{"prompt": "p", "response": "r", "reference": "g"}, {"prompt": "p", "response": "r", "id": "x7"}], None,
         r"sample 1 \(id 'x7'\): equals needs a reference"),
        ([Sample(prompt="p", response="r")], None, "sample 0: equals needs a reference"),
        ([{"prompt": "p"}], None, "sample 0: Sample needs the field 'response'"),
        ([{"prompt": "p", "respnse": "r"}], None, "sample 0: Sample has no field 'respnse'"),
        ([{"prompt": "p", "response": None}], None, "sample 0: the response is None; it must be text or a list"),
        ([{"prompt": b"p", "response": "r"}], None, "sample 0: the prompt is b'p'"),
        ([{"prompt": "p", "response": ["r"]}], None, "sample 0: the response is .'r'."),
        (["text"], None, "sample 0: it is a str; give an adjudge.Sample or a mapping"),
        ("text", None, "samples is 'text'; give a list of samples"),
        ({"prompt": "p", "response": "r"}, None, "samples is {.*}; give a list of samples"),
        (Sample(prompt="p", response="r"), None, "samples is Sample.*; give a list of samples"),
        (None, None, "samples is None; give a list of samples"),
        ([], "maht", "unknown scorer 'maht'; .* lists the names .did you mean 'math'"),
        ([Sample(prompt="p", response="r", id="a")], "auto", r"sample 0 \(id 'a'\): scorer=\"auto\" chooses by"),
        ([Sample(prompt="p", response="r", reference={"constraints": []})], "auto", "the constraints are"),
    ],
)  # fmt: skip
def test_mistakes_are_named_before_any_work(samples: Any, scorer: str | None, complaint: str) -> None:
    equals = Equals()
    with pytest.raises(ValueError, match=complaint):
        api.score_batch(samples, scorer or equals)
    assert equals.asked == []


def test_mistakes_in_a_single_call() -> None:
    equals = Equals()
    with pytest.raises(ValueError, match="equals needs a reference"):
        api.score("p", "r", scorer=equals)
    with pytest.raises(ValueError, match="the response is 4; it must be text"):
        api.score("p", 4, "4", scorer=equals)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='name a scorer that needs none, such as scorer="format"'):
        api.score("p", "r")
    with pytest.raises(ValueError, match="did you mean 'exact'"):
        api.score("p", "r", "g", scorer="exat")
    assert equals.asked == []


def test_a_broken_scorer_is_named() -> None:
    class Short(Equals):
        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            return []

    with pytest.raises(BrokenScorer, match="the scorer 'equals' returned 0 scores for 1 samples"):
        api.score("p", "r", "g", scorer=Short())


def test_a_scorer_that_ends_the_program_is_broken() -> None:
    class Leaving(Equals):
        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            raise SystemExit(0)

    with pytest.raises(BrokenScorer, match="the scorer 'equals' raised SystemExit: 0"):
        api.score("p", "r", "g", scorer=Leaving())


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        (r"\frac{1}{2}", "math"),
        ("Paris", "math"),
        ("B", "math"),
        ("", "math"),
        (4, "math"),
        (0.5, "math"),
        (Fraction(1, 2), "math"),
        (Decimal("0.5"), "math"),
        (["4", "four"], "math"),
        (("4", 4), "math"),
        ({"choices": ["a", "b"], "answer": "B"}, "choice"),
        ({"tests": ["assert f(1) == 2"]}, "code"),
        ("import math\nassert f(1) == 2", "code"),
        ("from solution import f\n\n\ndef test_f():\n    assert f(1) == 2\n", "code"),
        ("We assert f(1) == 2.", "math"),
        ("assert yourself (politely)", "math"),
        ({"sql": "SELECT 1", "database": "file.sqlite"}, "sql"),
        ({"reference": "module m; endmodule", "top": "m"}, "verilog"),
        ({"constraints": [{"kind": "punctuation:no_comma"}]}, "instructions"),
        ({"testbench": "module tb; endmodule"}, "verilog"),
    ],
)
def test_auto_chooses_by_the_reference(reference: object, name: str) -> None:
    assert auto_scorer(reference) == name


@pytest.mark.parametrize("reference", ["B", "(B)", {"answer": "B"}])
def test_the_letter_of_an_option_that_the_prompt_lists_is_a_choice(reference: object) -> None:
    listed = "Capital of Italy?\nA. Paris\nB. Rome"
    assert auto_scorer(reference, listed) == "choice"
    assert auto_scorer("C", listed) == auto_scorer("Rome", listed) == auto_scorer(reference, "Which one?") == "math"
    said = {"b": 1.0, "Die richtige Antwort ist B.": 1.0, "I'd go with B": 1.0, "Rome": 1.0, "B. Paris": 0.0}
    assert {text: api.score(listed, text, reference).value for text in said} == said


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        (None, "there is none"),
        (True, "cannot tell what to do with the reference True"),
        ([], "cannot tell"),
        (["4", None], "cannot tell"),
        ([True], "cannot tell"),
        ([{"tests": []}], "cannot tell"),
        (object(), "cannot tell"),
        ({"rubric": []}, "'rubric' is judged by a language model, .* set ADJUDGE_ENGINE"),
        ({"answr": "4"}, "has the keys .'answr'.; it knows choices, options, tests, sql"),
        ({}, "has the keys"),
    ],
)
def test_auto_does_not_guess(reference: object, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADJUDGE_ENGINE", raising=False)
    with pytest.raises(ValueError, match=complaint):
        auto_scorer(reference)


def test_auto_asks_the_model_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJUDGE_ENGINE", 'openai:a"b')
    assert json.loads(auto_scorer({"nuggets": ["a fact"]})) == {"nuggets": {"engine": 'openai:a"b'}}


def test_an_automatic_batch_may_hold_several_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Equals] = {}

    def load(spec: Any) -> Equals:
        return seen.setdefault(spec, Equals(name=spec))

    monkeypatch.setattr(registry._SpecLoader, "scorer", lambda self, spec: load(spec))
    monkeypatch.setattr(registry, "load", lambda spec: Auto(loader=registry._SpecLoader(base=Path(), depth=0)))
    choices = {"choices": ["x", "y"], "answer": "A"}
    samples = [Sample(prompt="p", response=str(i), reference="1" if i % 3 else choices, id=str(i)) for i in range(10)]
    values = [score.value for score in api.score_batch(samples)]
    assert values == [float(i == 1) for i in range(10)]
    assert {name: [sample.id for sample in scorer.asked] for name, scorer in seen.items()} == {
        "choice": ["0", "3", "6", "9"],
        "math": ["1", "2", "4", "5", "7", "8"],
    }


@pytest.mark.parametrize(
    ("response", "reference", "value"),
    [
        (r"so \boxed{\frac{3}{4}}", "0.75", 1.0),
        ("The answer is 0.74", "0.75", 0.0),
        ("The answer is Paris.", "Paris", 1.0),
        ("Rome", "Paris", 0.0),
        ("Answer: B", "B", 1.0),
        ("B or C", "B", 0.0),
        ("four", ["4", "four"], 1.0),
        ("4", 4, 1.0),
        ("(A)", {"choices": ["yes", "no"], "answer": "A"}, 1.0),
    ],
)
def test_without_naming_a_scorer(response: str, reference: Any, value: float) -> None:
    score = api.score("Question?", response, reference)
    assert (score.value, score.status) == (value, "scored")
    assert score.provenance.scorer == auto_scorer(reference)


def test_a_number_of_numpy_is_a_number() -> None:
    assert api.score("q", "4", numpy.int64(4)).value == api.score("q", "0.5", numpy.float32(0.5)).value == 1.0


def objects(*items: Any) -> Any:
    """An array of objects, as pandas has a list in a cell."""
    array = numpy.empty(len(items), object)
    array[:] = items
    return array


NUMBERS = "```python\nprint(sum(map(int, input().split())))\n```"
ADD = "```python\ndef add(a, b): return a + b\n```"
EDGES = [["a", "b", 1], ["b", "c", 1]]


@pytest.mark.parametrize(
    ("scorer", "response", "reference"),
    [
        ("code", NUMBERS, {"inputs": objects("1 2"), "outputs": objects("3"), "fn_name": float("nan")}),
        ("code", NUMBERS, {"input_output": {"inputs": objects("1 2"), "outputs": objects("3"), "fn_name": None}}),
        ("code", NUMBERS, {"tests": objects({"stdin": "1 2", "stdout": "3", "args": None, "expected": None})}),
        ("code", ADD, {"inputs": objects(numpy.array([1, 2])), "outputs": objects(3), "fn_name": "add"}),
        ("code", ADD, {"test_list": objects("assert add(1, 2) == 3"), "test_setup_code": float("nan")}),
        ("code", ADD, {"tests": [{"args": (1, 2), "expected": 3}], "entry_point": "add", "checker": float("nan")}),
        ("graph_answer", "yes", {"graph": {"edges": objects(*map(numpy.array, EDGES)), "directed": False},
                                 "kind": "cycle", "target": None, "source": float("nan")}),
        ("exact", "a", objects("a", "b")),
        ("numeric", "4", numpy.float32(4)),
    ],
)  # fmt: skip
def test_a_row_of_pandas_is_a_reference(scorer: str, response: str, reference: Any) -> None:
    sample = Sample(prompt="q", response=response, reference=reference)
    for score in (api.score("q", response, reference, scorer=scorer), api.score_batch([sample], scorer)[0]):
        assert score.status == "scored", score
        assert scorer == "graph_answer" or score.value == 1.0, score


def test_what_python_holds_stays_a_reference_as_it_is() -> None:
    for argument in (None, (1, 2), numpy.array([1.0, 2.0]), {"a": None, "b": 1}):
        test = {"args": [argument], "expected": True}
        source = (
            "import numpy\ndef f(x): return x is None or isinstance(x, tuple) or hasattr(x, 'dtype') or x['a'] is None"
        )
        assert api.score("q", source, {"tests": [test], "entry_point": "f"}, scorer="code").value == 1.0


CODE = {"tests": [{"stdin": "1", "stdout": "2"}]}
PROGRAM = "```python\nprint(int(input()) + 1)\n```"


@pytest.mark.parametrize(
    ("spec", "reference", "said"),
    [
        ("math", "4", "scored"),
        ("math", None, "out_of_scope"),
        ("math", CODE, "out_of_scope"),
        ("math", {"answer": "4"}, "scored"),
        ("math", {"odd": 1}, "bad_sample"),
        ("code", CODE, "scored"),
        ("code", None, "out_of_scope"),
        ("code", "4", "out_of_scope"),
        ("code", {"tests": []}, "bad_sample"),
        ("code", '{"tests": [', "gold_unparsable"),
        ("auto", CODE, "scored"),
        ("auto", None, "out_of_scope"),
        ("auto", {"odd": 1}, "bad_sample"),
        ("format", None, "scored"),
        ({"weighted": {"auto": 1.0, "repetition": 0.1}}, "4", "scored"),
        ({"weighted": {"math": 1.0, "repetition": 0.1}}, CODE, "out_of_scope"),
        ({"gate": {"gate": "repetition", "main": "code"}}, {"tests": []}, "bad_sample"),
    ],
)
def test_a_row_of_another_scorer_is_no_failure(spec: Any, reference: Any, said: str) -> None:
    rows = [Sample(prompt="p", response=PROGRAM, reference=reference), Sample(prompt="p", response="4", reference="4")]
    first, _ = run_blocking(api.score_rows(api.load(spec), rows))
    assert (first.reason if first.value is None else first.status) == said
    assert first.status == {"scored": "scored", "out_of_scope": "abstained"}.get(said, "failed")
    assert first.value is not None or (first.provenance.scorer, bool(first.evidence["error"])) == (
        api.load(spec).name,
        True,
    )


def test_auto_knows_the_layouts_of_tests() -> None:
    assert CODE_KEYS == LAYOUT_KEYS
    for reference in ({"inputs": ["1"], "outputs": ["2"]}, [{"input": "1", "output": "2"}], ["assert f() == 1"]):
        assert auto_scorer(reference) == "code"
    assert auto_scorer(["4", "four"]) == "math"


def test_verifiers_and_specs_are_scorers_too() -> None:
    samples = [{"prompt": "2+2?", "response": response, "reference": "4"} for response in ("4", "5")]
    for scorer in ("math", MathVerifier(), MathVerifier, {"weighted": {"math": 1.0}}, "{cascade: [exact, math]}"):
        assert [score.value for score in api.score_batch(samples, scorer)] == [1.0, 0.0]


def test_a_loop_that_was_closed_starts_again() -> None:
    from adjudge.runtime.loop import BackgroundLoop

    async def answer() -> int:
        return 42

    loop = BackgroundLoop()
    for _ in range(2):
        assert loop.run(answer()) == 42
        loop.close()
    loop.close()
    assert run_blocking(answer()) == 42


@pytest.mark.parametrize(
    "data", [{"tests": ["assert f(1)==2"]}, {"choices": ["a", "b"], "answer": 1}, [{"input": "1"}]]
)
def test_the_json_text_of_an_object_is_told_from_an_answer(data: Any) -> None:
    text = json.dumps(data)
    with pytest.raises(ValueError, match=r"the reference is the JSON text of .*--reference-json"):
        adjudge.score("q", "4", text)
    (failed,) = asyncio.run(adjudge.load("auto").score([Sample(prompt="q", response="4", reference=text)]))
    assert failed.reason == "bad_sample"
    assert "JSON text" in failed.evidence["error"]
    for scorer in ("math", "numeric", "choice"):
        found = adjudge.score("q", "4", text, scorer=scorer)
        assert found.reason == "gold_unparsable"
        assert "JSON text" in found.evidence["error"]
    with pytest.raises(ValueError, match="JSON text"):
        adjudge.score("q", "4", text, scorer="sql")


def test_a_json_text_that_is_the_answer_still_counts() -> None:
    assert adjudge.score("q", '{"a": 1}', '{"a": 1}').value == 1.0
    assert adjudge.score("q", r"\boxed{\{1, 2\}}", r"\{2, 1\}").value == 1.0
