"""The stand-in for hipSPARSE and cuSPARSE (tests/devices/sparsestub), in this process."""

from __future__ import annotations

from cffi import FFI

from tests.support.child import BUILD, Mgpu

FOLDER = BUILD / "sparsestub"
HIPSPARSE_5, HIPSPARSE_6 = "libhipsparse.so.0", "libhipsparse.so.1"
CUSPARSE = "libcusparse.so.12"

#: Values of cudaDataType_t and cusparseIndexType_t.
F32, F64, F16, C64, I32, BF16 = 0, 1, 2, 4, 10, 14
INDEX_32, INDEX_64 = 2, 3

NO_MEMORY, INVALID = 2, 3

_DECLARATIONS = """
int sparsestub_count(const char *name);
void sparsestub_fail(const char *name, int status, int times);
extern void (*sparsestub_inside)(void);
extern struct {
    uintptr_t stream;
    unsigned long long alpha, beta;
    int order, algorithm, type, indices[3];
    int violations, environments, descriptors;
} sparsestub_seen;
"""


class SparseStub:
    """The stub's recorded calls, and its answers to future calls."""

    def __init__(self, name: str = HIPSPARSE_5) -> None:
        self.ffi = FFI()
        self.ffi.cdef(_DECLARATIONS)
        self.lib = self.ffi.dlopen(str(FOLDER / name))

    def __getattr__(self, name: str):
        return lambda: getattr(self.lib.sparsestub_seen, name)

    def index(self, number: int) -> int:
        """Returns the type of the last matrix's positions or indices, or the first index."""
        return self.lib.sparsestub_seen.indices[number]

    def count(self, function: str) -> int:
        """Returns how often the function hipsparse`function` was called."""
        return self.lib.sparsestub_count(function.encode())

    def fail(self, function: str, status: int, times: int = 1) -> None:
        """Makes the next `times` calls of a function return `status`."""
        self.lib.sparsestub_fail(function.encode(), status, times)


class Sums:
    """Makes the calls by which a lowered program creates descriptors and multiplies matrices. The
    stub computes nothing."""

    def __init__(self, mgpu: Mgpu, type: int = F32) -> None:
        self.mgpu, self.type = mgpu, type
        self.stream = mgpu.StreamCreate()
        memory = mgpu.MemAlloc(4096, self.stream, False)
        self.csr = mgpu.CreateCsr(
            4, 4, 2, memory, memory, memory, INDEX_32, INDEX_64, type, self.stream
        )
        self.dense = mgpu.CreateDnMat(4, 4, memory, type, self.stream)
        self.vector = mgpu.CreateDnVec(4, memory, type, self.stream)

    def spmm(self, stream=None) -> None:
        """Makes the calls that one linalg.matmul makes: queries the buffer's size, allocates the
        buffer, multiplies, and frees the buffer."""
        stream = stream or self.stream
        size = self.mgpu.SpMMBufferSize(0, 0, self.csr, self.dense, self.dense, self.type, stream)
        buffer = self.mgpu.MemAlloc(size, stream, False)
        self.mgpu.SpMM(0, 0, self.csr, self.dense, self.dense, self.type, buffer, stream)
        self.mgpu.MemFree(buffer, stream)


def begin(mgpu: Mgpu, name: str = HIPSPARSE_5) -> tuple[SparseStub, Sums]:
    """Makes the first calls of a lowered program."""
    stub = SparseStub(name)
    mgpu.CreateSparseEnv()
    return stub, Sums(mgpu)
