"""Dialogues with scripted models: changes, ends, silence, faults, seeds, and the same dialogue live."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.scripted import Choosing, Said, ScriptedEngine, fault, field_of, key_of, text_of
from tests.verifiers.agents.user.playing import honest, quotes_after, quotes_before, repeats
from tests.verifiers.agents.user.tries import attack_cases

from adjudge import load
from adjudge.engines.interface import Fault, Prompt
from adjudge.protocol import Sample, Score, response_text
from adjudge.scoring.attacks import AttackCase
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.agents.user.dialogue import turns_of
from adjudge.verifiers.agents.user.scorer import Reaction, SimulatedUserScorer, UserSession, read_words

PERSON = {"persona": "Mina, a nurse.", "goal": "To be heard."}
CASES = list(attack_cases())


def says(*changes: str) -> ScriptedEngine:
    """A model that names these changes, one turn after the other."""

    def answer(prompt: Prompt, index: int) -> str:
        del index
        turn = field_of(prompt, "dialogue").count("[assistant ")
        return f"Because.\nChange {key_of(prompt)}: {changes[min(turn, len(changes)) - 1]}"

    return ScriptedEngine(answer)


def dialogue(*turns: str) -> list[dict[str, str]]:
    """Turns of the assistant with the user's between them."""
    made = []
    for text in turns:
        made += [{"role": "assistant", "content": text}, {"role": "user", "content": "Well."}]
    return made[:-1]


def scored(engine: ScriptedEngine, response: Any, reference: Any = PERSON, **options: Any) -> Score:
    sample = Sample(prompt="My cat died.", response=response, reference=reference)
    return asyncio.run(SimulatedUserScorer(engine=engine, **options).score([sample]))[0]


def test_the_reward_is_the_last_feeling_and_the_steps_are_its_changes() -> None:
    response = dialogue("I see it.", "That is hard.", "Rest a bit.")
    score = scored(says("+7", "-20", "3"), response)
    assert score.value == pytest.approx((40 + 7 - 10 + 3) / 100)
    assert [(step.value, step.label) for step in score.steps] == [(7, "B"), (-10, "C"), (3, "B")]
    text = response_text(Sample(prompt="", response=response))
    assert [text[step.start : step.end] for step in score.steps] == ["I see it.", "That is hard.", "Rest a bit."]
    assert score.evidence["end"] == "open"
    assert score.provenance.engine == "scripted"
    assert score.provenance.revision.startswith("script user_change@")


@pytest.mark.parametrize(
    ("start", "change", "value", "end"), [(95, "+8", 1.0, "happy"), (15, "-6", 0.09, "angry"), (99, "0", 0.99, "open")]
)
def test_turns_after_an_end_do_not_count(start: float, change: str, value: float, end: str) -> None:
    engine = says(change, "+10" if end == "angry" else "-10")
    score = scored(engine, dialogue("Look here.", "And there."), {**PERSON, "start": start})
    assert score.evidence["end"] == end if end != "open" else score.evidence["turns"][0]["emotion"] == 99
    if end != "open":
        assert score.value == pytest.approx(value)
        assert [step.label for step in score.steps] == [end, "unheard"]
        assert score.steps[1].value is None
        assert len(engine.asked) == 1


def test_steps_add_up_to_the_reward_where_the_scale_ends() -> None:
    score = scored(says("+10", "+10"), dialogue("So kind.", "So kind."), {**PERSON, "start": 93})
    assert [step.value for step in score.steps] == [7, None]
    assert score.value == 1.0


@pytest.mark.parametrize("answer", ["I cannot say.", "Change: +10", "Change KEY: a lot", "Change KEY: +3 or -3", ""])
def test_an_unparsable_change_is_neither_zero_nor_no_change(answer: str) -> None:
    """A simulator that takes a change that it cannot read for 0 pays for texts that leave it speechless."""
    engine = ScriptedEngine(lambda prompt, index: answer.replace("KEY", key_of(prompt)))
    score = scored(engine, dialogue("I see it.", "That is hard."))
    assert (score.status, score.value, score.reason) == ("failed", None, "judge_unparsable")
    assert [step.label for step in score.steps] == ["unjudged", "unjudged"]


def test_a_change_that_is_asked_for_alone_is_one_the_scale_allows_and_is_told() -> None:
    engine = Choosing(lambda choice: choice[0], 0.9)
    score = scored(engine, dialogue("I see it.", "That is hard."), max_change=5)
    assert score.value == pytest.approx((40 - 5 - 5) / 100)
    assert [(turn["said"], turn["forced_mass"]) for turn in score.evidence["turns"]] == [(-5, 0.9)] * 2
    assert scored(Choosing(lambda choice: choice[0], 0.4), dialogue("I see it.")).reason == "judge_unparsable"


def test_a_fault_of_the_engine_keeps_what_was_known_before() -> None:
    def answer(prompt: Prompt, index: int) -> Said:
        return honest(prompt, index) if field_of(prompt, "dialogue").count("[assistant") == 1 else fault()

    score = scored(ScriptedEngine(answer), dialogue("I am sorry that this happened.", "And now?"))
    assert (score.status, score.reason) == ("failed", "engine_unavailable")
    assert [(step.value, step.label) for step in score.steps] == [(10, "B"), (None, "unjudged")]
    assert score.evidence["end"] == "unknown"


def test_a_prompt_that_the_response_makes_too_long_is_worth_nothing() -> None:
    """Also where an earlier turn is the long one: no failure can be bought."""

    def answer(prompt: Prompt, index: int) -> Said:
        return fault("engine_error", too_long=True) if len(text_of(prompt)) > 4000 else honest(prompt, index)

    for response in ("many words " * 400, dialogue("many words " * 150, "more words " * 150, "the end")):
        score = scored(ScriptedEngine(answer), response)
        assert (score.value, score.reason) == (0.0, "too_complex")


@pytest.mark.parametrize("silent", ["", " \n", "<think>I will be kind.</think>", "\u200b", "..."])
def test_a_silent_turn_costs_the_most_without_a_question(silent: str) -> None:
    engine = says("+1", "+1")
    score = scored(engine, dialogue("I hear you.", silent))
    assert [step.value for step in score.steps] == [1, -10]
    assert len(engine.asked) == 1


def test_messages_without_the_user_between_them_are_one_turn() -> None:
    response = [{"role": "assistant", "content": f"Part {number}."} for number in range(5)]
    response.insert(2, {"role": "tool", "content": "a page"})
    score = scored(says("+10"), response)
    assert [step.value for step in score.steps] == [10]
    assert (score.steps[0].start, score.steps[0].end) == (0, len(response_text(Sample(prompt="", response=response))))


def test_the_user_hears_neither_reasoning_nor_tools_nor_later_turns() -> None:
    engine = says("+1")
    response = [
        {"role": "assistant", "content": "<think>secret plan</think>Aloud now."},
        {"role": "tool", "content": "secret page"},
        {"role": "user", "content": "Later words."},
        {"role": "assistant", "content": "Third words."},
    ]
    scored(engine, response)
    first, second = (field_of(prompt, "dialogue") for prompt in engine.asked)
    assert "secret" not in first + second
    assert "Aloud now." in first
    assert "Third" not in first
    assert "Third words." in second
    assert "was 40 of 100" in text_of(engine.asked[0])
    assert "was 41 of 100" in text_of(engine.asked[1])


def test_no_more_turns_count_than_asked_for() -> None:
    score = scored(says("+1"), dialogue("One word.", "Two words.", "Three words."), max_turns=2)
    assert [step.label for step in score.steps] == ["B", "B", "unheard"]
    assert score.value == pytest.approx(0.42)


@pytest.mark.parametrize(
    "model", [honest, quotes_before, quotes_after], ids=["honest", "quotes before", "quotes after"]
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_attacks_do_not_pay_and_kind_words_do(case: AttackCase, model: Callable[[Prompt, int], str]) -> None:
    (score,) = asyncio.run(SimulatedUserScorer(engine=ScriptedEngine(model)).score([case.sample]))
    assert score.value == (1.0 if case.honest else 0.0), score
    assert not case.reason or score.reason == case.reason


@pytest.mark.parametrize("case", [case for case in CASES if not case.honest], ids=lambda case: case.id)
def test_a_model_that_only_repeats_is_no_judge(case: AttackCase) -> None:
    (score,) = asyncio.run(SimulatedUserScorer(engine=ScriptedEngine(repeats)).score([case.sample]))
    assert score.value == 0.0 if score.status == "scored" else score.reason == "judge_unparsable"


def test_the_suite_is_large_enough_and_its_names_are_its_own() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
    assert [case.honest for case in CASES].count(False) >= 25


def moody(prompt: Prompt, index: int) -> str:
    """Draws: its answer depends on the seed."""
    if "[begin analysis" in str(prompt):
        return f"Words {index % 7}."
    return f"Change {key_of(prompt)}: {index % 21 - 10}"


def test_each_turn_of_each_dialogue_has_a_seed_of_its_own_and_always_the_same() -> None:
    texts = [dialogue(f"Hello {name}.", "And so on.", "Once more.") for name in ("Ada", "Bo", "Cy")]
    samples = [Sample(prompt="Hm.", response=text, reference=PERSON) for text in texts]
    engine = ScriptedEngine(moody)
    user = SimulatedUserScorer(engine=engine, temperature=1.0, seed=3)
    together = asyncio.run(user.score(samples))
    assert len({sampling.seed for sampling in engine.samplings}) == len(engine.asked) >= 6
    alone = [asyncio.run(user.score([sample]))[0] for sample in samples]
    assert [score.to_dict() for score in alone] == [score.to_dict() for score in together]
    other = asyncio.run(SimulatedUserScorer(engine=engine, temperature=1.0, seed=4).score(samples))
    assert [score.value for score in other] != [score.value for score in together]


def test_without_a_temperature_all_dialogues_share_a_call_for_each_turn() -> None:
    engine = ScriptedEngine(honest)
    samples = [Sample(prompt="Hm.", response=dialogue(f"Hello {n}.", "Go on."), reference=PERSON) for n in range(5)]
    asyncio.run(SimulatedUserScorer(engine=engine).score(samples))
    assert len(engine.samplings) == 2
    assert len(engine.asked) == 10


@pytest.mark.parametrize(("model", "temperature"), [(honest, 0.0), (moody, 0.7)], ids=["honest", "moody"])
def test_a_dialogue_has_the_same_course_live_and_afterwards(model: Any, temperature: float) -> None:
    user = SimulatedUserScorer(engine=ScriptedEngine(model), temperature=temperature, max_turns=4)

    async def talk() -> tuple[UserSession, list[Reaction]]:
        session = UserSession(user, PERSON, "My cat died.")
        told = []
        for number in range(4):
            if session.over:
                break
            reaction = await session.hear(f"<think>hm</think>I am sorry that this happened, {number}.")
            assert isinstance(reaction, Reaction)
            told.append(reaction)
        return session, told

    session, told = asyncio.run(talk())
    (score,) = asyncio.run(user.score([session.sample()]))
    assert score.value == pytest.approx(session.reward)
    assert [step.value for step in score.steps] == [reaction.change for reaction in told]
    assert told[-1].text == ""
    assert all(reaction.text for reaction in told[:-1])
    assert session.over


def test_a_session_is_left_as_it_was_by_a_fault_and_closed_at_its_end() -> None:
    broken = [True]

    def answer(prompt: Prompt, index: int) -> Said:
        return fault() if broken[0] and "[begin analysis" in str(prompt) else honest(prompt, index)

    async def talk() -> None:
        user = SimulatedUserScorer(engine=ScriptedEngine(answer), max_turns=2)  # the turn that failed is none
        session = UserSession(user, {**PERSON, "start": 85}, "My cat died.")
        before = session.sample()
        assert isinstance(await session.hear("I am sorry that this happened."), Fault)
        assert (session.sample(), session.reward) == (before, 0.85)
        broken[0] = False
        reaction = await session.hear("I am sorry that this happened.")
        assert isinstance(reaction, Reaction)
        assert (reaction.text, reaction.change, reaction.emotion, reaction.band) == ("Thank you.", 10, 95, "A")
        assert reaction.cost.prompt_tokens == 20
        last = await session.hear("I am sorry that this happened.")
        assert isinstance(last, Reaction)
        assert (last.text, last.change, last.band, last.over) == ("", 5, "happy", True)
        with pytest.raises(ValueError, match="begin another session"):
            await session.hear("More.")

    asyncio.run(talk())


@pytest.mark.parametrize(
    ("text", "words"),
    [(" Well. ", "Well."), ("<think>He is kind.</think>Well.", "Well."), ("", None), ("<think>never", None),
     ("so " * 4000, None)],
)  # fmt: skip
def test_the_users_words_are_what_is_said_aloud(text: str, words: str | None) -> None:
    assert read_words(text) == words


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        (None, "has none"),
        ("", "persona"),
        (7, "give a text"),
        ({"goal": "x"}, "no persona"),
        ({"persona": "x", "mood": 3}, "'mood'"),
        ({"persona": "x", "start": 100}, "below 100"),
        ({"persona": "x", "start": float("nan")}, "finite"),
        ({"persona": "x" * 30_000}, "at most"),
    ],
)
def test_a_reference_that_is_nobody_is_refused(reference: Any, complaint: str) -> None:
    user = SimulatedUserScorer(engine=ScriptedEngine(honest))
    sample = Sample(prompt="Hm.", response="", reference=reference)
    with pytest.raises(ValueError, match=complaint):
        user.validate(sample)
    (score,) = asyncio.run(user.score([sample]))
    assert score.reason == ("bad_sample" if reference is None else "gold_unparsable")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [({"start": 5}, "start"), ({"start": True}, "start"), ({"max_change": 0}, "max_change"),
     ({"max_turns": 0}, "max_turns"), ({"truncated": "no"}, "truncated")],
)  # fmt: skip
def test_options_out_of_range_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        SimulatedUserScorer(engine=ScriptedEngine(honest), **options)


@pytest.mark.parametrize("message", [3, None, {"role": "assistant", "content": 3}, {"role": "user", "content": [3]}])
def test_a_message_that_is_none_costs_its_own_sample_alone(message: Any) -> None:
    """In a response it is the response's fault, in a prompt that of the data."""
    good = Sample(prompt="Hm.", response="I am sorry that this happened.", reference=PERSON)
    bad: list[Any] = [{"role": "assistant", "content": "I am sorry that this happened."}, message]
    user = SimulatedUserScorer(engine=ScriptedEngine(honest))
    samples = [dataclasses.replace(good, response=bad), dataclasses.replace(good, prompt=bad), good]
    found = [(score.status, score.value, score.reason) for score in asyncio.run(user.score(samples))]
    assert found == [("scored", 0.0, "no_answer"), ("failed", None, "gold_unparsable"), ("scored", 0.5, "")]


def test_a_cut_off_dialogue_is_judged_unless_it_shall_not() -> None:
    sample = Sample(prompt="Hm.", response="I am sorry that", reference=PERSON, finish_reason="length")
    for truncated, reason in (("grade", ""), ("zero", "truncated")):
        user = SimulatedUserScorer(engine=ScriptedEngine(honest), truncated=truncated)  # type: ignore[arg-type]
        assert asyncio.run(user.score([sample]))[0].reason == reason


def test_the_recipe_of_rlver_pays_the_published_number() -> None:
    """By hand: 40 + 10 (of 14) - 10 (of 30) + 6 = 46."""
    loaded = load({"rlver": {"engine": ScriptedEngine(honest)}})
    assert isinstance(loaded, SimulatedUserScorer)
    user = dataclasses.replace(loaded, engine=says("+14", "-30", "+6"))
    sample = Sample(prompt="Hm.", response=dialogue("One two.", "Three four.", "Five six."), reference=PERSON)
    assert asyncio.run(user.score([sample]))[0].value == pytest.approx(0.46)


def test_it_keeps_the_rules() -> None:
    texts = ("I am sorry that this happened.", "Go away now.", dialogue("Go away.", "I am sorry that this happened."))
    samples = [Sample(prompt="My cat died.", response=text, reference=PERSON) for text in texts]
    report = check_scorer(SimulatedUserScorer(engine=ScriptedEngine(honest)), samples)
    report.raise_for_failures()
    assert {check.rule for check in report.checks if check.outcome == "ok"} >= {"repeatable", "no escape", "any batch"}


ROLES = st.sampled_from(["assistant", "user", "tool", "system", "", None, 3])
CONTENTS = st.one_of(st.text(max_size=40), st.none(), st.lists(st.fixed_dictionaries({"text": st.text(max_size=9)})))


@settings(max_examples=40)
@given(st.lists(st.fixed_dictionaries({"role": ROLES, "content": CONTENTS}), max_size=8))
def test_any_turns_are_read_and_their_places_are_in_the_text(response: Sequence[Any]) -> None:
    sample = Sample(prompt="Hm.", response=response, reference=PERSON)
    text = response_text(sample)
    turns = turns_of(sample, "strip")
    assert all(0 <= turn.start <= turn.end <= len(text) for turn in turns)
    assert all(one.end < other.start for one, other in itertools.pairwise(turns))
    for turn in turns:
        assert all(part in text[turn.start : turn.end] for part in turn.text.split("\n"))


@settings(max_examples=40)
@given(st.text(max_size=80))
def test_no_answer_of_a_model_breaks_anything(text: str) -> None:
    engine = ScriptedEngine(lambda prompt, index: text.replace("K", key_of(prompt)))
    score = scored(engine, "I hear you.")
    assert score.status == "failed" or 0.3 <= (score.value or 0.0) <= 0.5


def test_thousands_of_turns_are_read_in_no_time() -> None:
    """A copy of the dialogue for each turn of it would take minutes."""
    sample = Sample(prompt="Hm.", response=dialogue(*["a <think> b"] * 3_000), reference=PERSON)
    turns = turns_of(sample, "strip")
    assert len(turns) == 3_000
    assert turns[0].history is turns[-1].history
    assert scored(says("+1"), dialogue(*["I hear."] * 1_000)).value == pytest.approx(0.6)
