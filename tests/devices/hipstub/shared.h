/* Device memory that several processes share (HIPSTUB_SHARED). Callers hold the stub's lock. */
#ifndef HIPSTUB_SHARED_H
#define HIPSTUB_SHARED_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the PCI bus of the device that the processes share; 0 if they share none. */
int shared_bus(void);

/* Counts bytes for this process. Returns false if all living processes together would exceed
 * stub_memory. Always returns true if the processes share no device. */
bool shared_take(size_t bytes);

/* Returns bytes that shared_take has counted. */
void shared_return(size_t bytes);

/* Returns the bytes of all living processes except this one. */
size_t shared_others(void);

#endif
