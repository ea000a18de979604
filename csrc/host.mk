# mgpu_rt/_host.abi3.so, through which the C library calls the policy in Python: one file for every
# Python from 3.10 on. Needs HOST_PYTHON, with cffi and its C headers.
#
# Included by csrc/build.mk.

HOST_PYTHON ?= python3
HOST_MODULE := mgpu_rt/_host.abi3.so
HOST_INCLUDE = $(shell $(HOST_PYTHON) -c 'import sysconfig as s; \
	print("-I" + s.get_path("include"), "-I" + s.get_path("platinclude"))')

build/host/_host.c: mgpu_rt/build.py csrc/runtime/policy.h
	@mkdir -p $(@D)
	$(HOST_PYTHON) mgpu_rt/build.py $@ >/dev/null

$(HOST_MODULE): build/host/_host.c
	$(CC) -shared -O2 -g -fPIC -DPy_LIMITED_API=0x030A0000 -Icsrc/runtime $(HOST_INCLUDE) $(CFLAGS) \
		$(LDFLAGS) -o $@ $<
