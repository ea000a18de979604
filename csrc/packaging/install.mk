# make install, uninstall, dist. Included by the top Makefile.
#
# Everything of the package lies in LIBDIR/mgpu_rt, laid out as in a wheel; what others look for by
# name leads there: the libraries in LIBDIR, the header, the files for CMake and pkg-config, and the
# command. The command and the policy run in PYTHON, which needs cffi and click.

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR ?= $(PREFIX)/bin
DOCDIR ?= $(PREFIX)/share/doc/mgpu_rt
MANDIR ?= $(PREFIX)/share/man
HOME_DIR := $(LIBDIR)/mgpu_rt/site
INSTALL_PYTHON ?= $(PYTHON)

LIBRARY_NAMES := libmlir_rocm_runtime.so $(OTHER_NAMES)
INSTALLED := $(addprefix $(LIBDIR)/,$(LIBRARY_NAMES)) $(LIBDIR)/cmake/mgpu_rt \
	$(LIBDIR)/pkgconfig/mgpu_rt.pc $(INCLUDEDIR)/mgpu_rt.h $(BINDIR)/mgpu-rt $(DOCDIR) \
	$(MANDIR)/man1/mgpu-rt.1 \
	$(LIBDIR)/mgpu_rt

# Words of make's are separated by spaces, and uninstall removes each.
ifneq ($(words $(PREFIX) $(LIBDIR) $(INCLUDEDIR) $(BINDIR) $(DOCDIR) $(MANDIR)),6)
$(error PREFIX and the folders in it may hold no space)
endif

.PHONY: install install-files uninstall dist

# All or nothing: what a failed installation has left is taken out again.
install: native $(FORWARDERS)
	@$(MAKE) --no-print-directory install-files || { \
		echo "Could not install into $(DESTDIR)$(PREFIX): make PREFIX=... for a folder of yours, or run it as root" >&2; \
		$(MAKE) --no-print-directory uninstall 2>/dev/null; exit 1; }
	@echo "Installed into $(DESTDIR)$(PREFIX); $(BINDIR)/mgpu-rt doctor says how it is"

install-files:
	$(MAKE) --no-print-directory -f csrc/build.mk package OUT='$(DESTDIR)$(HOME_DIR)/mgpu_rt' \
		HOST_PYTHON='$(HOST_PYTHON)' >/dev/null
	find mgpu_rt '(' -name '*.py' -o -name '*.css' -o -name '*.html' -o -name py.typed -o -name bundle.tar.xz ')' -exec sh -ec 'for file; do \
		$(INSTALL) -D -m 644 "$$file" "$(DESTDIR)$(HOME_DIR)/$$file"; done' sh {} +
	printf '%s\n' '$(INSTALL_PYTHON)' > '$(DESTDIR)$(HOME_DIR)/mgpu_rt/lib/mgpu_rt.python'
	$(INSTALL) -d '$(DESTDIR)$(INCLUDEDIR)' '$(DESTDIR)$(BINDIR)' '$(DESTDIR)$(DOCDIR)/docs/record' \
		'$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(LIBDIR)/cmake/mgpu_rt'
	for name in $(LIBRARY_NAMES); do \
		ln -sf mgpu_rt/site/mgpu_rt/lib/libmlir_rocm_runtime.so "$(DESTDIR)$(LIBDIR)/$$name"; done
	$(INSTALL) -m 644 $(CMAKE_FILES) '$(DESTDIR)$(LIBDIR)/cmake/mgpu_rt'
	$(INSTALL) -m 644 $(PKG_CONFIG_FILE) '$(DESTDIR)$(LIBDIR)/pkgconfig'
	$(INSTALL) -m 644 $(HEADER) '$(DESTDIR)$(INCLUDEDIR)'
	$(INSTALL) -m 644 LICENSE README.md CHANGELOG.md '$(DESTDIR)$(DOCDIR)'
	$(INSTALL) -m 644 docs/*.md docs/*.png '$(DESTDIR)$(DOCDIR)/docs'
	$(INSTALL) -m 644 docs/record/*.md '$(DESTDIR)$(DOCDIR)/docs/record'
	$(HOST_PYTHON) csrc/packaging/man.py '$(DESTDIR)$(MANDIR)/man1/mgpu-rt.1'
	home=$$(realpath -ms --relative-to='$(BINDIR)' '$(HOME_DIR)') && \
		sed "s|@PYTHON@|$(INSTALL_PYTHON)|;s|@HOME@|$$home|" csrc/packaging/mgpu-rt.in > '$(DESTDIR)$(BINDIR)/mgpu-rt'
	chmod 755 '$(DESTDIR)$(BINDIR)/mgpu-rt'

uninstall:
	rm -rf $(foreach path,$(INSTALLED),'$(DESTDIR)$(path)')

# Compiled for the oldest C library that is served, by a compiler that knows how. auditwheel has the
# last word on what the files in the wheel really need. Frame pointers and checks of the stack, which
# this compiler adds and gcc does not, would cost a hit 9 % more instructions.
OLDEST := 2.28
PLATFORM := manylinux_$(subst .,_,$(OLDEST))_x86_64
ZIG := python -m ziglang cc -target x86_64-linux-gnu.$(OLDEST) -idirafter /usr/include \
	-fomit-frame-pointer -fno-stack-protector -fno-sanitize=all
dist: needs-build | $(VENV)/.tools
	$(PIP) install -c tests/requirements.lock ziglang auditwheel
	rm -rf dist
	$(BIN)/python -c 'from setuptools import build_meta as b; b.build_sdist("dist")' >/dev/null
	PATH="$(abspath $(BIN)):$$PATH" CC='$(ZIG)' $(PIP) wheel --no-deps --no-build-isolation \
		--config-settings=--build-option=--plat-name=$(PLATFORM) -w dist dist/*.tar.gz
	$(BIN)/python -m auditwheel show dist/*.whl | tee dist/auditwheel.txt | \
		grep -E 'manylinux_2_(1?[0-9]|2[0-8])_x86_64' >/dev/null || { cat dist/auditwheel.txt; exit 1; }
	rm dist/auditwheel.txt
	$(BIN)/python -m zipfile -l dist/*.whl | grep -q libhsakmt || { echo "no software GPU in the wheel" >&2; exit 1; }
	ls -l dist
