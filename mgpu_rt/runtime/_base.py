"""Runtime: a method for every function of the mgpu* ABI that returns no structure. Python is
called only for overridden methods: all other calls stay in the C library, at its speed."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from contextlib import suppress
from typing import Any, ClassVar

from mgpu_rt import _abi
from mgpu_rt._runtime import lib
from mgpu_rt._text import say
from mgpu_rt.runtime._hip import Hip
from mgpu_rt.runtime._objects import Buffer, Image, Launch, LoadedKernel


def method_name(function: str) -> str:
    """Returns the name of the method for a function, such as stream_wait_event for
    mgpuStreamWaitEvent. All launches share one method, launch_kernel."""
    if function.startswith("mgpuLaunch"):
        return "launch_kernel"
    words = re.sub(r"^mgpu|MemRef|Memref|JIT", lambda m: _WORDS[m[0]], function)
    return re.sub(r"(?<=[a-z\d])(?=[A-Z])", "_", words).lower()


_WORDS = {"mgpu": "", "MemRef": "Memref", "Memref": "Memref", "JIT": "Jit"}


class Runtime:
    """The class that runtimes and hooks derive from. One object serves all threads of a program at
    once.

    Settings are class attributes: `NanCheck(dtype="f64")`, or `?dtype=f64` in MGPU_RT_RUNTIME, sets
    the attribute `dtype`.

    A HipError in a method makes the call fail: the library prints stock's line on stderr, and the
    call returns 0. Any other exception is printed and ends the program; `with intercept(...)`
    raises the exception instead.
    """

    #: The C library's functions as attributes; calls of these functions bypass all runtimes.
    native: ClassVar[Any] = lib

    def __init__(self, **settings: Any) -> None:
        self._kernels: dict[int, LoadedKernel] = {}
        self._images: dict[int, Image] = {}
        self._alike: defaultdict[str, set[Image]] = defaultdict(set)
        self._said: set[object] = set()  # the causes of the lines so far
        self._saying = threading.Lock()
        self._error: BaseException | None = None  # that ends a `with intercept`
        for name, value in settings.items():
            if name.startswith("_") or callable(getattr(type(self), name, min)):
                raise TypeError(f"{type(self).__name__} has no setting '{name}'")
            setattr(self, name, value)

    # ---- modules ----

    def module_load(self, image: Image) -> int:
        return lib.mgpuModuleLoad(image.address, len(image.content))

    def module_load_jit(self, image: Image, level: int) -> int:
        return lib.mgpuModuleLoadJIT(image.address, level, len(image.content))

    def module_unload(self, module: int) -> None:
        lib.mgpuModuleUnload(module)

    def module_get_function(self, module: int, name: str) -> int:
        return lib.mgpuModuleGetFunction(module, name.encode(errors="surrogateescape"))

    # ---- launches ----

    def launch_kernel(self, launch: Launch) -> None:
        """Implements mgpuLaunchKernel, mgpuLaunchKernelCooperative, mgpuLaunchClusterKernel and
        mgpuLaunchKernelRT."""
        launch._make()

    # ---- streams and events ----

    def stream_create(self) -> int:
        return lib.mgpuStreamCreate()

    def stream_destroy(self, stream: int) -> None:
        lib.mgpuStreamDestroy(stream)

    def stream_synchronize(self, stream: int) -> None:
        lib.mgpuStreamSynchronize(stream)

    def stream_wait_event(self, stream: int, event: int) -> None:
        lib.mgpuStreamWaitEvent(stream, event)

    def event_create(self) -> int:
        return lib.mgpuEventCreate()

    def event_destroy(self, event: int) -> None:
        lib.mgpuEventDestroy(event)

    def event_synchronize(self, event: int) -> None:
        lib.mgpuEventSynchronize(event)

    def event_record(self, event: int, stream: int) -> None:
        lib.mgpuEventRecord(event, stream)

    # ---- memory; sizes in bytes, counts in elements ----

    def mem_alloc(self, size: int, stream: int, host_shared: bool) -> int:
        return lib.mgpuMemAlloc(size, stream, host_shared)

    def mem_free(self, address: int, stream: int) -> None:
        lib.mgpuMemFree(address, stream)

    def memcpy(self, to: int, source: int, size: int, stream: int) -> None:
        lib.mgpuMemcpy(to, source, size, stream)

    def memset32(self, address: int, value: int, count: int, stream: int) -> None:
        lib.mgpuMemset32(address, value, count, stream)

    def memset16(self, address: int, value: int, count: int, stream: int) -> None:
        lib.mgpuMemset16(address, value, count, stream)

    def mem_host_register(self, address: int, size: int) -> None:
        lib.mgpuMemHostRegister(address, size)

    def mem_host_unregister(self, address: int) -> None:
        lib.mgpuMemHostUnregister(address)

    def set_default_device(self, device: int) -> None:
        lib.mgpuSetDefaultDevice(device)

    # `_pass_on` creates methods for the functions with memrefs, tensor maps and sparse matrices.
    # The created methods take the ABI's arguments.

    def end(self) -> None:
        """Called when the program ends, while HIP still works."""

    # ---- helpers for overriding methods ----

    def kernel_of(self, function: int) -> LoadedKernel:
        """Returns the kernel of a handle. If the kernel was never looked up, the kernel's name
        contains the handle."""
        if known := self._kernels.get(function):
            return known
        return LoadedKernel(function, f"function {function:#x}")

    def buffer_at(self, address: int) -> Buffer | None:
        """Returns the block of device memory that contains an address; None if HIP knows no such
        block."""
        found = Hip.of_process().address_range(address) if address else None
        return Buffer(*found) if found else None

    # ---- the known kernels, which adapters.py records ----

    def _loaded(self, module: int, image: Image) -> None:
        self._images[module] = image
        _ = image.label  # while the image's memory exists
        # The reader of image.kernels needs optional packages. Without these packages, only `_found`
        # records the kernels' names.
        with suppress(ModuleNotFoundError):
            for name in image.kernels:
                self._alike[name].add(image)

    def _lacks_image(self, kernel: LoadedKernel) -> None:
        self._say_once(
            kernel.handle,
            f"the arguments of {kernel.label} are unknown: its module was loaded before the hook "
            "or runtime. Load the module within the `with`; a process loads a file only once",
        )

    def _say_once(self, cause: object, text: str) -> None:
        """Prints a line, unless a line was printed for this cause."""
        with self._saying:
            known = cause in self._said
            self._said.add(cause)
        if not known:
            say(f"mgpu_rt: {text}")

    def _found(self, function: int, module: int, name: str) -> None:
        known, image = self._kernels.get(function), self._images.get(module)
        if known is None or known.image is not image or known.name != name:
            if image is not None:
                self._alike[name].add(image)
            self._kernels[function] = LoadedKernel(function, name, image, self._alike[name])


def _pass_on(function: str) -> Any:
    def method(self: Runtime, *arguments: Any) -> Any:
        return getattr(lib, function)(*arguments)

    method.__name__ = method.__qualname__ = method_name(function)
    method.__doc__ = f"{function}: its arguments as the ABI has them."
    return method


#: Maps each function that has a method to the method's name.
METHODS = {function.name: method_name(function.name) for function in _abi.overridable()}

for _function, _method in METHODS.items():
    if not hasattr(Runtime, _method):
        setattr(Runtime, _method, _pass_on(_function))
