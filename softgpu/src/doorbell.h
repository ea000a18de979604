/* Wakes an idle queue when work arrives, without polling.
 *
 * HIP rings a doorbell by a plain store, which wakes no thread. The kernel, however, can report the
 * store through userfaultfd. An armed doorbell is a write-protected page under userfaultfd. A store
 * to an armed doorbell waits some microseconds, until the queue's thread has woken up and disarmed
 * the doorbell. */
#ifndef SOFTGPU_DOORBELL_H
#define SOFTGPU_DOORBELL_H

#include <stdbool.h>
#include <stdint.h>

struct softgpu_doorbell {
    uint64_t *bell; /* a page that contains only the bell */
    int faults;     /* userfaultfd, or -1 if the kernel refuses userfaultfd */
    int kick;       /* eventfd */
    bool armed;
};

/* Returns false if memory or file descriptors are exhausted. */
bool softgpu_doorbell_open(struct softgpu_doorbell *doorbell);
void softgpu_doorbell_close(struct softgpu_doorbell *doorbell);
/* Makes later stores to the bell wait until disarm. Returns false if arming is impossible: the
 * caller then has to poll. */
bool softgpu_doorbell_arm(struct softgpu_doorbell *doorbell);
/* Lets the waiting store and all later stores continue. Does nothing if the bell is not armed. */
void softgpu_doorbell_disarm(struct softgpu_doorbell *doorbell);
/* Sleeps until an armed bell is rung or kicked. */
void softgpu_doorbell_sleep(struct softgpu_doorbell *doorbell);
/* Ends a thread's current sleep, or the next sleep of a thread that does not sleep now. */
void softgpu_doorbell_kick(struct softgpu_doorbell *doorbell);

#endif
