# What `mgpu-rt selftest` runs: build/lib/selftest/player plays saved sequences of calls, measure runs
# lowered programs and asks HIP. Both find the library in the folder above, or in LD_LIBRARY_PATH.
#
# Included by csrc/build.mk.

SELFTEST_PROGRAMS := build/lib/selftest/player build/lib/selftest/measure
SELFTEST_CFLAGS = -std=c11 -D_GNU_SOURCE -O2 $(PORTABLE) -Wall -Wextra -Wpedantic -pthread $(CFLAGS) $(LDFLAGS)
SELFTEST_LINK = -Wl,--allow-shlib-undefined,--no-as-needed $(LIBRARY) -Wl,-rpath,'$$ORIGIN/..' -ldl

build/lib/selftest/player: $(wildcard csrc/selftest/player/*.[ch]) | $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(SELFTEST_CFLAGS) $(filter %.c,$^) $(SELFTEST_LINK) -o $@

# Programs of the bundle print by functions of this one, and call the library that this one loads.
build/lib/selftest/measure: csrc/selftest/measure.c | $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(SELFTEST_CFLAGS) -rdynamic $(filter %.c,$^) $(SELFTEST_LINK) -o $@
