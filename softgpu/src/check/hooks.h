/* The hooks through which the emulated device calls the checker. In the ordinary build, these
 * macros do not call the checker: that build lacks the checker's objects, and would not link. */
#ifndef SOFTGPU_CHECK_HOOKS_H
#define SOFTGPU_CHECK_HOOKS_H

#ifdef SOFTGPU_CHECK

#include <stdbool.h>
#include <stdint.h>

struct wave;
struct inst;
struct group;
struct dispatch;
struct access;
struct softgpu_race;
struct softgpu_clock;
struct softgpu_queue;
struct softgpu_defined;
struct softgpu_group_bits;

/* Returns the lanes of `mask` that may access memory. Reports the accesses of the remaining lanes,
 * which the caller must skip. */
uint64_t softgpu_check_lanes(struct wave *w, const struct inst *i, const uint64_t *va,
                             uint64_t mask);
/* Checks the access of one lane, or of the whole wave (lane -1). Returns false after a report; the
 * caller must then skip the access. */
bool softgpu_check_access(struct wave *w, const struct inst *i, int lane, uint64_t va,
                          unsigned bytes);
/* Reports an access outside workgroup memory or scratch. `va` is an offset within workgroup memory
 * or scratch. */
void softgpu_check_outside(struct wave *w, const struct inst *i, int lane, const char *what,
                           uint64_t va, unsigned bytes);
/* Reports a barrier that only some lanes of a wave have reached. */
void softgpu_check_barrier(struct wave *w, const struct inst *i);
/* Reports a barrier at which waves wait for waves that have ended. */
void softgpu_check_barrier_waves(struct group *g);
/* Reports why a kernel or the copy engine stops. */
void softgpu_check_stopped(const char *text);
/* Notes that the program's memory becomes accessible to the device, or stops being accessible. */
void softgpu_check_registered(uint64_t va, uint64_t size);
void softgpu_check_unregistered(uint64_t va);
/* Unmaps pages but reserves their addresses, so that no later allocation gets these addresses. */
void softgpu_check_unmap(void *pages, uint64_t size);
/* Returns the size of the guard behind an allocation; guard addresses are never allocated. */
uint64_t softgpu_check_guard(uint64_t size);

/* Looks for races between accesses to workgroup memory. */
void softgpu_check_lds(struct wave *w, const struct inst *i, const uint32_t *offset, uint64_t mask,
                       unsigned bytes);
/* Notes that a launch begins, or that one of its workgroups begins or ends. Notes that all waves of
 * a workgroup have reached a barrier, or that a wave passes a barrier of the whole grid. */
void softgpu_check_launch(struct dispatch *d);
void softgpu_race_group_begin(struct group *g, uint64_t number);
void softgpu_race_group_end(struct group *g);
void softgpu_race_barrier(struct group *g);
void softgpu_race_grid_barrier(struct wave *w);
/* Notes that a queue is created or destroyed. */
void softgpu_check_queue(struct softgpu_queue *queue, bool begins);
/* Executes a cache write-back or invalidation instruction. */
void softgpu_check_cache(struct wave *w, const struct inst *i);

/* Executes an instruction, and tracks which bits are defined (defined.h). */
void softgpu_check_run(struct wave *w, const struct inst *i);
void softgpu_defined_group_begin(struct group *g);
void softgpu_defined_group_free(struct group *g);
void softgpu_defined_wave_begin(struct wave *w);
void softgpu_defined_wave_free(struct wave *w);
/* Follows the bits that an instruction moves between registers and memory. softgpu_check_two
 * follows bits at two addresses. softgpu_check_to_lds follows bits from global to workgroup memory.
 * softgpu_check_collect and softgpu_check_distribute follow bits through a temporary copy. */
void softgpu_check_transfer(struct wave *w, const struct inst *i, const struct access *a);
void softgpu_check_two(struct wave *w, const struct inst *i, const struct access *a, uint64_t mask,
                       unsigned dwords);
void softgpu_check_to_lds(struct wave *w, const struct inst *i, int lane, uint32_t to);
void softgpu_check_collect(struct wave *w, uint64_t base, uint32_t offset, int lane,
                           unsigned count);
void softgpu_check_distribute(struct wave *w, uint64_t base, uint32_t offset, int lane,
                              unsigned count);
/* Notes a copy or fill that the device made without a kernel. */
void softgpu_check_copied(uint64_t to, uint64_t from, uint64_t bytes);
void softgpu_check_filled(uint64_t to, uint64_t bytes);

#define CHECKED_LANES(w, i, va, mask) softgpu_check_lanes(w, i, va, mask)
#define CHECKED_ACCESS(w, i, lane, va, bytes) softgpu_check_access(w, i, lane, va, bytes)
/* Reports a lane whose access would stop the kernel in the ordinary build. The macro then continues
 * a loop over lanes with the next lane. */
#define CHECK_SKIPS_LANE(mask, w, i, lane, what, va, bytes)                                        \
    if (1) {                                                                                       \
        softgpu_check_outside(w, i, lane, what, va, bytes);                                        \
        (mask) &= ~(UINT64_C(1) << (lane));                                                        \
        continue;                                                                                  \
    }
#define CHECK_STOPPED(text) softgpu_check_stopped(text)
#define CHECK_REGISTERED(va, size) softgpu_check_registered(va, size)
#define CHECK_UNREGISTERED(va) softgpu_check_unregistered(va)
#define CHECK_UNMAP(pages, size) softgpu_check_unmap(pages, size)
#define CHECK_GUARD(size) softgpu_check_guard(size)
#define CHECK_LDS(w, i, offset, mask, bytes) softgpu_check_lds(w, i, offset, mask, bytes)
#define CHECK_LAUNCH(d) softgpu_check_launch(d)
#define CHECK_QUEUE(queue, begins) softgpu_check_queue(queue, begins)
#define CHECK_GROUP_BEGIN(g, number)                                                               \
    do {                                                                                           \
        softgpu_race_group_begin(g, number);                                                       \
        softgpu_defined_group_begin(g);                                                            \
    } while (0)
#define CHECK_GROUP_FREE(g) softgpu_defined_group_free(g)
#define CHECK_WAVE_BEGIN(w) softgpu_defined_wave_begin(w)
#define CHECK_WAVE_FREE(w) softgpu_defined_wave_free(w)
#define CHECKED_RUN(w, i) softgpu_check_run(w, i)
#define CHECK_TRANSFER(w, i, a) softgpu_check_transfer(w, i, a)
#define CHECK_TWO(w, i, a, mask, dwords) softgpu_check_two(w, i, a, mask, dwords)
#define CHECK_TO_LDS(w, i, lane, to) softgpu_check_to_lds(w, i, lane, to)
#define CHECK_COLLECT(w, base, offset, lane, count)                                                \
    softgpu_check_collect(w, base, offset, lane, count)
#define CHECK_DISTRIBUTE(w, base, offset, lane, count)                                             \
    softgpu_check_distribute(w, base, offset, lane, count)
#define CHECK_COPIED(to, from, bytes) softgpu_check_copied(to, from, bytes)
#define CHECK_FILLED(to, bytes) softgpu_check_filled(to, bytes)
#define CHECK_GROUP_END(g) softgpu_race_group_end(g)
#define CHECK_BARRIER(g)                                                                           \
    do {                                                                                           \
        softgpu_check_barrier_waves(g);                                                            \
        softgpu_race_barrier(g);                                                                   \
    } while (0)
#define CHECK_LANES_AT_BARRIER(w, i) softgpu_check_barrier(w, i)
#define CHECKED_CACHE(nothing) softgpu_check_cache
#define CHECK_GRID_BARRIER(w) softgpu_race_grid_barrier(w)

#else

#define CHECKED_LANES(w, i, va, mask) (mask)
#define CHECKED_ACCESS(w, i, lane, va, bytes) true
#define CHECK_SKIPS_LANE(mask, w, i, lane, what, va, bytes)
#define CHECK_STOPPED(text)
#define CHECK_REGISTERED(va, size)
#define CHECK_UNREGISTERED(va)
#define CHECK_UNMAP(pages, size) munmap(pages, size)
#define CHECK_GUARD(size) UINT64_C(0)
#define CHECK_LDS(w, i, offset, mask, bytes)
#define CHECK_LAUNCH(d)
#define CHECK_QUEUE(queue, begins)
#define CHECK_GROUP_BEGIN(g, number)
#define CHECK_GROUP_FREE(g)
#define CHECK_WAVE_BEGIN(w)
#define CHECK_WAVE_FREE(w)
#define CHECKED_RUN(w, i) (i)->run(w, i)
#define CHECK_TRANSFER(w, i, a)
#define CHECK_TWO(w, i, a, mask, dwords)
#define CHECK_TO_LDS(w, i, lane, to)
#define CHECK_COLLECT(w, base, offset, lane, count)
#define CHECK_DISTRIBUTE(w, base, offset, lane, count)
#define CHECK_COPIED(to, from, bytes)
#define CHECK_FILLED(to, bytes)
#define CHECK_GROUP_END(g)
#define CHECK_BARRIER(g)
#define CHECK_LANES_AT_BARRIER(w, i) (void)(i)
#define CHECKED_CACHE(nothing) nothing
#define CHECK_GRID_BARRIER(w)

#endif
#endif
