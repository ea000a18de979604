"""Small C programs and libraries that tests compile themselves."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.child import BUILD, ROOT

HOSTS = ROOT / "tests" / "support" / "hosts"
LIB = BUILD / "lib"
RUNTIME = "libmlir_rocm_runtime.so"

#: Uses a stream, prints "done", and ends with status 3.
STREAM_PROGRAM = """
#include "program.h"
int main(void) {
    mgpuStreamDestroy(mgpuStreamCreate());
    puts("done");
    return 3;
}
"""


def compile_c(out: Path, source: str, *flags: str) -> Path:
    """Compiles C source into a program, or into a library if the flags request a library. The
    source may include tests/support/hosts/program.h."""
    command = ["cc", f"-I{HOSTS}", "-x", "c", "-", "-x", "none", *flags, "-o", str(out)]
    result = subprocess.run(command, input=source, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return out


def stream_program(directory: Path, soname: str = RUNTIME) -> Path:
    """Builds STREAM_PROGRAM, linked with a library that does not exist; `soname` is the library's
    SONAME."""
    stand_in = compile_c(
        directory / "stand_in.so",
        "void *mgpuStreamCreate(void) { return 0; } void mgpuStreamDestroy(void *s) { (void)s; }",
        *("-shared", "-fPIC", f"-Wl,-soname,{soname}"),
    )
    program = compile_c(directory / "program", STREAM_PROGRAM, str(stand_in))
    stand_in.unlink()
    return program
