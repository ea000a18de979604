/* The libraries for sparse matrices: hipSPARSE, or cuSPARSE and cuSPARSELt where HIP is csrc/cuhip.
 *
 * These libraries are not linked, as HIP is not, and are opened at the first call that needs one:
 * rocSPARSE is 1.3 GB of kernels. */
#ifndef MGPU_RT_SPARSE_H
#define MGPU_RT_SPARSE_H

#include "driver/report.h"
#include "mgpu.h"
#include "shared/caches.h"

/* The libraries' answers, which have the same numbers, and one of the runtime's own. */
enum sparse_status {
    SPARSE_SUCCESS = 0,
    SPARSE_NO_MEMORY = 2,
    SPARSE_NOT_SUPPORTED = 10,
    SPARSE_NO_LIBRARY = -1,
};

struct sparse_functions {
#define SPARSE_FN(need, name, params) int(*name) params;
#include "sparse/sparse.def"
#undef SPARSE_FN
};

struct sparselt_functions {
#define SPARSELT_FN(need, name, params) int(*name) params;
#include "sparse/sparselt.def"
#undef SPARSELT_FN
};

/* Callable after sparse_open, even if that failed: without a library each function returns
 * SPARSE_NO_LIBRARY. */
extern struct sparse_functions sparse;
extern struct sparselt_functions sparselt;

/* Finds and opens the library, once a process; thread-safe. Returns false if there is none; a call
 * that fails for it prints a message. Called after HIP was opened. */
bool sparse_open(void);

/* Opens cuSPARSELt; AMD has no library that takes LLVM's handles. */
bool sparselt_open(void);

/* SPARSE_RETRY(call): returns the library's status; calls it once more if memory was short. */
#define SPARSE_RETRY(call)                                                                         \
    __extension__({                                                                                \
        int status_ = (call);                                                                      \
        if (status_ == SPARSE_NO_MEMORY && caches_make_room(hipErrorOutOfMemory))                  \
            status_ = (call);                                                                      \
        status_;                                                                                   \
    })

/* Returns the open library's number for a dense matrix whose rows follow each other. The handle is
 * one of its environments. */
int sparse_row_order(void *handle);

/* Prints stock's line for a status that is a failure, and once per cause what to do about it. The
 * expression is stock's, with %1$s in place of "cusparse" and %2$s in place of "CUSPARSE". */
void sparse_failed(const char *expression, int status, struct advice *advice);
void sparselt_failed(const char *expression, int status);

#endif
