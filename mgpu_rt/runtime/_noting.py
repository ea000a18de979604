"""Implements the hook of `mgpu-rt diff`, which records each launch of a process with hashes in
place of memory contents.

The hook writes a recording (_recording.py), which contains memory only for launches that the
settings name. Each process that launches kernels has its own folder.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mgpu_rt._images.kernel_names import full_name
from mgpu_rt.hooks import Record
from mgpu_rt.runtime._folder import limits_are_errors
from mgpu_rt.runtime._recording import Recorder

if TYPE_CHECKING:
    from mgpu_rt.runtime._folder import Folder
    from mgpu_rt.runtime._objects import Launch, LoadedKernel

#: A file with this prefix has one byte for each launch that a process could not record. If the file
#: size limit is 0, the file stays empty. The file is sparse, because the disk may be full.
LOST = "lost"


def name_of(kernel: LoadedKernel) -> str:
    """Returns the kernel's full name. The gpu.module precedes the kernel's plain name if the
    program's symbols contain the gpu.module. Unlike the label, the name does not depend on earlier
    loads."""
    return full_name(kernel.image.label[0] if kernel.image else "", kernel.name)


class Note(Record):
    """Records each launch in this process's folder, which lies within the folder `output`. `sample`
    is passed to Buffer.sha256. `whole` is a list in JSON. Each item names one launch by the
    kernel's name and the launch's number. If the list is not empty, only the listed launches are
    recorded, with all of their memory."""

    output: str = "notes"
    nth: int = 0
    sample: int | str = 0
    whole: str = "[]"

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._whole = {(name, number) for name, number in json.loads(self.whole)}
        self._numbers: Counter[str] = Counter()

    def on_launch(self, launch: Launch) -> None:
        name = name_of(launch.kernel)
        with self._counting:
            self._numbers[name] += 1
            launch_key = name, self._numbers[name]
        if self._whole and launch_key not in self._whole:
            return super(Record, self).on_launch(launch)  # unrecorded
        sample = None if self._whole else int(self.sample)
        folder = os.path.join(self.output, str(os.getpid()))
        return self.record(launch, _Noter(folder, launch, launch_key[1], sample))

    def _tried(self, launch: Launch, step: Callable[[], list[str] | None]) -> bool:
        done = super()._tried(launch, step)
        if not done:
            path = os.path.join(self.output, f"{LOST}.{os.getpid()}")
            with self._counting, suppress(OSError), limits_are_errors(), open(path, "ab") as file:
                file.truncate(file.tell() + 1)
        return done


class _Noter(Recorder):
    """Records a launch under the kernel's full name. Without a sample (Buffer.sha256), memory is
    recorded completely."""

    def __init__(self, path: str, launch: Launch, number: int, sample: int | None) -> None:
        super().__init__(path, launch, number)
        self._sample = sample

    def after(self) -> list[str]:
        super().after()
        return []  # the notes contain it

    def _kept(self, folder: Folder, number: int, *, after: bool = False) -> str:
        buffer, sample = self._buffers[number], self._sample
        if sample is None:
            return super()._kept(folder, number, after=after)
        return self._read(number, lambda stream: buffer.sha256(stream, sample))

    def _label(self) -> str:
        return name_of(self._launch.kernel)
