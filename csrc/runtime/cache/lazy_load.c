#include "cache/lazy_load.h"
#include "base/state.h"

#include <stdlib.h>

/* By handle and by image. Both under tables_lock; entries are never freed. */
static struct handle_map handles, images;

static struct deferred *enter(const void *image, int device) {
    struct deferred *deferred = malloc(sizeof *deferred);
    if (!deferred)
        return NULL;
    *deferred = (struct deferred){
        .handle.key = deferred, .image.key = image, .device = device, .state = DEFERRED_HELD};
    handle_add(&handles, &deferred->handle);
    handle_add(&images, &deferred->image);
    return deferred;
}

struct deferred *deferred_new(const void *image, int device) {
    pthread_mutex_lock(&tables_lock);
    struct deferred *deferred = handle_find(&images, image) ? NULL : enter(image, device);
    pthread_mutex_unlock(&tables_lock);
    return deferred;
}

struct deferred *deferred_find(hipModule_t handle) {
    return handle_find(&handles, handle);
}
