"""Replays recorded launches separately: on another device, with another image or block size, and
repeatedly."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mgpu_rt._arrays.memory import allocate
from mgpu_rt._images.model import KernelDescription
from mgpu_rt._launch.arguments import three
from mgpu_rt._launch.modules import Module
from mgpu_rt._library import load
from mgpu_rt._recordings.difference import Allowed, Difference, differences
from mgpu_rt._recordings.folder import LAUNCH
from mgpu_rt._recordings.launches import Block, Damaged, RecordedLaunch, read
from mgpu_rt._streams import Stream
from mgpu_rt._text import shown
from mgpu_rt.runtime._hip import Hip
from mgpu_rt.runtime._objects import Buffer, Image

POINTER = 8  # bytes


@dataclass(frozen=True)
class Replayed:
    """The result of a replay. `seconds` are the times of the iterations, from the launch call to
    the end of the kernel. `differences` are of the first `iteration`, from 1, whose results
    differ."""

    kernel: str
    blocks: int  # number of blocks of memory that were compared after each iteration
    iteration: int
    differences: list[Difference]
    seconds: list[float] = field(repr=False)

    @property
    def same(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        seconds = sorted(self.seconds)
        middle, best = 1e6 * seconds[len(seconds) // 2], 1e6 * seconds[0]
        took, where = "", ""
        if len(seconds) > 1:  # one launch also loads the kernel: that is no time of the kernel
            took = f", median {middle:.1f} µs, best {best:.1f} µs, of {len(seconds)}"
            where = f" in iteration {self.iteration}"
        same = "same" if self.blocks else "no memory to compare"
        how = same if self.same else f"DIFFERS{where}"
        head = f"{shown(self.kernel)}: {how}{took}"
        return "\n".join([head, *map(str, self.differences)])


class Recording:
    """A folder that `mgpu-rt run --record` or the hook `mgpu_rt.runtime.Record` has written.

    Raises OSError or Damaged if the folder cannot be read. `launches` lists the complete launches
    in the order in which they ended. The folder of one launch is a recording, too.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            names = sorted(name for name in os.listdir(self.folder) if not name.startswith("."))
        except OSError as error:  # another user's folder, for example
            raise Damaged(f"'{self.folder}' cannot be read: {error.strerror or error}") from None
        paths = [self.folder, *(self.folder / name for name in names)]
        self.launches = [read(p) for p in paths if os.path.lexists(p / LAUNCH)]
        if not self.launches:
            raise Damaged(
                f"'{self.folder}' holds no complete launch: name a folder into which `mgpu-rt run "
                "--record` has recorded one"
            )

    def replay(
        self,
        number: int = 0,
        *,
        image: bytes | None = None,
        grid: Sequence[int] | None = None,
        block: Sequence[int] | None = None,
        shared: int | None = None,
        iterations: int = 1,
        tolerance: float | None = None,
        dtype: str | None = None,
        ulps: int = 0,
    ) -> Replayed:
        """Repeats a recorded launch in this process, and compares the resulting memory.

        `image`, `grid`, `block` and `shared` replace the recorded values. Each iteration starts
        from the recorded memory. Without a type, bytes are compared. With `dtype`, which needs
        NumPy, elements are compared. Floats may differ by the tolerance or by `ulps`, which both
        require a type. `dtype` is one of f16, bf16, f32, f64, i8, i16, i32 and i64.

        Raises ValueError before any launch if a launch cannot be repeated. Raises RuntimeError
        if HIP refuses a launch.
        """
        launch = self._launch(number)
        if iterations < 1:
            raise ValueError(f"the number of iterations is {iterations}, but must be at least 1")
        allowed = Allowed(tolerance, ulps, dtype)
        allowed.check()
        launch = replace(
            launch,
            grid=launch.grid if grid is None else three("grid", grid),
            block=launch.block if block is None else three("block", block),
            shared=launch.shared if shared is None else shared,
        )
        code = launch.content(launch.image) if image is None else image
        kernel = _kernel_for(launch, code)
        if (image, block) != (None, None) and (limit := kernel.limit_on(launch.block)):
            raise ValueError(
                f"the block is {launch.block}: kernel '{shown(launch.kernel)}' {limit}"
            )
        contents = [_contents(launch, held) for held in launch.blocks]
        seconds, iteration = [], 0
        found: list[Difference] = []
        replay = _Replay(launch, code, [before for before, _ in contents])
        for _ in range(iterations):
            seconds.append(replay.once())
            if found:
                continue  # the first one suffices
            iteration += 1
            for at, (_, after) in enumerate(contents):
                now = replay.content(at)
                found += differences(at, now, after, allowed)
        return Replayed(launch.label, len(contents), iteration, found, seconds)

    def _launch(self, number: int) -> RecordedLaunch:
        if not 0 <= number < len(self.launches):
            numbers = f"1 to {len(self.launches)}" if len(self.launches) > 1 else "1"
            raise IndexError(f"there is no launch {number + 1}: the recording has {numbers}")
        return self.launches[number]


def _contents(launch: RecordedLaunch, block: Block) -> tuple[bytes, bytes]:
    """Returns a block's content before and after the launch: the bytes that the program requested.
    Only so `mgpu-rt check` finds accesses to the bytes behind them."""
    before, after = launch.content(block.before), launch.content(block.after)
    if not len(before) == len(after) == block.size:
        raise Damaged(
            f"'{launch.folder}' is damaged: a block of {block.size} bytes has {len(before)} "
            f"before the launch and {len(after)} after it"
        )
    size = block.asked or block.size
    return before[:size], after[:size]


def _kernel_for(launch: RecordedLaunch, code: bytes) -> KernelDescription:
    """Returns the launch's kernel in an image. Raises ValueError if the image lacks the kernel, if
    its arguments have other sizes, or if an argument points to memory that was not recorded. HIP
    reads as many arguments as the image states."""
    name, image = shown(launch.kernel), Image(code)
    kernel = image.kernels.get(launch.kernel)
    if kernel is None:
        held = ", ".join(map(shown, image.kernels)) or "none that can be read"
        raise ValueError(f"the image has no kernel '{name}': it has {held}")
    taken = kernel.parameters
    if taken is None or any(parameter.size is None for parameter in taken):
        raise ValueError(f"the image does not say what arguments kernel '{name}' takes")
    theirs, ours = [p.size for p in taken], [len(a.content) for a in launch.arguments]
    if theirs != ours:
        raise ValueError(
            f"kernel '{name}' takes arguments of {theirs} bytes, but the recording has {ours}"
        )
    for number, (argument, parameter) in enumerate(zip(launch.arguments, taken, strict=True)):
        if argument.block is not None and not (parameter.may_point and parameter.size == POINTER):
            raise ValueError(f"kernel '{name}' takes no pointer as argument {number}")
    for words in launch.unrecorded(taken):
        raise ValueError(f"for kernel '{name}' the recording lacks {words}")
    return kernel


class _Replay:
    """The module, the stream and the memory of a launch, until the last reference is gone."""

    def __init__(self, launch: RecordedLaunch, code: bytes, before: Sequence[bytes]) -> None:
        self._library, self._module, self._stream = load(), Module(code), Stream()
        self._launch, self._before, self._hip = launch, before, Hip.of_process()
        self._on = self._stream.handle
        self._function = self._module._function(launch.kernel)
        self._memory = [allocate(len(content)) for content in before]
        self._passed = [self._library.ffi.from_buffer(given) for given in self._arguments()]
        self._params = self._library.ffi.new("void *[]", self._passed)

    def _arguments(self) -> Iterator[bytes]:
        for argument in self._launch.arguments:
            if argument.block is None:
                yield argument.content
            else:
                address = self._memory[argument.block].address + argument.offset
                yield address.to_bytes(POINTER, "little")

    def once(self) -> float:
        """Makes one launch on the recorded memory; returns the launch's seconds."""
        library, launch, stream = self._library, self._launch, self._on
        for memory, content in zip(self._memory, self._before, strict=True):
            self._hip.copy(memory.address, library.address_of(content), len(content), stream)
        sizes = (*launch.grid, *launch.block, launch.shared)
        params, count = library.address_of(self._params), len(self._passed)
        begin = time.perf_counter()
        library.mgpuLaunchKernel(self._function, *sizes, stream, params, 0, count)
        library.mgpuStreamSynchronize(stream)
        seconds = time.perf_counter() - begin
        library.check(f"kernel '{shown(launch.kernel)}' was not launched")
        return seconds

    def content(self, at: int) -> bytes:
        return Buffer(self._memory[at].address, len(self._before[at])).content(self._on)
