"""Images that are constants of a library, as in a lowered program: the images can neither change
nor be unmapped."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.child import Mgpu
from tests.support.compiled import compile_c
from tests.support.folders import folder


def constants(mgpu: Mgpu, images: Mapping[str, bytes]) -> dict[str, object]:
    """Returns the address of each image in a library that is never unloaded. Builds the library
    once in a process."""
    place = folder("constant_images")
    source = ""
    for name, image in images.items():
        (place / name).write_bytes(image)
        source += (
            f'__asm__(".section .rodata\\n.balign 64\\n.global {name}\\n{name}:\\n"\n'
            f'".incbin \\"{place / name}\\"\\n.previous\\n");\n'
        )
    path = compile_c(place / "images.so", source, "-shared", "-fPIC", "-Wl,-z,nodelete")
    mgpu.ffi.cdef("".join(f"extern char {name}[];" for name in images))
    library = mgpu.ffi.dlopen(str(path))
    mgpu.keep(library)
    return {name: mgpu.ffi.cast("void *", mgpu.ffi.addressof(library, name)) for name in images}
