# make run      set up what this machine can use, then open the dashboard
# make demo     replay a recorded session, then the course
# make learn    open the course
# make test     set up, then the whole test suite (no GPU needed)
# make check    lint, format, types, import contracts, tests
# make browser  the page that fwtui export writes, in a headless Chromium (left out where there is none)
# make test-all  and then what make test leaves out: the same again in other sizes, layouts and themes (make slow: that alone)
# make attack SECONDS=3600  attack the program with one seed after the other, for so long (600)
# make mutants  plant small faults in the code that reads others' data, and say which no test catches (hours)
# make versions  install the program for each Python that is here, with its lowest and its newest dependencies, and use it
# make constraints  write constraints.txt anew: the newest of all that these commands install (with CONSTRAINTS=constraints.txt
#   they install just these, with which the tests passed)
PYTHON ?= python3
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
SECONDS ?= 600
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := PIP_RETRIES=1 $(BIN)/python -m pip install --quiet --disable-pip-version-check $(addprefix -c ,$(CONSTRAINTS))
WHOLE  := $(BIN)/python -c 'import pip, sys; sys.exit(sys.prefix == sys.base_prefix)' > /dev/null 2>&1
# an environment that was left half-made, without pip, or whose Python has gone, is made anew
MADE = $(WHOLE) || { \
  command -v $(PYTHON) > /dev/null || { echo "there is no $(PYTHON) here; name a Python: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }; \
  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
    { echo "fwtui needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }; \
  mkdir -p $(VENV) 2>/dev/null && test -w $(VENV) || \
    { echo "this folder cannot be written to; name another for the environment: make VENV=/tmp/fwtui-venv $(MAKECMDGOALS)"; exit 2; }; \
  echo "making $(VENV) ..."; \
  $(PYTHON) -m venv --clear $(VENV) > /dev/null 2>&1 && $(WHOLE) || \
    { echo "$(PYTHON) has no working venv; on Debian and Ubuntu run: sudo apt install python3-venv"; exit 2; }; }
GONE := $(shell test -x $(BIN)/python || echo gone)
$(if $(word 2,$(VENV)),$(error VENV is "$(VENV)", and make takes no folder with a space; name another))

# installs $(1); what pip says of a failure stays in a file
INSTALL = $(PIP) $(1) > $(VENV)/install.log 2>&1 || { \
  echo "fwtui could not be installed, perhaps for want of a network ($$(grep -o 'ERROR: .*' $(VENV)/install.log | head -1)); $(VENV)/install.log says more, and the next make tries again"; \
  exit 2; }

# on all cores, where pip would take one, and without what no command imports; what is no Python of this version is passed over.
# Program and tests too: otherwise each test process would compile them
COMPILE := $(BIN)/python -m compileall -qq -j 0 -x '/(tests|pip|lexers)/' $(VENV)/lib fwtui kernels tests || true

.PHONY: run demo learn test test-all check browser slow attack mutants versions constraints clean gone

run: $(VENV)/run.stamp
	@$(BIN)/fwtui

demo: $(VENV)/run.stamp
	@$(BIN)/fwtui replay h200-n4096
	@$(BIN)/fwtui learn

learn: $(VENV)/run.stamp
	@$(BIN)/fwtui learn

# four processes for two cores, as many tests wait: first those that kill and interrupt processes, which wait longest. To prepare
# what each assertion would tell of its values takes long: a test that fails tells them when it is run by itself
export PYTHONDONTWRITEBYTECODE =
PYTEST := $(BIN)/python -m pytest
SUITE := tests/faults tests/attack tests/unit tests/ui tests/bad_files
TESTED := $(PYTEST) -n 4 --assert plain $(SUITE)

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

attack: $(VENV)/test.stamp
	$(BIN)/python tests/attack $(SECONDS)

mutants: $(VENV)/mutants.stamp
	$(BIN)/python tests/mutants.py

# each dependency at its lowest version
LOWEST := import re, tomllib; \
  wanted = (re.match(r"([\w-]+)>=([\d.]+)", line) for line in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]); \
  print(*(f"{it[1]}=={it[2]}" + (".*" if "." in it[2] else ".0.*") for it in wanted), sep="\n")

# the lowest versions of the GPU extras, which make versions EXTRAS=[cu13,cluster] installs too
EXTRAS ?=
LOWEST_GPU := cuda-core==1.2.0 cuda-bindings==13.3.1 numba-cuda==0.30.2 nccl4py==0.6.0 nvidia-nccl-cu13==2.28.3 mpi4py==4.1.0 mpich==4.3.1

# the newest of all for each Python, and the lowest for the first one
versions:
	@lowest=$$(mktemp) && trap 'rm -f '$$lowest EXIT; for python in $(PYTHONS); do \
	  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "$$python: not here"; continue; }; \
	  for bounds in $$([ -s $$lowest ] || { { $$python -c '$(LOWEST)' && printf '%s\n' $(LOWEST_GPU); } > $$lowest && echo lowest; }) newest; do \
	    place=$$(mktemp -d) && echo "$$($$python -V), $$bounds" && $$python -m venv $$place && \
	    $$place/bin/python -m pip install --quiet --disable-pip-version-check $$([ $$bounds = newest ] || echo "-c $$lowest") ".$(EXTRAS)" && \
	    (cd $$place && PATH=$$place/bin:$$PATH && bin/fwtui doctor > doctor && \
	      { [ ! -x bin/mpiexec ] || bin/fwtui run --kernel distributed-cpu --n 96 --devices cpu,cpu --repeats 3; } && \
	      bin/fwtui run --kernel tiled-cpu --n 96 --repeats 3 && bin/fwtui run --kernel naive --n 12 && \
	      bin/fwtui replay lecture-tiles --json > replayed && bin/fwtui check lecture-tiles && \
	      bin/fwtui render lecture-tiles -o drawn.svg); code=$$?; rm -rf $$place; [ $$code = 0 ] || exit 1; \
	  done; \
	done

# one file for every Python and system of pyproject.toml; uv alone can say what others need
constraints:
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra dev --no-header --no-annotate \
	  --output-file constraints.txt pyproject.toml

clean:
	rm -rf $(VENV)

# the program first: it finds out which CUDA extra fits the driver and every GPU, none where there is no driver
$(VENV)/run.stamp: pyproject.toml $(GONE)
	@$(MADE)
	@echo "installing fwtui into $(VENV) ..."
	@$(call INSTALL,-e .)
	@extra=$$($(BIN)/fwtui doctor --extra) && if [ -n "$$extra" ]; then \
	  echo "installing CUDA support ($$extra) ..."; $(call INSTALL,-e ".[$$extra]"); fi
	@touch $@

$(VENV)/test.stamp: pyproject.toml $(GONE)
	@$(MADE)
	@echo "installing fwtui and its tests into $(VENV) ..."
	@$(call INSTALL,--no-compile -e ".[test]")
	@$(COMPILE)
	@touch $@

$(VENV)/dev.stamp: pyproject.toml $(GONE)
	@$(MADE)
	@echo "installing fwtui and its development tools into $(VENV) ..."
	@$(call INSTALL,--no-compile -e ".[dev]")
	@$(COMPILE)
	@touch $@ $(VENV)/test.stamp

$(VENV)/mutants.stamp: $(VENV)/test.stamp
	@$(call INSTALL,"mutmut==3.8.*")
	@touch $@
