#include "memory/staging.h"
#include "driver/device.h"

#include <string.h>

static struct staging all[STAGING_COUNT];

static bool try_take_staging(struct staging *staging) {
    return PROOF(one_thread_copies_through_it, !exchange_acquire(&staging->taken, 1));
}

static void release_staging(struct staging *staging) {
    CHECK(staging->taken && staging->used <= STAGING_BYTES);
    PROOF_STEP(others_may_copy_through_it, store_release(&staging->taken, 0));
}

static struct stream *owner_of(const struct staging *staging) {
    return load_relaxed(&staging->owner);
}

/* Returns true if HIP has read all data in this pinned memory. The owner's copies to the device are
 * then done, or the memory has no owner. The library removes a destroyed stream as owner, after a
 * wait for the stream's work. */
static bool is_free(const struct staging *staging) {
    const struct stream *owner = owner_of(staging);
    return PROOF(pinned_memory_was_read,
                 !owner || !staging->used || stream_fence_done(owner, staging->fence));
}

/* Takes pinned memory whose copies are done. `stream` becomes the owner of this memory. Returns
 * NULL if all pinned memory has pending copies. Each search begins where the last one ended,
 * so that an owner keeps its memory for a while. */
static struct staging *take_free(struct stream *stream) {
    static unsigned turn;
    if (!device_kept(stream->device) || !device_has_caches(stream->device))
        return NULL;
    for (unsigned looked = 0; looked < STAGING_COUNT; looked++) {
        struct staging *staging = &all[fetch_add_relaxed(&turn, 1) % STAGING_COUNT];
        if (!try_take_staging(staging))
            continue;
        if (is_free(staging)) {
            staging->used = 0;
            store_relaxed(&staging->owner, stream);
            store_release(&stream->staging, staging);
            return staging;
        }
        release_staging(staging);
    }
    return NULL;
}

/* Takes the stream's pinned memory for the calling thread. Returns NULL if another thread is
 * copying on this stream, or if all pinned memory is in use. */
static struct staging *take_staging(struct stream *stream) {
    struct staging *staging = load_acquire(&stream->staging);
    const bool own = LIKELY(staging && owner_of(staging) == stream);
    if (own && !try_take_staging(staging))
        return NULL;
    if (own && UNLIKELY(owner_of(staging) != stream)) {
        release_staging(staging); /* another stream now owns the memory */
        staging = NULL;
    }
    return own && staging ? staging : take_free(stream);
}

/* Returns true if the memory is allocated. The first call allocates it. If this allocation fails,
 * all later calls return false, and HIP makes the program's copies. */
static bool have_memory(struct staging *staging) {
    void *pinned = NULL;
    if (LIKELY(staging->memory))
        return true;
    if (staging->is_refused)
        return false;
    staging->is_refused =
        !device_answered(RETRY(hip.HostMalloc(&pinned, STAGING_BYTES, hipHostMallocDefault)));
    register_exit();
    staging->memory = pinned;
    return !staging->is_refused;
}

static bool have_room(struct stream *stream, struct staging *staging, size_t bytes) {
    if (stream_fence_done(stream, staging->fence))
        staging->used = 0;
    if (PROOF(copy_fits_behind_the_others, bytes <= STAGING_BYTES - staging->used))
        return true;
    if (stream_ask(stream) != hipSuccess)
        return false;
    staging->used = 0;
    return true;
}

/* ---- copying ---- */

/* Calls HIP to copy to or from the first unused bytes. */
static inline __attribute__((always_inline)) hipError_t submit(const struct copy *copy,
                                                               struct staging *staging, void *to,
                                                               const void *from) {
    struct stream *stream = copy->stream;
    const hipError_t error =
        hip.MemcpyAsync(to, from, copy->bytes, hipMemcpyDefault, stream_handle(stream));
    stream_submitted(stream);
    staging->fence = load_acquire(&stream->submitted);
    staging->used += (copy->bytes + 63) / 64 * 64;
    if (staging->used > STAGING_BYTES)
        staging->used = STAGING_BYTES;
    return error;
}

bool staging_up(const struct copy *copy, hipError_t *error) {
    struct staging *staging = take_staging(copy->stream);
    if (!staging)
        return false;
    const bool possible = have_memory(staging) && have_room(copy->stream, staging, copy->bytes);
    if (LIKELY(possible)) {
        char *pinned = staging->memory + staging->used;
        memcpy(pinned, copy->from, copy->bytes);
        *error = submit(copy, staging, copy->to, pinned);
    }
    release_staging(staging);
    return possible;
}

bool staging_down(const struct copy *copy, hipError_t *error) {
    struct staging *staging = take_staging(copy->stream);
    if (!staging)
        return false;
    const bool possible = have_memory(staging) && have_room(copy->stream, staging, copy->bytes);
    if (LIKELY(possible)) {
        char *pinned = staging->memory + staging->used;
        *error = submit(copy, staging, pinned, copy->from);
        if (*error == hipSuccess)
            *error = PROOF_VALUE(copy_has_arrived, stream_wait(copy->stream), hipSuccess);
        if (*error == hipSuccess)
            memcpy(copy->to, pinned, copy->bytes);
    }
    release_staging(staging);
    return possible;
}

/* ---- the end ---- */

static void drop_owner(struct staging *staging) {
    store_relaxed(&staging->owner, NULL);
    staging->used = 0;
}

static void drop_memory(struct staging *staging) {
    drop_owner(staging);
    staging->memory = NULL;
    staging->is_refused = false;
}

static void release_of_stream(struct stream *stream) {
    struct staging *staging = stream->staging;
    stream->staging = NULL;
    if (!staging || owner_of(staging) != stream || !try_take_staging(staging))
        return;
    if (owner_of(staging) == stream)
        drop_owner(staging);
    release_staging(staging);
}

static int trim_staging(int device) {
    (void)device; /* one pool serves all devices */
    for (struct staging *staging = all; staging < all + STAGING_COUNT; staging++) {
        if (!try_take_staging(staging))
            continue;
        if (is_free(staging)) {
            if (staging->memory)
                (void)hip.HostFree(staging->memory);
            drop_memory(staging);
        }
        release_staging(staging);
    }
    return 0; /* the caches do not count pinned memory */
}

/* Returns true if HIP has no memory at this address. After the reset of one of several devices,
 * pinned memory that HIP still has at this address belongs to this library. */
static bool is_gone(void *pinned) {
    uint64_t number;
    return !pinned || !device_memory_number(pinned, &number);
}

/* One pool serves all devices. After the reset of one of several devices the library keeps the
 * pinned memory that HIP has kept. */
static void invalidate_staging(int device) {
    const bool everything = device == ALL_DEVICES || hip_device_count == 1;
    for (struct staging *staging = all; staging < all + STAGING_COUNT; staging++) {
        if (!try_take_staging(staging))
            continue;
        const struct stream *owner = owner_of(staging);
        if (everything || is_gone(staging->memory))
            drop_memory(staging);
        else if (owner && owner->device == device)
            drop_owner(staging);
        release_staging(staging);
    }
}

const struct cache staging_cache = {.trim = trim_staging,
                                    .holds_host_memory = true,
                                    .invalidate = invalidate_staging,
                                    .stream_ends = release_of_stream};
