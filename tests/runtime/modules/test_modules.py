"""Tests which caller may hold a cached module, and when a cached module ends (states:
shared/types.h)."""

from __future__ import annotations

import ctypes
from collections import deque

from tests.runtime.shared.test_known_limits import distinct
from tests.support.child import Mgpu, in_child
from tests.support.images import code_object

COUNT = 200
COPY = 8192  # bytes that a copy takes at least; the stub frees less beside it


class Mallinfo(ctypes.Structure):
    """The struct that mallinfo2 returns."""

    _fields_ = [(f"field{number}", ctypes.c_size_t) for number in range(10)]


def allocated() -> int:
    """Returns the number of bytes that malloc has allocated and nobody has freed."""
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = Mallinfo
    return libc.mallinfo2().field7


def load_many(mgpu: Mgpu, unload: bool) -> tuple[int, int]:
    """Loads `COUNT` images that may change, so each module has a copy. Returns how many bytes
    malloc had allocated before the loads and after the loads."""
    mgpu.StreamDestroy(mgpu.StreamCreate())
    images = [mgpu.image(distinct(number)) for number in range(COUNT)]
    before = allocated()
    for image in images:
        module = mgpu.load(image)
        if unload:
            mgpu.ModuleUnload(module)
    return before, allocated()


@in_child(HIPSTUB_MODE="fast")
def test_an_emptied_cache_frees_the_copies(mgpu: Mgpu) -> None:
    before, kept = load_many(mgpu, unload=True)
    assert kept - before > COUNT * COPY
    mgpu.lib.mgpu_rt_empty_cache()
    assert allocated() - before < (kept - before) / 2


@in_child()
def test_a_reset_leaves_the_copies_of_images(mgpu: Mgpu) -> None:
    """Threads may still compare the image, and HIP may still read the image at the end of the
    process."""
    _, kept = load_many(mgpu, unload=False)
    mgpu.stub.hipDeviceReset()
    mgpu.StreamDestroy(mgpu.StreamCreate())  # notices it
    assert kept - allocated() < COUNT * COPY


@in_child(policies=("builtin",))
def test_a_program_that_holds_many_modules_of_an_image_loads_no_more(mgpu: Mgpu) -> None:
    """The program unloads its oldest module before each load. A search visits 64 modules, and the
    next search visits others."""
    image = mgpu.image(code_object("forum"))
    held = deque(mgpu.load(image) for _ in range(100))
    for _ in range(COUNT):
        mgpu.ModuleUnload(held.popleft())
        held.append(mgpu.load(image))
    assert mgpu.count("hipModuleLoadData") <= 100 + 4
    assert len(set(held)) == 100
