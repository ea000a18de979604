# mgpu_rt/_host.abi3.so, through which the manager in Python reaches the library in the program: one
# file for every Python from 3.10 on. Needs HOST_PYTHON, with cffi and its C headers.
#
# Included by csrc/build.mk.

HOST_PYTHON ?= python3
HOST_MODULE := mgpu_rt/_host.abi3.so
HOST_INCLUDE = $(shell '$(HOST_PYTHON)' -c 'import sysconfig as s; \
	print("-I" + s.get_path("include"), "-I" + s.get_path("platinclude"))')

build/host/_host.c: mgpu_rt/build.py csrc/manager/manager.h
	@mkdir -p $(@D)
	'$(HOST_PYTHON)' mgpu_rt/build.py $@ >/dev/null
	@touch $@ # which is left alone if it would be the same

$(HOST_MODULE): build/host/_host.c $(wildcard csrc/manager/*) csrc/runtime/base/channel.h
	$(CC) -shared -std=c11 -D_GNU_SOURCE -O2 $(PORTABLE) -g -fPIC -pthread -Wall -Wextra \
		-Wno-unused-parameter -DPy_LIMITED_API=0x030A0000 -Icsrc/manager $(HOST_INCLUDE) $(CFLAGS) \
		$(LDFLAGS) -o $@ $< csrc/manager/manager.c
