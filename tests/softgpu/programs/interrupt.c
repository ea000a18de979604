/* Interrupts: a kernel sets an event of the driver's and wakes who sleeps on it. */
#include "cases.h"

#include <hsakmt.h>

enum { EVENTS = 600, CARRIED = 256, PATIENCE = 20000 };

#define THUNK_FUNCTIONS(X)                                                                         \
    X(hsaKmtCreateEvent)                                                                           \
    X(hsaKmtWaitOnEvent)

#define THUNK_DECLARE(name) static __typeof__(&name) call_##name;
THUNK_FUNCTIONS(THUNK_DECLARE)
#undef THUNK_DECLARE

static void thunk_open(void) {
    OK(hipInit(0));
    void *library = dlopen("libdtif.so", RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        library = dlopen("libhsakmt.so.1", RTLD_NOW | RTLD_NOLOAD);
    EXPECT(library != NULL);
#define THUNK_LOAD(name) *(void **)&call_##name = hip_symbol(library, #name);
    THUNK_FUNCTIONS(THUNK_LOAD)
#undef THUNK_LOAD
}

/* The message carries the low byte of the number only: of the events that share it, the one whose
 * mailbox was written is meant. */
static void wake(void) {
    HsaEvent *events[EVENTS];
    HsaEventDescriptor descriptor = {.EventType = HSA_EVENTTYPE_SIGNAL};
    thunk_open();
    for (int i = 0; i < EVENTS; i++)
        EXPECT(call_hsaKmtCreateEvent(&descriptor, false, false, &events[i]) == 0);
    HsaEvent *rung = events[EVENTS - 1];
    uint64_t mailbox = rung->EventData.HWData2, id = rung->EventId;
    EXPECT(id > CARRIED);
    hipStream_t stream = new_stream();
    launch(kernel("ring"), stream, (void *[]){&mailbox, &id});
    EXPECT(call_hsaKmtWaitOnEvent(rung, PATIENCE) == HSAKMT_STATUS_SUCCESS);
    OK(hipStreamSynchronize(stream));
    for (int i = 0; i < EVENTS; i++)
        EXPECT(call_hsaKmtWaitOnEvent(events[i], 0) == HSAKMT_STATUS_WAIT_TIMEOUT);
}

int main(int count, char **arguments) {
    static const struct test_case cases[] = {{"wake", wake}, {NULL, NULL}};
    return run_cases(count, arguments, cases);
}
