/* Which places of the program hold a device's memory, and what each held at the peak. A place is
 * the return address of mgpuMemAlloc.
 *
 * Counted with statistics only. Threads that allocate while the peak is noted may be in it or not.
 */
#ifndef MGPU_RT_SITES_H
#define MGPU_RT_SITES_H

#include <stddef.h>

/* Counts a block that the program gets (its bytes), or frees (less than 0). */
void sites_count(const void *address, int device, ptrdiff_t bytes);

#endif
