"""Launches that were recorded, and their replay by themselves: on another device, with another
image or block size, again and again.

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mgpu_rt import __version__, files
from mgpu_rt.runtime.objects import numpy_for

if TYPE_CHECKING:
    from mgpu_rt.runtime.objects import Launch, Sizes

FORMAT = 1
GUARD, GUARD_BYTE = 4096, 0xA5  # bytes before and after each block that no kernel is to touch


class Damaged(ValueError):
    """Why a recording cannot be replayed."""


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    files.write(fresh, content)
    fresh.replace(path)


# ---- recording ----

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
            manifest = {"format": FORMAT, "mgpu_rt": __version__, "launches": []}
            if path.exists():
                manifest = _manifest(path)
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


# ---- what was recorded ----


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(files.read(path))
        if manifest["format"] != FORMAT or not isinstance(manifest["launches"], list):
            raise Damaged(f"'{path}' is of format {manifest['format']}, and this reads {FORMAT}")
    except Damaged:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damaged(f"'{path}' is no recording's manifest: {error}") from None
    return manifest


def _check(launch: dict[str, Any]) -> None:
    """Anybody may have written it. Raises what Python raises for a value of another type."""
    texts = [launch["kernel"], launch["image"], *(b[k] for b in launch["blocks"] for k in _BLOBS)]
    sizes = [*launch["grid"], *launch["block"], launch["shared"]]
    offsets = [argument.get("offset", 0) for argument in launch["arguments"]]
    for argument in launch["arguments"]:
        bytes.fromhex(argument["bytes"])
        _ = launch["blocks"][argument.get("block", -1)] if "block" in argument else None
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a name is no text")
    for numbers, bits in ((sizes, 32), (offsets, 64)):
        if not all(type(number) is int and 0 <= number < 1 << bits for number in numbers):
            raise TypeError(f"a size is no number of {bits} bits")


_BLOBS = ("before", "after")


@dataclass(frozen=True)
class Difference:
    """A place that a replay has left otherwise than the recording has it."""

    block: int
    first: int  # the index of the first element that differs, of `dtype`
    count: int
    largest: float  # error; of bytes that are no numbers, 0
    dtype: str

    def __str__(self) -> str:
        error = f", largest error {self.largest:g}" if self.dtype != "u1" else ""
        kind = "bytes" if self.dtype == "u1" else f"elements ({self.dtype})"
        wrong = f"{self.count} {kind} differ, the first [{self.first}]{error}"
        return f"memory block {self.block}: {wrong}"


@dataclass(frozen=True)
class Replayed:
    """The outcome of a replay. `seconds` are of each iteration, from the launch to its end."""

    kernel: str
    differences: list[Difference]
    outside: list[str]  # writes beyond a block
    seconds: list[float] = field(repr=False)

    @property
    def same(self) -> bool:
        return not self.differences and not self.outside

    def __str__(self) -> str:
        seconds = sorted(self.seconds)
        middle, best = 1e6 * seconds[len(seconds) // 2], 1e6 * seconds[0]
        took = f"{middle:.1f} µs"
        if len(seconds) > 1:
            took = f"median {took}, best {best:.1f} µs, of {len(seconds)}"
        head = f"{self.kernel}: {'same' if self.same else 'DIFFERS'}, {took}"
        return "\n".join([head, *map(str, self.differences), *self.outside])


#: Types of MLIR's as NumPy has them.
_DTYPES = {"f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8"}


class Recording:
    """A folder that `mgpu-rt record` or the hook `Record` has written.

    Raises OSError or Damaged where it cannot be read. `launches` are the manifest's.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if not os.path.lexists(self.folder / "manifest.json"):
            raise Damaged(f"'{self.folder}' holds no launch: none was recorded to its end there")
        self.launches: list[dict[str, Any]] = _manifest(self.folder / "manifest.json")["launches"]
        if not self.launches:
            raise Damaged(f"'{self.folder}' holds no launch")
        for number, launch in enumerate(self.launches, 1):
            try:
                _check(launch)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise Damaged(f"'{self.folder}': launch {number} is damaged: {error}") from None

    def blob(self, name: str) -> bytes:
        """The content that was kept under a hash. Raises Damaged if it is not that any more."""
        content = files.read(self.folder / "blobs" / Path(name).name)
        if hashlib.sha256(content).hexdigest() != name:
            raise Damaged(f"'{self.folder}': {name} is not what was recorded")
        return content

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
        dtype: str = "f32",
    ) -> Replayed:
        """Makes a recorded launch again, in this process, and compares what it leaves.

        `image`, `grid`, `block` and `shared` take the place of the recorded ones. Each iteration
        begins with the recorded memory. Without a tolerance bytes are compared; with one, elements
        of `dtype`, absolutely, which takes NumPy. Raises RuntimeError if HIP refuses it.
        """
        if not 0 <= number < len(self.launches):
            held = len(self.launches)
            raise IndexError(f"the recording has {held} launches, and no number {number + 1}")
        launch, dtype = self.launches[number], _DTYPES.get(dtype, dtype)
        if tolerance is not None:
            _check_type(dtype)
        with _Replay(self, launch, image or self.blob(launch["image"])) as replay:
            sizes = (
                *_three(grid or launch["grid"]),
                *_three(block or launch["block"]),
                launch["shared"] if shared is None else shared,
            )
            seconds = [replay.once(sizes) for _ in range(max(1, iterations))]
            outside = list(replay.outside())
            found = [
                difference
                for at, entry in enumerate(launch["blocks"])
                if (
                    difference := _difference(
                        at, replay.content(at), self.blob(entry["after"]), tolerance, dtype
                    )
                )
            ]
        return Replayed(launch.get("label", launch["kernel"]), found, outside, seconds)


def _three(sizes: Sequence[int]) -> Sizes:
    x, y, z = [*sizes, 1, 1][:3]
    return x, y, z


def _difference(
    at: int, now: bytes, then: bytes, tolerance: float | None, dtype: str
) -> Difference | None:
    if now == then:
        return None
    if tolerance is None:
        return _difference_of_bytes(at, now, then)
    numpy = numpy_for("--tolerance")
    whole = len(then) // numpy.dtype(dtype).itemsize * numpy.dtype(dtype).itemsize
    mine, theirs = (numpy.frombuffer(content[:whole], dtype) for content in (now, then))
    with numpy.errstate(all="ignore"):
        errors = numpy.abs(mine.astype("f8") - theirs.astype("f8"))
    wrong = (mine != theirs) & ~(errors <= tolerance) & ~(numpy.isnan(mine) & numpy.isnan(theirs))
    indices = wrong.nonzero()[0]
    if not len(indices):
        return None
    largest = float(numpy.nanmax(errors[indices]))
    return Difference(at, int(indices[0]), len(indices), largest, dtype)


def _difference_of_bytes(at: int, now: bytes, then: bytes) -> Difference:
    """The difference of unlike contents. Long numbers find it at C's speed."""
    wrong = int.from_bytes(now, "little") ^ int.from_bytes(then, "little")
    unlike = wrong.to_bytes(max(len(now), len(then)), "little")
    first = len(unlike) - len(unlike.lstrip(b"\0"))
    return Difference(at, first, len(unlike) - unlike.count(0), 0.0, "u1")


def _check_type(dtype: str) -> None:
    """Raises ValueError if NumPy has no numbers of this type."""
    numpy = numpy_for("--tolerance")
    try:
        known = numpy.dtype(dtype).kind in "fiu"
    except TypeError:
        known = False
    if not known:
        raise ValueError(f"'{dtype}' is no type of numbers: name one of {', '.join(_DTYPES)}")


class _Replay:
    """A recorded launch's memory and kernel, on the device of this process."""

    def __init__(self, recording: Recording, launch: dict[str, Any], image: bytes) -> None:
        from mgpu_rt.library import load

        self._library, self._launch, self._image = load(), launch, image
        self._before = [recording.blob(entry["before"]) for entry in launch["blocks"]]
        self._places: list[Any] = []

    def __enter__(self) -> _Replay:
        library, ffi = self._library, self._library.ffi
        library.take_error()
        self._kept = ffi.from_buffer(self._image)
        self._module = library.mgpuModuleLoad(self._kept, len(self._image))
        self._check("the image was not loaded")
        name = self._launch["kernel"].encode()
        self._function = library.mgpuModuleGetFunction(self._module, name)
        self._check(f"the image has no kernel '{name.decode()}'")
        self._stream = library.mgpuStreamCreate()
        for content in self._before:
            room = len(content) + 2 * GUARD
            self._places.append(library.mgpuMemAlloc(room, self._stream, False))
            self._check(f"no memory for {room} bytes")
        return self

    def __exit__(self, *_exception: object) -> None:
        for place in self._places:
            self._library.mgpuMemFree(place, self._stream)
        self._library.mgpuStreamSynchronize(self._stream)
        self._library.mgpuStreamDestroy(self._stream)
        self._library.mgpuModuleUnload(self._module)

    def _check(self, words: str) -> None:
        self._library.check(words)

    def _address(self, at: int) -> int:
        return int(self._library.ffi.cast("uintptr_t", self._places[at])) + GUARD

    def _params(self) -> Any:
        ffi, kept = self._library.ffi, []
        for argument in self._launch["arguments"]:
            content = bytes.fromhex(argument["bytes"])
            if "block" in argument:
                address = self._address(argument["block"]) + argument["offset"]
                content = address.to_bytes(8, "little")
            kept.append(ffi.from_buffer(content))
        self._passed = kept
        return ffi.new("void *[]", kept)

    def once(self, sizes: Sequence[int]) -> float:
        """One launch on memory as it was recorded; its seconds."""
        library, ffi = self._library, self._library.ffi
        guard = bytes([GUARD_BYTE]) * GUARD
        for at, content in enumerate(self._before):
            self._copy(self._address(at) - GUARD, guard + content + guard)
        params = self._params()
        *geometry, shared = sizes
        begin = time.perf_counter()
        library.mgpuLaunchKernel(
            self._function, *geometry, shared, self._stream, params, ffi.NULL, len(self._passed)
        )
        library.mgpuStreamSynchronize(self._stream)
        seconds = time.perf_counter() - begin
        self._check(f"kernel '{self._launch['kernel']}' was not launched")
        return seconds

    def _copy(self, to: int, content: bytes) -> None:
        library, ffi = self._library, self._library.ffi
        source = ffi.from_buffer(content)
        library.mgpuMemcpy(ffi.cast("void *", to), source, len(content), self._stream)
        library.mgpuStreamSynchronize(self._stream)

    def _read(self, address: int, size: int) -> bytes:
        library, ffi = self._library, self._library.ffi
        content = bytearray(size)
        source = ffi.cast("void *", address)
        library.mgpuMemcpy(ffi.from_buffer(content), source, size, self._stream)
        library.mgpuStreamSynchronize(self._stream)
        return bytes(content)

    def content(self, at: int) -> bytes:
        """The content of a block now."""
        return self._read(self._address(at), len(self._before[at]))

    def outside(self) -> Iterator[str]:
        """Writes beyond a block, as far as its guards reach."""
        for at, content in enumerate(self._before):
            for where, address in (("before", -GUARD), ("behind", len(content))):
                guard = self._read(self._address(at) + address, GUARD)
                wrong = [i for i, byte in enumerate(guard) if byte != GUARD_BYTE]
                if wrong:
                    first = GUARD - wrong[-1] if where == "before" else wrong[0]
                    place = f"{where} memory block {at}"
                    yield f"{len(wrong)} bytes {place} were written, {first} bytes off"
