"""Tests the library's additions in Python on a device: a graph of launches, and a hook on a launch.

    python -m mgpu_rt._selftest.in_python graph|hook IMAGE

For each word w, the image's kernel `mix` computes 3 * w + k + 101. Prints each fault on a line, and
finally the number of compared results.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mgpu_rt
from mgpu_rt.hooks import LaunchHook
from mgpu_rt.runtime import Launch

COUNT, THREADS, REPLAYS = 4096, 64, 5
STEPS = (1, 2, 3)  # k of one launch after the other
NUMBER = 101  # the image's own number


def mixed(word: int) -> int:
    for step in STEPS:
        word = 3 * word + step + NUMBER
    return word


class Mixer:
    """A kernel, a stream, a block of device memory, and words on the host."""

    compared = 0  # results

    def __init__(self, image: bytes) -> None:
        self.runtime = mgpu_rt.load()
        new = self.runtime.ffi.new
        self._image = self.runtime.ffi.from_buffer(image + b"\0")  # PTX ends with a 0
        self.words = new("int32_t[]", COUNT)
        self.stream = self.runtime.mgpuStreamCreate()
        self.module = self.runtime.mgpuModuleLoad(self._image, len(image))
        self.kernel = self.runtime.mgpuModuleGetFunction(self.module, b"mix")
        self.block = self.runtime.mgpuMemAlloc(4 * COUNT, self.stream, False)
        address = int(self.runtime.ffi.cast("uintptr_t", self.block))
        memref = (address, address, 0, COUNT, 1)
        self._values = [
            [*(new("int64_t *", value) for value in (*memref, COUNT)), new("int32_t *", step)]
            for step in STEPS
        ]

    def submit(self) -> None:
        """Copies the words to the device, launches the kernel for each step, and copies the words
        back."""
        runtime, null = self.runtime, self.runtime.ffi.NULL
        sizes = (COUNT // THREADS, 1, 1, THREADS, 1, 1, 0)
        runtime.mgpuMemcpy(self.block, self.words, 4 * COUNT, self.stream)
        for values in self._values:
            params = runtime.ffi.new("void *[]", values)
            runtime.mgpuLaunchKernel(self.kernel, *sizes, self.stream, params, null, len(values))
        runtime.mgpuMemcpy(self.words, self.block, 4 * COUNT, self.stream)

    def fill(self, first: int) -> None:
        self.words[0:COUNT] = range(first, first + COUNT)

    def wrong(self, first: int) -> Iterator[str]:
        """Waits for the work, and yields all faults."""
        self.runtime.mgpuStreamSynchronize(self.stream)
        self.compared += 1
        found = [i for i in range(COUNT) if self.words[i] != mixed(first + i)]
        if found:
            at = found[0]
            have, want = self.words[at], mixed(first + at)
            yield f"{len(found)} of {COUNT} words are wrong, the first [{at}]: {have}, not {want}"

    def close(self) -> None:
        self.runtime.mgpuMemFree(self.block, self.stream)
        self.runtime.mgpuModuleUnload(self.module)
        self.runtime.mgpuStreamDestroy(self.stream)


def graph(mixer: Mixer) -> Iterator[str]:
    """Builds a graph once, and replays the graph several times with different words."""
    with mgpu_rt.graph() as built:
        mixer.submit()
    if len(built) != len(STEPS) + 2:
        yield f"the graph has {len(built)} nodes, not {len(STEPS) + 2}"
    for number in range(REPLAYS):
        mixer.fill(number)
        built.replay(mixer.stream)
        yield from mixer.wrong(number)
    built.close()


class Seen(LaunchHook):
    """A hook that counts each launch, and passes the launch on."""

    launches = 0

    def on_launch(self, launch: Launch) -> None:
        self.launches += 1
        super().on_launch(launch)


def hook(mixer: Mixer) -> Iterator[str]:
    """Tests that results with a hook on each launch equal the results without the hook."""
    mixer.fill(7)
    with mgpu_rt.intercept(Seen()) as seen:
        mixer.submit()
    yield from mixer.wrong(7)
    if seen.launches != len(STEPS):
        yield f"the hook has seen {seen.launches} launches, not {len(STEPS)}"


PARTS: dict[str, Any] = {"graph": graph, "hook": hook}


def main() -> None:
    part, image = sys.argv[1:]
    mixer = Mixer(Path(image).read_bytes())
    for line in PARTS[part](mixer):
        print(line)
    mixer.close()
    print(f"compared {mixer.compared}")


if __name__ == "__main__":
    main()
