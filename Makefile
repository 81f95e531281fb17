# make run      set up what this machine can use, then open the dashboard
# make demo     replay a recorded session, then the course
# make learn    open the course
# make test     set up, then the whole test suite (no GPU needed)
# make check    lint, format, types, import contracts, tests
# make browser  the page that fwtui export writes, in a headless Chromium (left out where there is none)
# make test-all  and then what make test leaves out: the same again in other sizes, layouts and themes (make slow: that alone)
# make versions  install the program for each Python that is here and use it once
PYTHON ?= python3
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# on all cores, where pip would take one, and without what no command imports; what is no Python of this version is passed over
COMPILE := $(BIN)/python -m compileall -qq -j 0 -x '/(tests|pip|lexers)/' $(VENV)/lib || true

.PHONY: run demo learn test test-all check browser slow versions clean

run: $(VENV)/run.stamp
	@$(BIN)/fwtui

demo: $(VENV)/run.stamp
	@$(BIN)/fwtui replay h200-n4096
	@$(BIN)/fwtui learn

learn: $(VENV)/run.stamp
	@$(BIN)/fwtui learn

# four processes for two cores, as many tests wait: first those that kill and interrupt processes, which wait longest. What
# failed runs once more by itself, since a screen that is starved of its core is not wrong: it has to pass then, and only then
# is it worth the time to prepare what an assertion tells of its values
export PYTHONDONTWRITEBYTECODE =
PYTEST := $(BIN)/python -m pytest
SUITE := tests/faults tests/unit tests/ui tests/bad_files
TESTED := $(PYTEST) -n 4 --assert plain $(SUITE) || $(PYTEST) --lf --lfnf none $(SUITE)

test: $(VENV)/test.stamp
	$(TESTED)

check: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(TESTED)

browser: $(VENV)/test.stamp
	$(PYTEST) tests/browser

test-all: test slow

slow: $(VENV)/test.stamp
	$(PYTEST) -n 4 -m "slow and not gpu" tests

versions:
	@for python in $(PYTHONS); do \
	  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "$$python: not here"; continue; }; \
	  place=$$(mktemp -d) && trap 'rm -rf '$$place EXIT && echo "$$python: $$($$python -V)" && $$python -m venv $$place && \
	  $$place/bin/python -m pip install --quiet --disable-pip-version-check . && cd $$place && \
	  bin/fwtui run --kernel tiled-cpu --n 96 --repeats 3 --table && bin/fwtui replay lecture-tiles --json > replayed && \
	  bin/fwtui check lecture-tiles && bin/fwtui render lecture-tiles -o drawn.svg && cd - > /dev/null && rm -rf $$place || exit 1; \
	done

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
	  echo "installing CUDA support ($$extra) ..."; $(PIP) -e ".[$$extra]"; \
	  echo "compiling, so that first runs are quick ..."; $(BIN)/fwtui warm || true; fi
	@touch $@

$(VENV)/test.stamp: pyproject.toml | $(BIN)/python
	@echo "installing fwtui and its tests into $(VENV) ..."
	@$(PIP) --no-compile -e ".[test]"
	@$(COMPILE)
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/python
	@echo "installing fwtui and its development tools into $(VENV) ..."
	@$(PIP) --no-compile -e ".[dev]"
	@$(COMPILE)
	@touch $@ $(VENV)/test.stamp
