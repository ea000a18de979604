/* Which policy serves: the one in Python, started at the first miss, or the built-in one. */
#ifndef MGPU_RT_PYTHON_H
#define MGPU_RT_PYTHON_H

#include "policy.h"

/* The policy to ask now; never NULL. The first call starts Python (6 to 10 ms); calls that come
 * from other threads meanwhile get the built-in policy: nobody waits, so nobody can wait for a lock
 * that the starting thread needs (the loader's, the GIL). */
const struct mgpu_policy *policy_get(void);

/* The policy if one serves already, without starting anything; NULL if none does. */
const struct mgpu_policy *policy_peek(void);

/* From now on the built-in policy serves. */
void policy_detach(void);

/* policy.c: keeps everything, evicts nothing, needs no interpreter. */
extern const struct mgpu_policy policy_builtin;

/* The policy that serves, without starting anything. */
static inline const struct mgpu_policy *policy_serving(void) {
    const struct mgpu_policy *policy = policy_peek();
    return policy ? policy : &policy_builtin;
}

/* host.c: what a policy may ask. */
extern struct mgpu_host host_functions;
void host_start(void);

/* Called by mgpu_rt/host.py with its table (through the pointer that it was given). */
typedef void (*python_attach)(const struct mgpu_policy *policy);

#endif
