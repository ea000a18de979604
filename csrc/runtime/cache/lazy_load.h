/* MGPU_RT_LOAD=lazy: modules that the program holds and HIP has not loaded yet.
 *
 * Since LLVM 21 a program loads all its modules before main. One whose image is a constant of the
 * program can wait until the first of its kernels is asked for. The program gets the address of an
 * entry as its handle until then, and keeps it afterwards. Only the first load of an image waits.
 * So an entry never stands for two images, and a handle never comes back for another module. */
#ifndef MGPU_RT_LAZY_LOAD_H
#define MGPU_RT_LAZY_LOAD_H

#include "base/abi.h"
#include "base/atomics.h"
#include "base/handles.h"
#include "cache/modules.h"

enum deferred_state {
    DEFERRED_NEW,
    DEFERRED_HELD,   /* by the program; HIP has loaded it if there is a module */
    DEFERRED_FAILED, /* HIP refused the image */
    DEFERRED_OVER,   /* the program has unloaded it */
};

struct deferred {
    struct handle image; /* its key is where that lies */
    int device;          /* the one it was loaded for */
    int state;           /* enum deferred_state; changed by compare-and-swap */
    hipModule_t module;  /* HIP's; set once, by compare-and-swap */
};

/* An entry for the first load of the image that lies there. NULL if the image is to be loaded now:
 * it had an entry before, it cannot wait, memory is short, or MGPU_RT_LOAD is not lazy. */
struct deferred *deferred_new(const struct load *load);

/* The entry of a handle that the program names, or NULL. Lock-free. */
struct deferred *deferred_find(hipModule_t handle);

static inline hipModule_t deferred_handle(const struct deferred *deferred) {
    return (hipModule_t)(uintptr_t)deferred;
}

static inline int deferred_state(const struct deferred *deferred) {
    return load_acquire(&deferred->state);
}

/* The program holds it no more, or HIP has refused it. False if that was so before. */
static inline bool deferred_end(struct deferred *deferred, int state) {
    int held = DEFERRED_HELD;
    return cas_acq_rel(&deferred->state, &held, state);
}

static inline hipModule_t deferred_module(const struct deferred *deferred) {
    return load_acquire(&deferred->module);
}

/* False if another thread has loaded it meanwhile. */
static inline bool deferred_set_module(struct deferred *deferred, hipModule_t module) {
    hipModule_t none = NULL;
    return cas_acq_rel(&deferred->module, &none, module);
}

#endif
