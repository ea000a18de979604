"""Launches that are recorded, to be replayed by themselves (replay.py).

A recording is a folder: `manifest.json`, and in `blobs/` images and blocks of memory, each named by
its SHA-256. A launch stands in the manifest once all of it is written, so a program that is killed
leaves what was complete. Only blocks of device memory that arguments point into are recorded. Only
its owner can read a new folder; any number of processes may record in one.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mgpu_rt import __version__, files
from mgpu_rt.runtime import manifest as manifests

if TYPE_CHECKING:
    from mgpu_rt.runtime.objects import Launch


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    files.write(fresh, content)
    fresh.replace(path)


_LONGEST = 10.0  # seconds that another may take to enter one launch


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One at a time is inside, of all threads and processes that record there. Raises OSError."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(number, folder)
        yield
    finally:
        os.close(number)


def _lock(number: int, folder: Path) -> None:
    """Each launch that others enter changes the folder, and the wait begins anew."""
    changed, end = 0, 0.0
    while True:
        try:
            return fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            now, last = time.monotonic(), os.fstat(number).st_mtime_ns
            if last != changed:
                changed, end = last, now + _LONGEST
            elif now > end:
                words = f"another process has kept this recording for {_LONGEST:.0f} s"
                raise OSError(errno.EBUSY, words, str(folder)) from None
        except OSError:  # a file system without locks
            return None
        time.sleep(0.01)


class Recorder:
    """Records one launch: `before()`, then the launch, then `after()`."""

    def __init__(self, folder: str | os.PathLike[str], launch: Launch, number: int) -> None:
        self._folder, self._launch, self._number = Path(folder), launch, number
        self._blocks: list[dict[str, Any]] = []

    def before(self) -> list[str]:
        """Nothing to say yet. Raises RuntimeError if the launch cannot be recorded at all, and
        OSError if nothing can be written."""
        kernel = self._launch.kernel
        if kernel.image is None or not kernel.image.content:
            raise RuntimeError(f"{kernel.name} cannot be recorded: its image is not known")
        if kernel.name not in kernel.image.kernels or (
            not kernel.arguments and kernel.image.kernels[kernel.name].argument_bytes is None
        ):
            raise RuntimeError(
                f"{kernel.name} cannot be recorded: its image does not say what arguments it takes"
            )
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds the program's data
        (self._folder / "blobs").mkdir(exist_ok=True)
        self._buffers = [buffer for _, buffer in self._launch.buffers()]
        for buffer in self._buffers:
            block = {"address": buffer.address, "size": buffer.size}
            before = self._keep(buffer.content(self._launch.stream))
            self._blocks.append({**block, "before": before})
        return []

    def after(self) -> list[str]:
        """Enters the launch; what there is to say, one sentence each."""
        launch, kernel = self._launch, self._launch.kernel
        for buffer, block in zip(self._buffers, self._blocks, strict=True):
            block["after"] = self._keep(buffer.content(launch.stream))
        arguments, missing = self._arguments()
        missing += self._inner_pointers()
        assert kernel.image is not None
        entry = {
            "kernel": kernel.name,
            "label": kernel.label,
            "number": self._number,
            "image": self._keep(kernel.image.content),
            "grid": launch.grid,
            "block": launch.block,
            "shared": launch.shared,
            "arguments": arguments,
            "blocks": self._blocks,
            "not_recorded": missing,
        }
        self._enter(entry)
        size = sum(block["size"] for block in self._blocks)
        said = f"recorded launch {self._number} of {kernel.label}, {size} bytes, in {self._folder}"
        return [said, *(f"not recorded: {words}" for words in missing)]

    def _keep(self, content: bytes) -> str:
        name = hashlib.sha256(content).hexdigest()
        path = self._folder / "blobs" / name
        if not path.exists():
            _write(path, content)
        return name

    def _enter(self, entry: dict[str, Any]) -> None:
        path = self._folder / "manifest.json"
        with _alone(self._folder):
            manifest: dict[str, Any] = {"format": manifests.FORMAT, "mgpu_rt": __version__}
            manifest["launches"] = []
            if path.exists():
                manifest["launches"] = manifests.read(path)
            manifest["launches"].append(entry)
            _write(path, json.dumps(manifest, indent=1).encode())

    def _arguments(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Bytes as hex, or the block that a pointer leads into, and what was not found."""
        from mgpu_rt.runtime.objects import POINTERS, may_point

        found: list[dict[str, Any]] = []
        missing = []
        launch = self._launch
        for number, (argument, raw) in enumerate(
            zip(launch.kernel.arguments, launch.raw, strict=True)
        ):
            value: dict[str, Any] = {"bytes": raw.hex()}
            if may_point(argument):
                address = int.from_bytes(raw, "little")
                inside = self._inside(address)
                if inside:
                    value |= inside
                elif address and argument.kind in POINTERS:
                    missing.append(
                        f"what argument {number} points to, {address:#x}: no device memory of HIP's"
                    )
            found.append(value)
        return found, missing

    def _inside(self, address: int) -> dict[str, int] | None:
        for number, block in enumerate(self._blocks):
            if block["address"] <= address < block["address"] + block["size"]:
                return {"block": number, "offset": address - block["address"]}
        return None

    def _inner_pointers(self) -> list[str]:
        """Blocks that seem to hold addresses of device memory: a replay has that elsewhere."""
        found = []
        lowest = min((block["address"] for block in self._blocks), default=0)
        highest = max((block["address"] + block["size"] for block in self._blocks), default=0)
        for number, block in enumerate(self._blocks):
            content = (self._folder / "blobs" / block["before"]).read_bytes()
            words = memoryview(content)[: len(content) // 8 * 8].cast("Q")
            near = [word for word in words if lowest <= word < highest]
            for other in self._blocks:
                low, high = other["address"], other["address"] + other["size"]
                count = sum(low <= word < high for word in near)
                if count:
                    found.append(f"{count} pointers within memory block {number}, to {low:#x}")
        return found
