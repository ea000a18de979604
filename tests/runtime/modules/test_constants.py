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
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.child import ROOT, Mgpu, in_cases, in_child
from tests.support.compiled import compile_c
from tests.support.folders import folder
from tests.support.images import code_object
from tests.support.known import program
from tests.support.patience import run_process

HOST = ROOT / "tests" / "support" / "hosts" / "constants.c"


@functools.cache
def _image() -> str:
    """Returns the compiler's flag that names the code object's file."""
    path = folder("constants") / "forum.hsaco"
    path.write_bytes(code_object("forum"))
    return f'-DIMAGE_FILE="{path}"'


def _program(*flags: str) -> Path:
    common = [f"-I{ROOT}/csrc/include", "-Wall", "-Wextra", _image()]
    return program(folder("constants"), HOST.read_text(), *common, *flags)


def _library(*flags: str) -> Path:
    source = (
        '__asm__(".section .rodata\\n.balign 64\\n.global image\\nimage:\\n'
        '.incbin \\"" IMAGE_FILE "\\"\\n.previous\\n");'
    )
    return compile_c(folder("constants") / "image.so", source, "-shared", "-fPIC", _image(), *flags)


def _second_load(path: Path, mode: str, *arguments: Path, **changes: str) -> str:
    command = [str(path), mode, *map(str, arguments)]
    env = {**os.environ, **changes}
    done = run_process(command, env)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


RELOCATED = ("-DRELOCATED", "-fPIE", "-pie", "-Wl,-z,notext")


@dataclass(frozen=True)
class Second:
    """A mode of the program, the flags of the program and of its library, and the second load's
    module. If the library compared nothing, the first load returned this module, too."""

    module: str
    mode: str
    flags: tuple[str, ...] = ()
    library: tuple[str, ...] | None = None
    env: dict[str, str] = field(default_factory=dict)


#: In the case `closed`, another image is at the address of a constant whose library was closed. In
#: `relocated`, the loader makes segments writable for a while, although the file marks them
#: read-only. In `evicted`, HIP has unloaded the constant's module, and has given its handle to
#: another image.
SECONDS = {
    "program": Second("same", "constant"),
    "no-pie": Second("same", "constant", ("-no-pie",)),
    "library-that-stays": Second("same", "library", library=("-Wl,-z,nodelete",)),
    "writable": Second("other", "data"),
    "library": Second("other", "library", library=()),
    "closed": Second("other", "closed", library=()),
    "relocated": Second("other", "constant", RELOCATED),
    "evicted": Second("other", "evicted", env={"HIPSTUB_REUSE": "1"}),
}


@in_cases({name: second.env for name, second in SECONDS.items()})
def test_constants_alone_are_not_compared(_: Mgpu, case: str) -> None:
    second = SECONDS[case]
    files = [] if second.library is None else [_library(*second.library)]
    assert _second_load(_program(*second.flags), second.mode, *files) == second.module


@in_child(policies=("builtin",))
def test_constants_of_the_program_are_not_copied(mgpu: Mgpu) -> None:
    """HIP may read an image in constant memory at any time, so the module needs no copy. For an
    image outside of constant memory, the module owns a copy."""
    words = _second_load(_program(), "allocated", HIPSTUB_MODE="fast")
    constant, data = map(int, words.split())
    assert constant < 1000
    assert data > len(code_object("forum"))
