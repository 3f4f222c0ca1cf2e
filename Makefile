# Every command of the project, for people and for .ci/run alike. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types layers unit bench nightly ui docs lock clean

VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
BENCH_ARGS ?=
UI_ARGS ?=
WORKERS ?= 2

help: ## this list
	@echo "Tideview. Needs Python 3.11 or 3.12, Java 17 or newer, make; the rest is set up on first use."
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PYTEST_ARGS='-k joins -x'   passed to pytest by test, unit and nightly"
	@echo "  BENCH_ARGS=--quick          passed to bench; --help lists more"
	@echo "  WORKERS=0                   run tests in one process (default $(WORKERS), one Spark each)"

# The interpreter is tried, not only found: a shim on PATH may stand for nothing.
setup: ## make .venv, get Delta's jars, prepare Spark's fast start (seconds when done before)
	@for python in "$$PYTHON" python3.11 python3.12 python3; do \
		if [ -n "$$python" ] && "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null; \
		then exec "$$python" tools/setup.py; fi; \
	done; \
	echo "set-up: no Python 3.11 or 3.12 found (tried \$$PYTHON, python3.11, python3.12, python3)." >&2; \
	echo "        Install one (Debian: python3.11 and python3.11-venv), or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; \
	exit 1

demo: setup ## a small shop: seven views, six ticks, each checked against recompute
	$(BIN)/python -m tideview.pipelines.demo

test: setup lint types layers unit ## everything that must hold before a change goes in

lint: ## ruff: style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: ## mypy
	$(BIN)/mypy

layers: ## import-linter: who may import whom
	$(BIN)/lint-imports

unit: ## pytest, without the nightly tests
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup $(PYTEST_ARGS)

bench: setup ## the speed tables (long)
	$(BIN)/python -m bench $(BENCH_ARGS)

nightly: setup ## the tests that are too long for every change; stopped, it goes on where it was
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup -m nightly --timeout 3600 --resume $(PYTEST_ARGS)

ui: setup ## Dagster's web interface on the demo's pipeline, with a feeder that changes its sources
	exec $(BIN)/python -m tideview.pipelines.ui $(UI_ARGS)

docs: setup ## the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site
	@echo "open site/index.html, or serve it: $(BIN)/mkdocs serve"

lock: ## resolve requirements.lock anew from pyproject.toml
	$(BIN)/python tools/setup.py --lock

clean: ## remove .venv, caches and what runs left behind
	rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist build site .tideview .tmp_dagster_home_*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
