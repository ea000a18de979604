# The stand-in for NVIDIA's libcuda, for tests. From the repository's root:
#     make -f tests/devices/custub/build.mk
# or included by another makefile.

CUSTUB_LIBRARY := build/custub/libcuda.so.1

$(CUSTUB_LIBRARY): tests/devices/custub/custub.c tests/devices/custub/functions.def
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -O1 -g -fPIC -pthread -shared -Wall -Wextra -Wpedantic \
	    -Wl,-soname,$(@F) $< -o $@
