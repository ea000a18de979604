"""Lets runtimes written in Python call the process's HIP through ctypes."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

from mgpu_rt._errors import HipError
from mgpu_rt._runtime import lib
from mgpu_rt.runtime import _library

if TYPE_CHECKING:
    from mgpu_rt.runtime._objects import Launch

SUCCESS, OUT_OF_MEMORY, NOT_READY, NOT_SUPPORTED = 0, 2, 600, 801
#: HIP's errors for an invalid handle or address.
DESTROYED, NOT_FOUND, INVALID_VALUE = 709, 500, 1
COPY_DEFAULT = 4  # hipMemcpyDefault
DISABLE_TIMING = 2  # hipEventDisableTiming
HIP_7 = 70000000  # of hipRuntimeGetVersion
BUFFER_ID = 7  # hipPointerAttribute: another number for each allocation

#: The functions that return a handle or an address through their first parameter.
_WITH_RESULT = frozenset(
    ("ModuleLoadData", "ModuleGetFunction", "StreamCreate", "EventCreateWithFlags", "Malloc")
)


class _Attributes(ctypes.Structure):
    """hipPointerAttribute_t. HIP 6 and later use other values for `memory_type` than earlier
    releases."""

    _fields_ = (
        ("memory_type", ctypes.c_int),
        ("device", ctypes.c_int),
        ("device_pointer", ctypes.c_void_p),
        ("host_pointer", ctypes.c_void_p),
        ("is_managed", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("room", ctypes.c_uint64 * 8),
    )


class CopyFailed(RuntimeError):
    """Raised if a hook's copy from or to device memory failed. The failure does not count as a
    failed call of the program."""


class Hip:
    """Provides HIP's functions under names without the prefix "hip". For example,
    `hip.StreamCreate()` calls hipStreamCreate, and returns the handle as an int. Arguments are ints
    or bytes. A call that HIP refuses raises HipError.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._library = ctypes.CDLL(path)
        capturing = getattr(self._library, "hipStreamIsCapturing", None)
        #: The address by which C asks before each launch; 0 if HIP lacks the function.
        self._capture_query = ctypes.cast(capturing, ctypes.c_void_p).value if capturing else 0
        version, count = ctypes.c_int(), ctypes.c_int(2)
        self._ask("hipRuntimeGetVersion", ctypes.byref(version))
        self._ask("hipGetDeviceCount", ctypes.byref(count))
        # In HIP 7, hipStreamGetFlags reads the object at the handle, but hipStreamGetDevice looks
        # up the stream.
        self._must_find, self._several = version.value >= HIP_7, count.value > 1

    @classmethod
    @functools.cache
    def _at(cls, path: str) -> Hip:
        return cls(path)

    @classmethod
    def in_use(cls) -> Hip | None:
        """Returns the HIP that the library has opened; None before the library's first call, or
        without HIP."""
        path = _library.hip_path()
        return cls._at(path) if path else None

    @classmethod
    def of_process(cls) -> Hip:
        """Returns the HIP that the library uses in this process, which may open it. Raises
        RuntimeError if the process has no HIP library."""
        found = cls.in_use()
        if found is None:
            _library.open_hip()
            found = cls.in_use()
        if found is None:
            raise RuntimeError("there is no HIP library in this process (mgpu-rt doctor says why)")
        return found

    def __getattr__(self, name: str) -> Any:
        asked = self._library[f"hip{name}"]  # an object of its own, whose types no other call sees
        results = [ctypes.c_void_p] if name in _WITH_RESULT else []

        def call(*given: Any) -> int | None:
            if asked.argtypes is None:
                # x86-64 passes each integer in 64 bits, of which HIP reads as many as it needs.
                kinds = [ctypes.c_char_p if isinstance(g, bytes) else ctypes.c_int64 for g in given]
                asked.argtypes = [*results, *kinds]
            out = ctypes.c_void_p()
            if error := asked(*[ctypes.addressof(out) for _ in results], *given):
                raise self.failed(f"hip{name}", error)
            return out.value or 0 if results else None

        setattr(self, name, call)
        return call

    def failed(self, function: str, code: int) -> HipError:
        names = self._library.hipGetErrorName
        names.restype = ctypes.c_char_p
        text = names(code)
        return HipError(function, code, text.decode() if text else "<unknown>")

    # ---- queries, which may fail ----

    def stream_idle(self, stream: int) -> bool:
        """Returns True if all work on the stream is done; returns False if the stream was
        destroyed."""
        return self._query_stream(stream) == SUCCESS

    def stream_busy(self, stream: int) -> bool:
        """Returns True if work on the stream is pending; returns False if the stream was
        destroyed."""
        return self._query_stream(stream) == NOT_READY

    def _query_stream(self, stream: int) -> int:
        return DESTROYED if self._is_gone(stream) else self._ask("hipStreamQuery", stream)

    def _is_gone(self, stream: int) -> bool:
        """Returns True if HIP does not have a stream, and HIP's other questions would read the
        object at the handle."""
        return self._must_find and self.stream_device(stream) is None

    def stream_flags(self, stream: int) -> int | None:
        """Returns the flags with which a stream was created. Returns None if the program has
        destroyed the stream or reset the device."""
        return None if self._is_gone(stream) else self._of_stream("hipStreamGetFlags", stream)

    def stream_device(self, stream: int) -> int | None:
        """Returns a stream's device; None if HIP does not tell. HIP 5.2.3 does not."""
        return self._of_stream("hipStreamGetDevice", stream)

    def captures(self, launch: Launch) -> bool:
        """Returns True if the stream of a launch is being captured. Work that is submitted to the
        stream then becomes part of a graph instead of running. From the first question on, each
        launch of the program brings HIP's answer, because asking from Python takes longer."""
        lib.query_capture = self._capture_query
        status: int = launch._capture
        if status == lib.NOT_ASKED:
            return self.is_captured(launch.stream)
        if status < 0:
            self._clear(-status)
        return status > 0

    def is_captured(self, stream: int) -> bool:
        """Returns True while a program captures the stream. HIP does not capture the null
        stream."""
        return bool(stream and self._of_stream("hipStreamIsCapturing", stream))

    def _of_stream(self, function: str, stream: int) -> int | None:
        """Returns the number by which a function of HIP describes a stream; None if HIP refuses."""
        found = ctypes.c_int()
        return None if self._ask(function, stream, ctypes.byref(found)) else found.value

    def device(self) -> int:
        device = ctypes.c_int()
        if self._several:
            self._ask("hipGetDevice", ctypes.byref(device))
        return device.value

    def device_name(self) -> str:
        """Returns HIP's name for the current device; "" if HIP gives none."""
        name = ctypes.create_string_buffer(256)
        self._ask("hipDeviceGetName", name, len(name), self.device())
        return name.value.decode(errors="replace")

    def buffer_id(self, address: int) -> int | None:
        """Returns the number that HIP gives only to the allocation that contains this address.
        Returns None if HIP knows no allocation that contains the address."""
        number = ctypes.c_uint64()
        error = self._ask("hipPointerGetAttribute", ctypes.byref(number), BUFFER_ID, address)
        return None if error else number.value or None

    def address_range(self, address: int) -> tuple[int, int] | None:
        """Returns the beginning and the size of the device memory that contains an address; None if
        no device memory contains it."""
        begin, size = ctypes.c_void_p(), ctypes.c_size_t()
        to = ctypes.byref(begin), ctypes.byref(size)
        good = not self._ask("hipMemGetAddressRange", *to, address) and begin.value and size.value
        return (begin.value or 0, size.value) if good else None

    def device_of(self, address: int) -> int | None:
        """Returns the device that owns the memory at an address; None for host memory."""
        found = _Attributes()
        if self._ask("hipPointerGetAttributes", ctypes.byref(found), address):
            return None
        is_devices = found.is_managed or (found.device_pointer and not found.host_pointer)
        return found.device if is_devices else None

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        """Copies `size` bytes after the earlier work of the stream, and waits until the copy is
        done. Raises CopyFailed."""
        try:
            self.MemcpyAsync(to, source, size, COPY_DEFAULT, stream)
            self.StreamSynchronize(stream)
        except HipError as error:
            self._clear(error.code)
            raise CopyFailed(str(error)) from None

    def last_error(self) -> str:
        """Returns HIP's name for the calling thread's last error, or "" if the thread has no
        error."""
        error = self._library.hipPeekAtLastError()
        return self.failed("", error).name if error else ""

    def watch_memory(self) -> int:
        """Allocates memory that is freed when the device is reset; returns 0 on failure. Uses a
        function of HIP that programs seldom call."""
        address = ctypes.c_void_p()
        error = self._ask("hipExtMallocWithFlags", ctypes.byref(address), 64, 0)
        return 0 if error else address.value or 0

    def _ask(self, function: str, *arguments: Any) -> int:
        """Calls a function of HIP with ints and references, and returns its error. The error does
        not become the program's last error."""
        asked = getattr(self._library, function, None)
        if asked is None:
            return NOT_SUPPORTED
        error = asked(*(ctypes.c_int64(a) if isinstance(a, int) else a for a in arguments))
        self._clear(error)
        return error

    def _clear(self, error: int) -> None:
        """Clears the thread's last error if it is this error."""
        if error != SUCCESS and self._library.hipPeekAtLastError() == error:
            self._library.hipGetLastError()
