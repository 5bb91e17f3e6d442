"""What was found out about one answer with sources, and the share of statements that it earns.

Two statements are neighbours when they share a placeholder.  A breadth-first search starts at <E0> and walks over
supported statements only; what it reaches counts.  A ring of statements that support each other and never come to <E0>
is not reached.

Source: CaRR (THUDM/CaRR, deepsearch_rm_with_rubrics/launch_server.py @ c97e7e8).

Statements with placeholders: `<E1> was the loser of the bout in <E0>`, where `<E0>` is the final answer.

The addresses an answer cites, in Markdown: `[4](https://...)`, also `[[4](https://...)]` and bare `<https://...>`.

What stands in a list of references at the end is not a citation of anything said, so the text is cut there first; and
an address inside code is not read.

The only pages a citation can stand on are what tools returned: tool turns of the response (and of the prompt, where a
conversation went before), or `Sample.extra["pages"]`, a mapping of addresses to texts.  Assistant turns are never read,
and neither is what a tool returned whose name says nothing of searching or reading pages: a model that prints a page
with a Python tool has not found one.  Read are JSON (an object or a list of objects with `url` and `content`, `text`,
`snippet` or `description`), and the layout of the browser tools of CaRR: `Title: / URL Source: / Markdown Content:` for
a page, the same keys behind `[0]`, `[1]`, ... for search results, and what a find tool returns, which belongs to the
page opened last.

Outcome and rubric in one reward: CaRR's weighted sum and C-GRPO's two ways to use it in a group.

    CaRR:    R = (1 - a) outcome + a rubric
    C-GRPO:  R = (1 - a) outcome + a rubric'  where the outcome is positive, else R = outcome;  a = 0.3

In the paper rubric' is the rubric reward divided by the largest of the group.  The flags of the released scripts
(normalize, and rubric for right answers only) lead into a branch that adds the raw rubric reward instead
(slime/rollout/sglang_rollout.py 352-360 @ c97e7e8).  Here the choice has a name.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from adjudge.protocol import Message, Sample, content_text
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import entries_of, shown, text_of

Normalize: TypeAlias = Literal["group_max", "none"]

TRAINING_RATIO = 0.3


def mixed(outcome: float, rubric: float, *, ratio: float) -> float:
    """Return CaRR's reward of one response, in [0, 1].

    Args:
        outcome: 1 if the answer is right, else 0.
        rubric: share of statements that count, in [0, 1].
        ratio: weight of the rubric, in [0, 1].
    """
    for what, value in (("outcome", outcome), ("rubric", rubric), ("ratio", ratio)):
        if not 0 <= value <= 1:
            raise ValueError(f"the {what} is {value!r}; it must be in [0, 1]")
    return (1 - ratio) * outcome + ratio * rubric


def group_rewards(
    outcomes: Sequence[float],
    rubrics: Sequence[float],
    *,
    ratio: float = TRAINING_RATIO,
    normalize: Normalize = "group_max",
) -> list[float]:
    """Return C-GRPO's rewards of the responses to one prompt, each in [0, 1].

    A response whose outcome is 0 gets 0: evidence for a wrong answer pays nothing.

    Args:
        outcomes: 1 or 0 for each response.
        rubrics: the rubric reward of each, in [0, 1].
        ratio: weight of the rubric.
        normalize: "group_max" divides by the largest rubric reward of the group, as in the paper; "none" is what the
            released scripts do.

    Raises:
        ValueError: the lists differ in length, or a value is out of range.
    """
    if normalize not in get_args(Normalize):
        raise ValueError(f"normalize is {normalize!r}; it must be one of {', '.join(get_args(Normalize))}")
    if len(outcomes) != len(rubrics):
        raise ValueError(f"{len(rubrics)} rubric rewards for {len(outcomes)} outcomes; give one for each")
    largest = max(rubrics, default=0.0) if normalize == "group_max" else 1.0
    scale = largest or 1.0  # nobody has any: 0 stays 0
    return [
        mixed(outcome, rubric / scale, ratio=ratio) if outcome > 0 else 0.0
        for outcome, rubric in zip(outcomes, rubrics, strict=True)
    ]


_REFERENCES = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]*(?:references|sources|bibliography|works cited)[ \t:]*$", re.I | re.M)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_OPENING = re.compile(r"\]\((?:view-source:)?(?=https?://)|<(?=https?://)")
_PROXY = re.compile(r"https?://r\.jina\.ai/(?=https?://)")
_LONGEST = 2048  # characters of an address


def explanation(text: str) -> str:
    """Return the text before its last list of references."""
    cuts = [cut.start() for cut in _REFERENCES.finditer(text)]
    return text[: cuts[-1]].rstrip() if cuts else text


def cited(text: str) -> list[str]:
    """Return the addresses that a text cites, each once, in order, in the form of `address`."""
    text = _CODE.sub(" ", text)
    urls: dict[str, None] = {}
    for opening in _OPENING.finditer(text):
        url = _until(text, opening.end(), ">" if opening[0] == "<" else ")")
        if url:
            urls.setdefault(address(url))
    return list(urls)


def address(url: str) -> str:
    """Return the form in which addresses are compared: no reader proxy, no fragment, no slash at the end."""
    url = _PROXY.sub("", url.strip().removeprefix("view-source:")).partition("#")[0]
    scheme, slashes, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}{slashes}{host.lower()}{slash}{path}".rstrip("/")


def _until(text: str, start: int, closing: str) -> str:
    """Return the address that starts here and ends at the bracket that closes it; brackets inside may be paired."""
    depth = 0
    for at in range(start, min(len(text), start + _LONGEST)):
        char = text[at]
        if char.isspace():
            return text[start:at] if closing == ")" and text[at:].lstrip()[:1] == '"' else ""
        if char == closing and depth == 0:
            return text[start:at]
        if char in "[]<>":  # no part of an address; without this, a row of openings is read 2,048 characters each
            return ""
        depth += (char == "(") - (char == ")")
    return ""


ANSWER = "E0"
"""The placeholder of the final answer, where every chain of evidence starts."""

_PLACEHOLDER = re.compile(r"<(E[0-9]{1,3})>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement about unknowns.

    Attributes:
        text: the statement with its placeholders.
        entities: the placeholders in it, each once, in order.
    """

    text: str
    entities: tuple[str, ...]

    def filled(self, values: Mapping[str, str | None]) -> str | None:
        """Return the statement with what stands for each placeholder, or None if one of them is not known.

        All places are filled in one pass, so a value that looks like a placeholder stays as it is.
        """
        known = {entity: value for entity in self.entities if (value := values.get(entity)) is not None}
        if len(known) < len(self.entities):
            return None
        return _PLACEHOLDER.sub(lambda place: known[place[1]], self.text)


def read_statements(listed: Any) -> tuple[Statement, ...]:
    """Return the statements of a list of texts, or of mappings with a text.

    Raises:
        BadReferenceError: an entry is not text, or names no placeholder; or none of them names the answer, <E0>, so
            that nothing could ever be connected with it.
    """
    statements = []
    for at, entry in enumerate(entries_of(listed, "rubric", inside="citations"), start=1):
        text = text_of(entry if isinstance(entry, Mapping) else {"text": entry}, ("text",), where=f"statement {at}")
        entities = tuple(dict.fromkeys(_PLACEHOLDER.findall(text)))
        if not entities:
            raise BadReferenceError(f"statement {at} names no placeholder such as <E0>: {shown(text)}")
        statements.append(Statement(text=text, entities=entities))
    if not any(ANSWER in statement.entities for statement in statements):
        raise BadReferenceError("no statement names <E0>, the answer, so no statement can be connected with it")
    return tuple(statements)


def entities_of(statements: Sequence[Statement]) -> tuple[str, ...]:
    """Return all placeholders, by number."""
    entities = {entity for statement in statements for entity in statement.entities}
    return tuple(sorted(entities, key=lambda entity: int(entity[1:])))


def connected(entities: Sequence[Collection[str]], supported: Sequence[bool]) -> list[bool]:
    """Return for each statement whether it is supported and linked to <E0> by supported statements."""
    waiting, seen = deque([ANSWER]), {ANSWER}
    reached = [False] * len(entities)
    while waiting:
        entity = waiting.popleft()
        for at, members in enumerate(entities):
            if supported[at] and not reached[at] and entity in members:
                reached[at] = True
                fresh = [member for member in members if member not in seen]
                seen.update(fresh)
                waiting.extend(fresh)
    return reached


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What is known about one answer.

    Attributes:
        statements: the statements with their placeholders.
        values: what the answer names for each placeholder; None if nothing.
        supported: whether the cited pages support each statement.
        cited: the addresses that the answer cites.
        pages: those that a tool returned, and that were read.
        idle: those of the cited that support nothing, where that costs something.
        excess: whether more was cited than is read, and that costs everything.
    """

    statements: tuple[Statement, ...]
    values: Mapping[str, str | None]
    supported: tuple[bool, ...]
    cited: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    excess: bool = False

    @property
    def reward(self) -> float:
        """Connected statements by all statements, times the share of cited pages that are not idle, in [0, 1]."""
        if self.excess or not self.pages:
            return 0.0
        reached = connected([statement.entities for statement in self.statements], self.supported)
        used = 1 - len(self.idle) / len(self.cited)
        return used * sum(reached) / len(reached)

    def evidence(self) -> dict[str, Any]:
        """Return plain data for a person who wants to check."""
        reached = connected([statement.entities for statement in self.statements], self.supported)
        rows = [
            {
                "statement": statement.text,
                "filled": statement.filled(self.values),
                "supported": supported,
                "connected": linked,
            }
            for statement, supported, linked in zip(self.statements, self.supported, reached, strict=True)
        ]
        listed = {"cited": list(self.cited), "pages": list(self.pages), "idle": list(self.idle)}
        return {"entities": dict(self.values), "statements": rows, **listed, "excess": self.excess}


_HIT = re.compile(r"^\[(\d{1,3})\] Title:", re.MULTILINE)
_HIT_LINE = re.compile(r"^\[\d{1,3}\] (Title|URL Source|Description|Date): ?(.*)$")
_HEAD = re.compile(r"^(Title|URL Source|Published Time|Markdown Content): ?(.*)$")
_READS_PAGES = re.compile(r"search|open|find|visit|brows|fetch|scrap|retriev|crawl|click|page|url|wiki", re.IGNORECASE)
_TEXT_KEYS = ("content", "text", "snippet", "description")


@dataclass(slots=True)
class Page:
    """One page as far as the tools showed it.

    Attributes:
        title: its title, "" if unknown.
        texts: what was seen of it, each once, in order.
    """

    title: str = ""
    texts: list[str] = field(default_factory=list)

    def add(self, title: str, text: str) -> None:
        """Add what was seen."""
        self.title = self.title or title.strip()
        text = text.strip()
        if text and text not in self.texts:
            self.texts.append(text)


def pages_of(sample: Sample) -> dict[str, Page]:
    """Return the pages a sample's tools returned, by address.

    Raises:
        ValueError: `extra["pages"]` is there and is not a mapping of addresses to texts.
    """
    pages: dict[str, Page] = {}
    given = sample.extra.get("pages", {})
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for text in given.values()):
        raise ValueError('extra["pages"] must be a mapping of addresses to texts')
    for url, text in given.items():
        _page(pages, str(url)).add("", text)
    turns = [turn for side in (sample.prompt, sample.response) if not isinstance(side, str) for turn in side]
    tools, opened = _calls(turns), ""
    for turn in turns:
        if turn.get("role") == "tool":
            for call, output in _outputs(turn):
                tool = tools.get(call, "") or str(turn.get("name") or "")
                if not tool or _READS_PAGES.search(tool):
                    opened = _read(pages, tool, output, opened)
    return pages


def _page(pages: dict[str, Page], url: str) -> Page:
    return pages.setdefault(address(url), Page())


def _calls(turns: Sequence[Message]) -> dict[str, str]:
    """Call id to the name of the tool, in either of the two usual shapes."""
    names = {}
    for turn in turns:
        calls = turn.get("tool_calls")
        for call in calls if isinstance(calls, Sequence) and not isinstance(calls, str) else ():
            if isinstance(call, Mapping):
                function = call.get("function")
                named = function if isinstance(function, Mapping) else call
                names[str(call.get("tool_call_id", call.get("id", "")))] = str(named.get("name", ""))
    return names


def _outputs(turn: Message) -> Iterator[tuple[str, str]]:
    """The outputs in a tool turn: its text, or a list of `{"tool_call_id", "output"}`."""
    content = turn.get("content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        parts = [part for part in content if isinstance(part, Mapping) and isinstance(part.get("output"), str)]
        if parts:
            for part in parts:
                yield str(part.get("tool_call_id", "")), part["output"]
            return
    text = content_text(content) if isinstance(content, str | Sequence) else ""
    yield str(turn.get("tool_call_id", "")), text


def _read(pages: dict[str, Page], tool: str, output: str, opened: str) -> str:
    """Add what an output holds; return the address of the page that is open now."""
    if pages_read := _from_json(output):
        for url, title, text in pages_read:
            _page(pages, url).add(title, text)
        return pages_read[0][0] if len(pages_read) == 1 else opened
    if tool.rpartition(".")[2].startswith("find"):
        if opened and output.strip():
            _page(pages, opened).add("", output)
        return opened
    if output.startswith("[0] Title:"):
        for url, title, text in _hits(output):
            _page(pages, url).add(title, text)
        return opened
    if output.startswith("Title:"):
        url, title, text = _opened(output)
        if url:
            _page(pages, url).add(title, text)
        return url
    return opened


def _hits(output: str) -> Iterator[tuple[str, str, str]]:
    """Search results, as long as their numbers count up: a description cannot bring in a result of its own."""
    starts: list[int] = []
    for hit in _HIT.finditer(output):
        if int(hit[1]) == len(starts):
            starts.append(hit.start())
    for start, end in zip(starts, [*starts[1:], len(output)], strict=True):
        fields: dict[str, str] = {}
        last = ""
        for line in output[start:end].splitlines():
            field_line = _HIT_LINE.match(line)
            if field_line and field_line[1] not in fields:
                last = field_line[1]
                fields[last] = field_line[2]
            elif last:
                fields[last] += f"\n{line}"
        if fields.get("URL Source", "").strip():
            yield fields["URL Source"].strip(), fields.get("Title", ""), fields.get("Description", "")


def _opened(output: str) -> tuple[str, str, str]:
    """A page: its head ends where its content begins, so the content cannot give it another address."""
    head, _, text = output.partition("Markdown Content:")
    fields = {match[1]: match[2] for line in reversed(head.splitlines()) if (match := _HEAD.match(line))}
    return fields.get("URL Source", "").strip(), fields.get("Title", ""), text


def _from_json(output: str) -> list[tuple[str, str, str]]:
    if output[:1] not in ("{", "["):
        return []
    try:
        data: Any = json.loads(output)
    except (ValueError, RecursionError):
        return []
    if isinstance(data, Mapping) and isinstance(data.get("results"), list):
        data = data["results"]
    entries = []
    for entry in data if isinstance(data, list) else [data]:
        if isinstance(entry, Mapping) and isinstance(entry.get("url"), str):
            text = next((entry[key] for key in _TEXT_KEYS if isinstance(entry.get(key), str)), "")
            title = entry.get("title")
            entries.append((entry["url"], title if isinstance(title, str) else "", text))
    return entries
