/* The streams that nobody holds: who gets them next, and which of them leave. */
#ifndef MGPU_RT_STREAMS_POOL_H
#define MGPU_RT_STREAMS_POOL_H

#include "atomics.h"
#include "driver/cuda.h"
#include "driver/exclusive.h"
#include "mgpu.h"
#include "proof.h"
#include "shared/limits.h"
#include "shared/reset.h"
#include "shared/thread.h"
#include "streams/streams.h"

#include <pthread.h>

struct cache;

/* Guards the queues. May be taken under tables_lock. */
extern pthread_mutex_t stream_pool_lock;

/* Streams that HIP holds for the runtime. */
extern size_t stream_pool_total;

/* No more of them than may lie idle. */
static inline bool stream_pool_has_room(void) {
    return load_relaxed(&stream_pool_total) <= cache_limits.streams;
}

/* HIP has a stream back, or gets it now: nothing is known of its handle any more, whoever holds it.
 * A stream that the program made by HIP stays what it is. False for that, and if it was so
 * before. */
bool stream_pool_forget(struct stream *stream);

/* Takes an idle stream of a device for the program: now the thread's last one. NULL if there is
 * none. Asks HIP. */
struct stream *stream_pool_take(struct thread *thread, int device);

/* Enters a stream that HIP has just made for the program, the thread's last one now. Without memory
 * only HIP knows it. May wait for the device. */
void stream_pool_enter(struct thread *thread, hipStream_t handle, int device);

/* HIP's word is that it is at work, or gone: puts it back, or notes the reset. False. */
bool stream_pool_refuse(struct stream *stream, hipError_t error);

/* Asks HIP whether a stream that was just taken, and that the runtime knows to be idle, is idle:
 * others may have submitted to it. If not it is put back.
 *
 * NVIDIA's driver is not asked: its answer takes 1.6 of a launch's 9 µs. At stake is little: others
 * may leave work on a stream that they destroy without waiting. It comes before the next
 * owner's. */
static inline bool stream_pool_confirm(struct stream *stream) {
    if (exclusive_hip() || cuda_present())
        return true;
    const hipError_t error = PROOF_VALUE(others_left_no_work, stream_ask(stream), hipSuccess);
    return LIKELY(error == hipSuccess) || stream_pool_refuse(stream, error);
}

/* The hit of a create: the thread's last stream. The program does not hold it, it is idle, and the
 * thread has chosen no other one. */
static inline struct stream *stream_pool_take_own(struct thread *thread, int device) {
    struct stream *stream = thread->stream;
    if (UNLIKELY(!stream ||
                 !PROOF(own_stream_is_of_the_device, load_relaxed(&stream->device) == device) ||
                 thread->external))
        return NULL;
    if (LIKELY(exclusive_hip()))
        return LIKELY(stream_change(stream, STREAM_IDLE, STREAM_LIVE)) ? stream : NULL;
    return PROOF(reset_before_stream_reuse, device_kept(device)) &&
                   stream_change(stream, STREAM_IDLE, STREAM_LIVE) && stream_pool_confirm(stream)
               ? stream
               : NULL;
}

/* The hit of a destroy: this is the thread's last stream, held by the program and idle, and no more
 * exist than may lie idle. Then, IDLE, it stays the thread's. */
static inline bool stream_pool_keeps(const struct stream *stream, hipStream_t handle) {
    return stream && stream_handle(stream) == handle &&
           PROOF(kept_stream_is_idle, stream_is_idle(stream)) &&
           !DOUBT(kept_stream_is_external, load_relaxed(&stream->external_users)) &&
           stream_pool_has_room() &&
           PROOF(destroyed_stream_is_held, stream_state(stream) == STREAM_LIVE);
}

/* The program destroys it: it goes where the others find it, and as long as there are more than the
 * limit, HIP gets one back. False if the program does not hold it. */
bool stream_pool_release(struct stream *stream);

/* A thread keeps this stream (or NULL) no longer; if the program does not hold it, the others find
 * it. */
void stream_pool_leave(struct stream *stream);

/* True if a stream that the program does not hold is done with all work: a null stream never is
 * held. Asks HIP. */
bool stream_query_unheld(struct stream *stream);

/* True if no work is pending as far as can be told. HIP is asked about the streams that the program
 * does not hold. Those that it holds were idle at their last synchronise. */
bool stream_all_quiet(void);
/* From now on mgpuStreamCreate returns this stream of the program on the calling thread. False
 * without memory. */
bool stream_use_external(struct thread *thread, hipStream_t handle);
/* Ends that. */
void stream_end_external(struct thread *thread);

/* The process ends: destroys the streams that nobody holds and that HIP calls idle, also those that
 * the program destroyed with work pending. Then waits until HIP has let go of them, which takes as
 * long as the work that the null stream waits for. */
void stream_give_back_idle(void);

extern const struct cache stream_cache;

#endif
