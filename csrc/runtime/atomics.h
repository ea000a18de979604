/* Atomic operations, whose names contain their memory orders.
 *
 * The memory orders are used as follows. Relaxed: counters and hints. Acquire and release: one
 * thread publishes to another. seq_cst: two threads each write one word and read the other thread's
 * word. The operations are macros, because they access words of every type. */
#ifndef MGPU_RT_ATOMICS_H
#define MGPU_RT_ATOMICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define load_relaxed(at) __atomic_load_n(at, __ATOMIC_RELAXED)
#define load_acquire(at) __atomic_load_n(at, __ATOMIC_ACQUIRE)
#define load_seq_cst(at) __atomic_load_n(at, __ATOMIC_SEQ_CST)

#define store_relaxed(at, value) __atomic_store_n(at, value, __ATOMIC_RELAXED)
#define store_release(at, value) __atomic_store_n(at, value, __ATOMIC_RELEASE)
#define store_seq_cst(at, value) __atomic_store_n(at, value, __ATOMIC_SEQ_CST)

/* Returns the word's value before the operation. */
#define exchange_relaxed(at, value) __atomic_exchange_n(at, value, __ATOMIC_RELAXED)
#define exchange_acquire(at, value) __atomic_exchange_n(at, value, __ATOMIC_ACQUIRE)
#define exchange_acq_rel(at, value) __atomic_exchange_n(at, value, __ATOMIC_ACQ_REL)
#define exchange_seq_cst(at, value) __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST)

#define fetch_add_relaxed(at, value) __atomic_fetch_add(at, value, __ATOMIC_RELAXED)
#define fetch_add_release(at, value) __atomic_fetch_add(at, value, __ATOMIC_RELEASE)
#define fetch_add_acq_rel(at, value) __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL)
#define fetch_add_seq_cst(at, value) __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST)
#define fetch_sub_release(at, value) __atomic_fetch_sub(at, value, __ATOMIC_RELEASE)
#define fetch_sub_relaxed(at, value) __atomic_fetch_sub(at, value, __ATOMIC_RELAXED)
#define fetch_or_relaxed(at, bits) __atomic_fetch_or(at, bits, __ATOMIC_RELAXED)
#define fetch_or_release(at, bits) __atomic_fetch_or(at, bits, __ATOMIC_RELEASE)
#define fetch_and_release(at, bits) __atomic_fetch_and(at, bits, __ATOMIC_RELEASE)

/* Returns the word's value after the operation. */
#define add_fetch_relaxed(at, value) __atomic_add_fetch(at, value, __ATOMIC_RELAXED)
#define add_fetch_acq_rel(at, value) __atomic_add_fetch(at, value, __ATOMIC_ACQ_REL)
#define add_fetch_seq_cst(at, value) __atomic_add_fetch(at, value, __ATOMIC_SEQ_CST)

/* Compares and swaps: returns true if *at was *expected and now is `value`. A macro that returns
 * false has stored the word's value in *expected. A second order in the macro's name is the order
 * of this read; otherwise the read is relaxed. A weak form may return false although the word was
 * *expected. */
#define cas_acq_rel(at, expected, value)                                                           \
    __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)
#define cas_acq_rel_acquire(at, expected, value)                                                   \
    __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define cas_seq_cst(at, expected, value)                                                           \
    __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)
#define cas_weak_relaxed(at, expected, value)                                                      \
    __atomic_compare_exchange_n(at, expected, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)

#define fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define fence_release() __atomic_thread_fence(__ATOMIC_RELEASE)
#define fence_seq_cst() __atomic_thread_fence(__ATOMIC_SEQ_CST)

#endif
