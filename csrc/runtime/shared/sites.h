/* Tells which places of the program hold a device's memory, and how much each held at the peak. A
 * place is the return address of mgpuMemAlloc.
 *
 * Places are counted with statistics only. A thread that allocates while the peak is noted may be
 * counted in it or not.
 */
#ifndef MGPU_RT_SITES_H
#define MGPU_RT_SITES_H

#include <stddef.h>

/* Counts the bytes of a block that the program gets, or frees (less than 0). */
void sites_count(const void *address, int device, ptrdiff_t bytes);

#endif
