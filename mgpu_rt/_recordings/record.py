"""Records launches so that each can be replayed separately (replay.py). The folder of a launch
contains launch.json, the image, and the blocks of device memory to which arguments point. The names
of the other files are their SHA-256."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from mgpu_rt._recordings.folder import LaunchFolder
from mgpu_rt._recordings.launches import Argument, Block, RecordedLaunch
from mgpu_rt._text import say
from mgpu_rt.hooks import LaunchHook
from mgpu_rt.runtime._hip import CopyFailed, Hip
from mgpu_rt.runtime._objects import Launch


class NotRecorded(Exception):
    """Raised if a launch cannot be recorded. The exception's text is the reason."""


class Recorder:
    """Records one launch. Call `before()`, make the launch, then call `after()`. `before()` and
    `after()` raise NotRecorded if this launch cannot be recorded, and OSError if the folder cannot
    be written."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        launch: Launch,
        number: int,
        label: str,
        asked: Mapping[int, int],
        *,
        hashes: bool = False,
    ) -> None:
        """`label` names the kernel, and `number` counts its launches. `asked` maps addresses of
        blocks to the bytes that the program requested, which HIP's sizes may exceed. With
        `hashes`, the recording has hashes in place of memory contents, so it can only be
        compared."""
        self._path, self._launch, self._number, self._label = folder, launch, number, label
        self._asked, self._hashes = asked, hashes

    def before(self) -> None:
        launch, kernel = self._launch, self._launch.kernel
        if kernel.image is None or not kernel.image.content:
            raise NotRecorded("its image is not known")
        if not launch.is_described or any(a.size is None for a in kernel.arguments):
            raise NotRecorded("its image does not say what arguments it takes")
        if launch.cooperative or launch.cluster:
            raise NotRecorded("a replay makes no cooperative launch, and none of clusters")
        self._buffers = [buffer for _, buffer in launch.buffers()]
        self._missing: list[str] = []
        self._folder = LaunchFolder(self._path)
        try:
            self._before = [self._kept(at) for at in range(len(self._buffers))]
        except BaseException:
            self._folder.discard()
            raise
        self._error = Hip.of_process().last_error()

    def after(self) -> None:
        """Completes the launch's folder."""
        try:
            self._finish()
        except BaseException:
            self._folder.discard()
            raise

    def told(self) -> list[str]:
        """Returns sentences for the user about the recorded launch."""
        size = sum(buffer.size for buffer in self._buffers)
        said = f"recorded launch {self._number} of {self._label}, {size} bytes, in {self._path}"
        return [said, *(f"not recorded: {words}" for words in self._missing)]

    def _finish(self) -> None:
        error = Hip.of_process().last_error()
        if error and error != self._error:
            raise NotRecorded(f"it failed with {error}")
        launch, kernel = self._launch, self._launch.kernel
        assert kernel.image is not None
        arguments = tuple(self._argument(at) for at in range(len(launch.raw)))
        blocks = []
        for at, buffer in enumerate(self._buffers):
            asked = self._asked.get(buffer.address, 0)
            known = asked if 0 < asked < buffer.size else None
            after = self._kept(at)
            blocks.append(Block(buffer.address, buffer.size, self._before[at], after, known))
        recorded = RecordedLaunch(
            kernel=kernel.name,
            label=self._label,
            image=self._folder.keep(kernel.image.content),
            grid=launch.grid,
            block=launch.block,
            shared=launch.shared,
            arguments=arguments,
            blocks=tuple(blocks),
            not_recorded=tuple(self._missing),
            number=self._number,
        )
        self._folder.finish(recorded.as_json())

    def _kept(self, number: int) -> str:
        """Stores the present content of a block, and returns the content's hash. Waits for the work
        on the launch's stream."""
        buffer, stream = self._buffers[number], self._launch.stream
        try:
            content = buffer.content(stream)
        except CopyFailed as error:
            raise NotRecorded(f"memory block {number} was not read: {error}") from None
        return hashlib.sha256(content).hexdigest() if self._hashes else self._folder.keep(content)

    def _argument(self, number: int) -> Argument:
        """Returns an argument. Notes a pointer whose memory was not found."""
        argument, raw = self._launch.kernel.arguments[number], self._launch.raw[number]
        address = int.from_bytes(raw, "little") if argument.may_point else 0
        for at, buffer in enumerate(self._buffers):
            if buffer.address <= address < buffer.address + buffer.size:
                return Argument(raw, at, address - buffer.address)
        if address and argument.is_pointer:
            why = f"{address:#x}: no device memory of HIP's"
            self._missing.append(f"what argument {number} points to, {why}")
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
        label = launch.kernel.label
        recorder = Recorder(self.output, launch, launch.number, label, self._asked)
        if self.record(launch, recorder):
            for line in recorder.told():
                say(f"mgpu_rt: {line}")

    def record(self, launch: Launch, recorder: Recorder) -> bool:
        """Makes a launch, and records it if possible. Returns whether the launch is recorded."""
        begun = self._tried(launch, recorder.before)
        super().on_launch(launch)
        return begun and self._tried(launch, recorder.after)

    def _tried(self, launch: Launch, step: Callable[[], object]) -> bool:
        """Runs a step of the recording. Returns False if the launch cannot be recorded. Prints each
        reason only once."""
        try:
            step()
            return True
        except OSError as error:
            why = f"'{self.output}' cannot be written: {error.strerror or error}"
            text = f" and later ones are not recorded: {why}; name another place"
        except (NotRecorded, ImportError, MemoryError) as error:
            text = f" is not recorded: {error or 'out of memory'}"
            why = launch.kernel.label + text
        self._say_once(why, f"launch {launch.number} of {launch.kernel.label}{text}")
        return False
