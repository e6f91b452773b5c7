# Two commands: `make local` (the whole platform on this machine) and `make test`. Each does its own set-up.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: local down test test-fast test-full check check-rendered render bench setup clean
.DEFAULT_GOAL := setup

setup: $(STAMP)

# pip compiles bytecode at install (--compile): without it each start of the program compiles 270 MB of SDK again
$(STAMP): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found; install Python 3.11 or set PYTHON=..."; exit 1; }
	@echo "setting up $(VENV), once: two minutes, more on a busy machine or a slow network; nothing is printed meanwhile"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --compile --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

local: $(STAMP)
	@$(BIN)/srvmod local up

down: $(STAMP)
	@$(BIN)/srvmod local down

# one local stack for all: from nothing to a completion, islands, 2 -> 5 -> 2 engines, other teams, the README's commands
SHORT := up islands scale consumer keys readme

test: test-fast
	$(BIN)/python -m pytest $(SHORT:%=tests/acceptance/test_%.py) -q

test-fast: $(STAMP)
	$(BIN)/python -m pytest tests --ignore=tests/acceptance -m "not acceptance" -q

# every test that starts real parts, in its long form: crashes of each component, all changes, charts, other tools
test-full: test-fast
	SRVMOD_FULL=1 $(BIN)/python -m pytest tests/acceptance -q
	SRVMOD_FULL=1 $(BIN)/python -m pytest tests --ignore=tests/acceptance -m acceptance -q

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/srvmod admission render --check
	$(BIN)/srvmod render --check
	$(BIN)/srvmod claims --check
	$(BIN)/srvmod check manifests/dev manifests/staging manifests/prod

# checkov, parliament (each in an environment of its own) and kube-score over everything rendered
check-rendered: $(STAMP)
	$(BIN)/python -m tests.lint

render: $(STAMP)
	$(BIN)/srvmod render

# a goal that is missed doesn't end the others
bench: $(STAMP)
	-$(BIN)/srvmod bench program
	-$(BIN)/srvmod bench check
	-$(BIN)/srvmod bench backtest
	-$(BIN)/srvmod bench capacity

clean:
	rm -rf $(VENV) .tools .pytest_cache .ruff_cache
