# make run      set up what this machine can use, then open the dashboard
# make demo     replay a recorded session, then the course
# make learn    open the course
# make test     set up, then the whole test suite (no GPU needed)
# make check    lint, format, types, import contracts, tests
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: run demo learn test check clean

run: $(VENV)/run.stamp
	@$(BIN)/fwtui

demo: $(VENV)/run.stamp
	@$(BIN)/fwtui replay h200-n4096
	@$(BIN)/fwtui learn

learn: $(VENV)/run.stamp
	@$(BIN)/fwtui learn

# three processes for what only computes or waits; then, alone, what kills and interrupts processes and looks at when they
# notice. What failed runs once more by itself, since a screen that is starved of its core is not wrong: it has to pass then
PYTEST := $(BIN)/python -m pytest
TESTED := ($(PYTEST) -n 3 tests/unit tests/ui || $(PYTEST) --lf --lfnf none tests/unit tests/ui) && \
  ($(PYTEST) tests/faults || $(PYTEST) --lf --lfnf none tests/faults)

test: $(VENV)/test.stamp
	$(TESTED)

check: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(TESTED)

clean:
	rm -rf $(VENV)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fwtui needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@echo "making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

# the program first: it finds out which CUDA extra fits the driver and every GPU, none where there is no driver
$(VENV)/run.stamp: pyproject.toml | $(BIN)/python
	@echo "installing fwtui into $(VENV) ..."
	@$(PIP) -e .
	@extra=$$($(BIN)/fwtui doctor --extra) && if [ -n "$$extra" ]; then \
	  echo "installing CUDA support ($$extra) ..."; $(PIP) -e ".[$$extra]"; fi
	@touch $@

$(VENV)/test.stamp: pyproject.toml | $(BIN)/python
	@echo "installing fwtui and its tests into $(VENV) ..."
	@$(PIP) -e ".[test]"
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/python
	@echo "installing fwtui and its development tools into $(VENV) ..."
	@$(PIP) -e ".[dev]"
	@touch $@ $(VENV)/test.stamp
