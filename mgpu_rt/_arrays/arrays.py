"""Defines arrays in device memory, which PyTorch and CuPy use without a copy."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mgpu_rt._arrays import memory, work
from mgpu_rt._arrays.given import ELEMENTS, Array, array_of, c_strides
from mgpu_rt._arrays.work import Uses, Work
from mgpu_rt._library import load
from mgpu_rt._packages import need, numpy_for
from mgpu_rt._streams import chosen_stream, handle_of, stream_for

if TYPE_CHECKING:
    import numpy

_BY_NAME = {element.numpy: kind for kind, element in ELEMENTS.items()}

_MOST = 1 << 63  # bytes: sizes and strides are signed


class DeviceArray:
    """An array in device memory, from mgpu_rt.empty, mgpu_rt.to_device, or a lowered function.

    Kernels and lowered functions accept the array, and PyTorch (torch.as_tensor) and CuPy
    (cupy.asarray) use it without a copy. The memory is freed when the array and its last view are
    gone.
    """

    def __init__(
        self,
        owner: object,
        address: int,
        kind: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        *,
        device: int = 0,
        work: Work | None = None,
    ) -> None:
        """`strides` are in bytes; None means that the elements are contiguous. `work` is the
        pending work on the memory, which all arrays in an allocation share."""
        self.shape, self.itemsize, self.device = shape, ELEMENTS[kind].size, device
        self.strides = c_strides(shape, self.itemsize) if strides is None else strides
        self._work = work or Work()
        self._array = Array(
            *(address, True, self.itemsize, self.shape, self.strides),
            keep=owner,
            type=kind,
            work=self._work,
        )

    @property
    def dtype(self) -> str:
        """Returns the name of the element type, such as "float32"."""
        return ELEMENTS[self._array.type].numpy

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes, without gaps between them."""
        return math.prod(self.shape) * self.itemsize

    def __repr__(self) -> str:
        return f"<mgpu_rt array of {self.dtype}, shape {self.shape}, in device memory>"

    def fill_on(self, stream: Any) -> None:
        """Declares that pending work on a stream uses this array. Later uses of the array wait for
        the work that the stream has so far. Declare the work of other packages.
        `stream` is a stream as in mgpu_rt.use_stream. Raises TypeError or ValueError."""
        uses = self._uses(writes=True)
        handle = handle_of(stream)
        uses.precede(handle)
        uses.submitted(handle)

    def _uses(self, *, writes: bool) -> Uses:
        uses = Uses()
        uses.add(self._work, writes=writes)
        work.keep_in_graph(self._array)
        return uses

    def _share(self) -> None:
        if self.nbytes and not self._work.is_shared:
            work.share(self._work, self._array.address)

    def _as_argument(self) -> Array:
        return self._array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Returns CuPy's array interface, which PyTorch also reads. Waits for the array's pending
        work. If this thread has an external stream (use_stream), that stream waits in place of the
        caller, and the interface names the stream."""
        letter, stream = ELEMENTS[self._array.type].letter, None
        if not letter:
            raise AttributeError(f"the array interface cannot describe {self.dtype}")
        self._share()
        chosen, uses = chosen_stream(), self._uses(writes=True)
        if chosen is None:
            uses.wait()
            uses.complete()
        elif uses.precede(chosen):
            stream = chosen or 1
        return {
            "shape": self.shape,
            "typestr": f"{'|' if self.itemsize == 1 else '<'}{letter}{self.itemsize}",
            "strides": None if self._array.is_contiguous else self.strides,
            "data": (self._array.address, False),
            "version": 3,
            "stream": stream,
        }

    def to_host(self) -> numpy.ndarray:
        """Waits for the work that fills this array, and copies this array to a new NumPy array.
        Raises HipError."""
        import numpy

        if not self._array.is_contiguous:
            raise ValueError(f"{self!r} has gaps between its elements")
        result = numpy.empty(self.shape, numpy_type(self._array.type))
        work.keep_in_graph(result)
        _copy(result.ctypes.data, self._array.address, self.nbytes, self._uses(writes=False))
        return result

    def __array__(self, *_: Any, **__: Any) -> numpy.ndarray:
        """Refuses NumPy, which would take the array for one object: comparisons were false."""
        raise TypeError(f"{self!r}, which NumPy does not read: call to_host()")

    def copy_from(self, array: Any) -> None:
        """Copies another host or device array into this array; shape and type must match, and the
        elements must be contiguous. Waits for the work that uses this array or fills the other
        array. Raises ValueError, TypeError or HipError."""
        given = _given(array)
        if given.shape != self.shape or given.type != self._array.type:
            kind = ELEMENTS[given.type].numpy if given.type in ELEMENTS else "an unknown type"
            raise ValueError(
                f"{self!r} takes only an array of equal shape and type, but got {kind}, shape "
                f"{given.shape}"
            )
        if not (self._array.is_contiguous and given.is_contiguous):
            raise ValueError(
                "the elements have to lie one after the other: pass numpy.ascontiguousarray(array)"
            )
        uses = self._uses(writes=True)
        uses.add(given.work, writes=False)
        uses.follow(given.stream)
        work.keep_in_graph(given)
        _copy(self._array.address, given.address, self.nbytes, uses)


def _copy(to: int, source: int, size: int, uses: Uses) -> None:
    """Copies `size` bytes after the earlier work on the allocations in `uses`. The copy runs on
    this thread's external stream, or on a stream of the library. Waits for the copy."""
    library = load()
    with stream_for(library) as (stream, _):
        if size:
            uses.precede(stream)
            library.mgpuMemcpy(to, source, size, stream)
            library.mgpuStreamSynchronize(stream)
            uses.complete()
    library.check("the array was not copied")


def _given(array: Any) -> Array:
    """Converts an array of another package. Raises TypeError."""
    found = array_of(array)
    if found is None:
        raise TypeError(f"a {type(array).__name__} is not an array: pass numpy.array(...) of it")
    if found.type not in ELEMENTS:
        kind = f"the type '{found.type}'" if found.type else "an unknown type"
        raise TypeError(f"a device array cannot have elements of {kind}")
    return found


def numpy_type(kind: str) -> Any:
    """Returns NumPy's type of elements. Raises ImportError without NumPy, or for bfloat16 without
    ml_dtypes."""
    numpy = numpy_for("an array")
    if kind != "bf16":
        return numpy.dtype(ELEMENTS[kind].numpy)
    need("an array of bfloat16", ml_dtypes="ml_dtypes")
    return numpy.dtype(sys.modules["ml_dtypes"].bfloat16)


def empty(shape: int | Sequence[int], dtype: Any = "float32") -> DeviceArray:
    """Returns an array in device memory, whose elements are undefined. `dtype` is a NumPy or
    PyTorch type, or the type's name.

    Raises HipError if device memory is exhausted, TypeError or ValueError for an invalid type or
    shape.
    """
    sizes = tuple(map(operator.index, shape if isinstance(shape, Sequence) else (shape,)))
    if any(size < 0 for size in sizes):
        raise ValueError(f"the shape {sizes} has a negative size")
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    kind = _BY_NAME.get(name.removeprefix("torch."), name)
    if kind not in ELEMENTS:
        raise TypeError(
            f"'{name}' is not a type of a device array: write one of {', '.join(_BY_NAME)}, or "
            "pass a type of NumPy's, such as numpy.dtype('f4')"
        )
    size = math.prod(sizes) * ELEMENTS[kind].size
    if size >= _MOST:
        raise ValueError(f"the shape {sizes} has {size:,} bytes: no device has so much memory")
    owner = memory.allocate(size)
    return DeviceArray(owner, owner.address, kind, sizes, device=owner.device, work=owner.work)


def to_device(array: Any) -> DeviceArray:
    """Returns a copy of an array in device memory. PyTorch, CuPy, kernels and lowered functions use
    the returned array without a further copy. Raises HipError, TypeError or ValueError."""
    given = _given(array)
    made = empty(given.shape, ELEMENTS[given.type].numpy)
    made.copy_from(array)
    return made
