# build/lib/libmgpu_rt_python.so: Python in the program, which the runtime opens if MGPU_RT_RUNTIME is
# set. Needs a C compiler only. Included by csrc/runtime/build.mk.

PYTHON_LIBRARY := build/lib/libmgpu_rt_python.so

$(PYTHON_LIBRARY): csrc/python/host.c csrc/python/stack.h csrc/runtime/abi/python_plugin.h
	@mkdir -p $(@D)
	$(CC) -shared -std=c11 -D_GNU_SOURCE -O2 $(PORTABLE) -g -fPIC -pthread -fvisibility=hidden -Wall \
		-Wextra -Wpedantic -Icsrc/runtime $(CFLAGS) $(LDFLAGS) -o $@ $< -ldl -Wl,-soname,$(@F) \
		-Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,-z,defs -Wl,--as-needed
