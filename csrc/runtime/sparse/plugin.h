/* Declares the tables of functions that the runtime and libmgpu_rt_sparse.so (csrc/sparse)
 * exchange. The runtime opens that library at the first call with sparse matrices, and both are of
 * one version. */
#ifndef MGPU_RT_SPARSE_PLUGIN_H
#define MGPU_RT_SPARSE_PLUGIN_H

#include "driver/cuda.h"
#include "process/mapped.h"
#include "streams/mgpu_stream.h"

/* The runtime's functions that csrc/sparse calls, as the headers of csrc/runtime declare them. */
/* clang-format off */
#define SPARSE_HOST(FN) \
    FN(report_once) FN(report_verbose) FN(report_failure_in) FN(hip_path) FN(hip_current_device) \
    FN(cuda_present) FN(mapped_find) FN(mapped_library) FN(mapped_home) FN(options_path_variable) \
    FN(caches_on) FN(caches_make_room) FN(device_has_caches) FN(device_kept) FN(device_watch) \
    FN(thread_get) FN(stream_usable) FN(stream_launched) FN(lazy_end) FN(witness_delegate)
/* clang-format on */

struct sparse_host {
#define FN(name) __typeof__(name) *name;
    SPARSE_HOST(FN)
#undef FN
    void (*register_exit)(void);
    const struct hip_functions *hip;
    pthread_mutex_t *tables_lock;
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

/* The environments of hipSPARSE and cuSPARSE. Without functions until the first call with sparse
 * matrices. */
extern struct cache environment_cache;

#endif
