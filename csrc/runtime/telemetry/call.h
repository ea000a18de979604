/* The record of the calling thread's current call, with the call's arguments and outcome. The slow
 * entry begins and ends a call.
 *
 * Only the slow entry sets this struct up and reads it. No code reads this struct during a call of
 * the fast entry. In the fast entry a hit writes nothing to the struct; a miss writes some words
 * that the next call overwrites. */
#ifndef MGPU_RT_CALL_H
#define MGPU_RT_CALL_H

#include "mgpu.h"

/* How a call was served. */
enum call_how {
    CALL_PLAIN,   /* no cache is involved, or another function answered the call */
    CALL_HIT,     /* a cache answered, or a copy went through pinned memory */
    CALL_MISS,    /* HIP answered, and the cache keeps the object */
    CALL_BYPASS,  /* HIP answered, and nothing is cached */
    CALL_REFUSED, /* no answer: the library knows that the call is wrong */
    CALL_FAILED,  /* no answer: HIP refused the call */
    CALL_HOWS
};

struct call {
    enum abi_index function;
    bool begun;       /* false: a failure belongs to no call */
    bool overridden;  /* an override is answering the call (override.h) */
    bool native;      /* the override that answers the call has called this library */
    bool in_stream;   /* the call has a stream as an argument */
    unsigned cache;   /* 1 + the cache that may answer the call (enum cache_kind); 0: none */
    bool is_assumed;  /* this cache answers the call, unless the implementation records otherwise */
    const void *site; /* the call's return address in the program */
    uint64_t begin;
    hipStream_t stream;
    const void *image, *kernel;
    hipModule_t module;
    const char *name;
    const void *to, *from;
    void **params; /* of a launch */
    uint64_t bytes;
    enum call_how how;
    hipError_t error; /* error of the last failure; hipSuccess if there was none */
    int device;
    bool marked;    /* a profiler's range has begun with this call */
    ptrdiff_t held; /* bytes of device memory that the call gives to the program, or takes back */
};

/* Stored by value. If a thread left a call by longjmp, a pointer would point to a stack frame that
 * no longer exists. */
extern __thread struct call call_now __attribute__((tls_model("initial-exec")));

/* The return address of the program's current call. The slow entry copies this address to the
 * `site` of struct call. */
extern __thread const void *call_site __attribute__((tls_model("initial-exec")));

/* Records how the calling thread's call is served; the latest record counts. */
static inline void call_tell(enum call_how how) {
    call_now.how = how;
}

/* Records a hit, if a cache may answer the call. The function that answers, which runs next,
 * records every other outcome, so a hit takes no instruction for that. */
static inline void call_assume(void) {
    call_tell(call_now.is_assumed && !call_now.overridden ? CALL_HIT : CALL_PLAIN);
}

/* Records that the call failed. If the call is already recorded as refused, that record remains. */
static inline void call_fail(hipError_t error) {
    call_now.error = error;
    if (call_now.how != CALL_REFUSED)
        call_now.how = CALL_FAILED;
}

/* Begins the inner call *call inside the current call, and then stores the outer call in *call.
 * call_leave ends the inner call. If the inner call and the outer call are calls of the same
 * function, an override has forwarded the outer call to this library. The outer call then gets the
 * outcome of the inner call. */
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
    if (inner.function != outer->function)
        return;
    call_now.how = inner.how;
    call_now.image = inner.image;
}

#endif
