/* The functions that every cache provides, the loops over all caches, and the invalidation of all
 * caches at a device's reset.
 *
 * A cache is a `struct cache` in its own folder, and a line in lifecycle.c's table. */
#ifndef MGPU_RT_CACHES_H
#define MGPU_RT_CACHES_H

#include "likely.h"
#include "mgpu.h"
#include "process/state.h"
#include "proof.h"

struct handle_map;
struct stream;
struct thread;

/* An object of HIP that a cache holds. */
struct cached {
    void *handle;  /* handle of a module or a stream, or the address of a block */
    size_t bytes;  /* the object's cost; 0 for a stream */
    uint64_t uses; /* how often the program got the object */
    int device;
    int held; /* 1: the program holds the object now */
};

/* Every function is thread-safe. A function pointer is NULL if the cache has nothing to do. The
 * device argument may be ALL_DEVICES. The caller holds no lock of the runtime. No function calls
 * HIP while holding a lock of the runtime. */
struct cache {
    /* Calls HIP to release the idle objects of a device; returns how many. May wait for pending
     * work. */
    int (*trim)(int device);
    bool holds_host_memory; /* HIP waits for all streams to release the objects, which take no
                             * memory of the device */
    /* Invalidates all objects of a device, because the device was reset or HIP ends. Several
     * threads may call this function at once. Does not access another thread's slots, because that
     * thread may be running. Calls no HIP function that needs an invalidated object. */
    void (*invalidate)(int device);
    /* Makes the objects in an ending thread's slots available to other threads. */
    void (*thread_ends)(struct thread *thread);
    /* Handles the end of a stream that the caller has acquired and HIP destroys. */
    void (*stream_ends)(struct stream *stream);
    /* Describes the object of an entry of `map` for the manager. Returns false if HIP has released
     * the object. Does not call HIP. */
    bool (*describe)(const void *entry, struct cached *out);
    const struct handle_map *map;
    /* Evicts an object for the manager. Removes an entry from its table, so that no call of the
     * program can get the object, then calls HIP to release the object. Returns hipSuccess;
     * hipErrorNotReady if the object must stay; hipErrorNotFound if the object is not in the table;
     * or HIP's error. */
    hipError_t (*evict)(void *handle);
};

/* Sets the NULL-terminated table of all caches. Caches are trimmed in the table's order, and
 * invalidated in reverse order. The table is set before HIP is first called, and never changes. */
void caches_set(const struct cache *const *table);

/* Calls HIP to release all idle objects; returns how many. */
int caches_trim(void);
/* Ends the caching for a device: invalidates all its objects, and lets no new objects of the device
 * enter the caches. */
void caches_end(int device);
/* Lists a cache's objects, at most `room`; returns how many. */
size_t cache_list(const struct cache *cache, struct cached *out, size_t room);
void caches_thread_ends(struct thread *thread);
void caches_stream_ends(struct stream *stream);

/* Trims the caches after a call to HIP has failed, if lack of memory may be the reason. Host memory
 * stays cached. Returns true if the caller should repeat the call. */
bool caches_make_room(hipError_t error);

/* RETRY(call): calls HIP; if the call may have failed for lack of memory, trims the caches and
 * repeats the call. RETRY_IF does so only if `may_help`, which it evaluates after a failure. */
#define RETRY(call) RETRY_IF(true, call)
#define RETRY_IF(may_help, call)                                                                   \
    __extension__({                                                                                \
        hipError_t answer_ = (call);                                                               \
        if (UNLIKELY(answer_ != hipSuccess) && (may_help) &&                                       \
            DOUBT(call_may_succeed_with_room, caches_make_room(answer_)))                          \
            answer_ = (call);                                                                      \
        answer_;                                                                                   \
    })

/* ---- how much the caches may hold ---- */

/* The limits for objects that the caches contain and the program does not hold. Caches enforce
 * these limits themselves, with or without a manager, and evict the least recently used object
 * first. MGPU_RT_*_LIMIT and the manager set the limits. */
struct cache_limits {
    _Atomic size_t module_bytes; /* the cost of all idle modules */
    _Atomic size_t streams;      /* the number of streams that the program does not hold */
    _Atomic size_t memory_bytes[MOST_DEVICES]; /* bytes of freed and cached blocks, by device; 0:
                                                * HIP was not asked yet */
};
extern struct cache_limits cache_limits;

/* The reasons why a free must not take the fast path. A free tests all reasons with one load of
 * care_of_frees. */
enum {
    CARE_SEVERAL_STREAMS = 1,
    CARE_OF_BOUNDS = 2, /* blocks leave at frees, or left (eviction.c) */
    CARE_WANTED = 4,    /* another process waits for idle memory */
};
extern unsigned care_of_frees;

/* The bytes of a device that count as much memory. A process with less memory has no thread that
 * returns idle memory (memory/neighbours.h). */
enum { MUCH_MEMORY = 64 << 20 };

/* The functions of memory/neighbours.c, which lifecycle.c sets. */
extern struct neighbours {
    /* Called after HIP has allocated a block, if the device's blocks have MUCH_MEMORY. */
    void (*note_memory)(void);
    /* Called while CARE_WANTED is set, after the program has freed memory. */
    void (*note_free)(int device);
    /* Asks other processes for memory of a device after an allocation has failed, and waits for at
     * most two seconds. Returns true if the caller should repeat the call. The caller holds no lock
     * of the runtime. */
    bool (*ask)(int device);
} neighbours;

/* Sets the limits to the values of the options. */
void limits_set(void);

/* ---- whether somebody has reset a device ---- */

/* Makes a reset of a device detectable. Called before a cache holds any object on the device. The
 * device is the thread's current device. */
void device_watch(int device);

/* Returns false if this call has detected that the device was reset. The call has then ended the
 * caching for the device. A cache calls this function before it looks for an object of that device,
 * so that all objects that the cache finds are valid. On AMD's devices, device_kept costs a query
 * to HIP (0.1 µs), unless no other code in the process calls HIP. */
bool device_kept(int device);
/* Calls device_kept for every device. */
void device_ask_all(void);

/* Returns true until caches_end was called for the device. Afterwards, and for a device with a
 * number that the library does not support, calls run as with MGPU_RT_CACHE=off. A call that
 * misses calls device_kept first. */
bool device_has_caches(int device);

extern const struct cache reset_cache;

#endif
