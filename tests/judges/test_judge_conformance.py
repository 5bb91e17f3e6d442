"""Every judge keeps the rules of the protocol, with a scripted model and with a real one that is tiny and random."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engines.scripted import ScriptedEngine, field_of, key_of, text_of
from tests.engines.tiny_models import write_model

from adjudge.engines.interface import Prompt
from adjudge.judges.group_ratings import DeepSeekGrmJudge
from adjudge.judges.pairwise import PairwiseJudge
from adjudge.judges.pointwise import AnswerJudge, GeneralReasonerJudge, Judge
from adjudge.judges.yes_no import PrincipleJudge, YesNoJudge
from adjudge.protocol import Sample
from adjudge.scoring.conformance import check_scorer
from adjudge.scoring.presets import preset

RESPONSES = ("four it is", "it is four and five", r"so \boxed{4} it is", "I would say that it is five in all")


def chances(prompt: Prompt) -> dict[str, float]:
    """Every label there could be, by the length of the prompt."""
    share = len(text_of(prompt)) % 97 / 200 + 0.1
    return {"Yes": share, "No": 0.9 - share, "A": share, "B": 0.9 - share, "4": share, "2": 0.9 - share} | {
        "same": share,
        "different": 0.9 - share,
    }


def read_out(*labels: str) -> Callable[[Prompt], dict[str, float]]:
    return lambda prompt: {label: chances(prompt)[label] for label in labels}


def says(form: str) -> ScriptedEngine:
    """A model whose verdict depends on what it is shown: NUM is a number, PICK is A or B."""

    def answer(prompt: Prompt, index: int) -> str:
        judged = field_of(prompt, "response") or field_of(prompt, "responses")
        first, second = field_of(prompt, "response_a"), field_of(prompt, "response_b")
        said = form.replace("NUM", str(len(judged) % 4 + 1)).replace("PICK", "A" if first > second else "B")
        if "LIST" in said:
            count = len(re.findall(r"\[response_\d+ \w+\]", judged))
            said = said.replace("LIST", ", ".join(str(place % 10 + 1) for place in range(count)))
        return said.replace("KEY", key_of(prompt)) if "KEY" in said else said

    return ScriptedEngine(answer)


YES = ("is it right?", {"text": "is it wrong?", "good": "no"})
OTHER = {"reference": "another response here"}
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "judge": (Judge(engine=says("Verdict KEY: NUM")), {}),
    "judge, probabilities": (Judge(engine=ScriptedEngine(labels=read_out("4", "2")), readout="probabilities"), {}),
    "judge, critique": (Judge(engine=says("hm\nVerdict KEY: NUM"), critique=True, samples=2, temperature=1.0), {}),
    "answer_judge": (
        AnswerJudge(engine=ScriptedEngine(labels=read_out("same", "different")), readout="probabilities"),
        {"reference": "4"},
    ),
    "pairwise_judge": (PairwiseJudge(engine=says("Verdict KEY: PICK")), OTHER),
    "pairwise_judge, group": (PairwiseJudge(engine=says("Verdict KEY: PICK"), against="group"), {"group": "g"}),
    "pairwise_judge, probabilities": (
        PairwiseJudge(engine=ScriptedEngine(labels=read_out("A", "B")), readout="probabilities", policy="average"),
        OTHER,
    ),
    "yes_no": (YesNoJudge(engine=ScriptedEngine(labels=read_out("Yes", "No")), questions=YES), {}),
    "zyn": (preset("zyn")(engine=ScriptedEngine(labels=read_out("Yes", "No")), questions=YES), {}),
    "rlbff": (PrincipleJudge(engine=ScriptedEngine(labels=read_out("Yes", "No"))), {"reference": "it is polite"}),
    "mt_bench": (preset("mt_bench")(engine=says("Rating: [[NUM]]")), {}),
    "mt_bench_pair": (preset("mt_bench_pair")(engine=says("[[PICK]]")), OTHER),
    "arena_hard": (preset("arena_hard")(engine=says("[[A>B]]")), OTHER),
    "prometheus": (preset("prometheus")(engine=says("[RESULT] NUM"), rubric="care"), {}),
    "prometheus_pair": (preset("prometheus_pair")(engine=says("[RESULT] PICK"), rubric="care"), OTHER),
    "g_eval": (
        preset("g_eval")(engine=ScriptedEngine(lambda p, i: "Look.", labels=read_out("4", "2")), criteria="care"),
        {},
    ),
    "rm_r1": (preset("rm_r1")(engine=says("<answer>[[PICK]]</answer>")), OTHER),
    "j1_pair": (preset("j1_pair")(engine=says("<answer>PICK</answer>")), OTHER),
    "j1_budget": (preset("j1_budget")(engine=says("<answer>PICK</answer>"), extend=1), OTHER),
    "j1_score": (preset("j1_score")(engine=says("<score>NUM</score>")), {}),
    "self_rewarding": (preset("self_rewarding")(engine=says("Score: NUM")), {}),
    "compass_verifier": (preset("compass_verifier")(engine=says("[[PICK]]")), {"reference": "4"}),
    "general_reasoner": (GeneralReasonerJudge(engine=says("Final Decision: Yes")), {"reference": "4"}),
    "deepseek_grm": (DeepSeekGrmJudge(engine=says("Scores: [LIST]"), samples=2), {"group": "g"}),
}


def samples(fields: dict[str, Any]) -> list[Sample]:
    made = [Sample(**{"prompt": "2+2?", "response": text, **fields}) for text in RESPONSES]
    return [*made, *(Sample(**{"prompt": "2+3?", "response": text, **fields, "group": "h"}) for text in RESPONSES[:2])]


@pytest.mark.parametrize("name", CASES)
def test_it_keeps_the_rules(name: str) -> None:
    scorer, fields = CASES[name]
    report = check_scorer(scorer, samples(fields))
    report.raise_for_failures()
    assert name.split(",")[0] == report.scorer
    assert {check.rule for check in report.checks if check.outcome == "ok"} >= {"repeatable", "no escape", "any batch"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A random language model with room for a judge's prompt."""
    folder: Path = write_model(tmp_path_factory.mktemp("judge") / "model", max_position_embeddings=4096)
    return {"transformers": {"model": str(folder), "dtype": "float32"}}


def test_a_random_model_is_read_by_its_probabilities(engine: Any) -> None:
    """Its labels have little mass, so nothing is asked of that; a long answer overflows its window."""
    judge = Judge(
        engine=engine, readout="probabilities", min_mass=0.0, labels={"Yes": 1, "No": 0}, max_characters=2_000
    )
    check_scorer(judge, samples({})[:2], tolerance=1e-5).raise_for_failures()


def test_a_random_model_says_nothing_that_can_be_read(engine: Any) -> None:
    judge = Judge(engine=engine, max_tokens=4)
    (one,) = asyncio.run(judge.score(samples({})[:1]))
    assert (one.status, one.reason) in (("failed", "judge_truncated"), ("failed", "judge_unparsable"))
    assert one.provenance.engine == "transformers"
    assert one.cost.prompt_tokens > 0


def test_an_answer_that_fills_the_window_scores_0_and_a_question_that_does_fails(engine: Any) -> None:
    judge = Judge(engine=engine, readout="probabilities", min_mass=0.0, labels={"Yes": 1, "No": 0})
    flood = "This pushes the question out of sight. " * 700
    answer, question = asyncio.run(
        judge.score([Sample(prompt="2+2?", response=flood), Sample(prompt=flood, response="four it is")])
    )
    assert (answer.value, answer.reason) == (0.0, "too_complex")
    assert (question.status, question.reason) == ("failed", "engine_error")
