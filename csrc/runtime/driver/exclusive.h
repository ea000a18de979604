/* Reports whether this process calls HIP only through this library.
 *
 * Either the user declares it (MGPU_RT_EXCLUSIVE=on), or HIP reports each call of other code
 * (witness.h). The two differ in what they permit. The user's word also covers the future. So the
 * library may postpone waits, and keep memory registered. HIP's word covers only the past: other
 * code may call HIP a moment later. So the library only leaves out queries about streams, blocks,
 * resets and the kind of memory at an address.
 *
 * The first call of other code that HIP reports ends the user's word (abi/exclusive_end.h). An
 * override may call HIP itself, so it ends the word if HIP reports no calls. */
#ifndef MGPU_RT_EXCLUSIVE_H
#define MGPU_RT_EXCLUSIVE_H

#include "driver/witness.h"
#include "process/options.h"

/* Returns true if no other code has called HIP so far. May call HIP once (witness_confirms). */
static inline bool sole_user_of_hip(void) {
    return exclusive_hip() || witness_confirms();
}

/* Returns true if no call of other code is known so far. Does not call HIP: sole_user_of_hip must
 * confirm the answer, before or after, in the same call of the library. */
static inline bool sole_user_so_far(void) {
    return exclusive_hip() || witness_is_sole_user();
}

#endif
