/* The duties of every cache, the loops over all of them, and the event that invalidates all caches:
 * the reset of a device.
 *
 * A cache is a `struct cache` in its room or above shared/, and a line in lifecycle.c's table. */
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

/* An object that a cache holds from HIP. */
struct cached {
    void *handle;  /* of a module or a stream, or the address of a block */
    size_t bytes;  /* the object's cost; 0 for a stream */
    uint64_t uses; /* how often the program was given it */
    int device;
    int held; /* 1: the program holds it now */
};

/* Every function is thread-safe; NULL stands for one that does nothing. A device may be
 * ALL_DEVICES. The caller holds no lock of the runtime, and neither does a function while it calls
 * HIP. */
struct cache {
    const char *name;
    /* Has HIP release the idle objects of a device; returns how many. May wait for work. */
    int (*trim)(int device);
    /* Invalidates all objects of a device, because it was reset or HIP ends. Other threads may be
     * at work, and only they may touch their slots. Calls no function of HIP that needs an
     * invalidated object. */
    void (*invalidate)(int device);
    /* Lets other threads have what the slots of an ending thread hold. */
    void (*thread_ends)(struct thread *thread);
    /* Notes that a stream was inserted, perhaps with a handle that HIP has handed out before on
     * another device. */
    void (*stream_begins)(struct stream *stream);
    /* Notes that HIP destroys a stream, which the caller has acquired. */
    void (*stream_ends)(struct stream *stream);
    /* Lists the cache's objects for the manager. Copies up to `room` entries; returns how many
     * there are. Does not call HIP. */
    size_t (*list)(struct cached *out, size_t room);
    /* Evicts an object for the manager. Removes an entry from its table, so that no call of the
     * program can get it any more, and has HIP release it. Returns hipSuccess; hipErrorNotReady if
     * it has to stay; hipErrorNotFound if it is not in the table; or HIP's error. */
    hipError_t (*evict)(void *handle);
};

/* Sets the one table of caches, which NULL ends: they are trimmed in its order, and invalidated in
 * the reverse order. The table is set before HIP is first called, and stays. */
void caches_set(const struct cache *const *table);

/* Has HIP release all idle objects; returns how many. */
int caches_trim(void);
void caches_invalidate(int device);
/* Invalidates all caches for a thread that has seen a reset. Does nothing if another thread has
 * handled that reset: entries made since then are valid. `is_unseen` tells whether the reset is
 * new, while no other thread invalidates. */
void caches_invalidate_if(int device, bool (*is_unseen)(void *), void *what);
/* Resets the caches in a child of fork: a thread of the parent's may have been invalidating. */
void caches_forked(void);
void caches_thread_ends(struct thread *thread);
void caches_stream_begins(struct stream *stream);
void caches_stream_ends(struct stream *stream);

/* Trims the caches after a call to HIP that takes memory has failed, if memory may be what was
 * missing. Returns true if the call is to be tried again. */
bool caches_make_room(hipError_t error);

/* RETRY(call): a call to HIP that may want memory; made once more after the caches were trimmed. */
#define RETRY(call)                                                                                \
    __extension__({                                                                                \
        hipError_t answer_ = (call);                                                               \
        if (UNLIKELY(answer_ != hipSuccess) &&                                                     \
            DOUBT(call_may_succeed_with_room, caches_make_room(answer_)))                          \
            answer_ = (call);                                                                      \
        answer_;                                                                                   \
    })

/* ---- how much the caches may hold ---- */

/* The most that the caches may hold beyond what the program holds. Caches keep to these limits by
 * themselves, least recently used first, with or without a manager. MGPU_RT_*_LIMIT and the manager
 * set them. */
struct cache_limits {
    _Atomic size_t module_bytes; /* the cost of idle modules */
    _Atomic size_t streams;      /* the number of streams that the program does not hold */
    _Atomic size_t memory_bytes[MOST_DEVICES]; /* bytes of freed and cached blocks, by device; 0:
                                                  not asked for yet */
};
extern struct cache_limits cache_limits;

/* The reasons for which a free takes the careful way: a hit tests them all at once. */
enum {
    CARE_SEVERAL_STREAMS = 1,
    CARE_OVER_LIMIT = 2,
};
extern unsigned care_of_frees;

/* Sets the limits from the options. */
void limits_set(void);

/* ---- whether somebody has reset a device ---- */

/* Makes later resets of a device visible. Called before a cache holds any object on the device,
 * while it is the thread's current one. */
void device_watch(int device);

/* Returns true if no code has reset the device since device_watch. If it was reset, invalidates all
 * that the caches hold on it. The check is called before a cache looks for an object there: all
 * that it then finds is valid. A call afterwards is too late: another thread may have seen the
 * reset and watch the device again. On AMD's devices the check costs a question to HIP (0.1 µs),
 * unless no other code in the process calls HIP. */
bool device_kept(int device);
/* Calls device_kept for every device. */
void device_ask_all(void);
/* Calls device_kept for one device, and returns how many of its resets were seen so far. */
unsigned device_resets(int device);

extern const struct cache reset_cache;

#endif
