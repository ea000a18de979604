/* What each thread keeps for itself, so that a hit shares no cache line with another thread. */
#ifndef MGPU_RT_THREAD_H
#define MGPU_RT_THREAD_H

#include "runtime.h"

enum { MODULE_SLOT_BITS = 7, FUNCTION_SLOT_BITS = 9, EVENT_SLOTS = 8 };
enum { MODULE_SLOTS = 1 << MODULE_SLOT_BITS, FUNCTION_SLOTS = 1 << FUNCTION_SLOT_BITS };

/* A hit is served from the slot that its key leads to, or with a few instructions more from one of
 * the next three: images and names lie in rows, so that several keys lead to one slot even where
 * most slots are empty. */
enum { SLOT_WINDOW = 4 };

/* The slot that a key leads to: the upper bits of a product depend on all bits of the key. */
static inline size_t slot_home(uintptr_t key, unsigned bits) {
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - bits));
}

struct module;
struct function;
struct stream;
struct event;

/* "At this address lay the image of this module", and how often this thread loaded and unloaded it.
 * Only the owning thread writes, except under the registry's lock; all may read. */
struct module_slot {
    const void *image;
    struct module *module;
    hipModule_t handle;
    uint64_t epoch; /* of the registry when the slot was filled */
    uint64_t loads, unloads;
    bool constant; /* the image can neither change nor go away: a hit need not compare it */
};

/* "This name in this module is this function." */
struct function_slot {
    hipModule_t module;
    const char *name;
    struct function *function;
    struct module_slot
        *holder; /* this thread's slot of the module; NULL: another thread holds it */
    uint64_t epoch;
    bool constant; /* the name can neither change nor go away */
};

struct thread {
    struct stream *stream;      /* the stream it used last */
    struct stream *chosen;      /* mgpu_rt_use_stream */
    struct module_slot *loaded; /* the slot that served its last load */
    struct module_slot modules[MODULE_SLOTS];
    struct function_slot functions[FUNCTION_SLOTS];
    struct event *events[EVENT_SLOTS]; /* free for reuse */
    unsigned event_count;
    struct thread *next; /* all threads, under registry_lock */
};

/* NULL until the thread's first call. Initial-exec: one load, where the default model of a shared
 * library calls __tls_get_addr (3 to 5 ns); 8 bytes fit into what the loader keeps spare for
 * libraries that are opened later. */
extern __thread struct thread *thread_self __attribute__((tls_model("initial-exec")));

struct thread *thread_new(void);

/* The calling thread's block, made at its first call (about 37 KB, of which a
 * program touches what it uses; without memory for it the process
 * aborts with a message, as libc does for thread-local variables). */
static inline struct thread *thread_get(void) {
    struct thread *thread = thread_self;
    return LIKELY(thread != NULL) ? thread : thread_new();
}

/* All threads' blocks; the caller holds registry_lock. */
extern struct thread *thread_list;

#endif
