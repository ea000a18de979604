#include "streams/streams.h"
#include "driver/device.h"

struct handle_map stream_map = HANDLE_MAP(struct stream);
struct stream *streams_listed;
struct stream stream_null[MOST_DEVICES], stream_untracked[MOST_DEVICES];

struct advice stream_fault = {
    .text = "this call returns an error of earlier work: a kernel or a copy on this device has "
            "failed"};

/* ---- the list of streams that may be at work ---- */

uint64_t stream_list(struct stream *stream, uint64_t kernel) {
    const uint64_t bits = STREAM_LISTED | kernel;
    pthread_mutex_lock(&tables_lock);
    if (!(load_relaxed(&stream->submitted) & STREAM_LISTED)) {
        store_release(&stream->next_listed, streams_listed);
        PROOF_STEP(stream_at_work_is_listed, store_release(&streams_listed, stream));
    }
    const uint64_t last = fetch_or_release(&stream->submitted, bits) | bits;
    pthread_mutex_unlock(&tables_lock);
    return last;
}

/* Takes a stream out of the list, unless the stream has pending work, or another thread submits
 * work at this moment. The stream's next submission finds no STREAM_LISTED, and lists the stream
 * again. Under tables_lock. */
static bool may_leave_list(struct stream *stream) {
    uint64_t last = load_acquire(&stream->submitted);
    const uint64_t unlisted = (last | STREAM_KERNEL | STREAM_LISTED) + 1;
    const bool idle = PROOF(unlisted_stream_is_idle, load_acquire(&stream->completed) == last);
    if (!idle && (!stream_is_gone(stream) ||
                  DOUBT(blocks_wait_for_a_stream_that_is_gone, stream_has_blocks(stream))))
        return false;
    if (!cas_acq_rel(&stream->submitted, &last, unlisted))
        return false;
    if (idle)
        stream_complete(stream, unlisted);
    return true;
}

void stream_sweep_list(void) {
    pthread_mutex_lock(&tables_lock);
    struct stream **link = &streams_listed;
    while (*link) {
        struct stream *each = *link;
        if (may_leave_list(each))
            store_release(link, each->next_listed);
        else
            link = &each->next_listed;
    }
    pthread_mutex_unlock(&tables_lock);
}

/* Under tables_lock. */
static void begin_life(struct stream *stream, int device, int state) {
    if (stream_first() != stream || stream_next(stream))
        PROOF_STEP(frees_mind_other_streams,
                   fetch_or_relaxed(&care_of_frees, CARE_SEVERAL_STREAMS));
    store_relaxed(&stream->asked, 0);
    if (DOUBT(handle_moved_to_another_device, load_relaxed(&stream->device) != device))
        store_release(&stream->pool, NULL); /* whose blocks are of the earlier device */
    store_relaxed(&stream->device, device);
    PROOF_STEP(joins_end_with_their_stream,
               store_release(&stream->born, load_acquire(&stream->submitted)));
    stream->mark = NULL; /* HIP has destroyed the event of the handle's earlier stream, or the
                          * event is leaked */
    stream->marked = 0;
    store_release(&stream->state, state);
}

/* ---- null streams and untracked work ---- */

/* Begins the use of an entry that is never gone again. */
static void begin_for_good(struct stream *stream, int device) {
    fetch_or_relaxed(&care_of_frees, CARE_SEVERAL_STREAMS);
    store_relaxed(&stream->device, device);
    store_release(&stream->state, STREAM_EXTERNAL);
}

__attribute__((noinline)) struct stream *stream_of_null(void) {
    const int device = hip_current_device();
    if (device >= MOST_DEVICES)
        return NULL;
    if (UNLIKELY(stream_is_gone(&stream_null[device])))
        begin_for_good(&stream_null[device], device);
    return &stream_null[device];
}

__attribute__((noinline)) void stream_note_kernel(struct stream *stream) {
    uint64_t last = load_acquire(&stream->submitted);
    while (last & STREAM_LISTED)
        if (cas_acq_rel_acquire(&stream->submitted, &last, last | STREAM_KERNEL))
            return;
    (void)stream_list(stream, STREAM_KERNEL);
}

__attribute__((noinline)) void stream_note_untracked(int device) {
    for (int each = 0; each < hip_device_count && each < MOST_DEVICES; each++) {
        struct stream *work = &stream_untracked[each];
        if (!of_device(PROOF_VALUE(untracked_device_is_unknown, device, hip_current_device()),
                       each))
            continue;
        if (UNLIKELY(stream_is_gone(work)))
            begin_for_good(work, each);
        stream_add_kernel(work);
    }
}

/* ---- entering ---- */

struct stream *stream_insert(hipStream_t handle, int device) {
    struct stream *stream = handle_insert(&stream_map, handle);
    if (!stream)
        return NULL;
    pthread_mutex_lock(&tables_lock);
    const bool in_hand = DOUBT(handle_is_in_hand, stream_state(stream) == STREAM_TAKEN);
    if (!in_hand)
        begin_life(stream, device, PROOF_VALUE(new_stream_is_held, STREAM_LIVE, STREAM_IDLE));
    pthread_mutex_unlock(&tables_lock);
    return in_hand ? NULL : stream;
}

/* ---- external streams ---- */

/* Counts the threads that use an external stream. Under tables_lock. */
static void count_external(int change) {
    static int users;
    users += change;
    if (users)
        fetch_or_release(&runtime_mode, MODE_EXTERNAL);
    else
        fetch_and_release(&runtime_mode, ~(unsigned)MODE_EXTERNAL);
}

bool stream_use_external(struct thread *thread, hipStream_t handle) {
    struct stream *stream = thread_is_none(thread) ? NULL : handle_insert(&stream_map, handle);
    const int device = hip_current_device();
    if (!stream)
        return false;
    /* One lock covers the change of the stream's state and the count of the stream's users. Without
     * the lock, another thread could end its use of the stream between the change and the count.
     */
    PROOF_STEP(external_stream_is_entered_and_counted_at_once, pthread_mutex_lock(&tables_lock));
    if (stream_state(stream) == STREAM_GONE)
        begin_life(stream, device,
                   PROOF_VALUE(external_stream_is_the_callers, STREAM_EXTERNAL, STREAM_LIVE));
    store_relaxed(&stream->external_users, stream->external_users + 1);
    count_external(1);
    PROOF_STEP(external_stream_is_entered_and_counted_at_once, pthread_mutex_unlock(&tables_lock));
    thread->external = stream;
    return true;
}

void stream_end_external(struct thread *thread) {
    struct stream *stream = thread->external;
    if (!stream)
        return;
    thread->external = NULL;
    pthread_mutex_lock(&tables_lock);
    CHECK(stream->external_users > 0);
    store_relaxed(&stream->external_users, stream->external_users - 1);
    count_external(-1);
    /* The program may destroy the stream from now on. */
    if (!stream->external_users && stream_state(stream) == STREAM_EXTERNAL) {
        if (!stream_is_idle(stream)) /* blocks that are freed now still wait for this stream */
            PROOF_STEP(returned_stream_is_waited_for, store_release(&stream->has_blocks, true));
        PROOF_STEP(returned_stream_is_unknown, store_release(&stream->state, STREAM_GONE));
    }
    pthread_mutex_unlock(&tables_lock);
}

/* ---- asking HIP, and waiting ---- */

/* HIP 7's hipStreamGetFlags accepts any address, but its hipStreamGetDevice fails for an address
 * that is no stream. */
bool stream_ask_flags(const struct hip_functions *functions, hipStream_t handle, unsigned *flags) {
    int device;
    hipError_t error = hipSuccess;
    if (hip_version >= HIP_7)
        PROOF_STEP(hip_7_looks_the_stream_up, error = functions->StreamGetDevice(handle, &device));
    if (error == hipSuccess)
        error = functions->StreamGetFlags(handle, flags);
    return device_answered(error);
}

/* Returns whether the stream under the handle is of the device that the library knows. HIP 5.2.3
 * cannot tell (docs/stock.md). */
static bool is_on_its_device(const struct stream *stream) {
    int device = 0;
    return hip_device_count == 1 || hip.StreamGetDevice == hip_missing.StreamGetDevice ||
           (device_answered(hip.StreamGetDevice(stream_handle(stream), &device)) &&
            device == load_relaxed(&stream->device));
}

__attribute__((noinline)) bool stream_is_ours(const struct stream *stream) {
    unsigned flags = 0;
    return PROOF(nobody_has_made_streams, sole_user_of_hip()) ||
           (stream_ask_flags(&hip, stream_handle(stream), &flags) && flags == 0 &&
            PROOF(stream_is_on_its_device, is_on_its_device(stream)));
}

bool stream_may_be_captured(hipStream_t handle) {
    int status = hipStreamCaptureStatusNone;
    unsigned long long number;
    const hipError_t error = hip.StreamGetCaptureInfo(handle, &status, &number);
    return !(device_answered(error) || error == hipErrorNotSupported) ||
           status != hipStreamCaptureStatusNone;
}

struct stream *stream_known(hipStream_t handle) {
    struct stream *stream = handle_find(&stream_map, handle);
    return stream && !stream_is_gone(stream) ? stream : NULL;
}

bool stream_is_here(hipStream_t handle) {
    unsigned flags;
    return stream_known(handle) &&
           PROOF(hip_has_the_stream, exclusive_hip() || stream_ask_flags(&hip, handle, &flags));
}

hipError_t stream_ask(struct stream *stream) {
    const uint64_t number = stream_begin_wait(stream);
    const hipError_t error = hip.StreamQuery(stream_handle(stream));
    if (device_answered(error))
        stream_complete(stream, number);
    else if (error == hipErrorNotReady && stream_is_idle(stream))
        stream_launched(stream);
    return error;
}

hipError_t stream_wait(struct stream *stream) {
    const uint64_t number = stream_begin_wait(stream);
    const hipError_t error = hip.StreamSynchronize(stream_handle(stream));
    if (LIKELY(error == hipSuccess))
        stream_complete(stream, number);
    else
        stream_launched(stream);
    return error;
}

static bool any_at_work(void) {
    for (const struct stream *stream = stream_first_listed(); stream;
         stream = stream_next_listed(stream))
        if (stream_is_at_work(stream))
            return true;
    return false;
}

void stream_visit(int device, void (*visit)(struct stream *stream)) {
    for (struct stream *stream = stream_first(); stream; stream = stream_next(stream))
        if (of_device(device, load_relaxed(&stream->device)))
            visit(stream);
    for (int each = 0; each < hip_device_count && each < MOST_DEVICES; each++)
        if (of_device(device, each)) {
            visit(&stream_null[each]);
            visit(&stream_untracked[each]);
        }
}

/* If the stream may be of another device, the wait completes none of its numbers. */
static void begin_device_wait(struct stream *stream) {
    const uint64_t number = stream_begin_wait(stream);
    const bool is_waited_for = PROOF(awaited_stream_is_of_the_device, stream_keeps_device(stream));
    store_relaxed(&stream->asked, is_waited_for ? number : 0);
}

static void end_device_wait(struct stream *stream) {
    PROOF_STEP(wait_for_the_device_completes_streams,
               stream_complete(stream, load_relaxed(&stream->asked)));
}

/* Each thread that calls this function waits for the device. Only one thread at a time notes the
 * submitted work of the device's streams before the wait. After the wait, the thread marks that
 * work as completed. */
hipError_t stream_wait_for_device(int device) {
    static bool noting;
    if (exclusive_hip() && !any_at_work())
        return hipSuccess;
    const int current = hip_current_device();
    hipError_t error = current != device ? hip.SetDevice(device) : hipSuccess;
    const bool notes = !exchange_acquire(&noting, true);
    if (notes)
        stream_visit(device, begin_device_wait);
    if (error == hipSuccess)
        error = hip.DeviceSynchronize();
    if (notes && error == hipSuccess)
        stream_visit(device, end_device_wait);
    if (notes)
        store_release(&noting, false);
    if (current != device)
        (void)hip.SetDevice(current);
    return error;
}
