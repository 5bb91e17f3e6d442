"""The game of four roles, played by a script: a list gets better, and a list that is only told to is not chosen."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from adjudge.judges.items.principle_game import GameConfig, GameResult, Writing, play

GOOD = [Writing(prompt=f"greet {name}", text=f"Dear {name}, our boat waits.", good=True) for name in "ABCDEF"]
BAD = [Writing(prompt=f"greet {name}", text=f"Dear {name}, all the best.", good=False) for name in "ABCDEF"]
START = ("Be kind.",)


class Players:
    """All four roles.

    The detector goes by what the list says to look for ("look for boats"), else it calls everything good.  The
    optimiser makes a list of the advice.

    Args:
        scripted: the module of the scripted engine.
        advice: what the reflector says.
    """

    def __init__(self, scripted: Any, advice: str) -> None:
        self.scripted = scripted
        self.advice = advice
        self.seen: list[str] = []

    def __call__(self, prompt: Any, index: int) -> str:
        field = self.scripted.field_of
        if field(prompt, "strategies"):
            return f"{field(prompt, 'question').title()}, warmest wishes."
        if field(prompt, "mistakes"):
            return self.advice
        if field(prompt, "rules"):
            return f"So: {json.dumps([field(prompt, 'advice')[:60].splitlines()[0]])}"
        word = re.search(r"look for (\w+)", field(prompt, "principles"))
        self.seen.append(field(prompt, "response"))
        good = word is None or word[1] in field(prompt, "response")
        return f"I see.\nVerdict {self.scripted.key_of(prompt)}: {'good' if good else 'bad'}"


def game(players: Players, **options: Any) -> GameResult:
    engine = players.scripted.ScriptedEngine(players)
    config = GameConfig(**{"rounds": 2, "reflections": 1, **options})
    return asyncio.run(play(engine, [*GOOD, *BAD], principles=START, strategies=("Be vague.",), config=config))


def test_a_list_that_tells_good_from_bad_wins(scripted: Any) -> None:
    result = game(Players(scripted, "look for boat"))
    assert result.principles == ("look for boat",)
    assert result.accuracy == 1.0
    assert [one.kind for one in result.rounds] == ["game", "game", "reflection"]
    assert (result.rounds[0].judged, result.rounds[0].right) == (6, 3), "three good texts and three generated ones"
    assert (result.rounds[1].judged, result.rounds[1].right) == (6, 6)
    assert result.cost.completion_tokens > 0


def test_a_list_that_calls_all_bad_is_no_better_than_the_first(scripted: Any) -> None:
    result = game(Players(scripted, "look for nothing that anybody would write"))
    assert result.principles == START
    assert result.accuracy == 0.5


def test_the_same_seed_plays_the_same_game(scripted: Any) -> None:
    first, again = (game(Players(scripted, "look for boat"), seed=5) for _ in range(2))
    assert first == again


def test_unseen_texts_teach_nobody(scripted: Any) -> None:
    players = Players(scripted, "look for nothing that anybody would write")
    engine = scripted.ScriptedEngine(players)
    config = GameConfig(rounds=2, reflections=3)
    asyncio.run(play(engine, [*GOOD, *BAD], principles=START, strategies=("Be vague.",), config=config))
    unseen = players.seen[:6]  # the first list is measured before anything else
    taught = [scripted.field_of(prompt, field) for prompt in engine.asked for field in ("mistakes", "advice")]
    assert sum(map(bool, taught)) > 4
    assert not [text for text in unseen for lesson in taught if text in lesson]


def test_an_optimiser_that_writes_no_list_changes_nothing(scripted: Any) -> None:
    class Rambling(Players):
        def __call__(self, prompt: Any, index: int) -> str:
            said = super().__call__(prompt, index)
            return said.replace("[", "").replace("]", "") if self.scripted.field_of(prompt, "rules") else said

    result = game(Rambling(scripted, "look for boat"))
    assert (result.principles, result.strategies) == (START, ("Be vague.",))


def test_an_engine_that_is_down_chooses_nothing(scripted: Any) -> None:
    engine = scripted.ScriptedEngine(lambda prompt, index: scripted.fault())
    with pytest.raises(RuntimeError, match="no verdict on the unseen texts"):
        asyncio.run(play(engine, [*GOOD, *BAD], principles=START, strategies=START, config=GameConfig(rounds=1)))


@pytest.mark.parametrize(
    ("labelled", "principles", "complaint"),
    [([*GOOD], START, "0 of the labelled texts are bad"), ([*GOOD, *BAD], (), "0 principles"), ([], START, "are good")],
)
def test_a_game_that_cannot_be_played_is_refused(scripted: Any, labelled: Any, principles: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        asyncio.run(play(scripted.ScriptedEngine(), labelled, principles=principles, strategies=START))


@pytest.mark.parametrize("options", [{"batch": 0}, {"unseen": 1.0}, {"temperature": 0.0}, {"rounds": -1}])
def test_a_configuration_that_means_nothing_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        GameConfig(**options)
