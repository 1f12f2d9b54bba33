# make quickstart   set everything up, run a small study, print its table and the path of its report
# make test         set everything up, run all tests
# make test-fast    only tests of half a second at most: no training, no Slurm, no browser, no package, no time limits
# make docs         set everything up, build the documentation into site/ (open site/index.html)
# make setup        only set up .venv (DEVICE=cpu|gpu|gpu-volta, PYTHON=python3.12, HOROVOD=0 to leave Horovod out,
# make                TORCH=1 for PyTorch beside TensorFlow, on GPUs in .venv-torch)
.PHONY: setup horovod quickstart test test-fast docs lint types test-tools benchmarks help
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \(make \)/\1/p' Makefile

setup:
	@environments/setup.sh

horovod: setup
	@environments/build-horovod.sh .venv

# Without Horovod, the study leaves its points out, and says so.
quickstart: setup
	@.venv/bin/scalestudy run examples/quickstart.toml --until decided

# Five processes run the tests: while some wait for Slurm, the others compute (tests/support/lanes.py). They start
# hundreds of processes, each of which would compile the sources again if no bytecode were written.
pytest = PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest

# Where one environment can hold both engines, the tests include PyTorch.
test test-fast: export TORCH ?= auto

test: setup test-tools lint types
	@$(pytest) -n 5

test-fast: setup
	@$(pytest) -n 2 -m "not engine and not slurm and not browser and not package and not slow"

# The warning about mkdocs-material's successor does not concern these pages.
docs: setup
	@NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --quiet && echo "Wrote site/index.html"

lint: setup
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .

types: setup
	@.venv/bin/mypy

# A browser, Slurm, MPI and containers for the tests; without root, the tests that need them are skipped.
test-tools:
	@environments/test-tools.sh
