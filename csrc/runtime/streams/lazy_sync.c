#include "streams/lazy_sync.h"
#include "driver/device.h"

bool lazy_pending;

/* Under tables_lock. `round` counts the postponed synchronises. A wait settles a postponed
 * synchronise only if `round` has not changed since the wait began. */
static struct stream *put_off;
static uint64_t round;

static int visible;          /* number of pieces of host memory to which kernels can write */
static bool possible = true; /* no kernel is unknown or prints, and the program holds one stream at
                              * a time */

/* Returns true if kernels can write to host memory that the library knows; says so once. */
static bool kernels_write_host_memory(void) {
    static bool said;
    if (LIKELY(!load_relaxed(&visible)))
        return false;
    if (!load_relaxed(&said) && !exchange_relaxed(&said, true))
        report_verbose("MGPU_RT_SYNC=lazy waits at each synchronise while kernels can write memory "
                       "of the host: registered memory, or memory of gpu.alloc host_shared");
    return true;
}

static bool is_observable(const struct stream *stream) {
    return stream_state(stream) != STREAM_LIVE || !load_relaxed(&possible) ||
           DOUBT(kernels_see_host_memory, kernels_write_host_memory()) || runtime_exiting() ||
           !exclusive_hip() || device_shares_memory(stream->device);
}

bool lazy_put_off(struct stream *stream) {
    const uint64_t submitted = load_acquire(&stream->submitted);
    if (is_observable(stream))
        return false;
    if (lazy_has_put_off(stream))
        return true;
    pthread_mutex_lock(&tables_lock);
    const bool done =
        PROOF(word_stands_for_a_postponed_wait, exclusive_hip()) && (!put_off || put_off == stream);
    if (done) {
        store_relaxed(&stream->put_off, submitted);
        put_off = stream;
        round++;
        store_release(&lazy_pending, true);
    }
    pthread_mutex_unlock(&tables_lock);
    return done;
}

void lazy_settle(const struct stream *same) {
    pthread_mutex_lock(&tables_lock);
    struct stream *stream = put_off;
    const uint64_t at = round;
    pthread_mutex_unlock(&tables_lock);
    if (!stream || stream == same)
        return;
    const hipError_t error = stream_is_idle(stream) ? hipSuccess : stream_wait(stream);
    pthread_mutex_lock(&tables_lock);
    if (put_off == stream && round == at) {
        put_off = NULL;
        store_release(&lazy_pending, false);
    }
    pthread_mutex_unlock(&tables_lock);
    if (error != hipSuccess)
        report_failure("hipStreamSynchronize(stream)", error, &stream_fault);
}

void lazy_visible(int change) {
    fetch_add_relaxed(&visible, change);
}

void lazy_end(void) {
    store_relaxed(&possible, false);
}

/* A program that holds several streams at once wants them to run concurrently. A postponed
 * synchronise would delay the work of the other streams, and would also wait for all later work. */
void lazy_note_stream(void) {
    if (LIKELY(!options.sync_lazy))
        return;
    for (const struct stream *stream = stream_first(); stream && load_relaxed(&possible);
         stream = stream_next(stream))
        if (stream_state(stream) == STREAM_LIVE || stream_state(stream) == STREAM_RETIRED) {
            report_verbose("the program holds several streams: from now on MGPU_RT_SYNC=lazy waits "
                           "at each synchronise");
            PROOF_STEP(streams_may_run_at_once, lazy_end());
        }
    lazy_settle(NULL);
}

void lazy_note_printing(void) {
    report_verbose("a kernel may print: from now on MGPU_RT_SYNC=lazy waits at each synchronise");
    lazy_end();
}
