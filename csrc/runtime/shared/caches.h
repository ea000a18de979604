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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Every function is thread-safe; NULL means that the cache has nothing to do. The device argument
 * may be ALL_DEVICES. The caller holds no lock of the runtime, and no function holds one during a
 * call to HIP. */
struct cache {
    const char *name;
    /* Calls HIP to release the idle objects of a device; returns how many. May wait for pending
     * work. */
    int (*trim)(int device);
    /* Invalidates all objects of a device, because the device was reset or HIP ends. Other threads
     * may be running; only a thread itself may read or write its slots. Calls no HIP function that
     * needs an invalidated object. */
    void (*invalidate)(int device);
    /* Makes the objects in an ending thread's slots available to other threads. */
    void (*thread_ends)(struct thread *thread);
    /* Handles the insertion of a stream, whose handle HIP may have used before on another device.
     */
    void (*stream_begins)(struct stream *stream);
    /* Handles the end of a stream that the caller has acquired and HIP destroys. */
    void (*stream_ends)(struct stream *stream);
    /* Lists the cache's objects for the manager. Copies up to `room` entries; returns the number of
     * all entries. Does not call HIP. */
    size_t (*list)(struct cached *out, size_t room);
    /* Evicts an object for the manager. Removes an entry from its table, so that no call of the
     * program can get the object, then calls HIP to release the object. Returns hipSuccess;
     * hipErrorNotReady if the object must stay; hipErrorNotFound if the object is not in the table;
     * or HIP's error. */
    hipError_t (*evict)(void *handle);
};

/* Sets the only table of caches, terminated by NULL: caches are trimmed in the table's order, and
 * invalidated in reverse order. The table is set before HIP is first called, and never changes. */
void caches_set(const struct cache *const *table);

/* Calls HIP to release all idle objects; returns how many. */
int caches_trim(void);
void caches_invalidate(int device);
/* Invalidates all caches, for a thread that has detected a reset. Does nothing if another thread
 * has handled that reset: all entries since then are valid. `is_unseen` reports whether the reset
 * is new; during the call of `is_unseen`, no other thread invalidates caches for a detected reset.
 */
void caches_invalidate_if(int device, bool (*is_unseen)(void *), void *what);
/* Resets the caches in a forked child: a thread of the parent may have been invalidating them. */
void caches_forked(void);
void caches_thread_ends(struct thread *thread);
void caches_stream_begins(struct stream *stream);
void caches_stream_ends(struct stream *stream);

/* Trims the caches after a call to HIP has failed, if lack of memory may be the reason. Returns
 * true if the caller should repeat the call. */
bool caches_make_room(hipError_t error);

/* RETRY(call): calls HIP; if the call may have failed for lack of memory, trims the caches and
 * repeats the call. */
#define RETRY(call)                                                                                \
    __extension__({                                                                                \
        hipError_t answer_ = (call);                                                               \
        if (UNLIKELY(answer_ != hipSuccess) &&                                                     \
            DOUBT(call_may_succeed_with_room, caches_make_room(answer_)))                          \
            answer_ = (call);                                                                      \
        answer_;                                                                                   \
    })

/* ---- how much the caches may hold ---- */

/* The most that the caches may contain in addition to what the program holds. Caches enforce these
 * limits themselves, with or without a manager, and evict the least recently used object first.
 * MGPU_RT_*_LIMIT and the manager set the limits. */
struct cache_limits {
    _Atomic size_t module_bytes; /* the cost of all idle modules */
    _Atomic size_t streams;      /* the number of streams that the program does not hold */
    _Atomic size_t memory_bytes[MOST_DEVICES]; /* bytes of freed and cached blocks, by device; 0:
                                                * HIP was not asked yet */
};
extern struct cache_limits cache_limits;

/* The reasons why a free takes the careful path: a hit tests all of them at once. */
enum {
    CARE_SEVERAL_STREAMS = 1,
    CARE_OVER_LIMIT = 2,
};
extern unsigned care_of_frees;

/* Sets the limits to the values of the options. */
void limits_set(void);

/* ---- whether somebody has reset a device ---- */

/* Makes later resets of a device detectable. Called before a cache holds any object on the device,
 * while the device is the thread's current one. */
void device_watch(int device);

/* Returns true if no code has reset the device since device_watch. If the device was reset,
 * invalidates all objects that the caches hold on it. A cache calls this function before it looks
 * for an object of that device, so that all objects that the cache finds are valid. A call after
 * the search would not suffice: another thread may have detected the reset, and may watch the
 * device again by then. On AMD's devices the check costs a query to HIP (0.1 µs), unless no other
 * code in the process calls HIP. */
bool device_kept(int device);
/* Calls device_kept for every device. */
void device_ask_all(void);
/* Calls device_kept for one device, and returns how many resets of that device were detected so
 * far. */
unsigned device_resets(int device);

extern const struct cache reset_cache;

#endif
