"""Implements the hook of `mgpu-rt diff`, which records each launch of a process with hashes in
place of memory contents."""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from mgpu_rt._images.kernel_names import full_name
from mgpu_rt._recordings.record import Record, Steps, recording
from mgpu_rt.runtime._objects import Launch

LOST = "lost"  # the empty file that says that a launch could not be recorded


class Note(Record):
    """Records each launch in this process's folder, which lies within the folder `output`. `whole`
    is a file that lists launches in JSON, each as a kernel's full name and the launch's number. If
    it is given, only these launches are recorded, with all of their memory."""

    output: str = "notes"
    nth: int = 0
    whole: str = ""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        listed = json.loads(Path(self.whole).read_bytes()) if self.whole else ()
        self._whole = {(name, number) for name, number in listed}
        self._numbers: Counter[str] = Counter()

    def on_launch(self, launch: Launch) -> None:
        # Unlike the label, the full name does not depend on earlier loads.
        image = launch.kernel.image
        name = full_name(image.label[0] if image else "", launch.kernel.name)
        with self._saying:
            self._numbers[name] += 1
            number = self._numbers[name]
        if self._whole and (name, number) not in self._whole:
            return super(Record, self).on_launch(launch)  # unrecorded
        folder = os.path.join(self.output, str(os.getpid()))
        hashes = not self._whole
        self.record(launch, recording(folder, launch, number, name, {}, hashes=hashes))

    def _next(self, launch: Launch, steps: Steps) -> list[str] | None:
        told = super()._next(launch, steps)
        if told is None:
            with suppress(OSError):
                open(os.path.join(self.output, LOST), "ab").close()
        return told
