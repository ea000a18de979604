/* The user has declared that no other code calls HIP, and HIP reports. Other code then calls HIP at
 * each step of a postponed wait, and at each step of a call that registers memory. From the first
 * of these calls on, other code finds HIP as with stock. */
#include "abi/exclusive_end.c"

#include "process/options.h"
#include "program.h"

#include "memory/registrations.h"

void impl_mgpuStreamSynchronize(hipStream_t stream);

void program_reports_by_word(void) {
    witness_ends_word = exclusive_end;
    program_reports();
}

static void other_code_calls(void) {
    model_other_code_allocates();
    world.others = true;
}

/* ---- postponed waits ----
 *
 * Object 0 is a stream. */

static void launch(void) {
    PROGRAM_USES(0, program_launch(handle));
}

static void synchronize(void) {
    const unsigned returned = world.streams[0].returned;
    PROGRAM_USES(0, impl_mgpuStreamSynchronize(handle));
    if (world.waited < returned)
        world.waited = returned;
}

static void launch_and_synchronize(void) {
    launch();
    synchronize();
}

static void other_code_works(void) {
    model_other_code_launches(0, NULL);
    world.others = true;
}

#define WAITS(PLAYS)                                                                               \
    PLAYS("launch", launch())                                                                      \
    PLAYS("synchronise", synchronize())                                                            \
    PLAYS("launch and synchronise", launch_and_synchronize())                                      \
    PLAYS("other code works on the stream", other_code_works())                                    \
    PLAYS("other code allocates", other_code_calls())

static void set_up_waits(bool exclusive) {
    model_start(1, exclusive);
    options.sync_lazy = true;
    program_reports_by_word();
    world.held[0] = (struct held){.state = IS_HELD, .handle = model_stream(0)};
}

/* ---- registered memory ----
 *
 * Object 0 is memory, which the program registers and unregisters. */

static char memory[64] __attribute__((aligned(4096)));

static hipError_t host_register(void *address, size_t bytes, unsigned flags) {
    (void)address, (void)bytes, (void)flags;
    explore_point();
    explore_require(!world.registered, "memory is registered twice");
    world.registered = true;
    return hipSuccess;
}

static hipError_t host_unregister(void *address) {
    (void)address;
    explore_point();
    explore_require(world.registered, "memory is unregistered twice");
    world.registered = false;
    return hipSuccess;
}

static void register_memory(void) {
    struct held *held = program_asks(0);
    explore_require(registration_acquire(memory, sizeof memory) == hipSuccess, "HIP registers");
    explore_require(world.registered, "the program's memory is registered");
    program_has(held, memory);
}

static void unregister_memory(void) {
    PROGRAM_ENDS(0, (void)registration_release(handle));
}

static void give_back(void) {
    (void)registration_cache.trim(ALL_DEVICES);
}

#define REGISTRATIONS(PLAYS)                                                                       \
    PLAYS("register", register_memory())                                                           \
    PLAYS("unregister", unregister_memory())                                                       \
    PLAYS("give back", give_back())                                                                \
    PLAYS("other code allocates", other_code_calls())

static void set_up_registrations(bool exclusive, bool is_held) {
    model_start(0, exclusive);
    hip.HostRegister = host_register;
    hip.HostUnregister = host_unregister;
    program_reports_by_word();
    register_memory();
    unregister_memory();
    if (is_held)
        register_memory();
}

static void set_up_idle(bool exclusive) {
    set_up_registrations(exclusive, false);
}

static void set_up_held(bool exclusive) {
    set_up_registrations(exclusive, true);
}

/* The pages never change. */
const char *__wrap_page_watch_open(void (*changed)(void)) {
    (void)changed;
    return NULL;
}
bool __wrap_page_watch_add(const void *address, size_t bytes) {
    return address && bytes;
}
void __wrap_page_watch_remove(uintptr_t begin, size_t bytes) {
    (void)begin, (void)bytes;
}
bool __wrap_page_watch_settled(void) {
    return true;
}
bool __wrap_page_watch_is_lost(void) {
    return false;
}
bool __wrap_pages_are_private(const void *address, size_t bytes) {
    return address && bytes;
}

/* ---- what has to hold ---- */

static void check(void) {
    model_check_numbers();
    if (!world.others)
        return;
    explore_require(world.streams[0].done >= world.waited,
                    "other code sees work that the program has waited for, and that is pending");
    explore_require(!world.registered || world.held[0].state != NOT_HELD,
                    "other code finds memory registered that the program has unregistered");
}

static void check_between(void) {}

SCENARIO(waits_word, "waits-word", false, set_up_waits, WAITS);
SCENARIO(registrations_word, "registrations-word", false, set_up_idle, REGISTRATIONS);
SCENARIO(registrations_held, "registrations-held", false, set_up_held, REGISTRATIONS);
