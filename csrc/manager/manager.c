/* The manager's side of the channel, compiled into the cffi module mgpu_rt._manager. cffi calls
 * these functions without the GIL. */
#include "manager.h"
#include "../runtime/telemetry/channel.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

_Static_assert(sizeof(struct mgpu_event) == sizeof(struct channel_event), "one layout");
_Static_assert(sizeof(struct mgpu_cached) == sizeof(struct channel_cached), "one layout");

enum {
    GLANCE = 100,  /* ms between two checks that the program is alive; the checks end when the
                    * channel is ready */
    ROUND = 10000, /* ms after which a waiting thread reads the awaited word again, even without a
                    * wake-up */
};

static struct channel *channel;
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static uint32_t watching;

static void ring_library(void) {
    __atomic_fetch_add(&channel->doorbell, 1, __ATOMIC_SEQ_CST);
    channel_ring(&channel->doorbell);
}

/* Locks the manager's mutex for as long as this thread lives. Ends the process once the program's
 * mutex is free. The thread needs no GIL, so the process ends even if a policy never returns. */
static void *watch(void *unused) {
    (void)unused;
    pthread_mutex_lock(&channel->manager);
    __atomic_store_n(&watching, 1, __ATOMIC_RELEASE);
    channel_ring(&watching);
    pthread_mutex_lock(&channel->program);
    _exit(0);
}

static bool start_watching(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch, NULL) != 0)
        return false;
    while (!__atomic_load_n(&watching, __ATOMIC_ACQUIRE))
        channel_wait(&watching, 0, ROUND);
    return true;
}

/* Until the channel is set up, only the program's process id shows whether the program has ended.
 */
static bool is_there(int program) {
    return program > 0 && (kill(program, 0) == 0 || errno != ESRCH);
}

static bool is_ready(void) {
    return __atomic_load_n(&channel->ready, __ATOMIC_ACQUIRE) != 0;
}

static bool open_channel(int program) {
    struct stat found;
    if (fstat(CHANNEL_FD, &found) != 0 || found.st_size != (off_t)sizeof *channel)
        return false;
    void *memory = mmap(NULL, sizeof *channel, PROT_READ | PROT_WRITE, MAP_SHARED, CHANNEL_FD, 0);
    close(CHANNEL_FD);
    if (memory == MAP_FAILED)
        return false;
    channel = memory;
    while (!is_ready() && is_there(program))
        channel_wait(&channel->ready, 0, GLANCE);
    return is_ready();
}

static const char *refuse(const char *reason) {
    mgpu_give_up(reason);
    return reason;
}

const char *mgpu_attach(const char *version, const char *python, int program) {
    static char text[128];
    if (!open_channel(program))
        return "only the library may start this program: it was started otherwise, or by another "
               "version of the library";
    if (channel->magic != CHANNEL_MAGIC || channel->layout != CHANNEL_LAYOUT ||
        strncmp(channel->version, version, sizeof channel->version) != 0) {
        snprintf(text, sizeof text, "the package mgpu_rt is %.32s and the library %.32s", version,
                 channel->version);
        return refuse(text);
    }
    if (!start_watching())
        return refuse("no thread can be created");
    snprintf(channel->python, sizeof channel->python, "%s", python);
    channel->process = getpid();
    __atomic_store_n(&channel->state, CHANNEL_SERVING, __ATOMIC_RELEASE);
    ring_library();
    return NULL;
}

void mgpu_give_up(const char *reason) {
    if (!channel)
        return;
    if (__atomic_load_n(&channel->state, __ATOMIC_ACQUIRE) == CHANNEL_STARTING)
        snprintf(channel->reason, sizeof channel->reason, "%s", reason);
    __atomic_store_n(&channel->state, CHANNEL_FAILED, __ATOMIC_RELEASE);
    ring_library();
}

/* ---- events ---- */

static bool has_event(void) {
    const struct channel_cell *cell = &channel->cells[channel->read % CHANNEL_EVENTS];
    return __atomic_load_n(&cell->turn, __ATOMIC_SEQ_CST) == channel->read + 1;
}

static uint64_t take_dropped_events(void) {
    uint64_t count = 0;
    for (int kind = 0; kind < CHANNEL_KINDS; kind++)
        count += __atomic_exchange_n(&channel->dropped_events[kind], 0, __ATOMIC_SEQ_CST);
    return count;
}

/* Marks the manager as asleep, and then reads the ring once more, so that a writer after this read
 * finds the manager asleep. */
static void sleep_until_event(int milliseconds) {
    __atomic_store_n(&channel->asleep, 1, __ATOMIC_SEQ_CST);
    if (!has_event())
        channel_wait(&channel->asleep, 1, (uint64_t)milliseconds);
    __atomic_store_n(&channel->asleep, 0, __ATOMIC_SEQ_CST);
}

size_t mgpu_events(struct mgpu_event *out, size_t room, int milliseconds,
                   uint64_t *dropped_events) {
    size_t count = 0;
    __atomic_fetch_add(&channel->heartbeat, 1, __ATOMIC_RELAXED);
    if (!has_event() && milliseconds > 0)
        sleep_until_event(milliseconds);
    while (count < room && has_event()) {
        struct channel_cell *cell = &channel->cells[channel->read % CHANNEL_EVENTS];
        memcpy(&out[count++], &cell->event, sizeof *out);
        __atomic_store_n(&cell->turn, channel->read + CHANNEL_EVENTS, __ATOMIC_RELEASE);
        channel->read++;
    }
    *dropped_events += take_dropped_events();
    return count;
}

/* ---- questions ---- */

int64_t mgpu_ask(int request, int kind, int device, uint64_t handle, uint64_t value,
                 const char *text) {
    pthread_mutex_lock(&asking);
    channel->call.request = request;
    channel->call.kind = kind;
    channel->call.device = device;
    channel->call.handle = handle;
    channel->call.value = value;
    if (text)
        snprintf(channel->text, sizeof channel->text, "%s", text);
    const uint32_t number = __atomic_add_fetch(&channel->asked, 1, __ATOMIC_RELEASE);
    ring_library();
    for (uint32_t done; (done = __atomic_load_n(&channel->answered, __ATOMIC_ACQUIRE)) != number;)
        channel_wait(&channel->answered, done, ROUND);
    const int64_t answer = channel->call.answer;
    pthread_mutex_unlock(&asking);
    return answer;
}

const struct mgpu_cached *mgpu_list(void) {
    return (const struct mgpu_cached *)channel->cached;
}
uint64_t mgpu_limit_of_modules(void) {
    return channel->limits.module_bytes;
}
uint64_t mgpu_limit_of_streams(void) {
    return channel->limits.streams;
}
uint64_t mgpu_limit_of_memory(int device) {
    return channel->limits.memory_bytes[device & 63];
}
uint64_t mgpu_memory_available(void) {
    return channel->memory.available;
}
uint64_t mgpu_memory_total(void) {
    return channel->memory.total;
}
