"""The library does not compare a cached image again if the image is a constant, and mistakes no
other image for a constant.

Each program changes one byte of an image between two loads. Some programs change a constant,
although real programs cannot do so. After the change of a constant, the second load returns the
first module, which shows that the library compared nothing. If the program may change the image,
the library must notice the change.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from tests.support.child import ROOT, Mgpu, in_child, library
from tests.support.compiled import compile_c
from tests.support.folders import folder
from tests.support.images import code_object
from tests.support.patience import run_process

HOST = ROOT / "tests" / "support" / "hosts" / "constants.c"
BUILTIN = ("builtin",)  # the policy does not care where an image lies


@functools.cache
def _image() -> str:
    """Returns the compiler's flag that names the code object's file."""
    path = folder("constants") / "forum.hsaco"
    path.write_bytes(code_object("forum"))
    return f'-DIMAGE_FILE="{path}"'


def _program(*flags: str) -> Path:
    common = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-ldl", _image()]
    return compile_c(folder("constants") / "program", HOST.read_text(), *common, *flags)


def _library(*flags: str) -> Path:
    source = (
        '__asm__(".section .rodata\\n.balign 64\\n.global image\\nimage:\\n'
        '.incbin \\"" IMAGE_FILE "\\"\\n.previous\\n");'
    )
    return compile_c(folder("constants") / "image.so", source, "-shared", "-fPIC", _image(), *flags)


def _second_load(program: Path, mode: str, *arguments: Path, **changes: str) -> str:
    command = [str(program), str(library()), mode, *map(str, arguments)]
    env = {**os.environ, **changes}
    done = run_process(command, env)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@in_child(BUILTIN)
def test_constants_of_the_program_are_not_compared(mgpu: Mgpu) -> None:
    assert _second_load(_program(), "constant") == "same"


@in_child(BUILTIN)
def test_constants_without_pie_are_not_compared(mgpu: Mgpu) -> None:
    assert _second_load(_program("-no-pie"), "constant") == "same"


@in_child(BUILTIN)
def test_constants_of_a_library_that_cannot_be_closed_are_not_compared(mgpu: Mgpu) -> None:
    assert _second_load(_program(), "library", _library("-Wl,-z,nodelete")) == "same"


@in_child(BUILTIN)
def test_writable_data_of_the_program_are_compared(mgpu: Mgpu) -> None:
    assert _second_load(_program(), "data") == "other"


@in_child(BUILTIN)
def test_constants_of_a_library_that_can_be_closed_are_compared(mgpu: Mgpu) -> None:
    assert _second_load(_program(), "library", _library()) == "other"


@in_child(BUILTIN)
def test_constants_at_the_address_of_a_closed_library_are_compared(mgpu: Mgpu) -> None:
    """Another image is at the address of a constant whose library was closed."""
    assert _second_load(_program(), "closed", _library()) == "other"


@in_child(BUILTIN)
def test_constants_that_the_loader_relocated_are_compared(mgpu: Mgpu) -> None:
    """Text relocations: the loader makes segments writable for a while, although the file marks
    them read-only."""
    relocated = "-DRELOCATED", "-fPIE", "-pie", "-Wl,-z,notext"
    assert _second_load(_program(*relocated), "constant") == "other"


@in_child(BUILTIN)
def test_a_constant_is_not_taken_for_the_module_that_has_its_handle(mgpu: Mgpu) -> None:
    """HIP has unloaded the constant's module, and has given the handle of this module to another
    image."""
    assert _second_load(_program(), "evicted", HIPSTUB_REUSE="1") == "other"


@in_child(BUILTIN)
def test_constants_of_the_program_are_not_copied(mgpu: Mgpu) -> None:
    """HIP may read an image in constant memory at any time, so the module needs no copy. For an
    image outside of constant memory, the module owns a copy."""
    words = _second_load(_program(), "allocated", HIPSTUB_MODE="fast")
    constant, data = map(int, words.split())
    assert constant < 1000
    assert data > len(code_object("forum"))
