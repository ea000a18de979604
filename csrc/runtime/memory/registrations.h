/* Host memory that is registered with HIP (mgpuMemHostRegister).
 *
 * With MGPU_RT_EXCLUSIVE=on a registration may outlive its unregister. The registration is idle
 * then, and the next register of these bytes is a hit. The proof is that no page was replaced since
 * before HIP pinned them (page_watch.h). Without that option, and where pages cannot be watched,
 * every call goes to HIP.
 *
 * HIP calls the memory of an idle registration pinned; for the program it is pageable. So the
 * registration is released before HIP is given an address of such memory. */
#ifndef MGPU_RT_REGISTRATIONS_H
#define MGPU_RT_REGISTRATIONS_H

#include "atomics.h"
#include "mgpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers memory; returns HIP's answer. */
hipError_t registration_acquire(void *address, uint64_t bytes);

/* Unregisters memory; all work that may use it is done when the call returns, as after HIP's own.
 * Returns HIP's answer. */
hipError_t registration_release(void *address);

/* Bytes of idle registrations. */
extern size_t registrations_idle;

/* Releases the idle registrations that share bytes with host memory that the program has not
 * registered, before HIP is given its address. */
void registrations_yield_to(const void *address, size_t bytes);
static inline void registrations_yield(const void *address, size_t bytes) {
    if (__builtin_expect(load_relaxed(&registrations_idle) != 0, 0))
        registrations_yield_to(address, bytes);
}

/* Stops the reuse of all registrations in a parent that forks. After a fork, the parent's page may
 * not be the page that HIP has pinned. registrations_before_fork is called under tables_lock. */
void registrations_before_fork(void);
void registrations_after_fork(void);
void registrations_forked(void); /* in the child */

/* Ends all registrations at exit, when no thread of this library calls HIP any more. */
void registrations_end(void);

extern const struct cache registration_cache;

#endif
