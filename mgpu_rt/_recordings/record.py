"""Records launches so that each can be replayed separately (replay.py). The folder of a launch
contains launch.json, the image, and the blocks of device memory to which arguments point. The names
of the other files are their SHA-256."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from mgpu_rt._images import model
from mgpu_rt._images.kernel_names import SEPARATOR
from mgpu_rt._recordings.folder import LaunchFolder
from mgpu_rt._recordings.launches import Argument, Block, RecordedLaunch
from mgpu_rt._text import say
from mgpu_rt.hooks import LaunchHook
from mgpu_rt.runtime._hip import CopyFailed, Hip
from mgpu_rt.runtime._objects import Buffer, Launch

#: The steps of the recording of a launch: one before the launch, and one after it. Each yields
#: sentences for the user.
Steps = Iterator[list[str]]


class NotRecorded(Exception):
    """Raised if a launch cannot be recorded. The exception's text is the reason."""


def recording(
    path: str | os.PathLike[str],
    launch: Launch,
    number: int,
    label: str,
    asked: Mapping[int, int],
    *,
    hashes: bool = False,
) -> Steps:
    """Records a launch, which the caller makes between the two steps. `label` names the kernel, and
    `number` counts its launches. `asked` maps addresses of blocks to the bytes that the program
    requested, which HIP's sizes may exceed. With `hashes`, the recording has hashes in place of
    memory contents, so it can only be compared. A step raises NotRecorded if this launch cannot be
    recorded, and OSError if the folder cannot be written."""
    kernel = launch.kernel
    if kernel.image is None or not kernel.image.content:
        raise NotRecorded("its image is not known")
    if not launch.is_described or any(a.size is None for a in kernel.arguments):
        raise NotRecorded("its image does not say what arguments it takes")
    if launch.cooperative or launch.cluster:
        raise NotRecorded("a replay makes no cooperative launch, and none of clusters")
    buffers = [buffer for _, buffer in launch.buffers()]
    folder = LaunchFolder(path)

    def contents() -> list[str]:
        found = (_content(launch, buffers, at) for at in range(len(buffers)))
        return [hashlib.sha256(c).hexdigest() if hashes else folder.keep(c) for c in found]

    try:
        before, error = contents(), Hip.of_process().last_error()
        yield []
        later = Hip.of_process().last_error()
        if later and later != error:
            raise NotRecorded(f"it failed with {later}")
        recorded = RecordedLaunch(
            module=SEPARATOR.join(kernel.image.modules),
            kernel=kernel.name,
            label=label,
            image=folder.keep(kernel.image.content),
            grid=launch.grid,
            block=launch.block,
            shared=launch.shared,
            arguments=tuple(map(_argument, kernel.arguments, launch.raw, repeat(buffers))),
            blocks=tuple(map(_block, buffers, before, contents(), repeat(asked))),
            number=number,
        )
        folder.finish(recorded.as_json())
    except BaseException:
        folder.discard()
        raise
    size = sum(buffer.size for buffer in buffers)
    said = f"recorded launch {number} of {label}, {size} bytes, in {path}"
    yield [said, *(f"not recorded: {words}" for words in recorded.unrecorded(kernel.arguments))]


def _content(launch: Launch, buffers: Sequence[Buffer], number: int) -> bytes:
    """Returns the present content of a block, after the work on the launch's stream."""
    try:
        return buffers[number].content(launch.stream)
    except CopyFailed as error:
        raise NotRecorded(f"memory block {number} was not read: {error}") from None


def _block(buffer: Buffer, before: str, after: str, asked: Mapping[int, int]) -> Block:
    size = asked.get(buffer.address, 0)
    return Block(
        buffer.address, buffer.size, before, after, size if 0 < size < buffer.size else None
    )


def _argument(description: model.Argument, raw: bytes, buffers: Sequence[Buffer]) -> Argument:
    address = int.from_bytes(raw, "little") if description.may_point else 0
    for at, buffer in enumerate(buffers):
        if buffer.address <= address < buffer.address + buffer.size:
            return Argument(raw, at, address - buffer.address)
    return Argument(raw)


class Record(LaunchHook):
    """A hook that records launches with all memory that they read and write."""

    output: str = "recording"
    nth: int = 1

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._asked: dict[int, int] = {}  # sizes that the program requested, by address

    def mem_alloc(self, size: int, stream: int, host_shared: bool) -> int:
        address = super().mem_alloc(size, stream, host_shared)
        self._asked[address] = size
        return address

    def mem_free(self, address: int, stream: int) -> None:
        self._asked.pop(address, None)
        super().mem_free(address, stream)

    def on_launch(self, launch: Launch) -> None:
        number, label = launch.number, launch.kernel.label
        for line in self.record(launch, recording(self.output, launch, number, label, self._asked)):
            say(f"mgpu_rt: {line}")

    def record(self, launch: Launch, steps: Steps) -> list[str]:
        """Makes a launch, and records it if possible. Returns the sentences about the recorded
        launch."""
        begun = self._next(launch, steps)
        super().on_launch(launch)
        return self._next(launch, steps) or [] if begun is not None else []

    def _next(self, launch: Launch, steps: Steps) -> list[str] | None:
        """Runs a step of the recording. Returns None if the launch cannot be recorded. Prints each
        reason only once."""
        try:
            return next(steps)
        except OSError as error:
            why = f"'{self.output}' cannot be written: {error.strerror or error}"
            text = f" and later ones are not recorded: {why}; name another place"
        except (NotRecorded, ImportError, MemoryError) as error:
            text = f" is not recorded: {error or 'out of memory'}"
            why = launch.kernel.label + text
        self._say_once(why, f"launch {launch.number} of {launch.kernel.label}{text}")
        return None
