/* Two events on two streams. The program may own the two events at the same time. */
#include "streams/events.c"

#include "program.h"
#include "streams/streams.h"

static void create(unsigned object) {
    struct held *held = program_asks(object);
    world.recorded[object] = false;
    const hipEvent_t made = impl_mgpuEventCreate();
    explore_require(model_event_is_alive(made), "an event was handed out that HIP has not");
    explore_require(exclusive_hip() || model_event_is_past(made), "an event has a past");
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
    GIVE_BACK,
    THREAD_ENDS,
    FORGET,
    OPERATIONS
};
static const char *const names[] = {
    "create 0",      "create 1",      "destroy 0", "destroy 1",   "record 0 on 0", "record 1 on 0",
    "record 0 on 1", "synchronise 0", "give back", "thread ends", "forget"};

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
    case GIVE_BACK:
        trim_events(ALL_DEVICES);
        break;
    case THREAD_ENDS:
        release_slots(thread_get());
        break;
    default:
        forget();
    }
}

/* ---- a reset, which the program makes between its calls ---- */

enum reset_operation { NEW_0, NEW_1, END_0, RESET, LEAVE, RESET_OPERATIONS };
static const char *const reset_names[] = {"create 0", "create 1", "destroy 0", "reset",
                                          "the library gives back"};

static void play_reset(unsigned operation) {
    switch (operation) {
    case NEW_0:
    case NEW_1:
        create(operation - NEW_0);
        break;
    case END_0:
        destroy(0);
        break;
    case RESET:
        program_reset();
        break;
    default:
        program_hand(true);
        (void)caches_trim();
        program_hand(false);
    }
}

static bool in_chain(const struct event *event) {
    const struct event *one = idle;
    while (one && one != event)
        one = one->next_idle;
    return one != NULL;
}

static bool in_slots(const struct event *event) {
    for (const struct thread *thread = thread_list; thread; thread = thread->next)
        for (unsigned i = 0; i < thread->event_count; i++)
            if (thread->events[i] == event)
                return true;
    return false;
}

static void check(void) {
    model_check_fences();
    if (explore_held(&tables_lock))
        return;
    for (struct event *event = handle_first(&event_map); event;
         event = (struct event *)event->handle.next)
        explore_require(event->queued == in_chain(event), "queued says whether it is in the chain");
    for (unsigned i = 0; i < MOST_OBJECTS; i++)
        explore_require(world.held[i].state != IS_HELD || world.forgot || world.reset ||
                            event_held((hipEvent_t)world.held[i].handle),
                        "the program's event was taken from it");
    explore_require(idle || idle_end == &idle, "an empty chain ends where it begins");
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
        const bool held = program_holds(event), gone = event->state == EVENT_GONE;
        explore_require((held == (event->state >= EVENT_PAST)) || (gone && world.forgot),
                        "the program holds it if and only if its state says so");
        explore_require(event->state != EVENT_IDLE || in_chain(event) || in_slots(event),
                        "who looks for a spare event can find it");
        explore_require(gone || model_event_is_alive(event_handle(event)), "what is kept is HIP's");
        explore_require(!gone || world.forgot || !model_event_is_alive(event_handle(event)),
                        "HIP has back what is gone");
    }
}

static void check_between_resets(void) {
    if (!world.reset)
        check_between();
    else if (!program_reset_is_unseen())
        for (struct event *event = handle_first(&event_map); event;
             event = (struct event *)event->handle.next)
            explore_require(event->state == EVENT_GONE, "a reset ends all events");
}

/* The program owns object 0 from the start, and the chain contains an idle event. */
static void set_up(bool exclusive) {
    model_start(2, exclusive);
    for (struct stream *stream = stream_first(); stream; stream = stream_next(stream)) {
        stream->has_waiters = true; /* a thread waits for every fence */
        world.streams[model_number(stream_handle(stream))].submitted = 1;
        stream->submitted = 1;
    }
    impl_mgpuEventDestroy(impl_mgpuEventCreate());
    world.held[0] = (struct held){.state = IS_HELD, .handle = impl_mgpuEventCreate()};
    const hipEvent_t spare_one = impl_mgpuEventCreate();
    impl_mgpuEventRecord(spare_one, model_stream(1));
    impl_mgpuEventDestroy(spare_one);
    release_slots(thread_get());
}

/* The program owns no event, and the chain contains an idle event. */
static void set_up_reset(bool exclusive) {
    static const struct cache *const caches[] = {&reset_cache, &event_cache, NULL};
    caches_set(caches);
    model_start(0, exclusive);
    impl_mgpuEventDestroy(impl_mgpuEventCreate());
    release_slots(thread_get());
}

const struct scenario explore_events = SCENARIO("events", false, OPERATIONS, play, names);
const struct scenario explore_events_asked =
    SCENARIO("events-asked", true, OPERATIONS, play, names);
const struct scenario explore_events_reset = {.name = "events-reset",
                                              .operations = RESET_OPERATIONS,
                                              .set_up = set_up_reset,
                                              .play = play_reset,
                                              .check = check,
                                              .check_between = check_between_resets,
                                              .names = reset_names};
