/* The settings from the environment, and the branch on the mode at the start of each call. */
#ifndef HIPSTUB_MODE_H
#define HIPSTUB_MODE_H

#include <stdbool.h>
#include <stddef.h>

/* Only the constructor writes this variable, so the branch on the variable is always predicted. */
extern bool stub_fast;    /* neither records nor reports calls (HIPSTUB_TELLS) */
extern bool stub_records; /* record mode */

enum { STUB_MOST_DEVICES = 100 };
extern int stub_devices;
enum { HIP_6 = 60000000, HIP_7 = 70000000 };
extern int stub_version; /* Debian 12's version, or HIPSTUB_VERSION */
extern int stub_pageable, stub_large_bar, stub_integrated;
extern int stub_capability; /* the value of HIPSTUB_CAPABILITY, by default 90 (gfx90a) */
extern bool stub_reuse, stub_reuse_other_kinds;
extern bool stub_destroy_returns, stub_late;
extern size_t stub_memory;

/* The condition for executing a stream's operation. */
struct stub_pace {
    int delay_us; /* delay before an operation; -1: the caller's thread executes the operation */
    unsigned waiters; /* number of threads that must wait for the operation before the stream
                         executes it */
};

/* Returns the pace of the nth stream, in the order of creation. */
struct stub_pace stub_pace_of(unsigned nth);

/* Aborts if the program calls HIP in record mode after HIP has ended, and prints the function's
 * name. The first call registers an exit handler, which stands for the destruction of HIP's static
 * objects. */
void stub_check_teardown(const char *function);

/* Loads the library that HIPSTUB_KERNELS names, once. */
void stub_load_kernels(void);

#endif
