/* Checks the program's calls. The checker overrides these calls by mgpu_rt_intercept, as a user's
 * runtime may, so the library knows nothing of the checker. */
#ifndef SOFTGPU_CHECK_CALLS_H
#define SOFTGPU_CHECK_CALLS_H

#include "report.h"

#include <stddef.h>

typedef void (*softgpu_function)(void);

/* An overridden call: `*native` becomes the library's own function. */
struct softgpu_call {
    const char *name;
    void *native;
    softgpu_function instead;
};

extern const struct softgpu_call softgpu_memory_calls[], softgpu_stream_calls[]; /* to one without
                                                                                    a name */

/* Notes that a call of the program begins, and returns its place. The first call shows that there
 * is a program to check. */
struct softgpu_place softgpu_call_begins(void);

/* Reports a call on a stream, an event or a function that it must not name, once for each place. */
void softgpu_report_object(const char *kind, const char *call, const char *what,
                           const struct softgpu_object *object, const struct softgpu_place *place);
/* Reports a call on a stream that was destroyed. */
void softgpu_check_stream(const char *call, void *stream, const struct softgpu_place *place);
/* Reports, at the program's end, copies to the host that were not waited for. */
void softgpu_check_copies(void);

/* ---- the device; without one there is nothing of this (no_device.c) ---- */

/* Finds where the device sees registered memory of the host; returns false if the memory is not
 * registered. */
bool softgpu_check_device_address(const void *memory, uint64_t *va);
/* Returns whether memory that is in no block is the host's. */
bool softgpu_check_is_host(const void *memory);

#endif
