"""Tests sparse matrices over the stub of hipSPARSE and cuSPARSE: which calls the libraries get, and
how failures are reported. test_sums.py tests the sums with the real libraries."""

from __future__ import annotations

import struct
import threading
from pathlib import Path

from tests.runtime.driver.test_witness import FIRST, TELLS
from tests.runtime.sparse.stub import (
    BF16,
    C64,
    CUSPARSE,
    F16,
    F32,
    F64,
    FOLDER,
    HIPSPARSE_5,
    HIPSPARSE_6,
    I32,
    INDEX_32,
    INVALID,
    NO_MEMORY,
    SparseStub,
    Sums,
    begin,
)
from tests.support.child import STUB, Mgpu, in_cases, in_child
from tests.support.known import program, run_program

WITH_STUB = {"LD_LIBRARY_PATH": str(FOLDER)}


def empty_bsr(mgpu: Mgpu) -> tuple:
    return (1, 1, 1, 2, 2, *[mgpu.null] * 3, INDEX_32, INDEX_32, F32, mgpu.null)


# ---- the library ----


@in_child(**WITH_STUB)
def test_hipsparse_is_opened_at_the_first_sparse_call(mgpu: Mgpu) -> None:
    mgpu.StreamDestroy(mgpu.StreamCreate())
    assert "libhipsparse" not in Path("/proc/self/maps").read_text()
    mgpu.CreateSparseEnv()
    assert str(FOLDER / "libhipsparse.so.0") in Path("/proc/self/maps").read_text()
    assert mgpu.stderr() == ""


@in_child(HIPSTUB_VERSION="80000000")
def test_an_absent_library_is_named_once_with_what_to_install(mgpu: Mgpu) -> None:
    mgpu.CreateSparseEnv()
    assert not mgpu.CreateDnVec(4, mgpu.null, F32, mgpu.null)
    mgpu.DestroySparseEnv()
    lines = mgpu.stderr().splitlines()
    assert lines[0] == "hipSPARSE 'hipsparseCreate(&hipsparse_env)' failed with 'library not found'"
    advice = [line for line in lines if line.startswith("mgpu_rt: ")]
    assert len(advice) == 1 and "libhipsparse0" in advice[0]
    assert mgpu.ffi.string(mgpu.lib.mgpu_rt_take_error()) == b"hipErrorSharedObjectInitFailed"


@in_cases({"2": {}, "3": {"HIPSTUB_VERSION": "60400000"}}, **WITH_STUB)
def test_rows_follow_each_other_as_hipsparse_numbers_it(mgpu: Mgpu, version: str) -> None:
    mgpu.CreateSparseEnv()
    assert mgpu.CreateDnMat(2, 2, mgpu.null, F32, mgpu.null)
    stub = SparseStub(HIPSPARSE_5 if version == "2" else HIPSPARSE_6)
    assert stub.order() == (0 if version == "2" else 2)
    if version == "3":
        assert mgpu.CreateBsr(*empty_bsr(mgpu))
    assert mgpu.stderr() == ""


@in_child(**WITH_STUB)
def test_a_programs_own_hipsparse_numbers_rows_itself(mgpu: Mgpu) -> None:
    """The program has opened hipSPARSE 3 beside HIP 5."""
    stub = SparseStub(HIPSPARSE_6)
    mgpu.CreateSparseEnv()
    assert mgpu.CreateDnMat(2, 2, mgpu.null, F32, mgpu.null)
    assert stub.order() == 2


@in_child(backends=("custub",), **WITH_STUB)
def test_nvidias_driver_is_served_by_cusparse(mgpu: Mgpu) -> None:
    stub, sums = begin(mgpu, CUSPARSE)
    sums.spmm()
    assert stub.order() == 2 and stub.count("SpMM") == 1
    stub.fail("SpMM", 7)
    sums.spmm()
    assert mgpu.stderr() == (
        "cuSPARSE 'cusparseSpMM(cusparse_env, modeA, modeB, alphap, matA, matB, betap, matC, cTp, "
        "CUSPARSE_SPMM_ALG_DEFAULT, buf)' failed with 'stub's status 7'\n"
    )


@in_child(**WITH_STUB)
def test_a_missing_function_is_named_when_it_is_called(mgpu: Mgpu) -> None:
    mgpu.CreateSparseEnv()
    for _ in range(2):
        assert not mgpu.CreateBsr(*empty_bsr(mgpu))
    text = mgpu.stderr()
    assert text.count("lacks the function hipsparseCreateBsr") == 1
    assert text.count("failed with 'the operation is not supported'") == 2


# ---- calls of the library ----


@in_child(**WITH_STUB)
def test_every_function_reaches_its_counterpart(mgpu: Mgpu) -> None:
    (stub, sums), null = begin(mgpu), mgpu.null
    stream = sums.stream
    coo = mgpu.CreateCoo(4, 5, 2, null, null, null, INDEX_32, F64, stream)
    assert (stub.index(1), stub.index(2), stub.type()) == (INDEX_32, 0, F64)
    aos = mgpu.CreateCooAoS(4, 5, 2, null, null, INDEX_32, F64, stream)
    csc = mgpu.CreateCsc(4, 5, 2, null, null, null, 3, 2, F64, stream)
    assert (stub.index(0), stub.index(1)) == (3, 2)
    sums.spmm()
    assert mgpu.SpMVBufferSize(0, sums.csr, sums.vector, sums.vector, F32, stream) == 100
    mgpu.SpMV(0, sums.csr, sums.vector, sums.vector, F32, null, stream)
    assert mgpu.SDDMMBufferSize(0, 0, sums.dense, sums.dense, sums.csr, F32, stream) == 200
    mgpu.SDDMM(0, 0, sums.dense, sums.dense, sums.csr, F32, null, stream)
    product = mgpu.SpGEMMCreateDescr(stream)
    three = (sums.csr, sums.csr, sums.csr, F32)
    assert mgpu.SpGEMMWorkEstimation(product, 0, 0, *three, 0, null, stream) == 300
    assert mgpu.SpGEMMCompute(product, 0, 0, *three, 0, null, stream) == 300
    mgpu.SpGEMMCopy(product, 0, 0, *three, stream)
    sizes = mgpu.ffi.new("int64_t[3]")
    mgpu.SpMatGetSize(coo, sizes, sizes + 1, sizes + 2, stream)
    assert list(sizes) == [4, 5, 2]
    mgpu.SetCsrPointers(sums.csr, null, null, null, stream)
    for matrix in (coo, aos, csc, sums.csr):
        mgpu.DestroySpMat(matrix, stream)
    mgpu.DestroyDnMat(sums.dense, stream)
    mgpu.DestroyDnVec(sums.vector, stream)
    mgpu.SpGEMMDestroyDescr(product, stream)
    mgpu.DestroySparseEnv()
    assert stub.descriptors() == 0 and stub.violations() == 0 and mgpu.stderr() == ""
    for name in ("CreateCoo", "CreateCooAoS", "CreateCsc", "SpMV", "SDDMM", "CsrSetPointers"):
        assert stub.count(name) == 1, name


@in_child(**WITH_STUB, **TELLS, MGPU_RT_STATS="/dev/null")
def test_a_call_of_hip_by_hipsparse_is_the_librarys(mgpu: Mgpu) -> None:
    stub, sums = begin(mgpu)
    at, calls = mgpu.stub_ffi.new("void *[1]"), []

    @stub.ffi.callback("void(void)")
    def inside() -> None:
        calls.append(mgpu.stub.hipMalloc(at, 4096) or mgpu.stub.hipMemset(at[0], 0, 4096))

    stub.lib.sparsestub_inside = inside
    sums.spmm()
    assert calls == [0, 0]  # SpMM_bufferSize, SpMM
    assert mgpu.stats()["other_calls"] == "none"
    assert mgpu.stub.hipFree(at[0]) == 0
    assert mgpu.stats()["other_calls"] == f"hipFree {FIRST}"


#: The program leaves hipSPARSE by siglongjmp, and resets the device after a call of the library.
JUMP = r"""
#include "program.h"
static sigjmp_buf back;
static void jump(void) { siglongjmp(back, 1); }
int main(void) {
    void *sparse = dlopen("libhipsparse.so.0", RTLD_NOW), *stream = mgpuStreamCreate();
    mgpuCreateSparseEnv();
    void *vector = mgpuCreateDnVec(4, NULL, 0, stream);
    *(void (**)(void))dlsym(sparse, "sparsestub_inside") = jump;
    if (sigsetjmp(back, 1) == 0) {
        mgpuSpMV(0, vector, vector, vector, 0, NULL, stream);
        puts("hipSPARSE has returned");
    }
    mgpuStreamDestroy(stream);
    mgpuStreamDestroy(mgpuStreamCreate());
    const int before = (int)hipstub_count("hipStreamCreate");
    hipDeviceReset();
    mgpuStreamDestroy(mgpuStreamCreate()); /* not the stream that the reset has destroyed */
    printf("%d %d\n", (int)hipstub_count("hipStreamCreate") - before, (int)hipstub_misuse());
    _Exit(fflush(stdout));
}
"""


def test_hipsparse_left_by_a_jump_covers_no_call_of_other_code(tmp_path: Path) -> None:
    built = program(tmp_path, JUMP, str(STUB))
    done = run_program(built, **WITH_STUB, **TELLS, HIPSTUB_MODE="record")
    assert done.stdout == "1 0\n", done.stderr


@in_child(**WITH_STUB)
def test_alpha_and_beta_are_ones_of_the_type(mgpu: Mgpu) -> None:
    stub, sums = begin(mgpu)
    ones = {
        F16: 0x3C00,
        BF16: 0x3F80,
        I32: 1,
        F32: int.from_bytes(struct.pack("<f", 1), "little"),
        C64: int.from_bytes(struct.pack("<ff", 1, 0), "little"),
        F64: int.from_bytes(struct.pack("<d", 1), "little"),
    }
    for type, one in ones.items():
        mgpu.SpMV(0, sums.csr, sums.vector, sums.vector, type, mgpu.null, sums.stream)
        assert (stub.alpha(), stub.beta()) == (one, one), type
        assert stub.algorithm() == 0
    # hipSPARSE 5.3 computes wrong products of sparse matrices with beta = 1. C is empty at first,
    # so beta = 0 gives the correct sum.
    product = mgpu.SpGEMMCreateDescr(sums.stream)
    three = (sums.csr, sums.csr, sums.csr, F32)
    mgpu.SpGEMMCompute(product, 0, 0, *three, 0, mgpu.null, sums.stream)
    assert stub.alpha() and not stub.beta()


# ---- streams and environments ----


@in_child(**WITH_STUB)
def test_work_goes_to_the_stream_that_is_passed(mgpu: Mgpu) -> None:
    stub, sums = begin(mgpu)
    other = mgpu.StreamCreate()
    for stream in (sums.stream, other, sums.stream):
        sums.spmm(stream)
        assert stub.stream() == int(mgpu.ffi.cast("uintptr_t", stream))
    assert stub.violations() == 0


@in_child(**WITH_STUB)
def test_a_stream_with_sparse_work_is_not_taken_for_idle(mgpu: Mgpu) -> None:
    """If the library took a stream with sparse work for idle, the stream's next owner would wait
    for this work."""
    _, sums = begin(mgpu)
    asked = mgpu.count("hipStreamQuery")
    sums.spmm()
    mgpu.StreamDestroy(sums.stream)
    mgpu.StreamCreate()
    assert mgpu.count("hipStreamQuery") > asked


@in_child(**WITH_STUB)
def test_a_destroyed_stream_is_refused(mgpu: Mgpu) -> None:
    stub, sums = begin(mgpu)
    mgpu.StreamDestroy(sums.stream)
    mgpu.SpMV(0, sums.csr, sums.vector, sums.vector, F32, mgpu.null, sums.stream)
    assert stub.count("SpMV") == 0
    assert "'hipsparseSetStream(handle, stream)' failed" in mgpu.stderr()


@in_cases({"on": {}, "off": {"MGPU_RT_CACHE": "off"}}, **WITH_STUB)
def test_environments_are_kept_from_program_to_program(mgpu: Mgpu, cache: str) -> None:
    for _ in range(20):
        stub, sums = begin(mgpu)
        sums.spmm()
        mgpu.StreamDestroy(sums.stream)
        mgpu.DestroySparseEnv()
        assert cache == "on" or stub.environments() == 0
    if cache == "on":
        assert stub.count("Create") <= 2 and stub.count("Destroy") == 0
        assert mgpu.lib.mgpu_rt_empty_cache() > 0
    assert stub.environments() == 0 and stub.violations() == 0


@in_child(**WITH_STUB)
def test_many_streams_share_few_environments(mgpu: Mgpu) -> None:
    stub, sums = begin(mgpu)
    for _ in range(40):
        sums.spmm(mgpu.StreamCreate())
    assert stub.environments() == 16 and stub.violations() == 0


@in_child(SPARSESTUB_DELAY="500", **WITH_STUB)
def test_concurrent_threads_do_not_share_an_environment(mgpu: Mgpu) -> None:
    """Threads that use one stream also wait for each other: no two threads may use the library's
    handle at once."""
    stub, sums = begin(mgpu)
    threads = [threading.Thread(target=lambda: [sums.spmm() for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stub.count("SpMM") == 80 and stub.violations() == 0


@in_child(**WITH_STUB)
def test_a_reset_device_leaves_no_environment(mgpu: Mgpu) -> None:
    """The library does not destroy the environment, because the environment's device memory is
    gone."""
    (stub, sums), null = begin(mgpu), mgpu.null
    for _ in range(2):
        mgpu.SpMV(0, sums.csr, sums.vector, sums.vector, F32, null, null)
    assert stub.count("Create") == 1
    mgpu.stub.hipDeviceReset()
    mgpu.SpMV(0, sums.csr, sums.vector, sums.vector, F32, null, null)
    assert stub.count("Create") == 2 and stub.count("Destroy") == 0


# ---- failures ----


@in_child(**WITH_STUB)
def test_a_failure_has_the_line_of_stock(mgpu: Mgpu) -> None:
    stub = SparseStub()
    mgpu.CreateSparseEnv()
    stub.fail("CreateDnVec", INVALID)
    assert not mgpu.CreateDnVec(4, mgpu.null, F32, mgpu.null)
    assert mgpu.stderr() == (
        "hipSPARSE 'hipsparseCreateDnVec(&vec, size, values, dTp)' failed with 'invalid value'\n"
    )
    assert mgpu.ffi.string(mgpu.lib.mgpu_rt_take_error()) == b"hipErrorInvalidValue"


@in_child(**WITH_STUB)
def test_a_sparse_call_without_an_environment_fails_as_stock(mgpu: Mgpu) -> None:
    """Without an environment stock returns a null handle; our library also names the missing call
    in one line."""
    stub = SparseStub()
    sums = Sums(mgpu)
    sums.spmm()
    text = mgpu.stderr()
    assert text.count("failed with 'the library was not initialized'") == 2
    assert text.count("before it has called mgpuCreateSparseEnv") == 1
    mgpu.DestroySparseEnv()
    assert "'hipsparseDestroy(hipsparse_env)' failed" in mgpu.stderr()
    assert stub.violations() == 0


@in_child(**WITH_STUB)
def test_a_lack_of_memory_empties_the_cache_and_tries_again(mgpu: Mgpu) -> None:
    stub = SparseStub()
    stream = mgpu.StreamCreate()
    mgpu.MemFree(mgpu.MemAlloc(1 << 20, stream, False), stream)
    mgpu.StreamSynchronize(stream)
    freed = mgpu.count("hipFree")
    stub.fail("Create", NO_MEMORY)
    mgpu.CreateSparseEnv()
    assert stub.environments() == 1 and mgpu.count("hipFree") > freed
    stub.fail("CreateDnVec", NO_MEMORY)
    assert mgpu.CreateDnVec(4, mgpu.null, F32, stream)
    assert mgpu.stderr() == ""


@in_child(**WITH_STUB)
def test_a_product_without_memory_is_not_begun_again(mgpu: Mgpu) -> None:
    """A product adds to earlier results. After a failure the sum is unknown, so the library does
    not repeat the product."""
    stub, sums = begin(mgpu)
    stub.fail("SpMM", NO_MEMORY)
    sums.spmm()
    assert stub.count("SpMM") == 1
    assert "failed with 'resource allocation failed'" in mgpu.stderr()
