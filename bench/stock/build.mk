# The plain runtime that mgpu_rt is compared with. From the repository's root:
#     make -f bench/stock/build.mk
# or included by another makefile, which then has the target `stock`. It is linked against the
# stand-in for libamdhip64; at run time LD_LIBRARY_PATH says which one serves. AMD's HIP 5 lacks
# hipModuleLaunchCooperativeKernel, so functions are bound when they are first called.

stock_dir := build/stock
stock_flags := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wpedantic -fPIC -fvisibility=hidden \
    -DNDEBUG
stock_name := libmlir_rocm_runtime.so
stock_release := 22.1

# The second has the name that LLVM 22 gives its own.
STOCK_LIBRARIES := $(stock_dir)/$(stock_name) \
    $(stock_dir)/$(stock_release)/$(stock_name).$(stock_release) \
    $(stock_dir)/$(stock_release)/$(stock_name)

.PHONY: stock
stock: $(STOCK_LIBRARIES)

include $(if $(hipstub_dir),,tests/hipstub/build.mk)

$(stock_dir)/$(stock_name) $(stock_dir)/$(stock_release)/$(stock_name).$(stock_release): \
    bench/stock/stock.c bench/stock/hip.h $(hipstub_dir)/libamdhip64.so.5
	@mkdir -p $(@D)
	$(CC) $(stock_flags) -shared -Wl,-soname,$(@F) -Wl,-z,lazy $< \
	    $(hipstub_dir)/libamdhip64.so.5 -o $@

$(stock_dir)/$(stock_release)/$(stock_name): $(stock_dir)/$(stock_release)/$(stock_name).$(stock_release)
	ln -sf $(stock_name).$(stock_release) $@
