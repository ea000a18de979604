/* Two events on two streams. The program may own the two events at the same time. */
#include "streams/events.c"

#include "program.h"
#include "streams/streams.h"

static void create(unsigned object) {
    struct held *held = program_asks(object);
    world.recorded[object] = false;
    const hipEvent_t made = impl_mgpuEventCreate();
    explore_require(model_event_is_alive(made), "an event was handed out that HIP has not");
    program_has(held, made);
}

static void destroy(unsigned object) {
    struct held *held = program_ends(object);
    impl_mgpuEventDestroy(held->handle);
    program_has_ended(held);
}

static void record(unsigned object, unsigned stream) {
    struct held *held = program_use(object);
    impl_mgpuEventRecord(held->handle, model_stream(stream));
    world.recorded[object] = true;
    held->users--;
}

static void synchronize(unsigned object) {
    struct held *held = program_use(object);
    const unsigned lone = explore_lone();
    impl_mgpuEventSynchronize(held->handle);
    explore_require(!world.recorded[object] || !lone || explore_lone() != lone ||
                        model_event_is_past(held->handle),
                    "a wait was over before what it is for");
    held->users--;
}

static void forget(void) {
    bool all_gone = true;
    program_forgets();
    const unsigned lone = explore_lone();
    invalidate_events(ALL_DEVICES);
    for (struct event *event = handle_first(&event_map); event;
         event = (struct event *)event->handle.next)
        all_gone &= event->state == EVENT_GONE;
    program_require_gone(all_gone, lone);
}

enum operation {
    CREATE_0,
    CREATE_1,
    DESTROY_0,
    DESTROY_1,
    RECORD_0,
    RECORD_1,
    OTHER_0,
    SYNC_0,
    FORGET,
    OPERATIONS
};
static const char *const names[] = {"create 0",      "create 1",      "destroy 0",
                                    "destroy 1",     "record 0 on 0", "record 1 on 0",
                                    "record 0 on 1", "synchronise 0", "forget"};

static void play(unsigned operation) {
    switch (operation) {
    case CREATE_0:
    case CREATE_1:
        create(operation - CREATE_0);
        break;
    case DESTROY_0:
    case DESTROY_1:
        destroy(operation - DESTROY_0);
        break;
    case RECORD_0:
    case RECORD_1:
        record(operation - RECORD_0, 0);
        break;
    case OTHER_0:
        record(0, 1);
        break;
    case SYNC_0:
        synchronize(0);
        break;
    default:
        forget();
    }
}

static void check(void) {
    model_check_numbers();
    for (unsigned i = 0; i < MOST_OBJECTS; i++)
        explore_require(world.held[i].state != IS_HELD || world.forgot || world.reset ||
                            event_held((hipEvent_t)world.held[i].handle),
                        "the program's event was taken from it");
}

static bool program_holds(const struct event *event) {
    for (unsigned i = 0; i < MOST_OBJECTS; i++)
        if (world.held[i].state == IS_HELD && world.held[i].handle == event->handle.key)
            return true;
    return false;
}

static void check_between(void) {
    for (struct event *event = handle_first(&event_map); event;
         event = (struct event *)event->handle.next) {
        const bool alive = model_event_is_alive((hipEvent_t)event->handle.key);
        explore_require(program_holds(event) == (event->state == EVENT_LIVE) || world.forgot,
                        "the program holds it if and only if its state says so");
        explore_require((event->state == EVENT_LIVE) == alive || world.forgot,
                        "HIP has it if and only if its state says so");
    }
}

/* The program owns object 0 from the start, and HIP has destroyed an event. */
static void set_up(bool exclusive) {
    model_start(2, exclusive);
    for (struct stream *stream = stream_first(); stream; stream = stream_next(stream)) {
        stream->has_blocks = true;
        world.streams[model_number(stream_handle(stream))].submitted = 1;
        stream->submitted = STREAM_NEXT;
    }
    world.held[0] = (struct held){.state = IS_HELD, .handle = impl_mgpuEventCreate()};
    impl_mgpuEventDestroy(impl_mgpuEventCreate());
}

const struct scenario explore_events = SCENARIO("events", false, OPERATIONS, set_up, play, names);
