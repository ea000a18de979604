/* What the environment asks of the stub, and the one test that each call begins with. */
#ifndef HIPSTUB_MODE_H
#define HIPSTUB_MODE_H

#include <stdbool.h>
#include <stddef.h>

/* Written once, by the constructor, so the branch on it is always predicted. */
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

/* When a stream does an operation. */
struct stub_pace {
    int delay_us;     /* so late, or -1: by the caller, at once */
    unsigned waiters; /* once so many threads wait for it */
};

/* Returns the pace of the nth stream. */
struct stub_pace stub_pace_of(unsigned nth);

/* Checks, first thing in each call of record mode, that no call comes after HIP's end. The first
 * call registers the exit handler that stands for HIP's statics. A call after it aborts, and names
 * the function. */
void stub_check_teardown(const char *function);

/* Loads HIPSTUB_KERNELS, once. */
void stub_load_kernels(void);

#endif
