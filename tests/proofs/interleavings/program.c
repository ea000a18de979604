#include "program.h"

#include "shared/caches.h"

void program_launch(hipStream_t stream) {
    impl_mgpuLaunchKernel((hipFunction_t)world.held, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL, 0);
    model_returned(model_number(stream));
}

void program_launch_on(hipStream_t stream, void *address) {
    world.works_on[model_self()] = address;
    program_launch(stream);
    world.works_on[model_self()] = NULL;
}

void program_require_gone(bool all_gone, unsigned lone) {
    explore_require(all_gone || !lone || explore_lone() != lone, "all is forgotten");
}

/* Prunes the run if a thread uses a handle, or if a call is creating or ending an object. */
static void need_rest(void) {
    for (unsigned i = 0; i < MOST_OBJECTS; i++)
        if (world.held[i].users || world.held[i].state == IS_MADE ||
            world.held[i].state == IS_ENDED)
            explore_prune();
}

void program_forgets(void) {
    need_rest();
    world.forgot = true;
}

void program_reset(void) {
    need_rest();
    model_lose_device();
    for (unsigned i = 0; i < MOST_OBJECTS; i++)
        world.held[i] = (struct held){.state = NOT_HELD};
    world.reset = true;
    world.hand_under |= world.hands != 0;
    world.hand_between |= world.hand_under;
}

void program_go_to(int device) {
    if (device && device == world.resets)
        explore_prune();
    world.device[model_self()] = device;
}

void program_reset_modules(int device, void (*forget)(int device)) {
    for (unsigned i = 0; i <= THREADS; i++)
        if (world.device[i] == device || world.resets)
            explore_prune();
    world.resets = device;
    forget(device);
    for (unsigned i = 0; i < MOST_OBJECTS; i++)
        if (world.held[i].state == IS_HELD &&
            world.modules[model_module(world.held[i].handle)].device == device)
            world.held[i] = (struct held){.state = NOT_HELD};
    for (unsigned i = 0; i < MOST_MODULES; i++)
        world.modules[i].alive &= world.modules[i].device != device;
    world.resets = 0;
}

bool program_reset_is_unseen(void) {
    return world.reset && device_has_caches(0);
}

void program_hand(bool begins) {
    world.hands += begins ? 1 : -1u;
    world.hand_under &= world.hands != 0;
    world.hand_between |= program_reset_is_unseen();
}

struct held *program_hold(unsigned object, int state) {
    struct held *held = &world.held[object];
    if ((int)held->state != state || held->users)
        explore_prune();
    return held;
}

struct held *program_use(unsigned object) {
    struct held *held = &world.held[object];
    if (held->state != IS_HELD)
        explore_prune();
    held->users++;
    return held;
}

struct held *program_asks(unsigned object) {
    struct held *held = program_hold(object, NOT_HELD);
    held->state = IS_MADE;
    return held;
}

void program_has(struct held *held, void *handle) {
    for (unsigned i = 0; i < MOST_OBJECTS; i++)
        explore_require(world.held[i].state != IS_HELD || world.held[i].handle != handle,
                        "a handle was handed out twice");
    held->handle = handle;
    held->state = IS_HELD;
}

struct held *program_ends(unsigned object) {
    struct held *held = program_hold(object, IS_HELD);
    held->state = IS_ENDED;
    return held;
}

void program_has_ended(struct held *held) {
    held->handle = NULL;
    held->state = NOT_HELD;
}

bool program_holds(const void *handle) {
    for (unsigned i = 0; i < MOST_OBJECTS; i++)
        if (world.held[i].state == IS_HELD && world.held[i].handle == handle)
            return true;
    return false;
}
