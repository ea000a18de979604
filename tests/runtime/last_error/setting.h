/* Preparations that several situations share. */
#ifndef LAST_ERROR_SETTING_H
#define LAST_ERROR_SETTING_H

#include "situation.h"

enum { KIB = 1 << 10 };

extern const char kernel_name[];
extern char host[64 * KIB];
extern uint64_t nothing[512]; /* an address that is neither a handle nor device memory */

#define UNKNOWN(type) ((type)(void *)nothing)

/* Returns an image that was not loaded before. The image is a copy of a valid code object with
 * another number in the header's padding. */
void *new_image(void);
hipModule_t load(void *image);
hipModule_t loaded(void);
hipModule_t unloaded(void);
hipFunction_t kernel(void);
hipStream_t stream_new(void);
hipStream_t stream_destroyed(void);
hipEvent_t event_destroyed(void);
void *block_of(size_t bytes);
void give_back(void *block);
void launch(hipFunction_t function, intptr_t grid, intptr_t block, int32_t shared,
            hipStream_t stream);
void launch_cooperatively(hipFunction_t function, intptr_t grid, intptr_t block,
                          hipStream_t stream);

#endif
