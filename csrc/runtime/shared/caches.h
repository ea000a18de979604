/* The duties of every cache, and the loops over all of them; and what ends all that they hold: the
 * reset of a device.
 *
 * A cache is a `struct cache` in its room or above shared/, and its line in lifecycle.c's table. */
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

/* One thing that a cache holds from HIP. */
struct cached {
    void *handle;  /* module, stream, or address of the block */
    size_t bytes;  /* that it costs; 0 for a stream */
    uint64_t uses; /* how often the program was given it */
    int device;
    int held; /* the program has it now */
};

/* Every function is thread-safe, and may be NULL: then there is nothing to do. A device may be
 * ALL_DEVICES. No lock of the runtime's is held when they are called, or while they call HIP. */
struct cache {
    const char *name;
    /* Gives to HIP what nobody holds on a device; returns how many. May wait for work. */
    int (*trim)(int device);
    /* From here on nothing that HIP has handed out on a device is known: it was reset, or HIP ends.
     * Other threads may be at work, and what their slots hold is theirs. Calls no HIP that
     * needs what is invalidated. */
    void (*invalidate)(int device);
    /* A thread ends: what its slots hold is for the others. */
    void (*thread_ends)(struct thread *thread);
    /* A stream was entered, perhaps with a handle that HIP has handed out before, on another
     * device. */
    void (*stream_begins)(struct stream *stream);
    /* A stream, which the caller has taken, goes back to HIP. */
    void (*stream_ends)(struct stream *stream);
    /* For the manager. Copies up to `room` entries; returns how many there are. Calls no HIP. */
    size_t (*list)(struct cached *out, size_t room);
    /* For the manager. Takes an entry out of its table, so that no call of the program's can get it
     * any more, and gives it to HIP. hipSuccess; hipErrorNotReady if it has to stay;
     * hipErrorNotFound if it is not in the table; else HIP's error. */
    hipError_t (*evict)(void *handle);
};

/* Sets the one table, up to a NULL: they are trimmed in this order, and invalidated in the reverse
 * one. Set before HIP is first called; it stays. */
void caches_set(const struct cache *const *table);

/* Gives to HIP all that nobody holds; returns how many. */
int caches_trim(void);
void caches_invalidate(int device);
/* Invalidates all for a thread that has seen a reset. Does nothing if another thread has handled
 * that reset: entries made since then are valid. `is_unseen` says so, while no other thread
 * invalidates. */
void caches_invalidate_if(int device, bool (*is_unseen)(void *), void *what);
/* Resets the caches in a child of fork: a thread of the parent's may have been invalidating. */
void caches_forked(void);
void caches_thread_ends(struct thread *thread);
void caches_stream_begins(struct stream *stream);
void caches_stream_ends(struct stream *stream);

/* Trims the caches after a call of HIP's that takes memory has failed, if memory may be what was
 * missing. Returns true if the call is to be tried again. */
bool caches_make_room(hipError_t error);

/* RETRY(call): HIP's call that may want memory; once more after the caches were trimmed. */
#define RETRY(call)                                                                                \
    __extension__({                                                                                \
        hipError_t answer_ = (call);                                                               \
        if (UNLIKELY(answer_ != hipSuccess) &&                                                     \
            DOUBT(call_may_succeed_with_room, caches_make_room(answer_)))                          \
            answer_ = (call);                                                                      \
        answer_;                                                                                   \
    })

/* ---- how much the caches may hold ---- */

/* The most that the caches may hold beyond what the program holds. They keep to it by themselves,
 * least recently used first, with or without a manager. Set from MGPU_RT_*_LIMIT, and by the
 * manager. */
struct cache_limits {
    _Atomic size_t module_bytes; /* what idle modules cost */
    _Atomic size_t streams;      /* streams that the program does not hold */
    _Atomic size_t
        memory_bytes[MOST_DEVICES]; /* freed, and cached; by device; 0: not asked for yet */
};
extern struct cache_limits cache_limits;

/* Why a free takes the careful way: one test on the way of a hit. */
enum {
    CARE_SEVERAL_STREAMS = 1,
    CARE_OVER_LIMIT = 2,
};
extern unsigned care_of_frees;

/* Sets the limits as the options say. */
void limits_set(void);

/* ---- whether somebody has reset a device ---- */

/* Makes later resets of a device visible. To be called before a cache holds anything on it, while
 * it is the thread's current one. */
void device_watch(int device);

/* Returns true if nobody has reset the device since device_watch. Otherwise invalidates all that
 * the caches hold on it. To be asked before a cache looks for what it holds there: what it finds
 * afterwards is HIP's still. Asked afterwards it is too late: another thread may have seen the
 * reset and watch the device again. Costs a question to HIP (0.1 µs), on AMD's devices, unless
 * nobody else in the process calls HIP. */
bool device_kept(int device);
/* Asks that of every device. */
void device_ask_all(void);
/* Asks that of one device, and returns how many resets of it were seen so far. */
unsigned device_resets(int device);

extern const struct cache reset_cache;

#endif
