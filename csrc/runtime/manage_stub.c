/* Throw-away: what manage.h declares, over the caches as they are, until these do it themselves. */
#include "block.h"
#include "manage.h"
#include "python.h"
#include "registry.h"
#include "stream.h"

#define WEAK __attribute__((weak))

WEAK struct cache_limits cache_limits = {.module_bytes = 1 << 30, .streams = 32};

WEAK size_t module_list(struct cached *out, size_t room) {
    size_t count = 0;
    for (struct module *m = handle_first(&registry_modules); m;
         m = (struct module *)m->handle.next) {
        pthread_mutex_lock(&registry_lock);
        const struct module_uses uses = registry_uses(m);
        const bool loaded = m->loaded;
        pthread_mutex_unlock(&registry_lock);
        if (loaded && count++ < room)
            out[count - 1] = (struct cached){(void *)m->handle.key, m->image.size, uses.loads,
                                             m->device, uses.loads != uses.unloads};
    }
    return count;
}
WEAK size_t stream_list(struct cached *out, size_t room) {
    size_t count = 0;
    for (struct stream *s = handle_first(&stream_map); s; s = (struct stream *)s->handle.next)
        if (count++ < room)
            out[count - 1] = (struct cached){(void *)s->handle.key, 0, 1, s->device, 0};
    return count;
}
WEAK size_t block_list(struct cached *out, size_t room) {
    (void)out, (void)room;
    return 0;
}
WEAK hipError_t module_evict(void *handle) {
    if (stream_any_busy())
        return hipErrorNotReady;
    pthread_mutex_lock(&registry_lock);
    struct module *module = handle_find(&registry_modules, handle);
    const bool there = module && module->loaded;
    const bool retired = there && registry_retire(module);
    pthread_mutex_unlock(&registry_lock);
    if (retired)
        stats_eviction(CACHE_MODULES);
    return retired ? hip.ModuleUnload(handle) : there ? hipErrorNotReady : hipErrorNotFound;
}
WEAK hipError_t stream_evict(void *handle) {
    return stream_retire(handle) ? hip.StreamDestroy(handle) : hipErrorNotReady;
}
WEAK hipError_t block_evict(void *address) {
    struct block *block = block_find(address);
    if (!block)
        return hipErrorNotFound;
    return block_retire(block) ? hip.Free(address) : hipErrorNotReady;
}
WEAK void module_pin(void *handle, int pinned) {
    (void)handle, (void)pinned;
}
