# What cffi makes, one file each for every Python from 3.10 on: mgpu_rt/_host.abi3.so, through which
# the manager in Python reaches the library in the program, and mgpu_rt/_runtime.abi3.so, through
# which a runtime in Python answers the program's calls. Needs HOST_PYTHON, with cffi and its C
# headers.
#
# Included by csrc/build.mk.

HOST_PYTHON ?= python3
HOST_MODULE := mgpu_rt/_host.abi3.so
RUNTIME_MODULE := mgpu_rt/_runtime.abi3.so
PYTHON_MODULES := $(HOST_MODULE) $(RUNTIME_MODULE)
PYTHON_CFLAGS = -std=c11 -D_GNU_SOURCE -O2 $(PORTABLE) -g -fPIC -pthread -Wall -Wextra \
	-Wno-unused-parameter -DPy_LIMITED_API=0x030A0000 $(HOST_INCLUDE)
HOST_INCLUDE = $(shell '$(HOST_PYTHON)' -c 'import sysconfig as s; \
	print("-I" + s.get_path("include"), "-I" + s.get_path("platinclude"))')

build/host/_host.c: mgpu_rt/manager/build.py csrc/manager/manager.h
	@mkdir -p $(@D)
	'$(HOST_PYTHON)' mgpu_rt/manager/build.py $@ >/dev/null
	@touch $@ # which is left alone if it would be the same

$(HOST_MODULE): build/host/_host.c $(wildcard csrc/manager/*) csrc/runtime/base/channel.h
	$(CC) -shared $(PYTHON_CFLAGS) -Icsrc/manager $(CFLAGS) $(LDFLAGS) -o $@ $< csrc/manager/manager.c

build/host/_runtime.c: mgpu_rt/runtime/build.py mgpu_rt/abi.py csrc/abi.def
	@mkdir -p $(@D)
	'$(HOST_PYTHON)' -m mgpu_rt.runtime.build $@ >/dev/null
	@touch $@

$(RUNTIME_MODULE): build/host/_runtime.c
	$(CC) -shared $(PYTHON_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $<
