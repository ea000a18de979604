#include "modules/modules_load.h"
#include "driver/hip.h"
#include "modules/image/image.h"
#include "modules/image/metadata.h"
#include "modules/modules_limit.h"
#include "process/mapped.h"
#include "process/options.h"
#include "process/state.h"
#include "proof.h"
#include "shared/caches.h"
#include "streams/events.h"
#include "streams/lazy_sync.h"

#include <stdlib.h>
#include <string.h>

/* HIP reads the image as long as the module lives, and a JIT may drop its image before. So the
 * module has a copy, page-aligned, as the loader of a file would have it. An image that is a
 * constant for good needs none. If HIP needs another image than the program's, that follows in the
 * same block. False without memory. */
static bool copy_image(struct load *load) {
    struct image *image = &load->image;
    const size_t room = module_pages(image->size);
    const bool changed = metadata_needs_copy(image, hip_version);
    load->for_hip = image->bytes;
    if (PROOF(image_is_a_constant, load->constant) && !changed)
        return true;
    unsigned char *copy = load->copy = aligned_alloc(MODULE_PAGE, changed ? 2 * room : room);
    if (!copy)
        return false;
    memcpy(copy, image->bytes, image->size);
    PROOF_STEP(module_has_its_own_bytes, image->bytes = copy);
    load->for_hip = copy;
    if (changed) {
        memcpy(copy + room, copy, image->size);
        metadata_drop_queue(copy + room, image->size);
        load->for_hip = copy + room;
    }
    return true;
}

static struct load *hit(struct load *load, const struct module *module) {
    load->how = CALL_HIT;
    load->handle = module_handle(module);
    load->image = module->image;
    return load;
}

/* An image that nothing is known of: the driver loads it, and no table has the module. */
static struct load *load_uncached(struct load *load) {
    load->how = CALL_BYPASS;
    lazy_end();
    load->error = RETRY(hip.ModuleLoadData(&load->handle, load->data));
    if (load->error == hipSuccess)
        PROOF_STEP(handle_is_another_modules_now, module_invalidate(load->handle));
    return load;
}

struct load module_load(struct thread *thread, const void *data) {
    struct load load = {.thread = thread, .data = data};

    /* Another slot of the thread may have it. */
    const struct module *kept = module_probe_thread(thread, data);
    if (kept)
        return *hit(&load, kept);

    /* HIP would crash on a damaged image, and judges what is not known. */
    if (cache_is_on(CACHE_MODULES))
        load.image = image_describe(data);
    if (load.image.damage) {
        load.how = CALL_REFUSED;
        return load;
    }
    if (!load.image.size)
        return *load_uncached(&load);

    /* A module of these bytes may be idle. */
    load.device = hip_current_device();
    load.constant = PROOF(image_stays_as_it_is, mapped_for_good(data, load.image.size));
    kept = module_may_share(&load.image) ? module_lookup_table(&load) : NULL;
    if (kept)
        return *hit(&load, kept);

    /* Else HIP loads it, and the table has it from here on. */
    PROOF_STEP(new_library_may_ask_for_times, event_look_for_timer());
    if (!copy_image(&load))
        return *load_uncached(&load);
    lazy_note_image(&load.image);
    load.how = CALL_MISS;
    load.error = RETRY(hip.ModuleLoadData(&load.handle, load.for_hip));
    register_exit();
    if (load.error != hipSuccess) {
        free(load.copy);
        load.image.bytes = data;
    } else if (module_insert(&load)) {
        module_enforce_limit(load.image.hash);
    }
    return load;
}

struct module_unloaded module_unload(hipModule_t handle) {
    struct removed_module removed;
    struct module *module = handle ? handle_find(&module_map, handle) : NULL;
    const int state = module ? module_state_asked(module) : MODULE_GONE;
    if (runtime_leaves(module))
        return (struct module_unloaded){UNLOAD_DONE, hipSuccess};
    if (state == MODULE_IDLE)
        return (struct module_unloaded){UNLOAD_TWICE, hipSuccess};
    if (state == MODULE_GONE)
        return (struct module_unloaded){UNLOAD_TO_HIP, hip.ModuleUnload(handle)};
    if (module->shared) {
        module_release(module);
        return (struct module_unloaded){UNLOAD_DONE, hipSuccess};
    }
    pthread_mutex_lock(&tables_lock);
    const bool leaves = PROOF(no_graph_launches_its_kernels, module->graphs == 0);
    const bool known = leaves && module_remove(module, &removed);
    pthread_mutex_unlock(&tables_lock);
    if (!leaves)
        return (struct module_unloaded){UNLOAD_DONE, hipSuccess};
    return (struct module_unloaded){UNLOAD_TO_HIP, known ? module_unload_removed(&removed)
                                                         : hip.ModuleUnload(handle)};
}
