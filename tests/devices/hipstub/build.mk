# The stand-in for libamdhip64, for tests and benchmarks. From the repository's root:
#     make -f tests/devices/hipstub/build.mk
# or included by another makefile, which then has the target `hipstub`.

hipstub_dir := build/hipstub
hipstub_sources := $(filter-out tests/devices/hipstub/kernels.c,$(wildcard tests/devices/hipstub/*.c))
hipstub_objects := $(hipstub_sources:tests/devices/hipstub/%.c=$(hipstub_dir)/objects/%.o)
hipstub_flags := -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wpedantic -fPIC \
    -ftls-model=initial-exec

# The directories 6 and 7 hold the stub under the names of newer releases.
HIPSTUB_LIBRARIES := $(hipstub_dir)/libamdhip64.so.5 $(hipstub_dir)/libamdhip64.so \
    $(hipstub_dir)/6/libamdhip64.so.6 $(hipstub_dir)/7/libamdhip64.so.7 $(hipstub_dir)/kernels.so

.PHONY: hipstub
hipstub: $(HIPSTUB_LIBRARIES)

$(hipstub_dir)/objects/%.o: tests/devices/hipstub/%.c
	@mkdir -p $(@D)
	$(CC) $(hipstub_flags) -MMD -MP -c $< -o $@

$(hipstub_dir)/libamdhip64.so.5: $(hipstub_objects) tests/devices/hipstub/export.map
	$(CC) -shared -Wl,-soname,libamdhip64.so.5 -Wl,--version-script=tests/devices/hipstub/export.map \
	    -Wl,-z,defs -Wl,-z,nodelete $(hipstub_objects) -pthread -ldl -o $@

$(hipstub_dir)/libamdhip64.so: $(hipstub_dir)/libamdhip64.so.5
	ln -sf libamdhip64.so.5 $@

$(hipstub_dir)/6/libamdhip64.so.6 $(hipstub_dir)/7/libamdhip64.so.7: $(hipstub_dir)/libamdhip64.so.5
	@mkdir -p $(@D)
	ln -sf ../libamdhip64.so.5 $@

# Asks for the stub by its SONAME, so that it finds the one in the process, whichever name that was
# loaded by, also where it was loaded RTLD_LOCAL.
$(hipstub_dir)/kernels.so: $(hipstub_dir)/objects/kernels.o $(hipstub_dir)/libamdhip64.so.5
	$(CC) -shared -Wl,-soname,kernels.so $^ -o $@

-include $(wildcard $(hipstub_dir)/objects/*.d)
