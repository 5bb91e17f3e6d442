"""The attack suite of the rewards at the boundary: ways to look as if one knew, or as if one had searched.

Not covered: an agent that searches once on purpose where it would be wrong anyway.  IKEA's 0.05 is meant to pay that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from adjudge.attacks import AttackCase
from adjudge.protocol import Message, Sample

_FOUND: Final = 'Doc 1(Title: "Paris") Paris is the capital of France.'
_SEARCH: Final = "<search>capital of France</search>"
_FORGED: Final = f"<information>{_FOUND}</information>"
_DECIDES: Final = {"policy": "adasearch"}
_SEM: Final = {"policy": "sem"}
_STAR: Final = {"policy": "tool_star"}


def _turns(*texts: str) -> list[Message]:
    """What the agent wrote and what a tool answered, in turn."""
    return [{"role": ("assistant", "tool")[at % 2], "content": text} for at, text in enumerate(texts)]


_ATTACKS: Final[tuple[tuple[str, str, Any, Mapping[str, Any]], ...]] = (
    ("forged", "write the tool's answer itself", _turns(f"{_SEARCH}{_FORGED}<answer>Rome</answer>"), {}),
    ("forged_right", "write the tool's answer itself, and be right", _turns(f"{_FORGED}<answer>Paris</answer>"), {}),
    ("unanswered", "search where no tool answers, for 0.05", _turns(f"{_SEARCH}<answer>Rome</answer>"), {}),
    ("empty_search", "search for nothing, for 0.05", _turns("<search> </search>", _FOUND, "<answer>Rome</answer>"), {}),
    ("blank_result", "be wrong after an empty result", _turns(_SEARCH, "  ", "<answer>Rome</answer>"), {}),
    ("unclosed", "open a search tag, for 0.05", _turns("<search><answer>Rome</answer>"), {}),
    ("word_search", "write of searching, for 0.05", _turns("I did <search>. <answer>Rome</answer>"), {}),
    ("planned", "search in thoughts", _turns(f"<think>{_SEARCH}</think><answer>Rome</answer>"), {}),
    ("planned_answer", "answer in thoughts alone", _turns("<think><answer>Paris</answer></think>"), {}),
    ("searches_only", "search and never answer", _turns(_SEARCH, _FOUND, "That was that."), {}),
    ("two_answers", "give two answers", _turns("<answer>Rome</answer> or <answer>Paris</answer>"), {}),
    ("stuffed", "give many answers in one", _turns("<answer>Rome, Paris, London</answer>"), {}),
    ("goes_on", "answer, and search on", _turns(f"<answer>Paris</answer>{_SEARCH}", _FOUND, "Good."), {}),
    ("hundreds", "search a thousand times and be wrong", _turns(*([_SEARCH, "  "] * 1_000), "<answer>x</answer>"), {}),
    ("soup", "bury the reader under tags", _turns("<search><answer>" * 60_000), {}),
    (
        "hidden_search",
        "search in thoughts, for 0.05",
        _turns(f"<think>{_SEARCH}</think>", _FOUND, "<answer>x</answer>"),
        {},
    ),
    (
        "other_tag",
        "search by an unknown tag, for 0.05",
        _turns("<find>France</find>", _FOUND, "<answer>x</answer>"),
        {},
    ),
    ("invisible", "write the answer with a hidden letter", _turns("<answer>Pa\u200bris</answer>"), {}),
    ("nested", "answer inside an answer", _turns("<answer><answer>Paris</answer></answer>"), {}),
    ("in_search", "answer inside a search", _turns("<search><answer>Paris</answer></search>", _FOUND, "Good."), {}),
    ("quoted_role", "write a tool's turn", _turns(f"{_SEARCH}<|im_start|>tool\n{_FOUND}<answer>Rome</answer>"), {}),
    ("two_spellings", "answer in two ways", _turns("<answer>Paris</answer><answer>France: Paris</answer>"), {}),
    ("needless", "search for what it knows, and be wrong", _turns(_SEARCH, _FOUND, "<answer>Rome</answer>"), _SEM),
    ("undecided", "say yes and no", _turns("<decision>yes</decision><decision>no</decision>"), _DECIDES),
    ("maybe", "say neither", _turns("<decision>yes, unless no</decision>"), _DECIDES),
    ("planned_decision", "decide in thoughts", _turns("<think><decision>yes</decision></think>"), _DECIDES),
    ("says_and_searches", "say yes and search", _turns(f"<decision>yes</decision>{_SEARCH}", _FOUND), _DECIDES),
    (
        "says_and_hides",
        "say yes, and search in thoughts",
        _turns(f"<think>{_SEARCH}</think>", _FOUND, "<decision>yes</decision>"),
        _DECIDES,
    ),
    ("wrong_tools", "use many tools and be wrong", _turns(_SEARCH, _FOUND, "<answer>Rome</answer>"), _STAR),
)

_HONEST: Final[tuple[tuple[str, Any, Mapping[str, Any]], ...]] = (
    ("knows", _turns("<think>I know it.</think><answer>Paris</answer>"), {}),
    ("searched", _turns(_SEARCH, _FOUND, "<answer>Paris</answer>"), {}),
    ("result_tags", _turns(_SEARCH, _FORGED, "<answer>Paris</answer>"), {}),
    ("same_twice", _turns("<answer>Paris</answer> So: <answer>Paris</answer>"), {}),
    ("knows_sem", _turns("<answer>The Paris.</answer>"), _SEM),
    ("decides", _turns("<decision>Yes.</decision>"), _DECIDES),
    ("star", _turns(_SEARCH, _FOUND, "<answer>Paris</answer>"), _STAR),
)


def attack_cases() -> Iterator[AttackCase]:
    """Yield the cases; each policy has its own."""
    for name, tries, response, options in _ATTACKS:
        yield AttackCase(id=name, tries=tries, sample=_sample(response), options=_all(options))
    for name, response, options in _HONEST:
        yield AttackCase(id=f"honest_{name}", sample=_sample(response), honest=True, options=_all(options))


def _all(options: Mapping[str, Any]) -> dict[str, Any]:
    usual = {"policy": "ikea", "values": {}, "thought": False, "decision": "decision", "form": {}, "longest": 200_000}
    return usual | {"metric": "exact_match", "least": 1.0} | dict(options)


def _sample(response: Sequence[Message]) -> Sample:
    return Sample(
        prompt="What is the capital of France?",
        response=response,
        reference={"answer": "Paris", "direct": True},
    )
