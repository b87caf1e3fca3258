# The doors of minipd.  Each target says in its `##` comment what happens; `make help` prints them.

SHELL := bash
BIN := .venv/bin
READY := .venv/.ready
# Tests run many small arrays, one process a core: threads inside BLAS only get in each other's way.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup train test test-all interop notebooks lab lint doctor lock clean

help:  ## list the targets
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z%-]+):.*## /\1\t/; s/%/N/' \
		| while IFS=$$'\t' read -r target text; do printf '  make %-11s %s\n' "$$target" "$$text"; done

setup: $(READY)  ## make the environment .venv/ (once; again when the lock changes)

# The stamp is older than the lock exactly when the environment is out of date.
$(READY): requirements.lock pyproject.toml tools/setup.sh
	@./tools/setup.sh
	@touch $@

train: setup  ## train a small Llama on four ranks; options in ARGS, e.g. ARGS="--eager --mesh dp=2,tp=2,pp=2"
	$(BIN)/minipd train $(ARGS)

test: setup  ## the test suite that every change must pass (ARGS go to pytest)
	$(PYTEST) -m "not long" $(ARGS)

test-all: setup  ## everything: also the long fuzzers, soaks and full parity
	$(PYTEST) $(ARGS)

interop: setup  ## exchange saved models with the real Paddle, both ways, and train on two ranks like it (PADDLE_PYTHON=/path/to/python that has it)
	@$(BIN)/python -m tools.interop

chapter-%: setup  ## run chapter N: its tests and the examples of its text with later floors closed, its notebook
	@$(BIN)/python -m tools.course run $*

exercise-%: setup  ## write the files of chapter N's exercises into workspace/; overwrites nothing
	@$(BIN)/python -m tools.course exercise $* $(ARGS)

check-%: setup  ## check your solutions of chapter N (all, or ARGS="name of one")
	@$(BIN)/python -m tools.course check $* $(ARGS)

notebooks: setup  ## run the notebooks and write them with their outputs (ARGS="3 4": those of chapters 3 and 4)
	@$(BIN)/python -m tools.course notebooks $(ARGS)

lab: setup  ## open the notebooks in JupyterLab
	$(BIN)/python -m jupyterlab notebooks $(ARGS)

lint: setup  ## style, types and the floors: ruff, mypy, import-linter
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

# A file, not a module, and the system's Python where there is no environment: it must run when nothing else does.
doctor:  ## what is here and what is not, with a copy-paste fix for each
	@if [ -x $(BIN)/python ]; then $(BIN)/python -I minipd/doctor.py; else python3 -I minipd/doctor.py; fi

lock: setup  ## resolve the dependencies anew into requirements.lock (dev, mpi and notebooks; no cuda, no mkl)
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra mpi --extra notebooks --universal --python-version 3.11 \
		--upgrade --generate-hashes --no-annotate --no-emit-index-url --custom-compile-command "make lock" \
		--quiet --output-file requirements.lock

clean:  ## remove the environment and what tools have left
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
