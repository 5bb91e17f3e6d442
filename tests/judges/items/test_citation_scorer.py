"""The citation scorer on a published trajectory, and on small made ones that try to be paid for nothing."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge.judges.items.citations import CitationScorer
from adjudge.protocol import Sample, Score
from adjudge.scoring.conformance import check_scorer

DATA = os.environ.get("ADJUDGE_DATA", "")
PUBLISHED: dict[str, Any] = {"only_right": False, "idle": "ignore", "excess": "ignore", "grounded": False}


def run(scorer: CitationScorer, *samples: Sample) -> list[Score]:
    return asyncio.run(scorer.score(samples))


@pytest.mark.skipif(not DATA, reason="ADJUDGE_DATA is not set")
def test_the_published_trajectory_gets_its_published_rewards(scripted: Any, page_reader: Any) -> None:
    """THUDM/CaRR's own example: reward 0.8, outcome 1.0, rubric 0.6 at ratio 0.5.

    The judge is a script that looks for names in the answer and for words on the pages; which pages those are, which
    placeholders are named and what is linked with the answer is found here.
    """
    history = json.loads((Path(DATA) / "rubrics" / "carr_example.json").read_text(encoding="utf-8"))[0]
    judge = page_reader(
        names={
            "E0": ["UFC 219: Cyborg vs. Holm"],
            "E1": ["Ricky Glenn"],
            "E2": ["Myles Jury"],
            "E3": ["John McCarthy"],
        },
        needs={
            "MMA event that occurred before 2022": ["mixed martial arts event", "December 30,2017"],
            "featherweight bout between": ["Featherweight Bout"],
            "was the loser": ["Ricky Glenn (Loss)"],
            "14 significant strikes out of 83": ["14 of 83", "16.87%"],
            "failed to land any takedowns": ["0 of 4"],
            "under 35 years old": ["1988", "1989"],
            "shared the same nationality": ["American"],
            "synonym for": ['"The Gladiator"', "swordsman"],
            "was the referee": ["**Referee**: John McCarthy"],
            "worked his first event": ["1994"],
        },
    )
    rubric = [
        "<E0> is an MMA event that occurred before 2022.",
        "<E0> featured a featherweight bout between <E1> and <E2>.",
        "<E1> was the loser of the featherweight bout in <E0>.",
        "<E1> landed 14 significant strikes out of 83 attempted in <E0>, a rate of 16.87%.",
        "<E1> failed to land any takedowns out of 4 attempts in <E0>.",
        "Both <E1> and <E2> were under 35 years old at the time of <E0>.",
        "<E1> and <E2> shared the same nationality.",
        'The nickname of <E1> is a synonym for "swordsman".',
        "<E3> was the referee who officiated the featherweight bout in <E0>.",
        "<E3> worked his first event for the same MMA promotion as <E0> in 1994.",
    ]
    turns = history["history"][0]
    sample = Sample(prompt=turns[:1], response=turns[1:], reference={"rubric": rubric, "answer": history["label"][0]})
    scorer = CitationScorer(engine=scripted.ScriptedEngine(judge), ratio=0.5, **PUBLISHED)
    (score,) = run(scorer, sample)
    assert score.value == pytest.approx(0.8), score.evidence
    assert score.parts["outcome"].value == 1.0
    assert score.parts["rubric"].value == pytest.approx(0.6)
    rows = score.parts["rubric"].evidence["statements"]
    assert [at for at, row in enumerate(rows, start=1) if not row["connected"]] == [2, 6, 7, 10]
    assert [at for at, row in enumerate(rows, start=1) if row["filled"] is None] == [2, 6, 7]
    assert len(score.parts["rubric"].evidence["pages"]) == 5

    (strict,) = run(replace(scorer, idle="scale"), sample)
    idle = strict.parts["rubric"].evidence["idle"]
    assert [url.rpartition("/")[2] for url in idle] == ["Myles_Jury", "John_McCarthy_(referee)"]
    assert strict.parts["rubric"].value == pytest.approx(0.6 * 3 / 5)


PAGES = {
    "https://a.org/bout": "Ada beat Bob at the Grand Fair.",
    "https://a.org/fair": "The Grand Fair was held in Rome.",
    "https://a.org/cat": "Cats sleep a lot.",
    "https://a.org/ring": "Cid knows Dot and Dot knows Cid.",
}
RUBRIC = [
    "<E0> is a fair in Rome.",
    "<E1> beat <E2> at <E0>.",
    "<E3> knows <E4>.",
    "<E4> knows <E3>.",
]
NAMES = {"E0": ["Grand Fair"], "E1": ["Ada"], "E2": ["Bob"], "E3": ["Cid"], "E4": ["Dot"]}
NEEDS = {"fair in Rome": ["held in Rome"], "beat": ["Ada beat Bob"], "knows": ["Dot knows Cid"]}
BOUT, FAIR, CAT, RING = (f"[1]({url})" for url in PAGES)
GOOD = f"Ada beat Bob at the Grand Fair {BOUT}, which was in Rome {FAIR}.\n\n## Exact Answer\nGrand Fair"


def sample(response: Any, **more: Any) -> Sample:
    given: dict[str, Any] = {"reference": {"rubric": RUBRIC, "answer": "Grand Fair"}, "extra": {"pages": PAGES}}
    return Sample(prompt="Where did Ada beat Bob?", response=response, **{**given, **more})


@pytest.fixture
def make(scripted: Any, page_reader: Any) -> Callable[..., CitationScorer]:
    def scorer(judge: Any = None, **options: Any) -> CitationScorer:
        return CitationScorer(engine=scripted.ScriptedEngine(judge or page_reader(NAMES, NEEDS)), **options)

    return scorer


def test_outcome_and_evidence_are_mixed(make: Callable[..., CitationScorer]) -> None:
    good, wrong = run(make(), sample(GOOD), sample(GOOD.replace("Answer\nGrand", "Answer\nSmall")))
    assert (good.parts["outcome"].value, good.parts["rubric"].value) == (1.0, 0.5)
    assert good.value == pytest.approx(0.85)
    assert (wrong.parts["outcome"].value, wrong.parts["rubric"].value) == (0.0, 0.5)
    assert (wrong.value, wrong.reason) == (0.0, "wrong")


def test_citing_every_page_pays_less_than_citing_the_right_ones(make: Callable[..., CitationScorer]) -> None:
    every = GOOD.replace("which", f"{CAT} {RING} which")
    good, spam = run(make(), sample(GOOD), sample(every))
    assert spam.value is not None
    assert good.value is not None
    assert spam.value < good.value
    published, with_spam = run(make(**PUBLISHED), sample(GOOD), sample(every))
    assert published.value == with_spam.value, "the published protocol has no price for it"


def test_a_name_the_answer_does_not_say_is_nobody(make: Callable[..., CitationScorer], page_reader: Any) -> None:
    reader = page_reader(NAMES, {**NEEDS, "knows": ["Cats sleep"]})

    def judge(prompt: Any, index: int) -> str:
        said: str = reader(prompt, index)
        return said.replace("null", '"Eve"') if "json" in said else said

    response = GOOD.replace("which", f"{CAT} which")
    strict, trusting = run(make(judge), sample(response)) + run(make(judge, grounded=False), sample(response))
    assert strict.parts["rubric"].evidence["entities"]["E3"] is None
    assert trusting.parts["rubric"].evidence["entities"]["E3"] == "Eve"


def test_a_trajectory_is_judged_by_its_last_turn(make: Callable[..., CitationScorer]) -> None:
    turns = [{"role": "assistant", "content": GOOD}, {"role": "tool", "content": "x"}]
    last = [*turns, {"role": "assistant", "content": "I give up on this one."}]
    cut, gave_up = run(make(), sample(turns), sample(last))
    assert (cut.value, cut.reason) == (0.0, "no_answer")
    assert gave_up.value == 0.0
    (unfinished,) = run(make(), sample(GOOD, finish_reason="length"))
    assert (unfinished.value, unfinished.reason) == (0.0, "truncated")


def test_the_group_maximum_scales_the_rubric(make: Callable[..., CitationScorer]) -> None:
    scorer = make(normalize="group_max")
    half = GOOD.replace("Ada", "She").replace(BOUT, "")
    samples = [sample(text, group="g") for text in (GOOD, half, GOOD.replace("\nGrand", "\nSmall"))]
    samples.append(sample(half, group="h"))
    scores = run(scorer, *samples)
    assert [score.value for score in scores] == pytest.approx([1.0, 0.85, 0.0, 1.0])
    with pytest.raises(ValueError, match=r"set Sample\.group"):
        scorer.validate(sample(GOOD))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"ratio": 1.5}, "ratio=1.5"),
        ({"ratio": 1.0}, "set only_right=False"),
        ({"normalize": "group_max", "only_right": False}, "needs only_right=True"),
        ({"max_pages": 0}, "max_pages=0"),
        ({"idle": "penalty"}, "idle='penalty'"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    make: Callable[..., CitationScorer], options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        make(**options)


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ({"rubric": RUBRIC}, "the answer None"),
        ({"answer": "x"}, "list 'rubric'"),
        ({"rubric": ["<E1> is"], "answer": "x"}, "no statement names <E0>"),
        ({"rubric": RUBRIC, "answer": "x", "pages": {}}, "the key 'pages'"),
    ],
)
def test_references_that_cannot_be_judged_are_refused(
    make: Callable[..., CitationScorer], reference: Any, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        make().validate(sample(GOOD, reference=reference))


def test_without_an_outcome_no_answer_is_needed(make: Callable[..., CitationScorer]) -> None:
    (score,) = run(make(ratio=1.0, only_right=False), sample(GOOD, reference=RUBRIC))
    assert score.value == 0.5
    assert set(score.parts) == {"rubric"}


@pytest.mark.parametrize("question", ["Verdict", "json", " p1:"])
def test_no_verdict_on_one_question_leaves_no_number(
    make: Callable[..., CitationScorer], page_reader: Any, question: str
) -> None:
    reader = page_reader(NAMES, NEEDS)

    def judge(prompt: Any, index: int) -> str:
        said: str = reader(prompt, index)
        return "I cannot say." if question in said else said

    (score,) = run(make(judge), sample(GOOD))
    assert (score.status, score.reason) == ("failed", "judge_unparsable")


def test_names_are_asked_for_one_by_one_of_a_model_that_gives_no_object(scripted: Any, page_reader: Any) -> None:
    engine = scripted.Choosing(lambda choice: choice[0], None)
    reader = page_reader(NAMES, NEEDS)

    def judge(prompt: Any, index: int) -> str:
        asked = re.search(r'behind `.*"(E\d)":', prompt[-2]["content"]) if prompt[-1]["content"] == "Answer:" else None
        if asked:
            return f' "{NAMES[asked[1]][0]}"' if asked[1] in ("E0", "E1", "E2") else "null"
        said: str = reader(prompt, index)
        return "It names them." if "json" in said else said

    engine.answers = judge
    (score,) = run(CitationScorer(engine=engine), sample(GOOD))
    assert score.parts["rubric"].evidence["entities"] == {
        **{name: NAMES[name][0] for name in ("E0", "E1", "E2")},
        "E3": None,
        "E4": None,
    }


def test_it_keeps_the_rules(make: Callable[..., CitationScorer]) -> None:
    texts = (GOOD, GOOD.replace("[1](", "("), GOOD.replace("\nGrand", "\nSmall"))
    check_scorer(make(), [sample(text) for text in texts]).raise_for_failures()
    grouped = [sample(text, group="g") for text in texts]
    check_scorer(make(normalize="group_max"), grouped).raise_for_failures()
