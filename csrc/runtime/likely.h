/* Tells the compiler which way a branch usually goes. */
#ifndef MGPU_RT_LIKELY_H
#define MGPU_RT_LIKELY_H

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#endif
