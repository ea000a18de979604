/* Wakes an idle queue when it gets work, without polling.
 *
 * HIP rings a doorbell by a plain store, for which memory has no wake-up. But the kernel can report
 * the store. An armed doorbell is a write-protected page under userfaultfd. The store that hits it
 * waits some microseconds, until the queue's thread has woken up and disarmed it. */
#ifndef SOFTGPU_DOORBELL_H
#define SOFTGPU_DOORBELL_H

#include <stdbool.h>
#include <stdint.h>

struct softgpu_doorbell {
    uint64_t *bell; /* a page that holds only the bell */
    int faults;     /* userfaultfd, or -1 if the kernel does not permit one */
    int kick;       /* eventfd */
    bool armed;
};

/* Returns false if there is no memory or no file descriptor left. */
bool softgpu_doorbell_open(struct softgpu_doorbell *doorbell);
void softgpu_doorbell_close(struct softgpu_doorbell *doorbell);
/* Makes a store to the bell wait for disarm from here on. Returns false if that is not possible:
 * the caller then has to poll. */
bool softgpu_doorbell_arm(struct softgpu_doorbell *doorbell);
/* Lets the store that waits, and all later ones, through. Does nothing if the bell is not armed. */
void softgpu_doorbell_disarm(struct softgpu_doorbell *doorbell);
/* Sleeps until an armed bell is rung or kicked. */
void softgpu_doorbell_sleep(struct softgpu_doorbell *doorbell);
/* Ends the present sleep, or the next one, from another thread. */
void softgpu_doorbell_kick(struct softgpu_doorbell *doorbell);

#endif
