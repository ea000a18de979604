"""Images of every kind, compiled by MLIR, and files that contain them."""

from __future__ import annotations

import io
import struct
from pathlib import Path

from elftools.elf.elffile import ELFFile

from tests.proofs.fuzz import seeds
from tests.support import lower
from tests.support.compiled import compile_c
from tests.support.images import bundle, code_object, exports_a_constant
from tests.support.sources import SOURCES

AMD, NVIDIA = "gfx90a", "sm_90"


def kinds() -> list[bytes]:
    """Returns an image of each kind. LLVM's bitcode, which no driver accepts, is left out, and so
    are compressed bundles, which only HIP reads."""
    return [image for image in seeds.images() if not image.startswith((b"BC", b"CCOB"))]


def images() -> dict[str, bytes]:
    """Returns the images by name; each name says what kind of image it is."""
    found = {f"kind {number}": image for number, image in enumerate(kinds())}
    for program in ("vecadd", "spin", "churn", "globals", "layers"):
        for module, image in lower.code_objects(SOURCES[program], AMD).items():
            found[f"{program} {module}"] = image
    globals_, forum = code_object("globals", None, AMD), code_object("forum", None, AMD)
    other = code_object("forum", None, "gfx1100")
    both = bundle(forum, other)
    found |= {
        "forum gfx1100": other,
        "two targets": both,
        "with globals": bundle(other, globals_),
        "entry that is text": bundle(forum, b"text, not an image"),
    }
    found |= {
        "without sections": forum[:60] + bytes(2) + forum[62:],
        "headers point outside": _changed(forum, 40, 1 << 40),
        "table points outside": _changed(
            bundle(forum), bundle(forum).index(b"hipv4") - 24, 1 << 40
        ),
        "names without an end": _unended(forum),
    }
    found |= {
        "one entry outside": _changed(both, both.rindex(b"hipv4") - 24, 1 << 40),
        "fatbin of PTX": fatbin((1, seeds.PTX)),
        "fatbin of packed parts": fatbin((1, b"\x90" * 32), (2, b"\x91" * 32)),
        "PTX that reads memory": seeds.PTX.replace(b".visible .global", b"//") + b"\0",
        "a constant": exports_a_constant(AMD),
        "a constant in a bundle": bundle(forum, exports_a_constant(AMD)),
        "PTX with a constant": b"//\n.version 8.0\n.target sm_90\n.const .u32 i = 1;\0",
        "PTX with a variable": b"// .version 8.0\n.version 8.0\n.target sm_90\n.global .u32 i;\0",
    }
    for program in ("forum", "globals", "vecadd"):
        source = SOURCES[program]
        found[f"{program} PTX"] = lower.code_object(source, NVIDIA, image="isa") + b"\0"
    return found


def _unended(image: bytes) -> bytes:
    """Returns a code object whose section name table lacks its final 0."""
    with io.BytesIO(image) as file:
        elf = ELFFile(file)
        names = elf.get_section(elf.header["e_shstrndx"])
        last = names["sh_offset"] + names["sh_size"] - 1
    return image[:last] + b"x" + image[last + 1 :]


def _changed(image: bytes, at: int, number: int) -> bytes:
    return image[:at] + struct.pack("<Q", number) + image[at + 8 :]


def fatbin(*entries: tuple[int, bytes]) -> bytes:
    """Returns a fatbin in NVIDIA's format, made from pairs of kind and content. Kind 1 is PTX, and
    kind 2 is a cubin. Each entry's header names sm_90, as a compiler's headers do."""
    body = b"".join(
        struct.pack("<HHIQIIHHI", kind, 0x101, 64, len(content), 0, 0, 3, 8, 90).ljust(64, b"\0")
        + content
        for kind, content in entries
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def holder(folder: Path, image: bytes, section: str = ".rodata", *flags: str) -> Path:
    """Compiles a file with an image in a data section: an object file, unless the flags request
    another kind."""
    content, out = folder / "image", folder / "holder"
    content.write_bytes(image)
    source = f"""
    int main(void) {{ return 0; }}
    __asm__(".pushsection {section},\\"a\\"\\n.balign 4096\\n.globl the_image\\n"
            ".type the_image,@object\\nthe_image: .incbin \\"{content}\\"\\n"
            ".size the_image, .-the_image\\n.popsection");
    """
    return compile_c(out, source, *(flags or ("-c",)))
