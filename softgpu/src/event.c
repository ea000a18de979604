/* Implements the driver's events: a thread sleeps on an event if polling a signal has taken too
 * long.
 *
 * Every kernel raises an event, so raising takes no lock if no thread sleeps on the event. */
#include "isa/exec.h"
#include "memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* The real driver's limit is also 4096 events. If ROCr gets no event for a signal, ROCr polls the
 * signal. */
enum { MAX_EVENTS = 4096 };

struct slot {
    HsaEvent *event; /* NULL: free. `lock` guards `event`. */
    bool manual_reset;
    _Atomic bool signaled;
    _Atomic unsigned sleepers;
    uint64_t wakes; /* how many times the event has woken its sleepers. `lock` guards `wakes`. */
};

static struct slot slots[MAX_EVENTS];
/* Signals with an event point to these mailboxes. A kernel first writes the event's id to the
 * mailbox, then sends an interrupt with the id's low byte. A mailbox of 0 means that no kernel has
 * written since the last check. */
static _Alignas(SOFTGPU_PAGE) _Atomic uint64_t mailboxes[MAX_EVENTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t raised;

__attribute__((constructor)) static void use_monotonic_clock(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&raised, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Kernels access the mailboxes like other memory, through a mapping that the first event creates.
 */
static void map_mailboxes(void) {
    static struct softgpu_mapping mapping = {.size = sizeof mailboxes};
    mapping.va = (uintptr_t)mailboxes;
    mapping.host = (char *)mailboxes;
    softgpu_address_space_lock(true);
    if (!softgpu_mapping_add(&mapping))
        softgpu_say("no memory for the bookkeeping of events: kernels cannot set signals");
    softgpu_address_space_unlock();
}

static HsaEvent *make_event(uint32_t id, const HsaEventDescriptor *descriptor) {
    HsaEvent *event = calloc(1, sizeof *event);
    if (!event)
        return NULL;
    event->EventId = id;
    event->EventData.EventType = descriptor->EventType;
    event->EventData.EventData.SyncVar = descriptor->SyncVar;
    event->EventData.HWData1 = id;
    event->EventData.HWData2 = (uintptr_t)&mailboxes[id];
    atomic_store(&mailboxes[id], 0);
    event->EventData.HWData3 = id;
    return event;
}

/* Ids begin at 1, because 0 in a signal means that the signal has no event. */
static uint32_t find_free_slot(void) {
    static uint32_t last;
    for (uint32_t tried = 1; tried < MAX_EVENTS; tried++) {
        last = last + 1 < MAX_EVENTS ? last + 1 : 1;
        if (!slots[last].event)
            return last;
    }
    return 0;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtCreateEvent(HsaEventDescriptor *descriptor, bool manual_reset,
                                               bool signaled, HsaEvent **result) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    SOFTGPU_REFUSE_AFTER_FORK();
    pthread_once(&once, map_mailboxes);
    pthread_mutex_lock(&lock);
    uint32_t id = find_free_slot();
    HsaEvent *event = id ? make_event(id, descriptor) : NULL;
    if (event) {
        slots[id].event = event;
        slots[id].manual_reset = manual_reset;
        atomic_store(&slots[id].signaled, signaled);
    }
    pthread_mutex_unlock(&lock);
    if (!event)
        return HSAKMT_STATUS_OUT_OF_RESOURCES;
    *result = event;
    return HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtDestroyEvent(HsaEvent *event) {
    SOFTGPU_REFUSE_AFTER_FORK();
    if (!event)
        return HSAKMT_STATUS_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    slots[event->EventId].event = NULL;
    pthread_mutex_unlock(&lock);
    free(event);
    return HSAKMT_STATUS_SUCCESS;
}

void softgpu_raise_event(uint32_t id) {
    if (id == 0 || id >= MAX_EVENTS)
        return;
    /* The accesses to `signaled` and `sleepers` are sequentially consistent. A sleeper first
     * increments `sleepers`, then reads `signaled`. If this thread misses a new sleeper, the
     * sleeper therefore sees that `signaled` is set. */
    atomic_store(&slots[id].signaled, true);
    if (atomic_load(&slots[id].sleepers) == 0)
        return;
    pthread_mutex_lock(&lock);
    if (atomic_load(&slots[id].sleepers) != 0) {
        slots[id].wakes++;
        if (!slots[id].manual_reset)
            atomic_store(&slots[id].signaled, false);
        pthread_cond_broadcast(&raised);
    }
    pthread_mutex_unlock(&lock);
}

void softgpu_interrupt(uint32_t event) {
    enum { CARRIED = 256 };
    for (uint32_t id = event % CARRIED; id < MAX_EVENTS; id += CARRIED)
        if (atomic_exchange(&mailboxes[id], 0))
            softgpu_raise_event(id);
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtSetEvent(HsaEvent *event) {
    SOFTGPU_REFUSE_AFTER_FORK();
    if (!event)
        return HSAKMT_STATUS_INVALID_HANDLE;
    softgpu_raise_event(event->EventId);
    return HSAKMT_STATUS_SUCCESS;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtResetEvent(HsaEvent *event) {
    SOFTGPU_REFUSE_AFTER_FORK();
    if (!event)
        return HSAKMT_STATUS_INVALID_HANDLE;
    atomic_store(&slots[event->EventId].signaled, false);
    return HSAKMT_STATUS_SUCCESS;
}

/* Consumes the events if they satisfy the caller's wait. An event satisfies the wait if the event
 * is raised, or has woken its sleepers since the caller stored `wakes`. As in the driver, an
 * auto-reset event wakes all its sleepers. */
static bool take(HsaEvent *events[], const uint64_t *wakes, HSAuint32 count, bool all) {
    HSAuint32 happened = 0;
    for (HSAuint32 i = 0; i < count; i++) {
        const struct slot *slot = &slots[events[i]->EventId];
        happened += atomic_load(&slot->signaled) || slot->wakes != wakes[i];
    }
    if (all ? happened < count : happened == 0)
        return false;
    for (HSAuint32 i = 0; i < count; i++)
        if (!slots[events[i]->EventId].manual_reset)
            atomic_store(&slots[events[i]->EventId].signaled, false);
    return true;
}

static void count_sleeper(HsaEvent *events[], HSAuint32 count, unsigned change) {
    for (HSAuint32 i = 0; i < count; i++)
        atomic_fetch_add(&slots[events[i]->EventId].sleepers, change);
}

static struct timespec deadline_after(HSAuint32 milliseconds) {
    uint64_t end = softgpu_now() + milliseconds * UINT64_C(1000000);
    return (struct timespec){.tv_sec = (time_t)(end / 1000000000),
                             .tv_nsec = (long)(end % 1000000000)};
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtWaitOnMultipleEvents(HsaEvent *events[], HSAuint32 count,
                                                        bool all, HSAuint32 milliseconds) {
    SOFTGPU_REFUSE_AFTER_FORK();
    struct timespec deadline = deadline_after(milliseconds);
    bool taken = false, late = false;
    uint64_t *wakes = malloc((count + 1) * sizeof *wakes);
    if (!wakes)
        return HSAKMT_STATUS_NO_MEMORY;
    pthread_mutex_lock(&lock);
    for (HSAuint32 i = 0; i < count; i++)
        wakes[i] = slots[events[i]->EventId].wakes;
    count_sleeper(events, count, 1u);
    while (!(taken = take(events, wakes, count, all)) && !late)
        if (milliseconds == HSA_EVENTTIMEOUT_INFINITE)
            pthread_cond_wait(&raised, &lock);
        else
            late = pthread_cond_timedwait(&raised, &lock, &deadline) != 0;
    count_sleeper(events, count, -1u);
    pthread_mutex_unlock(&lock);
    free(wakes);
    return taken ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_WAIT_TIMEOUT;
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtWaitOnEvent(HsaEvent *event, HSAuint32 milliseconds) {
    if (!event)
        return HSAKMT_STATUS_INVALID_HANDLE;
    return hsaKmtWaitOnMultipleEvents(&event, 1, true, milliseconds);
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtQueryEventState(HsaEvent *event) {
    if (!event)
        return HSAKMT_STATUS_INVALID_HANDLE;
    return atomic_load(&slots[event->EventId].signaled) ? HSAKMT_STATUS_SUCCESS
                                                        : HSAKMT_STATUS_WAIT_TIMEOUT;
}

/* ROCr 6.1 and later call this function. Ages need kernel interface 1.14. hsaKmtGetVersion returns
 * 1.6, so ROCr passes no ages. */
SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtWaitOnMultipleEvents_Ext(HsaEvent *events[], HSAuint32 count,
                                                            bool all, HSAuint32 milliseconds,
                                                            uint64_t *ages);
HSAKMT_STATUS hsaKmtWaitOnMultipleEvents_Ext(HsaEvent *events[], HSAuint32 count, bool all,
                                             HSAuint32 milliseconds, uint64_t *ages) {
    (void)ages;
    return hsaKmtWaitOnMultipleEvents(events, count, all, milliseconds);
}

SOFTGPU_EXPORT HSAKMT_STATUS hsaKmtWaitOnEvent_Ext(HsaEvent *event, HSAuint32 milliseconds,
                                                   uint64_t *age);
HSAKMT_STATUS hsaKmtWaitOnEvent_Ext(HsaEvent *event, HSAuint32 milliseconds, uint64_t *age) {
    (void)age;
    return hsaKmtWaitOnEvent(event, milliseconds);
}

bool softgpu_raise_memory_fault(uint32_t node, uint64_t va) {
    uint32_t found = 0;
    pthread_mutex_lock(&lock);
    for (uint32_t id = 1; id < MAX_EVENTS; id++) {
        HsaEvent *event = slots[id].event;
        if (!event || event->EventData.EventType != HSA_EVENTTYPE_MEMORY)
            continue;
        HsaMemoryAccessFault *fault = &event->EventData.EventData.MemoryAccessFault;
        fault->NodeId = node;
        fault->VirtualAddress = va;
        fault->Failure.NotPresent = 1;
        atomic_thread_fence(memory_order_release);
        fault->Flags = HSA_EVENTID_MEMORY_FATAL_PROCESS;
        found = id;
    }
    pthread_mutex_unlock(&lock);
    softgpu_raise_event(found);
    return found != 0;
}
