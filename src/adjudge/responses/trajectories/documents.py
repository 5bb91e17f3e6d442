"""The documents in what a tool returned.

| output | documents |
|---|---|
| JSON list of objects with `text`, `content`, `contents`, `snippet` or `document` | one each, with `title` if given |
| JSON object with such a list, or a list of such lists, as `results`, `documents`, `result` or `data` | the lists' |
| JSON object with a text as one of these (verl) | the text's, as below |
| lines `Doc 1(Title: "Name") text`, numbered from 1 (Search-R1) | one each |
| texts behind `<##Title: Name##>`, with or without a `Doc 1` before it (StepSearch) | one each |
| anything else that is not blank | one without a title |

`contents` whose first line stands in quotes is a title and a text, as in the Wikipedia dump that Search-R1 serves.

Not covered: addresses of pages (`adjudge.judges.items.citation_rules` reads those).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from adjudge.responses.trajectories.trajectory import Document
from adjudge.wire import json_in

_TEXT_KEYS: Final = ("text", "content", "contents", "snippet", "document")
_LIST_KEYS = ("results", "documents", "result", "data")
_MARKED = re.compile(r"(?:^[ \t]{0,8}Doc ?\d{1,4} ?)?<##([^\n<>]{0,1000}?)##>", re.MULTILINE)
_NUMBERED = re.compile(r"^[ \t]{0,8}Doc ?(\d{1,4}) ?\(Title: ?", re.MULTILINE)


def documents_of(output: str) -> tuple[Document, ...]:
    """Return the documents of a tool's output, in order; none if it is blank."""
    text = output.strip()
    if not text:
        return ()
    listed = _from_json(text)
    return tuple(_in_text(text) if listed is None else listed)


def _in_text(text: str) -> list[Document]:
    return _numbered(text) or _marked(text) or ([Document(text=text)] if text else [])


def _from_json(text: str) -> list[Document] | None:
    data = json_in(text)
    if isinstance(data, Mapping):
        data = next((data[key] for key in _LIST_KEYS if isinstance(data.get(key), list | str)), None)
    if isinstance(data, str):
        return _in_text(data.strip())
    if not isinstance(data, list):
        return None
    entries = (one for entry in data for one in (entry if isinstance(entry, list) else [entry]))
    listed = [document for entry in entries if (document := _entry(entry)) is not None]
    return [document for document in listed if document.text or document.title] if listed or not data else None


def _entry(entry: Any) -> Document | None:
    if isinstance(entry, str):
        return Document(text=entry.strip())
    if isinstance(entry, Mapping) and isinstance(entry.get("document"), Mapping):
        entry = entry["document"]
    if not isinstance(entry, Mapping):
        return None
    key = next((key for key in _TEXT_KEYS if isinstance(entry.get(key), str)), "")
    title = entry.get("title")
    if not key:
        return None
    text = entry[key].strip()
    if isinstance(title, str):
        return Document(title=title.strip(), text=text)
    first, _, rest = text.partition("\n")
    if key == "contents" and len(first) > 2 and first[0] == first[-1] == '"':
        return Document(title=first[1:-1].strip(), text=rest.strip())
    return Document(text=text)


def _numbered(text: str) -> list[Document]:
    """The numbered documents, as long as their numbers count up: a document's text brings in none of its own."""
    heads: list[re.Match[str]] = []
    for head in _NUMBERED.finditer(text):
        if int(head[1]) == len(heads) + 1:
            heads.append(head)
    if not heads:
        return []
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [_titled(text[head.end() : end]) for head, end in zip(heads, ends, strict=True)]


def _marked(text: str) -> list[Document]:
    """The documents behind marked titles; what stands before the first title belongs to none."""
    heads = list(_MARKED.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [
        Document(title=head[1].strip().removeprefix("Title:").strip(), text=text[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=False)
    ]


def _titled(text: str) -> Document:
    line = text.partition("\n")[0]
    close = line.find('")') + 1 if line.startswith('"') else line.find(")")
    if close <= 0:
        return Document(text=text.strip())
    return Document(title=line[:close].strip().strip('"').strip(), text=text[close + 1 :].strip())
