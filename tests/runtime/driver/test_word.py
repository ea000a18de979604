"""Tests that a call of other code, of which HIP reports, ends MGPU_RT_EXCLUSIVE=on before the call
runs.

The stub reports calls with HIPSTUB_TELLS=1, as AMD's HIP does from 5.3 on. With "held" the stub
does no work before somebody waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tests.runtime.driver.test_witness import (
    CASES,
    FIRST,
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
#: The words of the statistics that follow the name of the call. The report's advice looks for them.
ENDED = f"{FIRST}, and ended MGPU_RT_EXCLUSIVE=on"
OVERRIDE_ENDED = (
    "unknown, because this HIP does not report calls, so an override ended MGPU_RT_EXCLUSIVE=on"
)


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
def test_the_word_covers_calls_before_the_library_and_calls_that_change_nothing(mgpu: Mgpu) -> None:
    """HIP reports only what comes after the registration."""
    mgpu.by_hip("hipMalloc", KIB)
    loop = begin(mgpu)
    assert mgpu.stub.hipSetDevice(0) == 0
    assert loop.is_sole_user()
    assert mgpu.stderr() == ""


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


# ---- overrides ----


def overridden(mgpu: Mgpu, call: Callable[[], object], function: str = "mgpuEventCreate") -> object:
    """Replaces a function by one that first makes another call. Returns what must stay alive."""
    own = mgpu.ffi.cast("void *(*)(void)", mgpu.lib.mgpu_rt_native(function.encode()))

    @mgpu.ffi.callback("void *(void)")
    def answer() -> object:
        call()
        return own()

    instead = mgpu.ffi.cast("mgpu_rt_function", answer)
    assert mgpu.lib.mgpu_rt_intercept(function.encode(), instead) == 0
    return answer


def lose_reports(mgpu: Mgpu) -> None:
    """A profiler takes the reports."""
    mgpu.stub.hipRegisterTracerCallback(mgpu.stub_ffi.NULL)


@in_cases(("before", "after"), **WORD)
def test_an_override_ends_nothing_by_itself(mgpu: Mgpu, case: str) -> None:
    """The override is set before the library's first call, or after."""
    if case == "before":
        mgpu.passes_on("mgpuMemset16")
    loop = Loop(mgpu)
    loop.run(3)
    memory = kept(mgpu)
    mgpu.passes_on("mgpuEventCreate")
    mgpu.EventCreate()
    assert mgpu.stub.hipstub_live(b"registrations") == 1
    assert loop.is_sole_user()
    mgpu.MemHostRegister(memory, KIB)
    assert mgpu.count("hipHostRegister") == 1
    assert mgpu.stderr() == ""


@in_child(**WORD, MGPU_RT_STATS="/dev/null")
def test_an_overrides_call_of_hip_ends_the_word_before_it_runs(mgpu: Mgpu) -> None:
    memory, found = kept(mgpu), []
    override = overridden(mgpu, lambda: found.append(look(mgpu, mgpu.for_stub(memory))))
    assert mgpu.stub.hipstub_live(b"registrations") == 1
    mgpu.EventCreate()
    assert (found, mgpu.stub.hipstub_live(b"registrations")) == ([0], 0)
    assert mgpu.stderr() == LINE.format("hipPointerGetAttributes")
    assert mgpu.stats()["other_calls"] == f"hipPointerGetAttributes {ENDED}"
    del override


@in_child(**LAZY)
def test_a_postponed_wait_is_done_before_an_override_calls_hip(mgpu: Mgpu) -> None:
    stream, pending = mgpu.StreamCreate(), []

    def call() -> None:
        mgpu.by_hip("hipMalloc", KIB)
        pending.append(mgpu.pending(stream))

    override = overridden(mgpu, call)
    mgpu.launch(forum(mgpu), stream)
    mgpu.StreamSynchronize(stream)
    assert mgpu.pending(stream) == 1
    mgpu.EventCreate()
    assert pending == [0]
    del override


#: A profiler or a graph ends HIP's reports. This happens before the override is set, or after. Only
#: a profiler comes after: while an override is set, the library builds no graph.
LOSSES = ("profiler before", "profiler after", "graph before")


@in_cases(LOSSES, **WORD, MGPU_RT_STATS="/dev/null")
def test_an_override_ends_the_word_when_hip_no_longer_reports_calls(mgpu: Mgpu, case: str) -> None:
    what, when = case.split()
    memory = kept(mgpu)
    found: list[int] = []
    if what == "graph":
        assert mgpu.lib.mgpu_rt_graph_begin() == 0
        mgpu.lib.mgpu_rt_graph_destroy(mgpu.lib.mgpu_rt_graph_end())
    elif when == "before":
        lose_reports(mgpu)
    assert mgpu.stub.hipstub_live(b"registrations") == 1  # the word stands unchecked
    override = overridden(mgpu, lambda: found.append(look(mgpu, mgpu.for_stub(memory))))
    if when == "after":
        lose_reports(mgpu)
    mgpu.EventCreate()
    assert (found, mgpu.stub.hipstub_live(b"registrations")) == ([0], 0)
    said = mgpu.stats()["other_calls"]
    assert said.startswith("unknown, because ")
    assert said.endswith(", so an override ended MGPU_RT_EXCLUSIVE=on")
    assert not Loop(mgpu).is_sole_user()
    del override


TWO_WAIT = {**LAZY, "HIPSTUB_ASYNC": "held2"}  # the work is done once two threads wait for it


def postponed(mgpu: Mgpu) -> object:
    """Returns a stream with a postponed wait."""
    stream = mgpu.StreamCreate()
    mgpu.launch(forum(mgpu), stream)
    mgpu.StreamSynchronize(stream)
    assert mgpu.pending(stream) == 1
    return stream


def settles(mgpu: Mgpu, stream: object, call: Callable[[], object]) -> threading.Thread:
    """Returns a thread whose call has ended the word, and waits for the stream."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    while mgpu.stub.hipstub_waiters(mgpu.for_stub(stream)) == 0:
        time.sleep(0.001)
    return thread


@in_child(**TWO_WAIT | {"HIPSTUB_TELLS": "0"})
def test_an_override_answers_no_call_before_the_word_has_ended(mgpu: Mgpu) -> None:
    """One thread sets an override, which ends the word. Another thread makes the call then."""
    stream, pending, overrides = postponed(mgpu), [], []

    def override() -> None:
        overrides.append(overridden(mgpu, lambda: pending.append(mgpu.pending(stream))))

    thread = settles(mgpu, stream, override)
    mgpu.EventCreate()
    assert pending == []
    mgpu.stub.hipStreamSynchronize(mgpu.for_stub(stream))
    thread.join()
    mgpu.EventCreate()
    assert pending == [0]


@in_child(**TWO_WAIT)
def test_an_override_waits_for_the_end_that_another_thread_makes(mgpu: Mgpu) -> None:
    """A profiler takes the reports. Then two threads call the function that has an override."""
    pending: list[int] = []
    stream = mgpu.StreamCreate()
    override = overridden(mgpu, lambda: pending.append(mgpu.pending(stream)))
    mgpu.launch(forum(mgpu), stream)
    mgpu.StreamSynchronize(stream)
    lose_reports(mgpu)
    thread = settles(mgpu, stream, mgpu.EventCreate)
    mgpu.EventCreate()
    mgpu.stub.hipStreamSynchronize(mgpu.for_stub(stream))
    thread.join()
    assert pending == [0, 0]
    del override


@in_child(**WORD | {"HIPSTUB_TELLS": "0"})
def test_a_function_for_the_end_of_the_process_ends_nothing(mgpu: Mgpu) -> None:
    """Nothing answers a call in place of the library."""
    kept(mgpu)

    @mgpu.ffi.callback("void(void)")
    def end() -> None:
        pass

    assert mgpu.lib.mgpu_rt_intercept(b"end", end) == 0
    mgpu.EventCreate()
    assert mgpu.stub.hipstub_live(b"registrations") == 1
    assert mgpu.lib.mgpu_rt_intercept(b"end", mgpu.ffi.NULL) == 0


@in_child(**WORD | {"HIPSTUB_VERSION": "60443484"})
def test_the_library_leaves_the_last_error_that_an_override_reads(mgpu: Mgpu) -> None:
    errors: list[int] = []
    begin(mgpu)
    override = overridden(mgpu, lambda: errors.append(mgpu.stub.hipGetLastError()))
    error = mgpu.stub.hipSetDevice(5)  # a call that leaves an error, and changes nothing
    mgpu.EventCreate()
    assert errors == [error] and error != 0
    del override
