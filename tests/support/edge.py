"""Images at the end of readable memory."""

from __future__ import annotations

import mmap

from tests.support.child import Mgpu

PAGE = mmap.PAGESIZE
NONE, READ_WRITE = 0, 3  # values of mmap's protections


def libc_of(mgpu: Mgpu):
    """Returns the C library, with the functions that map memory."""
    mgpu.ffi.cdef(
        "void *mmap(void *, size_t, int, int, int, long); int mprotect(void *, size_t, int);"
        "int memfd_create(const char *, unsigned); int ftruncate(int, long);",
        override=True,
    )
    return mgpu.ffi.dlopen(None)


def at_the_edge(mgpu: Mgpu, content: bytes, rights: int = READ_WRITE):
    """Returns a copy of an image at the end of readable memory: the next page has no access rights.

    The page stays mapped: another thread's mmap, such as the driver's, could take the place of an
    unmapped page.
    """
    libc = libc_of(mgpu)
    size = (len(content) + PAGE - 1) // PAGE * PAGE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    area = mgpu.ffi.cast("char *", libc.mmap(mgpu.null, size + PAGE, READ_WRITE, flags, -1, 0))
    image = area + size - len(content)
    mgpu.ffi.memmove(image, content, len(content))
    assert libc.mprotect(area + size, PAGE, NONE) == 0
    assert libc.mprotect(area, size, rights) == 0
    return image
