/* What the environment asks of the stub, and the one test that each call begins with. */
#ifndef HIPSTUB_MODE_H
#define HIPSTUB_MODE_H

#include <stdbool.h>
#include <stddef.h>

/* Written once, by the constructor, so the branch on it is always predicted. */
extern bool stub_fast;

extern int stub_devices;
extern int stub_version; /* Debian 12's, or HIPSTUB_VERSION */
extern int stub_pageable;
extern bool stub_reuse, stub_reuse_other_kinds;
extern bool stub_destroy_returns;
extern size_t stub_memory;

/* Microseconds that the nth stream delays each operation by, or -1 if streams have no thread. */
int stub_async_delay(unsigned nth);

/* Called first thing in each call of record mode: registers the exit handler that stands for HIP's
 * statics, at the first one, and aborts after it ran, naming the function. */
void stub_check_teardown(const char *function);

/* Loads HIPSTUB_KERNELS, once. */
void stub_load_kernels(void);

#endif
