#include "cache/lazy_load.h"

/* By image; and by what the program calls them, their addresses. */
static struct handle_map images = HANDLE_MAP(struct deferred), names = HANDLE_MAP(struct handle);

struct deferred *deferred_new(const void *image, int device) {
    struct deferred *deferred = handle_enter(&images, image);
    int unused = DEFERRED_NEW;
    if (!deferred || !handle_enter(&names, deferred) ||
        !cas_acq_rel(&deferred->state, &unused, DEFERRED_HELD))
        return NULL;
    deferred->device = device;
    return deferred;
}

struct deferred *deferred_find(hipModule_t handle) {
    return handle_find(&names, handle) ? (struct deferred *)handle : NULL;
}
