/* Checks the program's calls. The checker overrides the library's functions by mgpu_rt_intercept,
 * so the library contains no checker code. A user's runtime may also call mgpu_rt_intercept. */
#ifndef SOFTGPU_CHECK_CALLS_H
#define SOFTGPU_CHECK_CALLS_H

#include "host_blocks.h"
#include "report.h"

#include <stddef.h>

typedef void (*softgpu_function)(void);

/* An overridden function. The checker sets `*native` to the library's own function. */
struct softgpu_call {
    const char *name;
    void *native;
    softgpu_function instead;
};

/* Each array ends with an entry whose name is NULL. */
extern const struct softgpu_call softgpu_memory_calls[], softgpu_stream_calls[];

/* Calls softgpu_find_host_block; NULL if that function's library was not preloaded. */
extern bool (*softgpu_host_block_at)(uint64_t address, struct softgpu_host_block *found);

/* Notes that a call of the program begins, and returns the place of the call. The first call also
 * writes the report "begun", which shows that the checker is active. */
struct softgpu_place softgpu_call_begins(void);

/* Reports that a call uses a stream or an event that it must not use. Makes one report for each
 * place in the program. */
void softgpu_report_object(const char *kind, const char *call, const char *what,
                           const struct softgpu_object *object, const struct softgpu_place *place);
/* Reports a call on a stream that was destroyed. */
void softgpu_check_stream(const char *call, void *stream, const struct softgpu_place *place);

/* ---- the device; without one there is nothing of this (no_device.c) ---- */

/* Finds the device address of registered host memory; returns false if the memory is not
 * registered. */
bool softgpu_check_device_address(const void *memory, uint64_t *va);
/* Returns whether an address outside all blocks belongs to host memory. */
bool softgpu_check_is_host(const void *memory);

#endif
