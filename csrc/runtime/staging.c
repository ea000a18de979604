#include "staging.h"
#include "python.h"

#include <stdlib.h>
#include <string.h>

struct staging {
    int taken;           /* by a thread that copies just now */
    char *up, *down;     /* pinned; NULL: not asked for yet */
    bool no_up, no_down; /* asked for in vain */
    size_t used;         /* of `up`, since the stream last passed `mark` */
    uint64_t mark;
    hipEvent_t events[STAGING_PIECES];
};

/* The stream's, taken for the calling thread; NULL if another thread copies on this stream just
 * now, or without memory. */
static struct staging *take(struct stream *stream) {
    struct staging *staging = __atomic_load_n(&stream->staging, __ATOMIC_ACQUIRE);
    if (UNLIKELY(!staging)) {
        struct staging *fresh = calloc(1, sizeof *fresh);
        if (!fresh)
            return NULL;
        if (__atomic_compare_exchange_n(&stream->staging, &staging, fresh, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            staging = fresh;
        else
            free(fresh);
    }
    return __atomic_exchange_n(&staging->taken, 1, __ATOMIC_ACQUIRE) ? NULL : staging;
}

static void release(struct staging *staging) {
    __atomic_store_n(&staging->taken, 0, __ATOMIC_RELEASE);
}

/* Pinned memory, once; a failure is not the program's: its copies go HIP's way then. */
static bool have(char **memory, bool *failed, size_t bytes) {
    if (LIKELY(*memory))
        return true;
    if (*failed || hip.PeekAtLastError() != hipSuccess)
        return false;
    void *pinned = NULL;
    *failed = hip.HostMalloc(&pinned, bytes, hipHostMallocDefault) != hipSuccess;
    if (*failed)
        (void)hip.GetLastError();
    runtime_register_exit();
    *memory = pinned;
    return !*failed;
}

/* ---- to the device ---- */

static bool have_room(struct stream *stream, struct staging *staging, size_t bytes) {
    if (stream_has_passed(stream, staging->mark))
        staging->used = 0;
    if (bytes <= STAGING_UP - staging->used)
        return true;
    if (!stream_query(stream))
        return false;
    staging->used = 0;
    return true;
}

bool staging_up(struct stream *stream, void *device, const void *host, size_t bytes,
                hipError_t *error) {
    struct staging *staging = bytes <= STAGING_UP_LIMIT ? take(stream) : NULL;
    if (!staging)
        return false;
    const bool possible =
        have(&staging->up, &staging->no_up, STAGING_UP) && have_room(stream, staging, bytes);
    if (LIKELY(possible)) {
        char *pinned = staging->up + staging->used;
        memcpy(pinned, host, bytes);
        *error = hip.MemcpyAsync(device, pinned, bytes, hipMemcpyDefault,
                                 (hipStream_t)stream->handle.key);
        stream_submitted(stream);
        staging->mark = stream_next_mark(stream);
        staging->used += (bytes + 63) / 64 * 64;
        if (staging->used > STAGING_UP)
            staging->used = STAGING_UP;
    }
    release(staging);
    return possible;
}

/* ---- from the device ---- */

static bool have_events(struct staging *staging) {
    for (int i = 0; i < STAGING_PIECES; i++)
        if (!staging->events[i] &&
            hip.EventCreateWithFlags(&staging->events[i], hipEventDisableTiming) != hipSuccess) {
            staging->events[i] = NULL;
            return false;
        }
    return true;
}

/* A copy in pieces: while one is copied out of its pinned place, the next ones are on their way. */
struct pieces {
    struct stream *stream;
    struct staging *staging;
    char *host;
    const char *device;
    size_t bytes;
};

static size_t piece_bytes(const struct pieces *pieces, size_t at) {
    return pieces->bytes - at < STAGING_PIECE ? pieces->bytes - at : STAGING_PIECE;
}

static hipError_t submit(const struct pieces *pieces, size_t at) {
    const size_t slot = at / STAGING_PIECE % STAGING_PIECES;
    hipStream_t handle = (hipStream_t)pieces->stream->handle.key;
    const hipError_t error =
        hip.MemcpyAsync(pieces->staging->down + slot * STAGING_PIECE, pieces->device + at,
                        piece_bytes(pieces, at), hipMemcpyDefault, handle);
    return error == hipSuccess ? hip.EventRecord(pieces->staging->events[slot], handle) : error;
}

static hipError_t collect(const struct pieces *pieces, size_t at) {
    const size_t slot = at / STAGING_PIECE % STAGING_PIECES;
    const hipError_t error = hip.EventSynchronize(pieces->staging->events[slot]);
    if (error == hipSuccess)
        memcpy(pieces->host + at, pieces->staging->down + slot * STAGING_PIECE,
               piece_bytes(pieces, at));
    return error;
}

static hipError_t copy_pieces(const struct pieces *pieces) {
    hipError_t error = hipSuccess;
    size_t sent = 0;
    for (size_t at = 0; at < pieces->bytes && error == hipSuccess; at += STAGING_PIECE) {
        for (; sent < pieces->bytes && sent < at + STAGING_PIECES * (size_t)STAGING_PIECE &&
               error == hipSuccess;
             sent += STAGING_PIECE)
            error = submit(pieces, sent);
        if (error == hipSuccess)
            error = collect(pieces, at);
    }
    return error;
}

static hipError_t copy_at_once(struct thread *thread, const struct pieces *pieces) {
    hipError_t error = hip.MemcpyAsync(pieces->staging->down, pieces->device, pieces->bytes,
                                       hipMemcpyDefault, (hipStream_t)pieces->stream->handle.key);
    stream_submitted(pieces->stream);
    if (error == hipSuccess)
        error = stream_wait(thread, pieces->stream);
    if (error == hipSuccess)
        memcpy(pieces->host, pieces->staging->down, pieces->bytes);
    return error;
}

bool staging_down(struct thread *thread, struct stream *stream, void *host, const void *device,
                  size_t bytes, hipError_t *error) {
    struct staging *staging = bytes <= STAGING_DOWN_LIMIT ? take(stream) : NULL;
    if (!staging)
        return false;
    const struct pieces pieces = {stream, staging, host, device, bytes};
    const bool possible =
        have(&staging->down, &staging->no_down, STAGING_PIECES * (size_t)STAGING_PIECE) &&
        (bytes <= STAGING_PIECE || have_events(staging));
    if (LIKELY(possible && bytes <= STAGING_PIECE)) {
        *error = copy_at_once(thread, &pieces);
    } else if (possible) {
        *error = copy_pieces(&pieces);
        /* After an error pieces may be on their way into memory that is used again. */
        const hipError_t waited = stream_wait(thread, stream);
        *error = *error == hipSuccess ? waited : *error;
    }
    release(staging);
    return possible;
}

/* ---- the end ---- */

void staging_free(struct stream *stream) {
    struct staging *staging = stream->staging;
    if (!staging || __atomic_exchange_n(&staging->taken, 1, __ATOMIC_ACQUIRE))
        return;
    if (staging->up)
        (void)hip.HostFree(staging->up);
    if (staging->down)
        (void)hip.HostFree(staging->down);
    for (int i = 0; i < STAGING_PIECES; i++)
        if (staging->events[i])
            (void)hip.EventDestroy(staging->events[i]);
    *staging = (struct staging){.taken = 1};
    release(staging);
}
