"""From a spec to an engine, and one engine for each spec in a process: models are large, and scorers share them.

A spec is one of these:

- text, "transformers:MODEL", "vllm:MODEL" or "openai:MODEL"; "smollm2" is a small model for trying things;
- a mapping with one key, `{openai: {model: ..., base_url: ...}}`, with the fields of the engine's configuration;
- the configuration itself, or an `Engine`;
- "policy", the policy that learns, for scorers that a run of `adjudge train policy` makes (`lent`).

Not covered: closing engines.  One that nobody holds any more is freed by itself.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

from adjudge import wire
from adjudge.engines import smollm2
from adjudge.engines.interface import Engine
from adjudge.options import named, options_of
from adjudge.runtime.fork_lock import anew_in_child

# Name in specs: module and class of the configuration, module and class of the engine.
_KINDS: Mapping[str, tuple[str, str]] = {
    "transformers": ("transformers_config:TransformersConfig", "transformers_engine:TransformersEngine"),
    "vllm": ("vllm_config:VllmConfig", "vllm_engine:VllmEngine"),
    "openai": ("openai_config:OpenAIConfig", "openai_engine:OpenAIEngine"),
}
_EXAMPLE = "such as transformers:MODEL, or {openai: {model: NAME, base_url: URL}}"

POLICY: Final = "policy"
_ALONE: Final = (smollm2.NAME, POLICY)  # which are no kinds, and take no options

# Not `isinstance(spec, Engine)`: before Python 3.12 that evaluates properties, and a fingerprint looks at the weights.
_CALLS = ("generate", "label_logprobs", "reference_logprobs", "classify", "classify_tokens", "close")

# Engines beyond these are kept only as long as somebody uses them.
_MOST = 8


class _Shelf:
    """The engines of this process, the least recently asked for first."""

    def __init__(self) -> None:
        self.begin_anew()
        anew_in_child(self)

    def begin_anew(self) -> None:
        """Forget all engines: a forked child cannot use its parent's."""
        self._lock = threading.Lock()
        self._engines: OrderedDict[tuple[str, str], Engine] = OrderedDict()

    def engine(self, kind: str, config: Any) -> Engine:
        """Return the engine of a configuration, made on first use; making one loads nothing."""
        key = (kind, wire.dumps(asdict(config)))
        with self._lock:
            if key not in self._engines:
                self._engines[key] = cast("Engine", _imported(_KINDS[kind][1])(config))
            self._engines.move_to_end(key)
            while len(self._engines) > _MOST:
                self._engines.popitem(last=False)
            return self._engines[key]


_shelf = _Shelf()


@dataclass(eq=False)
class Loan:
    """The engine that `policy` means, and whether a scorer took it."""

    engine: Engine
    taken: bool = False


_loan: ContextVar[Loan | None] = ContextVar("loan", default=None)


@contextmanager
def lent(engine: Engine) -> Iterator[Loan]:
    """Inside, `policy` is this engine to scorers that are made; they keep it (`bind_engines`)."""
    loan = Loan(engine)
    before = _loan.set(loan)
    try:
        yield loan
    finally:
        _loan.reset(before)


def bind_engines(scorer: Any, *options: str) -> None:
    """Look at the engines of a new scorer's options, and put the policy that learns where one is `policy`.

    A run has a policy of its own, so that the name means nothing any more behind its `lent`.

    Raises:
        ValueError: as `engine_of`.
    """
    for option in options:
        spec = getattr(scorer, option)
        engine = engine_of(spec)
        if spec == POLICY:
            object.__setattr__(scorer, option, engine)


def engine_of(spec: Any) -> Engine:
    """Return the engine that a spec describes; equal specs get the same engine, from any thread.

    Nothing is loaded and no server is asked before the engine is used.

    Raises:
        ValueError: the spec is malformed, or an option is unknown or out of range.
    """
    for kind, (home, _) in _KINDS.items():
        if isinstance(spec, _imported(home)):
            return _shelf.engine(kind, spec)
    if isinstance(spec, str) and spec == POLICY:
        loan = _loan.get()
        if loan is None:
            raise ValueError(
                "engine: policy is the policy that learns, which is there only for the reward, measured_by, guard.gold "
                "and the improver's critic of a run (adjudge train policy), in this process; name a model elsewhere, "
                "transformers:MODEL for a frozen copy"
            )
        loan.taken = True
        return loan.engine
    if isinstance(spec, str):
        kind, _, model = (f"transformers:{smollm2.NAME}" if spec == smollm2.NAME else spec).partition(":")
        options: Any = model.strip()
    elif isinstance(spec, Mapping):
        if len(spec) != 1:
            raise ValueError(f"an engine's spec has one key, the kind of engine, and not {len(spec)}; {_EXAMPLE}")
        ((kind, options),) = spec.items()
    elif _answers(cast("Hashable", type(spec))) or all(
        callable(inspect.getattr_static(spec, call, None)) for call in _CALLS
    ):
        return cast("Engine", spec)
    else:
        raise ValueError(f"{spec!r} is not an engine; give text or a mapping, {_EXAMPLE}")
    return _shelf.engine(kind, _configured(kind, options))


@functools.lru_cache(maxsize=256)  # scorers hand their engine over with each batch
def _answers(kind: Hashable) -> bool:
    return all(callable(inspect.getattr_static(kind, call, None)) for call in _CALLS)


def _configured(kind: Any, options: Any) -> Any:
    if kind in _ALONE:
        raise ValueError(f"the engine {kind!r} is given as this one word; options go with a kind of engine, {_EXAMPLE}")
    home, _ = named({**_KINDS, **dict.fromkeys(_ALONE, ("", ""))}, kind, "kind of engine")
    if isinstance(options, str):
        options = {"model": options} if options else {}
    make = _imported(home)
    given = options_of(options, list(inspect.signature(make).parameters), inside=f"the engine {kind!r}")
    if given.get("model") == smollm2.NAME and kind != "openai":
        given["model"] = smollm2.smollm2_folder()
    if not given.get("model"):
        raise ValueError(f"the engine {kind!r} needs a model; {_EXAMPLE}")
    try:
        return make(**given)
    except TypeError as error:
        raise ValueError(f"the engine {kind!r} cannot be made with the options given: {error}") from error


def _imported(home: str) -> Any:
    module, _, name = home.partition(":")
    return getattr(importlib.import_module(f"adjudge.engines.{module}"), name)
