"""What a preference model without a network sees of a chat: hashed n-grams, and what can be counted in the response.

Each value belongs to a group, so that a model can leave a group out (no length, say) and a report can add up what each
group contributed.  All but those of the group "length" are shares or rates, which do not grow with the text.  Where
answers are computed there is a cheap and honest signal: equations that do not hold, numbers of the problem that are
never used, numbers that come from nowhere, results that nothing is made of, a final answer that is not a result.

Not covered: what the text means ("stance" looks for words of refusal, caution and assent, in English only), what was
said before the last question, and, of an answer that has turns of users in it, what was said before the last of them.
Scripts without blanks get no words of their own (their character n-grams work), and nothing is stemmed.
"""

from __future__ import annotations

import itertools
import math
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from adjudge.options import Options, Range
from adjudge.protocol import Message, content_text
from adjudge.reward_models.baselines.linear import Seen, check_features, ngrams
from adjudge.reward_models.baselines.quantities import equations, numbers
from adjudge.reward_models.baselines.step_features import PLAIN, SIGNS
from adjudge.reward_models.scalar.chat import ChatForm

GROUPS = ("length", "layout", "wording", "stance", "overlap", "arithmetic", "quantities")
"""The groups of values."""

_KNOTS = (2.0, 3.0, 4.0, 5.0, 6.0)  # in log(words): 7, 20, 55, 148 and 403 words
_SAMPLED = 4_000  # characters that are compressed: 60 us, whatever the length of the text
_VARIETY = 100  # words among which distinct ones are counted; the share falls with the length of any text
_OPENING = 12  # words
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_SENTENCE_END = re.compile(r"[.!?。！？](?:\s|$)")

_PER_LINE: Mapping[str, re.Pattern[str]] = {
    "listed lines": re.compile(r"^\s{0,8}(?:[-*•+]|\d{1,3}[.)])\s", re.MULTILINE),
    "numbered lines": re.compile(r"^\s{0,8}\d{1,3}[.)]\s", re.MULTILINE),
    "headings": re.compile(r"^\s{0,3}(?:#{1,6}\s|\*\*[^*\n]{1,80}\*\*:?\s{0,4}$)", re.MULTILINE),
    "table": re.compile(r"^(?:[^|\n]*\|){3}", re.MULTILINE),
    "blank lines": re.compile(r"\n\n"),
}
_PER_WORD: Mapping[str, re.Pattern[str]] = {
    "bold": re.compile(r"\*\*[^*\n]{1,200}\*\*"),
    "inline code": re.compile("`"),
    "formula": re.compile(r"\$|\\[(\[]"),
}
_ANYWHERE: Mapping[str, re.Pattern[str]] = {
    "code block": re.compile("```"),
    "link": re.compile(r"http|www\."),
    "ends open": re.compile(r"[^.!?:\"')\]}`”。！？$*>\s]\s*\Z"),
}
_CUES: Mapping[str, str] = {  # words and phrases of each
    "refusal": "can't|cannot|won't|unable|can not|not able to|not appropriate|as an ai|decline",
    "apology": "sorry|apologize|apologise|apologies|unfortunately|regret",
    "caution": "illegal|unethical|harmful|dangerous|unsafe|inappropriate|offensive|consequences|safety|law|laws|legal|"
    "violence|violates|violate|against|responsibly|important",
    "advice": "professional|professionals|therapist|doctor|lawyer|police|authorities|hotline|seek|counselor|consult|"
    "support|help",
    "assent": "sure|certainly|of course|absolutely|yes|okay|ok|definitely|here is|here are",
    "hedge": "may|might|maybe|perhaps|possibly|probably|seem|seems|could|generally|typically",
    "contrast": "however|but|although|instead|rather|while|though",
    "reason": "because|since|therefore|thus|so|hence|due to",
    "assumption": "assume|assumed|assuming|suppose|verify|confirms|let's|clearly|obviously",
    "self": "i|i'm|my|me|i'd|i'll|i've",
    "reader": "you|your|you're|yourself",
    "joint": "we|our|us",
    "question word": "what|why|how|who|which|when|where",
}
_FIRST = ("refusal", "apology", "assent", "self")


@dataclass(frozen=True, kw_only=True)
class FeatureOptions(Options, what="feature option"):
    """What is looked at.

    Attributes:
        words: how many words an n-gram of words has, such as (1, 2); () for none.
        characters: the same for characters.
        groups: the groups of values, of `GROUPS`.
        length: "seen", or "removed": after the fit, whatever of the reward follows from the values of length on the
            training responses is subtracted, as in arXiv 2409.17407.  Leaving out the group "length" is not enough:
            n-grams tell the length too.
        bits: n-grams are hashed to `2**bits` columns.
    """

    words: tuple[int, ...] = (1, 2)
    characters: tuple[int, ...] = (3, 4, 5)
    groups: tuple[str, ...] = GROUPS
    length: Literal["seen", "removed"] = "seen"
    bits: Annotated[int, Range(ge=10, le=24)] = 18

    def __post_init__(self) -> None:
        super().__post_init__()
        check_features(self, ("words", "characters"), GROUPS)
        if self.length == "removed" and "length" not in self.groups:
            raise ValueError('length is "removed", which needs its values; put "length" into groups')
        if not (self.words or self.characters or self.groups):
            raise ValueError("words, characters and groups are all empty, so nothing would be seen; give one of them")


def finished(form: ChatForm, prompt: str | Sequence[Message], response: str) -> tuple[Message, ...]:
    """Return a prompt with a response as the finished chat that a scorer rates."""
    return (*form.prompt(prompt), *form.answer(response).turns)


def features_of(chat: Sequence[Message], options: FeatureOptions) -> Seen:
    """Return what is seen of a finished chat; time and memory grow linearly with its text."""
    question, response = sides_of(chat)
    flat = f" {' '.join(response.lower().split())} "
    words = _TOKEN.findall(response.lower())
    values = values_in(question, response, options.groups)
    terms = {"words": ngrams(words, options.words, " "), "characters": ngrams(flat, options.characters)}
    return Seen(terms=terms, values={group: values[group] for group in options.groups})


def sides_of(chat: Sequence[Message]) -> tuple[str, str]:
    """Return the last thing a user asked, and what the assistant said after it, without outer blanks."""
    asked = max((at for at, turn in enumerate(chat) if turn["role"] == "user"), default=len(chat) - 2)
    said = [content_text(turn.get("content")) for turn in chat[asked + 1 :] if turn["role"] == "assistant"]
    return content_text(chat[asked].get("content")) if asked >= 0 else "", "\n".join(said).strip()


def values_in(question: str, response: str, groups: Sequence[str] = GROUPS) -> dict[str, dict[str, float]]:
    """Return the values of a response by group and name; all are finite."""
    lowered = response.lower().replace("’", "'")
    words, asked = _WORD.findall(lowered), _WORD.findall(question.lower().replace("’", "'"))
    lines = [line for line in response.split("\n") if line.strip()]
    values = {
        "length": _length(response, words, lines, asked),
        "layout": {
            **{name: len(sign.findall(response)) / max(1, len(lines)) for name, sign in _PER_LINE.items()},
            **{name: _rate(len(sign.findall(response)), words) for name, sign in _PER_WORD.items()},
            **{name: float(bool(sign.search(response))) for name, sign in _ANYWHERE.items()},
        },
        "wording": _wording(response, words, lines),
        "stance": _stance(lowered, words),
        "overlap": _overlap(question, response, asked, words),
    }
    if "arithmetic" in groups or "quantities" in groups:
        values |= _solution(question, response)
    return values


def _rate(count: int, words: Sequence[str]) -> float:
    """The logarithm of how often something is there in a hundred words."""
    return math.log1p(100 * count / max(10, len(words)))


def _length(response: str, words: Sequence[str], lines: Sequence[str], asked: Sequence[str]) -> dict[str, float]:
    size = math.log1p(len(words))
    return {
        "log characters": math.log1p(len(response)),
        "log words": size,
        "log lines": math.log1p(len(lines)),
        "log words over asked": math.log((len(words) + 5) / (len(asked) + 5)),
        **{f"words above e^{knot:g}": max(0.0, size - knot) for knot in _KNOTS},
    }


def _wording(response: str, words: Sequence[str], lines: Sequence[str]) -> dict[str, float]:
    size = max(1, len(response))
    ends = max(1, len(_SENTENCE_END.findall(response)))
    sample = response[:_SAMPLED].encode("utf-8", "surrogatepass")
    first = next((sign for sign in response if sign.isalpha()), "")
    return {
        "word length": sum(map(len, words)) / max(1, len(words)),
        "sentence length": math.log1p(len(words) / ends),
        "variety": len(set(words[:_VARIETY])) / max(1, min(len(words), _VARIETY)),
        "compression": len(zlib.compress(sample, 1)) / max(40, len(sample)),
        "repeated lines": 1 - len(set(lines)) / max(1, len(lines)),
        "digits": sum(map(response.count, "0123456789")) / size,
        "capitals": sum(map(str.isupper, response)) / size,
        "signs": sum(map(response.count, ",;:()")) / size,
        "non-ASCII": _foreign(response),
        "questions": response.count("?") / ends,
        "exclamations": response.count("!") / ends,
        "quotes": _rate(response.count('"') + response.count("“"), words),
        "starts with a capital": float(first.isupper()),
    }


def _stance(lowered: str, words: Sequence[str]) -> dict[str, float]:
    counts, opening = Counter(words), Counter(words[:_OPENING])
    start = " ".join(words[:_OPENING])
    return {
        **{cue: _rate(_said(cue, counts, lowered), words) for cue in _CUES},
        **{f"{cue} first": float(_said(cue, opening, start) > 0) for cue in _FIRST},
    }


def _said(cue: str, counts: Mapping[str, int], text: str) -> int:
    said = _CUES[cue].split("|")
    return sum(text.count(phrase) if " " in phrase else counts.get(phrase, 0) for phrase in said)


def _overlap(question: str, response: str, asked: Sequence[str], words: Sequence[str]) -> dict[str, float]:
    known, said, pairs = set(asked), set(words), set(itertools.pairwise(words))
    return {
        "words from the prompt": len(known & said) / max(1, len(said)),
        "prompt words used": len(known & said) / max(1, len(known)),
        "pairs from the prompt": len(pairs & set(itertools.pairwise(asked))) / max(1, len(pairs)),
        "same script": 1 - abs(_foreign(question) - _foreign(response)),
    }


def _foreign(text: str) -> float:
    return 1 - len(text.encode("ascii", "ignore")) / len(text) if text else 0.0


def _solution(question: str, response: str) -> dict[str, dict[str, float]]:
    """Whether arithmetic holds, and what is made of the numbers; all 0 for a text without numbers."""
    asked, computed, said = set(numbers(question, words=True)), equations(response), numbers(response)
    count, signs = max(1, len(computed)), "".join(equation.operators for equation in computed)
    wrong = sum(not equation.holds for equation in computed)
    arithmetic = {
        "has equations": float(bool(computed)),
        "log equations": math.log1p(len(computed)),
        "wrong equations": wrong / count,
        "any wrong equation": float(wrong > 0),
        "equations less numbers asked": math.log((len(computed) + 1) / (len(asked) + 1)) if computed else 0.0,
        "operands per equation": sum(len(equation.operands) for equation in computed) / count,
        **{f"share of {sign}": signs.count(sign) / max(1, len(signs)) for sign in SIGNS},
        "repeated equations": 1 - len({(one.operands, one.operators) for one in computed}) / count if computed else 0.0,
    }
    known, used, invented, taken, operands = set(asked), set[float](), 0, 0, 0
    for equation in computed:
        for operand in equation.operands:
            operands += 1
            used.add(operand)
            taken += operand in asked
            invented += not (operand in known or operand in PLAIN or operand * 100 in known)
        known.add(equation.result)
    results = [equation.result for equation in computed]
    answer = said[-1] if said else 0.0
    quantities = {
        "numbers asked used": len(used & asked) / max(1, len(asked)) if computed else 0.0,
        "numbers asked unused": math.log1p(len(asked - used)) if computed else 0.0,
        "operands from nowhere": invented / max(1, operands),
        "any operand from nowhere": float(invented > 0),
        "operands from the problem": taken / max(1, operands),
        "results unused": sum(result not in used for result in results[:-1]) / count,
        "answer is the last result": float(bool(results) and _near(answer, results[-1])),
        "answer is any result": float(any(_near(answer, result) for result in results)),
        "answer is asked": float(answer in asked),
        "answer is whole": float(answer == int(answer)),
        "answer is negative": float(bool(results) and results[-1] < 0),
        "answer is below one": float(0 < answer < 1),
        "answer is zero": float(answer == 0),
        "log answer over largest asked": math.log((abs(answer) + 1) / (max(asked, default=0.0) + 1)),
        "log answer under smallest asked": math.log((abs(answer) + 1) / (min(asked, default=0.0) + 1)),
        "results not whole": sum(result != int(result) for result in results) / count,
        "results negative": sum(result < 0 for result in results) / count,
        "numbers in the answer line": math.log1p(len(numbers(response.rstrip().rsplit("\n", 1)[-1]))),
    }
    return {"arithmetic": arithmetic, "quantities": quantities if said else dict.fromkeys(quantities, 0.0)}


def _near(one: float, other: float) -> bool:
    return abs(abs(one) - abs(other)) <= 1e-6 * max(1.0, abs(other))
