/* Declares the tables of functions that the runtime and libmgpu_rt_sparse.so (csrc/sparse) exchange
 * by mgpu_rt_sparse, a plugin_entry. Both are of one version. */
#ifndef MGPU_RT_SPARSE_PLUGIN_H
#define MGPU_RT_SPARSE_PLUGIN_H

#include "process/mapped.h"
#include "streams/mgpu_stream.h"

/* The environments of hipSPARSE and cuSPARSE. csrc/sparse sets the functions of this cache. */
extern struct cache environment_cache;

/* The runtime's functions and variables that csrc/sparse uses. */
/* clang-format off */
#define SPARSE_HOST(NAME) \
    NAME(report_once) NAME(report_verbose) NAME(report_failure_in) NAME(hip) NAME(hip_path) \
    NAME(hip_current_device) NAME(cuda_present) NAME(mapped_find) NAME(mapped_library) \
    NAME(mapped_home) NAME(options_path_variable) NAME(caches_on) NAME(caches_make_room) \
    NAME(device_has_caches) NAME(device_kept) NAME(device_watch) NAME(thread_get) \
    NAME(stream_usable) NAME(stream_launched) NAME(lazy_end) NAME(witness_delegate) \
    NAME(register_exit) NAME(tables_lock) NAME(environment_cache)
/* clang-format on */

#define SPARSE_HOST_MEMBER(name) __typeof__(name) *name;
struct sparse_host {
    SPARSE_HOST(SPARSE_HOST_MEMBER)
};

/* The functions of csrc/sparse. All are thread-safe. */
struct sparse_plugin {
#define ONLY_SPARSE
#define MGPU_FN(result, name, params, args, first, last, ...) result(*name) params;
#include "../../abi.def"
};

#endif
