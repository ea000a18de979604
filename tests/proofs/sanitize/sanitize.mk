# The runtime by each compiler without a warning, and with clang's sanitizers under small programs:
#     make sanitize
#
# build/sanitize/<kind>/ holds the runtime, the stub of HIP and the programs of tests/support/hosts. Kinds:
# gcc, clang: warnings are errors; address: AddressSanitizer and UndefinedBehaviorSanitizer; thread:
# ThreadSanitizer.

NEEDS_sanitize := gcc-12 clang-22
SANITIZE_KINDS := gcc clang address thread

sanitize_dir := build/sanitize
sanitize_cc_gcc := gcc-12
sanitize_cc_clang := clang-22
sanitize_cc_address := clang-22
sanitize_cc_thread := clang-22
# Not function: as lowered programs do, the programs here know of no handle's type but void *.
sanitize_flags_gcc := -O2
sanitize_flags_clang := -O2
sanitize_flags_address := -O1 -DMGPU_RT_CHECK -fno-omit-frame-pointer -fsanitize=address,undefined \
    -fno-sanitize-recover=undefined -fno-sanitize=function
sanitize_flags_thread := -O1 -DMGPU_RT_CHECK -fno-omit-frame-pointer -fsanitize=thread
sanitize_flags := -std=c11 -D_GNU_SOURCE -g -fPIC -Wall -Wextra -Wpedantic -Werror \
    -Wno-static-in-inline
sanitize_macros := -DMGPU_RT_VERSION='"sanitized"'

sanitize_runtime := $(patsubst csrc/runtime/%.c,%,$(wildcard csrc/runtime/*/*.c csrc/runtime/*/*/*.c))
sanitize_headers := $(wildcard csrc/*.def csrc/*.h csrc/include/*.h csrc/runtime/*.h \
    csrc/runtime/*/*.h csrc/runtime/*/*/*.h csrc/runtime/*/*.def)
sanitize_programs := host

define sanitize_kind
$(sanitize_dir)/$(1)/runtime/%.o: csrc/runtime/%.c $(sanitize_headers)
	@mkdir -p $$(@D)
	$(sanitize_cc_$(1)) $(sanitize_flags) $(sanitize_flags_$(1)) $(sanitize_macros) \
	    -fvisibility=hidden -Icsrc/include -Icsrc/runtime -c $$< -o $$@

$(sanitize_dir)/$(1)/libmlir_rocm_runtime.so: $(sanitize_runtime:%=$(sanitize_dir)/$(1)/runtime/%.o)
	$(sanitize_cc_$(1)) $(sanitize_flags_$(1)) -shared -Wl,-soname,$$(@F) \
	    -Wl,--version-script=build/runtime/exports.map -Wl,-z,nodelete $$^ -pthread -ldl -o $$@

$(sanitize_dir)/$(1)/libamdhip64.so.5: $(hipstub_sources) $(wildcard tests/devices/hipstub/*.h)
	@mkdir -p $$(@D)
	$(sanitize_cc_$(1)) $(sanitize_flags) $(sanitize_flags_$(1)) -ftls-model=initial-exec -shared \
	    -Wl,-soname,$$(@F) -Wl,--version-script=tests/devices/hipstub/export.map $(hipstub_sources) \
	    -pthread -ldl -o $$@

$(sanitize_programs:%=$(sanitize_dir)/$(1)/%): $(sanitize_dir)/$(1)/%: tests/support/hosts/%.c
	@mkdir -p $$(@D)
	$(sanitize_cc_$(1)) $(sanitize_flags) $(sanitize_flags_$(1)) $$< -pthread -ldl -o $$@
endef
$(foreach kind,$(SANITIZE_KINDS),$(eval $(call sanitize_kind,$(kind))))

SANITIZED := $(foreach kind,$(SANITIZE_KINDS),$(addprefix $(sanitize_dir)/$(kind)/, \
    libmlir_rocm_runtime.so libamdhip64.so.5 $(sanitize_programs)))

.PHONY: sanitized sanitize
sanitized: $(SANITIZED)

# The random driver comes last (tests/proofs/random/build.mk).
sanitize: all needs-tools needs-sanitize $(RANDOM_DRIVER) $(STOCK_LIBRARIES)
	@$(MAKE) --no-print-directory sanitized
	$(BIN)/python -m pytest -q -m sanitize tests/proofs/sanitize
	$(BIN)/python -m tests.proofs.random.sanitize
