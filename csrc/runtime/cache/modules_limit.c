/* Eviction of modules.
 *
 * Stock unloads a module where the program does, right after the launch in programs of LLVM 20 and
 * older; here that comes later, so no kernel is in more danger. But an unload may wait for work,
 * where stock would not have waited at that place. So modules leave while no stream is at work; if
 * they then hold twice the limit, they leave as with stock. */
#include "cache/modules_limit.h"
#include "base/abi.h"
#include "base/atomics.h"
#include "base/counters.h"
#include "base/handles.h"
#include "base/observe.h"
#include "base/state.h"
#include "cache/limits.h"
#include "cache/manage.h"
#include "cache/modules.h"
#include "cache/streams_pool.h"
#include "hip/device.h"
#include "hip/hip.h"
#include "hip/report.h"

#include <stdlib.h>

enum { BATCH = 64, GHOSTS = 256, FALSE_EVICTIONS = 8, MISSES_BETWEEN = 16 };

static struct advice limit_thrashes = {
    .text = "MGPU_RT_MODULE_LIMIT (%zu bytes of images) is less than what this program uses again "
            "and again: modules were unloaded for it and loaded anew. It gives way, to %zu"};

/* ---- what was unloaded for the limit lately ---- */

static uint64_t ghosts[GHOSTS]; /* hashes of images, under tables_lock */
static unsigned false_evictions;

static void note_eviction(uint64_t hash) {
    ghosts[hash % GHOSTS] = hash;
}

/* True if the limit has cost too many loads by now. Under tables_lock. */
static bool is_thrashing(uint64_t missed) {
    if (!missed || ghosts[missed % GHOSTS] != missed)
        return false;
    ghosts[missed % GHOSTS] = 0;
    if (++false_evictions < FALSE_EVICTIONS)
        return false;
    false_evictions = 0;
    return true;
}

/* ---- taking out ---- */

struct evicted {
    hipModule_t handle;
    size_t bytes;
    int device;
};

/* Makes a module that nobody holds unknown. Under tables_lock. */
static bool take_out(struct module *module, struct evicted *evicted) {
    if (!module_take(module))
        return false;
    *evicted = (struct evicted){module_handle(module), module->image.size, module->device};
    registry_forget(module);
    return true;
}

static hipError_t unload(const struct evicted *evicted) {
    stats_eviction(CACHE_MODULES);
    const hipError_t error = hip.ModuleUnload(evicted->handle);
    observe(OBSERVED_MODULE_UNLOADED, evicted->handle, evicted->bytes, evicted->device);
    if (error != hipSuccess)
        report_failure("hipModuleUnload(module)", error, NULL);
    return error;
}

/* ---- choosing ---- */

static int by_last_use(const void *a, const void *b) {
    const struct module *left = *(struct module *const *)a, *right = *(struct module *const *)b;
    const uint64_t before = load_relaxed(&left->last_use);
    const uint64_t after = load_relaxed(&right->last_use);
    return (before > after) - (before < after);
}

/* The modules that nobody holds and nothing pins, oldest first. Under tables_lock; the caller
 * frees the list. */
static struct module **list_idle(size_t *count, size_t *bytes) {
    size_t entries = 0;
    *count = *bytes = 0;
    for (const struct handle *at = handle_first(&registry_modules); at; at = at->next)
        entries++;
    struct module **list = malloc((entries + 1) * sizeof *list);
    for (struct module *module = handle_first(&registry_modules); module && list;
         module = (struct module *)module->handle.next)
        if (module_state(module) == MODULE_FREE && !module->pinned) {
            list[(*count)++] = module;
            *bytes += module->image.size;
        }
    if (list)
        qsort(list, *count, sizeof *list, by_last_use);
    return list;
}

/* Looking means looking at all modules, so where the last look has left more than the limit, as the
 * program holds it, the next one waits. Under tables_lock. */
static size_t bytes_then;
static uint64_t clock_then;

static bool look_due(size_t limit) {
    return registry_bytes > limit && (registry_bytes > bytes_then + limit / 8 ||
                                      registry_clock >= clock_then + MISSES_BETWEEN);
}

static void note_look(void) {
    bytes_then = registry_bytes;
    clock_then = registry_clock;
}

/* Takes out up to BATCH modules until what is idle fits; returns how many. */
static size_t take_out_oldest(size_t keep, bool quiet, struct evicted *out) {
    size_t count, bytes, taken = 0;
    pthread_mutex_lock(&tables_lock);
    struct module **idle = list_idle(&count, &bytes);
    for (size_t i = 0; idle && i < count && taken < BATCH && bytes > (quiet ? keep : 2 * keep);
         i++) {
        const size_t size = idle[i]->image.size;
        const uint64_t hash = idle[i]->hash;
        if (!take_out(idle[i], &out[taken]))
            continue;
        taken++;
        bytes -= size;
        note_eviction(hash);
    }
    note_look();
    pthread_mutex_unlock(&tables_lock);
    free(idle);
    return taken;
}

void evict_modules(uint64_t missed) {
    struct evicted evicted[BATCH];
    pthread_mutex_lock(&tables_lock);
    size_t limit = cache_limits.module_bytes;
    const bool thrashing = is_thrashing(missed);
    if (thrashing)
        cache_limits.module_bytes = limit * 2;
    const bool due = !thrashing && look_due(limit);
    pthread_mutex_unlock(&tables_lock);
    if (thrashing)
        report_once(&limit_thrashes, limit, limit * 2);
    if (!due)
        return;
    device_ask_all();
    const size_t count = take_out_oldest(limit - limit / 8, stream_all_quiet(), evicted);
    for (size_t i = 0; i < count; i++)
        (void)unload(&evicted[i]);
}

int evict_all_modules(void) {
    struct evicted evicted[BATCH];
    int total = 0;
    for (size_t count = BATCH; count == BATCH;) {
        count = 0;
        pthread_mutex_lock(&tables_lock);
        for (struct module *module = handle_first(&registry_modules); module && count < BATCH;
             module = (struct module *)module->handle.next)
            count += module_state(module) == MODULE_FREE && take_out(module, &evicted[count]);
        pthread_mutex_unlock(&tables_lock);
        for (size_t i = 0; i < count; i++)
            total += unload(&evicted[i]) == hipSuccess;
    }
    return total;
}

/* ---- for the manager ---- */

size_t module_list(struct cached *out, size_t room) {
    size_t count = 0;
    pthread_mutex_lock(&tables_lock);
    for (const struct module *module = handle_first(&registry_modules); module;
         module = (const struct module *)module->handle.next) {
        const int state = module_state(module);
        if (state == MODULE_GONE)
            continue;
        if (count < room)
            out[count] =
                (struct cached){module_handle(module), module->image.size,
                                load_relaxed(&module->uses), module->device, state == MODULE_LIVE};
        count++;
    }
    pthread_mutex_unlock(&tables_lock);
    return count;
}

hipError_t module_evict(void *handle) {
    struct evicted evicted;
    struct module *module = handle_find(&registry_modules, handle);
    if (!module || module_state(module) == MODULE_GONE)
        return hipErrorNotFound;
    if (module_state(module) != MODULE_FREE || !device_kept(module_device(module)) ||
        !stream_all_quiet())
        return hipErrorNotReady;
    pthread_mutex_lock(&tables_lock);
    const bool taken = take_out(module, &evicted);
    pthread_mutex_unlock(&tables_lock);
    return taken ? unload(&evicted) : hipErrorNotReady;
}

void module_pin(void *handle, int pinned) {
    pthread_mutex_lock(&tables_lock);
    struct module *module = handle_find(&registry_modules, handle);
    if (module)
        module->pinned = pinned != 0;
    pthread_mutex_unlock(&tables_lock);
}
