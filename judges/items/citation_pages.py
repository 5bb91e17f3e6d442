"""What the tools of a trajectory returned, by address: the only pages a citation can stand on.

Pages come from tool turns of the response (and of the prompt, where a conversation went before), or from
`Sample.extra["pages"]`, a mapping of addresses to texts.  Assistant turns are never read, and neither is what a tool
returned whose name says nothing of searching or reading pages: a model that prints a page with a Python tool has not
found one.

Read are JSON (an object or a list of objects with `url` and `content`, `text`, `snippet` or `description`), and the
layout of the browser tools of CaRR: `Title: / URL Source: / Markdown Content:` for a page, the same keys behind
`[0]`, `[1]`, ... for search results, and what a find tool returns, which belongs to the page opened last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.judges.items.citation_rules import address
from adjudge.protocol import Message, Sample, content_text

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
