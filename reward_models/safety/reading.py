"""What a safety classifier reads of a sample, and reading it: what does not fit is split, what is refused asked again.

Every text is escaped as for reward models (`adjudge.reward_models.scalar.chat`): it holds no control tokens, and
characters that nobody sees are written as their codes.  All that the assistant wrote is text: turns, calls of tools,
and reasoning unless that is left out.  Windows overlap, and whatever is no longer than the overlap stands whole in one
of them.

`folded` gives a text as it looks, where a disguise of letters would hide it from a model: compatibility forms become
plain letters (fullwidth, mathematical, circled), characters nobody sees are left out, and in words that mix scripts the
Cyrillic and Greek letters that look like Latin ones become those.

The logits of a document are the largest of each category over its windows.  A response that the engine refuses twice,
though it takes a harmless one in its place, is itself at fault (`Reading.refused`): nobody buys a failed score with a
text that a model cannot take.  An engine that is gone is nobody's fault but ours.

Not covered: what a sample's text means without the turns of tools and users between; as text, only the assistant's is
read.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from adjudge.engines.interface import Engine, Fault, Logits, Prompt
from adjudge.protocol import NO_COST, Cost, Message

_LOOKS_LIKE = dict(
    zip(
        "АВЕЅІЈКМНОРСТУХЬаеѕіјорсухԁһѡΑΒΕΖΗΙΚΜΝΟΡΤΥΧανοικυχρτ",
        "ABESIJKMHOPCTYXbaesijopcyxdhwABEZHIKMNOPTYXavoikuxpt",
        strict=True,
    )
)
_TABLE = str.maketrans(_LOOKS_LIKE)
_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile("[A-Za-z]")
_UNSEEN = ("Cf", "Cc", "Cs")
_KEPT = "\n\t"
_DEEPEST = 32  # levels of a turn; what is deeper is refused elsewhere


def folded(value: Any, depth: int = 0) -> Any:
    """Return a text, or turns with all their texts, as they look."""
    if isinstance(value, str):
        return folded_text(value)
    if depth == _DEEPEST:
        return value
    if isinstance(value, Mapping):
        return {key: item if key == "role" else folded(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [folded(item, depth + 1) for item in value]
    return value


def folded_text(text: str) -> str:
    """Return a text as it looks; one without disguises stays as it is."""
    # Character by character: sorting a long run of accents takes the square of its length.
    seen = text.translate({ord(char): _seen(char) for char in set(text)})
    return _WORD.sub(lambda word: word[0].translate(_TABLE) if _LATIN.search(word[0]) else word[0], seen)


def _seen(char: str) -> str:
    """What is seen of a character: its plain form, or nothing."""
    plain = unicodedata.normalize("NFKC", char)
    return "".join(one for one in plain if one in _KEPT or unicodedata.category(one) not in _UNSEEN)


def cut(text: str, size: int, overlap: int) -> list[tuple[int, str]]:
    """Return windows of at most `size` characters, 0 for all of it in one, each with the place where it begins.

    Raises:
        ValueError: the overlap is no smaller than the windows, which could not move on.
    """
    if not size or len(text) <= size:
        return [(0, text)]
    if not 0 <= overlap < size:
        raise ValueError(f"windows of {size} characters overlap by {overlap}; they must overlap by less")
    step = size - overlap
    last = -(-(len(text) - size) // step)  # the first window that reaches the end
    return [(at * step, text[at * step : at * step + size]) for at in range(last + 1)]


def halves(text: str, overlap: int) -> list[tuple[int, str]]:
    """Return both halves of a text of at least 2 characters, each shorter than the text, with their places.

    They have `overlap` characters in common, or a quarter of a text of less than four times as many.
    """
    common = min(overlap, len(text) // 4)
    middle = len(text) // 2
    end, start = middle + (common + 1) // 2, middle - common // 2
    return [(0, text[:end]), (start, text[start:])]


View = Literal["response", "prompt", "both"]
Form = Literal["text", "chat"]
Side = Literal["prompt", "response"]
Turns = tuple[Message, ...]

_ROLES: Mapping[Side, str] = {"prompt": "user", "response": "assistant"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A part of a document that is read at once.

    Attributes:
        side: whose text it is.
        start: its first character, counted in the escaped text of its side.
        context: whether the prompt is shown before it.
        whole: whether it is all of the side, so that its turns may be shown as they are.
    """

    side: Side
    start: int
    text: str
    context: bool
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What is read of a sample.

    Attributes:
        view: whose text is judged.
        form: "text" for plain text, prompt and response with a blank between them, as DuoGuard reads them; "chat" for
            turns in the model's template.
        prompt, response: their turns, escaped; () where they are not read.
        asked, said: all text of the prompt, and all that the assistant wrote.
    """

    view: View
    form: Form
    prompt: Turns
    response: Turns
    asked: str
    said: str

    @classmethod
    def of(cls, view: View, form: Form, prompt: Turns, response: Turns) -> Document:
        """Return the document of turns that are escaped."""
        asked = [text for turn in prompt for text in texts_in(turn)]
        said = [text for turn in response if turn.get("role") == "assistant" for text in texts_in(turn)]
        return cls(view=view, form=form, prompt=prompt, response=response, asked="\n".join(asked), said="\n".join(said))

    def stretches(self, size: int, overlap: int) -> list[Stretch]:
        """Return what is read first, in windows of `size` characters, 0 for all at once, that overlap."""
        side: Side = "prompt" if self.view == "prompt" else "response"
        text, both = self.asked if side == "prompt" else self.said, self.view == "both"
        before = len(self.asked) if both else 0
        if not size or before + len(text) <= size:
            return [Stretch(side=side, start=0, text=text, context=both, whole=True)]
        kept = both and 2 * before <= size
        room = size - before if kept else size
        parts = cut(text, room, min(overlap, room - 1))
        stretches = [Stretch(side=side, start=start, text=part, context=kept) for start, part in parts if part]
        return stretches + (self._prompt_alone(size, overlap) if both and not kept else [])

    def shorter(self, stretch: Stretch, overlap: int) -> list[Stretch]:
        """Return what is read in place of a stretch that does not fit; nothing if it can get no shorter.

        The prompt stays before a window that is no shorter than the prompt; before shorter ones it would be read over
        and over, so it is read by itself.
        """
        if stretch.context and (len(self.asked) > len(stretch.text) or len(stretch.text) < 2):
            alone = [replace(stretch, context=False, whole=False)] if stretch.text else []
            return alone + self._prompt_alone(0, overlap)
        if len(stretch.text) > 1:
            return [
                replace(stretch, start=stretch.start + start, text=part, whole=False)
                for start, part in halves(stretch.text, overlap)
            ]
        return [replace(stretch, whole=False)] if stretch.whole and stretch.text and self.form == "chat" else []

    def shown(self, stretch: Stretch) -> Prompt:
        """Return a stretch as the engine gets it."""
        if self.form == "text":
            return f"{self.asked} {stretch.text}" if stretch.context else stretch.text
        before = self.prompt if stretch.context else ()
        if stretch.whole:
            return (*before, *(self.prompt if stretch.side == "prompt" else self.response))
        return (*before, {"role": _ROLES[stretch.side], "content": stretch.text})

    def _prompt_alone(self, size: int, overlap: int) -> list[Stretch]:
        parts = cut(self.asked, size, overlap)
        return [Stretch(side="prompt", start=start, text=part, context=False) for start, part in parts if part]


def texts_in(turn: Message) -> Iterator[str]:
    """Yield every text of a turn but its role, those in calls of tools too."""
    for key, value in turn.items():
        if key != "role":
            yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)
    elif isinstance(value, Sequence) and not isinstance(value, bytes):
        for item in value:
            yield from _texts(item)


_HARMLESS = "Yes."
_PATIENCE = 3  # harmless texts in a row that an engine does not take: then it is broken


@dataclass(slots=True, kw_only=True)
class Reading:
    """A document on its way to its logits, in windows of so many characters, 0 for as many as fit.

    Attributes:
        read_logits: the logits of each stretch that was read.
        fault: why it could not be read, and not by its own doing.
        refused: why its response could not be read, though others could.
        asked: shorter stretches that were asked for.
    """

    document: Document
    window: int
    overlap: int
    read_logits: dict[Stretch, tuple[float, ...]] = field(default_factory=dict)
    fault: Fault | None = None
    refused: str = ""
    cost: Cost = NO_COST
    asked: set[Stretch] = field(default_factory=set)

    def is_new(self, stretch: Stretch) -> bool:
        """Whether a stretch was not asked for yet; from now on it was.  Two windows may put the same prompt aside."""
        before = len(self.asked)
        self.asked.add(stretch)
        return len(self.asked) > before

    def take(self, stretch: Stretch, result: Logits) -> None:
        """Keep what the model said of a stretch."""
        self.read_logits[stretch] = result.values
        self.cost += result.cost

    @property
    def windows(self) -> int:
        """How many stretches were read."""
        return len(self.read_logits)

    @property
    def logits(self) -> list[float]:
        """The largest logit of each category."""
        return [max(column) for column in zip(*self.read_logits.values(), strict=True)]

    @property
    def is_apart(self) -> bool:
        """Whether a part of the response was read without the prompt before it, though both are judged."""
        return self.document.view == "both" and any(not stretch.context for stretch in self.read_logits)

    def where(self, counted: Sequence[int]) -> dict[str, Any]:
        """Return the worst window: whose text it is of, and its place among the characters of the escaped text."""
        worst = max(self.read_logits, key=lambda stretch: max(self.read_logits[stretch][place] for place in counted))
        return {"of": worst.side, "start": worst.start, "end": worst.start + len(worst.text)}


_Asked = tuple[Reading, Stretch]


async def read(readings: Sequence[Reading], engine: Engine, outputs: int, *, splits: bool) -> None:
    """Read documents through an engine of so many logits; what is known of them stands in the readings then.

    What does not fit is read in windows if `splits`; else it is a fault.

    Raises:
        ValueError: the engine gives more or fewer logits, or cannot classify.
    """
    waiting = [(one, stretch) for one in readings for stretch in one.document.stretches(one.window, one.overlap)]
    refused: list[_Asked] = []
    while waiting:
        results = await _classified(waiting, engine, outputs)
        parts: list[_Asked] = []
        for (one, stretch), result in zip(waiting, results, strict=True):
            if isinstance(result, Logits):
                one.take(stretch, result)
            elif result.too_long:
                shorter = one.document.shorter(stretch, one.overlap) if splits else []
                parts += [(one, part) for part in shorter]
                if not shorter:
                    one.fault = replace(result, too_long=not splits)  # with windows: not even one character fits
            elif result.reason == "engine_error":
                refused.append((one, stretch))
            else:
                one.fault = result
        waiting = [(one, part) for one, part in parts if one.fault is None and one.is_new(part)]
    await _ask_again(refused, engine, outputs)


async def _ask_again(refused: Sequence[_Asked], engine: Engine, outputs: int) -> None:
    """Ask for each stretch by itself, and find out whether it or the engine is at fault."""
    broken: list[Fault] = []
    for one, stretch in refused:
        if one.fault is not None or one.refused:
            continue
        if len(broken) == _PATIENCE:
            one.fault = broken[-1]
            continue
        (result,) = await _classified([(one, stretch)], engine, outputs)
        if isinstance(result, Logits):
            one.take(stretch, result)
            continue
        (other,) = await _classified([(one, replace(stretch, text=_HARMLESS, whole=False))], engine, outputs)
        if isinstance(other, Logits) and stretch.side == "response":
            one.refused, broken = result.detail, []
        else:
            one.fault = replace(result, too_long=False)
            broken = [*broken, one.fault] if isinstance(other, Fault) else []


async def _classified(asked: Sequence[_Asked], engine: Engine, outputs: int) -> list[Logits | Fault]:
    results = await engine.classify([one.document.shown(stretch) for one, stretch in asked])
    if len(results) != len(asked):
        raise RuntimeError(f"the engine {engine.name!r} gave {len(results)} results for {len(asked)} texts")
    return [_finite(result, outputs) for result in results]


def _finite(result: Logits | Fault, outputs: int) -> Logits | Fault:
    if isinstance(result, Fault):
        return result
    if len(result.values) != outputs:
        raise ValueError(
            f"the model gave {len(result.values)} logits, and there are {outputs} categories; name each output of the "
            "model, in order, with `categories`"
        )
    if not all(map(math.isfinite, result.values)):
        return Fault(reason="engine_error", detail="the model gave numbers that are not finite")
    return result
