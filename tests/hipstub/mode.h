/* What the environment asks of the stub, and the one test that each call begins with. */
#ifndef HIPSTUB_MODE_H
#define HIPSTUB_MODE_H

#include <stdbool.h>
#include <stddef.h>

/* Written before main by the constructor, and once more by the exit handler if HIPSTUB_TEARDOWN is
 * set; so the branch on it is always predicted. */
extern bool stub_fast;

/* HIP's statics are gone: a call from now on aborts (HIPSTUB_TEARDOWN=1). */
extern bool stub_torn_down;

extern int stub_devices;
extern size_t stub_memory;

/* Microseconds that the nth stream delays each operation by, or -1 if streams have no thread. */
int stub_async_delay(unsigned nth);

/* Loads HIPSTUB_KERNELS, once. */
void stub_load_kernels(void);

#endif
