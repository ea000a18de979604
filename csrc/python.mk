# The package's modules in C, one file each for every Python from 3.10 on. By mgpu_rt/_manager.abi3.so
# the manager in Python reaches the library in the program. Through mgpu_rt/_runtime.abi3.so a runtime
# in Python answers the program's calls. cffi writes both. Needs HOST_PYTHON, with cffi and its C
# headers.
#
# Included by csrc/build.mk.

HOST_PYTHON ?= python3
MANAGER_MODULE := mgpu_rt/_manager.abi3.so
RUNTIME_MODULE := mgpu_rt/_runtime.abi3.so
PYTHON_MODULES := $(MANAGER_MODULE) $(RUNTIME_MODULE)
PYTHON_CFLAGS = -std=c11 -D_GNU_SOURCE -O2 $(PORTABLE) -fPIC -pthread -Wall -Wextra \
	-Wno-unused-parameter -DPy_LIMITED_API=0x030A0000 $(PYTHON_INCLUDE)
PYTHON_INCLUDE = $(shell '$(HOST_PYTHON)' -c 'import sysconfig as s; \
	print("-I" + s.get_path("include"), "-I" + s.get_path("platinclude"))')

build/python/_manager.c: csrc/packaging/manager_module.py csrc/runtime/manager/table.h
	@mkdir -p $(@D)
	'$(HOST_PYTHON)' csrc/packaging/manager_module.py $@ >/dev/null
	@touch $@ # which is left alone if it would be the same

$(MANAGER_MODULE): build/python/_manager.c csrc/runtime/manager/table.h \
		csrc/runtime/process/own_thread.h
	$(CC) -shared $(PYTHON_CFLAGS) -Icsrc/runtime $(CFLAGS) $(LDFLAGS) -o $@ $<

build/python/_runtime.c: csrc/packaging/runtime_module.py mgpu_rt/_abi.py csrc/abi.def
	@mkdir -p $(@D)
	PYTHONPATH=".:$$PYTHONPATH" '$(HOST_PYTHON)' csrc/packaging/runtime_module.py $@ >/dev/null
	@touch $@

$(RUNTIME_MODULE): build/python/_runtime.c csrc/python/runtime.h csrc/python/launches.h \
		csrc/python/known.h csrc/python/stack.h
	$(CC) -shared $(PYTHON_CFLAGS) -Icsrc/python $(CFLAGS) $(LDFLAGS) -o $@ $<
