"""`check_scorer`: does a scorer keep the rules that everything else in adjudge relies on?

Every scorer of the project passes it, and authors of plug-ins can run it on theirs, from a test or from the command
line.  Each rule is tried on the samples given, so give a handful that get different scores.

Not covered: whether the scores are right, how fast they come, and a call that hangs inside C code which holds the
interpreter's lock: nothing in the same process can notice it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from adjudge import wire
from adjudge.protocol import Message, Sample, Score, Scorer, Verifier
from adjudge.runtime.contract import BrokenScorer, grouped, is_groupwise, score_checked, validate_sample
from adjudge.runtime.loop import in_thread
from adjudge.scoring import registry

T = TypeVar("T")
Outcome = Literal["ok", "failed", "skipped"]

_SECONDS = 60.0  # the first call of a model loads it: vLLM takes 25 s to start, and its first call up to 15 s
_THREADS = 4
_MEGABYTE = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Check:
    """The outcome of one rule.

    Attributes:
        rule: its name.
        outcome: "ok", "failed" or "skipped".
        detail: what was seen, or why it was skipped; empty if all is well.
    """

    rule: str
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What `check_scorer` found; print it, or call `raise_for_failures` in a test.

    Attributes:
        scorer: the scorer's name.
        fingerprint: its fingerprint when the check began.
        checks: one entry per rule, in the order tried.
    """

    scorer: str
    fingerprint: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether no rule failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Check, ...]:
        """The rules that failed."""
        return tuple(check for check in self.checks if check.outcome == "failed")

    def raise_for_failures(self) -> None:
        """Raise `AssertionError` with the whole report if a rule failed."""
        if not self.ok:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        width = max(len(check.rule) for check in self.checks)
        head = f"scorer {self.scorer!r} ({self.fingerprint}): " + ("conforms" if self.ok else "does not conform")
        rows = [f"  {check.outcome:<7}  {check.rule:<{width}}  {check.detail}".rstrip() for check in self.checks]
        return "\n".join([head, *rows])


def check_scorer(
    scorer: Any, samples: Sequence[Sample], *, tolerance: float = 0.0, seconds: float = _SECONDS
) -> Report:
    """Try a scorer against the rules of the protocol.

    A verifier runs in worker processes, which its own limits kill.  Nothing can kill another scorer's call: one that
    takes longer than `seconds` fails the rule that made it and ends the check, and its thread is left behind.

    Args:
        scorer: a `Scorer`, a `Verifier`, or anything else `adjudge.load` takes.
        samples: valid samples, best some that get different scores; for a groupwise scorer whole groups.
        tolerance: largest difference between two values that still counts as the same score; above 0 only values,
            statuses and reasons are compared.  Leave it at 0 for programs; models on a GPU may need 1e-5.
        seconds: longest time that one call of `score`, with all samples, may take.  Give more to a verifier whose
            limits add up to more.

    Raises:
        ValueError: there are no samples, one lacks what the scorer needs, or `seconds` is not positive.
    """
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise ValueError(f"check_scorer got seconds={seconds!r}; give the seconds one call may take, more than 0")
    if not samples:
        raise ValueError("check_scorer needs samples to try the scorer on; give a few that get different scores")
    ready = registry.load(scorer)
    for sample in samples:
        validate_sample(ready, sample)
    return _watched(_Trial(ready, tuple(samples), tolerance, _Calls(seconds)))


def hostile_responses() -> dict[str, str | list[Message]]:
    """Return responses that a scorer must survive, each under a short name; the empty one is a rule of its own."""
    return {
        "blank": " \t\r\n\x0b\x0c ",
        "long text": "a " * (_MEGABYTE // 2),
        "long number": "9" * 100_000,
        "number beyond floats": "\\boxed{1e999}",
        "not a number": "nan",
        "power tower": "\\boxed{9^{9^{9^{9^{9}}}}}",
        "NUL": "the answer is \x004\x00",
        "lone surrogates": "\ud800 \\boxed{\udfff} \udc00",
        "right to left and zero width": "\u202e\u200b\u200d\ufeff\u2066\\boxed{\u0664\u200b2}\u2069",
        "stacked accents": "z" + "\u0301" * 20_000,
        "control characters": "\x1b[2J\x1b]0;x\x07\r\x08\x7f",
        "open brackets": "(" * 100_000,
        "nested LaTeX": "\\boxed{" + "\\frac{" * 20_000 + "1" + "}{2}" * 20_000 + "}",
        "nested JSON": "[" * 50_000 + "]" * 50_000,
        "unclosed box": "\\boxed{" * 1_000,
        "unclosed thought": "<think>" * 1_000 + " 4",
        "format strings": "{0.__class__} %s %n ${x} {{}} \\1 \\N{DASH} `id` $(id)",
        "no turn": [],
        "no assistant turn": [{"role": "tool", "content": "4"}],
        "no content": [{"role": "assistant", "content": None, "tool_calls": []}],
        "content parts": [{"role": "assistant", "content": [{"type": "image"}, {"type": "text", "text": "4"}]}],
    }


class _Skipped(Exception):
    """Why a rule was not tried."""


class _Trial:
    """One scorer under test; every rule returns what is wrong, or nothing."""

    def __init__(self, scorer: Scorer, samples: tuple[Sample, ...], tolerance: float, calls: _Calls) -> None:
        self.scorer = scorer
        self.samples = samples
        self.tolerance = tolerance
        self.calls = calls
        self.groupwise = is_groupwise(scorer)
        self.name = scorer.name
        self.fingerprint = scorer.fingerprint
        self.before = [_image(sample) for sample in samples]
        self.first: list[Score] = []
        self.repeatable = False
        self.to_hostile: dict[str, Score] = {}
        self.cancel: Callable[[], object] = lambda: None
        self.checks: list[Check] = []
        self.rules: dict[str, Callable[[], Awaitable[str]]] = {
            "identity": self.identity,
            "empty batch": self.empty_batch,
            "one score each": self.one_score_each,
            "repeatable": self.same_again,
            "any order": self.any_order,
            "any batch": self.any_batch,
            "duplicates": self.duplicates,
            "blind to labels": self.blind_to_labels,
            "JSON": self.survives_json,
            "pickling": self.survives_pickling,
            "overlapping calls": self.overlapping_calls,
            "threads": self.threads,
            "empty responses": self.empty_responses,
            "hostile responses": self.hostile,
            "no escape": self.no_escape,
            "samples untouched": self.samples_untouched,
            "stable fingerprint": self.stable_fingerprint,
        }

    async def try_all(self) -> None:
        if (task := asyncio.current_task()) is not None:
            loop, cancel = task.get_loop(), task.cancel
            self.cancel = lambda: loop.call_soon_threadsafe(cancel)
        for name, rule in self.rules.items():
            self.checks.append(await self._try(name, rule))

    def report(self, cut_short: str = "") -> Report:
        """What was found so far; `cut_short` is what ended the trial in the middle of a rule."""
        checks = list(self.checks)
        if cut_short and len(checks) < len(self.rules):  # a late call may return at this very moment
            running, *untried = list(self.rules)[len(checks) :]
            checks.append(Check(rule=running, outcome="failed", detail=cut_short))
            checks += [
                Check(rule=rule, outcome="skipped", detail=f"the check ended at {running!r}") for rule in untried
            ]
        return Report(scorer=str(self.name), fingerprint=str(self.fingerprint), checks=tuple(checks))

    async def _try(self, name: str, rule: Callable[[], Awaitable[str]]) -> Check:
        try:
            detail = await rule()
        except _Skipped as skipped:
            return Check(rule=name, outcome="skipped", detail=str(skipped))
        except Exception as error:  # noqa: BLE001 what a scorer under test raises is the finding
            detail = str(error) if isinstance(error, BrokenScorer) else f"raised {type(error).__name__}: {error}"
        return Check(rule=name, outcome="failed" if detail else "ok", detail=detail)

    async def _ask(self, samples: Sequence[Sample]) -> list[Score]:
        with self.calls.one():
            return await score_checked(self.scorer, samples)

    async def identity(self) -> str:
        for what, value in (("name", self.name), ("fingerprint", self.fingerprint)):
            if not isinstance(value, str) or not value:
                return f"the {what} is {value!r}; it must be text, and not empty"
        return ""

    async def empty_batch(self) -> str:
        with self.calls.one():
            scores = await self.scorer.score([])
        return "" if isinstance(scores, list) and not scores else f"an empty batch gave {scores!r} instead of []"

    async def one_score_each(self) -> str:
        self.first = await self._ask(list(self.samples))
        return ""

    async def same_again(self) -> str:
        self._need_first()
        detail = self._difference(self.first, await self._ask(self.samples), "asked again")
        self.repeatable = not detail
        return detail

    async def any_order(self) -> str:
        self._need_repeatable()
        order = list(range(len(self.samples)))[::-1]
        if self.groupwise:
            order = [index for group in reversed(self._groups()) for index in group]
        if len({self._key(score) for score in self.first}) < 2:
            raise _Skipped("all samples got the same score, so their order cannot be seen; give others")
        backwards = await self._ask([self.samples[index] for index in order])
        return self._difference([self.first[index] for index in order], backwards, "in reversed order")

    async def any_batch(self) -> str:
        self._need_repeatable()
        pieces = self._groups() if self.groupwise else [[index] for index in range(len(self.samples))]
        if len(pieces) < 2:
            raise _Skipped("one group cannot be split" if self.groupwise else "one sample cannot be split")
        for piece in pieces:
            alone = await self._ask([self.samples[index] for index in piece])
            if detail := self._difference([self.first[index] for index in piece], alone, "in a batch of its own"):
                return detail
        return ""

    async def duplicates(self) -> str:
        self._need_repeatable()
        if self.groupwise:
            raise _Skipped("the scorer compares the members of a group, so a copy is another member")
        doubled = [sample for sample in self.samples for _ in range(2)]
        expected = [score for score in self.first for _ in range(2)]
        return self._difference(expected, await self._ask(doubled), "beside a copy of itself")

    async def blind_to_labels(self) -> str:
        self._need_repeatable()
        if self.groupwise:
            raise _Skipped("the scorer compares the members of a group")
        renamed = [replace(sample, id=f"renamed-{index}", group="renamed") for index, sample in enumerate(self.samples)]
        return self._difference(self.first, await self._ask(renamed), "under another id and group")

    async def survives_json(self) -> str:
        self._need_first()
        for index, score in enumerate(self.first):
            back = Score.from_dict(json.loads(json.dumps(score.to_dict(), allow_nan=False)))
            if back.to_dict() != score.to_dict():
                return f"the score of sample {index} is not the same after a trip through JSON"
        return ""

    async def survives_pickling(self) -> str:
        verifier = self._verifier()
        if verifier is None:
            raise _Skipped("only verifiers travel to worker processes")
        import pickle

        from adjudge.runtime.pickling import pack

        copy = pickle.loads(pack(verifier))
        return "" if copy.fingerprint == verifier.fingerprint else "the fingerprint changes when it is pickled"

    async def overlapping_calls(self) -> str:
        self._need_repeatable()
        for scores in await asyncio.gather(*(self._ask(self.samples) for _ in range(3))):
            if detail := self._difference(self.first, scores, "while another call was running"):
                return detail
        return ""

    async def threads(self) -> str:
        self._need_repeatable()

        calls = [in_thread(lambda: asyncio.run(self._ask(self.samples)), "adjudge-check") for _ in range(_THREADS)]
        for call in calls:
            scores = await asyncio.wrap_future(call)
            if detail := self._difference(self.first, scores, "from another thread"):
                return detail
        return ""

    async def empty_responses(self) -> str:
        """After a kill the runtime asks again with an empty response, and takes a failure for the reference's."""
        self._need_first()
        emptied = await self._ask([replace(sample, response="") for sample in self.samples])
        for index, (first, empty) in enumerate(zip(self.first, emptied, strict=True)):
            if first.status != "failed" and empty.status == "failed":
                error = f": {empty.evidence['error']}" if "error" in empty.evidence else ""
                return f"sample {index} could be judged, and with an empty response it is {_brief(empty)}{error}"
            if self._verifier() and first.reason == "gold_unparsable" and empty.status != "failed":
                return (
                    f"the reference of sample {index} cannot be read, and with an empty response that goes unseen: "
                    f"{_brief(empty)}; look at the reference first"
                )
        return ""

    async def hostile(self) -> str:
        self._need_first()
        base = next((s for s, score in zip(self.samples, self.first, strict=True) if score.status == "scored"), None)
        if base is None:
            raise _Skipped("no sample was scored, so there is none to answer badly; give one")
        broken = []
        for name, response in hostile_responses().items():
            batch = [replace(base, response=response)]
            if self.groupwise:
                batch.extend(sample for sample in self.samples if sample.group == base.group)
            try:
                self.to_hostile[name] = (await self._ask(batch))[0]
            except BrokenScorer as error:
                broken.append(f"{name}: {error}")
        return "; ".join(broken)

    async def no_escape(self) -> str:
        if not self.to_hostile:
            raise _Skipped("no hostile response was scored")
        escaped = [
            f"{name} ({score.reason})"
            for name, score in self.to_hostile.items()
            if score.status == "failed" and score.reason != "undecided"
        ]
        if escaped:
            return f"a response escapes its score by being: {', '.join(escaped)}; what a response does must score 0"
        return ""

    async def samples_untouched(self) -> str:
        changed = [str(index) for index, sample in enumerate(self.samples) if _image(sample) != self.before[index]]
        return f"the scorer changed the samples {', '.join(changed)}" if changed else ""

    async def stable_fingerprint(self) -> str:
        now = self.scorer.fingerprint
        return "" if now == self.fingerprint else f"the fingerprint went from {self.fingerprint!r} to {now!r}"

    def _verifier(self) -> Verifier | None:
        verifier = getattr(self.scorer, "verifier", None)
        return verifier if isinstance(verifier, Verifier) else None

    def _need_first(self) -> None:
        if not self.first:
            raise _Skipped("the scorer gave no proper scores")

    def _need_repeatable(self) -> None:
        self._need_first()
        if not self.repeatable:
            raise _Skipped("the scorer does not repeat itself, so nothing can be compared")

    def _groups(self) -> list[list[int]]:
        return list(grouped({index: sample.group for index, sample in enumerate(self.samples)}).values())

    def _difference(self, expected: Sequence[Score], scores: Sequence[Score], when: str) -> str:
        for index, (one, other) in enumerate(zip(expected, scores, strict=True)):
            if not self._same(one, other):
                return f"a sample scored differently {when} (place {index}): {_brief(one)}, then {_brief(other)}"
        return ""

    def _same(self, one: Score, other: Score) -> bool:
        if self.tolerance == 0.0:
            return self._key(one) == self._key(other)
        if one.value is None or other.value is None:
            return (one.status, one.reason) == (other.status, other.reason)
        return one.reason == other.reason and abs(one.value - other.value) <= self.tolerance

    def _key(self, score: Score) -> str:
        """The score as text, without its cost, which may differ from call to call."""
        try:
            return json.dumps(_without_cost(score.to_dict()), sort_keys=True)
        except TypeError:  # the JSON rule reports evidence that is not plain data
            return repr((score.value, score.status, score.reason))


class _Calls:
    """The calls of `score` under way, and when the first of them is late."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._due: dict[object, float] = {}

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        key = object()
        with self._lock:
            self._due[key] = time.monotonic() + self.seconds
        try:
            yield
        except SystemExit as error:  # it would end the program that checks, maybe with the exit code 0
            raise BrokenScorer(f"`score` raised SystemExit: {error}") from error
        finally:
            with self._lock:
                del self._due[key]

    def seconds_left(self) -> float:
        """How long no call can be late, one that begins now included; 0 when one is."""
        now = time.monotonic()
        with self._lock:
            return max(0.0, min(self._due.values(), default=now + self.seconds) - now)


def _watched(trial: _Trial) -> Report:
    """Run a trial on a thread of its own, and return what it found until it ended, or until a call was late."""
    work = in_thread(lambda: asyncio.run(trial.try_all()), "adjudge-check")
    try:
        while not work.done():
            left = trial.calls.seconds_left()
            if not left:
                return trial.report(
                    f"a call of `score` did not return within {trial.calls.seconds:g} s; if it needs longer, give "
                    "check_scorer more `seconds`"
                )
            wait([work], timeout=left)
    finally:
        with contextlib.suppress(RuntimeError):  # the loop is closed: all is done
            trial.cancel()  # Ctrl-C, or a late call; what only waits ends here, what computes is left behind
    work.result()
    return trial.report()


def _without_cost(data: Mapping[str, Any]) -> dict[str, Any]:
    parts = {name: _without_cost(part) for name, part in data["parts"].items()}
    return {**data, "parts": parts, "cost": None}


def _brief(score: Score) -> str:
    return f"{score.value!r} ({score.status}{f', {score.reason}' if score.reason else ''})"


def _image(sample: Sample) -> str:
    try:
        return wire.dumps(sample.to_dict())
    except TypeError:
        return repr(sample)
