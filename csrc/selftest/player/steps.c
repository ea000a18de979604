/* Plays each step of a script. The first argument of most says who calls: 0 is the program, by
 * mgpu*; others are the foreign user, by HIP's functions. */
#include "steps.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
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
/* The lines of threads below it need not wait for a copy to pageable memory: the runtime does. */
static int copies_wait;

void steps_reset(void) {
    memset(buffers, 0, sizeof buffers);
    memset(streams, 0, sizeof streams);
    memset(events, 0, sizeof events);
    memset(modules, 0, sizeof modules);
    memset(functions, 0, sizeof functions);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; ++i)
        sem_init(&marks[i], 0, 0);
    edges_reset();
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

/* Pageable memory for one call: new, the thread's own at one address, or mapped and unmapped. */
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
        return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
        address = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
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
        free(address);
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

/* hostset BUFFER COUNT SEED: by the processor, in pinned or managed memory */
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

/* fill WHO BUFFER OFFSET COUNT VALUE STREAM: words, or (2, 3) bytes of that value */
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

/* learn NEW BUFFER WHO STREAM: the address that a kernel has stored there */
static void play_learn(const struct step *step) {
    uint32_t words[2] = {0, 0};
    copy_down(step, ARGUMENT(2), words, BUFFER(1), sizeof words, STREAM(3));
    BUFFER(0) = (void *)(uintptr_t)((uint64_t)words[1] << 32 | words[0]);
    say_handle(step, BUFFER(0));
}

/* ---- streams and events ---- */

/* stream WHO STREAM: 2 is without the order of the null stream */
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

/* unstream WHO STREAM */
static void play_unstream(const struct step *step) {
    if (ARGUMENT(0) == 0)
        mgpuStreamDestroy(STREAM(1));
    else
        check(step, HIP(hipStreamDestroy, void *)(STREAM(1)));
    STREAM(1) = NULL;
}

/* sync WHO STREAM: 2 asks until it is idle, 3 waits for the device */
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
        HIP(hipGetLastError, void)(); /* "not ready" stays there in some releases */
        break;
    default:
        check(step, HIP(hipDeviceSynchronize, void)());
    }
}

/* event WHO EVENT */
static void play_event(const struct step *step) {
    void *event = NULL;
    if (ARGUMENT(0) == 0)
        event = mgpuEventCreate();
    else
        check(step, HIP(hipEventCreateWithFlags, void **, unsigned)(&event, DISABLE_TIMING));
    EVENT(1) = event;
    say_handle(step, event);
}

/* record WHO EVENT STREAM */
static void play_record(const struct step *step) {
    if (ARGUMENT(0) == 0)
        mgpuEventRecord(EVENT(1), STREAM(2));
    else
        check(step, HIP(hipEventRecord, void *, void *)(EVENT(1), STREAM(2)));
}

/* waitevent WHO EVENT STREAM */
static void play_waitevent(const struct step *step) {
    if (ARGUMENT(0) == 0)
        mgpuStreamWaitEvent(STREAM(2), EVENT(1));
    else
        check(step, HIP(hipStreamWaitEvent, void *, void *, unsigned)(STREAM(2), EVENT(1), 0));
}

/* eventsync WHO EVENT */
static void play_eventsync(const struct step *step) {
    if (ARGUMENT(0) == 0)
        mgpuEventSynchronize(EVENT(1));
    else
        check(step, HIP(hipEventSynchronize, void *)(EVENT(1)));
}

/* unevent WHO EVENT */
static void play_unevent(const struct step *step) {
    if (ARGUMENT(0) == 0)
        mgpuEventDestroy(EVENT(1));
    else
        check(step, HIP(hipEventDestroy, void *)(EVENT(1)));
    EVENT(1) = NULL;
}

/* elapsed WHO STREAM: in one signature or the other. LLVM's own library lacks the function. */
static void play_elapsed(const struct step *step) {
    struct elapsed {
        float milliseconds;
        int64_t error;
    } found = {0};
    struct elapsed (*ask)(void *, void *, void *);
    *(void **)&ask = dlsym(RTLD_DEFAULT, "mgpuEventElapsedTime");
    if (ask)
        (void)ask(NULL, NULL, NULL); /* from here on events have a time */
    void *start = mgpuEventCreate(), *stop = mgpuEventCreate();
    mgpuEventRecord(start, STREAM(1));
    mgpuEventRecord(stop, STREAM(1));
    mgpuEventSynchronize(stop);
    if (ask && ARGUMENT(0) == 0)
        found = ask(start, stop, STREAM(1));
    else if (ask)
        found.error = ask(&found.milliseconds, start, stop).error;
    say(step, found.error == 0 && found.milliseconds >= 0 ? "a time" : "no time");
    mgpuEventDestroy(start);
    mgpuEventDestroy(stop);
}

/* ---- modules and launches ---- */

/* The place of an image when it is loaded. It is always at one address of its own. Or it is in one
 * of two places that all images share, as a JIT's, or mapped for the call. Or it is a constant of a
 * library (constants.c of tests/selftest), which stays open, or may be closed. */
enum { IMAGE_FIXED, IMAGE_FIRST, IMAGE_SECOND, IMAGE_MAPPED, IMAGE_CONSTANT, IMAGE_CLOSABLE };
enum { ROOM = 1 << 16 };

static void *closable;

static void *image_in(void *library, long long number) {
    char name[32];
    snprintf(name, sizeof name, "image%lld", number);
    void *found = library != NULL ? dlsym(library, name) : NULL;
    if (found == NULL)
        give_up("no library holds the constant %s", name);
    return found;
}

/* library NUMBER: in the place of the one that was open */
static void play_library(const struct step *step) {
    if (closable != NULL)
        dlclose(closable);
    closable = library_open(ARGUMENT(0) == 0 ? "closable0" : "closable1");
}

static void *image_at(long long place, long long number, const void *content, size_t bytes) {
    static char rooms[2][ROOM] __attribute__((aligned(4096)));
    if (place == IMAGE_FIXED)
        return (void *)(uintptr_t)content;
    if (place == IMAGE_CONSTANT)
        return image_in(library_open("constants"), number);
    if (place == IMAGE_CLOSABLE)
        return image_in(closable, number);
    void *at = rooms[place == IMAGE_SECOND];
    if (place == IMAGE_MAPPED)
        at = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(at, content, bytes);
    return at;
}

static pthread_mutex_t rooms_mutex = PTHREAD_MUTEX_INITIALIZER;

/* load WHO MODULE IMAGE PLACE */
static void play_load(const struct step *step) {
    size_t bytes;
    const void *content = image_content((int)ARGUMENT(2), &bytes);
    void *module = NULL;
    pthread_mutex_lock(&rooms_mutex);
    void *at = image_at(ARGUMENT(3), ARGUMENT(2), content, bytes);
    if (ARGUMENT(0) == 0)
        module = mgpuModuleLoad(at, bytes);
    else
        check(step, HIP(hipModuleLoadData, void **, const void *)(&module, at));
    if (ARGUMENT(3) == IMAGE_MAPPED)
        munmap(at, ROOM);
    pthread_mutex_unlock(&rooms_mutex);
    MODULE(1) = module;
    say_handle(step, module);
}

/* unload WHO MODULE */
static void play_unload(const struct step *step) {
    if (ARGUMENT(0) == 0)
        mgpuModuleUnload(MODULE(1));
    else
        check(step, HIP(hipModuleUnload, void *)(MODULE(1)));
    MODULE(1) = NULL;
}

enum { KERNEL_MIX, KERNEL_SLOW, KERNEL_COPY, KERNEL_BUMP, KERNEL_WHERE };
static const char *const kernel_names[] = {"mix", "slow", "copy", "bump", "where", "missing"};

/* function WHO FUNCTION MODULE KERNEL PLACE: the name a constant, or always at one address */
static void play_function(const struct step *step) {
    static _Thread_local char room[16];
    const char *name = kernel_names[ARGUMENT(3)];
    if (ARGUMENT(4) != 0)
        name = strcpy(room, name);
    void *function = NULL;
    if (ARGUMENT(0) == 0)
        function = mgpuModuleGetFunction(MODULE(2), name);
    else
        check(step,
              HIP(hipModuleGetFunction, void **, void *, const char *)(&function, MODULE(2), name));
    FUNCTION(1) = function;
    say_handle(step, function);
}

struct arguments {
    int64_t
        words[12]; /* two memrefs and a number or two: allocated, aligned, offset, size, stride */
    void *params[12];
};

static void set_memref(struct arguments *arguments, unsigned at, void *buffer, int64_t count) {
    const int64_t words[5] = {(int64_t)(uintptr_t)buffer, (int64_t)(uintptr_t)buffer, 0, count, 1};
    memcpy(&arguments->words[at], words, sizeof words);
}

static void launch(const struct step *step, long long who, void *function, unsigned grid,
                   unsigned block, void *stream, void **params) {
    if (who == 0)
        mgpuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, params, NULL, 0);
    else
        check(step, HIP(hipModuleLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned,
                        unsigned, unsigned, unsigned, void *, void **,
                        void **)(function, grid, 1, 1, block, 1, 1, 0, stream, params, NULL));
}

/* launch WHO FUNCTION KERNEL STREAM BUFFER COUNT (K or FROM) */
static void play_launch(const struct step *step) {
    struct arguments arguments = {.words = {0}};
    for (unsigned i = 0; i < 12; ++i)
        arguments.params[i] = &arguments.words[i];
    const int64_t count = ARGUMENT(5);
    set_memref(&arguments, 0, BUFFER(4), count);
    unsigned grid = (unsigned)((count + 63) / 64), block = 64;
    switch (ARGUMENT(2)) {
    case KERNEL_MIX:
    case KERNEL_SLOW:
        arguments.words[5] = count;
        arguments.words[6] = ARGUMENT(6);
        break;
    case KERNEL_COPY:
        set_memref(&arguments, 5, BUFFER(6), count);
        arguments.words[10] = count;
        break;
    default:
        grid = block = 1;
    }
    launch(step, ARGUMENT(0), FUNCTION(1), grid, block, STREAM(3), arguments.params);
    memset(&arguments, 0xEE, sizeof arguments); /* the caller's again */
}

void launch_mix(const struct step *step, void *function, void *stream, void *block, int64_t count,
                int64_t k) {
    struct arguments arguments = {.words = {0}};
    for (unsigned i = 0; i < 12; ++i)
        arguments.params[i] = &arguments.words[i];
    set_memref(&arguments, 0, block, count);
    arguments.words[5] = count;
    arguments.words[6] = k;
    launch(step, 0, function, (unsigned)((count + 63) / 64), 64, stream, arguments.params);
}

/* ---- what goes wrong, and must go wrong as with stock ---- */

enum {
    BAD_IMAGE,
    BAD_NAME,
    BAD_GRID,
    BAD_BLOCK,
    BAD_SIZE,
    BAD_FREE,
    BAD_FILL,
    BAD_UNREGISTER,
    BAD_FUNCTION,
    BAD_DEVICE,
    BAD_STREAM,
    BAD_COPY,
    BAD_NULL_IMAGE,
    BAD_PAGE,      /* an image that cannot be read */
    BAD_FEW_BYTES, /* one of 12 bytes, behind which nothing can be read */
    BAD_ELF_32,    /* OBJECT: a good image, of which this is what was changed */
    BAD_ELF_ENDLESS,
};

/* An image at the end of what can be read. */
static void *image_at_end(const void *content, size_t bytes) {
    const size_t page = 4096, room = (bytes + page - 1) / page * page;
    char *at = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(at + room, page, PROT_NONE);
    return memcpy(at + room - bytes, content, bytes);
}

static void *bad_image(const struct step *step) {
    static const char noise[12] = "no image";
    size_t bytes;
    const void *content = image_content((int)ARGUMENT(1), &bytes);
    char *at;
    switch (ARGUMENT(0)) {
    case BAD_NULL_IMAGE:
        return NULL;
    case BAD_PAGE:
        return mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    case BAD_FEW_BYTES:
        return image_at_end(noise, sizeof noise);
    case BAD_ELF_32:
        at = image_at_end(content, bytes);
        at[4] = 1;
        return at;
    default:
        at = image_at_end(content, bytes);
        memset(at + 40, 0x7f, 6); /* where its sections are */
        return at;
    }
}

/* bad KIND OBJECT */
static void play_bad(const struct step *step) {
    static uint64_t words[64];
    void *params[12];
    for (unsigned i = 0; i < 12; ++i)
        params[i] = &words[i];
    switch (ARGUMENT(0)) {
    case BAD_IMAGE:
        say_handle(step, mgpuModuleLoad(words, sizeof words));
        break;
    case BAD_NAME:
        say_handle(step, mgpuModuleGetFunction(MODULE(1), "missing"));
        break;
    case BAD_GRID:
        mgpuLaunchKernel(FUNCTION(1), 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL, 0);
        break;
    case BAD_BLOCK:
        mgpuLaunchKernel(FUNCTION(1), 1, 1, 1, 4096, 1, 1, 0, NULL, params, NULL, 0);
        break;
    case BAD_SIZE:
        say_handle(step, mgpuMemAlloc((uint64_t)1 << 50, NULL, false));
        break;
    case BAD_FREE:
        mgpuMemFree(words, NULL);
        break;
    case BAD_FILL:
        mgpuMemset32(words, 1, 4, NULL);
        break;
    case BAD_UNREGISTER:
        mgpuMemHostUnregister(words);
        break;
    case BAD_FUNCTION:
        mgpuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL, 0);
        break;
    case BAD_DEVICE:
        mgpuSetDefaultDevice(99);
        break;
    case BAD_STREAM:
        mgpuStreamDestroy(NULL);
        break;
    case BAD_COPY:
        mgpuMemcpy(NULL, words, 16, NULL);
        break;
    default:
        say_handle(step, mgpuModuleLoad(bad_image(step), 4096));
    }
}

/* lasterror SAY: reads and clears the thread's last error; 1 says it, 2 whether there is one */
static void play_lasterror(const struct step *step) {
    const int error = HIP(hipGetLastError, void)();
    if (ARGUMENT(0) == 1)
        say(step, "last error %d", error);
    else if (ARGUMENT(0) == 2)
        say(step, "%s", error != 0 ? "an error" : "no error");
}

/* error: the library's name of the last one that it has printed; forgets it */
static void play_error(const struct step *step) {
    const char *name = mgpu_rt_take_error();
    say(step, "%s", name != NULL ? name : "none");
}

/* ---- the rest ---- */

/* reset: of the device, by the program */
static void play_reset(const struct step *step) {
    check(step, HIP(hipDeviceReset, void)());
}

/* empty: the cache, where the runtime has one */
static void play_empty(const struct step *step) {
    (void)step;
    if (mgpu_rt_empty_cache != NULL)
        mgpu_rt_empty_cache();
}

/* misuse: uses of dead handles and freed memory that the stub has seen */
static void play_misuse(const struct step *step) {
    uint64_t (*misuse)(void);
    *(void **)&misuse = foreign_symbol("hipstub_misuse");
    static uint64_t before;
    if (misuse == NULL)
        return;
    const uint64_t now = misuse();
    if (now != before)
        say(step, "misuse %llu", (unsigned long long)(now - before));
    before = now;
}

/* post MARK, await MARK: what comes before one comes before what follows the other */
static void play_post(const struct step *step) {
    sem_post(&marks[ARGUMENT(0)]);
}

static void play_await(const struct step *step) {
    while (sem_wait(&marks[ARGUMENT(0)]) != 0)
        continue;
}

static const struct {
    const char *name;
    void (*play)(const struct step *step);
} table[] = {
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
    {"elapsed", play_elapsed},
    {"unevent", play_unevent},
    {"library", play_library},
    {"load", play_load},
    {"unload", play_unload},
    {"function", play_function},
    {"launch", play_launch},
    {"bad", play_bad},
    {"lasterror", play_lasterror},
    {"error", play_error},
    {"reset", play_reset},
    {"empty", play_empty},
    {"misuse", play_misuse},
    {"post", play_post},
    {"await", play_await},
};

void (*step_find(const char *name))(const struct step *step) {
    for (size_t i = 0; i < sizeof table / sizeof *table; ++i)
        if (strcmp(table[i].name, name) == 0)
            return table[i].play;
    return edge_find(name);
}
