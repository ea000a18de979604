"""Tests how the library reads images: the library reads only existing memory, and accepts every
image that HIP would accept.

Tests run over the stub and over AMD's HIP 5.2.3 on the emulated device, with images at the end of
readable memory.
"""

from __future__ import annotations

import mmap
import struct

from tests.proofs.fuzz.seeds import tables_first
from tests.support.child import BACKENDS, Mgpu, in_cases, in_child
from tests.support.edge import NONE, PAGE, READ_WRITE, at_the_edge, libc_of
from tests.support.images import bundle, code_object

KERNEL = "test_func"
REFUSED = "'hipModuleLoadData(&module, data)' failed with 'hipError"


def _load_and_unload(mgpu: Mgpu, image):
    """Returns the image's module. If the library caches the module, the next load of equal bytes
    returns the module again."""
    module = mgpu.load(image)
    mgpu.ModuleUnload(module)
    return module


def _fatbin(header_size: int, size: int = 64) -> bytes:
    """Returns a fatbin of NVIDIA's with one entry; the entry's header says where the content of the
    entry begins."""
    entry = struct.pack("<HHIQII", 2, 0x101, header_size, size, 0, 0)
    body = entry + b"\x7fELF" + bytes(size - 4)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


@in_child(backends=BACKENDS)
def test_a_fatbin_entrys_wrong_header_size_is_not_followed(mgpu: Mgpu) -> None:
    """According to the entry's header, the content would begin in unreadable memory."""
    for header_size in (0, 23, 24, 4096, 1 << 20, 0xFFFFFFFF):
        assert not mgpu.load(at_the_edge(mgpu, _fatbin(header_size)))
        assert mgpu.stderr().startswith(REFUSED)
    assert mgpu.load(mgpu.image(code_object("forum")))


@in_child(backends=BACKENDS)
def test_an_empty_bundle_entrys_offset_is_ignored(mgpu: Mgpu) -> None:
    """HIP does not read the offset of an empty entry."""
    image = bytearray(bundle(code_object("forum")))
    for offset in (0, 1 << 40, (1 << 62) - 1, (1 << 64) - 1):
        struct.pack_into("<Q", image, 32, offset)
        module = mgpu.load(at_the_edge(mgpu, bytes(image)))
        assert mgpu.function(module, KERNEL)
        mgpu.ModuleUnload(module)
        assert _load_and_unload(mgpu, at_the_edge(mgpu, bytes(image))) == module
    assert mgpu.stderr() == ""


@in_child(backends=("softgpu",))
def test_a_damaged_entry_for_another_gpu_is_ignored(mgpu: Mgpu) -> None:
    """HIP finds the entry for this GPU although another entry is damaged; only HIP knows which
    entry is for this GPU."""
    image = bytearray(bundle(code_object("forum"), code_object("forum", None, "gfx1100")))
    second = image.index(b"hipv4-amdgcn", image.index(b"hipv4-amdgcn") + 1)
    image[second : second + 31] = b"hipv4-amdgcn-amd-amdhsa--gfx110"
    for offset, size in ((1 << 40, 5000), (0, 1 << 40), ((1 << 64) - 8, 64)):
        struct.pack_into("<QQ", image, second - 24, offset, size)
        module = mgpu.load(at_the_edge(mgpu, bytes(image)))
        assert mgpu.function(module, KERNEL), (offset, size)
    assert mgpu.stderr() == ""


@in_child()
def test_unreadable_memory_is_not_read(mgpu: Mgpu) -> None:
    """The memory is mapped, so msync succeeds, but the page has no read permission. AMD's HIP
    crashes there."""
    for content in (code_object("forum"), bundle(code_object("forum")), _fatbin(24), bytes(5000)):
        assert not mgpu.load(at_the_edge(mgpu, content, NONE))
        assert mgpu.stderr().startswith(REFUSED)
    assert mgpu.load(mgpu.image(code_object("forum")))


@in_child()
def test_nothing_is_read_beyond_a_mapped_files_end(mgpu: Mgpu) -> None:
    """A read beyond the end of the file would cause SIGBUS."""
    libc = libc_of(mgpu)
    file = libc.memfd_create(b"image", 0)
    content = code_object("forum")
    assert libc.ftruncate(file, len(content)) == 0
    area = libc.mmap(mgpu.null, len(content), READ_WRITE, mmap.MAP_SHARED, file, 0)
    mgpu.ffi.memmove(area, content, len(content))
    assert libc.ftruncate(file, PAGE) == 0
    assert not mgpu.load(area)
    assert mgpu.stderr().startswith(REFUSED)
    assert libc.ftruncate(file, 0) == 0
    assert not mgpu.load(area)
    assert mgpu.stderr().startswith(REFUSED)


@in_child(backends=BACKENDS)
def test_an_image_with_strings_behind_its_section_headers_is_shared(mgpu: Mgpu) -> None:
    """The library loads, caches and shares the image like any other image, and detects its writable
    globals."""
    content = tables_first(code_object("forum"))
    modules = {_load_and_unload(mgpu, at_the_edge(mgpu, content)) for _ in range(3)}
    assert len(modules) == 1
    assert mgpu.function(mgpu.load(at_the_edge(mgpu, content)), KERNEL)
    content = tables_first(code_object("globals"))
    before = mgpu.count("hipModuleLoadData") if mgpu.on_stub else 0
    for _ in range(3):
        assert _load_and_unload(mgpu, at_the_edge(mgpu, content))
    if mgpu.on_stub:
        assert mgpu.count("hipModuleLoadData") == before + 3
    assert mgpu.stderr() == ""


@in_cases(("code object", "bundle"))
def test_a_shorter_image_at_the_same_address_is_loaded_anew(mgpu: Mgpu, kind: str) -> None:
    """The shorter image has the same header as the longer image that was at the address before, and
    the header states no size. So the library compares the tables of the two images before it uses
    the table of the shorter image."""
    forum, libc = code_object("forum"), libc_of(mgpu)
    if kind == "bundle":
        short, long = bundle(forum), bundle(forum + bytes(3 * PAGE))
    else:
        short, long = tables_first(forum), tables_first(forum, PAGE)
        assert short[:64] == long[:64]
    room, end = ((len(image) + PAGE - 1) // PAGE * PAGE for image in (long, short))
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    area = libc.mmap(mgpu.null, room, READ_WRITE, flags, -1, 0)
    mgpu.ffi.memmove(area, long, len(long))
    module = _load_and_unload(mgpu, area)
    mgpu.ffi.memmove(area, short, len(short))
    assert libc.mprotect(mgpu.ffi.cast("char *", area) + end, room - end, NONE) == 0
    shorter = _load_and_unload(mgpu, area)
    assert shorter not in (module, mgpu.null)
    assert _load_and_unload(mgpu, area) == shorter


@in_child(backends=BACKENDS)
def test_images_with_a_false_size_of_a_section_are_not_shared(mgpu: Mgpu) -> None:
    """AMD's HIP does not read the section with the false size, and accepts the image. The library
    does not share the image, because the library cannot read everything that the image claims to
    contain."""
    content = code_object("forum")
    (at,) = struct.unpack_from("<Q", content, 40)
    for size in (1 << 40, 1 << 63, (1 << 64) - 1):
        image = bytearray(content)
        struct.pack_into("<Q", image, at + 3 * 64 + 32, size)
        buffer = at_the_edge(mgpu, bytes(image))
        if mgpu.on_stub:
            mgpu.load(buffer)
            continue
        module = mgpu.load(buffer)
        assert mgpu.function(module, KERNEL)
        assert mgpu.load(buffer) != module
        assert mgpu.stderr() == ""
