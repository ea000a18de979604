# HIP's ABI over NVIDIA's driver: build/cuhip/libamdhip64.so. Needs no header and no library of
# NVIDIA's: the driver is opened when the first call needs it.
#
# Included by the top Makefile; also works by itself: make -f csrc/cuhip/build.mk

include csrc/common.mk

CUHIP_LIBRARY := build/cuhip/libamdhip64.so
CUHIP_SONAME := libamdhip64.so.5
CUHIP_SOURCES := $(wildcard csrc/cuhip/*.c)
CUHIP_OBJECTS := $(CUHIP_SOURCES:csrc/cuhip/%.c=build/cuhip/obj/%.o)
CUHIP_MAP := csrc/cuhip/export.map
# Across files: the exported functions take in what they are made of.
CUHIP_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 $(LTO) $(PORTABLE) -fPIC -pthread -fvisibility=hidden -Wall -Wextra \
	-Wpedantic

$(CUHIP_LIBRARY): build/cuhip/$(CUHIP_SONAME)
	ln -sf $(CUHIP_SONAME) $@

# A host that closes it leaves threads' contexts behind, so it stays.
build/cuhip/$(CUHIP_SONAME): $(CUHIP_OBJECTS) $(CUHIP_MAP)
	$(CC) -shared $(CUHIP_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(CUHIP_OBJECTS) -ldl -Wl,-soname,$(CUHIP_SONAME) \
		-Wl,--version-script=$(CUHIP_MAP) -Wl,-z,defs -Wl,-z,nodelete -Wl,-z,now

build/cuhip/obj/%.o: csrc/cuhip/%.c
	@mkdir -p $(@D)
	$(CC) $(CUHIP_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

-include $(CUHIP_OBJECTS:.o=.d)
