# Every target sets up what it needs: Python 3.11 or newer, make and a package registry are enough.
#
#   PYTHON=python3.12   the Python that the virtual environment is made with
#   VENV=folder         where that environment lies
#   PYTEST_ARGS="..."   more arguments for pytest: make test PYTEST_ARGS="-k lock -x"
#   BENCH_ARGS="..."    arguments for the measures: make bench BENCH_ARGS="--only start"
#   PEERS_ARGS="..."    arguments for them: make bench-peers PEERS_ARGS="--only dbos"
#   MUTANTS_ARGS="..."  arguments for them: make mutants MUTANTS_ARGS="--only machine.py"
#   FUZZ_ARGS="..."     arguments for the search: make fuzz FUZZ_ARGS="--seconds 600 --workers 2"

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=
FUZZ_ARGS ?=
BENCH_ARGS ?=
PEERS_ARGS ?=
MUTANTS_ARGS ?=

RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check install --quiet --quiet
PYTEST := $(RUN) -m pytest --no-header -n auto

# Two stamps, so that `make demo` need not wait for the developer's tools. Each is older than a changed
# pyproject.toml, and void when the checkout was moved or copied or another Python was asked for: an
# environment that still points at another folder would test the code over there.
PACKAGE := $(VENV)/.package
DEVELOPMENT := $(VENV)/.development
MADE_FOR := $(CURDIR) with $(PYTHON)
VOID := $(shell test -x $(RUN) && test "$$(cat $(PACKAGE) 2>&1)" = "$(MADE_FOR)" || echo void)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all bench bench-quick bench-peers fuzz mutants evidence evidence-record check format generate readme wheel install clean $(VOID)
.PHONY: check-format check-lint check-types check-imports check-spec

help: ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target says; \
	do printf '%-17s %s\n' "$$target" "$$says"; done

demo: $(PACKAGE) ## Kill an order between charge and answer, and see it recovered without a second charge.
	@$(RUN) examples/order/demo.py

test: $(DEVELOPMENT) ## Run the tests that belong to every change (three minutes at most).
	@$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-all: $(DEVELOPMENT) ## Run the tests that take too long for `make test`, and only those.
	@$(PYTEST) -m slow $(PYTEST_ARGS)

fuzz: $(DEVELOPMENT) ## Search for a failure until Ctrl-C; what fails is kept in .hypothesis and replayed.
	@$(RUN) -m tests.stateful.fuzz $(FUZZ_ARGS)

mutants: $(DEVELOPMENT) ## Break the core on purpose, and see the tests fail (an hour or two; it goes on where it was).
	@$(PIP) --editable '.[dev,mutants]'
	@$(RUN) -m tests.mutation $(MUTANTS_ARGS)

evidence: $(DEVELOPMENT) ## Renew the recorded results that are quick to make, if their sources have changed.
	@$(RUN) -m crashtests.verify results/crash-matrix.json > /dev/null && echo "results/crash-matrix.json: up to date" || \
	  $(RUN) -m crashtests.reproduce --output results/crash-matrix.json

evidence-record: evidence ## Renew the recorded results that take long, too.
	@$(RUN) -m crashtests.sweep --output results/crash-sweep.json

bench: $(DEVELOPMENT) ## Measure beside the limits, and renew docs/performance.md (leave the machine alone meanwhile).
	@$(RUN) -m benchmarks --output results/benchmarks.json $(BENCH_ARGS)

bench-peers: $(DEVELOPMENT) ## Measure beside other durable runtimes, each in an environment of its own.
	@$(RUN) -m benchmarks.peers --output results/benchmarks-peers.json $(PEERS_ARGS)

bench-quick: $(DEVELOPMENT) ## Run each measure in its smallest size, to see that it works.
	@$(RUN) -m benchmarks --quick $(BENCH_ARGS)

check: check-format check-lint check-types check-imports check-spec ## Check layout, lint, types, layers, and generated files.

format: $(DEVELOPMENT) ## Lay the code out, and sort the imports.
	@$(RUN) -m ruff check --quiet --select I --fix
	@$(RUN) -m ruff format

generate: $(PACKAGE) ## Render everything that is generated from spec/*.toml.
	@$(RUN) spec/generate.py

readme: $(DEVELOPMENT) ## Renew the demo's output in the README.
	@$(RUN) -m tests.docs.readme

wheel: $(DEVELOPMENT) ## Build the source archive and the wheel into dist/.
	@$(RUN) -m build --outdir dist > $(VENV)/build.log 2>&1 || { cat $(VENV)/build.log; exit 1; }
	@ls dist/*

install: $(DEVELOPMENT) ## Make the virtual environment with the developer's tools.

clean: ## Remove the virtual environment, caches and built files.
	@test ! -e $(VENV)/pyvenv.cfg || rm -rf $(VENV)
	@rm -rf .venv-peers dist build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the checks, each with one line that says how it went ------------------------------------------

# $(call quietly,name,command): what the command printed is shown only if it failed.
quietly = @if said=$$($(2) 2>&1); then echo '$(1): ok'; else printf '%s\n' '$(1): FAILED' "$$said"; exit 1; fi

check-format: $(DEVELOPMENT)
	$(call quietly,layout,$(RUN) -m ruff format --check)

check-lint: $(DEVELOPMENT)
	$(call quietly,lint,$(RUN) -m ruff check)

check-types: $(DEVELOPMENT)
	$(call quietly,types,$(RUN) -m mypy)

check-imports: $(DEVELOPMENT)
	$(call quietly,layers,$(VENV)/bin/lint-imports --no-logo)

check-spec: $(PACKAGE)
	$(call quietly,generated files,$(RUN) spec/generate.py --check)

# --- the virtual environment ----------------------------------------------------------------------

$(PACKAGE): pyproject.toml $(VOID)
	@$(PYTHON) -c 'pass' || { echo "make: '$(PYTHON)' does not run. Name a Python >= 3.11: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: '$(PYTHON)' is $$($(PYTHON) --version), and Python 3.11 or newer is needed." \
	    "Name one: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { \
	  echo "make: '$(PYTHON)' has no venv module. On Debian: apt-get install python3-venv"; exit 1; }
	@test ! -e $(VENV) || test -e $(VENV)/pyvenv.cfg || { \
	  echo "make: '$(VENV)' is there and is no virtual environment; it is left alone."; exit 1; }
	@$(if $(VOID),rm -rf $(VENV) && $(PYTHON) -m venv $(VENV))
	@echo "Installing the package into $(VENV) ..."
	@$(PIP) --editable .
	@echo "$(MADE_FOR)" > $@

$(DEVELOPMENT): $(PACKAGE)
	@echo "Installing the developer's tools into $(VENV) ..."
	@$(PIP) --editable '.[dev]'
	@touch $@
