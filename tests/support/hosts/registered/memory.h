/* A model of an address space: memory is mapped, unmapped, moved, dropped, written, registered,
 * unregistered, and copied to the device and back. The device must always read the values that the
 * host wrote; otherwise the process prints one line and exits with status 1.
 *
 *     registered walk SEED PROGRAMS    PROGRAMS random programs, each from a seed of its own
 *     registered race ROUNDS           one thread unmaps what another maps at once
 *     registered case NAME             one of cases.c */
#ifndef REGISTERED_MEMORY_H
#define REGISTERED_MEMORY_H

#include "program.h"

enum { PAGE = 4096, PAGES = 48, BYTES = PAGES * PAGE, STEPS = 60, RANGES = 8 };

struct range {
    char *address;
    size_t bytes;
};

extern char *window;         /* PAGES pages that nothing else uses */
extern void *stream, *block; /* device memory of BYTES bytes */
extern uint64_t seed;        /* seed of the random program; 0 outside of random programs */

void open_window(void);
void begin_program(uint64_t with);
_Noreturn void fail(const char *what, const void *address, size_t bytes);
void fill(char *at, size_t bytes);

/* Maps, unmaps, moves, drops or writes memory, as a program does. The program unregisters memory
 * before unmapping, moving or dropping the memory. */
void map(struct range at);
void unmap(struct range at);
void drop(struct range at);
void acquire(struct range at);
void release_in(const char *begin, const char *end);
void split(void);

/* Checks that the device and the host read equal bytes. `which` counts the pieces of memory that
 * are registered now. */
void check_up(const struct range *at);
void check_wait(int which);
void check_pageable(struct range at);
void check_pageable_to_host(struct range at);

/* Registers, checks and unregisters the range. */
void pass(struct range at);

/* Makes one step of a random program. */
void step(void);

int run_case(const char *name);

#endif
