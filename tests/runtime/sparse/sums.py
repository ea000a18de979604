"""Computes products of sparse matrices by the mgpuSp* functions, and compares the products with
those of SciPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from tests.support.child import Mgpu

FORMATS = ("coo", "csr", "csc")

#: cudaDataType_t.
TYPES = {"f32": 0, "f64": 1, "f16": 2, "c32": 4, "c64": 5, "bf16": 14}
DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "c32": np.complex64,
    "c64": np.complex128,
}
TOLERANCE = {"f32": 1e-5, "f64": 1e-13, "f16": 2e-2, "bf16": 1e-1, "c32": 1e-5, "c64": 1e-13}
INDEX = {np.dtype(np.int32): 2, np.dtype(np.int64): 3}


def pack(values: np.ndarray, type: str) -> np.ndarray:
    """Returns the values in the device's format; a bf16 is the upper half of a float."""
    if type != "bf16":
        return np.ascontiguousarray(values, DTYPES[type])
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x8000) >> 16).astype(np.uint16)


def unpack(values: np.ndarray, type: str) -> np.ndarray:
    if type != "bf16":
        return values
    return (values.astype(np.uint32) << 16).view(np.float32)


@dataclass(frozen=True)
class Shape:
    """The sizes of the two factors (rows × inner, and inner × columns), and the share of non-zero
    elements in a sparse matrix."""

    rows: int
    inner: int
    columns: int
    density: float
    ragged: bool = False  # every third row has no element

    def sparse(self, rng: np.random.Generator, type: str, rows: int = 0, columns: int = 0):
        rows, columns = rows or self.rows, columns or self.inner
        matrix = rng.integers(-8, 9, (rows, columns)).astype(np.float64) / 4
        if type.startswith("c"):
            matrix = matrix + 1j * rng.integers(-8, 9, (rows, columns)) / 4
        matrix[rng.random((rows, columns)) >= self.density] = 0
        if self.ragged:
            matrix[::3] = 0
        return scipy.sparse.csr_matrix(matrix)

    def dense(self, rng: np.random.Generator, type: str, *size: int) -> np.ndarray:
        values = rng.integers(-8, 9, size) / 4
        return values + 1j * rng.integers(-8, 9, size) / 4 if type.startswith("c") else values


SHAPES = (
    Shape(8, 8, 8, 0.3),
    Shape(1, 1, 1, 1.0),
    Shape(37, 53, 11, 0.1),
    Shape(64, 33, 5, 0.5, ragged=True),
    Shape(9, 300, 3, 0.02),
    Shape(16, 16, 16, 0.0),
)


class Device:
    """Arrays on the device, as a lowered program copies them there."""

    def __init__(self, mgpu: Mgpu) -> None:
        self.mgpu = mgpu
        self.stream = mgpu.StreamCreate()
        self.held: list = []
        self.described: list[tuple] = []  # each descriptor with the function that destroys it

    def put(self, array: np.ndarray):
        array = np.ascontiguousarray(array)
        memory = self.mgpu.MemAlloc(max(array.nbytes, 16), self.stream, False)
        self.held.append(memory)
        if array.nbytes:
            source = self.mgpu.ffi.cast("void *", array.ctypes.data)
            self.mgpu.Memcpy(memory, source, array.nbytes, self.stream)
            self.mgpu.StreamSynchronize(self.stream)
        return memory

    def get(self, memory, like: np.ndarray) -> np.ndarray:
        result = np.empty_like(like)
        if result.nbytes:
            target = self.mgpu.ffi.cast("void *", result.ctypes.data)
            self.mgpu.Memcpy(target, memory, result.nbytes, self.stream)
        self.mgpu.StreamSynchronize(self.stream)
        return result

    def buffer(self, size: int):
        memory = self.mgpu.MemAlloc(size, self.stream, False)
        self.held.append(memory)
        return memory

    def keep(self, matrix):
        self.described.append((self.mgpu.DestroySpMat, matrix))
        return matrix

    def dense(self, memory, size: tuple[int, ...], type: str):
        """Describes a vector or a dense matrix."""
        mgpu = self.mgpu
        create, destroy = (
            (mgpu.CreateDnVec, mgpu.DestroyDnVec)
            if len(size) == 1
            else (mgpu.CreateDnMat, mgpu.DestroyDnMat)
        )
        made = create(*size, memory, TYPES[type], self.stream)
        self.described.append((destroy, made))
        return made

    def free(self) -> None:
        for destroy, made in self.described:
            destroy(made, self.stream)
        for memory in self.held:
            self.mgpu.MemFree(memory, self.stream)
        self.described.clear()
        self.held.clear()


def describe(device: Device, matrix, form: str, type: str, index: type = np.int32):
    """Returns a sparse matrix's descriptor."""
    mgpu, stream = device.mgpu, device.stream
    rows, columns = matrix.shape
    number = INDEX[np.dtype(index)]
    put = device.put
    if form == "coo":
        coo = matrix.tocsr().tocoo()
        return device.keep(mgpu.CreateCoo(
            rows, columns, coo.nnz, put(coo.row.astype(index)), put(coo.col.astype(index)),
            put(pack(coo.data, type)), number, TYPES[type], stream,
        ))  # fmt: skip
    held = matrix.tocsr() if form == "csr" else matrix.tocsc()
    create = mgpu.CreateCsr if form == "csr" else mgpu.CreateCsc
    return device.keep(create(
        rows, columns, held.nnz, put(held.indptr.astype(index)), put(held.indices.astype(index)),
        put(pack(held.data, type)), number, number, TYPES[type], stream,
    ))  # fmt: skip


def differs(got: np.ndarray, wanted: np.ndarray, type: str) -> float:
    """Returns the largest error beyond the type's tolerance; 0 if no error is beyond the
    tolerance."""
    if not wanted.size:
        return 0.0
    error = np.abs(unpack(got, type).astype(np.complex128) - wanted)
    allowed = TOLERANCE[type] * np.maximum(1, np.abs(wanted))
    return float(np.max(np.where(error <= allowed, 0, error)))


def compute_type(type: str) -> int:
    """Returns the type in which the library sums products; for halves, the type is float."""
    return TYPES["f32" if type in ("f16", "bf16") else type]


def _multiply(
    device: Device, shape: Shape, form: str, type: str, index: type, transposed: bool, *columns: int
) -> float:
    """Computes C = C + A B, where B and C are vectors if `columns` is empty; returns the error."""
    rng = np.random.default_rng(1)
    mgpu, stream = device.mgpu, device.stream
    matrix = shape.sparse(rng, type)
    op = matrix.T if transposed else matrix
    b, c = (shape.dense(rng, type, size, *columns) for size in op.shape[::-1])
    packed = pack(c, type)
    a = describe(device, matrix, form, type, index)
    result = device.put(packed)
    dense_b = device.dense(device.put(pack(b, type)), b.shape, type)
    factors = (a, dense_b, device.dense(result, c.shape, type), compute_type(type))
    operations = (int(transposed), 0) if columns else (int(transposed),)
    size_of, product = (
        (mgpu.SpMMBufferSize, mgpu.SpMM) if columns else (mgpu.SpMVBufferSize, mgpu.SpMV)
    )
    buffer = device.buffer(size_of(*operations, *factors, stream))
    product(*operations, *factors, buffer, stream)
    error = differs(device.get(result, packed), c + op @ b, type)
    device.free()
    return error


def spmv(device: Device, shape: Shape, form: str, type: str, transposed: bool = False) -> float:
    return _multiply(device, shape, form, type, np.int32, transposed)


def spmm(device: Device, shape: Shape, form: str, type: str, index: type = np.int32) -> float:
    return _multiply(device, shape, form, type, index, False, shape.columns)


def sddmm(device: Device, shape: Shape, form: str, type: str) -> float:
    """Computes S = S + (A B where S has elements); returns the error."""
    rng = np.random.default_rng(3)
    where = shape.sparse(rng, type, shape.rows, shape.columns)
    a = shape.dense(rng, type, shape.rows, shape.inner)
    b = shape.dense(rng, type, shape.inner, shape.columns)
    rows = np.repeat(np.arange(where.shape[0]), np.diff(where.indptr))
    more = (a @ b)[rows, where.indices]
    sizes = (*where.shape, where.nnz)
    return _sampled(device, device.mgpu.CreateCsr, sizes, where, a, b, more, type)


def sddmm_blocks(device: Device, shape: Shape, block: int, type: str) -> float:
    """Computes S = S + (A B in the blocks of S), the only product in BSR format that MLIR emits;
    returns the error."""
    rng = np.random.default_rng(5)
    sizes = (shape.rows, shape.inner, shape.columns)
    rows, inner, columns = (-(-size // block) * block for size in sizes)  # as cuSPARSE wants it
    where = scipy.sparse.bsr_matrix(shape.sparse(rng, type, rows, columns), blocksize=(block,) * 2)
    a = shape.dense(rng, type, rows, inner)
    b = shape.dense(rng, type, inner, columns)
    whole = (a @ b).reshape(rows // block, block, columns // block, block).swapaxes(1, 2)
    block_row = np.repeat(np.arange(rows // block), np.diff(where.indptr))
    sizes = (rows // block, columns // block, len(where.indices), block, block)
    more = whole[block_row, where.indices]
    return _sampled(device, device.mgpu.CreateBsr, sizes, where, a, b, more, type)


def _sampled(
    device: Device, create: Callable, sizes: tuple, where, a: np.ndarray, b: np.ndarray,
    more: np.ndarray, type: str,
) -> float:  # fmt: skip
    """Adds A B to the elements of S, which must grow by `more`; returns the error."""
    mgpu, stream, put = device.mgpu, device.stream, device.put
    packed, number = pack(where.data, type), INDEX[np.dtype(np.int32)]
    result = put(packed)
    s = device.keep(create(
        *sizes, put(where.indptr.astype(np.int32)), put(where.indices.astype(np.int32)), result,
        number, number, TYPES[type], stream,
    ))  # fmt: skip
    dense_a, dense_b = (device.dense(put(pack(each, type)), each.shape, type) for each in (a, b))
    size = mgpu.SDDMMBufferSize(0, 0, dense_a, dense_b, s, TYPES[type], stream)
    mgpu.SDDMM(0, 0, dense_a, dense_b, s, TYPES[type], device.buffer(size), stream)
    error = differs(device.get(result, packed), where.data + more, type)
    device.free()
    return error


def spgemm(device: Device, shape: Shape, form: str, type: str) -> float:
    """Computes C = A B, all in CSR, by the calls to which LLVM lowers such a product; returns the
    error."""
    rng = np.random.default_rng(4)
    mgpu, stream, null = device.mgpu, device.stream, device.mgpu.null
    left = shape.sparse(rng, type)
    right = shape.sparse(rng, type, shape.inner, shape.columns)
    a, b = (describe(device, matrix, "csr", type) for matrix in (left, right))
    kind, number = TYPES[type], INDEX[np.dtype(np.int32)]
    rows, columns = left.shape[0], right.shape[1]
    positions = device.put(np.zeros(rows + 1, np.int32))
    empty = (rows, columns, 0, positions, null, null)
    c = device.keep(mgpu.CreateCsr(*empty, number, number, kind, stream))
    step = mgpu.SpGEMMCreateDescr(stream)
    three = (step, 0, 0, a, b, c, kind)
    size = mgpu.SpGEMMWorkEstimation(*three, 0, null, stream)
    mgpu.SpGEMMWorkEstimation(*three, size, device.buffer(size), stream)
    size = mgpu.SpGEMMCompute(*three, 0, null, stream)
    mgpu.SpGEMMCompute(*three, size, device.buffer(size), stream)
    sizes = mgpu.ffi.new("int64_t[3]")
    mgpu.SpMatGetSize(c, sizes, sizes + 1, sizes + 2, stream)
    count = sizes[2]
    indices = np.zeros(count, np.int32)
    values = pack(np.zeros(count), type)
    column_of, data = device.put(indices), device.put(values)
    mgpu.SetCsrPointers(c, positions, column_of, data, stream)
    mgpu.SpGEMMCopy(*three, stream)
    starts = device.get(positions, np.zeros(rows + 1, np.int32))
    got = scipy.sparse.csr_matrix(
        (device.get(data, values), device.get(column_of, indices), starts), (rows, columns)
    )
    error = differs(got.toarray(), (left @ right).toarray(), type)
    mgpu.SpGEMMDestroyDescr(step, stream)
    device.free()
    return error


def hold(sum: Callable, mgpu: Mgpu, *cases: tuple) -> None:
    """Checks that every case of every shape is right, and that the library prints nothing. Raises
    AssertionError."""
    found = list(_wrong(sum, mgpu, *cases))
    assert not found, "\n".join(found)


def _wrong(sum: Callable, mgpu: Mgpu, *cases: tuple) -> Iterator[str]:
    mgpu.CreateSparseEnv()
    device = Device(mgpu)
    for case in cases:
        for shape in SHAPES:
            error, said = sum(device, shape, *case), mgpu.stderr()
            if error or said:
                yield f"{sum.__name__} {case} {shape}: error {error}, {said}"
    mgpu.DestroySparseEnv()
