/* The ops (order.h) that accessed a block, and the bytes that copies and fills touched. The bytes
 * of kernels are in the block's cells (race.h).
 *
 * Every function may be called from any thread. */
#ifndef SOFTGPU_CHECK_PAST_H
#define SOFTGPU_CHECK_PAST_H

#include "order.h"

struct softgpu_past;

/* Returns a past; NULL if there is no memory. */
struct softgpu_past *softgpu_past_make(void);
/* Returns the past of the host's own memory, which has no block. */
struct softgpu_past *softgpu_past_of_host(void);

/* Notes that an op accesses the block. Returns true if another op that is not over by the op's
 * clock has accessed it: their accesses must then be compared. */
bool softgpu_past_use(struct softgpu_past *past, uint32_t op, const struct softgpu_clock *clock);
/* Notes the bytes that a copy or fill accesses. */
void softgpu_past_move(struct softgpu_past *past, uint32_t op, uint64_t va, uint64_t bytes,
                       bool writes);

/* Returns a copy or fill that is not over by a clock and conflicts with an access; 0: none. */
uint32_t softgpu_past_conflict(struct softgpu_past *past, const struct softgpu_clock *clock,
                               uint64_t va, uint64_t bytes, bool writes, bool *other_writes);
/* Returns an op that accessed the block and is not over by a clock (NULL: the host's clock); 0:
 * none. */
uint32_t softgpu_past_pending(struct softgpu_past *past, const struct softgpu_clock *clock);

#endif
