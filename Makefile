# make help     this list
# make          build everything: .venv, build/lib, build/softgpu, build/cuhip
# make demo     the main job: MLIR's program, before and after
# make test     the tests, in five minutes; T=tests/runtime for some of them
# make check    what guards every change too and takes longer: proofs, installs, walks of all errors
# make nightly  more of what make check samples: models in diff and check, benchmarks on the stub
# make stress-tests   those tests 20 times under load, for what fails by chance (RUNS=n T=tests/...)
# make check-jit  the tests of Python's ExecutionEngine; downloads MLIR's Python bindings (150 MB)
# make check-sparse  sparse matrices by hipSPARSE (160 MB) on the emulated device
# make bench    the figures, as ratios in one run
# make check-isa   the whole proof of the emulator of GPU code, of which make test has a sample
# make check-amd   AMD's own tests of ROCr and rocRAND, and random C programs, on the emulated device
# make install  PREFIX=/usr/local DESTDIR=: libraries, header, command; make uninstall takes them out
# make dist     dist/: the source archive, and a wheel for every Linux since glibc 2.28 and Python 3.10
# make check-install   installs these in fresh environments, also in a Debian 13, and runs programs
# make soak     27,000 random programs over this library and stock's (SOAK=n)
# make fuzz     the readers of images and settings under libFuzzer, FUZZ_SECONDS each (10)
# make sanitize the runtime by gcc and clang without a warning, and under clang's sanitizers
# make check-rocm  HIP 5.7.1, 6.4.3 and 7.2.4 on the emulated device; downloads 180 MB
#
# Each target installs what it needs, and says so: Debian packages through apt-get (as root or with
# sudo), Python packages into .venv. Nothing is installed twice. Where there is no apt-get it says
# what is missing. V=1 shows the commands; CC, CFLAGS, LDFLAGS and PYTHON are yours to set: CFLAGS=-g1
# adds the lines that a debugger shows.

# A Python that can also be started inside a program, as python3 or by its version's name.
PYTHON ?= $(shell for python in /usr/bin/python3 python3 python3.14 python3.13 python3.12 python3.11 \
	python3.10; do $$python -c 'import sys, sysconfig, venv, ensurepip; sys.exit(sys.version_info \
	< (3, 10) or not sysconfig.get_config_var("Py_ENABLE_SHARED"))' 2>/dev/null && \
	echo $$python && break; done)
PYTHON := $(or $(PYTHON),python3)
# Compiled modules are kept: the tests start thousands of Pythons.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Python compiles what it imports: a tenth of the files.
LOCKED := --no-compile -c tests/requirements.lock
INSTALL_HERE := $(PIP) install $(LOCKED) --no-build-isolation
HOST_PYTHON := $(BIN)/python

# The names are those of csrc/packaging/need.sh.
NEEDS_build := cc binutils python python-headers $(if $(filter no,$(SOFTGPU)),,hsakmt hip)
NEEDS_tools := llvm-22 llvm-19 llvm-15 device-libs binutils
NEEDS_test := cxx valgrind clang-format cmake pkg-config hip-clang mpi
NEEDS_install := mmdebstrap

STEPS := build tools test fuzz sanitize install sparse

.PHONY: all demo test check nightly check-jit check-isa check-amd check-install bench lint format help clean $(STEPS:%=needs-%)
.DEFAULT_GOAL := all

# One short line a step, for the first command of its recipe, instead of the commands.
ifneq ($(V),1)
QUIET = $(LINKS) help all demo test check nightly check-jit bench lint format needs-% clean check-% $(VENV)/%
SAID :=
say = $(if $(filter $(QUIET) $(SAID),$@),,$(eval SAID += $@)$(info $()  $@))
PLAIN_SHELL := $(SHELL)
SHELL = $(if $@,$(say))$(PLAIN_SHELL)
.SILENT:
endif

include csrc/build.mk
include csrc/packaging/install.mk
include tests/build.mk
include softgpu/tests/build.mk
include tests/proofs/fuzz/fuzz.mk
include tests/proofs/sanitize/sanitize.mk
include tests/devices/rocm/check.mk
include tests/runtime/sparse/check.mk

# Stand-ins that have been built stay as new as their sources, for what runs without pytest.
native: $(wildcard $(TEST_LIBRARIES) $(ISA_TOOLS))

all: $(VENV)/.ready native
	@echo "Ready: make demo, or $(BIN)/mgpu-rt run -- PROGRAM"

$(STEPS:%=needs-%): needs-%:
	@CC='$(CC)' CFLAGS='$(CFLAGS)' PYTHON='$(PYTHON)' sh csrc/packaging/need.sh $(NEEDS_$*)

# A recent pip takes half the time to select packages. The pip of $(PYTHON) installs it faster than
# ensurepip installs an old one. If there is no pip, or no recent one to install, ensurepip does.
$(VENV)/.tools: tests/requirements.lock | needs-build
	@echo "Installing Python packages into $(VENV)"
	$(PYTHON) -m venv --without-pip $(VENV)
	$(PYTHON) -m pip --quiet --python $(BIN)/python install $(LOCKED) pip 2>/dev/null || \
		$(PYTHON) -m venv $(VENV)
	$(PIP) install $(LOCKED) setuptools cffi click
	touch $@

# Compiling waits for what it needs.
$(RUNTIME_OBJECTS) $(CUHIP_OBJECTS) $(SOFTGPU_OBJECTS) $(SOFTGPU_CHECK_OBJECTS): | needs-build
build/python/_manager.c build/python/_runtime.c: | $(VENV)/.tools

# The editable install makes the command mgpu-rt; it finds everything compiled.
$(VENV)/.ready: $(VENV)/.tools pyproject.toml setup.py | native
	$(INSTALL_HERE) -e '.[test,hip]'
	touch $@

# With what draws the plots.
$(VENV)/.bench: $(VENV)/.ready
	$(INSTALL_HERE) -e '.[bench]'
	touch $@

# The forum's program, as two releases of LLVM lower it.
DEMO := $(BIN)/mgpu-rt compare --device softgpu bench/programs/forum.mlir --llvm

demo: all needs-tools
	@echo "1,000 launches of an empty kernel, on AMD's HIP and an emulated device; lowered by LLVM 22"
	$(DEMO) 22
	@echo "Lowered by LLVM 19"
	$(DEMO) 19

# A test's marker says which suite it is of (tests/support/suites.py). T: files or folders, or names of tests.
T ?= tests softgpu/tests
PYTEST := $(BIN)/python -m pytest -q -n auto

test check nightly stress-tests: all needs-tools needs-test $(TEST_LIBRARIES) $(ISA_TOOLS)
test: $(if $(filter tests,$(T)),lint)
	$(PYTEST) $(T)

check nightly: $(VENV)/.bench
	@sh csrc/packaging/need.sh chromium || echo "Going on without: the tests in a browser are skipped."
	$(PYTEST) -m $@ $(T)

RUNS ?= 20
stress-tests:
	$(BIN)/python -m tests.support.stress $(RUNS) $(filter-out tests softgpu/tests,$(T))

check-jit: all needs-tools
	$(INSTALL_HERE) -e '.[test,jit]'
	$(BIN)/python -m pytest -q tests/runtime/programs/test_jit.py tests/runtime/programs/test_jit_python.py \
		tests/python/launches/test_examples.py

# The emulated device has a Makefile of its own.
check-isa check-amd: all needs-tools needs-test
	$(MAKE) --no-print-directory -C softgpu $@

bench: all $(VENV)/.bench needs-tools needs-test $(HIPSTUB_LIBRARIES) $(STOCK_LIBRARIES)
	$(BIN)/python -m bench

check-install: all needs-tools needs-test needs-install $(HIPSTUB_LIBRARIES)
	$(BIN)/python -m pytest -q -m "not gpu" tests/release/install

C_SOURCES = $(shell git ls-files '*.c' '*.h')

lint: | $(VENV)/.ready needs-test
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet
	$(BIN)/python -m tests.release.docs.style
	clang-format-22 --dry-run --Werror $(C_SOURCES)

format:
	$(BIN)/ruff check --fix --quiet
	$(BIN)/ruff format --quiet
	clang-format-22 -i $(C_SOURCES)

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

clean:
	rm -rf build dist $(VENV) mgpu_rt/*.so *.egg-info
