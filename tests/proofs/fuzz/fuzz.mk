# What reads an environment and images that others made, under clang's libFuzzer:
#     make fuzz                       each reader for FUZZ_SECONDS, from images that MLIR made
#     make fuzz FUZZ_SECONDS=60       the run after a change of a reader
#
# A finding ends the run with an error; build/fuzz/<reader>/ holds the input.

FUZZ_SECONDS := 10
FUZZ_JOBS := $(shell nproc)
FUZZ_CC := clang-22
NEEDS_fuzz := clang-22

fuzz_dir := build/fuzz
fuzz_flags := -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Wpedantic -fno-omit-frame-pointer \
    -fsanitize=fuzzer,address,undefined,float-cast-overflow -fno-sanitize-recover=all

# What each reader is made of, in csrc/runtime.
fuzz_images := $(addprefix modules/image/,bundles elf formats view)
fuzz_sources_image := $(fuzz_images)
fuzz_sources_bundle := $(fuzz_images) modules/image/metadata process/lines
fuzz_sources_metadata := modules/image/metadata process/lines
fuzz_sources_ptx := $(fuzz_images)
fuzz_sources_options := process/options process/lines
FUZZ_READERS := image bundle metadata ptx options
FUZZ_PROGRAMS := $(FUZZ_READERS:%=$(fuzz_dir)/fuzz-%)

define fuzz_program
$(fuzz_dir)/fuzz-$(1): tests/proofs/fuzz/$(1).c tests/proofs/fuzz/edge.c tests/proofs/fuzz/edge.h \
    $(fuzz_sources_$(1):%=csrc/runtime/%.c) \
    $(wildcard csrc/runtime/*.h csrc/runtime/*/*.h csrc/runtime/*/*/*.h csrc/runtime/*/*.def)
	@mkdir -p $$(@D)
	$(FUZZ_CC) $(fuzz_flags) -Icsrc/runtime tests/proofs/fuzz/$(1).c tests/proofs/fuzz/edge.c \
	    $(fuzz_sources_$(1):%=csrc/runtime/%.c) -o $$@
endef
$(foreach reader,$(FUZZ_READERS),$(eval $(call fuzz_program,$(reader))))

.PHONY: fuzz
fuzz: all needs-tools needs-fuzz
	@$(MAKE) --no-print-directory $(FUZZ_PROGRAMS)
	$(BIN)/python -m tests.proofs.fuzz --seconds $(FUZZ_SECONDS) --jobs $(FUZZ_JOBS) $(FUZZ_READERS)
