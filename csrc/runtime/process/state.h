/* The state that every part of the runtime may know. The state tells how far the process is, holds
 * the lock of the tables, and lets upper layers serve lower ones. */
#ifndef MGPU_RT_STATE_H
#define MGPU_RT_STATE_H

#include "atomics.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* 0 while calls take the fast path; any bit sends each call through the slow entry (entry.c). */
enum {
    MODE_UNSTARTED = 1,  /* the options were not read, HIP was not looked for */
    MODE_TIMED = 2,      /* MGPU_RT_STATS: each call is timed */
    MODE_EXITING = 4,    /* the exit handler ran: nothing is cached any more */
    MODE_LATE = 8,       /* the exit handlers of HIP's first use have run as well */
    MODE_OVERRIDE = 64,  /* a runtime of the user's own may answer (override.h) */
    MODE_FORKED = 32,    /* a child of fork that records nothing before its first call */
    MODE_OVER = 16,      /* so have those of HIP's opening: HIP has ended */
    MODE_GRAPH = 256,    /* a thread builds a graph (graphs/) */
    MODE_EXTERNAL = 128, /* a thread uses an external stream: it may capture (graphs/) */
};
extern unsigned runtime_mode;

static inline bool runtime_is(unsigned mode) {
    return (load_relaxed(&runtime_mode) & mode) != 0;
}

/* Returns true after the exit handlers ran: the operating system frees all that is still held. */
static inline bool runtime_exiting(void) {
    return runtime_is(MODE_EXITING);
}

/* Returns true if a handle that the tables knew need not be released any more. Then the process
 * ends, and all that HIP registered at its first call is gone, so HIP may not survive the release
 * (llvm #190563). Memory of the program does not count: the program goes on using it. */
static inline bool runtime_leaves(const void *known) {
    return known != NULL && runtime_is(MODE_LATE);
}

/* Returns true while every call is counted and timed. */
static inline bool runtime_counting(void) {
    return runtime_is(MODE_TIMED);
}

/* True in a child of fork. HIP does not survive a fork, and an interpreter that this library
 * started may have been busy in a thread that the child lacks. */
extern bool runtime_forked;

/* Guards all tables: of modules, streams and their queues, events, blocks, ranges and threads. The
 * lock is held for short stretches of this library's own code only, never while HIP, Python or the
 * loader is called. No other lock is taken under it. */
extern pthread_mutex_t tables_lock;

/* The number that stands for all devices, and how many devices are known. Only HIP knows the
 * objects on further devices. */
enum { ALL_DEVICES = -1, MOST_DEVICES = 64 };
static inline bool of_device(int wanted, int device) {
    return wanted == device || wanted == ALL_DEVICES;
}

/* mgpuMemAlloc calls these two before it fails for want of memory, in this order: the program's
 * function (mgpu_rt_on_out_of_memory in mgpu_rt.h), and an override's. NULL: none. */
enum { ASKED_PROGRAM, ASKED_OVERRIDE, ASKED };
extern void (*asked_for_memory[ASKED])(int device, size_t bytes);

/* Registers the exit handler so that it runs before all that HIP has registered so far: lifecycle.c
 * sets this function before HIP is first called. The function is called again after each first use
 * of a part of HIP, as exit handlers run last in, first out. */
extern void (*register_exit)(void);

/* Starts the manager if there is none yet, when a cache has reached its limit or a device has no
 * memory left. An upper layer sets this, too. The function is called without a lock of the
 * runtime's. */
extern void (*limit_reached)(void);

#endif
