/* Reports which places of the program hold a device's memory, and how much each place held at the
 * peak. A place is the return address of mgpuMemAlloc.
 *
 * Places are counted only with statistics. If a thread allocates while the peak is recorded, the
 * record may or may not include that allocation.
 */
#ifndef MGPU_RT_SITES_H
#define MGPU_RT_SITES_H

#include <stddef.h>

/* Counts the bytes of a block that the program gets; `bytes` is negative when the program frees the
 * block. */
void sites_count(const void *address, int device, ptrdiff_t bytes);

#endif
