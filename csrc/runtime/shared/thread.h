/* The memory of each thread, so that a hit shares no cache line with another thread. */
#ifndef MGPU_RT_THREAD_H
#define MGPU_RT_THREAD_H

#include "likely.h"
#include "mgpu.h"
#include "shared/slots.h"

#include <stdbool.h>

enum { EVENT_SLOTS = 8, HOST_SLOTS = 4 };

struct module;
struct stream;
struct event;

/* A piece of pageable host memory, by HIP's answer; valid while the count of mappings stays
 * (copy.c). */
struct host_slot {
    uintptr_t begin, end;
    uint64_t mappings;
};

struct thread {
    struct stream *stream;   /* the stream that the thread used last */
    struct stream *external; /* mgpu_rt_use_stream */
    struct module *loaded;   /* the image that the thread loaded last */
    struct slots modules, functions;
    struct event *events[EVENT_SLOTS]; /* idle, unless another thread has taken them since */
    unsigned event_count;
    struct host_slot hosts[HOST_SLOTS];
    unsigned next_host;
    uint64_t ticket;     /* odd: the last that thread_next_ticket has returned */
    struct thread *next; /* all threads, under tables_lock */
};

/* NULL until the thread's first call. The initial-exec model makes an access one load. The default
 * model of a shared library calls __tls_get_addr (3 to 5 ns). The block's 8 bytes fit into the
 * space that the loader reserves for libraries that are opened later. */
extern __thread struct thread *thread_self __attribute__((tls_model("initial-exec")));

/* Stands for a thread's block when there is no memory for one: no slot of it serves, and no thread
 * writes it. A thread without memory sends its calls to the tables and to HIP; its next call asks
 * for memory again. */
extern struct thread thread_none;

static inline bool thread_is_none(const struct thread *thread) {
    return thread == &thread_none;
}

struct thread *thread_new(void);

/* Returns true if no other living thread has called this library. */
bool thread_is_alone(void);

/* Returns the calling thread's block, made at its first call (9 KB); or thread_none. */
static inline struct thread *thread_get(void) {
    struct thread *thread = thread_self;
    return LIKELY(thread != NULL) ? thread : thread_new();
}

/* Takes a block of tickets for the thread; returns the first. */
uint64_t thread_take_tickets(struct thread *thread);

/* Returns an odd number that no other call returns, in any thread. Costs one locked operation in a
 * million calls. */
enum { TICKET_BLOCK = 1 << 20 };
static inline uint64_t thread_next_ticket(struct thread *thread) {
    const uint64_t next = thread->ticket + 2;
    if (UNLIKELY(next % TICKET_BLOCK <= 2)) /* the block is used up, or there was none */
        return thread_take_tickets(thread);
    thread->ticket = next;
    return next;
}

/* All threads' blocks; the caller holds tables_lock. */
extern struct thread *thread_list;

#endif
