# The checker's device for a test, in which the map of the allocations changes at each access, as if
# another thread of the program allocated and freed all the time:
#     make -f tests/python/cli/check/build.mk

.DEFAULT_GOAL := build/softgpu/check/changing/libhsakmt.so.1

include softgpu/build.mk

$(.DEFAULT_GOAL): tests/python/cli/check/changing.c $(SOFTGPU_CHECK_OBJECTS) $(SOFTGPU_MAP)
	@mkdir -p $(@D)
	$(CC) $(SOFTGPU_CFLAGS) $(CFLAGS) -shared $(LDFLAGS) -o $@ $< $(SOFTGPU_CHECK_OBJECTS) -lm -ldl \
		-Wl,--wrap=softgpu_shadow_generation -Wl,-soname,libhsakmt.so.1 \
		-Wl,--version-script=$(SOFTGPU_MAP) -Wl,-z,defs
