"""The reader finds images in files, and reads their contents."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from mgpu_rt._images import elf, find, nvidia
from mgpu_rt._images.elf import globals_of
from mgpu_rt._images.model import (
    CODE_OBJECT,
    CUBIN,
    FATBIN,
    OTHER,
    PTX,
    Global,
    ImageDescription,
)
from mgpu_rt._lowering import toolchain
from tests.proofs.fuzz import seeds
from tests.runtime.images import corpus
from tests.support import lower
from tests.support.child import library
from tests.support.images import bundle, code_object
from tests.support.programs import STOCK, build
from tests.support.sources import SOURCES


def in_file(path: Path) -> find.Contents:
    return find.contents(path.read_bytes(), f"'{path}'")


def read(tmp_path: Path, content: bytes) -> list[ImageDescription]:
    path = tmp_path / "file"
    path.write_bytes(content)
    return in_file(path).images


def only(images: list[ImageDescription]) -> ImageDescription:
    (image,) = images
    return image


# ---- what the reader reads from an image ----

#: Maps LLVM's names for the fields of an image's metadata to this project's names.
WORDS = {
    ".sgpr_count": "sgprs",
    ".vgpr_count": "vgprs",
    ".agpr_count": "agprs",
    ".sgpr_spill_count": "spilled_sgprs",
    ".vgpr_spill_count": "spilled_vgprs",
    ".group_segment_fixed_size": "workgroup_memory",
    ".private_segment_fixed_size": "scratch",
    ".max_flat_workgroup_size": "max_flat_workgroup_size",
    ".kernarg_segment_size": "argument_bytes",
    ".wavefront_size": "wavefront",
}


@pytest.mark.parametrize("program", ["vecadd", "spin", "globals", "samename"])
def test_kernels_are_as_llvm_reads_them(program: str, tmp_path: Path) -> None:
    images = lower.code_objects(SOURCES[program], corpus.AMD, opt_level=0)
    for content in images.values():
        image = only(read(tmp_path, content))
        reader = toolchain.tool("llvm-readelf", 22)
        words = [reader, "--notes", tmp_path / "file"]
        notes = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        for theirs, ours in WORDS.items():
            values = [int(v) for v in re.findall(rf"{re.escape(theirs)}: +(\d+)", notes)]
            assert values == [
                getattr(k, ours) for k in image.kernels if getattr(k, ours) is not None
            ]
        kinds = re.findall(r"\.value_kind: +(\w+)", notes)
        assert kinds == [a.kind for kernel in image.kernels for a in kernel.arguments]
        sizes = re.findall(r"\.size: +(\d+)", notes)
        assert sizes == [str(a.size) for kernel in image.kernels for a in kernel.arguments]


def test_a_code_object_is_described(tmp_path: Path) -> None:
    image = only(read(tmp_path, code_object("globals", None, corpus.AMD)))
    assert (image.kind, image.target, image.version) == (CODE_OBJECT, "gfx90a", 4)
    assert image.features == {"xnack": "any", "sramecc": "any"}
    assert [kernel.name for kernel in image.kernels] == ["count"]
    assert image.globals == [Global("launches", 4)]


def test_unread_code_objects_have_a_reason(tmp_path: Path) -> None:
    whole = code_object("forum", None, corpus.AMD)
    type_of_note = whole.index(b"AMDGPU\0") - 4
    for at, value, words in (
        (16, 1, "it is not linked yet"),  # e_type
        (type_of_note, 7, "it has no metadata of version 3 or later"),
    ):
        content = bytearray(whole)
        content[at] = value
        assert words in (only(read(tmp_path, bytes(content))).unread or "")


@pytest.mark.parametrize(("abi_version", "flags"), [(7, 90 << 16 | 90), (8, 90 << 8 | 6)])
def test_cubins_of_both_abis_have_targets(abi_version: int, flags: int, tmp_path: Path) -> None:
    """CUDA 13 stores a cubin's target in other bits of the ELF flags than earlier releases do."""
    content = bytearray(code_object("forum", None, corpus.AMD))
    content[8] = abi_version
    struct.pack_into("<H", content, 18, elf.CUDA)
    struct.pack_into("<I", content, 48, flags)
    image = only(read(tmp_path, bytes(content)))
    assert (image.kind, image.target) == (CUBIN, "sm_90")


def test_variables_that_kernels_can_write() -> None:
    """A section without symbols counts as one symbol; workgroup memory does not count."""
    both = elf.WRITE | elf.ALLOC
    names = (".bss", ".data", ".nv.shared.kernel", ".dynamic", ".rodata")
    sections = [
        elf.Section(name, 0, both if name != ".rodata" else elf.ALLOC, 0, 0, 8, index)
        for index, name in enumerate(names)
    ]
    symbols = [elf.Symbol("counter", 0, 4, 1)]
    file = elf.Elf(0, 0, 0, 0, "", sections, [], symbols, [], [])
    assert globals_of(file) == [Global(".bss", 8), Global("counter", 4)]


def test_the_required_workgroup_size_is_read(tmp_path: Path) -> None:
    source = tmp_path / "known.mlir"
    source.write_text("""
    module attributes {gpu.container_module} {
      gpu.module @kernels {
        gpu.func @known() kernel attributes {known_block_size = array<i32: 8, 4, 2>} { gpu.return }
      }
    }
    """)
    kernel = only(read(tmp_path, lower.code_object(source, corpus.AMD))).kernels[0]
    assert kernel.max_flat_workgroup_size == 64
    assert kernel.required_workgroup_size == (8, 4, 2)


def test_a_bundle_has_its_entries(tmp_path: Path) -> None:
    globals_ = code_object("globals", None, corpus.AMD)
    image = only(read(tmp_path, bundle(code_object("forum", None, "gfx1100"), globals_)))
    assert [entry.target for entry in image.entries] == ["gfx1100", "gfx90a"]
    assert [len(entry.globals) for entry in image.entries] == [0, 1]
    assert image.entries[0].entry == "hipv4-amdgcn-amd-amdhsa--gfx90a"  # with any content


def test_a_damaged_entry_of_a_bundle_is_named(tmp_path: Path) -> None:
    """The driver may never read the damaged entry of the bundle, so the reader returns the bundle's
    other entries."""
    content = bytearray(bundle(code_object("forum"), code_object("globals")))
    second = content.index(b"hipv4", content.index(b"hipv4") + 1)
    struct.pack_into("<QQ", content, second - 24, 1 << 40, 5000)
    image = only(read(tmp_path, bytes(content)))
    assert [kernel.name for kernel in image.entries[0].kernels] == ["test_func"]
    assert not image.damage


def test_a_bundle_that_holds_itself_has_no_image_within(tmp_path: Path) -> None:
    """In the bundle's table, an overwritten entry names the bundle itself as an image."""
    content = bytearray(bundle(code_object("forum")))
    struct.pack_into("<Q", content, content.index(b"hipv4") - 24, 0)
    image = only(read(tmp_path, bytes(content)))
    assert [entry.kind for entry in image.entries] == [OTHER]


def test_ptx_has_target_and_kernels(tmp_path: Path) -> None:
    image = only(read(tmp_path, seeds.PTX))
    assert (image.kind, image.target, image.version) == (PTX, "sm_90", "8.0")
    assert [kernel.name for kernel in image.kernels] == ["test_func"]
    assert image.globals == [Global("launches", 4)]
    harmless = seeds.PTX.replace(b".visible .global .align 4 .u32 launches;\n", b"")
    assert only(read(tmp_path, harmless)).globals == []


def test_ptx_variables_have_sizes(tmp_path: Path) -> None:
    declared = b".global .align 8 .b8 table[2][16];\n.extern .global .f64 open[];\n"
    image = only(read(tmp_path, seeds.PTX + declared))
    assert image.globals[1:] == [Global("table", 32), Global("open", None)]


#: The offset and the size in bytes of each argument: an 8-bit number, 12 bytes that are aligned to
#: 8, and a double.
ODD_ARGUMENTS = [(0, 1), (8, 12), (24, 8)]


def test_ptx_arguments_have_offsets(tmp_path: Path) -> None:
    entries = b"""
    .visible .entry none() { ret; }
    .visible .entry odd(.param .u8 a, .param .align 8 .b8 b[12], .param .f64 c) { ret; }
    .entry copy(.param .u64 .ptr .global .align 16 a,
                .param .u64 b, .param .u32 c) { ret; }
    """
    (first, none, odd, copy) = only(read(tmp_path, seeds.PTX + entries)).kernels
    assert first.name == "test_func"
    assert (none.arguments, none.argument_bytes) == ((), 0)
    assert [(a.offset, a.size) for a in odd.arguments] == ODD_ARGUMENTS
    assert (odd.argument_bytes, copy.argument_bytes) == (32, 20)
    assert [a.kind for a in copy.arguments] == ["pointer", None, None]


#: Returns the kernel's attributes as ptxas 13.0 writes them, with the last argument first.
ODD_ATTRIBUTES = bytes.fromhex(
    "0437040082000000" "04170c00000000000200180000f02100" "04170c00000000000100080000f03100"
    "04170c00000000000000000000f00500" "03500000" "031bff00" "035f0101" "041c040010000000"
    "03192000" "040a08000b00000010022000" "0436040008000000"
)  # fmt: skip


def test_cubin_arguments_have_offsets() -> None:
    kernel = nvidia._cubins_kernel("odd", ODD_ATTRIBUTES)
    assert [(a.offset, a.size) for a in kernel.arguments] == ODD_ARGUMENTS
    pointer = ODD_ATTRIBUTES.replace(bytes.fromhex("00f00500"), bytes.fromhex("00f50500"))
    assert [a.kind for a in nvidia._cubins_kernel("odd", pointer).arguments] == [
        "pointer",
        None,
        None,
    ]


def test_incomplete_arguments_are_not_described() -> None:
    """If an image describes only some arguments of a kernel, the command shows no arguments. A
    launch with too few arguments would be wrong."""
    assert nvidia._cubins_kernel("odd", b"").argument_bytes is None
    for end in range(len(ODD_ATTRIBUTES)):
        found = nvidia._cubins_kernel("odd", ODD_ATTRIBUTES[:end])
        assert found.argument_bytes in (None, 0) or len(found.arguments) == 3


def test_a_fatbin_has_its_entries(tmp_path: Path) -> None:
    image = only(read(tmp_path, seeds._fatbin(code_object("globals", None, corpus.AMD))))
    assert image.kind == FATBIN
    assert [entry.kind for entry in image.entries] == [CUBIN, PTX]
    assert image.entries[0].globals == [Global("launches", 4)]
    assert [kernel.name for kernel in image.entries[1].kernels] == ["test_func"]


def test_overwritten_entries_of_a_fatbin_are_named(tmp_path: Path) -> None:
    image = corpus.fatbin((1, seeds.PTX), (1, seeds.PTX))
    second = image.rindex(image[16:32])
    assert len(only(read(tmp_path, image)).entries) == 2
    image = image[:second] + bytes(16) + image[second + 16 :]
    assert len(only(read(tmp_path, image)).entries) == 1


def test_packed_entries_of_a_fatbin_are_named(tmp_path: Path) -> None:
    """NVIDIA's compiler can compress an entry of a fatbin; the entry's header still names the
    GPU."""
    image = only(read(tmp_path, corpus.fatbin((1, b"\x90" * 32), (2, b"\x91" * 32))))
    packed = "it is packed"
    entries = [(entry.kind, entry.target, entry.unread) for entry in image.entries]
    assert entries == [(PTX, "sm_90", packed), (CUBIN, "sm_90", packed)]


# ---- where images lie ----


@pytest.mark.parametrize(("llvm", "name"), [(22, "test_func_binary"), (19, "test_func_bin_cst")])
def test_images_of_an_object_file_are_found(llvm: int, name: str) -> None:
    contents = in_file(lower.lower(SOURCES["forum"], llvm=llvm))
    image = only(contents.images)
    assert contents.kind == "an object file for x86-64"
    assert image.where == f".rodata+0x0 ({name})"
    assert image.content == code_object("forum", None, corpus.AMD)


def test_images_of_a_program_are_found(tmp_path: Path) -> None:
    """The reader also finds the images of a program without symbols."""
    program = build("many", 22, 1, STOCK)
    images = in_file(program).images
    assert [image.where.partition(" ")[2] for image in images] == [
        f"(part{number}_binary)" for number in range(5)
    ]
    assert [len(image.kernels) for image in images] == [10] * 5
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", program, "-o", stripped], check=True)
    bare = in_file(stripped).images
    assert [image.content for image in bare] == [image.content for image in images]
    assert "(" not in bare[0].where


@pytest.mark.parametrize("section", [".hip_fatbin", ".nv_fatbin", ".rodata"])
def test_every_kind_is_found_in_a_section(section: str, tmp_path: Path) -> None:
    """HIP's fat binary is an offload bundle in a section of its own."""
    for image in corpus.kinds():
        path = corpus.holder(tmp_path, image, section)
        found = only(in_file(path).images)
        assert found.where == f"{section}+0x0 (the_image)"
        assert found.content.rstrip(b"\0") == image.rstrip(b"\0")


def test_a_program_without_section_headers_is_scanned(tmp_path: Path) -> None:
    content = bytearray(build("forum", 22, 1, STOCK).read_bytes())
    struct.pack_into("<Q", content, 40, 0)
    struct.pack_into("<HH", content, 60, 0, 0)
    image = only(read(tmp_path, bytes(content)))
    assert image.where.startswith("file+0x")


NONE = "holds no image of device code"


def test_words_of_formats_are_no_images(tmp_path: Path) -> None:
    """A program that reads images contains the magic numbers of the image formats."""
    for path in (library(), corpus.holder(tmp_path, seeds._compressed(3))):
        with pytest.raises(find.NothingFound, match=NONE):
            in_file(path)


def test_a_section_that_is_not_loaded_is_no_image(tmp_path: Path) -> None:
    """Debuggers read sections that are not loaded."""
    path = corpus.holder(tmp_path, code_object("forum"), ".kept")
    in_file(path)
    words = ["objcopy", "--set-section-flags", ".kept=contents,readonly", path]
    subprocess.run(words, check=True)
    with pytest.raises(find.NothingFound, match=NONE):
        in_file(path)


def test_a_section_beyond_the_end_of_the_file_is_named(tmp_path: Path) -> None:
    path = corpus.holder(tmp_path, code_object("forum"), ".kept")
    content = bytearray(path.read_bytes())
    with path.open("rb") as file:
        sections = ELFFile(file)
        at = sections["e_shoff"] + 64 * sections.get_section_index(".kept")
    struct.pack_into("<Q", content, at + 32, len(content))  # sh_size
    path.write_bytes(content)
    with pytest.raises(find.NothingFound, match="is truncated or overwritten: its headers name"):
        in_file(path)
