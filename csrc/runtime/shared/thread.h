/* Each thread has its own block of memory, so that a hit shares no cache line with another thread.
 */
#ifndef MGPU_RT_THREAD_H
#define MGPU_RT_THREAD_H

#include "likely.h"
#include "mgpu.h"
#include "process/state.h"

enum { HOST_SLOTS = 4 };

struct module;
struct stream;

/* A piece of pageable host memory, according to HIP; valid while the count of mappings is unchanged
 * (mgpu_copy.c). */
struct host_slot {
    uintptr_t begin, end;
    uint64_t mappings;
};

/* The module that a thread last got for an image. The slot serves a load only if the module's entry
 * has this version, and its state is MODULE_IDLE. */
struct module_slot {
    struct module *module; /* NULL: the slot was never filled */
    uint64_t version_and_state;
};

/* The large blocks that a thread allocated, less those that it freed (block_table.h). */
struct held_bytes {
    ptrdiff_t size;  /* the bytes that HIP holds for them */
    ptrdiff_t asked; /* the bytes for which the program asked */
};

struct thread {
    struct stream *stream;       /* the stream that the thread used most recently */
    struct stream *external;     /* mgpu_rt_use_stream */
    struct module *loaded;       /* the module that the thread loaded most recently */
    struct module_slot *modules; /* by the image's number (struct known_image) */
    size_t module_slots;
    struct host_slot hosts[HOST_SLOTS];
    unsigned next_host;
    struct held_bytes held[MOST_DEVICES]; /* by device */
    struct thread *next;                  /* links all threads; guarded by tables_lock */
};

/* NULL until the thread's first call. With the initial-exec model an access is a single load. The
 * default model of a shared library calls __tls_get_addr (3 to 5 ns). The 8 bytes of the pointer
 * fit into the space that the loader reserves for libraries that are opened later. */
extern __thread struct thread *thread_self __attribute__((tls_model("initial-exec")));

/* Serves every thread for which no block could be allocated. The slots of thread_none serve no
 * call, and no thread writes to thread_none. The calls of a thread without a block use the tables
 * and HIP. Each such call first tries to allocate a block. */
extern struct thread thread_none;

static inline bool thread_is_none(const struct thread *thread) {
    return thread == &thread_none;
}

struct thread *thread_new(void);

/* Returns true if no other living thread has called this library. If a thread has no block, the
 * answer is always false. */
bool thread_is_alone(void);

/* Returns the calling thread's block, which its first call allocates; or thread_none. */
static inline struct thread *thread_get(void) {
    struct thread *thread = thread_self;
    return LIKELY(thread != NULL) ? thread : thread_new();
}

/* The list of all threads' blocks; the caller holds tables_lock. */
extern struct thread *thread_list;

#endif
