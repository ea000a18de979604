# The player of the random driver's scripts, and the kernels' bodies for the stub of HIP. From the
# repository's root:
#     make -f tests/proofs/random/build.mk
# or included by another makefile, which then has the target `soak` too.

random_dir := build/random_driver
random_flags := -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Wpedantic -Icsrc/selftest/player
random_objects := $(patsubst %.c,$(random_dir)/objects/%.o,\
    $(wildcard csrc/selftest/player/*.c tests/proofs/random/player/*.c))
random_library := build/lib/libmlir_rocm_runtime.so

include $(if $(hipstub_dir),,tests/devices/hipstub/build.mk)

# The first opens HIP by itself, the second is linked against it.
RANDOM_DRIVER := $(random_dir)/player $(random_dir)/player-linked $(random_dir)/bodies.so

.PHONY: random-driver soak
random-driver: $(RANDOM_DRIVER)

# Both players are the same objects.
$(random_dir)/objects/%.o: %.c $(wildcard csrc/selftest/player/*.h) csrc/abi.def
	@mkdir -p $(@D)
	$(CC) $(random_flags) -c $< -o $@

$(random_dir)/player: $(random_objects) | $(random_library)
	$(CC) $(random_objects) -Wl,--allow-shlib-undefined $(random_library) -pthread -ldl -o $@

$(random_dir)/player-linked: $(random_objects) $(hipstub_dir)/libamdhip64.so.5 | $(random_library)
	$(CC) $(random_objects) -Wl,--allow-shlib-undefined $(random_library) \
	    -Wl,--no-as-needed $(hipstub_dir)/libamdhip64.so.5 -pthread -ldl -o $@

$(random_dir)/bodies.so: tests/proofs/random/bodies.c $(hipstub_dir)/libamdhip64.so.5
	@mkdir -p $(@D)
	$(CC) $(random_flags) -fPIC -shared -Wl,-soname,$(@F) $^ -o $@

# The whole proof: more than 20,000 programs on the stub, 2,000 on HIP 5.2.3 and 2,000 on 7.2.4.
# SOAK=n for another number.
SOAK ?= 27000
soak: all needs-tools $(RANDOM_DRIVER) $(STOCK_LIBRARIES)
	$(VENV)/bin/python -m tests.proofs.random.soak $(SOAK)
