# `make` alone lists the targets. Everything runs in .venv, which `make setup` makes and keeps current.

SHELL := /bin/sh
BIN := .venv/bin
PYTHON ?=
ARGS ?=

# One thread for linear algebra in each worker, of the tests and of the experiments: more would fight over the cores.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help setup test fuzz lint types reproduce results bench bench-peers bench-scaling clean
# The steps of a target run in the order written, also under `make -j`.
.NOTPARALLEL:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

setup: ## make .venv and install the package with its development tools (PYTHON=... picks the interpreter)
	@PYTHON="$(PYTHON)" sh tools/setup.sh

test: lint types ## lint, types, then the tests; stops at the first that fails
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2

fuzz: setup ## call every public function with hostile values (ARGS="--minutes 60 --seed 3"); failures go to a file
	$(ONE_THREAD) PYTHONPATH=tests $(BIN)/python -m fuzz $(ARGS)

lint: setup ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## basedpyright
	$(BIN)/basedpyright

reproduce: setup ## the paper's experiments: figures, tables and verdicts in one report, in results/ (ARGS="--scale paper")
	$(ONE_THREAD) $(BIN)/revealed reproduce $(ARGS)

results: setup ## the paper's scale, and its figures and verdicts into README.md and docs/ (up to an hour)
	$(ONE_THREAD) $(BIN)/revealed reproduce --scale paper --out results/paper
	$(BIN)/python tools/refresh_results.py results/paper

bench: setup ## side-by-side measurements
	$(BIN)/python benchmarks/bench_core.py
	$(BIN)/python benchmarks/bench_kernels.py
	$(BIN)/python benchmarks/bench_worlds.py
	$(BIN)/python benchmarks/bench_inference.py
	$(BIN)/python benchmarks/bench_panels.py
	$(BIN)/python benchmarks/bench_routes.py

bench-peers: setup ## econirl, imitation and QuantEcon beside this library, in an environment of their own (ARGS="--quick")
	@sh benchmarks/peers/setup.sh
	$(BIN)/python benchmarks/bench_peers.py $(ARGS)

bench-scaling: setup ## how seconds and memory grow from 10³ to 10⁶ states; goes on where it was stopped (ARGS="--quick")
	$(BIN)/python benchmarks/bench_scaling.py $(ARGS)

clean: ## remove caches and build output (.venv and results stay)
	rm -rf build dist .pytest_cache .ruff_cache .hypothesis *.egg-info src/*.egg-info
	find src tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
