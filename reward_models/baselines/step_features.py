"""What a process model without a network sees of a step: hashed terms, and values, given the steps before it.

Numbers are not looked at as such but as what they are to the problem: given, worked out last, worked out earlier, from
nowhere.  A `Ledger` is shown the steps in order, so a step's features depend on the problem and on the steps before it,
never on what stands behind it; and nothing is looked at that says what the answer is.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, get_args

from adjudge.options import Options, Range
from adjudge.protocol import Message, turn_texts
from adjudge.reward_models.baselines.linear import Seen, check_features, ngrams
from adjudge.reward_models.baselines.quantities import Equation, equations, numbers

Origin: TypeAlias = Literal["last", "given", "earlier", "share", "plain", "nowhere", "here"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
"""Where a number comes from: the last step that worked something out, the problem, an earlier step, a share of a given
number (0.2 or 1.2 of 20), a common constant, nowhere, or this step."""

PLAIN = frozenset([0.0, 1.0, 2.0, 3.0, 4.0, 7.0, 12.0, 24.0, 30.0, 52.0, 60.0, 100.0, 365.0, 1000.0])
"""Constants that a solution may bring along: hours, days, weeks, months, per cent, halves and quarters."""

GROUPS = ("problem", "place", "length", "arithmetic", "operands", "results", "flow", "overlap", "before")
"""The groups of values."""

SIGNS = "+-*/"
_WORD = re.compile(r"[^\W\d_]+")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_SENTENCES = re.compile(r"(?<=[.!?])\s+")
_ANSWER = re.compile(r"\s*(?:A:|####|(?:the\s+)?(?:final\s+)?answer\b)", re.IGNORECASE)
_CALCULATOR = re.compile(r"<<[^<>]{0,200}>>")  # GSM8K's notes say again what stands beside them
_FIGURES = re.compile(r"\d+(?:,\d{3}(?!\d))*(?:\.\d+)?")
_TAIL = 2_000  # characters of the problem in which its last sentence is looked for
_BESIDE, _WIDEST, _ABOUT = 3, 40, 16  # words on either side of a number, their characters, and how many are kept
_KNOTS = (2.0, 2.5, 3.0, 3.5)  # in log(words): 7, 12, 20 and 33 words
_ALIKE = 0.34  # share of the words beside two numbers that they have in common: the same things are counted
_WAYS: tuple[tuple[Origin, Origin], ...] = (
    ("given", "given"),
    ("last", "given"),
    ("last", "earlier"),
    ("given", "last"),
)


@dataclass(frozen=True, kw_only=True)
class StepFeatureOptions(Options, what="feature option"):
    """What is looked at.

    Attributes:
        words: how many words an n-gram of a step has, such as (1, 2); () for none.  A number counts as where it is
            from.
        operations: whether signs are crossed with words: of the step, of the question, and those beside the operands.
        groups: the groups of values, of `GROUPS`.
        bits: terms are hashed to `2**bits` columns.
    """

    words: tuple[int, ...] = (1, 2)
    operations: bool = True
    groups: tuple[str, ...] = GROUPS
    bits: Annotated[int, Range(ge=10, le=22)] = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_features(self, ("words",), GROUPS)
        if not (self.words or self.operations or self.groups):
            raise ValueError("words, operations and groups are all empty, so nothing would be seen; give one of them")


class StepText:
    """A step as it is written: its words, equations, their operands and signs, and all its numbers."""

    def __init__(self, text: str):
        self.text = text
        self.words = words_in(text)
        self.equations = equations(text)
        self.operands = [value for equation in self.equations for value in equation.operands]
        self.signs = "".join(equation.operators for equation in self.equations)
        self.numbers = numbers(text)
        self.answers = _ANSWER.match(text) is not None


def words_in(text: str) -> tuple[str, ...]:
    """Return the words of a text, in lower case, without numbers and signs."""
    return tuple(_WORD.findall(text.lower()))


class Ledger:
    """What is known before a step; a step is looked at first, and entered then (`add`).

    Attributes:
        asked, question: the words of the problem, and of its last sentence.
        given, unused: its numbers, in figures or in words, and those that nothing was worked out of yet.
        about: words that stand beside a number in the problem, or in the step that worked it out.
        results, idle, last: what earlier steps worked out, those that nothing was worked out of yet, and those of the
            last step that worked something out.
        used, done: numbers that something was worked out of, and computations, alike for a + b and b + a.
        said, steps, previous: words of earlier steps, how many there were, and the step before.
    """

    def __init__(self, prompt: str):
        self.asked = frozenset(words_in(prompt))
        self.question = frozenset(words_in(_SENTENCES.split(prompt[-_TAIL:].strip())[-1]))
        self.given = frozenset(numbers(prompt, words=True))
        self.unused = set(self.given)
        self.about: dict[float, dict[str, None]] = {}
        self.results: set[float] = set()
        self.idle: set[float] = set()
        self.last: frozenset[float] = frozenset()
        self.used: set[float] = set()
        self.done: set[object] = set()
        self.said: set[str] = set()
        self.steps = 0
        self.previous: StepText | None = None
        tokens = prompt.lower().split()
        for at, token in enumerate(tokens):
            for value in numbers(token, words=True):
                near = tokens[max(0, at - _BESIDE) : at + _BESIDE + 1]
                self._note(value, words_in(" ".join(one[:_WIDEST] for one in near)))

    def add(self, step: StepText) -> None:
        """Enter a step."""
        for equation in step.equations:
            self.done.add(computation(equation))
            self._note(equation.result, step.words)
        self.used.update(step.operands)
        self.unused.difference_update(step.operands)
        if step.equations:
            self.last = frozenset(equation.result for equation in step.equations)
            self.results |= self.last
            self.idle = self.idle.difference(step.operands) | self.last
        self.said.update(step.words)
        self.steps += 1
        self.previous = step

    def origin(self, value: float, here: Collection[float] = ()) -> Origin:
        """Return where a number comes from; `here` is what its step has worked out so far."""
        known: Mapping[Origin, Collection[float]] = {
            "here": here,
            "last": self.last,
            "given": self.given,
            "earlier": self.results,
        }
        for origin, values in known.items():
            if value in values:
                return origin
        if any(round(100 * part, 6) in self.given for part in (value, value - 1, 1 - value)):
            return "share"
        return "plain" if value in PLAIN else "nowhere"

    def origins(self, step: StepText) -> list[list[Origin]]:
        """Return where the operands of each equation of a step come from."""
        here: set[float] = set()
        origins = []
        for equation in step.equations:
            origins.append([self.origin(value, here) for value in equation.operands])
            here.add(equation.result)
        return origins

    def _note(self, value: float, words: Sequence[str]) -> None:
        kept = self.about.setdefault(value, {})
        for word in words:
            if len(kept) >= _ABOUT:
                break
            kept.setdefault(word)


def computation(equation: Equation) -> object:
    """Return what is worked out, alike for a + b and b + a, and for a * b and b * a."""
    commutes = len(set(equation.operators)) == 1 and equation.operators[0] in "+*"
    return equation.operators, tuple(sorted(equation.operands)) if commutes else equation.operands


def features_of_steps(
    problem: str | Sequence[Message], steps: Sequence[str], options: StepFeatureOptions
) -> list[Seen]:
    """Return what is seen of each step of a solution, in order; of a chat, the last question is the problem.

    Time and memory grow linearly with the text.
    """
    ledger = Ledger(asked(problem))
    features = []
    for text in steps:
        step = StepText(text)
        words = ngrams(_TOKEN.findall(spoken(step, ledger).lower()), options.words, " ")
        terms = {"words": words, "operations": operations(step, ledger) if options.operations else []}
        features.append(Seen(terms=terms, values=values_of(step, ledger, options.groups)))
        ledger.add(step)
    return features


def asked(problem: str | Sequence[Message]) -> str:
    """Return the text of a problem, or of the last thing that a user asked; "" where nobody asked."""
    said = turn_texts(problem, "user")
    return said[-1] if said else ""


def spoken(step: StepText, ledger: Ledger) -> str:
    """Return a step with every number replaced by where it is from, and without a calculator's notes."""

    def named(match: re.Match[str]) -> str:
        values = numbers(match[0])  # none where there are more digits than an amount has
        return f" n_{ledger.origin(values[0]) if values else 'long'} "

    return _FIGURES.sub(named, _CALCULATOR.sub(" ", step.text))


def operations(step: StepText, ledger: Ledger) -> list[str]:
    """Return the signs of a step's equations with the origins of their operands, and with words, each once."""
    terms: dict[str, None] = {}
    for equation, origins in zip(step.equations, ledger.origins(step), strict=True):
        terms.setdefault(f"{equation.operators} of {' '.join(origins)}")
        signs = "".join(sorted(set(equation.operators)))
        for value in equation.operands:
            terms.update(dict.fromkeys(f"{signs} beside {word}" for word in ledger.about.get(value, ())))
        for way, words in (("in", sorted(set(step.words))), ("asked", sorted(ledger.question))):
            terms.update(dict.fromkeys(f"{signs} {way} {word}" for word in words))
    return list(terms)


def values_of(step: StepText, ledger: Ledger, groups: Sequence[str] = GROUPS) -> dict[str, dict[str, float]]:
    """Return the values of a step by group and name; all are finite, and 0 where there is nothing to look at."""
    return {group: _VALUES[group](step, ledger) for group in groups}


def _problem(step: StepText, ledger: Ledger) -> dict[str, float]:
    return {
        "log words asked": math.log1p(len(ledger.asked)),
        "log numbers asked": math.log1p(len(ledger.given)),
        "log words in the question": math.log1p(len(ledger.question)),
    }


def _place(step: StepText, ledger: Ledger) -> dict[str, float]:
    return {
        "log steps before": math.log1p(ledger.steps),
        "first step": float(ledger.steps == 0),
        "log results before": math.log1p(len(ledger.results)),
        "given numbers used before": 1 - len(ledger.unused) / max(1, len(ledger.given)),
        "answer line": float(step.answers),
    }


def _length(step: StepText, ledger: Ledger) -> dict[str, float]:
    size = math.log1p(len(step.words))
    return {
        "log characters": math.log1p(len(step.text)),
        "log words": size,
        "log words over those before": size - math.log1p(len(ledger.previous.words)) if ledger.previous else 0.0,
        **{f"words above e^{knot:g}": max(0.0, size - knot) for knot in _KNOTS},
    }


def _arithmetic(step: StepText, ledger: Ledger) -> dict[str, float]:
    return {
        "has equations": float(bool(step.equations)),
        "several equations": float(len(step.equations) > 1),
        "any wrong equation": float(any(not equation.holds for equation in step.equations)),
        "more than two operands": float(any(len(equation.operands) > 2 for equation in step.equations)),
        "a number alone": float(bool(step.numbers) and not step.equations),
        **{f"has {sign}": float(sign in step.signs) for sign in SIGNS},
        "two kinds of signs": float(len(set(step.signs)) > 1),
    }


def _operands(step: StepText, ledger: Ledger) -> dict[str, float]:
    each = ledger.origins(step)
    counts = Counter(origin for origins in each for origin in origins)
    total = max(1, len(step.operands))
    pairs: set[str] = set()
    for equation, origins in zip(step.equations, each, strict=True):
        if len(equation.operators) == len(origins) - 1:  # else a minus before a number, or brackets that hide a sign
            for at, sign in enumerate(equation.operators):
                pairs.add(f"{origins[at]} {sign} {origins[at + 1]}")
                one, other = (ledger.about.get(value, {}).keys() for value in equation.operands[at : at + 2])
                if len(one & other) > _ALIKE * max(1, min(len(one), len(other))):
                    pairs.add(sign)
    return {
        **{f"operands {origin}": counts[origin] / total for origin in ORIGINS[:-1]},
        **{f"any operand {origin}": float(counts[origin] > 0) for origin in ORIGINS[:-1]},
        "all operands given": float(bool(step.operands) and counts["given"] == len(step.operands)),
        "both given and last": float(counts["given"] > 0 and counts["last"] > 0),
        "operands used before": sum(value in ledger.used for value in step.operands) / total,
        "given operands used before": float(bool(ledger.used & ledger.given & set(step.operands))),
        "an operand twice": float(len(set(step.operands)) < len(step.operands)),
        "operand one": float(1.0 in step.operands),
        "operand below one": float(any(0 < value < 1 for value in step.operands)),
        **{f"{a} {sign} {b}": float(f"{a} {sign} {b}" in pairs) for a, b in _WAYS for sign in SIGNS},
        **{f"{sign} of like things": float(sign in pairs) for sign in SIGNS},
    }


def _results(step: StepText, ledger: Ledger) -> dict[str, float]:
    results = [equation.result for equation in step.equations]
    size = math.log1p(abs(results[-1])) if results else 0.0
    largest = [math.log1p(max(map(abs, values), default=0.0)) for values in (ledger.given, ledger.last)]
    return {
        "result given": float(any(result in ledger.given for result in results)),
        "result was there": float(any(result in ledger.results for result in results)),
        "computation was there": float(any(computation(equation) in ledger.done for equation in step.equations)),
        "result negative": float(any(result < 0 for result in results)),
        "result zero": float(0.0 in results),
        "result below one": float(any(0 < result < 1 for result in results)),
        "result not whole": float(any(result != int(result) for result in results)),
        "log result over largest given": size - largest[0] if results else 0.0,
        "log result over last": size - largest[1] if results and ledger.last else 0.0,
        "result over all given": float(bool(results) and abs(results[-1]) > math.fsum(ledger.given)),
        "result an operand": float(any(equation.result in equation.operands for equation in step.equations)),
    }


def _flow(step: StepText, ledger: Ledger) -> dict[str, float]:
    operands = set(step.operands)
    left = len(ledger.unused - operands)
    answer = step.numbers[-1] if step.answers and step.numbers else None
    return {
        "given numbers unused after": left / max(1, len(ledger.given)),
        "log given numbers unused after": math.log1p(left),
        "given numbers newly used": float(min(len(ledger.unused & operands), 3)),
        "last result used": float(bool(ledger.last & operands)),
        "results unused after": math.log1p(len(ledger.idle - operands)),
        "answer is the last result": float(answer in ledger.last),
        "answer is given": float(answer in ledger.given),
        "answer from nowhere": float(answer is not None and answer not in ledger.given | ledger.results),
        "answer with numbers unused": left / max(1, len(ledger.given)) if answer is not None else 0.0,
    }


def _overlap(step: StepText, ledger: Ledger) -> dict[str, float]:
    words = set(step.words)
    size = max(1, len(words))
    about = {word for value in step.operands for word in ledger.about.get(value, ())}
    return {
        "words from the problem": len(words & ledger.asked) / size,
        "words from the question": len(words & ledger.question) / size,
        "question words said": len(words & ledger.question) / max(1, len(ledger.question)),
        "words from steps before": len(words & ledger.said) / size,
        "words new": len(words - ledger.asked - ledger.said) / size,
        "copied from the step before": len(words.intersection(ledger.previous.words if ledger.previous else ())) / size,
        "words about operands": len(words & about) / size,
    }


def _before(step: StepText, ledger: Ledger) -> dict[str, float]:
    before = ledger.previous or StepText("")
    return {
        "step before has equations": float(bool(before.equations)),
        "step before has a wrong equation": float(any(not equation.holds for equation in before.equations)),
        "log words before": math.log1p(len(before.words)),
        **{f"step before has {sign}": float(sign in before.signs) for sign in SIGNS},
    }


_VALUES: Mapping[str, Callable[[StepText, Ledger], dict[str, float]]] = {
    "problem": _problem,
    "place": _place,
    "length": _length,
    "arithmetic": _arithmetic,
    "operands": _operands,
    "results": _results,
    "flow": _flow,
    "overlap": _overlap,
    "before": _before,
}
