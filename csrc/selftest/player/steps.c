/* Steps of memory, copies, streams and events, and the table of all steps. The first argument of
 * most steps is the caller. 0 is the program, which calls mgpu* functions; other numbers are the
 * foreign user, who calls HIP's functions. */
#include "steps.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- the two interfaces ---- */

void (*foreign(const char *name))(void) {
    void (*found)(void);
    *(void **)&found = foreign_symbol(name);
    if (found == NULL)
        give_up("HIP has no %s", name);
    return found;
}

void check(const struct step *step, int error) {
    if (error != 0)
        say(step, "foreign error %d", error);
}

/* ---- objects ---- */

void *buffers[MOST_OBJECTS], *streams[MOST_OBJECTS], *events[MOST_OBJECTS];
void *modules[MOST_OBJECTS], *functions[MOST_OBJECTS];
sem_t marks[4 * MOST_OBJECTS];
/* Threads from this number on must synchronise before they read pageable memory that mgpuMemcpy has
 * filled. */
static int copies_wait;

void steps_reset(void) {
    memset(buffers, 0, sizeof buffers);
    memset(streams, 0, sizeof streams);
    memset(events, 0, sizeof events);
    memset(modules, 0, sizeof modules);
    memset(functions, 0, sizeof functions);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; ++i)
        sem_init(&marks[i], 0, 0);
    if (more_reset != NULL)
        more_reset();
    const char *text = getenv("DRIVER_COPIES_WAIT");
    copies_wait = text != NULL ? (int)strtol(text, NULL, 10) : 100;
}

void say_handle(const struct step *step, const void *handle) {
    say(step, "%s", handle != NULL ? "ok" : "null");
}

/* ---- content ---- */

static void pattern(uint32_t *words, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; ++i)
        words[i] = seed + (uint32_t)i * 7;
}

static void say_content(const struct step *step, const uint32_t *words, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; ++i)
        sum += words[i] * (uint64_t)(2 * i + 1);
    say(step, "%u %llx", words[0], (unsigned long long)sum);
}

#ifdef __SANITIZE_ADDRESS__
void __asan_unpoison_memory_region(const volatile void *address, size_t bytes);
#endif

/* Maps new pages. AddressSanitizer may still treat these addresses as the stack of a cancelled
 * thread, and would then report each access. */
static void *map_pages(size_t bytes) {
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(address, bytes);
#endif
    return address;
}

/* Returns pageable memory for one call: new heap memory, a block that the thread reuses, or pages
 * that are unmapped after the call. */
enum place { PLACE_HEAP, PLACE_THREAD, PLACE_MAPPED };

static void *host_take(enum place place, size_t bytes) {
    static _Thread_local void *own;
    static _Thread_local size_t own_bytes;
    switch (place) {
    case PLACE_HEAP:
        return malloc(bytes);
    case PLACE_THREAD:
        if (bytes > own_bytes)
            own = realloc(own, own_bytes = bytes);
        return own;
    default:
        return map_pages(bytes);
    }
}

static void host_drop(enum place place, void *address, size_t bytes) {
    if (place == PLACE_MAPPED) {
        munmap(address, bytes);
        return;
    }
    memset(address, 0xEE, bytes);
    if (place == PLACE_HEAP)
        free(address);
}

/* ---- memory ---- */

enum { BY_MGPU, BY_MALLOC, BY_MANAGED, BY_PINNED, BY_MGPU_REGISTER, BY_REGISTER, BY_HEAP };

/* Memory to be registered. The player reuses this memory and never frees it. After a free, the stub
 * of HIP could return the memory as device memory, although the library keeps the memory
 * registered. */
enum { REGISTERED_PLACE = 1 << 20 };
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
static void **free_places; /* each place begins with a pointer to the next place */

static void *take_place(size_t bytes) {
    if (bytes > REGISTERED_PLACE)
        give_up("a buffer of %zu bytes is too large to be registered", bytes);
    pthread_mutex_lock(&places_lock);
    void **place = free_places;
    if (place)
        free_places = *place;
    pthread_mutex_unlock(&places_lock);
    return place ? place : aligned_alloc(4096, REGISTERED_PLACE);
}

static void give_place(void **place) {
    pthread_mutex_lock(&places_lock);
    *place = free_places;
    free_places = place;
    pthread_mutex_unlock(&places_lock);
}

/* malloc WHO BUFFER BYTES STREAM SHARED */
static void play_malloc(const struct step *step) {
    void *address = NULL;
    const size_t bytes = (size_t)ARGUMENT(2);
    switch (ARGUMENT(0)) {
    case BY_MGPU:
        address = mgpuMemAlloc(bytes, STREAM(3), ARGUMENT(4) != 0);
        break;
    case BY_MALLOC:
        check(step, HIP(hipMalloc, void **, size_t)(&address, bytes));
        break;
    case BY_MANAGED:
        check(step, HIP(hipMallocManaged, void **, size_t, unsigned)(&address, bytes, 1));
        break;
    case BY_PINNED:
        check(step, HIP(hipHostMalloc, void **, size_t, unsigned)(&address, bytes, 0));
        break;
    case BY_MGPU_REGISTER:
        address = take_place(bytes);
        mgpuMemHostRegister(address, bytes);
        break;
    case BY_HEAP:
        address = calloc(bytes, 1);
        break;
    default:
        address = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
        check(step, HIP(hipHostRegister, void *, size_t, unsigned)(address, bytes, 0));
    }
    BUFFER(1) = address;
    say_handle(step, address);
}

/* free WHO BUFFER STREAM */
static void play_free(const struct step *step) {
    void *address = BUFFER(1);
    switch (ARGUMENT(0)) {
    case BY_MGPU:
        mgpuMemFree(address, STREAM(2));
        break;
    case BY_MALLOC:
    case BY_MANAGED:
        check(step, HIP(hipFree, void *)(address));
        break;
    case BY_PINNED:
        check(step, HIP(hipHostFree, void *)(address));
        break;
    case BY_MGPU_REGISTER:
        mgpuMemHostUnregister(address);
        give_place(address);
        break;
    case BY_HEAP:
        free(address);
        break;
    default:
        check(step, HIP(hipHostUnregister, void *)(address));
        free(address);
    }
    BUFFER(1) = NULL;
}

/* hostset BUFFER COUNT SEED: the processor writes to pinned or managed memory */
static void play_hostset(const struct step *step) {
    pattern(BUFFER(0), (size_t)ARGUMENT(1), (uint32_t)ARGUMENT(2));
}

/* hostsee BUFFER COUNT */
static void play_hostsee(const struct step *step) {
    say_content(step, BUFFER(0), (size_t)ARGUMENT(1));
}

/* ---- copies and fills ---- */

enum { COPY_MGPU, COPY_ASYNC, COPY_NOW };

static void copy(const struct step *step, long long who, void *to, const void *from, size_t bytes,
                 int kind, void *stream) {
    if (who == COPY_MGPU)
        mgpuMemcpy(to, (void *)(uintptr_t)from, bytes, stream);
    else if (who == COPY_ASYNC)
        check(step, HIP(hipMemcpyAsync, void *, const void *, size_t, int, void *)(to, from, bytes,
                                                                                   kind, stream));
    else
        check(step, HIP(hipMemcpy, void *, const void *, size_t, int)(to, from, bytes, kind));
}

static void copy_down(const struct step *step, long long who, void *to, const void *from,
                      size_t bytes, void *stream) {
    copy(step, who, to, from, bytes, COPY_DEFAULT, stream);
    if (who == COPY_MGPU && step->thread >= copies_wait)
        mgpuStreamSynchronize(stream);
    else if (who == COPY_ASYNC)
        check(step, HIP(hipStreamSynchronize, void *)(stream));
}

/* up WHO BUFFER OFFSET COUNT STREAM SEED PLACE */
static void play_up(const struct step *step) {
    const size_t count = (size_t)ARGUMENT(3), bytes = 4 * count;
    const enum place place = (enum place)ARGUMENT(6);
    uint32_t *from = host_take(place, bytes);
    pattern(from, count, (uint32_t)ARGUMENT(5));
    copy(step, ARGUMENT(0), (uint32_t *)BUFFER(1) + ARGUMENT(2), from, bytes, COPY_DEFAULT,
         STREAM(4));
    host_drop(place, from, bytes);
}

/* down WHO BUFFER OFFSET COUNT STREAM PLACE */
static void play_down(const struct step *step) {
    const size_t count = (size_t)ARGUMENT(3), bytes = 4 * count;
    const enum place place = (enum place)ARGUMENT(5);
    uint32_t *to = host_take(place, bytes);
    memset(to, 0x77, bytes);
    copy_down(step, ARGUMENT(0), to, (uint32_t *)BUFFER(1) + ARGUMENT(2), bytes, STREAM(4));
    say_content(step, to, count);
    host_drop(place, to, bytes);
}

/* copy WHO TO OFFSET FROM OFFSET COUNT STREAM */
static void play_copy(const struct step *step) {
    copy(step, ARGUMENT(0), (uint32_t *)BUFFER(1) + ARGUMENT(2),
         (uint32_t *)BUFFER(3) + ARGUMENT(4), 4 * (size_t)ARGUMENT(5), COPY_DEFAULT, STREAM(6));
}

/* fill WHO BUFFER OFFSET COUNT VALUE STREAM: fills memory with words of that value; WHO 2 and 3
 * fill bytes, WHO 4 fills half-words */
static void play_fill(const struct step *step) {
    uint32_t *to = (uint32_t *)BUFFER(1) + ARGUMENT(2);
    const size_t count = (size_t)ARGUMENT(3);
    const int value = (int)ARGUMENT(4);
    switch (ARGUMENT(0)) {
    case 0:
        mgpuMemset32(to, value, count, STREAM(5));
        break;
    case 1:
        check(step,
              HIP(hipMemsetD32Async, void *, int, size_t, void *)(to, value, count, STREAM(5)));
        break;
    case 2:
        check(step, HIP(hipMemset, void *, int, size_t)(to, value, 4 * count));
        break;
    case 3:
        check(step,
              HIP(hipMemsetAsync, void *, int, size_t, void *)(to, value, 4 * count, STREAM(5)));
        break;
    default:
        mgpuMemset16(to, (uint16_t)value, 2 * count, STREAM(5));
    }
}

/* learn NEW BUFFER WHO STREAM: reads the address that a kernel has stored in the buffer */
static void play_learn(const struct step *step) {
    uint32_t words[2] = {0, 0};
    copy_down(step, ARGUMENT(2), words, BUFFER(1), sizeof words, STREAM(3));
    BUFFER(0) = (void *)(uintptr_t)((uint64_t)words[1] << 32 | words[0]);
    say_handle(step, BUFFER(0));
}

/* ---- streams and events ---- */

/* stream WHO STREAM: creates a stream; WHO 2 creates one that is not ordered with the null stream
 */
static void play_stream(const struct step *step) {
    void *stream = NULL;
    if (ARGUMENT(0) == 0)
        stream = mgpuStreamCreate();
    else if (ARGUMENT(0) == 1)
        check(step, HIP(hipStreamCreate, void **)(&stream));
    else
        check(step, HIP(hipStreamCreateWithFlags, void **, unsigned)(&stream, NON_BLOCKING));
    STREAM(1) = stream;
    say_handle(step, stream);
}

/* unstream WHO STREAM: destroys the stream */
static void play_unstream(const struct step *step) {
    if (ARGUMENT(0) == 0)
        mgpuStreamDestroy(STREAM(1));
    else
        check(step, HIP(hipStreamDestroy, void *)(STREAM(1)));
    STREAM(1) = NULL;
}

/* sync WHO STREAM: waits for the stream; WHO 2 queries until it is idle, 3 waits for the device */
static void play_sync(const struct step *step) {
    int error;
    switch (ARGUMENT(0)) {
    case 0:
        mgpuStreamSynchronize(STREAM(1));
        break;
    case 1:
        check(step, HIP(hipStreamSynchronize, void *)(STREAM(1)));
        break;
    case 2:
        while ((error = HIP(hipStreamQuery, void *)(STREAM(1))) == NOT_READY)
            usleep(50);
        check(step, error);
        HIP(hipGetLastError, void)(); /* in some releases "not ready" remains the last error */
        break;
    default:
        check(step, HIP(hipDeviceSynchronize, void)());
    }
}

/* event WHO EVENT: creates the event */
static void play_event(const struct step *step) {
    void *event = NULL;
    if (ARGUMENT(0) == 0)
        event = mgpuEventCreate();
    else
        check(step, HIP(hipEventCreateWithFlags, void **, unsigned)(&event, DISABLE_TIMING));
    EVENT(1) = event;
    say_handle(step, event);
}

/* record WHO EVENT STREAM: records the event */
static void play_record(const struct step *step) {
    if (ARGUMENT(0) == 0)
        mgpuEventRecord(EVENT(1), STREAM(2));
    else
        check(step, HIP(hipEventRecord, void *, void *)(EVENT(1), STREAM(2)));
}

/* waitevent WHO EVENT STREAM: the stream waits for the event */
static void play_waitevent(const struct step *step) {
    if (ARGUMENT(0) == 0)
        mgpuStreamWaitEvent(STREAM(2), EVENT(1));
    else
        check(step, HIP(hipStreamWaitEvent, void *, void *, unsigned)(STREAM(2), EVENT(1), 0));
}

/* eventsync WHO EVENT: the host waits for the event */
static void play_eventsync(const struct step *step) {
    if (ARGUMENT(0) == 0)
        mgpuEventSynchronize(EVENT(1));
    else
        check(step, HIP(hipEventSynchronize, void *)(EVENT(1)));
}

/* unevent WHO EVENT: destroys the event */
static void play_unevent(const struct step *step) {
    if (ARGUMENT(0) == 0)
        mgpuEventDestroy(EVENT(1));
    else
        check(step, HIP(hipEventDestroy, void *)(EVENT(1)));
    EVENT(1) = NULL;
}

/* ---- errors ---- */

/* lasterror SAY: clears the thread's last error; prints the error if SAY is 1, or whether there is
 * an error if SAY is 2 */
static void play_lasterror(const struct step *step) {
    const int error = HIP(hipGetLastError, void)();
    if (ARGUMENT(0) == 1)
        say(step, "last error %d", error);
    else if (ARGUMENT(0) == 2)
        say(step, "%s", error != 0 ? "an error" : "no error");
}

/* ---- the rest ---- */

/* reset: the program resets the device */
static void play_reset(const struct step *step) {
    check(step, HIP(hipDeviceReset, void)());
}

/* empty: empties the cache, if the runtime has a cache */
static void play_empty(const struct step *step) {
    (void)step;
    if (mgpu_rt_empty_cache != NULL)
        mgpu_rt_empty_cache();
}

/* post MARK, await MARK: all steps before post precede all steps after await */
static void play_post(const struct step *step) {
    sem_post(&marks[ARGUMENT(0)]);
}

static void play_await(const struct step *step) {
    while (sem_wait(&marks[ARGUMENT(0)]) != 0)
        continue;
}

static const struct step_kind call_steps[] = {
    {"malloc", play_malloc},
    {"free", play_free},
    {"hostset", play_hostset},
    {"hostsee", play_hostsee},
    {"up", play_up},
    {"down", play_down},
    {"copy", play_copy},
    {"fill", play_fill},
    {"learn", play_learn},
    {"stream", play_stream},
    {"unstream", play_unstream},
    {"sync", play_sync},
    {"event", play_event},
    {"record", play_record},
    {"waitevent", play_waitevent},
    {"eventsync", play_eventsync},
    {"unevent", play_unevent},
    {"lasterror", play_lasterror},
    {"reset", play_reset},
    {"empty", play_empty},
    {"post", play_post},
    {"await", play_await},
    {NULL, NULL},
};

typedef void (*play_function)(const struct step *step);

static play_function find_in(const struct step_kind *kinds, const char *name) {
    while (kinds->name != NULL && strcmp(kinds->name, name) != 0)
        ++kinds;
    return kinds->play;
}

play_function step_find(const char *name) {
    static const struct step_kind *const tables[] = {call_steps,  module_steps, edge_steps,
                                                     graph_steps, host_steps,   NULL};
    play_function found = NULL;
    for (const struct step_kind *const *table = tables; *table != NULL && found == NULL; ++table)
        found = find_in(*table, name);
    for (size_t i = 0; more_steps != NULL && more_steps[i] != NULL && found == NULL; ++i)
        found = find_in(more_steps[i], name);
    return found;
}
