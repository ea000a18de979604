#include "memory/staging.h"
#include "atomics.h"
#include "check.h"
#include "driver/device.h"
#include "driver/hip.h"
#include "likely.h"
#include "process/state.h"
#include "proof.h"
#include "shared/caches.h"

#include <string.h>

static struct staging all[STAGING_COUNT];
static uint64_t clock_now; /* counts the changes of owner */

static bool try_take_staging(struct staging *staging) {
    return PROOF(one_thread_copies_through_it, !exchange_acquire(&staging->taken, 1));
}

static void release_staging(struct staging *staging) {
    CHECK(staging->taken && staging->used <= STAGING_UP);
    PROOF_STEP(others_may_copy_through_it, store_release(&staging->taken, 0));
}

static struct stream *owner_of(const struct staging *staging) {
    return load_relaxed(&staging->owner);
}

/* Whether HIP has taken everything out of the owner's memory. Either its copies to the device are
 * done, or the owner is gone, which was waited for. */
static bool is_free(const struct staging *staging) {
    const struct stream *owner = owner_of(staging);
    return PROOF(pinned_memory_was_read,
                 !owner || !staging->used || stream_fence_done(owner, staging->fence));
}

/* The one that was not used for longest, of those whose copies are done, now this stream's and
 * taken; NULL if there is none. */
static struct staging *take_oldest(struct stream *stream) {
    struct staging *best = NULL;
    if (!device_kept(stream->device))
        return NULL;
    for (size_t i = 0; i < STAGING_COUNT; i++) {
        struct staging *staging = &all[i];
        if (!try_take_staging(staging))
            continue;
        if (!is_free(staging) || (best && best->last_use <= staging->last_use)) {
            release_staging(staging);
            continue;
        }
        if (best)
            release_staging(best);
        best = staging;
    }
    if (!best)
        return NULL;
    best->used = 0;
    fetch_add_relaxed(&clock_now, 1);
    store_relaxed(&best->owner, stream);
    store_release(&stream->staging, best);
    return best;
}

/* The stream's, taken for the calling thread; NULL if another thread copies on this stream just
 * now, or if all are at work for others. */
static struct staging *take_staging(struct stream *stream) {
    struct staging *staging = load_acquire(&stream->staging);
    const bool own = LIKELY(staging && owner_of(staging) == stream);
    if (own && !try_take_staging(staging))
        return NULL;
    if (own && UNLIKELY(owner_of(staging) != stream)) {
        release_staging(staging); /* another stream has taken it over */
        staging = NULL;
    }
    if (!own || !staging)
        staging = take_oldest(stream);
    if (staging)
        staging->last_use = load_relaxed(&clock_now);
    return staging;
}

/* Pinned memory, once; a failure is not the program's: its copies go HIP's way then. */
static bool have(char **memory, bool *failed, size_t bytes) {
    if (LIKELY(*memory))
        return true;
    if (*failed)
        return false;
    void *pinned = NULL;
    *failed = !device_answered(RETRY(hip.HostMalloc(&pinned, bytes, hipHostMallocDefault)));
    register_exit();
    *memory = pinned;
    return !*failed;
}

/* ---- to the device ---- */

static bool have_room(struct stream *stream, struct staging *staging, size_t bytes) {
    if (stream_fence_done(stream, staging->fence))
        staging->used = 0;
    if (PROOF(copy_fits_behind_the_others, bytes <= STAGING_UP - staging->used))
        return true;
    if (stream_ask(stream) != hipSuccess)
        return false;
    staging->used = 0;
    return true;
}

bool staging_up(const struct copy *copy, hipError_t *error) {
    struct stream *stream = copy->stream;
    const size_t bytes = copy->bytes;
    struct staging *staging = take_staging(stream);
    if (!staging)
        return false;
    const bool possible =
        have(&staging->up, &staging->no_up, STAGING_UP) && have_room(stream, staging, bytes);
    if (LIKELY(possible)) {
        char *pinned = staging->up + staging->used;
        memcpy(pinned, copy->from, bytes);
        *error = hip.MemcpyAsync(copy->to, pinned, bytes, hipMemcpyDefault, stream_handle(stream));
        stream_submitted(thread_get(), stream);
        staging->fence = stream_next_fence(stream);
        staging->used += (bytes + 63) / 64 * 64;
        if (staging->used > STAGING_UP)
            staging->used = STAGING_UP;
    }
    release_staging(staging);
    return possible;
}

/* ---- from the device ---- */

static void destroy_events(struct staging *staging) {
    for (int i = 0; i < STAGING_PIECES; i++) {
        if (staging->events[i])
            (void)hip.EventDestroy(staging->events[i]);
        staging->events[i] = NULL;
    }
}

/* An event is recorded on streams of the device on which it was made. */
static bool have_events(struct staging *staging, int device) {
    if (DOUBT(pinned_memory_served_another_device, staging->device != device))
        destroy_events(staging);
    staging->device = device;
    for (int i = 0; i < STAGING_PIECES; i++)
        if (!staging->events[i] &&
            hip.EventCreateWithFlags(&staging->events[i], hipEventDisableTiming) != hipSuccess) {
            staging->events[i] = NULL;
            return false;
        }
    return true;
}

static size_t piece_bytes(const struct copy *copy, size_t at) {
    return copy->bytes - at < STAGING_PIECE ? copy->bytes - at : STAGING_PIECE;
}

static hipError_t submit_piece(const struct copy *copy, struct staging *staging, size_t at) {
    const size_t slot = at / STAGING_PIECE % STAGING_PIECES;
    hipStream_t handle = stream_handle(copy->stream);
    const hipError_t error =
        hip.MemcpyAsync(staging->down + slot * STAGING_PIECE, (const char *)copy->from + at,
                        piece_bytes(copy, at), hipMemcpyDefault, handle);
    return error == hipSuccess ? hip.EventRecord(staging->events[slot], handle) : error;
}

static hipError_t collect_piece(const struct copy *copy, struct staging *staging, size_t at) {
    const size_t slot = at / STAGING_PIECE % STAGING_PIECES;
    const hipError_t error = hip.EventSynchronize(staging->events[slot]);
    if (error == hipSuccess)
        memcpy((char *)copy->to + at, staging->down + slot * STAGING_PIECE, piece_bytes(copy, at));
    return error;
}

/* While a piece is copied out of its pinned place, the next ones are on their way. */
static hipError_t copy_pieces(const struct copy *copy, struct staging *staging) {
    hipError_t error = hipSuccess;
    size_t sent = 0;
    for (size_t at = 0; at < copy->bytes && error == hipSuccess; at += STAGING_PIECE) {
        for (; sent < copy->bytes && sent < at + STAGING_PIECES * (size_t)STAGING_PIECE &&
               error == hipSuccess;
             sent += STAGING_PIECE)
            error = submit_piece(copy, staging, sent);
        if (error == hipSuccess)
            error = collect_piece(copy, staging, at);
    }
    /* After an error pieces may be on their way into memory that is used again. */
    const hipError_t waited = stream_wait(copy->stream);
    return error == hipSuccess ? waited : error;
}

static hipError_t copy_at_once(const struct copy *copy, struct staging *staging) {
    hipError_t error = hip.MemcpyAsync(staging->down, copy->from, copy->bytes, hipMemcpyDefault,
                                       stream_handle(copy->stream));
    stream_submitted(thread_get(), copy->stream);
    if (error == hipSuccess)
        error = PROOF_VALUE(copy_has_arrived, stream_wait(copy->stream), hipSuccess);
    if (error == hipSuccess)
        memcpy(copy->to, staging->down, copy->bytes);
    return error;
}

bool staging_down(const struct copy *copy, hipError_t *error) {
    struct staging *staging = take_staging(copy->stream);
    if (!staging)
        return false;
    const bool possible =
        have(&staging->down, &staging->no_down, STAGING_PIECES * (size_t)STAGING_PIECE) &&
        (copy->bytes <= STAGING_PIECE || have_events(staging, copy->stream->device));
    if (LIKELY(possible))
        *error =
            copy->bytes <= STAGING_PIECE ? copy_at_once(copy, staging) : copy_pieces(copy, staging);
    release_staging(staging);
    return possible;
}

/* ---- the end ---- */

/* Makes staging as new that the caller has taken. Others look at `taken` and `owner` only. */
static void reset_staging(struct staging *staging) {
    store_relaxed(&staging->owner, NULL);
    staging->up = staging->down = NULL;
    staging->no_up = staging->no_down = false;
    staging->used = 0;
    staging->fence = staging->last_use = 0;
    for (int event = 0; event < STAGING_PIECES; event++)
        staging->events[event] = NULL;
}

static void release_of_stream(struct stream *stream) {
    struct staging *staging = stream->staging;
    stream->staging = NULL;
    if (!staging || owner_of(staging) != stream || !try_take_staging(staging))
        return;
    if (owner_of(staging) == stream) {
        store_relaxed(&staging->owner, NULL);
        staging->used = 0;
    }
    release_staging(staging);
}

static int trim_staging(int device) {
    (void)device; /* one pool for all */
    for (size_t i = 0; i < STAGING_COUNT; i++) {
        struct staging *staging = &all[i];
        if (!try_take_staging(staging))
            continue;
        if (is_free(staging)) {
            if (staging->up)
                (void)hip.HostFree(staging->up);
            if (staging->down)
                (void)hip.HostFree(staging->down);
            destroy_events(staging);
            reset_staging(staging);
        }
        release_staging(staging);
    }
    return 0; /* no count of the caches' */
}

/* Nothing but pinned memory of ours can lie there: with several devices no reset takes it. */
static bool is_gone(void *pinned) {
    uint64_t number;
    return pinned && !device_memory_number(pinned, &number);
}

/* Drops what was of a device, from staging that the caller has taken. */
static void drop_device(struct staging *staging, int device) {
    const struct stream *owner = owner_of(staging);
    if (is_gone(staging->up))
        staging->up = NULL;
    if (is_gone(staging->down))
        staging->down = NULL;
    if (staging->device == device)
        for (int event = 0; event < STAGING_PIECES; event++)
            staging->events[event] = NULL;
    if (owner && owner->device == device) {
        store_relaxed(&staging->owner, NULL);
        staging->used = 0;
    }
}

static void invalidate_staging(int device) {
    for (size_t i = 0; i < STAGING_COUNT; i++) {
        if (!try_take_staging(&all[i]))
            continue;
        if (device == ALL_DEVICES || hip_device_count == 1)
            reset_staging(&all[i]);
        else
            drop_device(&all[i], device);
        release_staging(&all[i]);
    }
}

const struct cache staging_cache = {.name = "staging",
                                    .trim = trim_staging,
                                    .invalidate = invalidate_staging,
                                    .stream_ends = release_of_stream};
