/* The streams that mgpuStreamCreate handed out.
 *
 * One shared stream serves while one is live; a program that holds several at once gets more. A
 * stream comes back only idle, so that no work waits behind work of somebody else. */
#ifndef MGPU_RT_STREAM_H
#define MGPU_RT_STREAM_H

#include "handles.h"
#include "thread.h"

enum stream_state {
    STREAM_FREE,     /* idle, to be handed out */
    STREAM_LIVE,     /* held by the program */
    STREAM_RETIRED,  /* the program is done with it, but it has work pending */
    STREAM_GONE,     /* HIP has destroyed it */
    STREAM_BORROWED, /* the program's own, by mgpu_rt_use_stream */
};

/* A cache line of its own: two threads on two streams share nothing. */
struct stream {
    struct handle handle;
    int device;
    int state; /* enum stream_state; changed by compare-and-swap */
    int busy;  /* something was submitted since the last synchronise */
} __attribute__((aligned(64)));

extern struct handle_map stream_map;

/* What the runtime knows of a stream, or NULL if it is none of its own. A hit of the thread's last
 * stream costs 3 instructions. */
static inline struct stream *stream_find(const struct thread *thread, hipStream_t handle) {
    struct stream *last = thread->stream;
    return LIKELY(last && last->handle.key == handle) ? last : handle_find(&stream_map, handle);
}

/* Says that a stream was given back before; always false. */
bool stream_report_dead(hipStream_t handle, const char *expression);

/* To be called before each submission: what the runtime knows of the stream goes to *stream, NULL
 * for the null stream and those of the program's own. False if it was destroyed: that is reported
 * as a failure of `expression`, and HIP, which would crash, is not to see it. */
static inline bool stream_usable(const struct thread *thread, hipStream_t handle,
                                 struct stream **stream, const char *expression) {
    *stream = handle ? stream_find(thread, handle) : NULL;
    return LIKELY(!*stream || (*stream)->state == STREAM_LIVE ||
                  (*stream)->state == STREAM_BORROWED) ||
           stream_report_dead(handle, expression);
}

/* To be called after each submission. After, not before: a synchronise of another thread that comes
 * in between then leaves the stream marked busy, which costs a query and never a wrong reuse. */
static inline void stream_submitted(struct stream *stream) {
    if (stream)
        __atomic_store_n(&stream->busy, 1, __ATOMIC_RELEASE);
}

/* Waits as mgpuStreamSynchronize does; the expression is the one to report. */
void stream_synchronize(struct thread *thread, hipStream_t handle, const char *expression);

/* True if a handle is a stream that the runtime handed out. */
static inline struct stream *stream_known(hipStream_t handle) {
    struct stream *stream = handle_find(&stream_map, handle);
    return stream && stream->state != STREAM_GONE ? stream : NULL;
}

/* True if one of the runtime's streams may have work pending. Asks no driver. */
bool stream_any_busy(void);

size_t stream_count_idle(void);

/* Takes an idle stream out of the table; the caller then destroys it. */
bool stream_retire(hipStream_t handle);

#endif
