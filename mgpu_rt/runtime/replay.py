"""Launches that were recorded, made again by themselves: on another device, with another image or
block size, again and again."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mgpu_rt import files
from mgpu_rt.runtime import manifest
from mgpu_rt.runtime.manifest import Damaged
from mgpu_rt.runtime.objects import numpy_for

if TYPE_CHECKING:
    from mgpu_rt.runtime.objects import Sizes

GUARD, GUARD_BYTE = 4096, 0xA5  # bytes before and after each block that no kernel is to touch


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
        self.launches: list[dict[str, Any]] = manifest.read(self.folder / "manifest.json")[
            "launches"
        ]
        if not self.launches:
            raise Damaged(f"'{self.folder}' holds no launch")
        for number, launch in enumerate(self.launches, 1):
            try:
                manifest.check(launch)
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
