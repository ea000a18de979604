/* Carries out the manager's requests. Python reaches the caches and HIP only through these
 * requests.
 *
 * Runs on the library's own thread. The code checks every value from the channel: each handle must
 * be in a table, and each number must lie within bounds. */
#include "manager/services.h"
#include "driver/hip.h"
#include "driver/report.h"
#include "memory/blocks.h"
#include "mgpu.h"
#include "modules/modules_limit.h"
#include "process/state.h"
#include "proof.h"
#include "shared/caches.h"
#include "streams/streams_pool.h"
#include "telemetry/channel.h"

#include <string.h>

static struct cached list[CHANNEL_ROOM]; /* only the entries of listed objects are written */

static const struct cache *cache_of(int kind) {
    static const struct cache *const of_kind[] = {
        [KIND_MODULE] = &module_cache, [KIND_STREAM] = &stream_cache, [KIND_BLOCK] = &block_cache};
    return kind >= 0 && kind < (int)(sizeof of_kind / sizeof *of_kind) ? of_kind[kind] : NULL;
}

static int64_t answer_list(struct channel *channel, int kind) {
    const struct cache *cache = cache_of(kind);
    const size_t count = cache ? cache->list(list, CHANNEL_ROOM) : 0;
    for (size_t i = 0; i < count && i < CHANNEL_ROOM; i++)
        channel->cached[i] = (struct channel_cached){.handle = (uintptr_t)list[i].handle,
                                                     .bytes = list[i].bytes,
                                                     .uses = list[i].uses,
                                                     .device = list[i].device,
                                                     .held = list[i].held};
    return (int64_t)count;
}

/* While the program captures in HIP's global mode, the release of an object breaks the capture. In
 * relaxed mode, this thread may release objects during a capture. */
static int64_t evict(int kind, uint64_t handle) {
    const struct cache *cache = cache_of(kind);
    int mode = hipStreamCaptureModeRelaxed;
    (void)hip.ThreadExchangeStreamCaptureMode(&mode);
    return cache ? cache->evict((void *)(uintptr_t)handle) : hipErrorInvalidValue;
}

static int64_t answer_limits(struct channel *channel) {
    channel->limits.module_bytes = cache_limits.module_bytes;
    channel->limits.streams = cache_limits.streams;
    for (int i = 0; i < MOST_DEVICES; i++)
        channel->limits.memory_bytes[i] = cache_limits.memory_bytes[i];
    return hipSuccess;
}

static int64_t set_limit(int kind, int device, uint64_t value) {
    if (kind == KIND_MODULE)
        cache_limits.module_bytes = value;
    else if (kind == KIND_STREAM)
        PROOF_STEP(policy_sets_the_limit, cache_limits.streams = value);
    else if (kind == KIND_BLOCK && device >= 0 && device < MOST_DEVICES && value > 0)
        cache_limits.memory_bytes[device] = value;
    else
        return hipErrorInvalidValue;
    return hipSuccess;
}

/* HIP keeps a current device for each thread, so hip.SetDevice here does not affect other threads.
 */
static int64_t ask_free_memory(struct channel *channel, int device) {
    size_t available = 0, total = 0;
    hipError_t error = hip.SetDevice(device);
    if (error == hipSuccess)
        error = hip.MemGetInfo(&available, &total);
    channel->memory.available = available;
    channel->memory.total = total;
    return error;
}

static int64_t say_text(struct channel *channel, bool always) {
    char text[CHANNEL_TEXT];
    memcpy(text, channel->text, sizeof text);
    text[sizeof text - 1] = '\0';
    if (always)
        report_line("%s", text);
    else
        report_verbose("%s", text);
    return hipSuccess;
}

void services_answer(struct channel *channel) {
    const int kind = channel->call.kind, device = channel->call.device;
    const uint64_t handle = channel->call.handle, value = channel->call.value;
    int64_t answer = hipErrorInvalidValue;
    switch (channel->call.request) {
    case REQUEST_LIST:
        answer = answer_list(channel, kind);
        break;
    case REQUEST_EVICT:
        answer = evict(kind, handle);
        break;
    case REQUEST_PIN:
        module_pin((void *)(uintptr_t)handle, value != 0);
        answer = hipSuccess;
        break;
    case REQUEST_LIMITS:
        answer = answer_limits(channel);
        break;
    case REQUEST_LIMIT:
        answer = set_limit(kind, device, value);
        break;
    case REQUEST_MEMORY:
        answer = ask_free_memory(channel, device);
        break;
    case REQUEST_SAY:
    case REQUEST_WARN:
        answer = say_text(channel, channel->call.request == REQUEST_WARN);
        break;
    }
    channel->call.answer = answer;
}
