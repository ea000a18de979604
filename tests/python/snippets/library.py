"""HIP for the snippets: its functions by name, and the codes that they return."""

from __future__ import annotations

import re
from collections.abc import Callable

from cffi import FFI

from tests.support.child import hip_functions
from tests.support.images import code_object

DEVICE_TO_HOST, HOST_TO_DEVICE, DEFAULT = 2, 1, 4  # hipMemcpyKind

_TYPES = """
typedef struct stream *hipStream_t;
typedef struct event *hipEvent_t;
typedef struct module *hipModule_t;
typedef struct function *hipFunction_t;
typedef struct { uint32_t x, y, z; } dim3;
typedef void (*hipStreamCallback_t)(hipStream_t stream, int error, void *data);
typedef struct {
    int memory_type, device;
    void *device_pointer, *host_pointer;
    int is_managed;
    unsigned allocation_flags;
} hipPointerAttribute_t;
int hipDeviceSynchronize(void);
int hipDeviceReset(void);
int hipLaunchKernel(const void *symbol, dim3 grid, dim3 block, void **params, size_t shared_bytes,
                    hipStream_t stream);
int hipGetLastError(void);
int hipPeekAtLastError(void);
const char *hipGetErrorName(int error);
const char *hipGetErrorString(int error);
"""


def declarations() -> str:
    """Returns the declarations of the stub's functions for cffi."""
    return _TYPES + hip_functions()


def functions() -> list[str]:
    """Returns the names of all functions."""
    return re.findall(r"\b(hip\w+)\(", declarations())


class Hip:
    """The HIP library; `codes` collects the return codes of its functions."""

    def __init__(self, path: str) -> None:
        self.ffi = FFI()
        self.ffi.cdef(declarations())
        self.lib = self.ffi.dlopen(path)
        self.null = self.ffi.NULL
        self.codes: list[tuple[str, int | None]] = []
        self._kept: list[object] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*arguments) -> int:
            code = getattr(self.lib, name)(*arguments)
            self.codes.append((name, code))
            return code

        return call

    def new(self, kind: str, value: object = None):
        """Host memory that lives as long as the process."""
        self._kept.append(self.ffi.new(kind, value))
        return self._kept[-1]

    def made(self, function: str, kind: str, *arguments):
        """Calls a function that must succeed, and returns the object that the function stores
        through its first argument."""
        out = self.new(f"{kind} *")
        assert getattr(self, function)(out, *arguments) == 0
        return out[0]

    def stream(self):
        return self.made("hipStreamCreate", "hipStream_t")

    def event(self):
        return self.made("hipEventCreate", "hipEvent_t")

    def memory(self, count: int):
        return self.made("hipMalloc", "void *", count)

    def module(self, program: str = "forum"):
        return self.made("hipModuleLoadData", "hipModule_t", self.image(program))

    def image(self, program: str):
        return self.new("char[]", code_object(program))

    def kernel(self):
        name = self.new("char[]", b"test_func")
        return self.made("hipModuleGetFunction", "hipFunction_t", self.module(), name)

    def launch(self, stream=None, grid: int = 1, block: int = 1, function=None) -> int:
        """Launches `function`, or a kernel that ends at once; returns HIP's return code."""
        sizes = (grid, 1, 1, block, 1, 1)
        null = self.null
        return self.hipModuleLaunchKernel(
            function or self.kernel(), *sizes, 0, stream or null, null, null
        )

    def read(self, address, count: int) -> bytes:
        """Returns device memory."""
        to = self.new("char[]", count)
        assert self.hipMemcpy(to, address, count, DEVICE_TO_HOST) == 0
        return self.ffi.buffer(to, count)[:]

    def offset(self, address, count: int):
        return self.ffi.cast("char *", address) + count
