/* What the runtime answers to a policy. */
#include "block.h"
#include "mapped.h"
#include "python.h"
#include "registry.h"
#include "stream.h"

#include <string.h>

static struct module *find_loaded(void *handle) {
    struct module *module = handle_find(&registry_modules, handle);
    return module && module->loaded ? module : NULL;
}

static uint64_t module_loads(void *handle) {
    pthread_mutex_lock(&registry_lock);
    const struct module *module = find_loaded(handle);
    const uint64_t loads = module ? registry_uses(module).loads : 0;
    pthread_mutex_unlock(&registry_lock);
    return loads;
}

static uint64_t module_references(void *handle) {
    pthread_mutex_lock(&registry_lock);
    const struct module *module = find_loaded(handle);
    const struct module_uses uses = module ? registry_uses(module) : (struct module_uses){0, 0};
    pthread_mutex_unlock(&registry_lock);
    return uses.loads - uses.unloads;
}

/* A kernel of the module may still run: LLVM 20 and older unload right after an asynchronous
 * launch. Waiting for it here could wait for ever (it may itself wait for a kernel that this thread
 * is about to launch), so a module leaves only while no stream has work. */
static int module_retire(void *handle) {
    if (stream_any_busy())
        return 0;
    pthread_mutex_lock(&registry_lock);
    struct module *module = find_loaded(handle);
    const bool retired = module && registry_retire(module);
    pthread_mutex_unlock(&registry_lock);
    if (retired)
        stats_eviction(CACHE_MODULES);
    return retired;
}

static int stream_retire_handle(void *handle) {
    const bool retired = stream_retire(handle);
    if (retired)
        stats_eviction(CACHE_STREAMS);
    return retired;
}

static uint64_t memory_uses(void *ptr) {
    const struct block *block = block_find(ptr);
    return block && block->state != BLOCK_GONE ? block->uses : 0;
}

static int memory_retire(void *ptr) {
    struct block *block = block_find(ptr);
    const bool retired = block && block_retire(block);
    if (retired)
        stats_eviction(CACHE_MEMORY);
    return retired;
}

static void count(const char *function, uint64_t nanoseconds) {
#define HIP_FN(need, name, params, args)                                                           \
    if (strcmp(function, "hip" #name) == 0)                                                        \
        stats_hip_call(HIP_##name, nanoseconds);
#include "hip.def"
#undef HIP_FN
}

static void say(const char *text) {
    report_verbose("%s", text);
}

struct mgpu_host host_functions = {
    .module_loads = module_loads,
    .module_references = module_references,
    .module_retire = module_retire,
    .stream_retire = stream_retire_handle,
    .streams_idle = stream_count_idle,
    .memory_uses = memory_uses,
    .memory_retire = memory_retire,
    .say = say,
    .detach = policy_detach,
};

void host_start(void) {
    host_functions.hip_path = hip_path();
    host_functions.count = stats_wanted() ? count : NULL;
    host_functions.module_limit = options.module_limit_count;
    host_functions.stream_limit = options.stream_limit_count;
}
