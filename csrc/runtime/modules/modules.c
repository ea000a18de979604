#include "modules/modules.h"
#include "check.h"
#include "driver/exclusive.h"
#include "driver/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* At most MOST_CHANGING known images are no constants of the program. A search visits at most
 * MOST_VISITED modules. */
enum { IMAGE_BUCKETS = 1 << 16, MOST_CHANGING = 1 << 16, MOST_VISITED = 64, FIRST_SLOTS = 64 };

struct handle_map module_map = HANDLE_MAP(struct module);
struct handle_map known_images = HANDLE_MAP(struct known_image);
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

/* ---- images by address ---- */

/* Returns the number of the load's image. Returns 0 if there is no memory, or if too many images
 * are no constants. A JIT may load from any number of addresses. */
static size_t number_image(const struct load *load) {
    static size_t numbers, changing; /* under tables_lock */
    struct known_image *known = handle_find(&known_images, load->data);
    if (!known && (load->constant || load_relaxed(&changing) < MOST_CHANGING))
        known = handle_insert(&known_images, load->data);
    if (!known || load_acquire(&known->number))
        return known ? known->number : 0;
    pthread_mutex_lock(&tables_lock);
    if (!known->number) {
        known->constant = load->constant;
        known->image = load->image;
        known->image.bytes = load->data; /* the module may have a copy of the bytes */
        store_relaxed(&changing, changing + !load->constant);
        store_release(&known->number, ++numbers);
    }
    pthread_mutex_unlock(&tables_lock);
    return known->number;
}

bool module_image_is_constant(const void *data, struct image *image) {
    const struct known_image *known = handle_find(&known_images, data);
    const bool constant = known && load_acquire(&known->number) && known->constant;
    if (constant)
        *image = known->image;
    return constant;
}

/* ---- a thread's slots ---- */

/* Ensures that the thread has a slot of this number; returns false if there is no memory. */
static bool has_slot(struct thread *thread, size_t number) {
    size_t count = thread->module_slots ? thread->module_slots : FIRST_SLOTS;
    if (number < thread->module_slots)
        return true;
    while (count <= number)
        count *= 2;
    struct module_slot *slots = realloc(thread->modules, count * sizeof *slots);
    if (!slots)
        return false;
    memset(slots + thread->module_slots, 0, (count - thread->module_slots) * sizeof *slots);
    thread->modules = slots;
    thread->module_slots = count;
    return true;
}

/* Stores a module in a slot of the thread that has just acquired the module. The thread's next load
 * of the image finds the module in this slot. */
static void bind_slot(const struct load *load, struct module *module) {
    if (thread_is_none(load->thread))
        return;
    load->thread->loaded = module;
    const size_t number = number_image(load);
    if (module->shared && number && has_slot(load->thread, number))
        load->thread->modules[number] = (struct module_slot){
            module, module_version_and_state(module_version(module), MODULE_IDLE)};
}

/* ---- the table of images, under tables_lock ----
 *
 * The shared modules whose images have one place form a ring. The table has the module at which the
 * next search begins. */

static struct module *images[IMAGE_BUCKETS];

static struct module **images_at(const struct image *image) {
    return &images[image->hash % IMAGE_BUCKETS];
}

static bool has_image(const struct module *module, const struct image *image, int device) {
    return module->image.hash == image->hash &&
           PROOF(module_is_of_the_device, module->device == device) &&
           module->image.size == image->size &&
           memcmp(module->image.bytes, image->bytes, image->size) == 0;
}

/* A search visits the new module last, because the program holds it. */
static void insert_image(struct module *module) {
    struct module **begin = images_at(&module->image);
    struct module *next = *begin ? *begin : module;
    struct module *previous = *begin ? next->previous_image : module;
    module->next_image = next;
    module->previous_image = previous;
    previous->next_image = next->previous_image = module;
    *begin = next;
}

static void remove_image(struct module *module) {
    struct module **begin = images_at(&module->image), *next = module->next_image;
    if (*begin == module)
        *begin = next == module ? NULL : next;
    next->previous_image = module->previous_image;
    module->previous_image->next_image = next;
}

/* Visits at most MOST_VISITED modules, because a program may hold thousands of one image. The next
 * search begins where this search ends. */
static struct module *take_image(const struct load *load) {
    struct module **begin = images_at(&load->image), *const first = *begin;
    struct module *module = first;
    for (int visited = 0; module && visited < MOST_VISITED; visited++) {
        *begin = module->next_image;
        if (module_state(module) == MODULE_IDLE && has_image(module, &load->image, load->device) &&
            module_acquire(module))
            return module;
        module = *begin == first ? NULL : *begin;
    }
    return NULL;
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
    module->shared = load->shared;
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
    *removed = (struct removed_module){module_handle(module), module->copy};
    end_module(module);
    return true;
}

hipError_t module_unload_removed(const struct removed_module *removed) {
    const hipError_t error = hip.ModuleUnload(removed->handle);
    free(removed->copy);
    return error;
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
    device_watch(load->device);
    bind_slot(load, module);
    return true;
}

/* ---- graphs ---- */

void module_hold(struct module *module) {
    pthread_mutex_lock(&tables_lock);
    module->graphs++;
    pthread_mutex_unlock(&tables_lock);
}

void module_let_go(struct module *module) {
    struct removed_module removed;
    pthread_mutex_lock(&tables_lock);
    module->graphs--;
    const bool leaves = !module->graphs && !module->shared && module_acquire(module) &&
                        module_remove(module, &removed);
    pthread_mutex_unlock(&tables_lock);
    if (leaves)
        REPORT("hipModuleUnload(module)", module_unload_removed(&removed), NULL);
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

/* ---- after a reset ---- */

/* The copies of images stay allocated, because a thread may be reading one. */
void module_invalidate_all(int device) {
    struct removed_module removed;
    pthread_mutex_lock(&tables_lock);
    for (struct module *each = handle_first(&module_map); each; each = handle_next(each))
        if (PROOF(reset_ends_its_own_modules, of_device(device, module_device(each))))
            PROOF_STEP(reset_ends_modules, (void)module_remove(each, &removed));
    pthread_mutex_unlock(&tables_lock);
}
