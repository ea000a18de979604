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
    PROGRAM_ENDS(object, impl_mgpuEventDestroy(handle));
}

static void record(unsigned object, unsigned stream) {
    PROGRAM_USES(object, impl_mgpuEventRecord(handle, model_stream(stream));
                 world.recorded[object] = true);
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

#define EVENTS(PLAYS)                                                                              \
    PLAYS("create 0", create(0))                                                                   \
    PLAYS("create 1", create(1))                                                                   \
    PLAYS("destroy 0", destroy(0))                                                                 \
    PLAYS("destroy 1", destroy(1))                                                                 \
    PLAYS("record 0 on 0", record(0, 0))                                                           \
    PLAYS("record 1 on 0", record(1, 0))                                                           \
    PLAYS("record 0 on 1", record(0, 1))                                                           \
    PLAYS("synchronise 0", synchronize(0))

static void check(void) {
    model_check_numbers();
    for (unsigned i = 0; i < MOST_OBJECTS; i++)
        explore_require(world.held[i].state != IS_HELD ||
                            event_held((hipEvent_t)world.held[i].handle),
                        "the program's event was taken from it");
}

static void check_between(void) {
    for (struct event *event = handle_first(&event_map); event;
         event = (struct event *)event->handle.next) {
        const bool alive = model_event_is_alive((hipEvent_t)event->handle.key);
        explore_require(program_holds(event->handle.key) == (event->state == EVENT_LIVE),
                        "the program holds it if and only if its state says so");
        explore_require((event->state == EVENT_LIVE) == alive,
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

SCENARIO(events, "events", false, set_up, EVENTS);
