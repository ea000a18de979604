/* Declares the tables of functions that the runtime and libmgpu_rt_sparse.so (csrc/sparse)
 * exchange. The runtime opens that library at the first call with sparse matrices, and both are of
 * one version. */
#ifndef MGPU_RT_SPARSE_PLUGIN_H
#define MGPU_RT_SPARSE_PLUGIN_H

#include "driver/report.h"

#include <limits.h>
#include <pthread.h>

struct stream;

/* The runtime's functions and facts that csrc/sparse uses. */
struct sparse_host {
    bool cuda;            /* HIP is csrc/cuhip */
    int hip_version;      /* 0: unknown */
    const char *hip_path; /* "" if HIP was not found */
    pthread_mutex_t *tables_lock;
    /* driver/report.h */
    void (*report_once)(struct advice *advice, ...);
    void (*report_verbose)(const char *format, ...);
    void (*report_failure_in)(const char *library, const char *expression, const char *reason,
                              hipError_t error, struct advice *advice);
    /* process/mapped.h and process/options.h */
    bool (*mapped_find)(const char *stem, const char *but, char *path, size_t size);
    void *(*mapped_library)(const char *stem, char *path, size_t size);
    bool (*mapped_home)(char path[PATH_MAX]);
    const char *(*path_variable)(const char *name);
    /* shared/caches.h */
    bool (*make_room)(hipError_t error);
    bool (*device_kept)(int device);
    void (*device_watch)(int device);
    int (*current_device)(void);
    bool (*caches_are_on)(void);
    void (*register_exit)(void);
    /* Begins work on a stream. Returns false, and reports why, if the program has destroyed the
     * stream. Stores NULL for the null stream and for a stream that the program created by HIP. */
    bool (*begin)(hipStream_t stream, const char *expression, struct stream **known);
    /* Records the work as pending work of the stream. */
    void (*end)(struct stream *known);
};

/* The functions of csrc/sparse. All are thread-safe. */
struct sparse_plugin {
#define ONLY_SPARSE
#define MGPU_FN(result, name, params, args, first, last, ...) result(*name) params;
#include "../../abi.def"
    int (*trim)(int device); /* as in struct cache (shared/caches.h) */
    void (*invalidate)(int device);
};

/* The only function that libmgpu_rt_sparse.so exports, as mgpu_rt_sparse. `host` has to stay. */
typedef const struct sparse_plugin *sparse_entry(const struct sparse_host *host);

/* The runtime's: the environments of hipSPARSE and cuSPARSE; empty until the first call with sparse
 * matrices. */
extern const struct cache environment_cache;

#endif
