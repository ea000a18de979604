/* Host memory that is registered with HIP (mgpuMemHostRegister).
 *
 * With MGPU_RT_EXCLUSIVE=on, a registration may stay in HIP after the program has unregistered the
 * memory. Such a registration is idle: if the program registers the same bytes again, the new call
 * is a hit. The library starts to watch the pages (page_watch.h) before HIP pins the pages. So on a
 * cache hit the library knows whether a page was replaced. Without MGPU_RT_EXCLUSIVE=on, or if the
 * pages cannot be watched, HIP handles every call.
 *
 * For the program the memory of an idle registration is pageable, but HIP reports this memory as
 * pinned. So before a call passes an address to HIP, the library releases the idle registration
 * that contains the address. */
#ifndef MGPU_RT_REGISTRATIONS_H
#define MGPU_RT_REGISTRATIONS_H

#include "atomics.h"
#include "mgpu.h"

/* Registers memory; returns HIP's answer. */
hipError_t registration_acquire(void *address, uint64_t bytes);

/* Unregisters memory, and returns HIP's answer. As with HIP's own function, the call waits until
 * all work that may use the memory is done. */
hipError_t registration_release(void *address);

/* The bytes of idle registrations. */
extern size_t registrations_idle;

/* Releases the idle registrations that share bytes with this memory. The library calls this
 * function before it passes the memory's address to HIP. */
void registrations_yield_to(const void *address, size_t bytes);
static inline void registrations_yield(const void *address, size_t bytes) {
    if (__builtin_expect(load_relaxed(&registrations_idle) != 0, 0))
        registrations_yield_to(address, bytes);
}

/* Gives all idle registrations back to HIP, after the user's word has ended. May wait for the
 * device, as HIP's function does. */
void registrations_give_back(void);

/* Returns true if this memory shares bytes with idle registrations, and with no registration that
 * the program holds. No pending work uses the memory. */
bool registrations_are_idle(const void *address, size_t bytes);

/* Stops the reuse of all registrations in a process that forks. After a fork, the parent's page may
 * differ from the page that HIP has pinned. registrations_before_fork is called under tables_lock.
 */
void registrations_before_fork(void);
void registrations_after_fork(void);
void registrations_forked(void); /* called in the forked child */

/* Stops the thread that trims stale registrations, at exit. Waits at most 1 s for a call to HIP
 * that the thread has begun. */
void registrations_end(void);

extern const struct cache registration_cache;

#endif
