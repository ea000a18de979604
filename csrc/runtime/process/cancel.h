/* Cancellation (pthread_cancel). A cancellation may end a thread that holds a lock or an open file,
 * or performs a one-time initialisation. All other threads would then wait for ever for the lock or
 * the initialisation, or the file would stay open. */
#ifndef MGPU_RT_CANCEL_H
#define MGPU_RT_CANCEL_H

#include <pthread.h>

/* Disables the cancellation of the calling thread. Returns the value that the caller passes to
 * cancel_allow. */
static inline int cancel_forbid(void) {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cancel_allow(int before) {
    pthread_setcancelstate(before, NULL);
}

#endif
