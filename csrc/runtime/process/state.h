/* State that every part of the runtime may read and write. The state contains the phase of the
 * process, the lock of the tables, and pointers by which lower layers call functions of upper
 * layers. */
#ifndef MGPU_RT_STATE_H
#define MGPU_RT_STATE_H

#include "atomics.h"

#include <pthread.h>

/* 0 while calls take the fast path; any bit sends each call through the slow entry (entry.c). */
enum {
    MODE_UNSTARTED = 1, /* the options have not been read, and HIP has not been searched for */
    MODE_TIMED = 2,     /* MGPU_RT_STATS: each call is timed */
    MODE_EXITING = 4,   /* the three phases of exit (lifecycle.c) */
    MODE_LATE = 8,
    MODE_OVER = 16,
    MODE_FORKED = 32,    /* a forked child has made no call yet, and records nothing */
    MODE_OVERRIDE = 64,  /* the user's runtime may override calls (override.h) */
    MODE_EXTERNAL = 128, /* a thread uses an external stream, which may be capturing (graphs/) */
    MODE_GRAPH = 256,    /* a thread is building a graph (graphs/) */
};
extern unsigned runtime_mode;

static inline bool runtime_is(unsigned mode) {
    return (load_relaxed(&runtime_mode) & mode) != 0;
}

/* Returns true after the exit handlers ran: the operating system frees all remaining resources. */
static inline bool runtime_exiting(void) {
    return runtime_is(MODE_EXITING);
}

/* Returns true if the process is ending, and the library must not release the handle of the entry
 * `known`. HIP has already destroyed the state that HIP's first call created, so a release may
 * crash HIP (llvm #190563). mgpuMemFree still frees a block that the program holds. */
static inline bool runtime_leaves(const void *known) {
    return known != NULL && runtime_is(MODE_LATE);
}

/* Returns true while every call is counted and timed. */
static inline bool runtime_counting(void) {
    return runtime_is(MODE_TIMED);
}

/* True in a child that was forked after the library had started. HIP does not survive a fork, and
 * an interpreter that this library started may have been running in a thread that the child lacks.
 */
extern bool runtime_forked;

/* Guards all tables: of modules, streams and their queues, events, blocks, ranges and threads. The
 * lock is held only for short stretches of this library's own code, never during a call to HIP,
 * Python or the loader. No other lock is taken while this lock is held. */
extern pthread_mutex_t tables_lock;

/* Locks a mutex. Returns false if the mutex is not free within `ms`: the calling thread may hold it
 * itself, if a signal handler has interrupted the library. */
bool lock_within(pthread_mutex_t *lock, unsigned ms);

/* ALL_DEVICES stands for all devices. The library supports MOST_DEVICES devices; only HIP knows the
 * objects on devices with higher numbers. */
enum { ALL_DEVICES = -1, MOST_DEVICES = 64 };
static inline bool of_device(int wanted, int device) {
    return wanted == device || wanted == ALL_DEVICES;
}

/* Asks the program for memory before mgpuMemAlloc fails for lack of it (mgpu_rt_on_out_of_memory in
 * mgpu_rt.h). NULL: there is no such function. */
extern void (*asked_for_memory)(int device, size_t bytes);

/* Returns idle memory to HIP, because other code is about to allocate (driver/witness.h).
 * memory/neighbours.c sets this pointer. */
extern void (*other_code_allocates)(void);

/* Registers the exit handler so that it runs before the handlers that HIP has registered so far;
 * lifecycle.c sets this pointer before HIP's first call. After the first use of each part of HIP,
 * the library calls the function again, because that part may have registered exit handlers. The
 * handler that was registered last runs first. */
extern void (*register_exit)(void);

/* Starts the manager, unless the manager is running. Called when a cache has reached its limit, or
 * a device has no memory left. The caller holds no lock of the runtime. lifecycle.c sets this
 * pointer. */
extern void (*limit_reached)(void);

#endif
