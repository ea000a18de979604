"""Tests that an allocation of other code in the process finds the memory that stock would have
left, and that it waits for nothing. HIP reports the allocation before it runs (HIPSTUB_TELLS)."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.runtime.driver.test_witness import TELLS
from tests.support.child import STUB, Mgpu, in_cases, in_child
from tests.support.known import alloc, program, run_program

MB = 1 << 20
DEVICE = {
    **TELLS,
    "HIPSTUB_MEMORY": str(100 * MB),
    "MGPU_RT_MEMORY_LIMIT": "1",
}
ALONE = {**DEVICE, "policies": ("builtin",)}
#: The program frees FREED bytes. Other code then allocates MUCH, more than the rest.
FREED, MUCH, LITTLE = 60 * MB, 80 * MB, 10 * MB


def free_much(mgpu: Mgpu, stream: object = None) -> None:
    mgpu.MemFree(alloc(mgpu, FREED, stream), stream or mgpu.null)
    assert mgpu.count("hipFree") == 0


def is_given(mgpu: Mgpu, size: int = MUCH) -> bool:
    """Returns whether other code gets memory of this size, and frees it again."""
    place = mgpu.stub_ffi.new("void **")
    if mgpu.stub.hipMalloc(place, size):
        return False
    assert mgpu.stub.hipFree(place[0]) == 0
    return True


def kept(mgpu: Mgpu) -> int:
    """Returns how many bytes the library keeps. Other code holds none."""
    return mgpu.stub.hipstub_live(b"bytes") // MB * MB


@in_child(**ALONE)
def test_other_code_gets_what_the_program_has_freed(mgpu: Mgpu) -> None:
    for _ in range(2):  # the first call of other code, and much later
        free_much(mgpu)
        assert is_given(mgpu)
        assert kept(mgpu) == 0
        mgpu.stub.hipstub_reset()
    assert mgpu.stub.hipstub_misuse() == 0
    assert mgpu.stderr() == ""


@in_child(**ALONE)
def test_other_code_sees_what_the_program_has_freed(mgpu: Mgpu) -> None:
    sizes = [mgpu.stub_ffi.new("size_t *") for _ in range(2)]
    free_much(mgpu)
    assert mgpu.stub.hipMemGetInfo(*sizes) == 0
    assert sizes[0][0] == sizes[1][0]


@in_child(**ALONE)
def test_nothing_is_returned_while_the_device_has_enough(mgpu: Mgpu) -> None:
    mgpu.MemFree(alloc(mgpu, LITTLE), mgpu.null)
    assert is_given(mgpu, LITTLE)
    assert kept(mgpu) == LITTLE
    before = mgpu.count("hipMalloc")
    assert alloc(mgpu, LITTLE) != mgpu.null
    assert mgpu.count("hipMalloc") == before


@in_child(**ALONE)
def test_other_calls_of_other_code_ask_nothing(mgpu: Mgpu) -> None:
    free_much(mgpu)
    place, stream = mgpu.stub_ffi.new("void **"), mgpu.for_stub(mgpu.external_stream())
    assert mgpu.stub.hipEventCreate(place) == 0
    before = mgpu.count("hipMemGetInfo")
    for _ in range(3):
        assert mgpu.stub.hipEventRecord(place[0], stream) == 0
    assert mgpu.count("hipMemGetInfo") == before


@in_cases(("ours", "external"), **DEVICE, HIPSTUB_ASYNC="held")
def test_no_work_of_the_program_is_waited_for(mgpu: Mgpu, whose: str) -> None:
    stream = mgpu.StreamCreate()  # HIP reports no call from before the library's first call
    stream = stream if whose == "ours" else mgpu.external_stream()
    block = alloc(mgpu, MB, stream)
    free_much(mgpu, stream)
    mgpu.Memset32(block, 1, 64, stream)
    assert not is_given(mgpu)
    assert mgpu.pending(stream) == 1
    mgpu.StreamSynchronize(stream)
    assert is_given(mgpu)


WAITS = ("nobody", "this thread", "another thread", "this thread, beside another's work")


@in_cases(WAITS, **DEVICE, HIPSTUB_ASYNC="held")
def test_no_work_of_other_code_is_waited_for(mgpu: Mgpu, who: str) -> None:
    """The library knows of a wait for the device if the thread that allocates has made the wait."""
    free_much(mgpu)
    block, stream = (
        mgpu.for_stub(mgpu.by_hip(*made))
        for made in (("hipHostMalloc", MB, 0), ("hipStreamCreate",))
    )
    stub = mgpu.stub

    def run(function: object, *arguments: object, thread: bool) -> None:
        results: list[int] = []
        target = threading.Thread(target=lambda: results.append(function(*arguments)))  # type: ignore
        if thread:
            target.start()
            target.join()
        else:
            target.run()
        assert results == [0]

    run(stub.hipMemsetAsync, block, 1, MB, stream, thread=False)
    if "beside" in who:
        run(stub.hipMemsetAsync, block, 1, MB, stream, thread=True)
    if who != "nobody":
        run(stub.hipDeviceSynchronize, thread=who == "another thread")
    assert is_given(mgpu) == (who == "this thread")
    assert stub.hipstub_pending(stream) == (who == "nobody")


@in_child(**ALONE, HIPSTUB_ASYNC="held", MGPU_RT_EXCLUSIVE="on")
def test_work_from_before_the_first_call_is_not_waited_for(mgpu: Mgpu) -> None:
    """With the user's word HIP reports calls even if HIP was in use before."""
    memory = mgpu.for_stub(mgpu.by_hip("hipHostMalloc", MB, 0))
    stream = mgpu.for_stub(mgpu.by_hip("hipStreamCreate"))
    assert mgpu.stub.hipMemsetAsync(memory, 1, MB, stream) == 0
    own = mgpu.StreamCreate()
    mgpu.MemFree(alloc(mgpu, FREED, own), own)
    assert not is_given(mgpu)
    assert mgpu.stub.hipstub_pending(stream) == 1


@in_child(**ALONE, HIPSTUB_DEVICES="2", HIPSTUB_ASYNC="held")
def test_a_wait_for_another_device_proves_nothing(mgpu: Mgpu) -> None:
    stub = mgpu.stub
    free_much(mgpu)
    memory = mgpu.for_stub(mgpu.by_hip("hipHostMalloc", MB, 0))
    stream = mgpu.for_stub(mgpu.by_hip("hipStreamCreate"))
    assert stub.hipMemsetAsync(memory, 1, MB, stream) == 0
    assert stub.hipSetDevice(1) == stub.hipDeviceSynchronize() == stub.hipSetDevice(0) == 0
    assert not is_given(mgpu)
    assert stub.hipstub_pending(stream) == 1


@in_child(**ALONE, HIPSTUB_DEVICES="2")
def test_memory_of_another_device_stays(mgpu: Mgpu) -> None:
    free_much(mgpu)
    assert mgpu.stub.hipSetDevice(1) == 0
    mgpu.MemFree(alloc(mgpu, FREED), mgpu.null)
    before = mgpu.stub.hipstub_live(b"bytes")
    assert is_given(mgpu)
    assert before - mgpu.stub.hipstub_live(b"bytes") == FREED


#: The processor stops after each instruction of an allocation and a free. In each round, a signal
#: handler lets other code allocate at one instruction: the first, the second, and so on. Each
#: allocation has to return idle memory: the stub's fast mode says that the device has little.
INTERRUPTED = r"""
#include "program.h"
#include "trap_flag.h"
int hipMalloc(void **memory, size_t bytes);
int mgpu_rt_empty_cache(void);
enum { KIB = 1024 };
static int steps, wanted;
static void *place;
static void interrupt(int number) {
    (void)number;
    if (++steps == wanted)
        hipMalloc(&place, KIB);
}
int main(void) {
    void *stream = mgpuStreamCreate();
    signal(SIGTRAP, interrupt);
    alarm(60);
    for (wanted = 1, steps = 1; steps >= wanted || wanted == 1; wanted += 13) {
        steps = 0;
        mgpu_rt_empty_cache();
        mgpuMemFree(mgpuMemAlloc(1 << 20, stream, false), stream);
        set_trap_flag(true);
        mgpuMemFree(mgpuMemAlloc(2 << 20, stream, false), stream);
        set_trap_flag(false);
    }
    printf("%d\n", wanted);
    fflush(stdout);
    _Exit(0);
}
"""


def test_a_signal_handler_that_allocates_never_waits_for_its_thread(tmp_path: Path) -> None:
    built = program(tmp_path, INTERRUPTED, str(STUB))
    memory = {"HIPSTUB_MEMORY": "1", "MGPU_RT_MEMORY_LIMIT": "8G", "HIPSTUB_MODE": "fast"}
    done = run_program(built, **TELLS, **memory)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1000
