/* The memory that this library shares with its manager, a separate Python process.
 *
 * manager.c, publish.c and services.c run in the program; csrc/manager runs in the manager's
 * process. Each word has one writer, unless a comment names several writers. The library and the
 * manager do not trust each other. Each side masks an index before using the index, looks up a
 * handle before using the handle, and limits each wait.
 *
 * Every change of this file increases CHANNEL_LAYOUT. A library and a package of different versions
 * do not communicate; `version` is the library's version. */
#ifndef MGPU_RT_CHANNEL_H
#define MGPU_RT_CHANNEL_H

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    CHANNEL_MAGIC = 0x7570676d,
    CHANNEL_LAYOUT = 2,
    CHANNEL_EVENTS = 4096, /* a power of two: the number of events that can wait in the ring. The
                            * library only counts further events */
    CHANNEL_ROOM = 16384,  /* entries in one list */
    CHANNEL_TEXT = 1024,
    CHANNEL_KINDS = 6, /* enum published */
    CHANNEL_FD = 3,    /* the file descriptor of the shared memory in the manager's process */
};

/* An event of a cache (publish.h). */
struct channel_event {
    uint64_t time; /* ns, CLOCK_MONOTONIC */
    uint64_t handle, bytes;
    int32_t kind, device;
};

/* A place in the ring. `turn` tells who may use the place. Event n's place is free while turn is n,
 * and holds the event while turn is n + 1. */
struct channel_cell {
    uint64_t turn;
    struct channel_event event;
};

/* An object that a cache holds (struct cached of shared/caches.h). */
struct channel_cached {
    uint64_t handle, bytes, uses;
    int32_t device, held;
};

/* The requests that the manager may send. `answer` is a hipError_t; for a list it is the number of
 * entries. */
enum channel_request {
    REQUEST_LIST,   /* lists objects of `kind`: the answer is their number, and `cached` gets as
                     * many as fit */
    REQUEST_EVICT,  /* evicts the object `handle` of `kind` */
    REQUEST_PIN,    /* pins the module `handle`; value: 1 or 0 */
    REQUEST_LIMITS, /* fills `limits` */
    REQUEST_LIMIT,  /* sets the limit of `kind` (for blocks: of `device`) to `value` */
    REQUEST_MEMORY, /* stores free and total bytes of `device` in `memory` */
    REQUEST_SAY,    /* prints `text` with MGPU_RT_VERBOSE */
    REQUEST_WARN,   /* always prints `text` */
};

enum channel_kind { KIND_MODULE, KIND_STREAM, KIND_BLOCK };

enum channel_state { CHANNEL_STARTING, CHANNEL_SERVING, CHANNEL_FAILED };

struct channel {
    uint32_t magic, layout;
    char version[32];
    char reason[216]; /* the reason why no manager will run; this member has a fixed offset, so that
                       * Python can write the reason without cffi */
    uint32_t ready;   /* the library has set up all fields below */
    uint32_t state;   /* enum channel_state; written by the manager */
    char python[24];  /* the manager's version of Python; the manager sets `python` and `process`
                       * before `state` */
    int32_t process;

    /* The library's thread holds the mutex `program` until the thread ends. The manager holds the
     * mutex `manager` until the manager ends. The kernel releases a robust mutex however its holder
     * ends, even by exec. */
    pthread_mutex_t program, manager;

    /* The word on which the library's thread waits; the library or the manager wakes the thread
     * with channel_ring. */
    uint32_t doorbell;
    uint32_t asked, answered; /* number of requests so far */
    struct {
        int32_t request, kind, device;
        uint64_t handle, value;
        int64_t answer;
    } call;
    struct {
        uint64_t module_bytes, streams, memory_bytes[64];
    } limits;
    struct {
        uint64_t available, total;
    } memory;
    char text[CHANNEL_TEXT];

    uint32_t heartbeat;                     /* counts the manager's searches for events: at least
                                             * one a second */
    uint32_t asleep;                        /* the manager is waiting for events */
    uint64_t dropped_events[CHANNEL_KINDS]; /* number of events that were lost because the ring was
                                             * full */
    _Alignas(64) uint64_t next; /* number of the next event to write; any thread of the program may
                                 * write it */
    _Alignas(64) uint64_t read; /* number of the next event to read; written by the manager */
    struct channel_cell cells[CHANNEL_EVENTS];
    struct channel_cached cached[CHANNEL_ROOM];
};

enum { CHANNEL_REASON = 40 }; /* the offset at which mgpu_rt/manager/_manager.py writes */
_Static_assert(offsetof(struct channel, reason) == CHANNEL_REASON, "manager.py knows it");

/* Returns once *word is not `value`, another thread calls channel_ring(word), or the milliseconds
 * have passed. */
static inline void channel_wait(uint32_t *word, uint32_t value, uint64_t milliseconds) {
    const struct timespec limit = {(time_t)(milliseconds / 1000),
                                   (long)(milliseconds % 1000 * 1000000)};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

/* Wakes the threads that wait for *word, with a system call that takes a microsecond. */
static inline void channel_ring(uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
