"""The scripted engine of the tests of engines, and judges that look at what they are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.engines import scripted as script


@pytest.fixture(scope="session")
def scripted() -> Any:
    """The module tests/engines/scripted.py."""
    return script


@pytest.fixture(scope="session")
def honest(scripted: Any) -> Callable[..., str]:
    """A judge of criteria `mentions WORD`: it looks for the word in the response, unless that is the criterion itself.

    "unsure" in a criterion makes it unsure; other kinds than yes or no get their best or their worst verdict.
    """

    def answer(prompt: Any, index: int) -> str:
        key, response = scripted.key_of(prompt), scripted.field_of(prompt, "response")
        verdicts = dict(re.findall(r"^(\d+): (.*)$", scripted.text_of(prompt).split("verdicts there are:")[-1], re.M))
        lines = ["I looked for each word."]
        for number, text in re.findall(r"^(\d+)\. (.*)$", scripted.field_of(prompt, "criteria"), re.M):
            word = re.search(r"mentions (\w+)", text)
            met = word is not None and re.search(rf"(?<!mentions )\b{word[1]}\b", response) is not None
            lines.append(f"{key} {number}: {'unsure' if 'unsure' in text else _verdict(verdicts[number], met)}")
        return "\n".join(lines)

    return answer


def _verdict(asked: str, met: bool) -> str:
    if asked.startswith("yes"):
        return "yes" if met else "no"
    if asked.startswith("support"):
        return "support" if met else "not_support"
    if asked.startswith("a whole number"):
        return "100" if met else "0"
    found = re.search(r"1 to (\d+)", asked)
    assert found is not None
    return found[1] if met else "1"


@pytest.fixture(scope="session")
def page_reader(scripted: Any) -> Callable[..., Any]:
    """Makes a judge of answers with sources; see `PageReader`."""
    return lambda names, needs: PageReader(scripted, names, needs)


class PageReader:
    """A judge that reads what it is shown.

    Args:
        scripted: the module of the scripted engine.
        names: what may stand for each placeholder; the first that occurs in the response is given.
        needs: for a part of a statement, the texts that must all stand in the pages.
    """

    def __init__(self, scripted: Any, names: dict[str, list[str]], needs: dict[str, list[str]]) -> None:
        self.scripted = scripted
        self.names = names
        self.needs = needs

    def __call__(self, prompt: Any, index: int) -> str:
        field, key = self.scripted.field_of, self.scripted.key_of(prompt)
        if right := field(prompt, "correct_answer"):
            final = field(prompt, "response").rpartition("Exact Answer")[2]
            return f"Verdict {key}: {'yes' if right in final else 'no'}"
        if pages := field(prompt, "pages"):
            return "\n".join(self.supported(field(prompt, "statements"), pages, key, self.scripted.text_of(prompt)))
        wanted = re.findall(r"\bE\d+\b", self.scripted.text_of(prompt).split("or each of these")[-1].split(".")[0])
        response = field(prompt, "response")
        found = {one: next((name for name in self.names[one] if name in response), None) for one in wanted}
        found["key"] = key
        return f"```json\n{json.dumps(found)}\n```"

    def supported(self, statements: str, pages: str, key: str, whole: str) -> list[str]:
        lines, used = [], []
        for number, text in re.findall(r"^(\d+)\. (.*)$", statements, re.M):
            need = next((texts for part, texts in self.needs.items() if part in text), ["(never)"])
            met = all(one in pages for one in need)
            used += need if met else []
            lines.append(f"{key} {number}: {'yes' if met else 'no'}")
        shown = re.split(r"^page \d+: ", pages, flags=re.M)[1:]
        if "p1: page 1" in whole:
            for number, page in enumerate(shown, start=1):
                lines.append(f"{key} p{number}: {'yes' if any(one in page for one in used) else 'no'}")
        return lines
