"""Names and specs of scorers: what `adjudge.load` understands, and where the names come from.

Classes are listed in `adjudge.scoring.builtin`, published scorers that are data lie in `adjudge/presets`, and plug-ins
add theirs through the entry point group `adjudge.scorers`.  All are imported when asked for and never before; importing
a module registers nothing.

A spec is any of these, and they nest:

- a name, "math", or "package.module:object", or "./file.py:object";
- the folder of a trained reward model, "./my_reward_model", or the name of one on the hub, "organisation/model";
- one key with options, `{length: {max_length: 400}}`, or with parts, `{weighted: {math: 1.0, format: 0.1}}`;
- the same as YAML or JSON text, or the path of a .yaml, .yml or .json file;
- a `Verifier` or a `Scorer`, or a class or function that makes one;
- a function that scores: one with a parameter `response`, as `FunctionVerifier` says.

A spec may import any module or file: treat spec files like code.  Not covered: composites themselves, which read
their own part of a spec (`from_spec` in `adjudge.scoring.compose`).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import logging
import operator
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.io.yaml_text import parsed
from adjudge.options import options_of, suggestion
from adjudge.protocol import Scorer, Verifier
from adjudge.runtime.contract import lacking_of
from adjudge.runtime.function_verifier import FunctionVerifier, is_scoring
from adjudge.runtime.python_files import module_of
from adjudge.scoring.builtin import BUILTIN, preset_names, unlisted

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "adjudge.scorers"

_LOG = logging.getLogger(__name__)
_PRESETS = "adjudge.scoring.presets"
_SCORER_IN = "adjudge.reward_models.training.report:scorer_in"
_FILE_ENDINGS = (".yaml", ".yml", ".json")
_OBJECT = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")
_FILE_OBJECT = re.compile(r"(.+\.py)(?::([^\W\d][\w.]*))?")
_NAME = re.compile(r"[\w.-]+")
_HUB = re.compile(r"\w[\w.-]*/[\w.-]+")
_PATH = re.compile(r"[\w.~@+/ -]*/[\w.~@+/ -]*")
_MAX_DEPTH = 32  # nesting of specs; a YAML alias can make one contain itself


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What is known about a name, for people who choose one.

    Attributes:
        name: the name in specs.
        home: "module:object".
        summary: the first line of its docstring.
        reference: what `Sample.reference` must hold, in a few words; "" if the scorer does not say.
        options: the options with their defaults as text.
        form: how the part of a spec behind the name is written, where that is not a mapping of the options.
        source: the paper or system, where it is a preset.
        problem: why it cannot be used, else "".
    """

    name: str
    home: str
    summary: str = ""
    reference: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    form: str = ""
    source: str = ""
    problem: str = ""


def names() -> list[str]:
    """Return all names, classes first, then presets, then plug-ins, without importing any scorer."""
    own = [*BUILTIN, *unlisted(), *preset_names()]
    return [*own, *sorted(set(_plugins()) - set(own))]


def resolve(name: str) -> Any:
    """Return the class, function or object behind a name or a "module:object".

    Raises:
        ValueError: the name is unknown, given twice, or cannot be imported.
    """
    return _imported(_home(name), name)


def load(spec: Any) -> Scorer:
    """Return the scorer that a spec describes; the module docstring lists the forms.

    Raises:
        ValueError: the spec is malformed, names something unknown, or has options that do not fit.
    """
    return _SpecLoader(base=Path(), depth=0).scorer(spec)


def as_scorer(thing: Any, options: Mapping[str, Any] | None = None, *, called: str = "") -> Scorer:
    """Return a scorer made of a `Verifier` or `Scorer` object, or of a class or function that makes one.

    Args:
        thing: the object, class or factory.
        options: keyword arguments for a class or factory.
        called: how errors name the thing.

    Raises:
        ValueError: the thing is none of these, or the options do not fit.
    """
    what = called or getattr(thing, "__qualname__", None) or repr(thing)
    finished = is_scoring(thing) or not (isinstance(thing, type) or lacking_of(thing))
    if finished and options:
        raise ValueError(f"{what} is a finished scorer and takes no options; got {', '.join(map(str, options))}")
    if not finished:
        if not callable(thing):
            raise ValueError(
                f"{what} is {thing!r}; a scorer must be a Verifier, a Scorer, a function that scores, or a class or "
                "function that makes one of these"
            )
        thing = _built(thing, options or {}, what)
    if is_scoring(thing):
        thing = FunctionVerifier(function=thing)
    if isinstance(thing, Verifier):
        return _verifier_scorer(thing, what)
    if lacking := lacking_of(thing):
        raise ValueError(
            f"{what} gave a {type(thing).__name__}, which is not a scorer (it lacks {', '.join(lacking)}); derive from "
            "adjudge.Verifier, or write a class with `name`, `fingerprint` and `async def score(self, samples)`"
        )
    scorer: Scorer = thing  # pyright: ignore[reportAssignmentType]  # nothing is lacking
    return scorer


def describe(name: str) -> Listing:
    """Return what is known about a name; a plug-in that cannot be imported is described by its problem."""
    try:
        home = _home(name)
        target = _imported(home, name)
    except ValueError as error:
        return Listing(name=name, home=BUILTIN.get(name, ""), problem=str(error))
    doc = inspect.getdoc(target) or ""
    if is_scoring(target):
        target = FunctionVerifier(function=target)
    options = (_defaults(target) or {}) if callable(target) else {}
    form = getattr(target, "spec_form", None)
    if form is None:
        form = (inspect.getdoc(getattr(target, "from_spec", None)) or "").partition("\n")[0]
    form = "" if "options" in form else form.removeprefix("Read ").rstrip(".")
    if form and not any(option in form for option in options):
        options = {}
    return Listing(
        name=name,
        home=home,
        summary=doc.partition("\n")[0],
        reference=_reference(target),
        options=options,
        form=form,
        source=getattr(target, "source", "") if home.startswith(_PRESETS) else "",
    )


@dataclass(frozen=True, kw_only=True)
class _SpecLoader:
    """Turns specs into scorers; `base` is the folder that relative file names in the spec start from."""

    base: Path
    depth: int

    def scorer(self, spec: Any) -> Scorer:
        if self.depth > _MAX_DEPTH:
            raise ValueError(f"the spec is nested more than {_MAX_DEPTH} levels deep; does it contain itself?")
        if isinstance(spec, str):
            return self._from_text(spec.strip())
        if isinstance(spec, os.PathLike):
            path = os.path.abspath(os.fspath(spec))
            return self._from_mapping({path: None}) if os.path.isdir(path) else self._from_file(path)
        if isinstance(spec, Mapping):
            return self._from_mapping(spec)
        if spec is None or isinstance(spec, list | tuple | int | float | bytes):
            raise ValueError(
                f"{spec!r} is not a scorer spec; give a name ({', '.join(names()[:3])}, ...), a mapping with a key "
                "such as {weighted: {math: 1.0, format: 0.1}}, or a file that ends in .yaml or .json"
            )
        return as_scorer(spec)

    def file(self, name: str) -> Path:
        return self.base / name

    def _from_text(self, text: str) -> Scorer:
        if text.endswith(_FILE_ENDINGS) and "\n" not in text:
            return self._from_file(text)
        if any(form.fullmatch(text) for form in (_NAME, _OBJECT, _FILE_OBJECT, _PATH)):
            return self._from_mapping({text: None})
        data = parsed(text, where=f"the spec {text!r}")
        if isinstance(data, str):
            raise ValueError(_unknown(text))
        return _SpecLoader(base=self.base, depth=self.depth + 1).scorer(data)

    def _from_file(self, name: str) -> Scorer:
        path = self.file(name)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problem = getattr(error, "strerror", None) or error
            raise ValueError(f"the spec file {str(path)!r} cannot be read: {problem}; check the path") from error
        data = parsed(text, where=f"the spec file {str(path)!r}")
        return _SpecLoader(base=path.parent, depth=self.depth + 1).scorer(data)

    def _from_mapping(self, spec: Mapping[Any, Any]) -> Scorer:
        if len(spec) != 1:
            raise ValueError(
                f"a scorer spec has one key, the scorer's name, and this one has {len(spec)}: "
                f"{', '.join(map(str, spec))}; to mix several use {{weighted: {{NAME: WEIGHT, ...}}}}, and to have one "
                "for each kind of row {by_kind: {KIND: SCORER, ...}}"
            )
        ((name, body),) = spec.items()
        if not isinstance(name, str):
            raise ValueError(f"a scorer spec has the key {name!r}; it must be a scorer's name")
        if (model := self._model(name, body)) is not None:
            return self._from_mapping(model)
        if file := _FILE_OBJECT.fullmatch(name):
            path = str(self.file(os.path.expanduser(file[1])))
            name = f"{path}:{file[2]}" if file[2] else path
        target = resolve(name)
        if numbers := getattr(target, "numbers", ""):
            _tell(name, numbers)
        if hasattr(target, "from_spec"):
            return as_scorer(target.from_spec(body, _SpecLoader(base=self.base, depth=self.depth + 1)), called=name)
        if body is not None and not isinstance(body, Mapping):
            raise ValueError(f"the scorer {name!r} takes a mapping of options, not {body!r}")
        return as_scorer(target, body, called=f"the scorer {name!r}")

    def _model(self, name: str, options: Any) -> dict[str, Any] | None:
        """The spec for a trained model: a folder, or a name on the hub; None if the name is of neither."""
        if _FILE_OBJECT.fullmatch(name) or _OBJECT.fullmatch(name) or name in BUILTIN or name in names():
            return None
        folder = self.file(os.path.expanduser(name))
        if os.path.isdir(folder):  # unlike Path.is_dir, it takes any text
            spec = _imported(_SCORER_IN, name)(folder)
        elif _HUB.fullmatch(name):
            spec = {"reward_model": {"model": name}}
        elif _PATH.fullmatch(name):
            raise ValueError(f"there is no file or folder {str(folder)!r}; check the path")
        else:
            return None
        if not isinstance(options, Mapping | None):
            raise ValueError(f"the model {name!r} takes a mapping of options, not {options!r}")
        return {scorer: {**given, **(options or {})} for scorer, given in spec.items()}


@functools.cache
def _plugins() -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points

    plugins: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=GROUP):
        plugins.setdefault(entry.name, []).append(entry)
    return plugins


def _home(name: str) -> str:
    """The "module:object" behind a name; two owners of one name are an error, never a silent choice."""
    if file := _FILE_OBJECT.fullmatch(name):
        if not file[2]:
            raise ValueError(f"{name!r} is a file; say which class or function of it, as in {f'{name}:NAME'!r}")
        return f"{module_of(file[1])}:{file[2]}"
    if _OBJECT.fullmatch(name):
        return name
    entries = _plugins().get(name, [])
    built_in = BUILTIN.get(name) or unlisted().get(name) or f"{_PRESETS}:{name}" * (name in preset_names())
    if entries and built_in:
        raise ValueError(
            f"the plug-in {_owner(entries[0])} registers the name {name!r}, which is built in and cannot be replaced. "
            f"Rename it there, or uninstall it; {entries[0].value!r} can be used by that address meanwhile"
        )
    if len({entry.value for entry in entries}) > 1:
        owners = " and ".join(f"{_owner(entry)} ({entry.value})" for entry in entries)
        raise ValueError(f"the name {name!r} is registered by {owners}; use the module:object you mean")
    if built_in:
        return built_in
    if entries:
        return entries[0].value
    raise ValueError(_unknown(name))


def _unknown(name: str) -> str:
    shown = name if len(name) <= 80 else f"{name[:77]}..."
    return f"unknown scorer {shown!r}; `adjudge scorers` lists the names{suggestion(name, names())}"


def _owner(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "of an unknown package"


def _imported(home: str, name: str) -> Any:
    module, _, path = home.partition(":")
    shown = name.rpartition(":")[0] if _FILE_OBJECT.fullmatch(name) else module
    with contextlib.suppress(KeyError, AttributeError):  # so that nobody waits for an import that waits for us
        return operator.attrgetter(path)(sys.modules[module])
    try:
        target: Any = importlib.import_module(module)
    except Exception as error:  # a plug-in's import may raise anything; it is reported under the scorer's name
        absent = isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
        hint = "; is it installed, or its folder on PYTHONPATH?" if absent else ""
        raise ValueError(
            f"the scorer {name!r} cannot be used: importing {shown!r} raised {type(error).__name__}: {error}{hint}"
        ) from error
    for attribute in path.split("."):
        try:
            target = getattr(target, attribute)
        except AttributeError as error:
            near = suggestion(attribute, [known for known in dir(target) if not known.startswith("_")])
            raise ValueError(f"the scorer {name!r} cannot be used: {shown!r} has no {path!r}{near}") from error
    return target


def _built(make: Callable[..., Any], options: Mapping[str, Any], what: str) -> Any:
    defaults = _defaults(make)
    given = options_of(options, list(defaults), inside=what) if defaults is not None else dict(options)
    required = [name for name, default in (defaults or {}).items() if default == _REQUIRED and name not in given]
    remedy = "" if isinstance(make, type) else _TWO_KINDS
    if required:
        asked = ", such as engine: {openai: {model: NAME, base_url: URL}}" if required[0] == "engine" else remedy
        raise ValueError(f"{what} needs the option {required[0]!r}{asked}")
    if hasattr(make, "__dataclass_fields__"):  # options of frozen dataclasses are tuples; YAML has only lists
        given = {name: _frozen(value) for name, value in given.items()}
    try:
        made = make(**given)
    except TypeError as error:
        raise ValueError(f"{what} cannot be made with the options {given!r}: {error}{remedy}") from error
    if inspect.iscoroutine(made):
        made.close()
        raise ValueError(f"{what} is an async function; a function in a spec must return a scorer")
    return made


_REQUIRED = "required"
_TWO_KINDS = (
    "; a function that scores has the parameters prompt and response, and reference if it compares with one, and is "
    "asked about one response (a function of TRL's, of lists, goes to TRL itself); any other makes a scorer of its "
    "options"
)


def _defaults(make: Callable[..., Any]) -> dict[str, str] | None:
    """The keyword options of a callable with their defaults as text; None if it takes any."""
    options: dict[str, str] = {}
    fields = getattr(make, "__dataclass_fields__", {})
    for parameter in inspect.signature(make).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            return None
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            default = parameter.default
            made = getattr(fields.get(parameter.name), "default_factory", MISSING)
            if made is not MISSING:
                default = made()  # its own text would be "<factory>"
            told = default.name if isinstance(default, Verifier) else default  # by its name, as a spec has it
            options[parameter.name] = _REQUIRED if default is parameter.empty else repr(told)
    return options


def _reference(target: Any) -> str:
    if not hasattr(target, "needs_reference"):
        return "that of its parts" if hasattr(target, "from_spec") else ""
    return {True: "needed", False: "none"}.get(target.needs_reference, "optional")


@functools.cache
def _tell(name: str, numbers: str) -> None:
    """Say once in a process that a published name stands for numbers that its source does not publish."""
    _LOG.warning("%s: its numbers are %s", name, numbers)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _verifier_scorer(verifier: Verifier, what: str) -> Scorer:
    if not is_dataclass(verifier):
        raise ValueError(
            f"{what} is a Verifier but no dataclass; decorate it with @dataclass(frozen=True, kw_only=True)"
        )
    if not isinstance(getattr(verifier, "name", None), str):
        raise ValueError(f"{what} is a Verifier without a name; give its class `name: ClassVar[str] = ...`")
    from adjudge.runtime.verifying import VerifierScorer

    return VerifierScorer(verifier)
