/* Memory that programs map, replace, write, register, unregister, and copy to the device and back.
 * The device must always read the values that the host wrote; otherwise the process prints one line
 * and exits with status 1. */
#ifndef REGISTERED_MEMORY_H
#define REGISTERED_MEMORY_H

#include "program.h"

enum { PAGE = 4096, PAGES = 48, BYTES = PAGES * PAGE };

struct range {
    char *address;
    size_t bytes;
};

extern char *window;         /* PAGES pages that nothing else uses */
extern void *stream, *block; /* device memory of BYTES bytes */

/* Gives the program new addresses, because the library learns at which addresses cached
 * registrations are useless. */
void open_window(void);
_Noreturn void fail(const char *what, const void *address, size_t bytes);
void fill(char *at, size_t bytes);

/* Maps and fills, or unmaps memory, as a program does. */
void map(struct range at);
void unmap(struct range at);

/* Checks that the device reads what the host wrote. */
void check_up(const struct range *at);

/* Registers, checks and unregisters the range. */
void pass(struct range at);

#endif
