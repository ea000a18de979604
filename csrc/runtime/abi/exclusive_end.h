/* Ends the user's word that no other code calls HIP (MGPU_RT_EXCLUSIVE=on).
 *
 * Two parts of the library notice other code. witness.c does if HIP reports a call of other code,
 * and override.c if HIP does not report what an override calls. Both end the word here, before
 * other code runs. */
#ifndef MGPU_RT_EXCLUSIVE_END_H
#define MGPU_RT_EXCLUSIVE_END_H

#include <stdbool.h>

/* Ends the word, and settles everything that rests on it. When the function returns, no wait is
 * postponed, and no two loads share constants that HIP can set. HIP then holds only registrations
 * of the program. The function may wait for the device.
 *
 * Several threads may call the function at once. Each thread does what is left, and returns when
 * nothing is left. A hit needs no step of its own for that. If a hit leaves something behind, it
 * looks at the word once more. It does so under tables_lock for a postponed wait or a shared
 * module, and afterwards for a registration. So either the hit or this function settles it. All
 * other hits count as made before the call of other code that they overlap.
 *
 * Returns false if the calling thread may be inside the library: a signal handler has interrupted
 * it there, and calls HIP. Then something is left for the next call of this function. */
bool exclusive_end(void);

#endif
