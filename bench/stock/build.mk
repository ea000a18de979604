# The plain runtime that mgpu_rt is compared with. From the repository's root:
#     make -f bench/stock/build.mk
# or included by another makefile, which then has the target `stock`. At run time LD_LIBRARY_PATH says
# which libamdhip64 serves. It is linked against an empty one, so that it asks for no version of a
# function: HIP 5.7 has hipModuleLaunchCooperativeKernel under another than its others. 5.2 lacks it,
# so functions are bound when they are first called.

stock_dir := build/stock
stock_flags := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wpedantic -fPIC -fvisibility=hidden \
    -DNDEBUG
stock_name := libmlir_rocm_runtime.so
stock_release := 22.1

# The second has the name that LLVM 22 gives its own; the last is the models' floor (byhand.c).
STOCK_LIBRARIES := $(stock_dir)/$(stock_name) \
    $(stock_dir)/$(stock_release)/$(stock_name).$(stock_release) \
    $(stock_dir)/$(stock_release)/$(stock_name) \
    $(stock_dir)/byhand/$(stock_name)

.PHONY: stock
stock: $(STOCK_LIBRARIES)

stock_hip := $(stock_dir)/hip/libamdhip64.so.5

$(stock_hip):
	@mkdir -p $(@D)
	$(CC) -shared -x c /dev/null -Wl,-soname,$(@F) -o $@

$(stock_dir)/$(stock_name) $(stock_dir)/$(stock_release)/$(stock_name).$(stock_release): \
    bench/stock/stock.c bench/stock/hip.h $(stock_hip)
	@mkdir -p $(@D)
	$(CC) $(stock_flags) -shared -Wl,-soname,$(@F) -Wl,-z,lazy $< \
	    -Wl,--no-as-needed $(stock_hip) -o $@

$(stock_dir)/byhand/$(stock_name): bench/stock/byhand.c bench/stock/hip.h $(stock_hip)
	@mkdir -p $(@D)
	$(CC) $(stock_flags) -shared -Wl,-soname,$(@F) -Wl,-z,lazy $< \
	    -Wl,--no-as-needed $(stock_hip) -o $@

$(stock_dir)/$(stock_release)/$(stock_name): $(stock_dir)/$(stock_release)/$(stock_name).$(stock_release)
	ln -sf $(stock_name).$(stock_release) $@
