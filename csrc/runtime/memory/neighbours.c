/* Returns idle device memory to HIP, so that others can allocate it. */
#include "memory/neighbours.h"
#include "driver/device.h"
#include "memory/blocks.h"
#include "process/meeting.h"
#include "process/own_thread.h"
#include "streams/streams_pool.h"

#include <unistd.h>

enum {
    TICK = 250,    /* ms between two looks at the idle memory */
    TICKS = 5,     /* looks until a block counts as unused for a second */
    ASKING = 2000, /* ms: the longest wait for other processes */
    LOCK_HELD = 5, /* ms: other threads hold tables_lock for less */
    TRYING = 500,  /* ms: the longest time for which the thread tries to answer */
};

/* ---- where processes meet ---- */

/* A process with idle memory on a device locks the byte whose number is the device's place. A
 * process that asks for memory locks the byte of the place plus ASKS. */
enum { ASKS = 1 << 30 };

/* ---- asking ---- */

static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

/* Asks the other processes on the device for memory after HIP had none, and waits until all have
 * answered. Returns false if none has much idle memory: HIP then keeps the allocation's error. */
static bool ask_neighbours(int device) {
    pthread_mutex_lock(&asking);
    const bool open = meeting_open(false) && meeting_others_lock(0, 0);
    const off_t place = open ? device_place(device) : 0;
    const bool has_neighbours = place && meeting_others_lock(place, 1);
    if (has_neighbours) {
        const uint64_t end = clock_ns() + UINT64_C(1000000) * ASKING;
        meeting_lock(place + ASKS, true);
        meeting_ring();
        while (meeting_others_lock(place, 1) && clock_ns() < end)
            usleep(200);
        meeting_lock(place + ASKS, false);
    }
    pthread_mutex_unlock(&asking);
    return has_neighbours;
}

/* ---- returning memory ---- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held while the thread calls HIP */
static bool stopping, started;    /* written under `gate`; a start that failed counts, too */
static bool wanted[MOST_DEVICES]; /* another process waits for this device's idle memory */

static bool is_idle_before(const struct block *block, uint64_t before) {
    return load_acquire(&block->state) == BLOCK_IDLE && load_relaxed(&block->last_use) < before;
}

/* Returns the bytes of a device's idle blocks. *old says whether the program freed one of them
 * before a value of block_clock. Visits all blocks, unless none is idle. */
static size_t count_idle(int device, uint64_t before, bool *old) {
    size_t bytes = 0;
    *old = false;
    const struct block *block = block_pool_may_be_idle(device) ? block_first() : NULL;
    for (; block; block = handle_next(block))
        if (block_device(block) == device && is_idle_before(block, UINT64_MAX)) {
            bytes += block_size(block);
            *old |= is_idle_before(block, before);
        }
    return bytes;
}

/* Work on an external stream counts until the program waits for it through the library. */
static bool no_stream_has_work(void) {
    for (const struct stream *stream = stream_first_listed(); stream;
         stream = stream_next_listed(stream))
        if (!PROOF(external_stream_is_idle,
                   stream_state(stream) != STREAM_EXTERNAL || stream_is_idle(stream)))
            return false;
    return stream_all_quiet();
}

/* Returns the device's blocks that the program freed before this value of block_clock. Returns
 * false if a stream has work, or the process ends: hipFree would wait for the work, and would hold
 * a lock of HIP. For this reason each block is returned on its own. */
static bool return_blocks(int device, uint64_t before) {
    bool may = true;
    for (struct block *block = block_first(); block && may; block = handle_next(block)) {
        if (block_device(block) != device || !is_idle_before(block, before))
            continue;
        pthread_mutex_lock(&gate);
        may = !stopping && no_stream_has_work();
        if (may)
            (void)block_cache.evict(block_address(block));
        pthread_mutex_unlock(&gate);
    }
    return may;
}

/* Answers another process. If streams have work, tries again for half a second: a free of the
 * program may return the memory earlier. */
static void answer_request(int device) {
    const uint64_t end = clock_ns() + UINT64_C(1000000) * TRYING;
    store_release(&wanted[device], true);
    fetch_or_relaxed(&care_of_frees, CARE_WANTED);
    while (load_acquire(&wanted[device]) && !return_blocks(device, UINT64_MAX) &&
           !load_acquire(&stopping) && clock_ns() < end)
        usleep(1000);
    fetch_and_release(&care_of_frees, ~(unsigned)CARE_WANTED);
    store_release(&wanted[device], false);
}

/* ---- the thread ---- */

struct look {
    uint64_t ticks[TICKS], last; /* values of block_clock at the last looks, the oldest at `last` */
    uint64_t at;                 /* the time of the last look */
};

/* Advances block_clock, which then shows since when a block has been idle. Returns the clock of a
 * second ago; 0 if it is unknown, or was returned before. */
static uint64_t advance_clock(struct look *look) {
    const uint64_t now = clock_ns(), second_ago = look->ticks[look->last];
    if (now - look->at < UINT64_C(1000000) * TICK)
        return 0;
    look->at = now;
    look->ticks[look->last] = fetch_add_relaxed(&block_clock, 1);
    look->last = (look->last + 1) % TICKS;
    return second_ago;
}

/* Offers the device's idle memory to other processes if it is much, and returns what the program
 * has not used for a second. Between an answer and the next look the device's byte is not locked,
 * which tells the asking process that this process has answered. */
static void look_at(int device, uint64_t second_ago) {
    bool old;
    const size_t idle = count_idle(device, second_ago, &old);
    const bool much = idle >= MUCH_MEMORY;
    if (!idle)
        block_pool_remove_held(device); /* the next looks visit no block until the program frees */
    pthread_mutex_lock(&gate);
    const off_t place = stopping ? 0 : device_place(device);
    pthread_mutex_unlock(&gate);
    const bool asked = much && place && meeting_others_lock(place + ASKS, 1);
    if (asked)
        answer_request(device);
    else if (old)
        (void)return_blocks(device, second_ago);
    if (place)
        meeting_lock(place, much && !asked);
}

static void look_at_all(struct look *look) {
    const uint64_t second_ago = advance_clock(look);
    for (int device = 0; device < hip_device_count && device < MOST_DEVICES; device++)
        look_at(device, second_ago);
}

static void *watch_idle_memory(void *unused) {
    struct look look = {.last = 0};
    int mode = hipStreamCaptureModeRelaxed;
    (void)unused;
    pthread_setname_np(pthread_self(), "mgpu_rt idle");
    pthread_mutex_lock(&gate);
    if (!stopping)
        PROOF_STEP(thread_ends_no_capture, (void)hip.ThreadExchangeStreamCaptureMode(&mode));
    pthread_mutex_unlock(&gate);
    while (!load_acquire(&stopping)) {
        const uint32_t heard = meeting_heard();
        look_at_all(&look);
        if (main_thread_has_ended())
            store_release(&stopping, true);
        else if (!load_acquire(&stopping))
            meeting_wait(heard, TICK);
    }
    return NULL;
}

static void start_thread(void) {
    if (runtime_forked || load_acquire(&started) || load_acquire(&stopping))
        return;
    if (pthread_mutex_trylock(&asking) == 0) { /* otherwise another thread waits for an answer */
        (void)meeting_open(true);
        pthread_mutex_unlock(&asking);
    }
    pthread_mutex_lock(&gate);
    if (!started && !stopping) {
        (void)own_thread_start(NULL, watch_idle_memory, NULL);
        store_release(&started, true);
    }
    pthread_mutex_unlock(&gate);
}

/* ---- frees ---- */

/* With stock, hipFree waits here for all work of the device. So a free may return memory that
 * another process waits for, even if hipFree has to wait for work. */
static void note_free(int device) {
    if (exchange_acq_rel(&wanted[device], false) && device_kept(device))
        (void)block_cache.trim(device);
}

/* ---- other code of this process ---- */

/* Other code may call HIP in a signal handler, which has interrupted the library. */
static bool tables_are_free(void) {
    const bool is_free = lock_within(&tables_lock, LOCK_HELD);
    if (is_free)
        pthread_mutex_unlock(&tables_lock);
    return is_free;
}

static bool lacks_memory(int device) {
    size_t available = 0, total = 0;
    const size_t reserved = block_reserved(device);
    bool old;
    return reserved && device_answered(hip.MemGetInfo(&available, &total)) &&
           available < reserved && available < count_idle(device, 0, &old);
}

/* With stock, the program has already freed the memory, and has waited for it then. So this
 * function returns memory only if hipFree need not wait. */
static void make_room_for_other_code(void) {
    const int device = hip_current_device();
    if (device >= MOST_DEVICES || runtime_forked || load_acquire(&stopping) ||
        !PROOF(other_code_lacks_memory, lacks_memory(device)) ||
        !PROOF(handler_holds_no_lock, tables_are_free()))
        return;
    for (struct block *block = block_first(); block; block = handle_next(block))
        if (block_device(block) == device && is_idle_before(block, UINT64_MAX)) {
            if (!PROOF(other_code_has_no_work, witness_others_have_no_work()) ||
                !PROOF(program_has_no_work, no_stream_has_work()))
                break;
            (void)block_cache.evict(block_address(block));
        }
}

/* ---- life ---- */

void neighbours_start(void) {
    other_code_allocates = make_room_for_other_code;
    neighbours.note_memory = start_thread;
    neighbours.note_free = note_free;
    neighbours.ask = ask_neighbours;
}

void neighbours_stop(void) {
    pthread_mutex_lock(&gate);
    store_release(&stopping, true);
    pthread_mutex_unlock(&gate);
}

void neighbours_forked(void) {
    gate = asking = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    started = false;
    meeting_forked();
}
