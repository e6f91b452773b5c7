# Two commands: `make local` (the whole platform on this machine) and `make test`. Each does its own set-up.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: local down test test-fast test-full check render bench setup clean
.DEFAULT_GOAL := setup

setup: $(STAMP)

# pip compiles bytecode at install (--compile): without it each start of the program compiles 270 MB of SDK again
$(STAMP): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found; install Python 3.11 or set PYTHON=..."; exit 1; }
	@echo "setting up $(VENV) (about 2 minutes, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --compile --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

local: $(STAMP)
	@$(BIN)/srvmod local up

down: $(STAMP)
	@$(BIN)/srvmod local down

test: test-fast
	$(BIN)/python -m pytest tests/acceptance/test_up.py tests/acceptance/test_islands.py -q

test-fast: $(STAMP)
	$(BIN)/python -m pytest tests --ignore=tests/acceptance -m "not acceptance" -q

# every acceptance test, also the long ones: scaling, wrong programs, crashes, nodes alone, previews of all stacks
test-full: test-fast
	SRVMOD_FULL=1 $(BIN)/python -m pytest tests/acceptance tests/local/simulated_aws/test_providers_cli.py -q

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/srvmod render --check

render: $(STAMP)
	$(BIN)/srvmod render

bench: $(STAMP)
	$(BIN)/srvmod bench program

clean:
	rm -rf $(VENV) .tools .pytest_cache .ruff_cache
