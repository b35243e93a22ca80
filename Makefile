# Chores. A machine with Python, make and a package registry needs nothing else: every target sets up what it uses.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
GROUPS := build tests lint bench data fuzz lock

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-system faults check lint types format diff fuzz bench publish data data-check docs figures wheel lock clean

help: ## List the chores
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The package itself: hashed dependencies, then the checkout, without looking at a registry again.
$(VENV)/.core: requirements/core.txt requirements/build.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes -r requirements/core.txt -r requirements/build.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.%: requirements/%.txt $(VENV)/.core
	$(PIP) install --require-hashes -r requirements/core.txt -r $<
	@touch $@

# The suite draws charts too.
$(VENV)/.tests: $(VENV)/.plots

setup: $(VENV)/.core $(VENV)/.tests $(VENV)/.lint ## Set up for work on the code

demo: $(VENV)/.core ## Score the data in this repository
	@$(BIN)/docrecall demo

test: $(VENV)/.tests ## Run the suite, but for the tests that need more than pip can install
	$(BIN)/python -m pytest -q -m "not system"

test-system: $(VENV)/.tests ## Run the tests that need root or system packages (strace, mount)
	$(BIN)/python -m pytest -q -m system

faults: $(VENV)/.tests ## Kill, cut off and damage the nightly job, in large numbers (root, strace, mount; FAULTS=word for some)
	$(BIN)/python -m tests.nightly.faults $(FAULTS)

check: lint types test ## Lint, types and tests

lint: $(VENV)/.lint ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.lint $(VENV)/.tests ## Check types
	$(BIN)/mypy

format: $(VENV)/.lint ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

diff: $(VENV)/.tests ## Compare with the definition on 10,000 generated logs
	$(BIN)/python -m tests.agreement.diff

fuzz: $(VENV)/.fuzz ## Random bytes against every reader of text, for a minute (FUZZ=seconds)
	$(BIN)/python tests/fuzz/readers.py $(or $(FUZZ),60)

bench: $(VENV)/.bench ## Measure speed and memory against bare scans and other evaluators (BENCH="--full" adds 100 M rows)
	$(BIN)/python benchmarks/run.py $(BENCH) $(WRITE)
	$(BIN)/python benchmarks/context.py --rows 10_000_000 $(BENCH) $(WRITE)
	$(BIN)/python benchmarks/layouts.py $(BENCH) $(WRITE)
	$(BIN)/python benchmarks/lookups.py $(WRITE)
	$(BIN)/python benchmarks/bits.py $(WRITE)
	$(BIN)/python benchmarks/small.py $(WRITE)
	$(BIN)/python benchmarks/text.py $(WRITE)
	$(BIN)/python benchmarks/start_up.py $(WRITE)

publish: ## Measure everything again and write benchmarks/results*.md
	$(MAKE) bench BENCH="--full" WRITE="--write"

data: $(VENV)/.data ## Rebuild data/ (needs the two Python versions that data/README.md names; NEWER=path of the second)
	$(BIN)/python data/build.py $(if $(NEWER),--newer $(NEWER))

data-check: $(VENV)/.data ## Compare data/ with a rebuild, byte for byte
	$(BIN)/python data/build.py --check $(if $(NEWER),--newer $(NEWER))

docs: $(VENV)/.core ## Write the generated parts of the README again
	$(BIN)/python docs/generate.py

figures: $(VENV)/.plots ## Draw the figures of the README again
	$(BIN)/python docs/figures.py

wheel: $(VENV)/.core ## Build the wheel into dist/
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist .

lock: $(VENV)/.lock ## Lock the dependencies of every group, for all supported Pythons
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -q -o requirements/core.txt
	$(BIN)/uv pip compile pyproject.toml --extra plots -c requirements/core.txt --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate -q -o requirements/plots.txt
	for group in $(GROUPS); do \
		$(BIN)/uv pip compile --group $$group -c requirements/core.txt --universal --python-version 3.11 \
			--generate-hashes --no-header --no-annotate -q -o requirements/$$group.txt || exit 1; \
	done

clean: ## Remove what the chores made
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis benchmarks/logs
