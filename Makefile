# irtool: `make demo` and `make test` set up all they need in .venv, from nothing but Python >= 3.11.

VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
CONFORMANCE ?= ../shared
PYTEST ?= -n auto --dist worksteal
BENCH ?=
FUZZ ?= --seconds 600
HOUSE ?=
BIN := $(VENV)/bin
PLAYGROUND := build/playground/snapshot.bin

# Where Python is told not to write compiled modules, each pytest that a test starts would rewrite the assertions of the whole package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv demo test oracle cluster browser docs check accept bench fuzz lines tables errors man house clean conformance
.DEFAULT_GOAL := help

help: ## this text
	@echo "make TARGET, where TARGET is one of"
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Variables: PYTHON=$(PYTHON) VENV=$(VENV) CONFORMANCE=$(CONFORMANCE) PYTEST='$(PYTEST)' BENCH='$(BENCH)' FUZZ='$(FUZZ)' HOUSE='$(HOUSE)'"

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 found; say make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp per set of extras: installing again only when what is asked for changed.
$(VENV)/installed: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/installed-test: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@ $(VENV)/installed

$(VENV)/installed-dev: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/installed $(VENV)/installed-test

$(VENV)/installed-oracle: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test,oracle]'
	@touch $@ $(VENV)/installed $(VENV)/installed-test

$(VENV)/installed-cluster: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test,cluster]'
	@touch $@ $(VENV)/installed $(VENV)/installed-test

$(VENV)/installed-browser: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[browser]'
	@touch $@ $(VENV)/installed $(VENV)/installed-test

$(VENV)/installed-docs: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@ $(VENV)/installed $(VENV)/installed-test

$(VENV)/installed-bench: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev,bench]'
	@touch $@ $(VENV)/installed $(VENV)/installed-test $(VENV)/installed-dev

venv: $(VENV)/installed-dev ## a virtual environment in .venv with irtool (editable) and every tool

demo: $(VENV)/installed ## the two commands of the README
	$(BIN)/irtool opt --passes=dce,cse,constant-propagation examples/lstm_cell.ir
	$(BIN)/irtool run examples/mlp.ir examples/mlp_inputs.npz

test: $(VENV)/installed-test ## all tests that need no torch (PYTEST='-x tests/test_npz.py' for some)
	$(BIN)/python -m pytest -m "not oracle" $(PYTEST)

oracle: $(VENV)/installed-oracle ## the tests that compare with torch, which is installed into .venv
	$(BIN)/python -m pytest -m oracle $(PYTEST)

cluster: $(VENV)/installed-cluster ## the tests on Dask workers, which are installed into .venv
	$(BIN)/python -m pytest -m cluster

browser: $(VENV)/installed-browser $(PLAYGROUND) ## the tests of pages in headless Chromium (apt-get install chromium npm)
	$(BIN)/python -m pytest -m browser $(shell grep -l mark.browser tests/test_*.py)

docs: $(VENV)/installed-docs ## the documentation as a site that works from disk, in build/site, and its tests
	IRTOOL_SITE=build/site $(BIN)/python -m pytest -m docs tests/test_site.py tests/test_notebooks.py
	@echo "open build/site/index.html"

check: $(VENV)/installed-dev ## what a change must pass: ruff, mypy --strict, lines, tests, those with torch too where it is installed
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python tools/lines.py --check
	$(BIN)/python -m pytest $(PYTEST)

accept: $(VENV)/installed-test ## rewrite expected outputs, then read the diff as if you had to sign it
	-$(BIN)/python -m pytest tests --accept $(PYTEST)
	git --no-pager diff --stat -- tests

$(PLAYGROUND): $(shell find irtool/ passes tools/playground tools/playground.py -type f -not -name '*.pyc') | $(VENV)/installed
	$(BIN)/python tools/playground.py

playground: $(PLAYGROUND) ## a static page that runs irtool in the browser, in build/playground (apt-get install npm)
	@echo "$(BIN)/python -m http.server --bind 127.0.0.1 -d build/playground 8000"

bench: $(VENV)/installed-bench ## time against torch and xDSL (BENCH='--quick' for a short run)
	$(BIN)/python benchmarks/text.py $(BENCH)
	$(BIN)/python benchmarks/passes.py $(BENCH)
	$(BIN)/python benchmarks/startup.py $(BENCH)
	PYTHONPATH=. $(BIN)/python benchmarks/execution.py $(BENCH)
	PYTHONPATH=. $(BIN)/python benchmarks/threads.py $(BENCH)
	PYTHONPATH=. $(BIN)/python benchmarks/device.py $(BENCH)
	$(BIN)/python benchmarks/first_result.py $(BENCH)
	$(BIN)/python benchmarks/archives.py --only large,classes,methods
	$(BIN)/python benchmarks/differentiate_time.py $(BENCH)
	PYTHONPATH=. $(BIN)/python benchmarks/differentiation_size.py

fuzz: $(VENV)/installed ## random programs, gradients, laws, pipelines, texts, archives (FUZZ='--seconds 600 --seed 1 --jobs 2')
	PYTHONPATH=. $(BIN)/python -m fuzz $(FUZZ)

lines: $(VENV)/installed ## lines of code and tokens per line; files over 450 lines with their reasons
	$(BIN)/python tools/lines.py

house: $(VENV)/installed ## what is said twice, circles of imports, words that tell nothing: figures and their aims (HOUSE='--list sets')
	$(BIN)/python tools/house.py $(HOUSE)

tables: $(VENV)/installed ## files made from the stanzas of operators: facts, dtypes of results, stubs of irtool.torch
	$(BIN)/python tools/facts.py
	$(BIN)/python tools/stubs.py

errors: $(VENV)/installed ## docs/errors.md, from the table of error codes
	$(BIN)/python tools/errors.py

man: $(VENV)/installed ## man pages, in build/man
	$(BIN)/python tools/man.py

conformance: $(VENV)/installed ## compare with torch's recorded behaviour (CONFORMANCE=folder with check/ and corpus/)
	@if [ ! -d "$(CONFORMANCE)/check" ]; then echo "no folder $(CONFORMANCE)/check: set CONFORMANCE to where the checks are"; exit 0; fi; \
	check="$(CONFORMANCE)/check" corpus="$(CONFORMANCE)/corpus" failed=0; \
	$(BIN)/python $$check/roundtrip.py $$corpus || failed=1; \
	$(BIN)/python $$check/modern.py $$corpus/modern --bar 50 --jobs 2 || failed=1; \
	$(BIN)/python $$check/passes.py $$corpus/modern --jobs 2 || echo "passes: no bar yet"; \
	$(BIN)/python $$check/opinfo.py $$corpus/opinfo --adapter irtool_api || echo "opinfo: no bar yet"; \
	$(BIN)/python $$check/archives.py $$corpus/archives --bar 97 --jobs 2 || failed=1; \
	$(BIN)/python $$check/archives.py $$corpus/archives --grad --bar 97 --jobs 2 || failed=1; \
	$(BIN)/python $$check/archives.py $$corpus/archives --hostile || failed=1; \
	exit $$failed

clean: ## remove what was built; .venv too
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
