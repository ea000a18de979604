/* The settings from the environment, and the branch on the mode at the start of each call. */
#ifndef HIPSTUB_MODE_H
#define HIPSTUB_MODE_H

#include <stdbool.h>
#include <stddef.h>

/* Only the constructor writes this variable, so the branch on the variable is always predicted. */
extern bool stub_fast;

enum { STUB_MOST_DEVICES = 100 };
extern int stub_devices;
enum { HIP_7 = 70000000 };
extern int stub_version; /* Debian 12's version, or HIPSTUB_VERSION */
extern int stub_pageable;
extern int stub_capability; /* gfx90a's capability, 90, or HIPSTUB_CAPABILITY */
extern bool stub_reuse, stub_reuse_other_kinds;
extern bool stub_destroy_returns;
extern size_t stub_memory;

/* The condition for executing a stream's operation. */
struct stub_pace {
    int delay_us;     /* after this delay; -1: at once, on the caller's thread */
    unsigned waiters; /* as soon as this many threads wait for the operation */
};

/* Returns the pace of the nth stream, in the order of creation. */
struct stub_pace stub_pace_of(unsigned nth);

/* Aborts, in record mode, if a call comes after HIP's end, and prints the function's name. The
 * first call registers the exit handler that represents the end of HIP's statics. */
void stub_check_teardown(const char *function);

/* Loads the library HIPSTUB_KERNELS once. */
void stub_load_kernels(void);

#endif
