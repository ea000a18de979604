# build/lib/libmgpu_rt_sparse.so: sparse matrices by hipSPARSE or cuSPARSE, which the runtime opens at
# the first call that needs it. Needs a C compiler only. Included by csrc/runtime/build.mk.

SPARSE_LIBRARY := build/lib/libmgpu_rt_sparse.so
SPARSE_OBJECTS := $(patsubst csrc/sparse/%.c,build/sparse/%.o,$(wildcard csrc/sparse/*.c))
SPARSE_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 $(PORTABLE) -g -fPIC -pthread -fvisibility=hidden \
	-Wall -Wextra -Wpedantic -Icsrc/runtime

$(SPARSE_LIBRARY): $(SPARSE_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -shared $(SPARSE_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(SPARSE_OBJECTS) -ldl \
		-Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,-z,defs -Wl,--as-needed

build/sparse/%.o: csrc/sparse/%.c
	@mkdir -p $(@D)
	$(CC) $(SPARSE_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

-include $(SPARSE_OBJECTS:.o=.d)
