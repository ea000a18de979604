/* Opens the libraries for sparse matrices: hipSPARSE or, if HIP is csrc/cuhip, cuSPARSE.
 *
 * Like HIP, these libraries are not linked. The first call that needs a library opens the library,
 * because rocSPARSE contains 1.3 GB of kernels. */
#ifndef MGPU_RT_SPARSE_H
#define MGPU_RT_SPARSE_H

#include "sparse/plugin.h"

struct environment; /* environments.h */

extern const struct sparse_host *host; /* the runtime; set before any other function is called */

/* The statuses of the libraries, which have the same numbers, and one status of this library. */
enum sparse_status {
    SPARSE_SUCCESS = 0,
    SPARSE_NO_MEMORY = 2,
    SPARSE_NOT_SUPPORTED = 10,
    SPARSE_NO_LIBRARY = -1,
};

struct sparse_functions {
#define SPARSE_FN(need, name, params, args) int(*name) params;
#include "sparse.def"
};

/* The libraries' functions, callable after sparse_open, even after a failure: without a library
 * each function returns SPARSE_NO_LIBRARY. */
extern const struct sparse_functions sparse;

/* Finds and opens the library, once in a process; thread-safe. Returns false if no library was
 * found; the call that fails for this reason prints a message. Called after HIP has been opened. */
bool sparse_open(void);

/* SPARSE_RETRY(call): returns the library's status; repeats the call if memory was short. */
#define SPARSE_RETRY(call)                                                                         \
    __extension__({                                                                                \
        int status_ = (call);                                                                      \
        if (status_ == SPARSE_NO_MEMORY && host->caches_make_room(hipErrorOutOfMemory))            \
            status_ = (call);                                                                      \
        status_;                                                                                   \
    })

/* Prints stock's line for the status of a failed call. Once for each cause, also prints what the
 * user can do. The expression is stock's, with %1$s in place of "cusparse" and %2$s in place of
 * "CUSPARSE". */
void sparse_failed(const char *expression, int status, struct advice *advice);

/* ---- calls that compute ---- */

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

#endif
