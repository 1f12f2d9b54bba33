# make quickstart   set everything up, run a small study, print its table and name its report
# make test         set everything up, run all tests
# make test-fast    only tests of half a second at most: no training, no Slurm, no browser, no package, no time limits
# make docs         set everything up, build the documentation into site/ (read it: .venv/bin/python -m http.server -d site)
# make setup        only set up .venv (DEVICE=cpu|gpu|gpu-volta, PYTHON=python3.12, HOROVOD=0 to leave Horovod out,
# make                TORCH=1 for PyTorch beside TensorFlow on CPUs)
.PHONY: setup horovod quickstart test test-fast docs lint types test-tools benchmarks help
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \(make \)/\1/p' Makefile

setup:
	@environments/setup.sh

horovod: setup
	@environments/build-horovod.sh .venv

# Without Horovod, the same study goes without its points.
quickstart: setup
	@study=examples/quickstart.toml; \
	if ! .venv/bin/python -c 'from scalestudy.engines.tensorflow.horovod_build import library_file; raise SystemExit(not library_file())'; then \
	  mkdir -p build && sed 's/, "horovod"//; s|"small_unet.py"|"../examples/small_unet.py"|' $$study >build/quickstart.toml && \
	  study=build/quickstart.toml; \
	  echo "quickstart: Horovod is not built, so its points are left out" >&2; \
	fi; \
	.venv/bin/scalestudy run $$study

# Four processes share out the tests: while some wait for Slurm, the others compute (tests/support/lanes.py).
# They start hundreds of others, each of which would compile the sources anew where no bytecode is kept.
pytest = PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest

# The tests know PyTorch, too, where both engines can be in one environment.
test test-fast: export TORCH ?= auto

test: setup test-tools lint types
	@$(pytest) -n 4

test-fast: setup
	@$(pytest) -n 2 -m "not engine and not slurm and not browser and not package and not slow"

# Of mkdocs-material's notices about its successor none is about these pages.
docs: setup
	@NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --quiet && echo "Wrote site/index.html (its search needs a server: python3 -m http.server -d site)"

lint: setup
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .

types: setup
	@.venv/bin/mypy

# A browser, Slurm, MPI and containers for the tests; without root they are skipped, and say so.
test-tools:
	@environments/test-tools.sh
