# Everything that is compiled, and what of it a package holds. Included by the top Makefile; setup.py
# uses it by itself: make -f csrc/build.mk
#
# CC, CFLAGS and LDFLAGS are the user's: what a file needs is said beside its rule.

.DEFAULT_GOAL := $(or $(.DEFAULT_GOAL),native)

include csrc/runtime/build.mk
include csrc/forward/build.mk
include softgpu/build.mk
include csrc/cuhip/build.mk
include csrc/python.mk
include csrc/selftest/build.mk

STRIP ?= strip
INSTALL ?= install

# The build folder as a prefix: build/lib, build/include. Both files lead from their own place to
# the library, so they hold no path and can be moved.
CMAKE_FILES := build/lib/cmake/mgpu_rt/mgpu_rtConfig.cmake \
	build/lib/cmake/mgpu_rt/mgpu_rtConfigVersion.cmake
PKG_CONFIG_FILE := build/lib/pkgconfig/mgpu_rt.pc
HEADER := build/include/mgpu_rt.h

$(CMAKE_FILES): build/lib/cmake/mgpu_rt/%: csrc/packaging/%.in mgpu_rt/__init__.py
	@mkdir -p $(@D)
	sed 's/@VERSION@/$(MGPU_RT_VERSION)/' $< > $@

$(PKG_CONFIG_FILE): csrc/packaging/mgpu_rt.pc.in mgpu_rt/__init__.py
	@mkdir -p $(@D)
	sed 's/@VERSION@/$(MGPU_RT_VERSION)/' $< > $@

$(HEADER): csrc/include/mgpu_rt.h
	@mkdir -p $(@D)
	cp $< $@

# Softgpu takes the declarations of AMD's driver library from its header (libhsakmt-dev, in ROCm
# hsakmt-roct-devel). SOFTGPU=no builds all else without it.
SOFTGPU ?= yes
DEVICES := $(if $(filter yes,$(SOFTGPU)),$(SOFTGPU_LIBRARY) $(SOFTGPU_DTIF) $(COMGR_LIBRARY) \
	$(SOFTGPU_CHECK_LIBRARY) $(CALLS_CHECK_LIBRARY) $(HOST_CHECK_LIBRARY)) $(CUHIP_LIBRARY)

.PHONY: native package
native: $(LIBRARY) $(LINKS) $(PROBE) $(CMAKE_FILES) $(PKG_CONFIG_FILE) $(HEADER) $(PYTHON_MODULES) \
	$(DEVICES) $(SELFTEST_PROGRAMS)

# $(call lay,FILES,FOLDER,MODE): into the package, without what only a debugger reads.
define lay
	$(INSTALL) -d '$(OUT)/$(2)'
	$(INSTALL) -m $(3) $(1) '$(OUT)/$(2)'

endef

# The compiled half of the Python package, in the folder OUT.
package: native $(FORWARDERS)
	$(call lay,$(LIBRARY) $(SPARSE_LIBRARY) $(PYTHON_LIBRARY) $(PROBE) $(FORWARDERS),lib,755)
	$(call lay,$(CMAKE_FILES),lib/cmake/mgpu_rt,644)
	$(call lay,$(PKG_CONFIG_FILE),lib/pkgconfig,644)
	$(call lay,$(CUHIP_LIBRARY),lib/cuhip,755)
	$(call lay,$(SELFTEST_PROGRAMS),lib/selftest,755)
	$(if $(filter yes,$(SOFTGPU)),$(call lay,$(SOFTGPU_LIBRARY) $(SOFTGPU_DTIF) $(COMGR_LIBRARY),lib/softgpu,755))
	$(if $(filter yes,$(SOFTGPU)),$(call lay,$(SOFTGPU_CHECK_LIBRARY) $(CALLS_CHECK_LIBRARY) $(HOST_CHECK_LIBRARY),lib/softgpu/check,755))
	$(call lay,$(HEADER),include,644)
	$(call lay,$(PYTHON_MODULES),.,755)
	$(call lay,csrc/abi.def csrc/runtime/process/options.def,.,644)
	cd '$(OUT)' && $(STRIP) --strip-unneeded lib/libmlir_rocm_runtime.so lib/libmgpu_rt_sparse.so lib/libmgpu_rt_python.so \
		lib/mgpu-rt-probe 		lib/*/*.so* $(if $(filter yes,$(SOFTGPU)),lib/softgpu/check/*) lib/selftest/* $(notdir $(PYTHON_MODULES))
