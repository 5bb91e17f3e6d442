"""Specs of engines: what they mean, that equal ones share an engine, and what a mistake is told."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from adjudge.engines import loading
from adjudge.engines.loading import engine_of
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine


@pytest.fixture(autouse=True)
def _empty_shelf() -> Iterator[None]:
    loading._shelf.begin_anew()
    yield
    loading._shelf.begin_anew()


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param("transformers:some/model", id="text"),
        pytest.param({"transformers": "some/model"}, id="mapping-to-a-name"),
        pytest.param({"transformers": {"model": "some/model"}}, id="mapping-to-options"),
        pytest.param({"transformers": {"model": "some/model", "dtype": "auto"}}, id="a-default-spelled-out"),
        pytest.param(TransformersConfig(model="some/model"), id="configuration"),
    ],
)
def test_specs_that_mean_the_same_share_an_engine(spec: Any) -> None:
    made = engine_of("transformers:some/model")
    assert isinstance(made, TransformersEngine)
    assert made.config == TransformersConfig(model="some/model")
    assert engine_of(spec) is made
    assert engine_of(made) is made


@pytest.mark.parametrize(
    ("spec", "name", "model"),
    [
        pytest.param("openai:gpt-x", "openai", "gpt-x", id="openai"),
        pytest.param("vllm:some/model:v2", "vllm", "some/model:v2", id="vllm-with-a-colon-in-the-name"),
        pytest.param({"openai": {"model": "m", "base_url": "http://localhost:1/v1"}}, "openai", "m", id="options"),
    ],
)
def test_each_kind_has_its_engine(spec: Any, name: str, model: str) -> None:
    made = engine_of(spec)
    assert (made.name, made.model) == (name, model)


def test_other_options_are_another_engine() -> None:
    one, other = engine_of("transformers:m"), engine_of({"transformers": {"model": "m", "dtype": "bfloat16"}})
    assert one is not other


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param("transformer:m", "did you mean 'transformers'", id="misspelt-kind"),
        pytest.param("smolm2", "did you mean 'smollm2'.*; there are .*smollm2, policy", id="misspelt-smollm2"),
        pytest.param("SmolLM2", "did you mean 'smollm2'", id="capitals"),
        pytest.param({"smollm2": {"dtype": "float32"}}, "'smollm2' is given as this one word", id="smollm2-options"),
        pytest.param("some/model", "unknown kind of engine 'some/model'", id="no-kind"),
        pytest.param("transformers:", "needs a model", id="no-model"),
        pytest.param("openai", "needs a model", id="kind-alone"),
        pytest.param({}, "one key", id="empty-mapping"),
        pytest.param({"openai": "a", "vllm": "b"}, "one key", id="two-kinds"),
        pytest.param({"transformers": {"model": "m", "dtyp": "x"}}, "did you mean 'dtype'", id="misspelt-option"),
        pytest.param({"transformers": {"dtype": "float32"}}, "needs a model", id="options-without-model"),
        pytest.param({"transformers": {"model": "m", "dtype": "int3"}}, "dtype='int3'", id="bad-value"),
        pytest.param({"transformers": ["m"]}, "mapping of options", id="list"),
        pytest.param({"transformers": {"model": "./nowhere"}}, "no such folder", id="no-folder"),
        pytest.param(None, "None is not an engine", id="none"),
        pytest.param(7, "7 is not an engine", id="number"),
    ],
)
def test_mistakes_name_the_remedy(spec: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        engine_of(spec)


def test_threads_get_one_engine() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: engine_of("transformers:m"), range(32)))
    assert len({id(one) for one in made}) == 1


def test_only_so_many_are_kept() -> None:
    first, second = weakref.ref(engine_of("transformers:0")), weakref.ref(engine_of("transformers:1"))
    for number in range(2, loading._MOST + 1):
        engine_of("transformers:0")
        engine_of(f"transformers:{number}")
    gc.collect()
    assert first() is engine_of("transformers:0")
    assert second() is None  # the one that was not asked for since


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # forks are what is tested
def test_a_forked_child_gets_an_engine_of_its_own() -> None:
    mine = engine_of("transformers:m")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if engine_of("transformers:m") is not mine else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert engine_of("transformers:m") is mine


def test_a_spec_loads_no_model_and_no_library() -> None:
    program = (
        "import sys\nfrom adjudge.engines.loading import engine_of\n"
        "for kind in ('transformers', 'vllm', 'openai'):\n    engine_of(kind + ':m')\n"
        "heavy = {'torch', 'transformers', 'vllm', 'numpy', 'httpx', 'jinja2'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_missing_library_is_named(causal_model: Path) -> None:
    program = (
        "import asyncio, sys\nsys.modules['torch'] = None\nfrom adjudge.engines.loading import engine_of\n"
        f"engine = engine_of({f'transformers:{causal_model}'!r})\n"
        "try:\n    asyncio.run(engine.classify(['x']))\nexcept ValueError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'adjudge[models]'" in done.stdout, done.stderr
