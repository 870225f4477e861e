# Every target does all it needs on a fresh clone: `make demo` and `make test` prepare .venv first.
#   make setup PYTHON=/path/to/python3    chooses the interpreter (default: the first of 3.10 to 3.13 found)

BIN := .venv/bin
TEST_WORKERS ?= 2
# Spark starts its workers with this interpreter, whatever `python3` is elsewhere.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python

.PHONY: help setup demo test test-slow peers bench lint format lock clean

help:
	@echo "make setup    prepare .venv: locked dependencies, Java where apt-get can install it, and a first start of Spark"
	@echo "make demo     replay flights out of New York through eight continuous queries (DEMO='--days 60' for more)"
	@echo "make test     run the tests, first those without Spark"
	@echo "make peers    prepare the systems that benchmarks compare with (Flink, Pathway), below .peers"
	@echo "make bench    run every benchmark on every system that is there (80 minutes), pages below bench-out"
	@echo "make lint     ruff, mypy, import rules"
	@echo "make format   let ruff put the code in order"
	@echo "make lock     write requirements.lock anew from pyproject.toml (LOCK=--upgrade for newest versions)"
	@echo "make clean    remove .venv and what the tools left behind"

setup: .venv/.ready

.venv/.ready: requirements.lock pyproject.toml tools/setup.sh tools/system.sh
	@sh tools/setup.sh

demo: .venv/.ready
	@$(BIN)/plait demo $(DEMO)
	@echo "(. $(BIN)/activate puts plait and this python on the PATH)"

# Spark tests wait a good deal (starting, planning, being killed), so two files of them run side by side.
test: .venv/.ready
	$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist worksteal -m "not spark and not slow"
	$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile -m "spark and not slow"

test-slow: .venv/.ready
	$(BIN)/python -m pytest -m slow

peers:
	@sh benchmarks/peers/prepare.sh

bench: .venv/.ready
	$(BIN)/python -m benchmarks all

lint: .venv/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# One file for Python 3.10 to 3.13 on every system: versions only, wherever they come from.
lock: .venv/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --extra demo --extra dev $(LOCK) \
		--custom-compile-command "make lock" --no-emit-index-url --no-emit-find-links \
		--output-file requirements.lock pyproject.toml benchmarks/requirements.txt

clean:
	rm -rf .venv .peers build dist plait.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
