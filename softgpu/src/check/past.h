/* Records the ops (order.h) that accessed a block, and the bytes that copies and fills touched. The
 * block's cells (race.h) record the bytes that kernels touched.
 *
 * Every function may be called from any thread. */
#ifndef SOFTGPU_CHECK_PAST_H
#define SOFTGPU_CHECK_PAST_H

#include "order.h"

struct softgpu_past;

/* Returns a new record, or NULL if memory is exhausted. */
struct softgpu_past *softgpu_past_make(void);
/* Returns the record of host memory outside all blocks. */
struct softgpu_past *softgpu_past_of_host(void);

/* Notes that an op accesses the block. Returns true if an earlier op that accessed the block may
 * still run, according to `clock`. The caller must then compare the new access with the earlier
 * op's access. */
bool softgpu_past_use(struct softgpu_past *past, uint32_t op, const struct softgpu_clock *clock);
/* Records the bytes that a copy or fill accesses. */
void softgpu_past_move(struct softgpu_past *past, uint32_t op, uint64_t va, uint64_t bytes,
                       bool writes);

/* Returns an unfinished copy or fill that conflicts with an access, or 0. `clock` tells which ops
 * are over. */
uint32_t softgpu_past_conflict(struct softgpu_past *past, const struct softgpu_clock *clock,
                               uint64_t va, uint64_t bytes, bool writes, bool *other_writes);
/* Returns an unfinished op that accessed the block, or 0. `clock` tells which ops are over; NULL
 * stands for the host's clock. */
uint32_t softgpu_past_pending(struct softgpu_past *past, const struct softgpu_clock *clock,
                              enum softgpu_waits waits);

#endif
