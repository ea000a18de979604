/* Two modules that the program owns. The program loads the modules from one image or from two
 * images. */
#include "modules/modules.c"

#include "program.h"
#include "shared/caches.h"

static void load(unsigned object, unsigned image) {
    struct held *held = program_asks(object);
    const hipModule_t made = impl_mgpuModuleLoad(model_images[image], IMAGE_BYTES);
    explore_require(world.modules[model_module(made)].image == image, "a module of another image");
    program_has(held, made);
}

static void unload(unsigned object) {
    PROGRAM_ENDS(object, impl_mgpuModuleUnload(handle));
}

static void get_function(unsigned object) {
    struct held *held = program_use(object);
    const hipFunction_t found = impl_mgpuModuleGetFunction(held->handle, "kernel");
    const unsigned loads = world.modules[model_module(held->handle)].loads;
    explore_require((char *)found == (char *)held->handle + loads, "a function of an older module");
    held->users--;
}

static void forget(void) {
    bool all_gone = true;
    program_forgets();
    const unsigned lone = explore_lone();
    module_invalidate_all(ALL_DEVICES);
    for (const struct module *module = handle_first(&module_map); module;
         module = (const struct module *)module->handle.next)
        all_gone &= !module_is_known(module);
    program_require_gone(all_gone, lone);
}

#define MODULES(PLAYS)                                                                             \
    PLAYS("load 0", load(0, 0))                                                                    \
    PLAYS("load 1", load(1, 0))                                                                    \
    PLAYS("load 1 of another image", load(1, 1))                                                   \
    PLAYS("unload 0", unload(0))                                                                   \
    PLAYS("unload 1", unload(1))                                                                   \
    PLAYS("function 0", get_function(0))                                                           \
    PLAYS("function 1", get_function(1))                                                           \
    PLAYS("give back", module_cache.trim(ALL_DEVICES))                                             \
    PLAYS("evict",                                                                                 \
          module_cache.evict((void *)((struct module *)handle_first(&module_map))->handle.key))    \
    PLAYS("forget", forget())

/* ---- two devices, of which the program resets the second ---- */

static void on_device(int device, void (*call)(unsigned object), unsigned object) {
    program_go_to(device);
    call(object);
    program_go_to(0);
}

static void load_first(unsigned object) {
    load(object, 0);
}

static void visit(void) {
    on_device(1, load_first, 0);
    on_device(1, unload, 0);
    load_first(0);
}

#define MODULES_OF_TWO(PLAYS)                                                                      \
    PLAYS("load 0 on device 1, unload it, and load it on device 0", visit())                       \
    PLAYS("load 0 on device 0", load_first(0))                                                     \
    PLAYS("load 1 on device 1", on_device(1, load_first, 1))                                       \
    PLAYS("unload 0", unload(0))                                                                   \
    PLAYS("unload 1 on device 1", on_device(1, unload, 1))                                         \
    PLAYS("reset device 1", program_reset_modules(1, module_invalidate_all))

static bool in_images(const struct module *module) {
    const struct module *const begin = *images_at(&module->image), *one = begin;
    while (one && one != module)
        one = one->next_image == begin ? NULL : one->next_image;
    return one;
}

static void check(void) {
    size_t cost = 0;
    if (explore_held(&tables_lock))
        return;
    for (const struct module *module = handle_first(&module_map); module;
         module = (const struct module *)module->handle.next) {
        cost += module_is_known(module) ? module_cost(module) : 0;
        explore_require(in_images(module) == module_is_known(module),
                        "a load finds all that are known, and no other");
    }
    explore_require(cost == module_cost_all, "the costs are those of all that are known");
}

static void check_between(void) {
    for (const struct module *module = handle_first(&module_map); module;
         module = (const struct module *)module->handle.next) {
        const int state = module_state(module);
        explore_require(program_holds(module->handle.key) == (state == MODULE_LIVE) || world.forgot,
                        "the program holds it if and only if its state says so");
        explore_require((state != MODULE_GONE) == module_is_known(module) || world.forgot,
                        "it is known if and only if it is not gone");
        explore_require(!module_is_known(module) ||
                            world.modules[model_module(module->handle.key)].alive,
                        "HIP has what is known");
    }
}

/* Loads an image, and looks the kernel up, so that the library knows the name's address. */
static hipModule_t load_known(unsigned image) {
    const hipModule_t made = impl_mgpuModuleLoad(model_images[image], IMAGE_BYTES);
    (void)impl_mgpuModuleGetFunction(made, "kernel");
    return made;
}

/* The program owns object 0 from the start, and an idle module of each image is cached. */
static void set_up(bool exclusive) {
    model_start(1, exclusive);
    const hipModule_t one = load_known(0);
    world.held[0] = (struct held){.state = IS_HELD, .handle = load_known(0)};
    impl_mgpuModuleUnload(load_known(1));
    impl_mgpuModuleUnload(one);
}

SCENARIO(modules, "modules", false, set_up, MODULES);

/* The program owns no module, and no module is cached. The library knows the images' addresses, so
 * that fewer steps of the threads interleave. */
static void set_up_reset(bool exclusive) {
    model_start(1, exclusive);
    hip_device_count = 2;
    for (int i = 0; i < 2; i++)
        number_image(&(struct load){.data = model_images[i],
                                    .image = image_describe(model_images[i]),
                                    .constant = mapped_for_good(model_images[i], IMAGE_BYTES)});
}

SCENARIO(modules_reset, "modules-reset", false, set_up_reset, MODULES_OF_TWO);
