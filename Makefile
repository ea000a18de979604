# make          build everything: .venv, build/lib, build/softgpu, build/cuhip
# make demo     the main job: MLIR's program, before and after
# make test     all tests
# make check-jit  the tests of Python's ExecutionEngine; downloads MLIR's Python bindings (150 MB)
# make bench    the figures, as ratios in one run
# make check-isa   the whole proof of the emulator of GPU code, of which make test has a sample
# make check-amd   AMD's own tests of ROCr 7.2.4 on the emulated device
# make check-rocm  HIP 5.7.1, 6.4.3 and 7.2.4 on the emulated device; downloads 180 MB
#
# Each target installs what it needs, and says so: Debian packages through apt-get (as root or with
# sudo), Python packages into .venv. Nothing is installed twice.

PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
VENV := .venv
BIN := $(VENV)/bin

# What building needs, and what running MLIR's tools and AMD's HIP without a GPU needs.
BUILD_PACKAGES := gcc libc6-dev make python3-venv libpython3.11 libhsakmt-dev libamdhip64-5
TOOL_PACKAGES := mlir-22-tools llvm-22 lld-22 mlir-19-tools llvm-19 lld-19 \
	mlir-15-tools llvm-15 lld-15 rocm-device-libs binutils
TEST_PACKAGES := g++ valgrind clang-format-22

SOURCES := $(wildcard csrc/*.def csrc/*.c csrc/include/*.h csrc/runtime/*)
LIBRARY := build/lib/libmlir_rocm_runtime.so

.PHONY: all demo test check-jit bench lint format packages-build packages-tools packages-test clean
.DEFAULT_GOAL := all

include csrc/softgpu/build.mk
include csrc/cuhip/build.mk
include tests/hipstub/build.mk
include tests/custub/build.mk
include bench/stock/build.mk
include tests/isa/check.mk
include tests/rocm/check.mk

all: packages-build $(LIBRARY) $(SOFTGPU_LIBRARY) $(SOFTGPU_DTIF) $(CUHIP_LIBRARY)

# $(call install,PACKAGES): those that are missing, on a Debian with the rights to install.
define install
	@missing=; for package in $(1); do \
		dpkg-query -W -f='$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$package"; \
	done; \
	if [ -n "$$missing" ]; then \
		echo "Installing Debian packages:$$missing"; \
		sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
		$$sudo apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends $$missing >/dev/null \
		|| { echo "Could not install:$$missing. Install them by hand and run make again." >&2; exit 1; }; \
	fi
endef

packages-build:
	$(call install,$(BUILD_PACKAGES))

packages-tools:
	$(call install,$(TOOL_PACKAGES))

packages-test:
	$(call install,$(TEST_PACKAGES))

$(VENV)/.ready: pyproject.toml | packages-build
	@echo "Installing Python packages into $(VENV)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check setuptools==82.0.1 cffi==2.1.1
	touch $@

# The editable install compiles the library and the cffi module, and makes the command mgpu-rt.
$(LIBRARY): $(VENV)/.ready setup.py mgpu_rt/__init__.py mgpu_rt/abi.py mgpu_rt/build.py $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -e '.[hip,test,bench]'
	touch $@

demo: all packages-tools $(STOCK_LIBRARIES)
	$(BIN)/python -m bench.demo

test: all packages-tools packages-test $(HIPSTUB_LIBRARIES) $(CUSTUB_LIBRARY) $(STOCK_LIBRARIES) lint
	$(BIN)/python -m pytest -q

check-jit: all packages-tools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -e '.[hip,test,jit]'
	$(BIN)/python -m pytest -q tests/test_jit.py tests/test_jit_python.py

bench: all packages-tools packages-test $(HIPSTUB_LIBRARIES) $(STOCK_LIBRARIES)
	$(BIN)/python -m bench

C_SOURCES = $(shell git ls-files '*.c' '*.h')

lint:
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet
	clang-format-22 --dry-run --Werror $(C_SOURCES)

format:
	$(BIN)/ruff check --fix --quiet
	$(BIN)/ruff format --quiet
	clang-format-22 -i $(C_SOURCES)

clean:
	rm -rf build $(VENV) mgpu_rt/_host.c mgpu_rt/*.so *.egg-info
