"""The library finds a kernel's limits in the bytes of a code object's metadata."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgpack

from tests.support.child import ROOT
from tests.support.compiled import compile_c

#: Names of one, two and three bytes of length, and two names of which one ends the other.
NAMES = ["foo", "oo", "k" * 40, "q" * 253, "m" * 300]

FILES = ("modules/image/metadata.c", "process/lines.c")

#: Prints the targets, and the limits of all kernels, of an image without an ELF header.
READER = """
#include "modules/image/metadata.h"
#include <stdio.h>
int main(int count, char **words) {
    (void)count;
    static unsigned char bytes[1 << 16];
    FILE *file = fopen(words[1], "rb");
    const struct image image = {.bytes = bytes, .size = fread(bytes, 1, sizeof bytes, file),
                                .kind = IMAGE_ELF, .machine = MACHINE_AMDGPU};
    char targets[64];
    metadata_targets(&image, targets, sizeof targets);
    puts(targets);
    struct rest rest = metadata_in(&image);
    struct metadata_kernel kernel;
    while (metadata_next_kernel(&rest, &kernel))
        printf("%.*s %lu\\n", (int)kernel.length, kernel.name, kernel.most_threads);
}
"""


def _kernel(name: str, threads: int) -> dict[str, object]:
    return {
        ".args": [{".name": name, ".size": 8}],
        ".max_flat_workgroup_size": threads,
        ".name": name,
        ".symbol": f"{name}.kd",
    }


def test_the_limits_of_each_kernel_are_its_own(tmp_path: Path) -> None:
    source = ROOT / "csrc" / "runtime"
    flags = ("-D_GNU_SOURCE", f"-I{source}", *(str(source / file) for file in FILES))
    reader = compile_c(tmp_path / "reader", READER, *flags)
    threads = [64, 100, 256, 1000, 70000]
    kernels = [_kernel(*kernel) for kernel in zip(NAMES, threads, strict=True)]
    map_ = {"amdhsa.kernels": kernels, "amdhsa.target": "amdgcn-amd-amdhsa--gfx90a:xnack+"}
    image = tmp_path / "image"
    image.write_bytes(b"note" + msgpack.packb({**map_, "amdhsa.version": [1, 2]}))
    said = subprocess.run([reader, image], capture_output=True, text=True)
    found = [f"{name} {limit}" for name, limit in zip(NAMES, threads, strict=True)]
    assert said.stdout.splitlines() == ["gfx90a:xnack+", *found]
