/* Begins and ends every call that computes with sparse matrices. */
#ifndef MGPU_RT_MGPU_SPARSE_H
#define MGPU_RT_MGPU_SPARSE_H

#include "environments.h"
#include "mgpu.h"

/* A computation on a stream, between sparse_begin and sparse_end. */
struct sparse_work {
    const char *expression;
    struct stream *stream; /* NULL: the null stream, or a stream that the program created by calling
                            * HIP */
    struct environment *environment; /* NULL: the program has created no environment */
    void *handle;                    /* the environment's handle, or NULL */
};

/* Acquires an environment for the stream. Returns false, and reports why, if the program has
 * destroyed the stream or no environment can be created. */
bool sparse_begin(struct sparse_work *work, hipStream_t stream, const char *expression);

/* Releases the environment, and reports the status if it is a failure. */
void sparse_end(struct sparse_work *work, int status);

/* Returns the address of a constant 1; `type` is the constant's type, as a cudaDataType_t. Products
 * pass this address as alpha or beta. */
const void *sparse_one(int type);

#endif
