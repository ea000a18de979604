/* Which policy serves: the one in Python, started at the first miss, or the built-in one. */
#ifndef MGPU_RT_PYTHON_H
#define MGPU_RT_PYTHON_H

#include "policy.h"

#include <pthread.h>
#include <stdbool.h>

/* Begins to start an interpreter in a thread of its own, if one is wanted and the process has none;
 * then true, and the caller has to end it with policy_prepared once HIP has started. Costs 2 ms. */
bool policy_prepare(pthread_t *starter);
/* Waits until it has started. Afterwards nothing of the runtime's runs beside the program. */
void policy_prepared(pthread_t starter);

/* The policy to ask now; never NULL. The first call imports the one in Python (3 to 6 ms); calls
 * that come from other threads meanwhile get the built-in policy: nobody waits, so nobody can wait
 * for a lock that the importing thread needs (the loader's, the GIL). */
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

/* What Python has cost the program's thread so far, in nanoseconds. */
struct policy_cost {
    uint64_t opening;   /* libpython, before HIP is started */
    uint64_t waiting;   /* for the interpreter, after HIP has started */
    uint64_t importing; /* the policy, at the first miss */
};
extern struct policy_cost policy_cost;

/* host.c: what a policy may ask. */
extern struct mgpu_host host_functions;
void host_start(void);

/* Called by mgpu_rt/host.py with its table (through the pointer that it was given). */
typedef void (*python_attach)(const struct mgpu_policy *policy);

#endif
