#include "shared/caches.h"
#include "driver/device.h"
#include "driver/exclusive.h"
#include "driver/report.h"
#include "shared/handles.h"

struct cache_limits cache_limits;
unsigned care_of_frees;
struct neighbours neighbours;

void limits_set(void) {
    cache_limits.module_bytes = options.module_limit_bytes;
    cache_limits.streams = (size_t)options.stream_limit_count;
}

static const struct cache *none;
static const struct cache *const *caches = &none;

void caches_set(const struct cache *const *table) {
    caches = table;
}

static int trim(bool host_memory_too) {
    int count = 0;
    for (const struct cache *const *cache = caches; *cache; cache++)
        if ((*cache)->trim &&
            (host_memory_too || PROOF(device_memory_is_short, !(*cache)->holds_host_memory)))
            count += (*cache)->trim(ALL_DEVICES);
    return count;
}

int caches_trim(void) {
    return trim(true);
}

size_t cache_list(const struct cache *cache, struct cached *out, size_t room) {
    size_t count = 0;
    for (const void *each = handle_first(cache->map); each && count < room;
         each = handle_next(each))
        count += cache->describe(each, &out[count]);
    return count;
}

void caches_thread_ends(struct thread *thread) {
    for (const struct cache *const *cache = caches; *cache; cache++)
        if ((*cache)->thread_ends)
            (*cache)->thread_ends(thread);
}

void caches_stream_ends(struct stream *stream) {
    for (const struct cache *const *cache = caches; *cache; cache++)
        if ((*cache)->stream_ends)
            (*cache)->stream_ends(stream);
}

bool caches_make_room(hipError_t error) {
    const bool may_help = caches_on() && PROOF(memory_was_short, error == hipErrorOutOfMemory);
    if (!may_help)
        return false;
    limit_reached();
    (void)trim(false);
    (void)hip.GetLastError(); /* clears the error of the failed call, or of a query during the trim
                               */
    return true;
}

/* ---- a reset, which ends the caching for its device ----
 *
 * hipDeviceReset releases the streams and the memory of the calling thread's device, and HIP reuses
 * their addresses. A handle that HIP accepts may therefore belong to a newer object. To detect a
 * reset, the library allocates memory on the device, and stores the number that HIP gives to this
 * allocation. If HIP later reports a different number or no number for this memory, the device was
 * reset. Pinned and managed memory prove nothing, because they survive the reset of one of several
 * devices in HIP 5.2.3, 5.7.1, 6.4.3 and 7.2.4. The library allocates this memory with
 * hipExtMallocWithFlags, which no other code of the library calls. Therefore a count of hipMalloc
 * calls contains only calls for the program. The library does not watch NVIDIA's devices, because a
 * reset of such a device ends LLVM's own runtime as well. */
static struct watch {
    bool claimed; /* a thread has allocated `memory`, or is doing so */
    bool ended;   /* nothing of the device is cached any longer */
    void *memory; /* NULL: the library does not watch the device yet, or any longer */
    uint64_t number;
} watches[MOST_DEVICES];

/* The library watches a device even with MGPU_RT_EXCLUSIVE=on, because other code or an override
 * may end that mode, and may then reset the device. */
static bool can_watch(int device) {
    return device < MOST_DEVICES && !cuda_present();
}

/* If the allocation fails, the library does not watch the device. With so little memory, the caches
 * can contain only few objects. */
void device_watch(int device) {
    struct watch *watch = can_watch(device) ? &watches[device] : NULL;
    void *memory = NULL;
    uint64_t number = 0;
    if (!watch || load_relaxed(&watch->claimed) || exchange_acq_rel(&watch->claimed, true))
        return;
    if (device_answered(PROOF_VALUE(watch_lies_on_the_device,
                                    hip.ExtMallocWithFlags(&memory, 64, hipDeviceMallocDefault),
                                    hip.HostMalloc(&memory, 64, hipHostMallocDefault))) &&
        device_memory_number(memory, &number)) {
        store_relaxed(&watch->number, number);
        store_release(&watch->memory, memory);
    } else {
        store_release(&watch->claimed, false);
    }
}

static bool was_reset(const struct watch *watch) {
    uint64_t number = 0;
    void *memory = load_acquire(&watch->memory);
    const uint64_t before = load_relaxed(&watch->number);
    return memory &&
           DOUBT(device_was_reset, !device_memory_number(memory, &number) || number != before);
}

bool device_has_caches(int device) {
    return device < MOST_DEVICES &&
           PROOF(device_was_never_reset, !load_seq_cst(&watches[device].ended));
}

/* Several threads may detect a reset at once. Each of these threads invalidates the objects, and
 * then finds none. */
void caches_end(int which) {
    const struct cache *const *cache = caches;
    for (int device = 0; device < MOST_DEVICES; device++)
        if (of_device(which, device))
            store_seq_cst(&watches[device].ended, true);
    while (*cache)
        cache++;
    while (cache-- != caches)
        if ((*cache)->invalidate)
            (*cache)->invalidate(which);
}

/* Returns true if the device was not reset; otherwise ends the caching for the device. The compiler
 * must not inline this function, because device_kept is inlined into the code for hits. */
static __attribute__((noinline)) bool ask_watch(int device) {
    if (!can_watch(device) || PROOF(nobody_has_reset_the_device, witness_confirms()) ||
        LIKELY(!was_reset(&watches[device])))
        return true;
    if (device_has_caches(device))
        report_verbose("device %d was reset: from now on the library caches nothing of this device",
                       device);
    caches_end(device);
    return false;
}

bool device_kept(int device) {
    return exclusive_hip() || ask_watch(device);
}

void device_ask_all(void) {
    for (int device = 0; device < MOST_DEVICES; device++)
        if (load_relaxed(&watches[device].claimed))
            (void)device_kept(device);
}

/* Detects resets before any other cache releases handles. */
static int trim_watches(int device) {
    (void)device;
    PROOF_STEP(reset_before_making_room, device_ask_all());
    return 0;
}

static void invalidate_watches(int which) {
    for (int device = 0; device < MOST_DEVICES; device++)
        if (of_device(which, device))
            store_release(&watches[device].memory, NULL);
}

const struct cache reset_cache = {.trim = trim_watches, .invalidate = invalidate_watches};
