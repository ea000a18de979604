# Libraries with the names that programs of each LLVM ask for, of a few KB each, which lead to the
# one runtime (forward.c). They stand in for links in a wheel. They need nothing of the C library's.
#
# Included by csrc/build.mk, after csrc/runtime/build.mk, which knows the names.

FORWARDERS := $(OTHER_NAMES:%=build/forward/%)

build/forward/forward.o: csrc/forward/forward.c csrc/abi.def
	@mkdir -p $(@D)
	$(CC) -std=c11 -Os -fPIC -Wall -Wextra -fno-asynchronous-unwind-tables -fno-stack-protector \
		-fcf-protection=none -c -o $@ $<

$(FORWARDERS): build/forward/forward.o
	$(LD) -shared -o $@ $< -soname $(@F) --filter libmlir_rocm_runtime.so -rpath '$$ORIGIN' \
		--enable-new-dtags --build-id=none --hash-style=gnu -s -z noseparate-code -z noexecstack \
		-z norelro -z max-page-size=4096
