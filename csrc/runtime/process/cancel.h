/* Cancellation (pthread_cancel). It may end a thread that holds a lock or an open file, or has
 * begun something that happens once. All others would wait then, or the file would stay open. */
#ifndef MGPU_RT_CANCEL_H
#define MGPU_RT_CANCEL_H

#include "proof.h"

#include <pthread.h>

/* Forbids that the calling thread is cancelled from here on; returns what cancel_allow takes. */
static inline int cancel_forbid(void) {
    int before;
    pthread_setcancelstate(
        PROOF_VALUE(call_is_not_cancelled, PTHREAD_CANCEL_DISABLE, PTHREAD_CANCEL_ENABLE), &before);
    return before;
}

static inline void cancel_allow(int before) {
    pthread_setcancelstate(before, NULL);
}

#endif
