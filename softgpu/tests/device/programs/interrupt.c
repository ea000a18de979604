/* Tests interrupts: a kernel sets one of the driver's events and wakes the threads that wait for
 * the event. */
#include "cases.h"

#include <hsakmt.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EVENTS = 600, CARRIED = 256, PATIENCE = 600000 /* ms */, SLEEPERS = 3 };

#define THUNK_FUNCTIONS(X)                                                                         \
    X(hsaKmtCreateEvent)                                                                           \
    X(hsaKmtSetEvent)                                                                              \
    X(hsaKmtWaitOnEvent)                                                                           \
    X(hsaKmtWaitOnMultipleEvents)

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

/* The kernel's message contains only the low byte of the event's number. If several events share
 * the low byte, the mailbox that the kernel writes identifies the event. */
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

struct sleeper {
    pthread_t thread;
    HsaEvent *events[2];
    HSAuint32 count;
    long number; /* the id of the waiting thread, stored by this thread */
    HSAKMT_STATUS answer;
};

static void *fall_asleep(void *argument) {
    struct sleeper *sleeper = argument;
    __atomic_store_n(&sleeper->number, syscall(SYS_gettid), __ATOMIC_RELEASE);
    sleeper->answer =
        call_hsaKmtWaitOnMultipleEvents(sleeper->events, sleeper->count, true, PATIENCE);
    return NULL;
}

static bool sleeps(const struct sleeper *sleeper) {
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat",
             __atomic_load_n(&sleeper->number, __ATOMIC_ACQUIRE));
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = '?';
    if (file)
        fclose(file);
    return state == 'S';
}

static void start(struct sleeper *sleeper) {
    EXPECT(pthread_create(&sleeper->thread, NULL, fall_asleep, sleeper) == 0);
    while (!sleeps(sleeper))
        usleep(1000);
}

/* Checks that an auto-reset event wakes every thread that waits for the event, as an event of the
 * real driver does. A thread that begins to wait after the event must not wake. */
static void wake_all(void) {
    HsaEventDescriptor descriptor = {.EventType = HSA_EVENTTYPE_SIGNAL};
    struct sleeper sleepers[SLEEPERS];
    HsaEvent *event;
    thunk_open();
    EXPECT(call_hsaKmtCreateEvent(&descriptor, false, false, &event) == 0);
    for (int i = 0; i < SLEEPERS; i++) {
        sleepers[i] = (struct sleeper){.events = {event}, .count = 1};
        start(&sleepers[i]);
    }
    EXPECT(call_hsaKmtSetEvent(event) == 0);
    for (int i = 0; i < SLEEPERS; i++) {
        EXPECT(pthread_join(sleepers[i].thread, NULL) == 0);
        EXPECT(sleepers[i].answer == HSAKMT_STATUS_SUCCESS);
    }
    EXPECT(call_hsaKmtWaitOnEvent(event, 0) == HSAKMT_STATUS_WAIT_TIMEOUT);
}

/* Sets the first of two auto-reset events for which a thread waits. Checks that the thread then
 * needs only the second event, and that a later wait for the first event times out. */
static void wake_later(void) {
    HsaEventDescriptor descriptor = {.EventType = HSA_EVENTTYPE_SIGNAL};
    struct sleeper sleeper = {.count = 2};
    thunk_open();
    for (int i = 0; i < 2; i++)
        EXPECT(call_hsaKmtCreateEvent(&descriptor, false, false, &sleeper.events[i]) == 0);
    start(&sleeper);
    EXPECT(call_hsaKmtSetEvent(sleeper.events[0]) == 0);
    EXPECT(call_hsaKmtWaitOnEvent(sleeper.events[0], 0) == HSAKMT_STATUS_WAIT_TIMEOUT);
    EXPECT(call_hsaKmtSetEvent(sleeper.events[1]) == 0);
    EXPECT(pthread_join(sleeper.thread, NULL) == 0);
    EXPECT(sleeper.answer == HSAKMT_STATUS_SUCCESS);
}

int main(int count, char **arguments) {
    static const struct test_case cases[] = {
        {"wake", wake}, {"wake_all", wake_all}, {"wake_later", wake_later}, {NULL, NULL}};
    return run_cases(count, arguments, cases);
}
