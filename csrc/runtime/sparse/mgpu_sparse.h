/* Sparse matrices, which csrc/sparse computes. */
#ifndef MGPU_RT_MGPU_SPARSE_H
#define MGPU_RT_MGPU_SPARSE_H

struct cache;

/* The environments of hipSPARSE and cuSPARSE; empty until the first call with sparse matrices. */
extern const struct cache environment_cache;

#endif
