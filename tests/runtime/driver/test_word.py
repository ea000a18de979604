"""Tests that a call of other code, of which HIP reports, ends MGPU_RT_EXCLUSIVE=on before the call
runs.

The stub reports calls with HIPSTUB_TELLS=1, as AMD's HIP does from 5.3 on. With "held" the stub
does no work before somebody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.runtime.driver.test_witness import (
    CASES,
    KIB,
    PROBE,
    TELLS,
    Loop,
    call_others,
)
from tests.support.child import Mgpu, in_cases, in_child
from tests.support.known import forum

WORD = {**TELLS, "MGPU_RT_EXCLUSIVE": "on"}
LAZY = {**WORD, "MGPU_RT_SYNC": "lazy", "HIPSTUB_ASYNC": "held"}
#: The line that names the call.
LINE = (
    "mgpu_rt: other code in this process called {}, so MGPU_RT_EXCLUSIVE=on has ended: from now on "
    "the library queries HIP, postpones no wait, and keeps no memory registered\n"
)
#: The words of the statistics that follow the name of the call.
ENDED = "was the first, and ended MGPU_RT_EXCLUSIVE=on"


def begin(mgpu: Mgpu) -> Loop:
    """Returns a loop whose caches are full, in a library that asks HIP nothing."""
    loop = Loop(mgpu)
    loop.run(3)
    before = mgpu.count(PROBE)
    assert loop.is_sole_user()
    assert mgpu.count(PROBE) == before
    return loop


@in_cases(CASES, **WORD)
def test_a_call_of_other_code_ends_the_word(mgpu: Mgpu, case: str) -> None:
    loop = begin(mgpu)
    name = call_others(mgpu, case)
    assert not loop.is_sole_user()
    assert loop.is_cached()
    call_others(mgpu, "hipEventCreate")
    assert mgpu.stderr() == LINE.format(name)
    assert mgpu.stub.hipstub_registrations() == 1


@in_child(**WORD)
def test_the_word_covers_what_came_before_the_library(mgpu: Mgpu) -> None:
    """HIP reports only what comes after the registration."""
    mgpu.by_hip("hipMalloc", KIB)
    begin(mgpu)
    assert mgpu.stderr() == ""


@in_child(**WORD)
def test_calls_that_change_nothing_do_not_end_the_word(mgpu: Mgpu) -> None:
    loop = begin(mgpu)
    stub, number = mgpu.stub, mgpu.stub_ffi.new("int *")
    for call in (
        *(lambda: stub.hipGetDevice(number), lambda: stub.hipGetDeviceCount(number)),
        *(lambda: stub.hipSetDevice(0), lambda: stub.hipRuntimeGetVersion(number)),
        *(stub.hipGetLastError, stub.hipPeekAtLastError, lambda: stub.hipInit(0)),
    ):
        call()
        assert loop.is_sole_user()
    assert mgpu.stderr() == ""


@in_child(**WORD, MGPU_RT_STATS="/dev/null")
def test_statistics_name_the_call_that_has_ended_the_word(mgpu: Mgpu) -> None:
    begin(mgpu)
    assert mgpu.stats()["other_calls"] == "none"
    mgpu.by_hip("hipMalloc", KIB)
    assert mgpu.stats()["other_calls"] == f"hipMalloc {ENDED}"


# ---- postponed waits ----


@in_cases(CASES, **LAZY)
def test_a_postponed_wait_is_done_before_other_code_calls_hip(mgpu: Mgpu, case: str) -> None:
    stream = mgpu.StreamCreate()
    mgpu.launch(forum(mgpu), stream)
    mgpu.StreamSynchronize(stream)
    assert mgpu.pending(stream) == 1
    name = call_others(mgpu, case)
    assert mgpu.pending(stream) == 0
    mgpu.launch(forum(mgpu), stream)
    mgpu.StreamSynchronize(stream)
    assert mgpu.pending(stream) == 0
    assert mgpu.stderr() == LINE.format(name)


@in_child(**LAZY)
def test_a_call_of_other_code_waits_for_nothing_if_no_wait_is_postponed(mgpu: Mgpu) -> None:
    """The kernel may wait for other code, so other code must not wait for the kernel."""
    stream = mgpu.StreamCreate()
    mgpu.launch(forum(mgpu), stream)
    mgpu.by_hip("hipMalloc", KIB)
    assert mgpu.pending(stream) == 1


# ---- registered memory ----


def kept(mgpu: Mgpu):
    """Returns memory that stays registered after its unregister."""
    memory = mgpu.ffi.new("char[]", KIB)
    mgpu.MemHostRegister(memory, KIB)
    mgpu.MemHostUnregister(memory)
    assert mgpu.stub.hipstub_live(b"registrations") == 1
    return memory


def look(mgpu: Mgpu, memory: object) -> int:
    """Returns the kind of memory that HIP finds: 0 for memory that is not registered."""
    found = mgpu.stub_ffi.new("int[64]")
    at = mgpu.stub_ffi.cast("hipPointerAttribute_t *", found)
    assert mgpu.stub.hipPointerGetAttributes(at, memory) == 0
    return found[0]


#: Calls of other code for memory that the program has unregistered. HIP answers as if the memory
#: had never been registered.
LOOKS: dict[str, Callable] = {
    "hipHostRegister": lambda mgpu, memory: mgpu.stub.hipHostRegister(memory, KIB, 0),
    "hipHostUnregister": lambda mgpu, memory: mgpu.stub.hipHostUnregister(memory) == 0,
    "hipMalloc": lambda mgpu, memory: mgpu.stub.hipMalloc(mgpu.stub_ffi.new("void **"), KIB),
    "hipPointerGetAttributes": lambda mgpu, memory: look(mgpu, memory),
}


@in_cases(tuple(LOOKS), **WORD)
def test_other_code_finds_nothing_registered_that_stock_would_not_have(
    mgpu: Mgpu, case: str
) -> None:
    memory = kept(mgpu)
    assert LOOKS[case](mgpu, mgpu.for_stub(memory)) == 0
    assert mgpu.stub.hipstub_live(b"registrations") == (case == "hipHostRegister")
    assert mgpu.stderr() == LINE.format(case)
    memory = mgpu.ffi.new("char[]", KIB)
    mgpu.MemHostRegister(memory, KIB)
    mgpu.MemHostUnregister(memory)
    assert mgpu.stub.hipstub_live(b"registrations") == (case == "hipHostRegister")


@in_cases({"auto": TELLS, "on": WORD})
def test_a_question_about_an_address_ends_the_word_only(mgpu: Mgpu, case: str) -> None:
    """By default no memory stays registered, so the answer is that of stock."""
    Loop(mgpu).run(3)
    memory = mgpu.ffi.new("char[]", KIB)
    look(mgpu, mgpu.for_stub(memory))
    assert Loop(mgpu).is_sole_user() == (case == "auto")
