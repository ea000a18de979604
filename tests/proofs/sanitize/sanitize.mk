# The runtime by each compiler without a warning, and with each compiler's sanitizers under small and
# random programs:
#     make sanitize
#
# build/sanitize/<kind>/ holds the runtime, in hip/ the stub of HIP, a program of tests/support/hosts and the
# random driver's players. Kinds: gcc, clang: warnings are errors; <compiler>-address:
# AddressSanitizer and UndefinedBehaviorSanitizer; <compiler>-thread: ThreadSanitizer.

NEEDS_sanitize := gcc-12 clang-22
SANITIZE_KINDS := gcc clang gcc-address gcc-thread clang-address clang-thread

sanitize_dir := build/sanitize
sanitize_cc_gcc := gcc-12
sanitize_cc_clang := clang-22
sanitize_cc = $(sanitize_cc_$(firstword $(subst -, ,$(1))))
sanitize_flags_gcc := -O2
sanitize_flags_clang := -O2
sanitize_flags_address := -O1 -DMGPU_RT_CHECK -fno-omit-frame-pointer -fsanitize=address,undefined \
    -fno-sanitize-recover=all
sanitize_flags_thread := -O1 -DMGPU_RT_CHECK -fno-omit-frame-pointer -fsanitize=thread
sanitize_flags_clang-address := $(sanitize_flags_address)
sanitize_flags_clang-thread := $(sanitize_flags_thread)
# gcc also warns about code that its sanitizers generate.
sanitize_flags_gcc-address := $(sanitize_flags_address) -w
sanitize_flags_gcc-thread := $(sanitize_flags_thread) -w
sanitize_flags := -std=c11 -D_GNU_SOURCE -g -fPIC -Wall -Wextra -Wpedantic -Werror \
    -Wno-static-in-inline
# As lowered programs do, the programs here know of no handle's type but void *.
sanitize_untyped_clang-address := -fno-sanitize=function
sanitize_macros := -DMGPU_RT_VERSION='"sanitized"'

sanitize_runtime := $(patsubst csrc/runtime/%.c,%,$(wildcard csrc/runtime/*/*.c csrc/runtime/*/*/*.c))
sanitize_headers := $(wildcard csrc/*.def csrc/*.h csrc/include/*.h csrc/runtime/*.h \
    csrc/runtime/*/*.h csrc/runtime/*/*/*.h csrc/runtime/*/*.def)
sanitize_player := $(wildcard csrc/selftest/player/*.c tests/proofs/random/player/*.c)
sanitize_programs := host player player-linked

define sanitize_kind
$(sanitize_dir)/$(1)/runtime/%.o: csrc/runtime/%.c $(sanitize_headers)
	@mkdir -p $$(@D)
	$(sanitize_cc) $(sanitize_flags) $(sanitize_flags_$(1)) $(sanitize_macros) \
	    -fvisibility=hidden -Icsrc/include -Icsrc/runtime -c $$< -o $$@

$(sanitize_dir)/$(1)/libmlir_rocm_runtime.so: $(sanitize_runtime:%=$(sanitize_dir)/$(1)/runtime/%.o)
	$(sanitize_cc) $(sanitize_flags_$(1)) -shared -Wl,-soname,$$(@F) \
	    -Wl,--version-script=build/runtime/exports.map -Wl,-z,nodelete $$^ -pthread -ldl -o $$@

$(sanitize_dir)/$(1)/hip/libamdhip64.so.5: $(hipstub_sources) $(wildcard tests/devices/hipstub/*.h)
	@mkdir -p $$(@D)
	$(sanitize_cc) $(sanitize_flags) $(sanitize_flags_$(1)) -ftls-model=initial-exec -shared \
	    -Wl,-soname,$$(@F) -Wl,--version-script=tests/devices/hipstub/export.map $(hipstub_sources) \
	    -pthread -ldl -o $$@

$(sanitize_dir)/$(1)/host: tests/support/hosts/host.c
	@mkdir -p $$(@D)
	$(sanitize_cc) $(sanitize_flags) $(sanitize_flags_$(1)) $(sanitize_untyped_$(1)) \
	    $$< -pthread -ldl -o $$@

# The second player is linked against the plain stub, as random/build.mk links it.
$(sanitize_dir)/$(1)/player $(sanitize_dir)/$(1)/player-linked: $(sanitize_player) \
    $(sanitize_dir)/$(1)/libmlir_rocm_runtime.so $(hipstub_dir)/libamdhip64.so.5
	$(sanitize_cc) $(sanitize_flags) $(sanitize_flags_$(1)) $(sanitize_untyped_$(1)) \
	    -Icsrc/selftest/player $(sanitize_player) -Wl,--allow-shlib-undefined -Wl,--no-as-needed \
	    $(sanitize_dir)/$(1)/libmlir_rocm_runtime.so \
	    $$(if $$(findstring linked,$$@),$(hipstub_dir)/libamdhip64.so.5) -pthread -ldl -o $$@
endef
$(foreach kind,$(SANITIZE_KINDS),$(eval $(call sanitize_kind,$(kind))))

SANITIZED := $(foreach kind,$(SANITIZE_KINDS),$(addprefix $(sanitize_dir)/$(kind)/, \
    libmlir_rocm_runtime.so hip/libamdhip64.so.5 $(sanitize_programs)))

.PHONY: sanitized sanitize
sanitized: $(SANITIZED)

sanitize: all needs-tools needs-sanitize $(RANDOM_DRIVER) $(STOCK_LIBRARIES)
	@$(MAKE) --no-print-directory sanitized
	$(BIN)/python -m pytest -q -m sanitize tests/proofs/sanitize
