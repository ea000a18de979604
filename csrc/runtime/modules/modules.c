#include "modules/modules.h"
#include "check.h"
#include "driver/exclusive.h"
#include "process/state.h"
#include "proof.h"
#include "shared/caches.h"
#include "telemetry/publish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE_BUCKETS = 1024 };

struct handle_map module_map = HANDLE_MAP(struct module);
uint64_t module_clock = 1;
size_t module_cost_all;

/* HIP 5.2.3 allocates 34 KB for a module of 4.4 KB, in addition to the bytes of the module.
 * COST_OF_ANY contains 6 KB more for the library's entries, names and slots. (In a measurement, a
 * new image of 5 KB took 53 KB in all.) */
enum { COST_OF_ANY = 40 << 10 };

size_t module_cost(const struct module *module) {
    const size_t size = module->image.size;
    return COST_OF_ANY + size + (module->copy ? module_pages(size) : 0);
}

/* ---- a thread's slots ---- */

/* Stores a module in a slot of the thread that has just acquired the module. The thread's next load
 * of the image finds the module in this slot. */
static void bind_slot(const struct load *load, struct module *module) {
    if (thread_is_none(load->thread))
        return;
    load->thread->loaded = module;
    if (module->shared)
        *slot_choose(&load->thread->modules, NULL, load->data) = (struct slot){
            .key = load->data,
            .module = module,
            .version_and_state = module_version_and_state(module_version(module), MODULE_IDLE),
            .constant = load->constant};
}

__attribute__((noinline)) struct module *module_probe_thread(struct thread *thread,
                                                             const void *image) {
    const struct slot *slot = slot_home(&thread->modules, NULL, image);
    for (unsigned i = 1; i < SLOT_WINDOW; i++) {
        slot = slot_after(&thread->modules, slot);
        struct module *module = module_of_slot(thread, slot, image);
        if (module)
            return module;
    }
    return NULL;
}

/* ---- the table of images, under tables_lock ---- */

static struct module *images[IMAGE_BUCKETS];

static void insert_image(struct module *module) {
    struct module **bucket = &images[module->image.hash % IMAGE_BUCKETS];
    module->next_image = *bucket;
    *bucket = module;
}

static void remove_image(struct module *module) {
    struct module **link = &images[module->image.hash % IMAGE_BUCKETS];
    while (*link && *link != module)
        link = &(*link)->next_image;
    if (*link)
        *link = module->next_image;
}

static bool has_image(const struct module *module, const struct image *image, int device) {
    return module->image.hash == image->hash &&
           PROOF(module_is_of_the_device, module->device == device) &&
           module->image.size == image->size &&
           memcmp(module->image.bytes, image->bytes, image->size) == 0;
}

/* Compares only idle modules, because a program may hold hundreds of modules of a single image. */
static struct module *take_image(const struct load *load) {
    struct module *module = images[load->image.hash % IMAGE_BUCKETS];
    while (module && !(module_state(module) == MODULE_IDLE &&
                       has_image(module, &load->image, load->device) && module_acquire(module)))
        module = module->next_image;
    return module;
}

struct module *module_lookup_table(const struct load *load) {
    pthread_mutex_lock(&tables_lock);
    struct module *module = take_image(load);
    pthread_mutex_unlock(&tables_lock);
    if (!module)
        return NULL;
    module_note_use(module);
    bind_slot(load, module);
    return module;
}

/* ---- entering ---- */

bool module_may_share(const struct image *image) {
    return !image->writable &&
           !DOUBT(others_may_set_constants, image->settable && !exclusive_hip());
}

/* Returns whether module_cost_all equals the sum of all modules' costs. Under tables_lock. */
CHECKS bool cost_agrees(void) {
    size_t cost = 0;
    for (const struct module *module = handle_first(&module_map); module;
         module = handle_next(module))
        cost += module_is_known(module) ? module_cost(module) : 0;
    return cost == module_cost_all;
}

/* Under tables_lock. */
static void serve_image(struct module *module, const struct load *load) {
    store_relaxed(&module_clock, module_clock + 1);
    module->image = load->image;
    module->copy = load->copy;
    store_release(&module->device, load->device); /* the entry's previous module has ended before
                                                   * this store (module_of_slot) */
    module->shared = module_may_share(&load->image);
    module->pinned = false;
    module->graphs = 0;
    module->uses = 1;
    module->last_use = module_clock;
    module_cost_all += module_cost(module);
    if (module->shared)
        insert_image(module);
    store_release(&module->version, module_version(module) + 1);
    store_release(&module->state, PROOF_VALUE(new_module_is_held, MODULE_LIVE, MODULE_IDLE));
    CHECK(module_is_known(module) && cost_agrees());
}

/* ---- leaving ---- */

/* Removes a module from the table, even if the program or a thread holds it. Under tables_lock. */
static void end_module(struct module *module) {
    PROOF_STEP(slots_see_a_modules_end,
               store_release(&module->version, module_version(module) + 1));
    PROOF_STEP(module_is_unknown_before_hip_has_it, store_release(&module->state, MODULE_GONE));
    for (struct function *function = module->functions; function; function = function->next)
        store_relaxed(&function->handle, NULL);
    if (module->shared)
        remove_image(module);
    module_cost_all -= module_cost(module);
    CHECK(!module_is_known(module) && cost_agrees());
}

bool module_remove(struct module *module, struct removed_module *removed) {
    if (!module_is_known(module))
        return false;
    *removed = (struct removed_module){module_handle(module), module->copy, module_cost(module),
                                       module->device};
    end_module(module);
    return true;
}

hipError_t module_unload_removed(const struct removed_module *removed) {
    const hipError_t error = hip.ModuleUnload(removed->handle);
    publish_event(MODULE_UNLOADED, removed->handle, removed->bytes, removed->device);
    free(removed->copy);
    return error;
}

void module_make_private(struct module *module) {
    if (module->shared)
        remove_image(module);
    module->shared = false;
}

void module_invalidate(hipModule_t handle) {
    struct module *module = handle_find(&module_map, handle);
    if (!module)
        return;
    pthread_mutex_lock(&tables_lock);
    if (module_is_known(module))
        end_module(module);
    pthread_mutex_unlock(&tables_lock);
}

bool module_insert(const struct load *load) {
    struct module *module = handle_insert(&module_map, load->handle);
    if (!module)
        return false;
    pthread_mutex_lock(&tables_lock);
    if (module_is_known(module)) /* other code has unloaded the entry's earlier module */
        end_module(module);
    serve_image(module, load);
    pthread_mutex_unlock(&tables_lock);
    publish_event(MODULE_LOADED, load->handle, module_cost(module), load->device);
    device_watch(load->device);
    bind_slot(load, module);
    return true;
}

/* ---- graphs ---- */

static void count_graphs(struct module *module, int change) {
    pthread_mutex_lock(&tables_lock);
    module->graphs += (unsigned)change;
    pthread_mutex_unlock(&tables_lock);
}

void module_hold(struct module *module) {
    count_graphs(module, 1);
}

void module_let_go(struct module *module) {
    count_graphs(module, -1);
}

const struct function *module_search(hipFunction_t handle, struct module **holder) {
    for (*holder = handle_first(&module_map); *holder; *holder = handle_next(*holder)) {
        const struct function *function = module_is_known(*holder) ? (*holder)->functions : NULL;
        while (function && load_relaxed(&function->handle) != handle)
            function = function->next;
        if (function)
            return function;
    }
    return NULL;
}

struct module *module_hold_function(hipFunction_t handle) {
    struct module *module = NULL;
    pthread_mutex_lock(&tables_lock);
    const bool held =
        handle && module_search(handle, &module) && module_state(module) == MODULE_LIVE;
    if (held)
        PROOF_STEP(graph_holds_its_module, module->graphs++);
    pthread_mutex_unlock(&tables_lock);
    return held ? module : NULL;
}

void module_function_name(hipFunction_t handle, char *name, size_t room) {
    struct module *module = NULL;
    pthread_mutex_lock(&tables_lock);
    const struct function *function = module_search(handle, &module);
    if (function)
        snprintf(name, room, "%s", function->name);
    pthread_mutex_unlock(&tables_lock);
}

/* ---- after a reset ---- */

/* Removes the device's modules from the table one by one. Stops after a module that has a copy of
 * the image and that neither a thread nor the program holds. Returns the copy, which the caller
 * frees, or NULL after the last module. If a thread or the program holds a module, the copy stays
 * allocated, because the thread may be reading the copy. */
static unsigned char *invalidate_next(struct module **next, int device) {
    struct removed_module removed = {.copy = NULL}, held;
    while (*next && !removed.copy) {
        struct module *module = *next;
        *next = handle_next(module);
        if (!PROOF(reset_ends_its_own_modules, of_device(device, module_device(module))))
            continue;
        if (DOUBT(forgotten_module_is_nobodys, module_acquire(module)))
            (void)module_remove(module, &removed);
        else
            PROOF_STEP(reset_ends_held_modules, (void)module_remove(module, &held));
    }
    return removed.copy;
}

void module_invalidate_all(int device) {
    struct module *next = handle_first(&module_map);
    while (next) {
        pthread_mutex_lock(&tables_lock);
        unsigned char *copy = invalidate_next(&next, device);
        pthread_mutex_unlock(&tables_lock);
        free(copy);
    }
}
