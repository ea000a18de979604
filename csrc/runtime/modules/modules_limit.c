/* Evicts modules.
 *
 * With stock, HIP unloads a module when the program calls mgpuModuleUnload. Programs that LLVM 20
 * or older has lowered make this call right after the launch. The library unloads the module later,
 * so a running kernel is at no greater risk than with stock. But an unload may wait for pending
 * work, and the library unloads modules at other times than stock. So the library evicts modules
 * only while no stream has pending work. If the idle modules cost more than seven quarters of the
 * limit, the library evicts modules at once. */
#include "modules/modules.h"
#include "streams/streams_pool.h"
#include "telemetry/counters.h"

#include <stdlib.h>

enum { BATCH = 64 };

/* ---- taking out ---- */

/* Removes from the table a module that no thread holds. Under tables_lock. */
static bool take_out(struct module *module, struct removed_module *evicted) {
    return module_is_known(module) && !module->graphs && module_acquire(module) &&
           module_remove(module, evicted);
}

static hipError_t unload(const struct removed_module *evicted) {
    stats_eviction(CACHE_MODULES);
    const hipError_t error = module_unload_removed(evicted);
    if (error != hipSuccess)
        report_failure("hipModuleUnload(module)", error, NULL);
    return error;
}

/* Evicts a module. Returns HIP's answer; hipErrorNotReady if a thread or a graph holds it. */
static hipError_t evict(struct module *module) {
    struct removed_module evicted;
    pthread_mutex_lock(&tables_lock);
    const bool taken = take_out(module, &evicted);
    pthread_mutex_unlock(&tables_lock);
    return taken ? unload(&evicted) : hipErrorNotReady;
}

/* ---- choosing ---- */

static bool may_leave(const struct module *module) {
    return module_state(module) == MODULE_IDLE && !module->pinned && !module->graphs;
}

/* Lists at most BATCH modules that may be evicted, least recently used first. Stores in *cost the
 * cost of all modules that may be evicted. Under tables_lock. */
static size_t list_oldest(struct module *oldest[BATCH], size_t *cost) {
    size_t count = 0;
    *cost = 0;
    for (struct module *module = handle_first(&module_map); module; module = handle_next(module)) {
        if (!may_leave(module))
            continue;
        const uint64_t use = load_relaxed(&module->last_use);
        size_t at = count < BATCH ? count++ : BATCH;
        *cost += module_cost(module);
        for (; at > 0 && load_relaxed(&oldest[at - 1]->last_use) > use; at--)
            if (at < BATCH)
                oldest[at] = oldest[at - 1];
        if (at < BATCH)
            oldest[at] = module;
    }
    return count;
}

/* The cost of all modules after the last search for modules to evict. The modules may then still
 * cost more than the limit. A search visits all entries, so the next search follows once the cost
 * has grown by an eighth. Under tables_lock. */
static size_t cost_then;

static bool look_due(size_t limit) {
    if (cost_then > module_cost_all)
        cost_then = module_cost_all;
    return module_cost_all > limit &&
           module_cost_all > cost_then + (cost_then > limit ? cost_then : limit) / 8;
}

/* Removes the least recently used modules, at most BATCH, until the idle modules cost at most
 * `keep` bytes. Returns the number of removed modules. */
static size_t take_out_oldest(size_t keep, struct removed_module *out) {
    struct module *oldest[BATCH];
    size_t cost, taken = 0;
    pthread_mutex_lock(&tables_lock);
    const size_t count = list_oldest(oldest, &cost);
    for (size_t i = 0; i < count && cost > keep; i++) {
        const size_t of_this = module_cost(oldest[i]);
        if (!take_out(oldest[i], &out[taken]))
            continue;
        taken++;
        cost -= of_this;
    }
    cost_then = module_cost_all;
    pthread_mutex_unlock(&tables_lock);
    return taken;
}

void module_enforce_limit(void) {
    struct removed_module evicted[BATCH];
    pthread_mutex_lock(&tables_lock);
    const size_t limit = cache_limits.module_bytes;
    const bool due = look_due(limit);
    pthread_mutex_unlock(&tables_lock);
    if (!due)
        return;
    limit_reached();
    device_ask_all();
    const size_t keep = limit - limit / 8;
    const size_t count = take_out_oldest(
        stream_all_quiet() ? keep : PROOF_VALUE(leak_stops_no_eviction, 2 * keep, SIZE_MAX),
        evicted);
    for (size_t i = 0; i < count; i++)
        (void)unload(&evicted[i]);
}

static int trim_modules(int device) {
    int total = 0;
    for (struct module *module = handle_first(&module_map); module; module = handle_next(module))
        if (module_state(module) == MODULE_IDLE && of_device(device, module_device(module)))
            total += evict(module) == hipSuccess;
    return total;
}

/* ---- for the manager ---- */

static bool describe_module(const void *entry, struct cached *out) {
    const struct module *module = entry;
    pthread_mutex_lock(&tables_lock);
    const int state = module_state(module);
    if (state != MODULE_GONE)
        *out = (struct cached){module_handle(module), module_cost(module),
                               load_relaxed(&module->uses), module->device, state == MODULE_LIVE};
    pthread_mutex_unlock(&tables_lock);
    return state != MODULE_GONE;
}

static hipError_t evict_module(void *handle) {
    struct module *module = handle_find(&module_map, handle);
    if (!module || module_state(module) == MODULE_GONE)
        return hipErrorNotFound;
    if (module_state(module) != MODULE_IDLE || !device_kept(module_device(module)) ||
        !stream_all_quiet())
        return hipErrorNotReady;
    return evict(module);
}

void module_pin(void *handle, int pinned) {
    pthread_mutex_lock(&tables_lock);
    struct module *module = handle_find(&module_map, handle);
    if (module)
        module->pinned = pinned != 0;
    pthread_mutex_unlock(&tables_lock);
}

const struct cache module_cache = {.trim = trim_modules,
                                   .invalidate = module_invalidate_all,
                                   .describe = describe_module,
                                   .map = &module_map,
                                   .evict = evict_module};
