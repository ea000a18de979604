"""Tests which caller may hold a cached event, and when a cached event ends (states:
shared/types.h)."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.support.child import Mgpu, in_child
from tests.support.images import code_object
from tests.support.known import program, run_program

FORUM_KERNEL = "test_func"

#: A thread asks HIP about its cached event, and main returns before HIP has answered.
EXIT = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void *mgpuEventCreate(void);
void mgpuEventDestroy(void *);
static pthread_t thread;
static uint64_t (*count)(const char *);
static int (*delay)(const char *);
static void *work(void *unused) {
    mgpuEventDestroy(mgpuEventCreate());
    delay("hipEventQuery:300000");
    for (int i = 0; i < 3; i++)
        mgpuEventDestroy(mgpuEventCreate());
    return unused;
}
static void join(void) {
    pthread_join(thread, NULL);
    puts("joined");
}
int main(void) {
    void *hip = dlopen(getenv("MGPU_RT_HIP"), RTLD_NOW);
    *(void **)&count = dlsym(hip, "hipstub_count");
    *(void **)&delay = dlsym(hip, "hipstub_set_delay");
    atexit(join); /* after the library's handler, which is registered at the first call */
    pthread_create(&thread, NULL, work, NULL);
    while (count("hipEventQuery") == 0)
        usleep(1000);
    return 0;
}
"""


def test_main_returns_while_a_thread_takes_its_spare_event(tmp_path: Path) -> None:
    ran = run_program(program(tmp_path, EXIT), MGPU_RT_MANAGER="off")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "joined\n", "")


@in_child()
def test_an_event_that_is_destroyed_twice_serves_one_owner(mgpu: Mgpu) -> None:
    event = mgpu.EventCreate()
    mgpu.EventDestroy(event)
    assert mgpu.stderr() == ""
    mgpu.EventDestroy(event)
    assert "hipEventDestroy(event)" in mgpu.stderr()
    assert mgpu.EventCreate() != mgpu.EventCreate()


@in_child()
def test_an_event_that_hip_destroyed_is_forgotten(mgpu: Mgpu) -> None:
    """mgpu_rt_empty_cache has destroyed the event in HIP, so the library passes a second destroy on
    to HIP."""
    event = mgpu.EventCreate()
    mgpu.EventDestroy(event)
    assert mgpu.lib.mgpu_rt_empty_cache() == 1
    destroyed = mgpu.count("hipEventDestroy")
    mgpu.EventDestroy(event)
    assert mgpu.count("hipEventDestroy") == destroyed + 1
    assert mgpu.EventCreate() != event


@in_child(HIPSTUB_REUSE="1")
def test_a_slot_serves_no_event_that_came_back_to_another_thread(mgpu: Mgpu) -> None:
    """After a reset, HIP gives the event's handle to a second thread, while the old slot of the
    first thread still refers to the handle."""
    mgpu.StreamDestroy(mgpu.StreamCreate())
    spare = mgpu.EventCreate()
    mgpu.EventDestroy(spare)
    mgpu.stub.hipDeviceReset()
    mgpu.StreamDestroy(mgpu.StreamCreate())  # notices it
    others: list = []
    thread = threading.Thread(target=lambda: others.append(mgpu.EventCreate()))
    thread.start()
    thread.join()
    assert others == [spare]
    assert mgpu.EventCreate() != spare


@in_child(HIPSTUB_ASYNC="held", MGPU_RT_EXCLUSIVE="on")
def test_a_recorded_reused_event_is_waited_for(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    mgpu.EventDestroy(mgpu.EventCreate())
    event = mgpu.EventCreate()
    mgpu.EventRecord(event, stream)
    mgpu.EventSynchronize(event)
    assert mgpu.count("hipEventSynchronize") == 1


@in_child(HIPSTUB_ASYNC="held")
def test_an_event_at_work_is_reused_once_it_is_over(mgpu: Mgpu) -> None:
    stream = mgpu.StreamCreate()
    event = mgpu.EventCreate()
    mgpu.EventRecord(event, stream)
    mgpu.EventDestroy(event)
    assert mgpu.EventCreate() != event
    mgpu.StreamSynchronize(stream)
    assert mgpu.EventCreate() == event


@in_child(HIPSTUB_VERSION="70253211")
def test_hip_7_is_never_asked_about_an_event(mgpu: Mgpu) -> None:
    """HIP 7 reads the stream on which the event was recorded, and the program may have destroyed
    that stream."""
    stream = mgpu.StreamCreate()
    for event in [mgpu.EventCreate() for _ in range(20)]:  # more than a thread's slots
        mgpu.EventRecord(event, stream)
        mgpu.EventDestroy(event)
    mgpu.EventDestroy(mgpu.EventCreate())
    assert mgpu.count("hipEventQuery") == 0
    assert mgpu.count("hipEventDestroy") == 21


@in_child(HIPSTUB_VERSION="70253211", MGPU_RT_EXCLUSIVE="on")
def test_hip_7s_events_are_kept_where_hip_need_not_be_asked(mgpu: Mgpu) -> None:
    event = mgpu.EventCreate()
    mgpu.EventDestroy(event)
    assert mgpu.EventCreate() == event
    assert mgpu.count("hipEventQuery") == 0


@in_child(HIPSTUB_VERSION="70253211", MGPU_RT_EXCLUSIVE="on")
def test_hip_7_is_not_asked_about_an_event_once_an_override_may_call_it(mgpu: Mgpu) -> None:
    """An override may have recorded the event on a stream, and may have destroyed the stream
    since."""
    mgpu.EventDestroy(mgpu.EventCreate())
    mgpu.passes_on("mgpuMemset16")
    mgpu.EventDestroy(mgpu.EventCreate())
    mgpu.EventCreate()
    assert mgpu.count("hipEventQuery") == 0
    assert mgpu.count("hipEventCreateWithFlags") == 3


@in_child(HIPSTUB_REUSE="1")
def test_a_reset_makes_events_unknown(mgpu: Mgpu) -> None:
    """After the reset HIP gives the cached handle to an event that the program creates by calling
    HIP. The library does not hand out the program's event."""
    mgpu.StreamDestroy(mgpu.StreamCreate())
    spare = mgpu.EventCreate()
    mgpu.EventDestroy(spare)
    mgpu.stub.hipDeviceReset()
    mgpu.StreamDestroy(mgpu.StreamCreate())  # notices it
    own = mgpu.stub_ffi.new("void **")
    mgpu.stub.hipEventCreateWithFlags(own, 2)
    assert mgpu.from_stub(own[0]) == spare
    assert mgpu.EventCreate() != spare


@in_child(HIPSTUB_ASYNC="held")
def test_an_event_that_the_program_records_by_hip_itself_passes_no_mark(mgpu: Mgpu) -> None:
    """By calling HIP, the program has recorded the event again, on an idle stream. So HIP waits
    only for the idle stream, while the first stream has pending work."""
    function = mgpu.function(mgpu.load(mgpu.image(code_object("forum"))), FORUM_KERNEL)
    first, second, third = (mgpu.StreamCreate() for _ in range(3))
    block = mgpu.MemAlloc(4096, first, False)
    mgpu.launch(function, first)
    mgpu.MemFree(block, first)
    event = mgpu.EventCreate()
    mgpu.EventRecord(event, first)
    assert mgpu.stub.hipEventRecord(mgpu.for_stub(event), mgpu.for_stub(second)) == 0
    mgpu.EventSynchronize(event)
    assert mgpu.stub.hipstub_pending(first) > 0
    assert mgpu.MemAlloc(4096, third, False) != block
    mgpu.StreamSynchronize(first)
    assert mgpu.MemAlloc(4096, third, False) == block


@in_child(HIPSTUB_REUSE="1")
def test_hip_judges_an_event_that_a_reset_destroyed(mgpu: Mgpu) -> None:
    """A stream and an event of the program have the handles that two objects of the library had
    before the reset. The library detects the reset when it looks up the stream, after it has looked
    up the event."""
    event, stream = mgpu.EventCreate(), mgpu.StreamCreate()
    mgpu.StreamDestroy(stream)
    mgpu.stub.hipDeviceReset()
    own = mgpu.stub_ffi.new("void *[2]")
    mgpu.stub.hipEventCreateWithFlags(own, 2)
    mgpu.stub.hipStreamCreate(own + 1)
    assert [mgpu.from_stub(each) for each in own] == [event, stream]
    mgpu.EventRecord(event, stream)
    assert mgpu.stderr() == ""
    assert mgpu.count("hipEventRecord") == 1
