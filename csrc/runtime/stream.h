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

/* struct stream's busy, when it is not the address of the thread that synchronises just now. */
enum {
    STREAM_IDLE,      /* all that was submitted is known to be done */
    STREAM_SUBMITTED, /* copies to the device, events: nothing that writes host memory */
    STREAM_LAUNCHED,  /* anything */
    STREAM_PUT_OFF,   /* the same; the program has synchronised since, but that was put off */
};

struct block_pool;
struct staging;

/* A cache line of its own: two threads on two streams share nothing. */
struct stream {
    struct handle handle;
    int device;
    int state;      /* enum stream_state; changed by compare-and-swap */
    uintptr_t busy; /* STREAM_IDLE ... STREAM_PUT_OFF */
    bool awaited;   /* somebody waits for a mark to be passed */
    uint64_t marks, passed;
    struct block_pool *pool; /* memory that was given back on it (block.h); NULL: none yet */
    struct staging *staging; /* pinned memory for its copies (staging.h); NULL: none yet */
} __attribute__((aligned(64)));

extern struct handle_map stream_map;

static inline int stream_state(const struct stream *stream) {
    return __atomic_load_n(&stream->state, __ATOMIC_ACQUIRE);
}

/* Held by the program, or its own. */
static inline bool stream_is_live(const struct stream *stream) {
    const int state = stream_state(stream);
    return LIKELY(state == STREAM_LIVE) || state == STREAM_BORROWED;
}

/* What the runtime knows of a stream, or NULL if it is none of its own. A hit of the thread's last
 * stream costs 3 instructions. */
static inline struct stream *stream_find(const struct thread *thread, hipStream_t handle) {
    struct stream *last = thread->stream;
    return LIKELY(last && last->handle.key == handle) ? last : handle_find(&stream_map, handle);
}

/* A synchronise was put off (lazy.h): before anything on another stream, it is made up for. */
extern bool stream_put_off;
void lazy_settle(const struct stream *same);

/* Says that a stream was given back before; always false. */
bool stream_report_dead(hipStream_t handle, const char *expression);

/* To be called before each submission: what the runtime knows of the stream goes to *stream, NULL
 * for the null stream and those of the program's own. False if it was destroyed: that is reported
 * as a failure of `expression`, and HIP, which would crash, is not to see it. */
static inline bool stream_usable(const struct thread *thread, hipStream_t handle,
                                 struct stream **stream, const char *expression) {
    *stream = handle ? stream_find(thread, handle) : NULL;
    if (UNLIKELY(__atomic_load_n(&stream_put_off, __ATOMIC_ACQUIRE)))
        lazy_settle(*stream);
    return LIKELY(!*stream || stream_is_live(*stream)) || stream_report_dead(handle, expression);
}

/* Work was submitted to the null stream or to streams of the program's own since the device was
 * last synchronised. */
extern bool stream_others_busy;

/* To be called after each launch. After, not before: a synchronise of another thread that comes in
 * between then leaves the stream marked busy, which costs a query and never a wrong reuse. */
static inline void stream_launched(struct stream *stream) {
    if (LIKELY(stream))
        __atomic_store_n(&stream->busy, STREAM_LAUNCHED, __ATOMIC_RELEASE);
    else if (!stream_others_busy)
        stream_others_busy = true;
}

/* To be called after each other submission; does not hide that there are kernels too. */
static inline void stream_submitted(struct stream *stream) {
    uintptr_t idle = STREAM_IDLE;
    if (!stream || (!__atomic_compare_exchange_n(&stream->busy, &idle, STREAM_SUBMITTED, false,
                                                 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
                    idle != STREAM_SUBMITTED))
        stream_launched(stream);
}

/* ---- marks: what of a stream's past is done ----
 *
 * A mark stands for all that was submitted before it was set. Freed memory waits for the stream's
 * next mark; each synchronise, event and query sets one, if anything waits, and once it is done the
 * mark is passed. Marks are passed in order. */

/* The mark that whatever is submitted by now will have been done at. */
static inline uint64_t stream_next_mark(struct stream *stream) {
    if (!stream->awaited)
        __atomic_store_n(&stream->awaited, true, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&stream->marks, __ATOMIC_SEQ_CST) + 1;
}

/* To be called before HIP is asked to wait. 0 if nothing waits for a mark. */
static inline uint64_t stream_set_mark(struct stream *stream) {
    return stream && __atomic_load_n(&stream->awaited, __ATOMIC_ACQUIRE)
               ? __atomic_add_fetch(&stream->marks, 1, __ATOMIC_SEQ_CST)
               : 0;
}

/* To be called once all before the mark is done. */
static inline void stream_pass(struct stream *stream, uint64_t mark) {
    uint64_t passed = mark ? __atomic_load_n(&stream->passed, __ATOMIC_RELAXED) : 0;
    while (passed < mark && !__atomic_compare_exchange_n(&stream->passed, &passed, mark, true,
                                                         __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
}

static inline bool stream_has_passed(const struct stream *stream, uint64_t mark) {
    return __atomic_load_n(&stream->passed, __ATOMIC_ACQUIRE) >= mark;
}

/* Waits as mgpuStreamSynchronize does; the expression is the one to report. */
void stream_synchronize(struct thread *thread, hipStream_t handle, const char *expression);

/* Waits for all that was submitted to a stream of the table. Returns HIP's answer. */
hipError_t stream_wait(struct thread *thread, struct stream *stream);

/* True if all work of a stream is done, as far as HIP can be asked without touching the thread's
 * last error. Passes a mark if so. The stream is the caller's, so that nobody destroys it. */
bool stream_query(struct stream *stream);

/* The same for any stream; false if the program holds it. */
bool stream_query_unheld(struct stream *stream);

/* Destroys a stream that stream_retire has taken out, and what belongs to it. The memory that was
 * given back on it stays in its pool, free for every stream. Returns HIP's answer. */
hipError_t stream_finish(struct stream *stream);

/* The advice for an error of earlier work that a wait has brought to light. */
extern struct advice stream_fault;

/* All streams ever, newest first. */
static inline struct stream *stream_first(void) {
    return handle_first(&stream_map);
}
static inline struct stream *stream_next(const struct stream *stream) {
    return (struct stream *)stream->handle.next;
}

/* True if a handle is a stream that the runtime handed out. */
static inline struct stream *stream_known(hipStream_t handle) {
    struct stream *stream = handle_find(&stream_map, handle);
    return stream && stream_state(stream) != STREAM_GONE ? stream : NULL;
}

/* True if one of the runtime's streams may have work pending. Asks no driver. */
bool stream_any_busy(void);

size_t stream_count_idle(void);

/* A thread ends: its last stream is for the others. */
void stream_give_back(struct thread *thread);

/* Takes an idle stream out of the table; the caller then destroys it. */
bool stream_retire(hipStream_t handle);

#endif
