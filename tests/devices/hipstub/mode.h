/* The environment's settings, and the one test at the begin of each call. */
#ifndef HIPSTUB_MODE_H
#define HIPSTUB_MODE_H

#include <stdbool.h>
#include <stddef.h>

/* The constructor writes it once, so the branch on it is always predicted. */
extern bool stub_fast;

enum { STUB_MOST_DEVICES = 100 };
extern int stub_devices;
enum { HIP_7 = 70000000 };
extern int stub_version; /* Debian 12's, or HIPSTUB_VERSION */
extern int stub_pageable;
extern int stub_capability; /* 90 is gfx90a's, or HIPSTUB_CAPABILITY */
extern bool stub_reuse, stub_reuse_other_kinds;
extern bool stub_destroy_returns;
extern size_t stub_memory;

/* The time at which a stream executes an operation. */
struct stub_pace {
    int delay_us;     /* after this delay, or -1: by the caller, at once */
    unsigned waiters; /* once so many threads wait for it */
};

/* Returns the pace of the nth stream. */
struct stub_pace stub_pace_of(unsigned nth);

/* Checks, at the begin of each call of record mode, that no call comes after HIP's end. The first
 * call registers the exit handler that stands for HIP's statics. A later call aborts, and names the
 * function. */
void stub_check_teardown(const char *function);

/* Loads HIPSTUB_KERNELS, once. */
void stub_load_kernels(void);

#endif
