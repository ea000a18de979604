/* The call that the calling thread makes: its arguments, and its outcome. The function that knows a
 * part of the outcome writes that part, and the recorder reads all of it once, at the end.
 *
 * The slow entry begins a call. On the fast entry nobody reads what is written here: a hit there
 * writes nothing, and a miss some words that the next call overwrites. */
#ifndef MGPU_RT_CALL_H
#define MGPU_RT_CALL_H

#include "mgpu.h"
#include "proof.h"

/* How a call was served. */
enum call_how {
    CALL_PLAIN,   /* no cache has a part in it, or another function answered it */
    CALL_HIT,     /* a cache; a copy: through pinned memory */
    CALL_MISS,    /* HIP, and the cache keeps what it made */
    CALL_BYPASS,  /* HIP, and nothing is kept */
    CALL_REFUSED, /* nobody: the library knows that it is wrong */
    CALL_FAILED,  /* nobody: HIP refused it */
    CALL_HOWS
};

struct call {
    enum abi_index function;
    bool begun;       /* else what fails is outside of any call */
    bool overridden;  /* an override answers it (override.h) */
    bool native;      /* and has called this library */
    bool in_stream;   /* stream is an argument of it */
    const void *site; /* where the program goes on after its call */
    uint64_t begin;
    hipStream_t stream;
    const void *image, *kernel;
    hipModule_t module;
    const char *name;
    const void *to, *from;
    uint64_t bytes;
    enum call_how how;
    hipError_t error; /* of the last failure; hipSuccess if none */
    struct {
        size_t image;          /* 1 + its row in the counters; 0: not told, or it has none */
        unsigned driver_loads; /* how often HIP has loaded it */
    } loaded;
    int device;
    bool marked;    /* a range of a profiler's has begun with it */
    ptrdiff_t held; /* bytes of its memory that the call gives to the program, or takes back */
};

/* By value, so that a thread that leaves a call by another way than its end leaves no pointer to a
 * frame that is gone. */
extern __thread struct call call_now __attribute__((tls_model("initial-exec")));

/* struct call's `site` of the call that the program makes: the slow entry reads it. */
extern __thread const void *call_site __attribute__((tls_model("initial-exec")));

/* Tells how the calling thread's call is served; the last word counts. */
static inline void call_tell(enum call_how how) {
    call_now.how = how;
}

/* Tells that the program holds so many bytes of a device's memory more from now on. */
static inline void call_tell_held(int device, ptrdiff_t bytes) {
    call_now.device = device;
    call_now.held += bytes;
}

/* Notes that the call failed. A refusal was told before. */
static inline void call_fail(hipError_t error) {
    call_now.error = error;
    if (PROOF(call_was_not_refused, call_now.how != CALL_REFUSED))
        call_now.how = CALL_FAILED;
}

/* Begins a call within the one at hand, which goes into *call; and ends it. If both are of one
 * function, an override has passed the call on, and the outcome is the outer's. */
static inline void call_enter(struct call *call) {
    const struct call outer = call_now;
    call_now = *call;
    call_now.begun = true;
    *call = outer;
}
static inline void call_leave(const struct call *outer) {
    const struct call inner = call_now;
    call_now = *outer;
    call_now.native = true;
    if (inner.error != hipSuccess)
        call_now.error = inner.error;
    call_tell_held(inner.held ? inner.device : outer->device, inner.held);
    if (DOUBT(override_called_another, inner.function != outer->function))
        return;
    call_now.how = inner.how;
    call_now.loaded = inner.loaded;
}

#endif
