"""Loads the library in build/cuhip into this process. The library calls the stub of NVIDIA's
driver."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from cffi import FFI

from tests.support.child import BUILD, CUSTUB, ROOT

LIBRARY = BUILD / "cuhip" / "libamdhip64.so.5"
TABLE = ROOT / "csrc" / "cuhip" / "api.def"

_TYPES = """
typedef void *hipGraph_t, *hipGraphNode_t, *hipGraphExec_t;
typedef struct hipKernelNodeParams hipKernelNodeParams;
typedef struct hipMemsetParams hipMemsetParams;
typedef void *hipModule_t, *hipFunction_t, *hipStream_t, *hipEvent_t, *hipMemPool_t;
typedef void *hipStreamCallback_t;
typedef int hipDevice_t, hipError_t;
typedef struct { uint32_t x, y, z; } dim3;
typedef struct {
    int memory_type, device;
    void *device_pointer, *host_pointer;
    int is_managed;
    unsigned allocation_flags;
} hipPointerAttribute_t;
typedef struct { char bytes[792]; } hipDeviceProp_t;
int hipGetLastError(void);
int hipPeekAtLastError(void);
const char *hipGetErrorName(int error);
const char *hipGetErrorString(int error);
"""
_STUB_TYPES = """
char *custub_take(void);
void custub_fail(const char *symbol, int error);
void custub_pointer(int type);
void custub_capture(int status);
int cuCtxSetCurrent(uint64_t context, ...);
void free(void *);
"""


def functions() -> dict[str, str]:
    """Maps the name of each function in api.def to the function's parameters."""
    rows = re.findall(
        r"^HIP_FN\(\w+, (\w+), (\((?:[^()]|\([^()]*\))*\)),", TABLE.read_text(), re.MULTILINE
    )
    return dict(rows)


def _beyond() -> str:
    header = (ROOT / "csrc" / "cuhip" / "beyond.h").read_text()
    plain = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    return re.sub(r"^#.*", "", plain, flags=re.MULTILINE).replace("EXPORT", "")


@dataclass
class Out:
    """An output argument; `number` distinguishes the output arguments of one call."""

    number: int = 1


class CuStub:
    """The stub of NVIDIA's driver in this process."""

    def __init__(self) -> None:
        self._ffi = FFI()
        self._ffi.cdef(_STUB_TYPES)
        self.lib = self._ffi.dlopen(str(CUSTUB))
        self._libc = self._ffi.dlopen(None)

    def take(self) -> list[str]:
        """Returns the lines that the stub has recorded since the last `take`."""
        text = self.lib.custub_take()
        lines = self._ffi.string(text).decode().splitlines()
        self._libc.free(text)
        return lines

    def fail(self, symbol: str, error: int) -> None:
        """Makes a driver function return `error`. If `error` is 0, the function works again."""
        self.lib.custub_fail(symbol.encode(), error)


@dataclass
class Driver:
    """HIP's functions in the library, which calls the stub of NVIDIA's driver."""

    ffi: FFI = field(default_factory=FFI)
    kept: list[object] = field(default_factory=list)

    def __post_init__(self) -> None:
        os.environ["MGPU_RT_CUDA"] = str(CUSTUB)  # read at the library's first call
        rows = "".join(f"int {name}{params};\n" for name, params in functions().items())
        self.ffi.cdef(_TYPES + rows + _beyond())
        self.hip = self.ffi.dlopen(str(LIBRARY))
        self.stub = CuStub()

    def memory(self, content: bytes = b"", size: int = 1024):
        """Returns host memory that is aligned to 64 bytes and lives as long as this object."""
        self.kept.append(self.ffi.new("char[]", size + 64))
        begin = int(self.ffi.cast("uintptr_t", self.kept[-1]))
        pointer = self.ffi.cast("char *", (begin + 63) & ~63)
        self.ffi.memmove(pointer, content, len(content))
        return pointer

    def address(self, pointer) -> int:
        return int(self.ffi.cast("uintptr_t", pointer))

    def call(self, name: str, *arguments) -> int:
        """Calls a function of HIP. Numbers may stand for handles and addresses."""
        function = getattr(self.hip, name)
        kinds = self.ffi.typeof(function).args
        converted = [
            self.ffi.cast("void *", value) if kind.kind == "pointer" else value
            for value, kind in zip(arguments, kinds, strict=True)
        ]
        return function(*converted)


def same(line: str, symbol: str, *arguments: int) -> bool:
    """Returns True if a line of the record describes a call of `symbol` with these arguments. If an
    argument fits into 32 bits, the comparison ignores the upper half of the register, which is
    undefined."""
    name, *words = line.split()
    found = [int(word, 16) for word in words]
    return (
        name == symbol
        and len(found) == len(arguments)
        and all(
            one == other if other >> 32 else one & 0xFFFFFFFF == other
            for one, other in zip(found, arguments, strict=True)
        )
    )


def exported(library: Path) -> dict[str, str]:
    """Returns the functions that a library exports, including their symbol versions."""
    import subprocess

    listed = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True)
    return dict(re.findall(r" T (\w+)@@(\w+(?:\.\w+)?)", listed.stdout))
