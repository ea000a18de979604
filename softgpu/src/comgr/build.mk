# libamd_comgr.so.2 beside the software GPU: HIP's compiler, which is AMD's, with a memory (comgr.h).
# Included by softgpu/build.mk.

COMGR_LIBRARY := build/softgpu/libamd_comgr.so.2
COMGR_SOURCES := $(wildcard softgpu/src/comgr/*.c)
COMGR_OBJECTS := $(COMGR_SOURCES:softgpu/src/%.c=build/softgpu/obj/%.o)

# Never unloaded: AMD's library behind it is not either.
$(COMGR_LIBRARY): $(COMGR_OBJECTS)
	$(CC) -shared -pthread $(LDFLAGS) -o $@ $(COMGR_OBJECTS) -ldl \
		-Wl,-z,nodelete -Wl,-soname,libamd_comgr.so.2 -Wl,-z,defs

-include $(COMGR_OBJECTS:.o=.d)
