#include "model.h"

#include "modules/image/image.h"
#include "process/options.h"
#include "process/state.h"
#include "shared/caches.h"
#include "streams/mgpu_stream.h"
#include "streams/streams.h"
#include "telemetry/counters.h"

#include <stdio.h>
#include <string.h>

struct world world;
const size_t world_size = sizeof world;

/* ---- handles ---- */

static char stream_handles[MOST_STREAMS][64], event_handles[MOST_EVENTS][64];

hipStream_t model_stream(unsigned number) {
    return (hipStream_t)stream_handles[number];
}
unsigned model_number(hipStream_t stream) {
    return (unsigned)(((char *)stream - stream_handles[0]) / 64);
}
static unsigned event_number(hipEvent_t event) {
    return (unsigned)(((char *)event - event_handles[0]) / 64);
}

/* Returns the number of the first object that is not alive. */
static unsigned first_free(const bool *alive, size_t bytes_of_each, unsigned count) {
    unsigned number = 0;
    while (number < count && *(const bool *)((const char *)alive + number * bytes_of_each))
        number++;
    explore_require(number < count, "HIP was asked for more objects than there is use for");
    return number;
}
#define FIRST_FREE(objects)                                                                        \
    first_free(&(objects)->alive, sizeof *(objects), sizeof(objects) / sizeof *(objects))

/* ---- streams ---- */

static void finish_transfer(struct transfer *transfer) {
    if (transfer->writes)
        *transfer->place = transfer->value;
    else
        explore_require(*transfer->place == transfer->value,
                        "pinned memory was written to before the device has read it");
    memset(transfer, 0, sizeof *transfer);
}

static void finish_works(unsigned stream, unsigned upto) {
    for (unsigned i = 0; i < MOST_TRANSFERS; i++)
        if (world.transfers[i].work && world.transfers[i].stream == stream &&
            world.transfers[i].work <= upto)
            finish_transfer(&world.transfers[i]);
    if (world.streams[stream].done < upto)
        world.streams[stream].done = upto;
    for (unsigned i = 0; i < world.waits_count; i++)
        if (world.waits[i].stream == stream && world.waits[i].work <= upto &&
            world.streams[world.waits[i].other].done < world.waits[i].at)
            finish_works(world.waits[i].other, world.waits[i].at);
}

static void finish_all(unsigned stream) {
    finish_works(stream, world.streams[stream].submitted);
}

static void finish_device(void) {
    for (unsigned i = 0; i < MOST_STREAMS; i++)
        finish_all(i);
}

static bool follows(unsigned order, unsigned upto, unsigned stream, unsigned work) {
    bool found = order == stream && work <= upto;
    for (unsigned i = 0; i < world.waits_count && !found; i++)
        found = world.waits[i].stream == order && world.waits[i].work <= upto &&
                follows(world.waits[i].other, world.waits[i].at, stream, work);
    return found;
}

bool model_precedes(unsigned stream, unsigned work, unsigned order) {
    return world.streams[stream].done >= work ||
           (order < MOST_STREAMS && follows(order, world.streams[order].submitted, stream, work));
}

bool model_is_done(unsigned stream) {
    return world.streams[stream].done == world.streams[stream].submitted;
}

void model_own_stream(unsigned number) {
    world.streams[number].alive = true;
}

static hipError_t stream_create(hipStream_t *stream) {
    explore_point();
    const unsigned number = FIRST_FREE(world.streams);
    world.streams[number].alive = true;
    world.streams[number].flags = 0;
    finish_all(number); /* of the handle's earlier owner */
    *stream = model_stream(number);
    return hipSuccess;
}

static unsigned need_stream(hipStream_t stream) {
    const unsigned number = model_number(stream);
    explore_require(number < MOST_STREAMS && world.streams[number].alive,
                    "HIP was given a stream that it does not have");
    return number;
}

/* Returns whether a reset has destroyed the stream; HIP then returns an error. */
static bool is_lost(hipStream_t stream) {
    return world.reset && !world.streams[model_number(stream)].alive;
}

static hipError_t stream_destroy(hipStream_t stream) {
    explore_point();
    if (is_lost(stream))
        return hipErrorInvalidHandle;
    if (world.hand_under)
        explore_prune(); /* no code can recognise a handle that a reset has just freed */
    world.streams[need_stream(stream)].alive = false;
    return hipSuccess;
}

static hipError_t stream_synchronize_(hipStream_t stream) {
    explore_point();
    if (is_lost(stream))
        return hipErrorInvalidHandle;
    finish_all(need_stream(stream));
    return hipSuccess;
}

/* Returns hipSuccess if the operations up to `upto` have completed, or hipErrorNotReady. If
 * operations are pending, the search tries both results. */
static hipError_t ask_for(unsigned stream, unsigned upto) {
    if (world.streams[stream].done >= upto)
        return hipSuccess;
    if (explore_choose(2) == 0)
        return hipErrorNotReady;
    finish_works(stream, upto);
    return hipSuccess;
}

static hipError_t stream_query(hipStream_t stream) {
    explore_point();
    if (is_lost(stream))
        return hipErrorInvalidHandle;
    const unsigned number = need_stream(stream);
    return ask_for(number, world.streams[number].submitted);
}

static hipError_t stream_flags(hipStream_t stream, unsigned *flags) {
    *flags = world.streams[need_stream(stream)].flags;
    return hipSuccess;
}

static hipError_t stream_capture(hipStream_t stream, int *status, unsigned long long *number) {
    need_stream(stream);
    *status = 0;
    *number = 0;
    return hipSuccess;
}

unsigned model_self(void) {
    return explore_self() < 0 ? THREADS : (unsigned)explore_self();
}

static hipError_t launch(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                         unsigned by, unsigned bz, unsigned smem, hipStream_t stream, void **params,
                         void **extra) {
    (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)smem;
    (void)params, (void)extra;
    explore_point();
    const unsigned number = need_stream(stream), work = ++world.streams[number].submitted;
    const void *on = world.works_on[model_self()];
    if (on)
        world.blocks[model_block(on)].needs[number] = work;
    return hipSuccess;
}

void model_other_code_launches(unsigned stream, void *address) {
    model_report(HIP_ModuleLaunchKernel);
    world.works_on[model_self()] = address;
    (void)launch(NULL, 1, 1, 1, 1, 1, 1, 0, model_stream(stream), NULL, NULL);
    world.works_on[model_self()] = NULL;
}

void model_other_code_destroys(hipStream_t stream) {
    model_report(HIP_StreamDestroy);
    (void)stream_destroy(stream);
}

hipStream_t model_other_code_creates(void) {
    hipStream_t made;
    model_report(HIP_StreamCreate);
    (void)stream_create(&made);
    world.streams[model_number(made)].flags = 1;
    return made;
}

static hipError_t synchronize_device(void) {
    explore_point();
    finish_device();
    return hipSuccess;
}

/* ---- events ---- */

static hipError_t event_create(hipEvent_t *event, unsigned flags) {
    (void)flags;
    explore_point();
    const unsigned number = FIRST_FREE(world.events);
    world.events[number].alive = true;
    world.events[number].recorded = false;
    *event = (hipEvent_t)event_handles[number];
    return hipSuccess;
}

static unsigned need_event(hipEvent_t event) {
    const unsigned number = event_number(event);
    explore_require(number < MOST_EVENTS && world.events[number].alive,
                    "HIP was given an event that it does not have");
    return number;
}

static hipError_t event_destroy(hipEvent_t event) {
    explore_point();
    if (world.hand_under)
        explore_prune(); /* no code can recognise a handle that a reset has just freed */
    world.events[need_event(event)].alive = false;
    return hipSuccess;
}

static hipError_t event_record(hipEvent_t event, hipStream_t stream) {
    explore_point();
    const unsigned number = need_event(event), on = need_stream(stream);
    world.events[number].recorded = true;
    world.events[number].stream = on;
    world.events[number].at = world.streams[on].submitted;
    return hipSuccess;
}

static hipError_t stream_wait_event(hipStream_t stream, hipEvent_t event, unsigned flags) {
    (void)flags;
    explore_point();
    const unsigned number = need_event(event), waiting = need_stream(stream);
    const unsigned work = ++world.streams[waiting].submitted;
    if (!world.events[number].recorded)
        return hipSuccess;
    if (world.waits_count == MOST_WAITS)
        explore_fail("the explorer has room for no more waits");
    world.waits[world.waits_count].stream = waiting;
    world.waits[world.waits_count].work = work;
    world.waits[world.waits_count].other = world.events[number].stream;
    world.waits[world.waits_count++].at = world.events[number].at;
    return hipSuccess;
}

void model_other_code_records(hipEvent_t event, unsigned stream) {
    model_report(HIP_EventRecord);
    (void)event_record(event, model_stream(stream));
}

static hipError_t event_query(hipEvent_t event) {
    explore_point();
    const unsigned number = need_event(event);
    return world.events[number].recorded
               ? ask_for(world.events[number].stream, world.events[number].at)
               : hipSuccess;
}

static hipError_t event_synchronize(hipEvent_t event) {
    explore_point();
    const unsigned number = need_event(event);
    if (world.events[number].recorded)
        finish_works(world.events[number].stream, world.events[number].at);
    return hipSuccess;
}

bool model_event_is_past(hipEvent_t event) {
    const unsigned number = event_number(event);
    return !world.events[number].recorded ||
           world.streams[world.events[number].stream].done >= world.events[number].at;
}

bool model_event_is_alive(hipEvent_t event) {
    return world.events[event_number(event)].alive;
}

/* ---- modules ---- */

static char module_handles[MOST_MODULES][64];
unsigned char model_images[2][IMAGE_BYTES] = {"one", "another"};

unsigned model_module(const void *handle) {
    const unsigned number = (unsigned)(((const char *)handle - module_handles[0]) / 64);
    explore_require(number < MOST_MODULES && world.modules[number].alive,
                    "a module that HIP does not have");
    return number;
}

static hipError_t module_load(hipModule_t *module, const void *image) {
    explore_point();
    const unsigned number = FIRST_FREE(world.modules);
    world.modules[number].alive = true;
    world.modules[number].loads++;
    world.modules[number].device = world.device[model_self()];
    world.modules[number].image = image == model_images[1];
    *module = (hipModule_t)module_handles[number];
    return hipSuccess;
}

static hipError_t module_unload(hipModule_t module) {
    explore_point();
    world.modules[model_module(module)].alive = false;
    return hipSuccess;
}

/* Stores a function handle that differs between the loads of a module. */
static hipError_t module_function(hipFunction_t *function, hipModule_t module, const char *name) {
    (void)name;
    explore_point();
    *function = (hipFunction_t)((char *)module + world.modules[model_module(module)].loads);
    return hipSuccess;
}

struct image __wrap_image_describe(const void *data) {
    return (struct image){.bytes = data,
                          .size = IMAGE_BYTES,
                          .head = 16,
                          .hash = data == model_images[1] ? 2 : 1,
                          .kind = IMAGE_ELF};
}
bool __wrap_mapped_for_good(const void *data, size_t bytes) {
    (void)data;
    (void)bytes;
    return true;
}

/* ---- memory ---- */

static char memory[MOST_BLOCKS][BLOCK_BYTES] __attribute__((aligned(256)));

unsigned model_block(const void *address) {
    const unsigned number = (unsigned)(((const char *)address - memory[0]) / BLOCK_BYTES);
    explore_require(number < MOST_BLOCKS && world.blocks[number].alive,
                    "memory that HIP does not have");
    return number;
}

bool model_block_is_alive(const void *address) {
    return world.blocks[((const char *)address - memory[0]) / BLOCK_BYTES].alive;
}

static hipError_t memory_get(void **address, size_t bytes) {
    explore_point();
    explore_require(bytes <= BLOCK_BYTES, "a block is as large as was asked for");
    const unsigned number = FIRST_FREE(world.blocks);
    world.blocks[number].alive = true;
    world.blocks[number].bytes = bytes;
    *address = memory[number];
    return hipSuccess;
}

static hipError_t memory_get_managed(void **address, size_t bytes, unsigned flags) {
    (void)flags;
    return memory_get(address, bytes);
}

static hipError_t memory_info(size_t *available, size_t *total) {
    *available = *total = 1 << 24;
    return hipSuccess;
}

/* Waits for the device, as HIP does. */
static hipError_t memory_free(void *address) {
    explore_point();
    const unsigned number = model_block(address);
    finish_device();
    memset(&world.blocks[number], 0, sizeof world.blocks[number]);
    return hipSuccess;
}

static hipError_t memory_range(void **begin, size_t *bytes, void *address) {
    const unsigned number = model_block(address);
    *begin = memory[number];
    *bytes = world.blocks[number].bytes;
    return hipSuccess;
}

static char watched_there[64];

static hipError_t watched(void **address, size_t bytes, unsigned flags) {
    (void)bytes;
    (void)flags;
    world.watch.alive = true;
    world.watch.number++;
    *address = watched_there;
    return hipSuccess;
}
bool __wrap_device_memory_number(void *address, uint64_t *number) {
    const bool watches = address == watched_there;
    if (world.reset)
        explore_point();
    *number = watches ? world.watch.number : 1;
    return !watches || world.watch.alive;
}

/* ---- copies ---- */

static hipError_t pinned_get(void **memory_of, size_t bytes, unsigned flags) {
    (void)flags;
    explore_point();
    explore_require(bytes <= PINNED_BYTES, "no more is asked for than there is");
    const unsigned number = FIRST_FREE(world.pinned);
    world.pinned[number].alive = true;
    *memory_of = world.pinned[number].bytes;
    return hipSuccess;
}

static struct pinned *pinned_at(const void *address) {
    for (unsigned i = 0; i < MOST_PINNED; i++)
        if ((const unsigned char *)address >= world.pinned[i].bytes &&
            (const unsigned char *)address < world.pinned[i].bytes + PINNED_BYTES)
            return &world.pinned[i];
    return NULL;
}

bool model_reads(unsigned stream, const char *pinned) {
    for (unsigned i = 0; i < MOST_TRANSFERS; i++)
        if (world.transfers[i].work && world.transfers[i].stream == stream &&
            pinned_at(world.transfers[i].place) == pinned_at(pinned))
            return true;
    return false;
}

static hipError_t pinned_free(void *address) {
    explore_point();
    for (unsigned i = 0; i < MOST_STREAMS; i++)
        explore_require(!model_reads(i, address), "pinned memory is freed that the device uses");
    explore_require(pinned_at(address)->alive, "pinned memory is freed twice");
    pinned_at(address)->alive = false;
    return hipSuccess;
}

unsigned char model_content(const void *address) {
    return (unsigned char)(100 + model_block(address));
}

static hipError_t copy(void *to, const void *from, size_t bytes, int kind, hipStream_t stream) {
    (void)bytes, (void)kind;
    explore_point();
    const unsigned number = need_stream(stream);
    struct transfer transfer = {number, ++world.streams[number].submitted, NULL, 0, false};
    if (pinned_at(from)) {
        transfer.place = (unsigned char *)(uintptr_t)from;
        transfer.value = world.value[model_self()];
    } else if (pinned_at(to)) {
        transfer.place = to;
        transfer.value = model_content(from);
        transfer.writes = true;
    } else if (model_self() < THREADS && (char *)to < memory[0]) {
        finish_works(number, transfer.work);
        *(unsigned char *)to = model_content(from);
    }
    for (unsigned i = 0; transfer.place && i < MOST_TRANSFERS; i++)
        if (!world.transfers[i].work) {
            world.transfers[i] = transfer;
            return hipSuccess;
        }
    explore_require(!transfer.place, "the explorer has room for no more copies");
    return hipSuccess;
}

/* HIP reports no attributes for pageable memory. */
static hipError_t attributes(hipPointerAttribute_t *attributes_of, const void *address) {
    (void)attributes_of, (void)address;
    return hipErrorInvalidValue;
}

/* ---- the rest ---- */

static hipError_t current_device(int *device) {
    *device = world.device[model_self()];
    return hipSuccess;
}

static hipError_t last_error(void) {
    return hipSuccess;
}

void model_lose_device(void) {
    finish_device();
    for (unsigned i = 0; i < MOST_STREAMS; i++)
        world.streams[i].alive = false;
    for (unsigned i = 0; i < MOST_EVENTS; i++)
        world.events[i].alive = world.events[i].recorded = false;
    world.watch.alive = false;
}

/* ---- begin ---- */

static void no_exit(void) {}

void model_start(unsigned streams, bool exclusive) {
    register_exit = limit_reached = other_code_allocates = no_exit;
    options.caches = ALL_CACHES;
    options.stats = options.trace = "";
    options.exclusive_on = exclusive;
    options.device_number = -1;
    options.stream_limit_count = 8;
    options.memory_limit_bytes = 1 << 20;
    options.module_limit_bytes = 1 << 20;
    limits_set();
    cache_limits.memory_bytes[0] = 1 << 20;
    hip_device_count = 1;
    hip = (struct hip_functions){
        .GetDevice = current_device,
        .StreamCreate = stream_create,
        .StreamDestroy = stream_destroy,
        .StreamSynchronize = stream_synchronize_,
        .StreamQuery = stream_query,
        .StreamGetFlags = stream_flags,
        .StreamGetCaptureInfo = stream_capture,
        .ModuleLaunchKernel = launch,
        .DeviceSynchronize = synchronize_device,
        .EventCreateWithFlags = event_create,
        .EventDestroy = event_destroy,
        .EventRecord = event_record,
        .EventQuery = event_query,
        .StreamWaitEvent = stream_wait_event,
        .EventSynchronize = event_synchronize,
        .ModuleLoadData = module_load,
        .ModuleUnload = module_unload,
        .ModuleGetFunction = module_function,
        .Malloc = memory_get,
        .MallocManaged = memory_get_managed,
        .MemGetInfo = memory_info,
        .HostMalloc = pinned_get,
        .HostFree = pinned_free,
        .MemcpyAsync = copy,
        .PointerGetAttributes = attributes,
        .Free = memory_free,
        .MemGetAddressRange = memory_range,
        .ExtMallocWithFlags = watched,
        .GetLastError = last_error,
    };
    for (unsigned i = 0; i < streams; i++)
        (void)impl_mgpuStreamCreate();
}
