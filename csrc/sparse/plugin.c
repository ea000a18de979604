/* The entry of libmgpu_rt_sparse.so. */
#include "environments.h"
#include "proof.h"
#include "sparse.h"

/* Without a proof (proof.h), as in process/state.c. */
#ifdef WITHOUT
const char proof_left_out[64] = PROOF_NAME(WITHOUT);
#endif

const struct sparse_host *host;

__attribute__((visibility("default"))) plugin_entry mgpu_rt_sparse;

const void *mgpu_rt_sparse(const void *of_runtime) {
    static const struct sparse_plugin plugin = {
#define ONLY_SPARSE
#define MGPU_FN(result, name, params, args, first, last, ...) .name = impl_##name,
#include "../abi.def"
    };
    host = of_runtime;
    store_release(&host->environment_cache->trim, environment_trim);
    store_release(&host->environment_cache->invalidate, environment_invalidate);
    return &plugin;
}
