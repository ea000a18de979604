/* Cancellation (pthread_cancel). It may end a thread that holds a lock or an open file, or has
 * begun something that happens once. All others would wait then, or the file would stay open. */
#ifndef MGPU_RT_CANCEL_H
#define MGPU_RT_CANCEL_H

#include <pthread.h>

/* From here on the calling thread is not cancelled; returns what cancel_allow takes. */
static inline int cancel_forbid(void) {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cancel_allow(int before) {
    pthread_setcancelstate(before, NULL);
}

#endif
